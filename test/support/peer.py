"""The installed peer as a black box, and test nodes for its commands and ours."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swift.ring.builder import RingBuilder
from test.support.processes import FORK_SERVER, free_ports

# --- peer -------------------------------------------------------------------------------------------

# Running commands of the installed peer as a black box.


#: Directory of the peer's commands; empty when there is none.
PEER_BIN = os.environ.get("SWIFT_PEER_BIN", "")

needs_peer = pytest.mark.skipif(
    not PEER_BIN, reason="SWIFT_PEER_BIN does not name the directory of the peer's commands"
)


def can_hide_etc():
    """Return True if a command can run with a separate /etc."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return done.returncode == 0


def environment():
    """Return the environment for the peer: our package ``swift`` must not shadow the peer's."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PYTHONWARNINGS": "ignore"}


def peer_command(command, *words, swift_dir):
    """Return the command line that runs a command with ``swift_dir`` as /etc/swift. Needs ``can_hide_etc``.

    The peer looks for policies in /etc/swift/swift.conf whatever its options say. It keeps files: it does not
    know the packed engine that a policy may have there.
    """
    etc = Path(swift_dir) / "hidden-etc"
    if not etc.exists():
        etc.mkdir()
        for name in ("passwd", "group", "hosts", "nsswitch.conf", "resolv.conf", "localtime", "ld.so.cache"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", etc / name)
    inside = etc / "swift"
    if not inside.exists():
        inside.mkdir()
        for path in Path(swift_dir).iterdir():
            if path.is_file():
                shutil.copy(path, inside / path.name)
        conf = inside / "swift.conf"
        if conf.exists():
            conf.write_text(re.sub(r"(?m)^diskfile_module = egg:swift#.*\.packed\n", "", conf.read_text()))
    script = 'mount --bind "$1" /etc && shift && exec "$@"'
    program = f"{PEER_BIN}/{command}"
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(etc), program, *map(str, words)]


def run_peer(command, *words, swift_dir, timeout_s=120):
    """Run a command of the peer to its end; return its output."""
    done = subprocess.run(
        peer_command(command, *words, swift_dir=swift_dir),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment(),
        check=False,
    )
    return done.stdout + done.stderr


# --- nodes ------------------------------------------------------------------------------------------

# A node for tools: rings, configuration and devices below one folder, for our commands and the peer's.


SWIFT_CONF = """[swift-hash]
swift_hash_path_suffix = s

[storage-policy:0]
name = gold
default = yes

[storage-policy:1]
name = silver
aliases = grey
"""


def with_ec(data, parity, name="ec"):
    """Return a swift.conf of one replicated and one erasure coded policy."""
    return f"""[swift-hash]
swift_hash_path_suffix = s
[storage-policy:0]
name = gold
default = yes
[storage-policy:1]
name = {name}
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = {data}
ec_num_parity_fragments = {parity}
"""


def record(number, port, device):
    """Return a device of this machine as ring files describe it."""
    return {
        "id": number,
        "region": 1,
        "zone": 1,
        "ip": "127.0.0.1",
        "port": port,
        "replication_ip": "127.0.0.1",
        "replication_port": port,
        "device": device,
        "weight": 1.0,
        "meta": "",
    }


def command(name):
    """Return the path of one of our commands, beside the interpreter that runs the tests."""
    return [str(Path(sys.executable).with_name(name))]


def run(name, *words, input=None, timeout_s=120, env=None):
    """Run one of our commands to its end, from a warm process, and return the completed process."""
    (program,) = command(name)
    environ = {**os.environ, **(env or {})}
    return FORK_SERVER.run(program, [*map(str, words)], input=input, timeout_s=timeout_s, environ=environ)


def make_rings(
    folder, devices, *, part_power=4, replicas=3, names=("account", "container", "object", "object-1")
):
    """Write rings into a folder; ``devices`` are (ip, port, device)."""
    for name in names:
        builder = RingBuilder(part_power, replicas, 0)
        for number, (ip, port, device) in enumerate(devices):
            builder.add_device(
                ip=ip, port=port, device=device, weight=100.0, region=1, zone=number + 1, meta=""
            )
        builder.rebalance(seed=1)
        builder.write_ring(f"{folder}/{name}.ring.gz")


class ToolNode:
    """The servers of one node, one of each kind with one device, started by ``swift-init``."""

    def __init__(self, root):
        self.root = root
        self.etc = root / "etc"
        self.run_dir = root / "run"
        self.devices = root / "dev"
        self.recon = root / "recon"
        for path in (self.etc, self.run_dir, self.devices / "sda", self.recon):
            path.mkdir(parents=True)
        (self.etc / "swift.conf").write_text(SWIFT_CONF)
        self.ports = dict(zip(("account", "container", "object"), free_ports(3), strict=True))
        for kind in self.ports:
            self.write_conf(kind)

    def write_conf(self, kind, name="", port=None, more=""):
        path = self.etc / f"{kind}-server{name}.conf"
        path.parent.mkdir(exist_ok=True)
        user = pwd.getpwuid(os.geteuid()).pw_name
        path.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port or self.ports[kind]}\nworkers = 1\n"
            f"user = {user}\nswift_dir = {self.etc}\ndevices = {self.devices}\nmount_check = false\n"
            f"recon_cache_path = {self.recon}\nlog_requests = false\n"
            f"[pipeline:main]\npipeline = recon {kind}-server\n"
            f"[filter:recon]\nuse = egg:swift#recon\n"
            f"[app:{kind}-server]\nuse = egg:swift#{kind}\n"
            f"[{kind}-auditor]\n" + more
        )
        return path

    def init(self, *words):
        return run("swift-init", *words, "-r", self.run_dir, "--swift-dir", self.etc)

    def pids(self):
        return {
            str(path.relative_to(self.run_dir)): int(path.read_text()) for path in self.run_dir.rglob("*.pid")
        }

    def stop(self):
        self.init("all", "kill")
