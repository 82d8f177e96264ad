"""The processes of a run on this machine, and the run itself, phase after phase."""

from __future__ import annotations

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from swift.base.errors import SwiftError
from swift.bench.load.endpoint import Endpoint
from swift.bench.load.measure import PhaseResult
from swift.bench.load.servers import Servers, Usage
from swift.bench.load.share import Job
from swift.bench.load.workload import Phase, Workload

#: What workers say while a phase runs: worker → operation → [count, bytes, failed, p50, p99].
Summaries = Mapping[int, Mapping[str, list[float]]]
Watch = Callable[[Phase, Summaries, float], None]
POLL_S = 0.5


class CrewFailed(SwiftError):
    """A process that makes load has ended or cannot run its job."""


@dataclass
class Ran:
    """One phase of a run, measured."""

    phase: Phase
    result: PhaseResult
    #: What servers used meanwhile; None where none can be seen.
    usage: Usage | None = None


@dataclass
class Run:
    """A whole run."""

    workload: Workload
    phases: list[Ran] = field(default_factory=list)
    #: It was ended before its time.
    is_interrupted: bool = False
    #: Containers that were left, because that was asked for or removing failed.
    left: str = ""


class Crew:
    """Worker processes."""

    def __init__(self, processes: int):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._heard: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._children = [
            subprocess.Popen(
                [sys.executable, "-m", "swift.bench.load.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for _ in range(processes)
        ]
        for number, child in enumerate(self._children):
            threading.Thread(target=self._listen, args=(number, child), daemon=True).start()

    def __len__(self) -> int:
        return len(self._children)

    def _listen(self, number: int, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None, "it was asked for"
        for line in child.stdout:
            self._heard.put((number, line))
        self._heard.put((number, ""))

    def run(self, jobs: list[Job], watch: Callable[[Summaries], None]) -> PhaseResult:
        """Have each worker do its job; what all measured. Raises ``CrewFailed``."""
        for child, job in zip(self._children, jobs, strict=True):
            assert child.stdin is not None, "it was asked for"
            try:
                child.stdin.write(json.dumps(job.to_json()) + "\n")
                child.stdin.flush()
            except BrokenPipeError:
                raise CrewFailed("a process that makes load has ended")
        total, waiting = PhaseResult(), set(range(len(jobs)))
        summaries: dict[int, dict[str, list[float]]] = {}
        while waiting:
            try:
                number, line = self._heard.get(timeout=POLL_S)
            except queue.Empty:
                watch(summaries)
                continue
            if not line:
                raise CrewFailed("a process that makes load has ended")
            said = json.loads(line)
            if "progress" in said:
                summaries[number] = said["progress"]
            elif "done" in said:
                waiting.discard(number)
                total.merge(PhaseResult.from_json(said["done"]))
            else:
                raise CrewFailed(str(said.get("failed", line)))
        return total

    def end_phase(self) -> None:
        """Let the phase that runs come to its end now."""
        for child in self._children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End the processes."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        for child in self._children:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def run(
    workload: Workload,
    text: str,
    options: Mapping[str, float | int | None],
    endpoint: Endpoint,
    crew: Crew,
    servers: Servers,
    watch: Watch,
    *,
    keep: bool,
) -> Run:
    """All phases, in order. Ctrl-C ends the one that runs; then only what was made is removed.

    ``text`` and ``options`` are what the workload was made of, which workers read again. A second Ctrl-C ends
    everything at once.
    """
    done = Run(workload)
    prefix = f"load-{secrets.token_hex(4)}"
    done.left = prefix
    for number, phase in enumerate(workload.phases):
        is_removal = phase.kind == "cleanup"
        if (keep and is_removal) or (done.is_interrupted and not is_removal):
            continue
        done.phases.append(_run_phase(done, number, text, options, endpoint, crew, servers, watch, prefix))
        if is_removal and not done.phases[-1].result.of("cleanup").failed:
            done.left = ""
    return done


def _run_phase(
    done: Run,
    number: int,
    text: str,
    options: Mapping[str, float | int | None],
    endpoint: Endpoint,
    crew: Crew,
    servers: Servers,
    watch: Watch,
    prefix: str,
) -> Ran:
    workload = done.workload
    phase = workload.phases[number]
    jobs = [
        Job(workload, text, options, number, share, len(crew), endpoint, prefix) for share in range(len(crew))
    ]
    began = servers.look()
    interrupts = 0

    def interrupted(_number: int, _frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1:
            raise KeyboardInterrupt
        done.is_interrupted = True
        crew.end_phase()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        result = crew.run(jobs, lambda summaries: watch(phase, summaries, servers.clock() - began.at_s))
    finally:
        signal.signal(signal.SIGINT, before)
    return Ran(phase, result, servers.since(began))
