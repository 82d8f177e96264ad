"""One client and one object on several devices, simulated (doc/explanation/striping.md).

The transfer plan and its schedule are the proxy's own; devices, wires and processors are stations. A device
delivers at its rate, and what is read, sent and coded of a piece goes on side by side. A stream of archives
is ahead of its reader by what sockets hold, and the reader by its look-ahead. What is written is in memory
until its device has it, and acknowledged then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import simpy

from swift.base.ranges import Span
from swift.plan.engine import Station, Steps
from swift.plan.parameters import Parameter, parse_counts, parse_parameters
from swift.plan.report import format_table
from swift.proxy.obj.read.plan import TransferPlan, TransferSchedule, make_plan

MIB = 1 << 20
MB = 1e6
DEVICES_MAX = 64
#: From so many devices on an erasure code fits on them.
CODED_FROM = 3
#: A body from one node, and an upload, go through in pieces of this size.
PIECE = MIB

FROM_ONE = "GET of replicas, from one"
STRIPED = "GET of replicas, striped"
PUT_COPIES = "PUT of replicas"
PUT_CODED = "PUT of archives"
CODED = "GET of archives"
CODED_LOST = "GET of archives, one lost"

PARAMETERS = {
    "size_mib": Parameter(1024, 1, 1 << 20, "size of the object"),
    "rate_mb": Parameter(20, 1e-3, 1e5, "what a device delivers, MB/s"),
    "slow": Parameter(1, 1e-3, 1, "what the last device delivers, by what the others do"),
    "unit_mib": Parameter(4, 0.0625, 1024, "what is asked of a node at a time (striping_unit)"),
    "memory_mib": Parameter(64, 0, 1 << 20, "what a download may hold (striping_memory)"),
    "segment_mib": Parameter(1, 0.001, 64, "segment of the erasure code"),
    "parity": Parameter(2, 1, 8, "archives of parity"),
    "socket_mib": Parameter(1, 0.01, 64, "bytes that sockets buffer of a stream without a reader"),
    "request_ms": Parameter(5, 0, 1000, "until a node begins to answer"),
    "cores": Parameter(2, 1, 1024, "cores of all servers together"),
    "cpu_ns": Parameter(5, 0, 1000, "work on a byte at the proxy and at a node, ns"),
    "network_mb": Parameter(1000, 1, 1e6, "what the client takes, MB/s"),
}


@dataclass(frozen=True, slots=True)
class StripingSetting:
    """Parameters of the simulation; bytes, seconds and bytes a second."""

    devices: int
    size: int
    rate: float
    slow: float
    unit: int
    memory: int
    segment: int
    parity: int
    socket: int
    request_s: float
    cores: int
    cpu_s: float
    network: float

    @property
    def data(self) -> int:
        """Data fragments of the code on all devices; 0 where none fits."""
        fits = self.devices >= max(CODED_FROM, self.parity + 1)
        return self.devices - self.parity if fits else 0


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted rate of a transfer."""

    devices: int
    work: str
    seconds: float
    bytes: int
    #: Its plan in words, where there is one.
    plan: str = ""

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds

    def times(self, device_rate: float) -> float:
        """Return the ratio to the rate of one device."""
        return self.rate / device_rate


def parse_settings(words: Sequence[str]) -> list[StripingSetting]:
    """Return a setting for each number of devices, from words like ``devices=1..8``; raises ``PlanError``."""
    counts = [word for word in words if word.startswith("devices=")]
    others = [word for word in words if word not in counts]
    numbers = parse_parameters(others, PARAMETERS, "--striping")
    text = counts[-1].partition("=")[2] if counts else "1..8"
    base = StripingSetting(
        devices=1,
        size=int(numbers["size_mib"] * MIB),
        rate=numbers["rate_mb"] * MB,
        slow=numbers["slow"],
        unit=int(numbers["unit_mib"] * MIB),
        memory=int(numbers["memory_mib"] * MIB),
        segment=int(numbers["segment_mib"] * MIB),
        parity=int(numbers["parity"]),
        socket=int(numbers["socket_mib"] * MIB),
        request_s=numbers["request_ms"] / 1000,
        cores=int(numbers["cores"]),
        cpu_s=numbers["cpu_ns"] / 1e9,
        network=numbers["network_mb"] * MB,
    )
    return [replace(base, devices=n) for n in parse_counts(text, "--striping devices", DEVICES_MAX)]


@dataclass
class _Simulation:
    """The stations, and the processes that wait for a change."""

    setting: StripingSetting
    env: simpy.Environment = field(default_factory=simpy.Environment)

    def __post_init__(self) -> None:
        env, setting = self.env, self.setting
        self.devices = [Station(env, "device") for _ in range(setting.devices)]
        self.cpu = Station(env, "cpu", setting.cores)
        self.wire = Station(env, "wire")
        self._changed = env.event()

    def notify_change(self) -> None:
        """Notify all that wait for a change."""
        changed, self._changed = self._changed, self.env.event()
        changed.succeed()

    def wait_for_change(self, at_most_s: float) -> simpy.Event:
        """Return the event of the next change, or of the end of so much time."""
        return self._changed | self.env.timeout(at_most_s)

    def rate_of(self, number: int) -> float:
        """Return the bytes a second of a device."""
        is_slow = number == self.setting.devices - 1 and number > 0
        return self.setting.rate * (self.setting.slow if is_slow else 1.0)

    def device_read(self, number: int, size: float) -> simpy.Event:
        """Return a device delivers, and the servers work on it."""
        device = self.devices[number].serve(size / self.rate_of(number))
        return device & self.cpu.serve(size * self.setting.cpu_s)

    def run(self, steps: Steps) -> float:
        """Run the simulation; return the seconds until it is over."""
        self.env.run(self.env.process(steps))
        return float(self.env.now)


def _pieces(size: int, piece: int) -> Iterator[int]:
    for start in range(0, size, piece):
        yield min(piece, size - start)


# downloads


def read_from_one_node(world: _Simulation) -> Steps:
    """Yield a replicated object from one node: the next piece is read while the last one is sent."""
    yield world.env.timeout(world.setting.request_s)
    sent: simpy.Event = world.env.timeout(0)
    for size in _pieces(world.setting.size, PIECE):
        yield world.device_read(0, size) & sent
        sent = world.wire.serve(size / world.setting.network)
    yield sent


def read_striped(world: _Simulation, plan: TransferPlan) -> Steps:
    """Yield the same by a transfer plan."""
    schedule, env = TransferSchedule(plan), world.env

    def work(source: int) -> Steps:
        while not schedule.is_over:
            unit = schedule.take(source, env.now)
            if unit is None:
                yield world.wait_for_change(schedule.late_s)
                continue
            yield env.timeout(world.setting.request_s)
            yield world.device_read(source, plan.bytes_of(unit).length)
            schedule.done(source, unit, env.now)
            world.notify_change()

    for source in range(plan.width):
        env.process(work(source))
    while not schedule.is_over:
        unit = schedule.consume()
        if unit is None:
            yield world.wait_for_change(schedule.late_s)
            continue
        world.notify_change()
        yield world.wire.serve(plan.bytes_of(unit).length / world.setting.network)


def read_erasure_coded(world: _Simulation, *, loses: bool = False) -> Steps:
    """Yield archives, a fragment of each to a segment.

    With ``loses`` a device is gone after half of the object.
    """
    setting, env = world.setting, world.env
    need, segments = setting.data, -(-setting.size // setting.segment)
    fragment = setting.segment / need
    ahead = max(1, setting.memory // setting.segment - 2)
    brought: list[int] = [0] * segments
    #: Segments that were decoded, and that the client has.
    decoded = sent = 0
    lost = {0} if loses else set()

    def stream(source: int, first: int) -> Steps:
        yield env.timeout(setting.request_s)
        for segment in range(first, segments):
            while (segment - decoded) * fragment > setting.socket:
                yield world.wait_for_change(1.0)
            if source in lost and segment >= segments // 2:
                # Its archive is replaced by one of parity, from the segment on that it did not bring.
                env.process(stream(need, segment))
                return
            yield world.device_read(source, fragment)
            brought[segment] += 1
            world.notify_change()

    def read() -> Steps:
        nonlocal decoded
        for segment in range(segments):
            while brought[segment] < need or segment - sent >= ahead:
                yield world.wait_for_change(1.0)
            yield world.cpu.serve(setting.segment * setting.cpu_s)
            decoded += 1
            world.notify_change()

    for source in range(need):
        env.process(stream(source, 0))
    env.process(read())
    for size in _pieces(setting.size, setting.segment):
        while sent >= decoded:
            yield world.wait_for_change(1.0)
        yield world.wire.serve(size / setting.network)
        sent += 1
        world.notify_change()


# uploads


def write_all_devices(world: _Simulation, data: int) -> Steps:
    """Yield copies to all devices, or with ``data`` fragments a code.

    Acknowledged when enough have everything.
    """
    setting = world.setting
    # More than half of the copies, one archive more than there is data.
    need = setting.devices // 2 + 1 if data == 1 else data + 1
    written: list[simpy.Event] = []
    yield world.env.timeout(setting.request_s)
    for size in _pieces(setting.size, PIECE):
        yield world.wire.serve(size / setting.network) & world.cpu.serve(size * setting.cpu_s)
        written = [world.device_read(number, size / data) for number in range(setting.devices)]
    yield simpy.events.Condition(world.env, lambda _events, count: count >= need, written)


def predict(setting: StripingSetting) -> list[Predicted]:
    """Simulate all transfers on so many devices."""
    plan = make_plan(
        Span(0, setting.size),
        rates=[None] * setting.devices,
        unit=setting.unit,
        memory=setting.memory,
        from_bytes=0,
    )
    works: list[tuple[str, Callable[[_Simulation], Steps], str]] = [
        (PUT_COPIES, lambda world: write_all_devices(world, 1), ""),
        (FROM_ONE, read_from_one_node, ""),
        (
            STRIPED,
            read_from_one_node if plan is None else lambda world: read_striped(world, plan),
            str(plan or ""),
        ),
    ]
    if setting.data:
        works += [
            (PUT_CODED, lambda world: write_all_devices(world, setting.data), ""),
            (CODED, read_erasure_coded, ""),
            (CODED_LOST, lambda world: read_erasure_coded(world, loses=True), ""),
        ]
    found = []
    for name, work, text in works:
        world = _Simulation(setting)
        found.append(Predicted(setting.devices, name, world.run(work(world)), setting.size, text))
    return found


def striping_text(found: Sequence[Predicted], rate: float) -> str:
    """Return a line for each transfer, and the plans of those that have one."""
    rows = [["devices", "transfer", "MB/s", "times one device"]]
    rows += [[str(f.devices), f.work, f"{f.rate / MB:.1f}", f"{f.times(rate):.2f}"] for f in found]
    plans = [f"  {f.devices} devices: {f.plan}" for f in found if f.plan]
    return "\n".join([format_table(rows), *(["", "plans", *plans] if plans else [])])


ASSUMED = (
    "devices deliver at one rate, without seeks, and nothing of the object is in memory",
    "a unit is asked for when the one before has come: request_ms passes in between",
    "reading, sending and work on a piece go on side by side",
    "of an upload memory holds what devices have not got yet; it is acknowledged when enough have it",
    "a device that is lost is noticed at once, and parity takes its place",
)
