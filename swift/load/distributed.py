"""Workers on other machines, through dask.distributed: each runs the same jobs in a process beside itself.

The machines need this package and its extras; what the load writes and reads goes straight between them and
the endpoint, only jobs and results pass the scheduler.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping

from distributed import Client, Event, as_completed, get_client, get_worker

from swift.load.measure import PhaseResult
from swift.load.share import LoadJob
from swift.load.workerpool import POLL_S, Summaries, WorkerPool, WorkerPoolFailed

CONNECT_S = 10
_TOPIC = "swift-load"


def run_job(found: Mapping[str, object], number: int, ending: str, topic: str) -> dict[str, object]:
    """Run one share on a worker; ``ending`` names an event that ends its phase."""
    crew, ended, worker = WorkerPool(1), Event(ending, client=get_client()), get_worker()

    def await_end() -> None:
        while not is_over.is_set():
            if ended.is_set():
                crew.end_phase()
            is_over.wait(POLL_S)

    is_over = threading.Event()
    watcher = threading.Thread(target=await_end, daemon=True)
    watcher.start()

    def watch(summaries: Summaries) -> None:
        if summaries:
            worker.log_event(topic, {"share": number, "summary": dict(summaries[0])})

    try:
        return crew.run([LoadJob.from_json(found)], watch).to_json()
    finally:
        is_over.set()
        crew.close()


class DistributedWorkers:
    """``Workers`` of a scheduler, one share for each of its workers."""

    def __init__(self, address: str):
        try:
            self._client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise WorkerPoolFailed(f"no scheduler at {address}: {str(error) or type(error).__name__}")
        self._names = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        self._wants_end = threading.Event()
        if not self._names:
            self._client.close()
            raise WorkerPoolFailed(f"the scheduler at {address} has no workers")

    def __len__(self) -> int:
        return len(self._names)

    def run(self, jobs: list[LoadJob], watch: Callable[[Summaries], None]) -> PhaseResult:
        """See ``Workers``."""
        self._wants_end.clear()
        name = f"{_TOPIC}-{secrets.token_hex(4)}"
        ended = Event(name, client=self._client)
        summaries: dict[int, Mapping[str, list[float]]] = {}

        def receive(event: tuple[float, Mapping[str, object]]) -> None:
            said = event[1]
            summary = said["summary"]
            if isinstance(summary, dict):
                summaries[int(str(said["share"]))] = summary

        self._client.subscribe_topic(name, receive)
        futures = [
            self._client.submit(
                run_job, job.to_json(), number, name, name, workers=[worker], pure=False, retries=0
            )
            for number, (job, worker) in enumerate(zip(jobs, self._names, strict=True))
        ]
        try:
            while not all(future.done() for future in futures):
                watch(dict(summaries))
                if self._wants_end.wait(POLL_S):
                    ended.set()
            return self._merged(futures)
        finally:
            self._client.unsubscribe_topic(name)

    @staticmethod
    def _merged(futures: list) -> PhaseResult:  # type: ignore[type-arg]
        total = PhaseResult()
        for future in as_completed(futures):
            try:
                total.merge(PhaseResult.from_json(future.result()))
            except Exception as error:
                raise WorkerPoolFailed(f"a worker failed: {error}")
        return total

    def end_phase(self) -> None:
        """See ``Workers``."""
        self._wants_end.set()

    def close(self) -> None:
        """See ``Workers``."""
        self._client.close()
