"""A fake of HashiCorp Vault and OpenBao, transit, AppRole and tokens; and the real one, if there is a binary.

``SWIFT_BAO_BIN`` names the binary of OpenBao or Vault. Tests use both through the same methods.
"""

import base64
import contextlib
import json
import os
import secrets
import subprocess
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from test.support.processes import free_ports

BAO_BIN = os.environ.get("SWIFT_BAO_BIN", "")
needs_bao = pytest.mark.skipif(not BAO_BIN, reason="SWIFT_BAO_BIN names no binary of OpenBao or Vault")
KEY = "swift"
ROOT_TOKEN = "root-token"


class _Refused(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_POST(self):
        vault = self.server.vault
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with vault.lock:
            vault.asked.append((self.path, headers))
            time.sleep(vault.delay_s)
            try:
                status, document = 200, vault.respond(self.path, headers, json.loads(body or b"{}"))
            except _Refused as error:
                status, document = error.status, {"errors": [str(error)]}
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data)


class FakeVault:
    """Speaks the part of the API that the client uses, and sends the same errors."""

    def __init__(self, _folder=None):
        self.lock = threading.RLock()
        self.asked = []
        self.sealed = False
        self.delay_s = 0.0
        self.namespace = ""
        self._keys = {}
        #: token → [lifetime, end, renewable, longest end]
        self._tokens = {ROOT_TOKEN: [0, float("inf"), False, float("inf")]}
        self._roles = {}
        self._server = None
        self.port = free_ports(1)[0]
        self.start()

    # the service

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _Handler)
        self._server.vault = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self):
        """Be absent."""
        if self._server is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    close = stop

    def seal(self):
        self.sealed = True

    def unseal(self):
        self.sealed = False

    # what an operator does

    def make_key(self, name=KEY):
        self._keys[name] = {"versions": [AESGCM.generate_key(256)], "least": 1}

    def delete_key(self, name=KEY):
        del self._keys[name]

    def rotate_key(self, name=KEY, *, least=1):
        self._keys[name]["versions"].append(AESGCM.generate_key(256))
        self._keys[name]["least"] = least

    def wrap(self, secret, name=KEY):
        versions = self._keys[name]["versions"]
        nonce = secrets.token_bytes(12)
        data = nonce + AESGCM(versions[-1]).encrypt(nonce, secret, None)
        return f"vault:v{len(versions)}:{base64.b64encode(data).decode()}"

    def make_token(self, lifetime_s=3600, *, longest_s=float("inf"), renewable=True):
        token = f"hvs.{secrets.token_hex(12)}"
        now = time.monotonic()
        self._tokens[token] = [lifetime_s, now + min(lifetime_s, longest_s), renewable, now + longest_s]
        return token

    def revoke_token(self, token):
        self._tokens.pop(token, None)

    def revoke_all_tokens(self):
        self._tokens = {ROOT_TOKEN: self._tokens[ROOT_TOKEN]}

    def make_approle(self, lifetime_s=3600, *, longest_s=float("inf")):
        role, secret = secrets.token_hex(8), secrets.token_hex(8)
        self._roles[role] = secret, lifetime_s, longest_s
        return role, secret

    def revoke_approle(self, role):
        del self._roles[role]

    def count(self, path):
        """Return the number of requests to a path."""
        return sum(1 for asked, _ in self.asked if asked == f"/v1/{path}")

    # the API

    def respond(self, path, headers, document):
        if self.sealed:
            raise _Refused(503, "Vault is sealed")
        words = path.removeprefix("/v1/").split("/")
        if headers.get("x-vault-namespace", "") != self.namespace:
            raise _Refused(403, "permission denied")
        if words[0] == "auth" and words[2] == "login":
            return self._log_in(document)
        token = headers.get("x-vault-token", "")
        if token not in self._tokens or time.monotonic() > self._tokens[token][1]:
            raise _Refused(403, "permission denied")
        if words == ["auth", "token", "renew-self"]:
            return self._renew(token)
        if words[0] != "transit":
            raise _Refused(404, "no handler for route")
        if words[1] == "decrypt":
            return {"data": {"plaintext": base64.b64encode(self._decrypt(words[2], document)).decode()}}
        assert words[1:3] == ["datakey", "wrapped"] and document == {"bits": 256}
        if words[3] not in self._keys:
            raise _Refused(400, "encryption key not found")
        return {"data": {"ciphertext": self.wrap(secrets.token_bytes(32), words[3]), "key_version": 1}}

    def _decrypt(self, name, document):
        if name not in self._keys:
            raise _Refused(400, "encryption key not found")
        _, version, text = document["ciphertext"].split(":")
        data, number = base64.b64decode(text), int(version.removeprefix("v"))
        if number < self._keys[name]["least"]:
            raise _Refused(400, "ciphertext or signature version is disallowed by policy (too old)")
        try:
            return AESGCM(self._keys[name]["versions"][number - 1]).decrypt(data[:12], data[12:], None)
        except (InvalidTag, IndexError):
            raise _Refused(400, "cipher: message authentication failed")

    def _log_in(self, document):
        secret, lifetime_s, longest_s = self._roles.get(document["role_id"], ("", 0, 0))
        if not secret or secret != document["secret_id"]:
            raise _Refused(400, "invalid role or secret ID")
        return self._auth(self.make_token(lifetime_s, longest_s=longest_s))

    def _renew(self, token):
        lifetime_s, _end, renewable, longest = self._tokens[token]
        if not renewable:
            raise _Refused(400, "lease is not renewable")
        self._tokens[token][1] = min(time.monotonic() + lifetime_s, longest)
        return self._auth(token)

    def _auth(self, token):
        _lifetime_s, end, renewable, _longest = self._tokens[token]
        lease_s = round(end - time.monotonic())
        return {"auth": {"client_token": token, "lease_duration": lease_s, "renewable": renewable}}


class RealVault:
    """A server of OpenBao or Vault, with its storage in files."""

    def __init__(self, folder):
        self.port, cluster_port = free_ports(2)
        self._folder = folder
        self._conf = folder / "bao.hcl"
        self._conf.write_text(
            f'storage "raft" {{ path = "{folder}/data"\nnode_id = "one" }}\n'
            f'listener "tcp" {{ address = "127.0.0.1:{self.port}"\n'
            f'cluster_address = "127.0.0.1:{cluster_port}"\ntls_disable = true }}\n'
            f'api_addr = "http://127.0.0.1:{self.port}"\n'
            f'cluster_addr = "http://127.0.0.1:{cluster_port}"\n'
        )
        (folder / "data").mkdir()
        self._token = ""
        self._process = None
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self):
        self._spawn()
        made = self._api("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
        self._unseal_key, self._token = made["keys_base64"][0], made["root_token"]
        self.unseal()
        self._api("POST", "sys/mounts/transit", {"type": "transit"})
        self._api("POST", "sys/auth/approle", {"type": "approle"})
        rules = 'path "transit/decrypt/*" { capabilities = ["update"] }\n'
        rules += 'path "transit/datakey/wrapped/*" { capabilities = ["update"] }\n'
        self._api("PUT", "sys/policies/acl/swift", {"policy": rules})

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _spawn(self):
        with (self._folder / "bao.log").open("ab") as log:
            words = [BAO_BIN, "server", f"-config={self._conf}"]
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                self._api("GET", "sys/seal-status", None)
                return
            assert self._process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)

    def _api(self, method, path, document):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, f"/v1/{path}", body, {"X-Vault-Token": self._token})
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        assert response.status < 300, (path, response.status, data)
        return json.loads(data) if data else {}

    def start(self):
        self._spawn()
        self.unseal()

    def stop(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    close = stop

    def seal(self):
        self._api("PUT", "sys/seal", {})

    def unseal(self):
        self._api("PUT", "sys/unseal", {"key": self._unseal_key})
        deadline = time.monotonic() + 30
        while not self._is_active():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def _is_active(self):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/v1/sys/health")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def make_key(self, name=KEY):
        self._api("POST", f"transit/keys/{name}", {})
        self._api("POST", f"transit/keys/{name}/config", {"deletion_allowed": True})

    def delete_key(self, name=KEY):
        self._api("DELETE", f"transit/keys/{name}", None)

    def rotate_key(self, name=KEY, *, least=1):
        self._api("POST", f"transit/keys/{name}/rotate", {})
        if least > 1:
            self._api("POST", f"transit/keys/{name}/config", {"min_decryption_version": least})

    def wrap(self, secret, name=KEY):
        plain = base64.b64encode(secret).decode()
        return self._api("POST", f"transit/encrypt/{name}", {"plaintext": plain})["data"]["ciphertext"]

    def make_token(self, lifetime_s=3600):
        wanted = {"policies": ["swift"], "ttl": f"{lifetime_s}s", "no_parent": True}
        return self._api("POST", "auth/token/create", wanted)["auth"]["client_token"]

    def revoke_token(self, token):
        self._api("POST", "auth/token/revoke", {"token": token})

    def make_approle(self, lifetime_s=3600):
        wanted = {"token_policies": ["swift"], "token_ttl": f"{lifetime_s}s"}
        self._api("POST", "auth/approle/role/swift", wanted)
        role = self._api("GET", "auth/approle/role/swift/role-id", None)["data"]["role_id"]
        secret = self._api("POST", "auth/approle/role/swift/secret-id", {})["data"]["secret_id"]
        return role, secret

    def revoke_approle(self, _role):
        self._api("DELETE", "auth/approle/role/swift", None)


VAULTS = [
    pytest.param(FakeVault, id="fake"),
    pytest.param(RealVault, id="real", marks=[needs_bao, pytest.mark.process]),
]
