"""Running processes from /proc, and processes of a service from its pid files.

A pid file whose process is gone, or is another program's by now, is removed when it is seen.
spec: cli-and-config.md §8.1
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.base.errors import SwiftError
from swift.runtime.notify import READY, RELOAD_REFUSED, reload_address
from swift.runtime.service.services import Service, config_paths, pid_file, pid_files

#: Directory of the commands' modules.
_COMMAND_PREFIX = "swift.cli."
#: Options of the interpreter that a word of their own follows.
_WITH_VALUE = frozenset(("-W", "-X", "--check-hash-based-pycs"))
_PROC = "/proc"


@dataclass(frozen=True)
class RunningProcess:
    """One process."""

    pid: int
    parent: int
    session: int
    #: The words of its command line.
    arguments: tuple[str, ...]
    age_s: float

    @property
    def command(self) -> str:
        """The command line in one piece."""
        return " ".join(self.arguments)


def process(pid: int, proc: str = _PROC) -> RunningProcess | None:
    """Return a process by its pid.

    None when there is none, or it has ended and only its parent has not noticed.
    """
    try:
        words = Path(proc, str(pid), "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        # The name in brackets may hold anything; what follows it are numbers.
        values = Path(proc, str(pid), "stat").read_text().rpartition(")")[2].split()
        up_s = float(Path(proc, "uptime").read_text().split()[0])
    except (OSError, ValueError):
        return None
    if values[0] in "ZX":
        return None
    started_s = int(values[19]) / os.sysconf("SC_CLK_TCK")
    return RunningProcess(pid, int(values[1]), int(values[3]), tuple(words), max(0.0, up_s - started_s))


def processes(proc: str = _PROC) -> Iterator[RunningProcess]:
    """Yield all processes, from the lowest pid on."""
    for name in sorted((name for name in os.listdir(proc) if name.isdigit()), key=int):
        found = process(int(name), proc)
        if found is not None:
            yield found


def shares_mounts(pid: int, proc: str = _PROC) -> bool:
    """Return True if a process sees the same files as this one; also if that is not known."""
    try:
        return os.readlink(f"{proc}/{pid}/ns/mnt") == os.readlink(f"{proc}/self/ns/mnt")
    except PermissionError:
        return True
    except OSError:
        return False


def program_name(running: RunningProcess) -> str:
    """Return the name of the command that runs: of the script that an interpreter runs, else of the file.

    A module of ours that is run with ``-m`` counts as its command, any other one has its own name.
    """
    words = running.arguments
    if not words:
        return ""
    if not os.path.basename(words[0]).startswith("python"):
        return os.path.basename(words[0])
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        if rest.pop(0) in _WITH_VALUE and rest:
            rest.pop(0)
    if rest[:1] == ["-m"]:
        module = rest[1] if len(rest) > 1 else ""
        if not module.startswith(_COMMAND_PREFIX):
            return module
        command = module.removeprefix(_COMMAND_PREFIX).replace("_", "-")
        return f"swift-{rest[2] if command == 'daemon' and len(rest) > 2 else command}"
    return os.path.basename(rest[0]) if rest and rest[0] != "-c" else ""


def wait_for_end(pid: int, timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait until a process is gone; return True if it is."""
    deadline = time.monotonic() + timeout_s
    while process(pid) is not None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
    return True


#: A server reports within this time that it was reloaded, or the reload failed.
RELOAD_TIMEOUT_S = 60.0

Print = Callable[[str], None]


@dataclass(frozen=True)
class ServiceProcess:
    """A process of a service."""

    service: Service
    pid: int
    config: str
    pid_file: str

    def remove_pid_file(self) -> None:
        """Remove the pid file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.pid_file)

    def __str__(self) -> str:
        return f"{self.service} ({self.pid})"


def running_processes(
    service: Service, run_dir: str, swift_dir: str, say: Print | None = None
) -> list[ServiceProcess]:
    """Return the processes of a service; ``say`` gets messages about stale pid files."""
    configs = {pid_file(service, path, run_dir, swift_dir): path for path in config_paths(service, swift_dir)}
    found = []
    for path in pid_files(service, run_dir):
        try:
            pid = int(Path(path).read_text())
        except (OSError, ValueError):
            _remove(path)
            print(f"Removing pid file {path} with invalid pid")
            continue
        if not is_service_process(service, pid):
            if say is not None:
                gone = process(pid) is None
                say(
                    f"Removing stale pid file {path}"
                    if gone
                    else f"Removing pid file {path} with wrong pid {pid}"
                )
            _remove(path)
            continue
        found.append(ServiceProcess(service, pid, configs.get(path, path), path))
    return found


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def is_service_process(service: Service, pid: int) -> bool:
    """Return True if a pid is that of a process of the service."""
    if pid <= 1:
        return False
    running = process(pid)
    return running is not None and (
        program_name(running) == service.program or service.program in running.command
    )


class Signaller:
    """Sends signals to running services and waits for what they do."""

    def __init__(self, say: Print, *, wait_s: float, kills: bool, verbose: bool):
        self._say = say
        self._wait_s = wait_s
        self._kills = kills
        self._verbose = verbose

    def _signal(self, each: ServiceProcess, number: int) -> bool:
        self._say(f"Signal {each.service}  pid: {each.pid}  signal: {number}")
        try:
            os.kill(each.pid, number)
        except ProcessLookupError:
            self._say(f"No {each.service} running")
            return False
        except PermissionError:
            self._say(f"No permission to signal PID {each.pid}")
            return False
        return True

    def end(self, running: Sequence[ServiceProcess], *, graceful: bool) -> list[ServiceProcess]:
        """Signal processes to end: servers by SIGHUP if ``graceful``, all others by SIGTERM; return them."""
        return [
            each
            for each in running
            if self._signal(each, signal.SIGHUP if graceful and each.service.is_server else signal.SIGTERM)
        ]

    def wait_for_ends(self, told: Sequence[ServiceProcess]) -> int:
        """Wait until processes have ended, for ``wait_s`` in all; return the number that still run."""
        left = 0
        deadline_s = self._wait_s
        for each in told:
            if wait_for_end(each.pid, deadline_s):
                each.remove_pid_file()
                self._say(f"{each} appears to have stopped")
                continue
            deadline_s = 0.0
            if self._kills:
                self._say(f"Waited {self._wait_s:g} seconds for {each} to die; killing")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(each.pid, signal.SIGKILL)
                if wait_for_end(each.pid, 5.0):
                    each.remove_pid_file()
                    continue
            else:
                self._say(f"Waited {self._wait_s:g} seconds for {each.service} to die; giving up")
            left += 1
        return left

    def renew(self, running: Sequence[ServiceProcess], *, wait: bool) -> int:
        """Reload servers seamlessly; return the number of servers that were not ready again in time."""
        failed = 0
        for each in running:
            with ReadySocket(each.pid) as word:
                if not self._signal(each, signal.SIGUSR1) or wait and not self._is_renewed(each, word):
                    failed += 1
        return failed

    def _is_renewed(self, each: ServiceProcess, word: ReadySocket) -> bool:
        try:
            if word.wait(RELOAD_TIMEOUT_S):
                return True
            self._say(f"{each} did not reload within {RELOAD_TIMEOUT_S:g} seconds; see its log")
        except ReloadRefused as refused:
            self._say(f"{each} was not reloaded: {refused}")
        return False


class ReloadRefused(SwiftError):
    """A process refused to reload and continues as before; the text has the reason."""


class ReadySocket:
    """Listens for the ready message of a process, as systemd does."""

    def __init__(self, pid: int):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(reload_address(pid))

    def __enter__(self) -> ReadySocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def wait(self, timeout_s: float | None, tell: Print = lambda _text: None) -> bool:
        """Return True if it was ready in time; ``tell`` gets every message. Raises ``ReloadRefused``."""
        self._socket.settimeout(timeout_s)
        while True:
            try:
                message = self._socket.recv(4096).decode("utf-8", "replace")
            except TimeoutError:
                return False
            tell(message)
            lines = message.split("\n")
            if READY in lines:
                return True
            for line in lines:
                if line.startswith(RELOAD_REFUSED):
                    raise ReloadRefused(line.removeprefix(RELOAD_REFUSED))
