"""This process's share of each rate of the cluster.

Each process publishes its usage by name at intervals and takes a share of each rate in proportion to its
demand. The shares of all processes add up to one, so that no more than the capacity is used. A small part of
each rate is divided evenly, so that a process that was idle can begin. Shares are late by one interval.

Without memcached each process takes an even share for the last known number of processes: a client that
reaches only one of them gets less then, never more. The computation of shares is pure.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swift.gateway.infocache import Cache
from swift.middleware.admission.amounts import NO_AMOUNTS, RATES, Amounts
from swift.middleware.admission.limiter import UNGUARANTEED_KEY, Usage
from swift.middleware.admission.rules import LIMIT_PREFIX

#: Fraction of each rate that is divided evenly.
EVENLY_DIVIDED = 0.04
#: Weight of a new measurement in the report, so that single peaks do not count.
_SMOOTHING_FACTOR = 0.5
#: Names in the report of one process: the busiest. All others are reported together.
NAMES_MAX = 200
#: A process has the same place in the list for so long, seconds.
REPORT_WINDOW_S = 15
#: More processes than a cluster has.
PROCESSES_MAX = 512
_PROCESSES_KEY = "admission/processes"
#: The key under which processes report what they delivered. No rule has this name.
DELIVERED_KEY = LIMIT_PREFIX + "@delivered"

#: name → [bytes/s, requests/s, open streams]
UsageReport = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class CapacityShares:
    """Shares that a process uses until the next exchange."""

    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    #: The part of names in no report.
    other_share: float = 1.0
    streams: Mapping[str, int] = field(default_factory=dict)
    processes: int = 1
    #: Bytes and requests a second that all processes delivered together.
    delivered: tuple[float, float] = (0.0, 0.0)


def even_shares(processes: int) -> CapacityShares:
    """Return the shares without an exchange."""
    return CapacityShares(other_share=1.0 / max(1, processes), processes=max(1, processes))


def compute_shares(mine: UsageReport, others: Sequence[UsageReport]) -> CapacityShares:
    """Return the shares of the process that reports ``mine``; the shares of all processes add up to one."""
    count = 1 + len(others)
    floor = EVENLY_DIVIDED / count
    parts: dict[tuple[str, str], float] = {}
    streams: defaultdict[str, int] = defaultdict(int)
    for report in others:
        for key, amounts in report.items():
            streams[key] += int(amounts[2])
    for key in {*mine, *(key for report in others for key in report)}:
        for index, resource in enumerate(RATES):
            own = mine[key][index] if key in mine else 0.0
            total = own + sum(report[key][index] for report in others if key in report)
            share = own / total if total > 0 else 1.0 / count
            parts[resource, key] = floor + (1.0 - EVENLY_DIVIDED) * share
    reports = [report[DELIVERED_KEY] for report in (mine, *others) if DELIVERED_KEY in report]
    delivered = sum(amounts[0] for amounts in reports), sum(amounts[1] for amounts in reports)
    return CapacityShares(parts, 1.0 / count, dict(streams), count, delivered)


def is_usage_report(value: object) -> bool:
    """Return True if a value from the cache is the report of a process."""
    return isinstance(value, dict) and all(
        isinstance(amounts, list)
        and len(amounts) == 3
        and all(isinstance(amount, (int, float)) and amount >= 0 for amount in amounts)
        for amounts in value.values()
    )


class ShareExchange:
    """Exchanges reports through memcached; raises ``MemcacheError`` when it is unreachable."""

    def __init__(self) -> None:
        #: Drawn at the first turn: a worker is forked after this was made, and must not have another's.
        self._id = ""
        self._window = -1
        self._slot = 0
        self._smoothed: UsageReport = {}
        #: Processes at the last exchange.
        self.processes = 1
        #: Usage of all processes, as of the last exchange.
        self.totals: UsageReport = {}

    def report_alone(
        self, uses: Mapping[str, Usage], guarantees: Mapping[str, Amounts], passed_s: float
    ) -> UsageReport:
        """Return this process's usage in the last ``passed_s`` seconds as if it were the only process."""
        self.totals = self.make_report(uses, guarantees, passed_s)
        return self.totals

    def exchange(
        self,
        cache: Cache,
        uses: Mapping[str, Usage],
        guarantees: Mapping[str, Amounts],
        passed_s: float,
        now: float,
    ) -> CapacityShares:
        """Publish the usage of the last ``passed_s`` seconds and return this process's new shares."""
        self._id = self._id or os.urandom(8).hex()
        mine = self.report_alone(uses, guarantees, passed_s)
        window = int(now // REPORT_WINDOW_S)
        if window != self._window:
            self._slot = cache.incr(f"{_PROCESSES_KEY}/{window}", ttl_s=4 * REPORT_WINDOW_S)
            self._window = window
        value = {"id": self._id, "usage": mine}
        cache.set(
            f"{_PROCESSES_KEY}/{window}/{self._slot}", value, ttl_s=2 * REPORT_WINDOW_S, raise_on_error=True
        )
        others = self._receive_reports(cache, window)
        found, self.totals = compute_shares(mine, others), _sum_reports((mine, *others))
        self.processes = found.processes
        return found

    def _receive_reports(self, cache: Cache, window: int) -> list[UsageReport]:
        """Return the reports of other processes; for a process without a report in this window, the one of
        the last window.
        """
        received: dict[str, UsageReport] = {}
        for number, known in ((window, self._slot), (window - 1, 0)):
            self._read_reports(cache, number, known, received)
        received.pop(self._id, None)
        return list(received.values())

    @staticmethod
    def _read_reports(cache: Cache, window: int, known: int, received: dict[str, UsageReport]) -> None:
        """Read the reports of a window.

        Slots are assigned in order, so the first two empty ones are behind the last report.
        """
        empty = 0
        for place in range(1, PROCESSES_MAX):
            if place > known and empty > 1:
                break
            value = cache.get(f"{_PROCESSES_KEY}/{window}/{place}", None, raise_on_error=True)
            if not isinstance(value, dict) or not is_usage_report(value.get("usage")):
                empty += 1
                continue
            empty = 0
            received.setdefault(str(value.get("id")), value["usage"])

    def make_report(
        self, uses: Mapping[str, Usage], guarantees: Mapping[str, Amounts], passed_s: float
    ) -> UsageReport:
        """Return this process's report: smoothed rates of the busiest names, and of everything that is not
        guaranteed.
        """
        rates: UsageReport = {UNGUARANTEED_KEY: [0.0, 0.0, 0.0]}
        for key, use in uses.items():
            rates[key] = [use.bytes / passed_s, use.requests / passed_s, float(max(0, use.streams))]
            if key.startswith(LIMIT_PREFIX):
                continue
            kept = guarantees.get(key, NO_AMOUNTS)
            for index, resource in enumerate(RATES):
                rates[UNGUARANTEED_KEY][index] += max(
                    0.0, rates[key][index] - (getattr(kept, resource) or 0.0)
                )
        smooth: UsageReport = {}
        for key in {*rates, *self._smoothed}:
            new, old = rates.get(key, _NO_USAGE), self._smoothed.get(key, _NO_USAGE)
            values = [
                a * _SMOOTHING_FACTOR + b * (1 - _SMOOTHING_FACTOR)
                for a, b in zip(new[:2], old[:2], strict=True)
            ]
            if max(values) > 1e-3 or new[2] or key == UNGUARANTEED_KEY:
                smooth[key] = [*values, new[2]]
        names = sorted(
            smooth, key=lambda key: (key != UNGUARANTEED_KEY and key not in guarantees, -smooth[key][0], key)
        )
        self._smoothed = {key: smooth[key] for key in names[:NAMES_MAX]}
        return self._smoothed


_NO_USAGE = (0.0, 0.0, 0.0)


def _sum_reports(reports: Sequence[UsageReport]) -> UsageReport:
    found: UsageReport = {}
    for report in reports:
        for key, amounts in report.items():
            found[key] = [a + b for a, b in zip(found.get(key, _NO_USAGE), amounts, strict=True)]
    return found
