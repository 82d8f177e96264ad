"""Two clusters of the same plan, one served by this project, one by the installed peer.

Both get the same configuration text, rings and device layout from ``cli.aio``; only ports and the
programs that serve them differ. The peer is a black box: installed from PyPI in its own environment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from swift.aio.make import make_cluster, mount_devices, unmount_devices
from swift.aio.plan import IMAGES, ClusterPlan, new_plan
from swift.aio.supervisor import accepts_connections, cache_process
from swift.base.errors import ConfigError
from swift.config.declared import daemons
from swift.runtime.workers import die_with_parent
from tools.bench.peer import OwnEtc
from tools.bench.wrk import Load

PEER = "swift==2.38.3"
#: Name of our contestant whose small objects are packed.
PACKED = "packed"
#: How the devices of a cluster are served: ``node``, as operators do it, is one server with six filesystems
#: and two workers of each kind; ``per-device`` is four servers with a device each, on one filesystem.
LAYOUTS: dict[str, dict[str, object]] = {
    "node": {
        "nodes": 1,
        "disks": 6,
        "ec": "4+2",
        "storage_workers": 2,
        "xfs": True,
        "xfs_bytes": 4 << 30,
    },
    "per-device": {},
}


def install_peer(venv: Path, say: Callable[[str], None]) -> Path:
    """Return the peer's ``bin`` directory, installed at first use; raises ``ConfigError``."""
    commands = venv / "bin"
    if not (commands / "swift-proxy-server").exists():
        say(f"installing {PEER} in {venv}")
        for command in (
            [sys.executable, "-m", "venv", str(venv)],
            [str(commands / "pip"), "install", "-q", "setuptools<81", PEER],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ConfigError(f"{' '.join(command)} failed: {done.stderr.strip()[-400:]}")
    return commands


class Contestant:
    """A running cluster that can be measured."""

    #: False if it only does what other kinds of object store can do.
    speaks_swift = True

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        program: Callable[[str, str], list[str]],
        daemons: Callable[[ClusterPlan], dict[str, list[str]]] = lambda _plan: {},
    ):
        self._daemon_commands = daemons
        self.name = name
        self.plan = plan
        self._program = program
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.token = ""
        #: URL prefix → how many numbered objects a counting PUT wrote there.
        self._written: dict[str, int] = {}

    @property
    def host(self) -> str:
        """Return ``ip:port`` of the proxy."""
        return f"{self.plan.ip}:{self.plan.proxy_port}"

    def start(self) -> None:
        """Create the files, start all processes, wait until they respond, and get a token."""
        self.prepare()
        self.start_servers()

    def prepare(self) -> None:
        """Create the files and mount the devices."""
        make_cluster(self.plan)
        if self.plan.xfs:
            mount_devices(self.plan, reserved=True)

    def start_servers(self) -> None:
        """Start all processes, wait until they respond, and get a token; raises ``ConfigError``."""
        cache = cache_process(self.plan)
        commands = {cache.name: list(cache.args)}
        if cache.args[0] == "-m":
            commands[cache.name] = [sys.executable, *cache.args]
        for process in self.plan.servers():
            kind = process.name.partition("-")[0]
            conf = next(arg for arg in process.args if arg.endswith(".conf"))
            commands[process.name] = self._program(kind, conf)
        for name, command in commands.items():
            self._children[name] = self._run(name, command)
        deadline = time.monotonic() + 60
        for process in (cache, *self.plan.servers()):
            while process.port is not None and not accepts_connections(self.plan.ip, process.port):
                if time.monotonic() > deadline or self._children[process.name].poll() is not None:
                    raise ConfigError(f"{self.name}: {process.name} did not start; see {self.plan.logs}")
                time.sleep(0.05)
        self.token = self._new_token()

    def _run(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        # Both sides are called swift: a path of one must not shadow the package of the other.
        environment.pop("PYTHONPATH", None)
        with open(self.plan.logs / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, preexec_fn=die_with_parent
            )

    def start_daemons(self) -> None:
        """Start the daemons of all nodes."""
        for name, command in self._daemon_commands(self.plan).items():
            self._daemons[name] = self._run(name, command)

    def stop_daemons(self) -> None:
        """Stop the daemons."""
        daemons, self._daemons = self._daemons, {}
        _end(daemons)

    def _new_token(self) -> str:
        headers = {"X-Auth-User": self.plan.user, "X-Auth-Key": self.plan.key}
        request = urllib.request.Request(self.plan.auth_url, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.headers["X-Auth-Token"])

    def request(
        self, method: str, path: str, body: bytes = b"", more: Mapping[str, str] | None = None
    ) -> int:
        """Send a request with the token and ``more`` headers; return its status."""
        headers = {"X-Auth-Token": self.token, "Content-Type": "application/octet-stream", **(more or {})}
        url = f"http://{self.host}{path}"
        request = urllib.request.Request(url, data=body if body else None, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
            return int(answer.status)

    def note(self, load: Load, requests: int) -> None:
        """Record the number of objects that a load wrote."""
        if load.method == "PUT" and load.order == "counting":
            self._written[load.base] = requests

    def bounded(self, load: Load) -> Load:
        """Limit a DELETE load to the objects written before."""
        if load.method != "DELETE":
            return load
        return replace(load, count=max(2, self._written.get(load.base, 2)))

    def usage(self) -> dict[str, tuple[float, int]]:
        """Return server kind → (CPU seconds so far, largest peak memory of one process in bytes)."""
        totals: dict[str, tuple[float, int]] = {}
        for name, child in (*self._children.items(), *self._daemons.items()):
            kind = name.partition("-")[0]
            for pid in family_of(child.pid):
                cpu, peak = usage_of(pid)
                before = totals.get(kind, (0.0, 0))
                totals[kind] = (before[0] + cpu, max(before[1], peak))
        return totals

    def pids(self) -> dict[str, list[int]]:
        """Return the processes of each kind of server."""
        found: dict[str, list[int]] = {}
        for name, child in self._children.items():
            found.setdefault(name.partition("-")[0], []).extend(family_of(child.pid))
        return found

    def kill(self, name: str) -> None:
        """Kill a server, such as ``object-1``, and its workers."""
        child = self._children[name]
        for pid in reversed(family_of(child.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()

    def stop_servers(self) -> None:
        """Stop all servers and daemons."""
        self.stop_daemons()
        _end(self._children)
        self._children = {}

    def stop(self) -> None:
        """Stop all processes, unmount devices and remove stored data; logs and configuration stay."""
        self.stop_servers()
        if self.plan.xfs:
            unmount_devices(self.plan)
        for folder in (self.plan.root / IMAGES, *map(self.plan.devices, self.plan.node_numbers())):
            shutil.rmtree(folder, ignore_errors=True)


def _end(children: dict[str, subprocess.Popen[bytes]]) -> None:
    for child in children.values():
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 10
    for child in children.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(0.1, deadline - time.monotonic()))
        for pid in family_of(child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()


def family_of(pid: int) -> list[int]:
    """Return a process and its living children."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return [pid]
    return [pid, *(int(word) for word in text.split())]


def usage_of(pid: int) -> tuple[float, int]:
    """Return CPU seconds and peak memory in bytes of a process; zeros when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except (OSError, IndexError):
        return 0.0, 0
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return cpu, int(peak.split()[1]) * 1024


def _plans(root: Path, layout: str) -> tuple[ClusterPlan, ClusterPlan]:
    sizes = LAYOUTS[layout]
    return (
        new_plan(root / "ours", proxy_port=18080, base_port=18200, cache_port=18311, **sizes),
        new_plan(root / "theirs", proxy_port=19080, base_port=19200, cache_port=19311, **sizes),
    )


def peer_program(plan: ClusterPlan, commands: Path) -> Callable[[str, str], list[str]]:
    """Return a function from kind and configuration file to the command of a peer's server."""
    etc = OwnEtc(plan.root, plan.etc)
    return lambda kind, conf: etc.command(commands / f"swift-{kind}-server", conf, "-v")


def our_program(kind: str, conf: str) -> list[str]:
    """Return the command of a server of ours."""
    return [sys.executable, "-m", f"swift.cli.{kind}_server", conf, "-v"]


def packed_contestant(root: Path, layout: str) -> Contestant:
    """Return our contestant with the packed engine, below ``root`` in one of the ``LAYOUTS``."""
    plan = new_plan(
        root / PACKED, proxy_port=17080, base_port=17200, cache_port=17311, packed=True, **LAYOUTS[layout]
    )
    shutil.rmtree(plan.root, ignore_errors=True)
    return Contestant(PACKED, plan, our_program)


def make_contestants(root: Path, peer_commands: Path, layout: str) -> tuple[Contestant, Contestant]:
    """Return (ours, theirs), each with directories and ports below ``root``, in one of the ``LAYOUTS``."""
    ours, theirs = _plans(root, layout)
    for plan in (ours, theirs):
        shutil.rmtree(plan.root, ignore_errors=True)

    peer_etc = OwnEtc(theirs.root, theirs.etc)

    def our_daemons(plan: ClusterPlan) -> dict[str, list[str]]:
        return {process.name: [sys.executable, *process.args] for process in plan.daemons()}

    def their_daemons(plan: ClusterPlan) -> dict[str, list[str]]:
        return {
            f"daemons-{node}-{name}": peer_etc.command(
                peer_commands / f"swift-{name}",
                str(plan.etc / f"{daemon.server_type}-server" / f"{node}.conf"),
                "-v",
            )
            for node in plan.node_numbers()
            for name, daemon in daemons().items()
            if node == 1 or not daemon.once_per_cluster
        }

    return (
        Contestant("ours", ours, our_program, our_daemons),
        Contestant("theirs", theirs, peer_program(theirs, peer_commands), their_daemons),
    )
