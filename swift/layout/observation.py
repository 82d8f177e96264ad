"""State of the cluster, as the controller sees it: what has arrived, what is away, how long clients wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from swift.layout.plan import Usage
from swift.operations.health.copies import RingCopies
from swift.operations.health.reader import ClusterState, HealthReader
from swift.operations.recon.client import Host, ReconClient, ReconReply, unique_hosts
from swift.policy.policy import Policies
from swift.ring.split import phase
from swift.ring.view import RingView

#: Servers that must report about a partition of which others do not.
_REPORTERS_MIN = 2


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
    #: Ring → ``ip/device`` of devices where the present step of a part power increase is done.
    relinked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Duration of a small request of a client; 0: it was not measured.
    latency_s: float = 0.0


class Observer(Protocol):
    """Looks at a cluster."""

    def look(self) -> Observation:
        """Return its state now. Raises ``SwiftError`` and OSError."""


class HealthObserver:
    """Looks through ``HealthReader``, which asks the servers for their recon pages."""

    def __init__(
        self,
        reader: HealthReader,
        client: ReconClient,
        policies: Policies,
        latency: LatencyProbe | None = None,
    ):
        self._reader = reader
        self._client = client
        self._policies = policies
        self._latency = latency

    def look(self) -> Observation:
        """Return its state now. Raises ``SwiftError`` and OSError."""
        latency_s = 0.0 if self._latency is None else self._latency.measure_s()
        state = self._reader.read()
        relinked = {}
        for policy in self._policies:
            for ring in state.rings:
                if ring.name == policy.ring_name and ring.view.next_part_power is not None:
                    replies = self._client.recon(unique_hosts(ring.view.devices), "relinker")
                    relinked[ring.name] = relinked_devices(replies, ring.view, policy.index)
        ordered = {policy.ring_name for policy in self._policies if policy.ec}
        return observation_of(state, relinked, latency_s, ordered)


def relinked_devices(replies: Sequence[ReconReply], view: RingView, policy: int) -> frozenset[str]:
    """Return the devices (``ip/device``) where the relinker has done the present step of a ring."""
    step = phase(view.part_power, view.next_part_power).value
    found = set()
    for reply in replies:
        devices = reply.content.get("devices") if isinstance(reply.content, dict) else None
        for device, facts in devices.items() if isinstance(devices, dict) else ():
            policies = facts.get("policies") if isinstance(facts, dict) else None
            said = policies.get(str(policy)) if isinstance(policies, dict) else None
            if not isinstance(said, dict) or not isinstance(said.get("stats"), dict):
                continue
            powers = said.get("part_power"), said.get("next_part_power")
            is_done = said.get("parts_done") == said.get("total_parts") and not said["stats"].get("errors")
            if is_done and said.get("step") == step and powers == (view.part_power, view.next_part_power):
                found.add(f"{reply.host.ip}/{device}")
    return frozenset(found)


class LatencyProbe(Protocol):
    """Measures how long a request of a client takes."""

    def measure_s(self) -> float:
        """Return the seconds, 0 if it cannot be measured."""


def unseen_servers(view: RingView, silent: Collection[Host], *, is_ordered: bool) -> frozenset[Host]:
    """Return the silent servers that have copies of which no other servers report enough.

    Servers of OpenStack Swift are silent: they report no copies. Replicators compare a partition with
    all its devices, and a step moves one copy at most: of two that report, one had its copy before.
    Reconstructors compare an archive with those next to it only, so in a ring whose copies have an order
    (``is_ordered``) all servers have to report.
    """
    devices = {
        device.id: Host(device.ip, device.port)
        for device in view.devices
        if device is not None and Host(device.ip, device.port) in silent
    }
    if is_ordered:
        return frozenset(devices.values())
    found: set[Host] = set()
    for part in range(view.partition_count) if devices else ():
        holders = view.primary_ids(part)
        quiet = [devices[holder] for holder in holders if holder in devices]
        if quiet and len(holders) - len(quiet) < _REPORTERS_MIN:
            found.update(quiet)
    return frozenset(found)


def progress_of(
    digest: str,
    copies: RingCopies,
    away: Collection[str],
    lagging: Sequence[str] = (),
    unseen: Collection[Host] | None = None,
) -> RingProgress:
    """Return what replicators report about a ring.

    ``lagging`` are servers that have another one, ``unseen`` those whose copies nothing is known of; None:
    all that report nothing.
    """
    missing = copies.missing - sum(count for label, count in copies.missing_on.items() if label in away)
    unknown = {*(copies.unknown if unseen is None else unseen), *copies.partial}
    waiting = (*copies.waiting, *map(str, sorted(unknown)), *lagging)
    elsewhere = not (missing or waiting or copies.is_splitting)
    # Copies that a silent server lacks are known by the passes that push to it: none of them may fail.
    if copies.unknown and copies.failed:
        elsewhere = False
    in_order = elsewhere and not (copies.missing or copies.misplaced)
    left = copies.misplaced + copies.missing
    return RingProgress(digest, in_order, elsewhere, copies.failed, left, waiting)


def observation_of(
    state: ClusterState,
    relinked: Mapping[str, frozenset[str]],
    latency_s: float = 0.0,
    ordered: Collection[str] = (),
) -> Observation:
    """Return the observation that follows from the health of a cluster; ``ordered``: see ``Controller``."""
    other = state.snapshot.other_rings
    rings = {}
    for ring in state.rings:
        name = f"{ring.name}.ring.gz"
        lagging = sorted(str(host) for host, names in other.items() if name in names)
        copies = state.copies[ring.name]
        unseen = unseen_servers(ring.view, copies.unknown, is_ordered=ring.name in ordered)
        rings[ring.name] = progress_of(ring.view.digest, copies, state.away, lagging, unseen)
    used = {}
    for host, entries in state.snapshot.usage.items():
        for entry in entries:
            size, of = float(str(entry["used"])), float(str(entry["size"]))
            used[f"{host.ip}/{entry['device']}"] = size, of
    return Observation(state.taken_s, rings, state.away, Usage(used), relinked, latency_s)
