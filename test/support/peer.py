"""Running commands of the installed peer as a black box."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

#: Directory of the peer's commands; empty when there is none.
PEER_BIN = os.environ.get("SWIFT_PEER_BIN", "")

needs_peer = pytest.mark.skipif(
    not PEER_BIN, reason="SWIFT_PEER_BIN does not name the directory of the peer's commands"
)


def can_hide_etc():
    """Whether a command can be given an /etc of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return done.returncode == 0


def environment():
    """Both projects are called swift: our path must not shadow the peer's package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PYTHONWARNINGS": "ignore"}


def peer_command(command, *words, swift_dir):
    """The command line that runs a command with ``swift_dir`` as /etc/swift. Needs ``can_hide_etc``.

    The peer looks for policies in /etc/swift/swift.conf whatever its options say.
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
    script = 'mount --bind "$1" /etc && shift && exec "$@"'
    program = f"{PEER_BIN}/{command}"
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(etc), program, *map(str, words)]


def run_peer(command, *words, swift_dir, timeout_s=120):
    """Run a command to its end; its output."""
    done = subprocess.run(
        peer_command(command, *words, swift_dir=swift_dir),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment(),
        check=False,
    )
    return done.stdout + done.stderr
