"""Reads the health of a cluster: its rings, the servers' responses, and the verdict on both.

``swift-health`` and the console share it. What may wait for a disk, or takes long for large rings, runs
through ``run``: the console passes a thread pool, so that its requests go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.base.calls import Run, run_inline
from swift.base.errors import SwiftError
from swift.operations.health.copies import RingCopies, ring_copies
from swift.operations.health.evaluate import (
    ClusterSnapshot,
    Health,
    RingHealth,
    absence_test,
    count_ring_copies,
    evaluate,
    uses_mount_points,
)
from swift.operations.health.forecast import (
    CRITICAL_DAYS,
    WARNING_DAYS,
    CapacityForecast,
    UsageHistory,
    UsageSample,
    forecast,
    zone_usage,
)
from swift.operations.health.identities import IdentityWatch
from swift.operations.health.snapshot import WatchedRing, load_rings, take_snapshot
from swift.operations.recon.client import Host, ReconClient
from swift.policy.policy import Policies


@dataclass(frozen=True)
class CapacityTerms:
    """The history file, empty for none, and the days below which a forecast is a problem."""

    history: str = ""
    warning_days: float = WARNING_DAYS
    critical_days: float = CRITICAL_DAYS


@dataclass(frozen=True)
class ClusterState:
    """The cluster at a moment, Unix seconds."""

    taken_s: float
    rings: Sequence[WatchedRing]
    snapshot: ClusterSnapshot
    health: Health
    #: By the names of rings.
    copies: Mapping[str, RingCopies]
    #: ``ip/device`` of the devices that are away.
    away: frozenset[str]


class HealthReader:
    """Reads the health again and again; a ring file is loaded again when it has changed."""

    def __init__(
        self,
        swift_dir: str,
        policies: Policies,
        client: ReconClient,
        terms: CapacityTerms | None = None,
        *,
        identities: IdentityWatch | None = None,
        run: Run = run_inline,
    ):
        self._swift_dir = swift_dir
        self._policies = policies
        self._client = client
        self._terms = terms or CapacityTerms()
        self._identities = identities
        self._run = run
        self._rings: Sequence[WatchedRing] = ()

    def read(self) -> ClusterState:
        """Return the state of the cluster now. Raises ``SwiftError`` and OSError."""
        self._rings = self._run(load_rings, self._swift_dir, self._policies, self._rings)
        snapshot = take_snapshot(self._rings, self._client)
        if self._identities is not None:
            snapshot.identities = self._identities.look()
        return self._run(self._judge, self._rings, snapshot)

    def _judge(self, rings: Sequence[WatchedRing], snapshot: ClusterSnapshot) -> ClusterState:
        check_mounts, now_s = uses_mount_points(snapshot), time.time()
        states: list[RingHealth] = []
        copies: list[RingCopies] = []
        devices: dict[str, bool] = {}
        for ring in rings:
            is_away = absence_test(snapshot, ring.server_type, check_mounts=check_mounts)
            states.append(count_ring_copies(ring.view, ring.name, ring.noun, is_away, needed=ring.needed))
            reports = snapshot.copies_of(ring.server_type)
            copies.append(ring_copies(ring.view, ring.name, reports, is_away, now_s))
            for device in ring.devices:
                name = f"{device.ip}/{device.device}"
                gone = is_away(Host(device.ip, device.port), device.device)
                devices[name] = devices.get(name, False) or gone
        names = {policy.ring_name: policy.name for policy in self._policies}
        capacity = _read_capacity(self._terms, rings, names, snapshot, now_s)
        health = evaluate(states, devices, snapshot, now_s, copies=copies, capacity=capacity)
        away = frozenset(name for name, gone in devices.items() if gone)
        return ClusterState(now_s, rings, snapshot, health, {each.name: each for each in copies}, away)

    def __repr__(self) -> str:
        return f"HealthReader({self._swift_dir!r})"


def _read_capacity(
    terms: CapacityTerms,
    rings: Sequence[WatchedRing],
    policies: Mapping[str, str],
    snapshot: ClusterSnapshot,
    now_s: float,
) -> CapacityForecast:
    """Return the forecast by the history, to which the present usage is added; none without a history."""
    limits = terms.warning_days, terms.critical_days
    if not terms.history:
        return CapacityForecast((), *limits)
    usage = {
        (ring.name, zone): found
        for ring in rings
        if ring.server_type == "object"
        for zone, found in zone_usage(ring.view.devices, snapshot.usage).items()
    }
    sample, error = UsageSample(now_s, usage), ""
    try:
        samples = UsageHistory(terms.history).record(sample)
    except (SwiftError, OSError) as failed:
        samples, error = [sample], str(failed)
    return CapacityForecast(forecast(samples, policies), *limits, error, samples)
