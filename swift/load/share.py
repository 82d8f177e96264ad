"""One process's share of a phase: its clients, each a green thread, and what they measured.

The same job, as JSON, can be run by any process on any machine: it holds the workload's text, the phase's
number, which share of how many it is, and the endpoint.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.load.api import Api, OperationFailed, make_api
from swift.load.endpoint import LoadEndpoint, transport_for
from swift.load.measure import PhaseResult
from swift.load.samples import ObjectPicker, OperationMix, SequentialPicker, Sizes, UniformPicker, ZipfPicker
from swift.load.workload import Phase, Workload, parse

#: Told now and then how far the share is: operations done so far.
Progress = Callable[[PhaseResult], None]
REPORT_S = 1.0
#: A client that waits looks so often whether it is to stop.
STOP_S = 0.25
#: New objects have numbers from here on, in each share's own range.
NEW_NUMBERS_FROM = 1 << 40
#: Checks of a listing that still has removed objects.
STALE_LISTINGS = 60


@dataclass(frozen=True)
class LoadJob:
    """A share of a phase."""

    workload: Workload
    #: Text of the workload.
    text: str
    options: Mapping[str, float | int | None]
    phase: int
    share: int
    shares: int
    endpoint: LoadEndpoint
    #: Prefix of all containers of the run.
    prefix: str

    def to_json(self) -> dict[str, object]:
        """Return the job for another process."""
        return {
            "text": self.text,
            "options": dict(self.options),
            "phase": self.phase,
            "share": self.share,
            "shares": self.shares,
            "endpoint": self.endpoint.to_json(),
            "prefix": self.prefix,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> LoadJob:
        """Return the inverse; raises KeyError, TypeError, ValueError and ``BadWorkload``."""
        endpoint, options = found["endpoint"], found["options"]
        if not isinstance(endpoint, dict) or not isinstance(options, dict):
            raise TypeError("endpoint and options are tables")
        text = str(found["text"])
        return cls(
            parse(text, "workload").with_options(**options),
            text,
            options,
            int(str(found["phase"])),
            int(str(found["share"])),
            int(str(found["shares"])),
            LoadEndpoint(**endpoint),
            str(found["prefix"]),
        )


def share_count(total: int, share: int, shares: int) -> int:
    """Return the number of things in one share of ``total``."""
    return total // shares + (share < total % shares)


class ObjectNumbers:
    """Maps object numbers to names over the containers of the run."""

    def __init__(self, workload: Workload, prefix: str):
        self._objects = workload.objects
        self._seed = workload.seed
        self.containers = [f"{prefix}-{number}" for number in range(workload.objects.containers)]

    def of(self, number: int) -> tuple[str, str]:
        """Return the container and name of an object number."""
        return self.containers[number % len(self.containers)], f"o{number:012d}"

    def size(self, number: int, sizes: Sizes | None = None) -> int:
        """Return the object's size, bytes, by other sizes than those of all objects if wanted."""
        return (sizes or self._objects.sizes).of(self._seed, number)


class LoadShare:
    """Runs a job."""

    def __init__(self, job: LoadJob, api: Api | None = None, *, stale_s: float = 1.0):
        """``stale_s`` is between two looks at a listing that still has what was removed."""
        self._job = job
        self._stale_s = stale_s
        self._workload = job.workload
        self._phase: Phase = job.workload.phases[job.phase]
        self._api = make_api(job.endpoint, transport_for(job.endpoint)) if api is None else api
        self._object_numbers = ObjectNumbers(job.workload, job.prefix)
        self._content = Content(job.workload.seed)
        self._result = PhaseResult()
        self._stop = False
        self._fresh = itertools.count(
            NEW_NUMBERS_FROM * (1 + job.share) + job.phase * (NEW_NUMBERS_FROM >> 8)
        )
        #: Objects that this share wrote besides the prepared ones, and may remove.
        self._own: list[int] = []
        self._began_s, self._until_s = 0.0, float("inf")
        #: Operations left to this share; None: no bound.
        self._left: int | None = None
        #: When operations are to begin; None: when a client is free.
        self._intended: Iterator[float] | None = None

    def stop(self) -> None:
        """End as soon as every client has its response."""
        self._stop = True

    def run(self, progress: Progress) -> PhaseResult:
        """Run the job and return its result; call ``progress`` every second."""
        cpu_s = time.process_time()
        #: When counting begins.
        self._began_s = time.monotonic() + self._phase.rampup
        reporter = green.spawn(self._report, progress)
        try:
            getattr(self, f"_run_{self._phase.kind}")()
        finally:
            reporter.kill()
        self._result.seconds = max(0.0, time.monotonic() - self._began_s)
        self._result.load_cpu_s = time.process_time() - cpu_s
        return self._result

    def _report(self, progress: Progress) -> None:
        while True:
            green.sleep(REPORT_S)
            progress(self._result)

    # phases

    def _run_init(self) -> None:
        policy = self._workload.objects.policy
        self._for_each(
            self._own_items(self._object_numbers.containers),
            lambda name: self._time_operation("init", lambda: self._make_container(name, policy)),
        )

    def _make_container(self, name: str, policy: str) -> int:
        self._api.make_container(name, policy)
        return 0

    def _run_prepare(self) -> None:
        numbers = range(self._job.share, self._workload.objects.count, self._job.shares)
        self._for_each(
            list(numbers), lambda number: self._time_operation("prepare", lambda: self._put_object(number))
        )

    def _run_cleanup(self) -> None:
        self._for_each(self._own_items(self._object_numbers.containers), self._empty)

    def _empty(self, container: str) -> None:
        """Remove all that is in a container, and the container."""
        known: list[str] = []
        looks = 0
        while not self._stop:
            try:
                names = self._api.listing(container, "")
            except OperationFailed as error:
                self._result.of("cleanup").errors[str(error)] += 1
                return
            if not names:
                break
            if names == known:
                # Listings may be late, or never tell the truth.
                looks += 1
                if looks == STALE_LISTINGS:
                    self._result.of("cleanup").errors["still listed after it was removed"] += len(names)
                    return
                self._sleep_until(time.monotonic() + self._stale_s)
                continue
            known, looks = names, 0
            before = self._result.of("cleanup").failed
            for name in names:
                self._time_operation("cleanup", lambda name=name: self._remove(container, name))  # type: ignore[misc]
            if self._result.of("cleanup").failed - before == len(names):
                return
        self._time_operation("cleanup", lambda: self._remove_container(container))

    def _remove(self, container: str, name: str) -> int:
        self._api.delete(container, name)
        return 0

    def _remove_container(self, container: str) -> int:
        self._api.remove_container(container)
        return 0

    def _own_items(self, things: list[str]) -> list[str]:
        return things[self._job.share :: self._job.shares]

    def _for_each(self, things: list[int] | list[str], do: Callable[..., None]) -> None:
        """Do it to each thing, as many at a time as the phase has clients here."""
        left = iter(things)

        def client() -> None:
            for thing in left:
                if self._stop:
                    return
                do(thing)

        green.gather([client] * max(1, share_count(self._phase.clients, self._job.share, self._job.shares)))

    # the main phase

    def _run_main(self) -> None:
        phase, job = self._phase, self._job
        clients = share_count(phase.clients, job.share, job.shares)
        if phase.operations is not None:
            self._left = share_count(phase.operations, job.share, job.shares)
        if phase.seconds is not None:
            self._until_s = self._began_s + phase.seconds
        if phase.rate is not None:
            self._intended = _arrivals(
                self._began_s - phase.rampup, phase.rate * clients / phase.clients, job
            )
        first = sum(share_count(phase.clients, other, job.shares) for other in range(job.share))
        green.gather([partial(self._run_client, first + number) for number in range(clients)])

    def _run_client(self, number: int) -> None:
        phase = self._phase
        chance = random.Random(f"{self._workload.seed}/{self._job.phase}/{number}")
        mix, names = OperationMix(phase.mix), self._names(number)
        while not self._stop and self._take_turn():
            begin_s = self._await_turn()
            if self._stop or begin_s >= self._until_s:
                return
            self._operation(mix.draw(chance), names, chance, begin_s)
            if phase.think_s:
                self._sleep_until(time.monotonic() + phase.think_s * chance.uniform(0.5, 1.5))

    def _sleep_until(self, moment_s: float) -> None:
        while not self._stop and (left_s := moment_s - time.monotonic()) > 0:
            green.sleep(min(left_s, STOP_S))

    def _take_turn(self) -> bool:
        if time.monotonic() >= self._until_s:
            return False
        if self._left is not None:
            if not self._left:
                return False
            self._left -= 1
        return True

    def _await_turn(self) -> float:
        """Return when this operation was to begin, which in an open loop may be before a client was free."""
        now_s = time.monotonic()
        if self._intended is None:
            return now_s
        intended_s = next(self._intended)
        if intended_s > now_s:
            self._sleep_until(min(intended_s, self._until_s))
        else:
            self._result.late += 1
            self._result.latest_s = max(self._result.latest_s, now_s - intended_s)
        return intended_s

    def _names(self, number: int) -> ObjectPicker | None:
        phase, objects = self._phase, self._workload.objects
        count = max(1, int(objects.count * phase.working_set))
        if phase.names == "zipf":
            return ZipfPicker(count, phase.zipf)
        if phase.names == "sequential":
            return SequentialPicker(count, number, phase.clients)
        return None if phase.names == "fresh" else UniformPicker(count)

    def _operation(
        self, kind: str, names: ObjectPicker | None, chance: random.Random, begin_s: float
    ) -> None:
        if kind == "delete" and not self._own:
            # Only what the workload wrote itself is removed, so that reads find what was prepared.
            kind = "put"
        if kind == "delete":
            number = self._own.pop(chance.randrange(len(self._own)))
        elif kind in ("put", "multipart") and (names is None or self._deletes):
            number = next(self._fresh)
        else:
            number = (names or UniformPicker(self._workload.objects.count)).draw(chance)
        self._time_operation(kind, lambda: self._run_operation(kind, number), begin_s)

    @property
    def _deletes(self) -> bool:
        return any(name == "delete" for name, _weight in self._phase.mix)

    def _run_operation(self, kind: str, number: int) -> int:
        """Run one operation; return the bytes it moved. Raises ``OperationFailed``."""
        container, name = self._object_numbers.of(number)
        if kind == "get":
            return self._api.get(container, name, self._checker(number))
        if kind == "put":
            return self._put_object(number)
        if kind == "multipart":
            return self._put_multipart(number)
        if kind == "list":
            self._api.listing(container, name)
        elif kind == "head":
            self._api.head(container, name)
        elif kind == "post":
            self._api.post(container, name)
        else:
            self._api.delete(container, name)
        return 0

    def _checker(self, number: int) -> Callable[[memoryview], bool]:
        return self._content.checker(number).feed if self._phase.verify else _accept_any

    def _put_object(self, number: int) -> int:
        (container, name), size = (
            self._object_numbers.of(number),
            self._object_numbers.size(number, self._phase.sizes),
        )
        self._api.put(container, name, size, lambda: self._content.pieces(number, size))
        if number >= NEW_NUMBERS_FROM:
            self._own.append(number)
        return size

    def _put_multipart(self, number: int) -> int:
        (container, name), size = (
            self._object_numbers.of(number),
            self._object_numbers.size(number, self._phase.sizes),
        )
        part = self._workload.objects.part_size
        sizes = [min(part, size - begin) for begin in range(0, size, part)] or [0]
        self._api.multipart(
            container, name, sizes, lambda at: lambda: self._content.pieces(number + at, sizes[at])
        )
        return size

    def _time_operation(self, kind: str, do: Callable[[], int], begin_s: float | None = None) -> None:
        if begin_s is None:
            begin_s = time.monotonic()
        size, error = 0, None
        try:
            size = do()
        except OperationFailed as failed:
            error = str(failed)
        end_s = time.monotonic()
        if end_s >= self._began_s:
            self._result.of(kind).add(end_s - self._began_s, end_s - begin_s, size, error)


def _accept_any(_data: memoryview) -> bool:
    return True


def _arrivals(began_s: float, rate: float, job: LoadJob) -> Iterator[float]:
    """Yield the intended beginnings of an open loop, with exponential gaps."""
    chance = random.Random(f"{job.workload.seed}/{job.phase}/{job.share}/arrivals")
    at_s = began_s
    while True:
        at_s += chance.expovariate(rate)
        yield at_s


# What objects contain: bytes that only this object has, made without work, and compared without hashing.


PIECE_BYTES = 1 << 20
#: Between the beginnings of two objects; odd, so that neighbours never look alike.
_STRIDE = 7919


class Content:
    """The bytes of all objects of a workload, cut out of one random piece that repeats."""

    def __init__(self, seed: int):
        piece = random.Random(f"content/{seed}").randbytes(PIECE_BYTES)
        self._twice = memoryview(piece + piece)

    def pieces(self, number: int, size: int) -> Iterator[memoryview]:
        """Yield the object ``number``, at most 1 MiB at a time."""
        begin = number * _STRIDE % PIECE_BYTES
        left = size
        while left > 0:
            take = min(left, PIECE_BYTES)
            yield self._twice[begin : begin + take]
            left -= take

    def checker(self, number: int) -> ContentChecker:
        """Return the checker of the body of object ``number``."""
        return ContentChecker(self._twice, number * _STRIDE % PIECE_BYTES)


class ContentChecker:
    """Compares an object's bytes as they come."""

    def __init__(self, twice: memoryview, begin: int):
        self._twice = twice
        self._begin = begin
        self.received = 0

    def feed(self, data: bytes | memoryview) -> bool:
        """Return True if these are the next bytes."""
        view, matches = memoryview(data), True
        while view and matches:
            at = (self._begin + self.received) % PIECE_BYTES
            take = min(len(view), PIECE_BYTES)
            matches = view[:take] == self._twice[at : at + take]
            self.received += take
            view = view[take:]
        return matches
