"""Fakes for daemons: a ring of a few nodes, nodes that answer by script, time that only sleeping moves."""

from dataclasses import replace

from swift import green
from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.cluster.transport import Reply, TransportError
from swift.platform.mounts import Devices
from swift.policy.policies import Policies
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.runtime.backendapp import BackendContext
from swift.runtime.cursor import Cursor
from swift.runtime.daemon import PassContext, Runner, Schedule
from swift.runtime.report import Progress, Tally
from swift.runtime.stop import Stop
from swift.runtime.throttle import Throttle
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry


def node(number, port=6200):
    """Node ``number`` with device ``d<number>`` at replication port ``port + number``."""
    return Node(
        id=number,
        region=1,
        zone=1,
        ip="10.0.0.1",
        port=1,
        replication_ip="127.0.0.1",
        replication_port=port + number,
        device=f"d{number}",
        weight=1.0,
        meta="",
        index=number,
    )


class FakeRing:
    """Everything lies on the same nodes, in partition 7."""

    def __init__(self, count=3, error=None):
        self.members = tuple(node(number) for number in range(count))
        self.error = error

    def view(self):
        if self.error is not None:
            raise self.error
        return self

    def nodes(self, digest):
        assert len(digest) == 16
        return 7, self.members


class ScriptedNodes:
    """A transport whose answers are scripted by node number; everything else gets 202."""

    def __init__(self):
        self.answers = {}
        self.requests = []

    def request(self, ip, port, method, path, headers, body=b"", *, connect_timeout_s, timeout_s):
        number = port - 6200
        self.requests.append((number, method, path, dict(headers)))
        answer = self.answers.get(number, 202)
        if callable(answer):
            answer = answer(method, path)
        if isinstance(answer, TransportError):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer)

    @property
    def asked(self):
        return sorted(number for number, *_ in self.requests)


class VirtualTime(ManualClock):
    """A clock that sleeping moves; other green threads run meanwhile."""

    def __init__(self, now_s=5_000_000_000.0):
        super().__init__(now_s)
        self.slept = 0.0

    def sleep(self, seconds):
        self.advance(seconds)
        self.slept += seconds
        green.sleep()


class Rig:
    """A context on a temporary folder, with what a daemon needs around it."""

    def __init__(self, root, devices=("sda",), log=None):
        for name in devices:
            (root / "srv" / name).mkdir(parents=True)
        (root / "recon").mkdir()
        self.root = root / "srv"
        self.clock = VirtualTime()
        self.nodes = ScriptedNodes()
        self.telemetry = Telemetry(log or silent_log())
        self.context = BackendContext(
            devices=Devices(str(self.root), mount_check=False),
            hasher=PathHasher(b"p", b"s"),
            policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
            telemetry=self.telemetry,
            clock=self.clock,
            transport=self.nodes,
        )
        self.stop = Stop(self.clock, self.clock.sleep)

    def recon(self, server_type):
        return ReconFile(str(self.root.parent / "recon"), server_type, self.telemetry.log)

    def runner(self, task, schedule=None, *, server_type="object", **more):
        return Runner(
            task,
            schedule or Schedule(interval_s=30),
            telemetry=self.telemetry,
            recon=self.recon(server_type),
            stop=self.stop,
            clock=self.clock,
            **more,
        )

    def pass_context(self, name="test", interval_s=30.0):
        return PassContext(
            Tally(self.telemetry, name),
            self.clock,
            self.stop,
            self.clock.monotonic() + interval_s,
            Cursor("", self.clock, self.telemetry.log),
            Progress(self.telemetry, self.clock, title=name, interval_s=interval_s),
            Throttle(0, self.clock, self.stop.wait),
        )


class CountingPass:
    """Units are numbers; what is done with one is the test's."""

    def __init__(self, task, share, pass_context):
        self.task, self.share, self.pass_context = task, share, pass_context

    def plan(self):
        yield from self.task.units(self)

    def do(self, unit):
        self.pass_context.tally.add("successes")
        self.task.act(self, unit)

    def facts(self):
        return {"share": self.share}

    def end(self):
        self.task.ended.append(self.share)


class CountingTask:
    """A task whose units are numbers."""

    name = "counter"

    def __init__(self, units=3, shares=("sda",), act=lambda turn, unit: None):
        self.units = units if callable(units) else lambda _turn: iter(range(units))
        self._shares = list(shares)
        self.act = act
        self.starts = []
        self.reports = []
        self.ended = []
        self.told = []

    def shares(self):
        return self._shares

    def begin(self, share, pass_context):
        self.starts.append((share, pass_context.clock.monotonic()))
        return CountingPass(self, share, pass_context)

    def progress(self, passed):
        self.told.append(passed)
        return {}

    def report(self, passed):
        self.reports.append(passed)
        return {"counter_sweep": passed.seconds, "counter_last": passed.ended_s}


class DeviceRing:
    """Partition 7 is all there is: on the first three of some devices, of which the others are handoffs.

    This node has the device ``sda``, number ``own``.
    """

    partition_count = 16
    next_part_power = None
    replica_count = 3.0
    digest = "d1"

    def __init__(self, own=0, count=5):
        self.own = node(own)
        named = (
            replace(node(number), device="sda" if number == own else f"d{number}") for number in range(count)
        )
        self.devices = tuple(named)

    def view(self):
        return self

    def partition_of(self, _digest):
        return 7

    def nodes(self, _digest):
        return 7, self.devices[:3]

    def primaries(self, _part):
        return self.devices[:3]

    def primary_ids(self, _part):
        return [device.id for device in self.devices[:3]]

    def parts_of(self, dev_id):
        return frozenset((7,) if dev_id < 3 else ())

    def handoffs(self, _part):
        return iter(self.devices[3:])

    def context(self, rig, **changes):
        """What a daemon of this node is given."""
        port = self.own.replication_port
        return replace(rig.context, ring_ip="127.0.0.1", ring_port=port, **changes)
