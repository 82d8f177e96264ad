"""The ground of the simulator: stations with queues, disks, and processes of SimPy that visit them.

A station serves in the order of arrival, so that its queue is a number: when it will be free. A visit is one
event. Times are seconds. Everything random comes from one seeded generator, so that a run can be repeated.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass

import simpy

Steps = Generator[simpy.Event, object, None]


class Station:
    """Servers (cores, a wire, a disk arm) with one queue, first come first served."""

    def __init__(self, env: simpy.Environment, name: str, servers: int = 1):
        self.env = env
        self.name = name
        self.servers = servers
        self.busy_s = 0.0
        self._free = [0.0] * servers

    def serve(self, service_s: float) -> simpy.Event:
        """Queue up for so much service; return the event of its end."""
        now = self.env.now
        start = self._free[0]
        if start < now:
            start = now
        end = start + service_s
        heapq.heapreplace(self._free, end)
        self.busy_s += service_s
        return self.env.timeout(end - now)

    def is_busy(self) -> bool:
        """Return True if a new request has to wait."""
        return self._free[0] > self.env.now

    def utilisation(self) -> float:
        """Return the share of the time until now in which it was busy, without the work still to do."""
        late = sum(max(0.0, free - self.env.now) for free in self._free)
        return (self.busy_s - late) / (self.servers * self.env.now) if self.env.now else 0.0


@dataclass(frozen=True, slots=True)
class DiskModel:
    """Means of an access: seek and rotational delay (both uniform between 0 and twice the mean), transfer."""

    seek_s: float
    rotation_s: float
    bytes_s: float

    def mean_s(self, size: float) -> float:
        """Return the mean time of one access."""
        return self.seek_s + self.rotation_s + size / self.bytes_s


class ModelDisk(Station):
    """A drive: seek, rotational delay, transfer; what goes on where the last access ended only transfers."""

    def __init__(self, env: simpy.Environment, name: str, model: DiskModel, rng: random.Random):
        super().__init__(env, name)
        self.model = model
        self._random = rng.random
        self._last: object = None

    def access(self, size: float, stream: object = None) -> simpy.Event:
        """Read or write; ``stream`` names what lies in one piece on the disk."""
        model = self.model
        service = size / model.bytes_s
        if stream is None or stream != self._last:
            service += 2 * (model.seek_s * self._random() + model.rotation_s * self._random())
        self._last = stream
        return self.serve(service)


@dataclass(slots=True)
class LatencyTally:
    """Latencies in seconds of what began after the warm-up, and how many ended after it."""

    latencies: list[float]
    ended: int = 0

    @property
    def mean_s(self) -> float:
        """Mean latency; 0 when nothing ended."""
        return sum(self.latencies) / len(self.latencies) if self.latencies else 0.0

    def percentile_s(self, share: float) -> float:
        """Return the latency that this share of all stayed below."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def closed_loop(
    env: simpy.Environment, clients: int, request: Callable[[], Steps], tally: LatencyTally, warm_up_s: float
) -> None:
    """Start clients that each send the next request after the response."""

    def client() -> Steps:
        while True:
            began = env.now
            yield env.process(request())
            tally.ended += env.now >= warm_up_s
            if began >= warm_up_s:
                tally.latencies.append(env.now - began)

    for _ in range(clients):
        env.process(client())


def open_loop(
    env: simpy.Environment,
    rate: float,
    request: Callable[[], Steps],
    tally: LatencyTally,
    warm_up_s: float,
    rng: random.Random,
) -> None:
    """Start requests that arrive at random, so many a second, however long the others take."""

    def one() -> Steps:
        began = env.now
        yield from request()
        if began >= warm_up_s:
            tally.latencies.append(env.now - began)

    def arrivals() -> Steps:
        while True:
            yield env.timeout(rng.expovariate(rate))
            env.process(one())

    env.process(arrivals())
