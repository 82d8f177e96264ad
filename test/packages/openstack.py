"""Start the image of Containerfile.openstack as kolla-ansible and swift-operator do: openstack.py IMAGE.

Run it as ``python -m test.packages.openstack IMAGE`` in the root of the tree; the image is one of buildah's.
The commands run in namespaces of the kernel, with the image as their root. Needs root and buildah.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from test.support.deployments import proxy_conf, storage_conf, write_conf

UID = 42445
GOLDEN = Path(__file__).parents[1] / "golden" / "data" / "rings"
SWIFT_CONF = "[swift-hash]\nswift_hash_path_suffix = s\nswift_hash_path_prefix = p\n"
ENTER = """
ip link set lo up; root=$1; shift
mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev"
exec "$@"
"""
#: What swift-operator's httpd.conf relies on: Red Hat's paths, modules and user.
HTTPD_CONF = """
ServerRoot "/etc/httpd"
ServerName localhost.localdomain
PidFile run/httpd.pid
User apache
Group apache
Listen 8080
TypesConfig /etc/mime.types
Include conf.modules.d/*.conf
Include conf.d/*.conf
LogFormat "%h %l %u %t \\"%r\\" %>s %b" combined
SetEnvIf X-Forwarded-For "^.*\\..*\\..*\\..*" forwarded
CustomLog /dev/stderr combined env=!forwarded
<VirtualHost *:8080>
  ErrorLog /dev/stderr
  RequestHeader set X-Forwarded-Proto "http"
  ProxyRequests Off
  ProxyPreserveHost On
  ProxyPass / http://localhost:8081/ retry=10
  ProxyPassReverse / http://localhost:8081/
</VirtualHost>
"""


def run(*words):
    """Run a command; its standard output."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


class Pod:
    """The image as the root of processes that share a network."""

    def __init__(self, image):
        self.container = run("buildah", "from", image).strip()
        self.root = Path(run("buildah", "mount", self.container).strip())
        # An engine writes this file.
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        self.process = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "sh",
                "-euc",
                ENTER,
                "sh",
                self.root,
                "sleep",
                "infinity",
            ]
        )
        while not (
            children := subprocess.run(
                ["pgrep", "--parent", str(self.process.pid)], stdout=subprocess.PIPE, text=True, check=False
            ).stdout.split()
        ):
            time.sleep(0.05)
        self.pid = children[0]
        while Path(f"/proc/{self.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.05)

    def words(self, *words, privileges=(), **environment):
        """The words that run a command inside."""
        given = {"PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", **environment}
        return [
            "nsenter", "--target", self.pid, "--net", "--mount", "--pid", "--", "chroot", str(self.root),
            "setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups", *privileges,
            "env", "-i", *(f"{name}={value}" for name, value in given.items()), *words,
        ]  # fmt: skip

    def start(self, *words, **options):
        """Start a command as the user of the image."""
        return subprocess.Popen(self.words(*words, **options))

    def run(self, *words, **options):
        """Run a command as the user of the image; its standard output."""
        return run(*self.words(*words, **options))

    def await_success(self, *words):
        """Run a command until it succeeds."""
        for _attempt in range(150):
            done = subprocess.run(self.words(*words), capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout
            time.sleep(0.2)
        raise SystemExit(f"openstack: {words}: {done.stdout} {done.stderr}")

    def put_rings(self, folder):
        """Put rings into a folder of the root."""
        for server in ("account", "container", "object"):
            shutil.copyfile(GOLDEN / "e0-base.ring.gz", self.root / folder / f"{server}.ring.gz")

    def close(self):
        """End all processes."""
        os.kill(int(self.pid), signal.SIGKILL)
        self.process.wait()
        run("buildah", "rm", self.container)


def default_of(port):
    """Options that depend on the machine."""
    return {"bind_ip": "0.0.0.0", "bind_port": str(port), "mount_check": "false", "user": "swift"}


def check_kolla(pod):
    """kolla_start copies what only root can read, and becomes the command."""
    folders = [pod.root / "var/lib/kolla/config_files", pod.root / "var/lib/kolla/swift"]
    for folder in folders:
        folder.mkdir(parents=True)
    config, rings = folders
    write_conf(config / "object-server.conf", storage_conf("kolla-ansible", "object", default_of(6200)))
    (config / "swift.conf").write_text(SWIFT_CONF)
    pod.put_rings(rings.relative_to(pod.root))
    files = [
        ("object-server.conf", "config_files"),
        ("swift.conf", "config_files"),
        ("object.ring.gz", "swift"),
    ]
    copied = [
        {
            "source": f"/var/lib/kolla/{folder}/{name}",
            "dest": f"/etc/swift/{name}",
            "owner": "swift",
            "perm": "0640",
        }
        for name, folder in files
    ]
    missing = {"source": "/var/lib/kolla/none", "dest": "/etc/swift/none", "owner": "swift", "perm": "0600"}
    (config / "config.json").write_text(
        json.dumps(
            {
                "command": "swift-object-server /etc/swift/object-server.conf --verbose",
                "config_files": [*copied, {**missing, "optional": True}],
                "permissions": [{"path": "/var/lib/swift", "owner": "swift:swift", "recurse": True}],
            }
        )
    )
    for path in config.iterdir():
        path.chmod(0o600)
    process = pod.start("kolla_start", KOLLA_CONFIG_STRATEGY="COPY_ALWAYS")
    pod.await_success("curl", "-s", "-o", "/dev/null", "http://127.0.0.1:6200/healthcheck")
    pod.await_success("pgrep", "-f", "swift-object-server")
    for name, _folder in files:
        status = (pod.root / "etc/swift" / name).stat()
        assert (status.st_uid, status.st_mode & 0o777) == (UID, 0o640), name
    process.terminate()
    process.wait()
    print("openstack: kolla_start runs an object server", flush=True)


def check_operator(pod):
    """A proxy with keystonemiddleware behind httpd, without any privilege."""
    etc = pod.root / "etc/swift"
    (etc / "proxy-server.conf.d").mkdir()
    default = {**default_of(8081), "bind_ip": "127.0.0.1"}
    write_conf(etc / "proxy-server.conf.d/00-proxy-server.conf", proxy_conf("swift-operator", default))
    (etc / "swift.conf").write_text(SWIFT_CONF)
    os.chmod(etc / "swift.conf", 0o644)
    pod.put_rings("etc/swift")
    (pod.root / "etc/httpd/conf/httpd.conf").write_text(HTTPD_CONF)
    # Volumes that the operator mounts; they belong to the group of the pod.
    for volume in ("run/httpd", "var/log/httpd"):
        os.chown(pod.root / volume, UID, UID)
    privileges = ("--bounding-set=-all", "--no-new-privs")
    pod.start("/usr/bin/swift-proxy-server", "/etc/swift/proxy-server.conf.d", "-v", privileges=privileges)
    pod.start("/usr/sbin/httpd", "-DFOREGROUND", privileges=privileges)
    assert pod.await_success("curl", "-sf", "http://127.0.0.1:8080/healthcheck") == "OK"
    answer = pod.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:8080/v1/AUTH_x")
    assert answer == "401", answer
    print("openstack: a proxy responds behind httpd, and asks for a token", flush=True)
    swap = "from swift.common.ring import RingBuilder as R; b = R.load('o.builder'); b.save('o.builder')"
    script = (
        "cd /tmp && swift-ring-builder o.builder create 4 1 1 && swift-ring-builder o.builder add --region 1 "
        "--zone 1 --ip swift-storage-0 --port 6200 --device pv --weight 1 --meta node-1 && "
        f'swift-ring-builder o.builder rebalance && /usr/bin/env python3 -c "{swap}" && '
        "swift-ring-builder o.builder write_ring; "
        "swift-ring-builder o.builder search --ip none --device pv; test $? -eq 2"
    )
    pod.run("bash", "-c", script)
    print("openstack: the ring tool's commands run", flush=True)


def main(image):
    """Run the checks, each in a pod of its own."""
    for check in (check_kolla, check_operator):
        pod = Pod(image)
        try:
            check(pod)
        finally:
            pod.close()
    print("openstack: ok")


if __name__ == "__main__":
    main(sys.argv[1])
