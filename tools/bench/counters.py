"""System calls, futexes and context switches of a request by kind of server, counted by ``perf stat``."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from swift.base.errors import ConfigError

EVENTS = {
    "system calls": "raw_syscalls:sys_enter",
    "futexes": "syscalls:sys_enter_futex",
    "context switches": "context-switches",
}
#: perf opens its events in this time; what the servers do before is not counted.
_ATTACH_S = 0.5


@dataclass
class Counters:
    """Event → how often it happened, by kind of server."""

    counts: dict[str, dict[str, float]] = field(default_factory=dict)

    def per_request(self, requests: int) -> dict[str, dict[str, float]]:
        """Return the events of one request by kind of server."""
        return {
            kind: {event: count / max(1, requests) for event, count in events.items()}
            for kind, events in self.counts.items()
        }


def check_perf() -> None:
    """Raise ``ConfigError`` where perf cannot count system calls."""
    if shutil.which("perf") is None:
        raise ConfigError("perf is missing; install the system package linux-perf")
    done = subprocess.run(
        ["perf", "stat", "-x", ",", "-e", ",".join(EVENTS.values()), "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigError(f"perf cannot count system calls here: {done.stderr.strip()[-200:]}")


@contextmanager
def counting(pids: Mapping[str, Sequence[int]]) -> Iterator[Counters]:
    """Count the events of processes (kind of server → pids) while the block runs; filled at its end."""
    found = Counters()
    with ExitStack() as stack:
        running = {kind: stack.enter_context(_perf(some)) for kind, some in pids.items() if some}
        time.sleep(_ATTACH_S)
        yield found
        for kind, process in running.items():
            process.send_signal(signal.SIGINT)
            found.counts[kind] = _parse(process.communicate(timeout=30)[1])


@contextmanager
def _perf(pids: Sequence[int]) -> Iterator[subprocess.Popen[str]]:
    command = ["perf", "stat", "-x", ",", "-e", ",".join(EVENTS.values()), "-p", ",".join(map(str, pids))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _parse(text: str) -> dict[str, float]:
    """Return the counts of perf's lines, ``COUNT,UNIT,EVENT,...``."""
    names = {event: name for name, event in EVENTS.items()}
    counts = {}
    for line in text.splitlines():
        count, _unit, event, *_rest = (*line.split(","), "", "", "")
        if event in names and count.isdigit():
            counts[names[event]] = float(count)
    return counts
