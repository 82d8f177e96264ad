"""Servers and daemons in the surroundings that Red Hat's swift-operator gives them.

One volume holds swift.conf, rings and the configuration directories. All of its files are reached through
symbolic links, none can be written, and commands log to the console.
"""

import contextlib
import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from test.support.deployments import SERVERS, storage_conf, write_conf
from test.support.key_services import await_true
from test.support.processes import free_ports
from test.unit.ring.conftest import GOLDEN

pytestmark = pytest.mark.process
COMMANDS = Path(sys.executable).parent


def make_volume(root, ports):
    """Create the files of a projected volume at ``/etc/swift``; return its path."""
    data = root / "..2026_11_26"
    for server, port in ports.items():
        folder = data / f"{server}-server.conf.d"
        folder.mkdir(parents=True)
        default = {
            "swift_dir": str(root),
            "devices": str(root.parent / "srv"),
            "recon_cache_path": str(root.parent / "cache"),
            "mount_check": "false",
            "user": getpass.getuser(),
            "bind_ip": "127.0.0.1",
            "bind_port": str(port),
        }
        write_conf(folder / "00-server.conf", storage_conf("swift-operator", server, default))
        (folder / "01-server.conf").write_text("[DEFAULT]\nworkers = 2\n")
        shutil.copyfile(GOLDEN / "e0-base.ring.gz", data / f"{server}.ring.gz")
    (data / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\nswift_hash_path_prefix = p\n")
    (root / "..data").symlink_to(data.name)
    for path in data.iterdir():
        (root / path.name).symlink_to(f"..data/{path.name}")
    for path in sorted(data.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return root


def found_by_pgrep(pattern, parent):
    """Return the matching processes among the parent and its children."""
    done = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)
    return [
        pid
        for pid in map(int, done.stdout.split())
        if pid == parent or os.path.exists(f"/proc/{pid}/stat") and _parent_of(pid) == parent
    ]


def _parent_of(pid):
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


@pytest.fixture
def start():
    with contextlib.ExitStack() as processes:

        def start(*words):
            process = subprocess.Popen(
                [COMMANDS / words[0], *words[1:]], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )

            def stop():
                process.terminate()
                process.communicate(timeout=30)

            processes.callback(stop)
            return process

        yield start


def test_servers_respond_and_are_found_by_name(tmp_path, start):
    ports = dict(zip(SERVERS, free_ports(3), strict=True))
    for name in ("etc", "srv", "cache"):
        (tmp_path / name).mkdir()
    etc = make_volume(tmp_path / "etc", ports)
    running = {
        f"swift-{server}-server": start(f"swift-{server}-server", f"{etc}/{server}-server.conf.d", "-v")
        for server in SERVERS
    }
    daemons = ("object-replicator", "container-updater", "account-reaper")
    for daemon in daemons:
        path = f"{etc}/{daemon.split('-')[0]}-server.conf.d"
        running[f"swift-{daemon}"] = start(f"swift-{daemon}", path, "-v")

    def responds(port):
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=2) as page:
            return page.read() == b"OK"
        return False

    for server, port in ports.items():
        await_true(lambda port=port: responds(port), running[f"swift-{server}-server"])
    for name, process in running.items():
        assert process.poll() is None, name
        assert process.pid in found_by_pgrep(name, process.pid), name
        if name.endswith("-server"):
            assert len(found_by_pgrep(name, process.pid)) == 3, "workers have the name of their server"
        # The log is on the console.
        assert process.stderr.readline(), name
