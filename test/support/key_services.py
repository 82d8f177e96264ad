"""Key services as separate processes: Barbican with a keystone, and PyKMIP's server.

``SWIFT_KMS_BIN`` names the ``bin`` of an environment that has Barbican, castellan, PyKMIP and this project.
"""

import base64
import json
import os
import subprocess
import time
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from swift.middleware.keymaster.external import fetch_in_process
from test.support.barbican_server import TOKEN
from test.support.processes import free_ports

ROOT = Path(__file__).parents[2]
KMS_BIN = os.environ.get("SWIFT_KMS_BIN", "")
needs_key_services = pytest.mark.skipif(
    not KMS_BIN, reason="SWIFT_KMS_BIN does not name an environment with Barbican, castellan and PyKMIP"
)
PYTHON = f"{KMS_BIN}/python"
#: As a server fetches secrets whose environment has the clients.
fetch = partial(fetch_in_process, command=(PYTHON, "-m", "swift.middleware.keymaster.fetch"))


def await_true(condition, process, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "it ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Barbican:
    """A Barbican with a keystone in front; ``options`` are those of ``[filter:kms_keymaster]``."""

    service = "kms"

    def __init__(self, folder):
        folder.mkdir()
        ports = folder / "ports"
        script = ROOT / "test" / "support" / "barbican_server.py"
        self.log = open(folder / "log", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [PYTHON, str(script), str(ports), str(folder)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
        )
        await_true(ports.exists, self.process)
        self.ports = json.loads(ports.read_text())
        self.options = {
            "username": "swift",
            "password": "pw",
            "project_name": "swift",
            "auth_endpoint": f"http://127.0.0.1:{self.ports['keystone']}/v3",
            "barbican_region_name": "here",
        }

    def add(self, secret, *, algorithm="aes", bits=256):
        """Store a secret; return its key id."""
        body = {
            "payload": base64.b64encode(secret).decode(),
            "payload_content_type": "application/octet-stream",
            "payload_content_encoding": "base64",
            "algorithm": algorithm,
            "bit_length": bits,
            "mode": "ctr",
            "secret_type": "symmetric",
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['barbican']}/v1/secrets",
            json.dumps(body).encode(),
            {"X-Auth-Token": TOKEN, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read())["secret_ref"].rpartition("/")[2]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.log.close()


KMIP_SERVER = """
import sys
from kmip.services.server import KmipServer
with KmipServer(config_path=sys.argv[1], log_path=sys.argv[2]) as server:
    server.serve()
"""
KMIP_CONF = """[server]
hostname=127.0.0.1
port={port}
certificate_path={folder}/server.pem
key_path={folder}/server.key
ca_path={folder}/ca.pem
auth_suite=TLS1.2
policy_path={folder}
enable_tls_client_auth=True
database_path={folder}/kmip.sqlite
"""
KMIP_ADD = """
import json, sys
from kmip.core import enums
from kmip.pie import client, objects
options, algorithm, bits, secret = json.loads(sys.argv[1])
with client.ProxyKmipClient(hostname="127.0.0.1", port=int(options["port"]), cert=options["certfile"],
                            key=options["keyfile"], ca=options["ca_certs"], config_file="/dev/null") as kmip:
    key = objects.SymmetricKey(enums.CryptographicAlgorithm[algorithm.upper()], bits, bytes.fromhex(secret),
                               [enums.CryptographicUsageMask.ENCRYPT])
    uid = kmip.register(key)
    kmip.activate(uid)
    print(uid)
"""


class Kmip:
    """PyKMIP's server; ``options`` are those of ``[filter:kmip_keymaster]``."""

    service = "kmip"

    def __init__(self, folder):
        folder.mkdir()
        (port,) = free_ports(1)
        self._make_certificates(folder)
        (folder / "server.conf").write_text(KMIP_CONF.format(port=port, folder=folder))
        self.options = {
            "host": "127.0.0.1",
            "port": str(port),
            "certfile": str(folder / "client.pem"),
            "keyfile": str(folder / "client.key"),
            "ca_certs": str(folder / "ca.pem"),
        }
        self.log = open(folder / "output", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [PYTHON, "-c", KMIP_SERVER, str(folder / "server.conf"), str(folder / "log")],
            stdout=self.log,
            stderr=self.log,
        )
        log = folder / "log"
        await_true(lambda: log.exists() and b"connection service" in log.read_bytes(), self.process)

    @staticmethod
    def _make_certificates(folder):
        def openssl(words):
            subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)

        openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem")
        for name, usage in (("server", "serverAuth"), ("client", "clientAuth")):
            (folder / f"{name}.ext").write_text(
                f"extendedKeyUsage={usage}\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"
            )
            openssl(f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
            openssl(
                f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                f"-extfile {name}.ext -out {name}.pem"
            )

    def add(self, secret, *, algorithm="aes", bits=256):
        """Store a secret; return its key id."""
        words = json.dumps([self.options, algorithm, bits, secret.hex()])
        done = subprocess.run(
            [PYTHON, "-c", KMIP_ADD, words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


SERVICES = {"kms": Barbican, "kmip": Kmip}
