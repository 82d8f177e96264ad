"""Running processes, as /proc tells: their command lines, ages, parents and sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Where the modules of commands are.
_OURS = "swift.cli."
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
    words: tuple[str, ...]
    age_s: float

    @property
    def command(self) -> str:
        """The command line in one piece."""
        return " ".join(self.words)


def process(pid: int, proc: str = _PROC) -> RunningProcess | None:
    """A process by its pid; None when there is none, or it has ended and only its parent has not noticed."""
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
    """All processes, from the lowest pid on."""
    for name in sorted((name for name in os.listdir(proc) if name.isdigit()), key=int):
        found = process(int(name), proc)
        if found is not None:
            yield found


def program_of(running: RunningProcess) -> str:
    """The name of the command that runs: of the script that an interpreter runs, else of the file.

    A module of ours that is run with ``-m`` counts as its command, any other one has its own name.
    """
    words = running.words
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
        if not module.startswith(_OURS):
            return module
        return "swift-" + module.removeprefix(_OURS).replace("_", "-")
    return os.path.basename(rest[0]) if rest and rest[0] != "-c" else ""


def wait_for_end(pid: int, timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait until a process is gone; whether it is."""
    deadline = time.monotonic() + timeout_s
    while process(pid) is not None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
    return True
