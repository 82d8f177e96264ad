"""The processes of a run on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from swift.base.errors import SwiftError
from swift.load.measure import PhaseResult
from swift.load.share import LoadJob

#: Progress reports of a phase: worker → operation → [count, bytes, failed, p50, p99].
Summaries = Mapping[int, Mapping[str, list[float]]]
POLL_S = 0.5


class WorkerPoolFailed(SwiftError):
    """A process that makes load has ended or cannot run its job."""


class LoadWorkers(Protocol):
    """Whatever runs the shares of a phase: processes here, or workers elsewhere."""

    def __len__(self) -> int:
        """Return the number of shares."""

    def run(self, jobs: list[LoadJob], watch: Callable[[Summaries], None]) -> PhaseResult:
        """Have each worker do its job; what all measured. Raises ``WorkerPoolFailed``."""

    def end_phase(self) -> None:
        """Let the phase that runs come to its end now; safe in a signal handler."""

    def close(self) -> None:
        """End the workers."""


class WorkerPool:
    """Worker processes."""

    def __init__(self, processes: int):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._messages: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._children = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "swift.load.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                # A terminal's Ctrl-C is for the process that gives the jobs.
                process_group=0,
            )
            for _ in range(processes)
        ]
        self._ready: set[int] = set()
        #: Number of the run: a process may still work on the job of a failed one.
        self._run = 0
        self._is_ending = False
        for number, child in enumerate(self._children):
            threading.Thread(target=self._read_messages, args=(number, child), daemon=True).start()

    def __len__(self) -> int:
        return len(self._children)

    def _read_messages(self, number: int, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None, "it was asked for"
        for line in child.stdout:
            self._messages.put((number, line))
        self._messages.put((number, ""))

    def run(self, jobs: list[LoadJob], watch: Callable[[Summaries], None]) -> PhaseResult:
        """See ``LoadWorkers``."""
        self._is_ending = False
        self._run += 1
        for child, job in zip(self._children, jobs, strict=True):
            self._send_job(child, job)
        total, waiting = PhaseResult(), set(range(len(jobs)))
        summaries: dict[int, dict[str, list[float]]] = {}
        while waiting:
            try:
                number, line = self._messages.get(timeout=POLL_S)
            except queue.Empty:
                line = "{}"
            if not line:
                raise WorkerPoolFailed("a process that makes load has ended")
            said = json.loads(line)
            if said.get("run", self._run) != self._run:
                continue
            if "progress" in said:
                summaries[number] = said["progress"]
            elif "done" in said:
                waiting.discard(number)
                total.merge(PhaseResult.from_json(said["done"]))
            elif "failed" in said:
                raise WorkerPoolFailed(str(said["failed"]))
            elif "ready" in said:
                self._ready.add(number)
            watch(summaries)
            self._send_end_phase()
        return total

    def _send_job(self, child: subprocess.Popen[str], job: LoadJob) -> None:
        assert child.stdin is not None, "it was asked for"
        try:
            child.stdin.write(json.dumps({"run": self._run, "job": job.to_json()}) + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            raise WorkerPoolFailed("a process that makes load has ended")

    def end_phase(self) -> None:
        """See ``LoadWorkers``."""
        self._is_ending = True

    def _send_end_phase(self) -> None:
        """Tell those that listen already; again and again: a job may just be on its way."""
        if self._is_ending:
            for number in self._ready:
                self._children[number].send_signal(signal.SIGTERM)

    def close(self) -> None:
        """See ``LoadWorkers``."""
        for child in self._children:
            # One that has ended already will not receive what is still to be sent to it.
            with contextlib.suppress(BrokenPipeError):
                if child.stdin is not None:
                    child.stdin.close()
        for child in self._children:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
