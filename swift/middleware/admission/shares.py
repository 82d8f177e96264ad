"""Many processes, one capacity: which part of each rate is this process's.

Each process tells the others, every now and then, what was asked of it under each name, and takes a part of
each rate that goes with its demand. The parts of all processes add up to one whatever they are, so that no
more is used than there is; a little of each is divided evenly, so that a process that has been idle can
begin. They are late by one interval: that is the error. When memcached is away, each takes an even part, for
as many processes as were there last: a client that reaches only one of them gets less then, and never more.
What is decided is pure.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swift.gateway.infocache import Cache
from swift.middleware.admission.amounts import NOTHING, RATES, Amounts
from swift.middleware.admission.limiter import SPARE, Use
from swift.middleware.admission.rules import LIMIT

#: What of each rate is divided evenly.
EVEN = 0.04
#: How much of a new report goes into what is told: single moments do not count.
_SMOOTH = 0.5
#: Names told by one process: those most asked for. All others are told together.
NAMES_MAX = 200
#: A process has the same place in the list for so long, seconds.
WINDOW_S = 15
#: More processes than a cluster has.
PROCESSES_MAX = 512
_ROSTER = "admission/processes"
#: The name under which processes tell what they delivered. No rule has it.
DELIVERED = LIMIT + "@delivered"

#: name → [bytes/s, requests/s, open streams]
Report = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares that a process uses until the next exchange."""

    parts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    #: The part of names in no report.
    other: float = 1.0
    streams: Mapping[str, int] = field(default_factory=dict)
    processes: int = 1
    #: Bytes and requests a second that all processes delivered together.
    delivered: tuple[float, float] = (0.0, 0.0)


def even(processes: int) -> Shares:
    """Without an exchange."""
    return Shares(other=1.0 / max(1, processes), processes=max(1, processes))


def shares_of(mine: Report, others: Sequence[Report]) -> Shares:
    """Return the parts of the one that tells ``mine`` among ``others``; those of all add up to one."""
    count = 1 + len(others)
    floor = EVEN / count
    parts: dict[tuple[str, str], float] = {}
    streams: defaultdict[str, int] = defaultdict(int)
    for told in others:
        for key, amounts in told.items():
            streams[key] += int(amounts[2])
    for key in {*mine, *(key for told in others for key in told)}:
        for index, resource in enumerate(RATES):
            own = mine[key][index] if key in mine else 0.0
            total = own + sum(told[key][index] for told in others if key in told)
            share = own / total if total > 0 else 1.0 / count
            parts[resource, key] = floor + (1.0 - EVEN) * share
    reports = [told[DELIVERED] for told in (mine, *others) if DELIVERED in told]
    delivered = sum(amounts[0] for amounts in reports), sum(amounts[1] for amounts in reports)
    return Shares(parts, 1.0 / count, dict(streams), count, delivered)


def is_report(value: object) -> bool:
    """Return True if a value from the cache is what a process tells."""
    return isinstance(value, dict) and all(
        isinstance(amounts, list)
        and len(amounts) == 3
        and all(isinstance(amount, (int, float)) and amount >= 0 for amount in amounts)
        for amounts in value.values()
    )


class ShareExchange:
    """Tells and hears, through memcached; raises ``MemcacheError`` when it is away."""

    def __init__(self) -> None:
        #: Drawn at the first turn: a worker is forked after this was made, and must not have another's.
        self._id = ""
        self._window = -1
        self._place = 0
        self._smooth: Report = {}
        #: How many there were at the last exchange.
        self.processes = 1
        #: What was asked for of all processes, as of the last exchange.
        self.totals: Report = {}

    def alone(self, uses: Mapping[str, Use], guarantees: Mapping[str, Amounts], passed_s: float) -> Report:
        """Return this process's usage in the last ``passed_s`` seconds as if it were the only process."""
        self.totals = self.digest(uses, guarantees, passed_s)
        return self.totals

    def turn(
        self,
        cache: Cache,
        uses: Mapping[str, Use],
        guarantees: Mapping[str, Amounts],
        passed_s: float,
        now: float,
    ) -> Shares:
        """Tell what was asked for in the last ``passed_s`` seconds; what part is ours now."""
        self._id = self._id or os.urandom(8).hex()
        mine = self.alone(uses, guarantees, passed_s)
        window = int(now // WINDOW_S)
        if window != self._window:
            self._place = cache.incr(f"{_ROSTER}/{window}", ttl_s=4 * WINDOW_S)
            self._window = window
        value = {"id": self._id, "told": mine}
        cache.set(f"{_ROSTER}/{window}/{self._place}", value, ttl_s=2 * WINDOW_S, raise_on_error=True)
        others = self._receive(cache, window)
        found, self.totals = shares_of(mine, others), _sum((mine, *others))
        self.processes = found.processes
        return found

    def _receive(self, cache: Cache, window: int) -> list[Report]:
        """Return the reports of other processes; for a process without a report in this window, the one of
        the last window.
        """
        heard: dict[str, Report] = {}
        for number, known in ((window, self._place), (window - 1, 0)):
            self._listen(cache, number, known, heard)
        heard.pop(self._id, None)
        return list(heard.values())

    @staticmethod
    def _listen(cache: Cache, window: int, known: int, heard: dict[str, Report]) -> None:
        """Places are given out in turn, so the first two that are empty are behind the last."""
        empty = 0
        for place in range(1, PROCESSES_MAX):
            if place > known and empty > 1:
                break
            value = cache.get(f"{_ROSTER}/{window}/{place}", None, raise_on_error=True)
            if not isinstance(value, dict) or not is_report(value.get("told")):
                empty += 1
                continue
            empty = 0
            heard.setdefault(str(value.get("id")), value["told"])

    def digest(self, uses: Mapping[str, Use], guarantees: Mapping[str, Amounts], passed_s: float) -> Report:
        """Return this process's report: smoothed rates of the busiest names, and of everything that is not
        guaranteed.
        """
        rates: Report = {SPARE: [0.0, 0.0, 0.0]}
        for key, use in uses.items():
            rates[key] = [use.bytes / passed_s, use.requests / passed_s, float(max(0, use.streams))]
            if key.startswith(LIMIT):
                continue
            kept = guarantees.get(key, NOTHING)
            for index, resource in enumerate(RATES):
                rates[SPARE][index] += max(0.0, rates[key][index] - (getattr(kept, resource) or 0.0))
        smooth: Report = {}
        for key in {*rates, *self._smooth}:
            new, old = rates.get(key, _NONE), self._smooth.get(key, _NONE)
            values = [a * _SMOOTH + b * (1 - _SMOOTH) for a, b in zip(new[:2], old[:2], strict=True)]
            if max(values) > 1e-3 or new[2] or key == SPARE:
                smooth[key] = [*values, new[2]]
        names = sorted(smooth, key=lambda key: (key != SPARE and key not in guarantees, -smooth[key][0], key))
        self._smooth = {key: smooth[key] for key in names[:NAMES_MAX]}
        return self._smooth


_NONE = (0.0, 0.0, 0.0)


def _sum(reports: Sequence[Report]) -> Report:
    found: Report = {}
    for told in reports:
        for key, amounts in told.items():
            found[key] = [a + b for a, b in zip(found.get(key, _NONE), amounts, strict=True)]
    return found
