"""Simulation of an overloaded cluster, with and without admission.

See doc/explanation/admission.md.

The gate is the filter's own. Devices serve pieces of all streams in turn, none of which is faster than a
connection; clients come whatever happens, and give up after a while. What was sent to those until then is
lost: goodput is what came whole. One client has a reservation.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import simpy

from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.limiter import AdmittedRequest, Limiter, ReservedClass
from swift.middleware.admission.rules import AdmissionRules, RequestProperties
from swift.plan.engine import LatencyTally, Station, Steps
from swift.plan.parameters import Parameter, parse_counts, parse_parameters
from swift.plan.report import format_table

MB = 1e6
LOADS_MAX = 1000
DEFAULT_LOADS = "50,75,90,100,110,125,150,200"
RESERVED, TICKET = "reserved", "ticket:reserved"
#: Shares of two clients in the rest of the load.
OTHER_CLIENTS = {"AUTH_a": 0.6, "AUTH_b": 0.4}

PARAMETERS = {
    "devices": Parameter(5, 1, 1000, "devices"),
    "rate_mb": Parameter(20, 0.1, 1e5, "what a device delivers, MB/s"),
    "configured": Parameter(0.92, 0.1, 2, "the configured capacity, as a part of the devices' capacity"),
    "size_mb": Parameter(2, 0.01, 1e5, "size of an object"),
    "piece_kb": Parameter(64, 1, 1e5, "what a device delivers at a time"),
    "connection_mb": Parameter(5, 0.01, 1e5, "what a connection carries, MB/s"),
    "patience_s": Parameter(4, 0.1, 3600, "after which a client gives up"),
    "reserved": Parameter(0.3, 0, 0.8, "what a reservation has of the devices' rate"),
    "burst_s": Parameter(0.5, 0.05, 60, "burst_seconds of the filter"),
    "seconds": Parameter(60, 1, 3600, "simulated seconds of each load, after a sixth to warm up"),
}


@dataclass(frozen=True, slots=True)
class OverloadSetting:
    """Parameters of the simulation, by the names of ``PARAMETERS``."""

    loads: tuple[int, ...]
    numbers: dict[str, float]
    seed: int

    @property
    def capacity(self) -> float:
        """Bytes a second that all devices deliver."""
        return self.numbers["devices"] * self.numbers["rate_mb"] * MB


@dataclass(frozen=True, slots=True)
class OverloadOutcome:
    """Result of a load; bytes a second, seconds."""

    load: int
    is_admitting: bool
    goodput: float
    reserved: float
    reserved_p99_s: float
    refused: int
    gave_up: int


def parse_setting(words: Sequence[str], seed: int) -> OverloadSetting:
    """Parse words like ``loads=50,100,150``; raises ``PlanError``."""
    loads = [word for word in words if word.startswith("loads=")]
    numbers = parse_parameters([word for word in words if word not in loads], PARAMETERS, "--overload")
    text = loads[-1].partition("=")[2] if loads else DEFAULT_LOADS
    return OverloadSetting(parse_counts(text, "--overload loads", LOADS_MAX), numbers, seed)


@dataclass
class _Simulation:
    setting: OverloadSetting
    is_admitting: bool
    env: simpy.Environment = field(default_factory=simpy.Environment)

    def __post_init__(self) -> None:
        setting = self.setting
        numbers, capacity = setting.numbers, setting.capacity
        self.rng = random.Random(setting.seed)
        self.devices = [Station(self.env, "device") for _ in range(int(numbers["devices"]))]
        known = Amounts(bytes=capacity * numbers["configured"] if self.is_admitting else None)
        self.limiter = Limiter(AdmissionRules(), known, burst_s=numbers["burst_s"], now=0.0)
        self.promised = numbers["reserved"] * capacity
        if self.promised:
            self.limiter.set_reservations({TICKET: self.promised}, 0.0)
        self.warm_s = numbers["seconds"] / 6
        self.done: dict[str, LatencyTally] = {}
        self.refused = self.gave_up = 0

    def clients(self, who: str, rate: float) -> Steps:
        """Yield requests of one client, that arrive at random."""
        while rate > 0:
            yield self.env.timeout(self.rng.expovariate(rate / (self.setting.numbers["size_mb"] * MB)))
            self.env.process(self.request(who))

    def request(self, who: str) -> Steps:
        """Simulate one request, to its end or until its client gives up."""
        env, numbers = self.env, self.setting.numbers
        began, size = env.now, numbers["size_mb"] * MB
        promise = ReservedClass(TICKET, self.promised) if who == RESERVED else None
        grant = self.limiter.admit(RequestProperties(who), began, reserved=promise)
        if not isinstance(grant, AdmittedRequest):
            self.refused += began >= self.warm_s
            return
        grant.set_expected_size(size, began)
        device, left = self.rng.choice(self.devices), size
        while left > 0:
            piece = min(left, numbers["piece_kb"] * 1000)
            carried = env.timeout(piece / (numbers["connection_mb"] * MB))
            yield device.serve(piece / (numbers["rate_mb"] * MB)) & carried
            left -= piece
            wait_s = grant.count_bytes(piece, env.now)
            if env.now - began > numbers["patience_s"]:
                self.gave_up += began >= self.warm_s
                break
            if wait_s > 0:
                yield env.timeout(wait_s)
        grant.end(env.now)
        if left <= 0 and env.now >= self.warm_s:
            tally = self.done.setdefault(who, LatencyTally([]))
            tally.ended += 1
            tally.latencies.append(env.now - began)

    def run(self, load: int) -> OverloadOutcome:
        """Run a load in percent of the devices' capacity; the reserved load stays the same."""
        numbers = self.setting.numbers
        total = load / 100 * self.setting.capacity
        mine = min(self.promised, total)
        self.env.process(self.clients(RESERVED, mine))
        for who, share in OTHER_CLIENTS.items():
            self.env.process(self.clients(who, share * (total - mine)))
        self.env.run(until=self.warm_s + numbers["seconds"])
        came = {who: t.ended * numbers["size_mb"] * MB / numbers["seconds"] for who, t in self.done.items()}
        p99_s = self.done.get(RESERVED, LatencyTally([])).percentile_s(0.99)
        goodput, reserved = sum(came.values()), came.get(RESERVED, 0.0)
        return OverloadOutcome(load, self.is_admitting, goodput, reserved, p99_s, self.refused, self.gave_up)


def simulate_overload(setting: OverloadSetting) -> list[OverloadOutcome]:
    """Simulate each load without admission, and with it."""
    return [
        _Simulation(setting, is_admitting).run(load)
        for load in setting.loads
        for is_admitting in (False, True)
    ]


def overload_text(found: Sequence[OverloadOutcome], setting: OverloadSetting) -> str:
    """Return a line for each load, without admission and with it."""
    rows = [["load", "admission", "goodput", "reserved", "99th of it", "refused", "gave up"]]
    for each in found:
        rows.append(
            [
                f"{each.load} %",
                "yes" if each.is_admitting else "no",
                f"{each.goodput / MB:.1f} MB/s",
                f"{each.reserved / MB:.1f} MB/s",
                f"{each.reserved_p99_s:.2f} s",
                str(each.refused),
                str(each.gave_up),
            ]
        )
    capacity, promised = setting.capacity / MB, setting.numbers["reserved"] * setting.capacity / MB
    return f"{format_table(rows)}\n\ndevices do {capacity:g} MB/s, of which {promised:g} MB/s are reserved"


ASSUMED = (
    "an object is on one device, drawn for each request; devices serve pieces in the order of arrival",
    "clients do not come again when they were refused or gave up",
    "one process admits, so that nothing is late between several",
)
