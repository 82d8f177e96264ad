"""Run compose-three.yaml without a container engine, and use its cluster: three.py IMAGE.

The image is one of buildah's. Each service gets what an engine gives it: its command and environment, the
image as its root (read-only where the file says so), its volumes and tmpfs, and namespaces of the kernel for
network, mounts and processes. A bridge connects them, and /etc/hosts has their names. Needs root, buildah and
PyYAML.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

COMPOSE = Path(__file__).parents[2] / "containers" / "compose-three.yaml"
SECRETS = {
    "SWIFT_HASH_PATH_PREFIX": "aaaa",
    "SWIFT_HASH_PATH_SUFFIX": "bbbb",
    "SWIFT_USER": "test:tester",
    "SWIFT_KEY": "testing",
    "AWS_ACCESS_KEY_ID": "example",
    "AWS_SECRET_ACCESS_KEY": "example-secret",
}
NETWORK = "10.89.77"
NODES = ("one", "two", "three")
PREFIX = f"swift-three-{os.getpid()}"
#: Runs in new namespaces: binds the root, mounts volumes and tmpfs, and becomes the command of the service.
SCRIPT = """
root=$1 user=$2 writable=$3 hosts=$4; shift 4
mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev"
mount --bind "$hosts" "$root/etc/hosts"
while [ "$1" != -- ]; do
    case $1 in
    tmpfs) mount -t tmpfs -o "$3" tmpfs "$root$2" ;;
    *) mount --bind "$2" "$root$3"; [ "$1" = rw ] || mount -o remount,bind,ro "$root$3" ;;
    esac
    shift 3
done
shift
[ "$writable" = true ] || mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" env -i "$@"
"""
CLIENT = """
import sys, urllib.request
import boto3

def ask(method, url, headers, body=None):
    return urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=30)

home = f"http://{sys.argv[2]}:8080"
login = ask("GET", f"{home}/auth/v1.0", {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
url, token = login.headers["X-Storage-Url"], {"X-Auth-Token": login.headers["X-Auth-Token"]}
body = b"of three nodes" * 1000
if sys.argv[1] == "write":
    ask("PUT", f"{url}/photos", token)
for name in sys.argv[3:]:
    if sys.argv[1] == "write":
        ask("PUT", f"{url}/photos/{name}", token, body)
    assert ask("GET", f"{url}/photos/{name}", token).read() == body
s3 = boto3.client("s3", "us-east-1", endpoint_url=home, aws_access_key_id="example",
                  aws_secret_access_key="example-secret")
assert {each["Key"] for each in s3.list_objects_v2(Bucket="photos")["Contents"]} >= set(sys.argv[3:])
"""


def run(*words, **options):
    """Run a command; its standard output."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def say(text):
    """Print a line at once."""
    print(f"three: {text}", flush=True)


class Cluster:
    """The services of the compose file."""

    def __init__(self, image, folder):
        self.services = yaml.safe_load(COMPOSE.read_text())["services"]
        config = json.loads(run("buildah", "inspect", "--type", "image", image))["Docker"]["config"]
        self.entrypoint, self.user = config["Entrypoint"] or [], config["User"]
        self.environment = dict(each.split("=", 1) for each in config["Env"])
        self.folder = folder
        self.running = {}
        self.container = run("buildah", "from", image).strip()
        self.root = run("buildah", "mount", self.container).strip()
        self.addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(self.services, 2)}
        lines = [f"{address} {name}\n" for name, address in self.addresses.items()]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
        run("ip", "netns", "add", PREFIX)
        self.inside(PREFIX, "ip", "link", "set", "lo", "up")
        self.inside(PREFIX, "ip", "link", "add", "bridge", "type", "bridge")
        self.inside(PREFIX, "ip", "address", "add", f"{NETWORK}.1/24", "dev", "bridge")
        self.inside(PREFIX, "ip", "link", "set", "bridge", "up")
        for number, (name, address) in enumerate(self.addresses.items()):
            space = f"{PREFIX}-{name}"
            run("ip", "netns", "add", space)
            peer = ("peer", f"v{number}", "netns", PREFIX)
            run("ip", "link", "add", "eth0", "netns", space, "type", "veth", *peer)
            self.inside(PREFIX, "ip", "link", "set", f"v{number}", "master", "bridge", "up")
            self.inside(space, "ip", "link", "set", "lo", "up")
            self.inside(space, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            self.inside(space, "ip", "link", "set", "eth0", "up")

    @staticmethod
    def inside(space, *words):
        """Run a command in a network namespace."""
        return run("ip", "netns", "exec", space, *words)

    def volume(self, name, target):
        """The folder of a named volume, which begins as a copy of the image's."""
        path = self.folder / "volumes" / name
        if not path.exists():
            run("mkdir", "-p", str(path.parent))
            run("cp", "-a", f"{self.root}{target}", str(path))
        return str(path)

    def environment_of(self, name):
        """The environment of a service."""
        service = self.services[name]
        given = SECRETS if "env_file" in service else {}
        return {**self.environment, **given, **service.get("environment", {})}

    def start(self, name):
        """Start a service."""
        service = self.services[name]
        mounts = []
        for text in service.get("tmpfs", ()):
            path, _colon, options = text.partition(":")
            mounts += ["tmpfs", path, options or "mode=1777"]
        for text in service.get("volumes", ()):
            volume, target, *mode = text.split(":")
            mounts += [mode[0] if mode else "rw", self.volume(volume, target), target]
        user = service.get("user", f"{self.user}:{self.user}")
        environment = [f"{key}={value}" for key, value in self.environment_of(name).items()]
        log = (self.folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                f"{PREFIX}-{name}",
                "unshare",
                "--mount",
                "--pid",
                "--uts",
                "--fork",
                "--kill-child",
                "sh",
                "-euc",
                SCRIPT,
                "sh",
                self.root,
                user,
                "false" if service.get("read_only") else "true",
                str(self.folder / "hosts"),
                *mounts,
                "--",
                *environment,
                *self.entrypoint,
                *service["command"],
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def stop(self, name):
        """Stop a service as an engine does; returns whether it ended by itself."""
        process = self.running.pop(name)
        for pid in run("pgrep", "--parent", str(process.pid)).split():
            os.kill(int(pid), signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        return True

    def await_healthy(self, name):
        """Wait until the image's health command succeeds in a service."""
        environment = [f"{key}={value}" for key, value in self.environment_of(name).items()]
        command = ["chroot", self.root, "env", "-i", *environment, "/usr/share/swift/container/health"]
        self.wait_for(
            lambda: (
                subprocess.run(
                    ["ip", "netns", "exec", f"{PREFIX}-{name}", *command], capture_output=True, check=False
                ).returncode
                == 0
            ),
            f"{name} is healthy",
        )

    def wait_for(self, condition, what, seconds=120):
        """Wait; ends the program when the time is over or a service has ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            ended = [name for name, process in self.running.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                sys.exit(f"three: not so: {what}; ended: {ended}")
            time.sleep(0.2)

    def client(self, *words):
        """Run the client beside the proxy."""
        self.inside(PREFIX, sys.executable, "-c", CLIENT, words[0], self.addresses["proxy"], *words[1:])

    def copies(self, node):
        """The number of objects that a node holds."""
        return len(list((self.folder / "volumes" / node).glob("d*/objects/**/*.data")))

    def close(self):
        """Stop everything and remove it."""
        for name in list(self.running):
            self.stop(name)
        for name in self.addresses:
            subprocess.run(["ip", "netns", "delete", f"{PREFIX}-{name}"], check=False)
        subprocess.run(["ip", "netns", "delete", PREFIX], check=False)
        run("buildah", "rm", self.container)


def main(image):
    """Make the cluster, lose a node, bring it back."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    cluster = Cluster(image, folder)
    try:
        cluster.start("init")
        assert cluster.running.pop("init").wait(60) == 0, (folder / "init.log").read_text()
        say("init made configuration and rings")
        for name in cluster.services:
            if name != "init":
                cluster.start(name)
        for name in (*NODES, "proxy"):
            cluster.await_healthy(name)
        say("all nodes and the proxy are healthy")
        cluster.client("write", "first")
        cluster.wait_for(lambda: all(cluster.copies(node) == 1 for node in NODES), "three copies")
        say("swift and S3 clients wrote and read; each node has a copy")
        assert cluster.stop("two"), "the node did not end on SIGTERM"
        cluster.client("write", "second")
        cluster.client("read", "first", "second")
        cluster.start("two")
        cluster.await_healthy("two")
        cluster.wait_for(lambda: cluster.copies("two") == 2, "the node that came back has what it missed")
        say("a node that was away has what it missed")
        assert cluster.running["expirer"].poll() is None
    except BaseException:
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        raise
    finally:
        cluster.close()
        shutil.rmtree(folder)
    say("ok")


if __name__ == "__main__":
    main(sys.argv[1])
