"""A run: phase after phase, interrupted on request, and its result."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from swift.base.errors import SwiftError
from swift.load.endpoint import LoadEndpoint
from swift.load.measure import PhaseResult
from swift.load.servers import LocalServers, ResourceUsage
from swift.load.share import LoadJob
from swift.load.workerpool import LoadWorkers, Summaries
from swift.load.workload import Phase, Workload

#: Told now and then how far a phase is: its workers' summaries, and seconds since it began.
Watch = Callable[[Phase, Summaries, float], None]
#: Options of a workload that a command line may change.
Options = Mapping[str, float | int | None]


class RunFailed(SwiftError):
    """A run that has come to nothing."""


@dataclass
class PhaseRun:
    """One phase of a run, measured."""

    phase: Phase
    result: PhaseResult
    #: Resource usage of the servers; None where no process is visible.
    usage: ResourceUsage | None = None


@dataclass
class LoadRun:
    """A whole run."""

    workload: Workload
    phases: list[PhaseRun] = field(default_factory=list)
    #: It was ended before its time.
    is_interrupted: bool = False
    #: Prefix of the containers that were left, on request or after a failed removal.
    left: str = ""
    #: Why there are no watts of the servers that were looked at.
    no_watts: str = ""


@dataclass(frozen=True)
class RunPlan:
    """Workload and target of a run. Workers make the workload again from ``text`` and ``options``."""

    workload: Workload
    text: str
    options: Options
    endpoint: LoadEndpoint
    keep: bool = False


class LoadRunner:
    """Runs a plan. Ctrl-C ends the phase that runs, and what was made is removed; a second one ends all."""

    def __init__(self, plan: RunPlan, workers: LoadWorkers, servers: LocalServers, watch: Watch):
        self._plan = plan
        self._workers = workers
        self._servers = servers
        self._watch = watch
        prefix = f"load-{secrets.token_hex(4)}"
        self._done = LoadRun(plan.workload, left=prefix, no_watts=servers.no_watts)
        self._prefix = self._done.left
        self._interrupts = 0
        self._is_removing = False

    def run(self) -> LoadRun:
        """Run all phases, in order."""
        with self._interruptible():
            for number, phase in enumerate(self._plan.workload.phases):
                self._is_removing = phase.kind == "cleanup"
                if self._is_removing:
                    if not self._plan.keep:
                        self._remove_containers(number)
                elif not self._done.is_interrupted:
                    self._check_phase_result(phase, self._run_phase(number))
        return self._done

    def _check_phase_result(self, phase: Phase, result: PhaseResult) -> None:
        if phase.kind == "init" and not result.count and not self._done.is_interrupted:
            raise RunFailed(f"no container can be made: {', '.join(result.of('init').errors)}")

    def _remove_containers(self, number: int) -> None:
        result = self._run_phase(number)
        if not result.of("cleanup").failed:
            self._done.left = ""

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, self._handle_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _handle_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            raise KeyboardInterrupt
        self._done.is_interrupted = True
        if not self._is_removing:
            self._workers.end_phase()

    def _run_phase(self, number: int) -> PhaseResult:
        plan, shares = self._plan, len(self._workers)
        phase = plan.workload.phases[number]
        jobs = [
            LoadJob(
                plan.workload, plan.text, plan.options, number, share, shares, plan.endpoint, self._prefix
            )
            for share in range(shares)
        ]
        began = self._servers.measure()

        def watch(summaries: Summaries) -> None:
            self._watch(phase, summaries, self._servers.clock() - began.at_s)

        result = self._workers.run(jobs, watch)
        self._done.phases.append(PhaseRun(phase, result, self._servers.usage_since(began)))
        return result
