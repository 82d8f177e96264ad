"""Which partitions of a device become units of replicator and reconstructor, and in which order."""

from __future__ import annotations

import random

import pytest

from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.cluster.transport import BackendResponse, TransportError
from swift.obj.replication.digests import decode_request, digest_of, encode_response
from swift.obj.replication.replicastatus import DigestQuery
from swift.obj.replication.settings import SyncSettings
from swift.obj.replication.task import DeviceSyncPass, SyncTask, failures_by_node
from swift.ring.errors import RingError
from swift.runtime.selection import Selection
from swift.store.api import EngineDefaults
from swift.store.handle import StoreHandle
from test.support.daemons import DaemonFixture, DeviceRing, LogLines

OURS = {"abc": "0" * 32}
SAME = digest_of(OURS, None)


class Store(EngineDefaults):
    """An engine whose partitions have the hashes that a test says; it is its own upkeep."""

    def __init__(self, parts):
        self.parts = {str(part): OURS for part in parts}
        self.unknown_policies = []
        self.idle = {}
        self.confirmed = []
        self.error = None

    maintenance = property(lambda self: self)

    def run(self, device, effort):
        return lambda work, *args: work(*args)

    def prepare(self, device, policy, before_s):
        if self.error is not None:
            raise self.error
        return self.unknown_policies

    def partitions(self, device, policy):
        return list(self.parts)

    def confirm(self, device, partitions, policy):
        self.confirmed += partitions

    def idle_s(self, device, name, policy):
        return self.idle.get(name, 1e9)

    def change_token(self, device, name, policy):
        return ""

    def hashes(self, device, name, policy, *, list_suffixes=False):
        if isinstance(self.parts[name], Exception):
            raise self.parts[name]
        return self.parts[name]


class RemoteNodes:
    """Other nodes: ``has[number]`` tells the digest of a partition, a status, or how it fails."""

    def __init__(self):
        self.has = {}
        self.asked = []

    def request(self, request):
        port, body = request.node.port, request.body
        number, parts = port - 6200, sorted(decode_request(body))
        self.asked.append((number, parts))
        has = self.has.get(number, lambda part: SAME)
        if isinstance(has, TransportError):
            raise has
        if isinstance(has, int):
            return BackendResponse(has)
        told = {part: has(part) for part in parts}
        return BackendResponse(200, {"x-backend-partition-digests": "true"}, encode_response(told))


class Task(SyncTask[SyncSettings]):
    """A daemon of policy 0 that compares every partition with all other primaries."""

    name = agent = "test"

    def handles(self, policy):
        return policy.index == 0

    def begin(self, share, pass_context):
        return Pass(self, share, pass_context)


class Pass(DeviceSyncPass[Task]):
    def digest_queries(self, local):
        for other in local.others:
            yield other, DigestQuery(local.part, local.entry.digest)


class Rings:
    """``ring`` is that of policy 0; policy 1 has none."""

    def __init__(self, ring):
        self.ring = ring

    def object(self, policy):
        if policy.index:
            raise RingError("no ring")
        return self

    def view(self):
        return self.ring


class Bench:
    def __init__(self, root, parts=(), own=0, selection=None, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.store, self.remote_nodes = Store(parts), RemoteNodes()
        self.rings = Rings(DeviceRing(own))
        self.task = Task(
            self.rings.ring.context(self.rig, transport=self.remote_nodes),
            self.rings,
            SyncSettings(**options),
            self,
            rng=random.Random(1),
            selection=selection,
        )
        self.next_pass()

    def at(self, _policy, device):
        """It is the registry of engines as well."""
        return StoreHandle(self.store, device)

    def next_pass(self):
        self.pass_context = self.rig.pass_context()
        self.passing = Pass(self.task, "sda", self.pass_context)
        self.remote_nodes.asked.clear()

    @property
    def planned(self):
        return [unit.local.part for unit in self.passing.plan()]

    @property
    def failures(self):
        return self.pass_context.counters.counts.get("failures", 0)


@pytest.fixture
def make(tmp_path):
    return lambda *how, **more: Bench(tmp_path, *how, **more)


# --- planning


def test_what_all_have_alike_is_no_unit_and_each_partner_is_asked_once(make):
    bench = make(range(5))
    assert bench.planned == []
    assert sorted(bench.remote_nodes.asked) == [(1, [0, 1, 2, 3, 4]), (2, [0, 1, 2, 3, 4])]


@pytest.mark.parametrize(("own", "confirmed"), [(0, ["1", "3"]), (4, [])])
def test_a_primary_that_equals_another_one_is_confirmed(make, own, confirmed):
    bench = make([1, 2, 3], own=own)
    bench.remote_nodes.has = {
        1: lambda part: SAME if part == 1 else "0" * 32,
        2: lambda part: SAME if part == 3 else "0" * 32,
    }
    assert sorted(bench.planned) == [1, 2, 3]
    assert sorted(bench.store.confirmed) == confirmed


def test_the_partition_with_the_fewest_copies_comes_first(make):
    bench = make(range(4))
    bench.remote_nodes.has = {
        1: lambda part: {1: "", 2: "other", 3: ""}.get(part, SAME),
        2: lambda part: {1: "", 3: "other"}.get(part, SAME),
    }
    assert bench.planned == [1, 3, 2]


@pytest.mark.parametrize("response", [404, 500, 507, TransportError("away")])
def test_a_partner_that_does_not_say_leaves_everything_to_be_done(make, response):
    bench = make(range(3))
    bench.remote_nodes.has = {1: response}
    assert sorted(bench.planned) == [0, 1, 2]
    assert bench.passing.unmounted == ({1} if response == 507 else set())


def test_what_does_not_belong_here_is_a_unit_whatever_the_others_have(make):
    bench = make([3], own=4)
    (unit,) = bench.passing.plan()
    assert unit.local.own is None and len(unit.local.others) == 3
    assert str(unit) == "partition 3 of policy 0"


def test_a_primary_compares_with_the_others_and_not_with_itself(make):
    bench = make([3], own=1)
    bench.remote_nodes.has = {0: lambda part: ""}
    (unit,) = bench.passing.plan()
    assert [node.id for node in unit.local.others] == [0, 2]


def test_names_that_are_no_partitions_of_the_ring_are_told_and_left_alone(make):
    bench = make(["7", "16", "007", "99999999999"], own=4)
    bench.store.unknown_policies = ["a file"]
    assert bench.planned == [7]
    assert bench.failures == 4
    assert sum("does not exist in its ring" in line for line in bench.log.lines) == 3
    assert any("is not a partition" in line for line in bench.log.lines)


@pytest.mark.parametrize("error", [OSError("rot"), LockTimeout("x", 1)])
def test_a_partition_that_cannot_be_hashed_does_not_keep_the_others_from_it(make, error):
    bench = make(range(3), own=4)
    bench.store.parts["1"] = error
    assert sorted(bench.planned) == [0, 2]
    assert bench.failures == 1


@pytest.mark.parametrize("error", [OSError("rot"), DeviceUnavailable("sda")])
def test_a_device_that_cannot_be_listed_is_a_failure(make, error):
    bench = make(range(3))
    bench.store.error = error
    assert bench.planned == [] and bench.failures == 1


def test_a_device_that_is_not_mounted_is_a_failure(make):
    bench = make(range(3))
    (bench.rig.root / "sda").rmdir()
    assert bench.planned == [] and bench.failures == 1


def test_while_partitions_are_split_nothing_is_compared(make):
    bench = make(range(3), own=4)
    bench.rings.ring.next_part_power = 5
    assert bench.planned == [] and bench.remote_nodes.asked == []


def test_a_run_by_hand_is_of_what_was_chosen(make):
    assert make(range(9), own=4, selection=Selection(partitions=frozenset(("3", "5")))).planned in (
        [3, 5],
        [5, 3],
    )


# --- another ring, and the end


def test_a_new_ring_ends_what_the_old_one_planned(make):
    bench = make(range(3), own=4)
    units = bench.passing.plan()
    first = next(units)
    assert bench.passing.is_due(first)
    bench.rings.ring = DeviceRing(4)
    assert not bench.passing.is_due(first)
    assert list(units) == []
    assert any("has changed" in line for line in bench.log.lines)


def test_a_ring_that_cannot_be_read_now_is_no_other_one(make):
    bench = make(range(3), own=4)
    first = next(bench.passing.plan())
    bench.rings.object = _no_ring
    assert bench.passing.is_due(first)


def _no_ring(_policy):
    raise RingError("being written")


def test_a_daemon_that_is_to_end_plans_nothing_more(make):
    bench = make(range(3), own=4)
    units = bench.passing.plan()
    next(units)
    bench.rig.stop.request()
    assert list(units) == []


# --- what is being written


def test_what_was_settled_and_is_being_written_waits_for_rest(make):
    bench = make(range(2), interval=60.0)
    assert bench.planned == []
    bench.next_pass()
    bench.store.idle["1"] = 5.0
    assert bench.planned == []
    assert {tuple(parts) for _number, parts in bench.remote_nodes.asked} == {(0,)}
    bench.next_pass()
    bench.store.idle["1"] = 100.0
    bench.planned  # noqa: B018
    assert {tuple(parts) for _number, parts in bench.remote_nodes.asked} == {(0, 1)}


def test_once_a_partner_has_nothing_of_a_partition_nothing_waits(make):
    bench = make(range(2), interval=60.0)
    bench.planned  # noqa: B018
    bench.remote_nodes.has = {1: lambda part: ""}
    bench.store.idle["1"] = 5.0
    bench.next_pass()
    assert bench.planned == [0]
    bench.next_pass()
    assert sorted(bench.planned) == [0, 1]


def test_work_without_a_failure_settles_a_partition_and_with_one_it_does_not(make):
    bench = make(range(2), interval=60.0)
    bench.remote_nodes.has = {1: lambda part: "other"}
    for unit in bench.passing.plan():
        with bench.passing.working_on(unit):
            if unit.local.part:
                bench.passing.note_refusal(unit.local.others[0], 503, unit.local)
    bench.store.idle = {"0": 5.0, "1": 5.0}
    bench.next_pass()
    assert bench.planned == [1]


# --- telling


@pytest.mark.parametrize(
    ("empty", "own", "missing_on"),
    [
        ((1,), 0, {"10.0.0.1/d1": 2}),
        ((2,), 0, {}),
        ((1, 2), 0, {"10.0.0.1/d1": 2, "10.0.0.1/d2": 2}),
        ((0,), 1, {}),
        ((0,), 2, {"10.0.0.1/d0": 2}),
    ],
)
def test_a_device_that_lacks_partitions_is_reported_by_the_holder_before_it(make, empty, own, missing_on):
    bench = make(range(2), own=own)
    bench.remote_nodes.has = dict.fromkeys(empty, lambda part: "")
    assert len(bench.planned) == 2
    counts = bench.passing.facts()["copies"]["object"]
    assert (counts["missing_on"], counts["partitions"], counts["misplaced"]) == (missing_on, 2, 0)


def test_a_holder_that_reports_nothing_is_passed_over_by_the_report(make):
    bench = make(range(2), own=0)
    bench.remote_nodes.has = {1: 405, 2: lambda part: ""}
    assert len(bench.planned) == 2
    assert bench.passing.facts()["copies"]["object"]["missing_on"] == {"10.0.0.1/d2": 2}


def test_partitions_that_do_not_belong_here_are_misplaced_from_the_plan_on(make):
    bench = make(range(2), own=4)
    assert len(bench.planned) == 2
    assert bench.passing.facts()["copies"]["object"]["misplaced"] == 2


def test_failures_are_counted_by_node_and_those_of_all_devices_together(make):
    bench = make([0], own=4)
    (unit,) = bench.passing.plan()
    one, two, _three = unit.local.others
    for node, status in ((one, 503), (one, 507), (two, 503)):
        bench.passing.note_refusal(node, status, unit.local)
    facts = bench.passing.facts()
    assert facts["failure_nodes"] == {"127.0.0.1": {"d0": 2, "d1": 1}}
    assert bench.passing.unmounted == {one.id} and bench.failures == 3
    assert failures_by_node([facts, facts, {}]) == {"127.0.0.1": {"d0": 4, "d1": 2}}


def test_devices_are_those_of_the_rings_that_there_are(make):
    bench = make()
    assert bench.task.shares() == ["sda"]
    bench.rings.ring = DeviceRing(0)
    bench.rings.ring.devices = bench.rings.ring.devices[1:]
    assert bench.task.shares() == []
    assert any("Can't find itself" in line for line in bench.log.lines)
    bench.rings.object = _no_ring
    assert bench.task.shares() == []
    assert any("cannot load the ring of policy 0" in line for line in bench.log.lines)
