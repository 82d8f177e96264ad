"""State of the cluster, as the controller sees it: what has arrived, what is away, how long clients wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from swift.layout.plan import Usage
from swift.operations.health.copies import RingCopies
from swift.operations.health.reader import ClusterState, HealthReader


@dataclass(frozen=True)
class RingProgress:
    """A ring: whether all copies are where it has them."""

    #: The MD5 of the ring file on this node, by which the reports are judged.
    digest: str
    #: All of them, as every replicator says after a pass by this ring: nothing is misplaced or missing.
    is_in_order: bool
    #: No copy is missing on devices that are there. What is misplaced waits for those that are away.
    is_in_order_elsewhere: bool
    #: Partitions and databases that could not be compared with other devices.
    failed: int = 0
    #: Copies that are still to be moved or made, as far as it is known.
    left: int = 0
    #: Devices and servers that have not reported by this ring.
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """The cluster at a moment, Unix seconds."""

    now_s: float
    rings: Mapping[str, RingProgress]
    #: ``ip/device`` of devices that are away.
    away: frozenset[str] = frozenset()
    usage: Usage = field(default_factory=Usage)
    #: How long a request of a client takes now; 0: it was not measured.
    latency_s: float = 0.0


class Observer(Protocol):
    """Looks at a cluster."""

    def look(self) -> Observation:
        """Return its state now. Raises ``SwiftError`` and OSError."""


class HealthObserver:
    """Looks through ``HealthReader``, which asks the servers for their recon pages."""

    def __init__(self, reader: HealthReader, latency: LatencyProbe | None = None):
        self._reader = reader
        self._latency = latency

    def look(self) -> Observation:
        """Return its state now. Raises ``SwiftError`` and OSError."""
        latency_s = 0.0 if self._latency is None else self._latency.measure_s()
        return observation_of(self._reader.read(), latency_s)


class LatencyProbe(Protocol):
    """Measures how long a request of a client takes."""

    def measure_s(self) -> float:
        """Return the seconds, 0 if it cannot be measured."""


def progress_of(
    digest: str, copies: RingCopies, away: Collection[str], lagging: Sequence[str] = ()
) -> RingProgress:
    """Return what replicators report about a ring; ``lagging`` are servers that have another one."""
    missing = copies.missing - sum(count for label, count in copies.missing_on.items() if label in away)
    waiting = (*copies.waiting, *map(str, sorted(copies.unknown | copies.partial)), *lagging)
    elsewhere = not (missing or waiting or copies.is_splitting)
    in_order = elsewhere and not (copies.missing or copies.misplaced)
    left = copies.misplaced + copies.missing
    return RingProgress(digest, in_order, elsewhere, copies.failed, left, waiting)


def observation_of(state: ClusterState, latency_s: float = 0.0) -> Observation:
    """Return the observation that follows from the health of a cluster."""
    other = state.snapshot.other_rings
    rings = {}
    for ring in state.rings:
        name = f"{ring.name}.ring.gz"
        lagging = sorted(str(host) for host, names in other.items() if name in names)
        rings[ring.name] = progress_of(ring.view.digest, state.copies[ring.name], state.away, lagging)
    used = {}
    for host, entries in state.snapshot.usage.items():
        for entry in entries:
            size, of = float(str(entry["used"])), float(str(entry["size"]))
            used[f"{host.ip}/{entry['device']}"] = size, of
    return Observation(state.taken_s, rings, state.away, Usage(used), latency_s)
