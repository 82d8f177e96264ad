"""Resource usage of the servers on this machine: CPU, memory, disk, and energy.

They are the processes that listen at the endpoint, their ancestors as long as these are of the same kind,
and all below those; so the whole of a ``swift-aio`` is found from its proxy's port. Servers elsewhere are not
seen.
"""

from __future__ import annotations

import glob
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from swift.load.endpoint import LoadEndpoint

PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")
_LISTEN = "0A"
#: The parent of the kernel's threads; in a container another process may have this number.
_KERNEL = 2
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True)
class ResourceUsage:
    """Resources used between two measurements."""

    seconds: float
    cpu_s: float
    #: Resident memory at the end, bytes.
    memory: int
    disk_read: int
    disk_written: int
    processes: int
    #: Bytes that all interfaces of the machine received and sent, including the load's own traffic.
    network: int
    #: Joules of the processor packages, of everything on the machine; None where it cannot be read.
    joules: float | None


@dataclass(frozen=True)
class Measurement:
    """Counters at one moment."""

    at_s: float
    cpu_s: dict[int, float] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    memory: int = 0
    network: int = 0
    #: Microjoules by package; None where they cannot be read.
    energy: dict[str, int] | None = None


class Energy:
    """Energy used by the processor's packages, from the kernel's counters (RAPL)."""

    def __init__(self, folder: Path = POWERCAP):
        self._packages = sorted(folder.glob("intel-rapl:[0-9]*"))
        # Parts of a package, its cores for instance, have a second number.
        self._packages = [path for path in self._packages if path.name.count(":") == 1]

    def measure(self) -> dict[str, int] | None:
        """Return the microjoules of each package so far, which wrap to zero; None where that is unknown."""
        try:
            found = {path.name: int((path / "energy_uj").read_text()) for path in self._packages}
        except (OSError, ValueError):
            return None
        return found or None

    def usage_since(self, before: dict[str, int] | None, now: dict[str, int] | None) -> float | None:
        """Return the joules between two measurements."""
        if before is None or now is None:
            return None
        try:
            return sum(self._used(path, before[path.name], now[path.name]) for path in self._packages) / 1e6
        except (OSError, ValueError, KeyError):
            return None

    @staticmethod
    def _used(package: Path, before: int, now: int) -> int:
        if now >= before:
            return now - before
        return now - before + int((package / "max_energy_range_uj").read_text()) + 1

    @property
    def obstacle(self) -> str:
        """Why nothing is known; empty when something is."""
        if not self._packages:
            return "this machine shows no energy counters (RAPL)"
        return "" if self.measure() is not None else "the energy counters (RAPL) can be read by root only"


class LocalServers:
    """The servers behind an endpoint, those of this machine."""

    def __init__(self, endpoint: LoadEndpoint, energy: Energy | None = None):
        self._energy = energy or Energy()
        self._roots = _root_processes(endpoint.port) if _is_local_host(endpoint.host) else set()

    @staticmethod
    def clock() -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    @property
    def no_watts(self) -> str:
        """The reason why their usage is unknown; empty when it is known, or there are none."""
        return self._energy.obstacle if self._roots else ""

    def measure(self) -> Measurement:
        """Return the current counters of the servers."""
        if not self._roots:
            return Measurement(self.clock())
        cpu, read, written, memory = {}, {}, {}, 0
        for pid in with_descendants(self._roots):
            used = _cpu_seconds(pid)
            if used is None:
                continue
            cpu[pid] = used
            read[pid], written[pid] = _disk_bytes(pid)
            memory += _memory_bytes(pid)
        return Measurement(self.clock(), cpu, read, written, memory, _network(), self._energy.measure())

    def usage_since(self, before: Measurement) -> ResourceUsage | None:
        """Return the usage since a measurement; None where no server can be observed."""
        if not self._roots:
            return None
        now = self.measure()
        return ResourceUsage(
            now.at_s - before.at_s,
            sum(used - before.cpu_s.get(pid, 0.0) for pid, used in now.cpu_s.items()),
            now.memory,
            sum(size - before.read.get(pid, 0) for pid, size in now.read.items()),
            sum(size - before.written.get(pid, 0) for pid, size in now.written.items()),
            len(now.cpu_s),
            now.network - before.network,
            self._energy.usage_since(before.energy, now.energy),
        )


def _is_local_host(host: str) -> bool:
    try:
        address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]
        with socket.socket(socket.AF_INET6 if ":" in str(address) else socket.AF_INET) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _root_processes(port: int) -> set[int]:
    """Return the topmost processes of the same kind above those that listen at ``port``."""
    wanted = {f"socket:[{inode}]" for inode in _listening(port)}
    found = set()
    for link in glob.glob(f"{PROC}/[0-9]*/fd/*"):
        try:
            if os.readlink(link) in wanted:
                found.add(_topmost(int(link.split("/")[2])))
        except OSError:
            continue
    return found


def _listening(port: int) -> set[str]:
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                inodes.add(words[9])
    return inodes


def _topmost(pid: int) -> int:
    while (parent := _parent_pid(pid)) is not None and parent > 1 and "swift" in _command_line(parent):
        pid = parent
    return pid


def _read_stat(pid: int) -> list[str] | None:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _parent_pid(pid: int) -> int | None:
    stat = _read_stat(pid)
    return None if stat is None else int(stat[1])


def _command_line(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def all_commands() -> dict[int, str]:
    """Return the commands of all processes of this machine but this one, by pid."""
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit() and int(name) != os.getpid()]
    return {pid: command for pid in pids if (command := _command_line(pid))}


def with_descendants(roots: set[int]) -> set[int]:
    """Return these processes and all below them, but for those that make the load."""
    children: dict[int, list[int]] = {}
    for name in os.listdir(PROC):
        if name.isdigit() and (parent := _parent_pid(int(name))) is not None:
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    left = [root for root in roots if root != os.getpid()]
    while left:
        pid = left.pop()
        found.add(pid)
        left += [child for child in children.get(pid, []) if child not in found and child != os.getpid()]
    return found


def kernel_cpu_s() -> dict[int, float]:
    """Return the CPU time of each kernel thread in seconds: the kernel writes back pages for the servers."""
    is_seen = _process_name(_KERNEL) == "kthreadd"
    used = {pid: _cpu_seconds(pid) for pid in with_descendants({_KERNEL})} if is_seen else {}
    return {pid: seconds for pid, seconds in used.items() if seconds is not None}


def _process_name(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def _cpu_seconds(pid: int) -> float | None:
    stat = _read_stat(pid)
    return None if stat is None else (int(stat[11]) + int(stat[12])) / _TICK


def _memory_bytes(pid: int) -> int:
    try:
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _disk_bytes(pid: int) -> tuple[int, int]:
    try:
        lines = (PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return 0, 0
    counters = dict(line.split(": ") for line in lines)
    return int(counters["read_bytes"]), int(counters["write_bytes"])


def _network() -> int:
    try:
        lines = (PROC / "net" / "dev").read_text().splitlines()[2:]
    except OSError:
        return 0
    counters = [line.partition(":")[2].split() for line in lines]
    return sum(int(words[0]) + int(words[8]) for words in counters)
