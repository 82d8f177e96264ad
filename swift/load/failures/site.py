"""A cluster on this machine, parts of which fail and are repaired."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from swift.aio.cgroups import CGROUPS, file_device_number
from swift.aio.make import make_cluster, mount_devices
from swift.aio.plan import IMAGES, ClusterPlan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from swift.aio.xfs import mount_image
from swift.base.errors import ConfigError
from swift.load.failures.cleanup import group_name
from swift.load.failures.targets import Failure, Target

#: A slow disk: what a hard disk does, as everywhere in this project.
SLOW_IOPS, SLOW_BYTES_A_SECOND = 100, 120_000_000
_THROTTLE = CGROUPS / "blkio"
_SERVERS = ("object", "container", "account", "daemons")
#: Servers close what they have open on a disk that went away at the next request for it.
_CLOSING_S = 10.0


def check_possible(failure: Failure, *, has_disks: bool) -> None:
    """Raise ``ConfigError`` saying why a failure cannot be made on this machine."""
    if failure.unit == "disks" and not has_disks:
        raise ConfigError("disks fail only with --xfs, which gives each a filesystem of its own; needs root")
    if failure.way == "slow" and not os.access(_THROTTLE / "cgroup.procs", os.W_OK):
        raise ConfigError(f"a slow disk needs the blkio controller of cgroups at {_THROTTLE}, and root")
    if failure.way == "partition" and not _is_alone_in_network():
        raise ConfigError(
            "a partition needs a network of its own, as root: "
            "unshare --net sh -c 'ip link set lo up; swift-load …'"
        )
    if failure.way == "shutdown" and shutil.which("xfs_io") is None:
        raise ConfigError("I/O errors need xfs_io; install the system package xfsprogs")


def _is_alone_in_network() -> bool:
    """Return True if there is nothing but a loopback interface, so that rules affect no other host."""
    return [name for _, name in socket.if_nameindex()] == ["lo"] and os.geteuid() == 0


class FailureSite:
    """Runs the cluster of a plan, without a supervisor that restarts killed processes."""

    def __init__(self, plan: ClusterPlan):
        self.plan = plan
        self._supervisor = Supervisor(plan, lambda _text: None)
        #: Functions that undo a failure, last first.
        self._undo_actions = contextlib.ExitStack()

    @contextlib.contextmanager
    def running(self) -> Iterator[FailureSite]:
        """Make and start the cluster; end it afterwards and remove its folder and mounts."""
        make_cluster(self.plan)
        if self.plan.xfs:
            mount_devices(self.plan)
        self._supervisor.start()
        try:
            yield self
        finally:
            try:
                self.repair()
            finally:
                self._supervisor.end()

    def proxy_workers(self) -> list[int]:
        """Return the worker processes of the proxy, by age."""
        pid = self._supervisor.pid("proxy")
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return sorted(int(text) for text in file.read().split())

    # failing

    def fail(self, failure: Failure, chosen: Sequence[Target]) -> None:
        """Make them fail; raises ``ConfigError`` and OSError."""
        for target in chosen:
            if failure.unit == "nodes":
                self._fail_node(failure.way, target)
            elif failure.unit == "disks":
                self._fail_disk(failure.way, target)
            else:
                self._fail_proxy(failure.way, target)

    def repair(self) -> None:
        """Undo what ``fail`` did; raises ``ConfigError`` and OSError."""
        self._undo_actions.close()

    def _names(self, node: int) -> list[str]:
        return [f"{kind}-{node}" for kind in _SERVERS]

    def _fail_node(self, way: str, target: Target) -> None:
        names = self._names(target.node)
        if way == "kill":
            for name in names:
                self._supervisor.kill(name)
            self._undo_actions.callback(self._supervisor.start_again, names)
        elif way == "stop":
            pids = [self._supervisor.pid(name) for name in names]
            for pid in pids:
                os.killpg(pid, signal.SIGSTOP)
                self._undo_actions.callback(os.killpg, pid, signal.SIGCONT)
        else:
            first = self.plan.base_port + PORTS_PER_NODE * target.node
            _block_ports(f"{first}-{first + PORTS_PER_NODE - 1}", self._undo_actions)

    def _fail_disk(self, way: str, target: Target) -> None:
        path = self.plan.devices(target.node) / self.plan.device(target.node, target.disk or 0)
        if way == "slow":
            pids = [self._supervisor.pid(name) for name in self._names(target.node)]
            _throttle_device(path, pids, self._undo_actions)
        elif way == "read-only":
            # As after a restart: a disk in use cannot be remounted read-only.
            names = self._names(target.node)
            for name in names:
                self._supervisor.kill(name)
            _run_command("mount", "-o", "remount,ro", str(path))
            self._undo_actions.callback(_run_command, "mount", "-o", "remount,rw", str(path))
            self._supervisor.start_again(names)
        elif way == "wipe":
            _replace_with_empty_directory(path)
        else:
            if way == "shutdown":
                _run_command("xfs_io", "-x", "-c", "shutdown -f", str(path))
            else:
                _run_command("umount", "--lazy", str(path))
            self._undo_actions.callback(self._mount_again, target, path)

    def _mount_again(self, target: Target, path: Path) -> None:
        """Mount a filesystem again once servers have closed the files of the old mount.

        Servers that do not let go of it are started again, as operators would.
        """
        if os.path.ismount(path):
            _run_command("umount", "--lazy", str(path))
        image = self.plan.root / IMAGES / f"{path.name}.img"
        deadline = time.monotonic() + _CLOSING_S
        while time.monotonic() < deadline:
            with contextlib.suppress(ConfigError):
                mount_image(image, path)
                return
            time.sleep(0.5)
        names = self._names(target.node)
        for name in names:
            self._supervisor.kill(name)
        mount_image(image, path)
        self._supervisor.start_again(names)

    def _fail_proxy(self, way: str, target: Target) -> None:
        pid = self.proxy_workers()[target.node]
        if way == "kill":
            # The others go on, and the proxy starts a new one.
            os.kill(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGSTOP)
            self._undo_actions.callback(os.kill, pid, signal.SIGCONT)


def _block_ports(ports: str, undoing: contextlib.ExitStack) -> None:
    """Drop everything that servers at these ports send, so that they are unresponsive to others."""
    if _run_command("ip", "rule", "show").startswith("0:"):
        # The table of local addresses is asked first; there must be room for rules before it.
        _run_command("ip", "rule", "add", "pref", "100", "table", "local")
        _run_command("ip", "rule", "del", "pref", "0")
    rule = ("pref", "50", "sport", ports, "blackhole")
    _run_command("ip", "rule", "add", *rule)
    undoing.callback(_run_command, "ip", "rule", "del", *rule)


def _throttle_device(path: Path, pids: Sequence[int], undoing: contextlib.ExitStack) -> None:
    device = file_device_number(path)
    group = _THROTTLE / group_name(os.getpid(), path.name)
    group.mkdir()
    undoing.callback(group.rmdir)
    for direction in ("read", "write"):
        (group / f"blkio.throttle.{direction}_iops_device").write_text(f"{device} {SLOW_IOPS}")
        (group / f"blkio.throttle.{direction}_bps_device").write_text(f"{device} {SLOW_BYTES_A_SECOND}")
    for pid in pids:
        (group / "cgroup.procs").write_text(str(pid))
        undoing.callback((_THROTTLE / "cgroup.procs").write_text, str(pid))


def _replace_with_empty_directory(path: Path) -> None:
    """Replace the disk's directory by an empty one."""
    for found in path.iterdir():
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink(missing_ok=True)


def _run_command(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
