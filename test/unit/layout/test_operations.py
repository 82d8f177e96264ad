"""Operations on a layout, and the decisions of the controller, without faults."""

import gzip

import pytest

from swift.gateway.documents import Conflict
from swift.layout.controller import PACE_MIN, Controller, Pace
from swift.layout.dead import DrainPolicy
from swift.layout.edits import EditError, LayoutEdit, Selector
from swift.layout.observation import Observation, RingProgress
from swift.layout.operations import LayoutOperations, Objections
from swift.layout.plan import Usage, label_of
from swift.layout.state import DamagedLayout, LayoutState
from swift.layout.store import LeaseKeeper, NoLayout, builder_of, packed_builder
from test.support.layouts import ManualTime, MemoryLayoutStore, make_builder, placed

DEVICES = [(1, zone, f"10.0.0.{zone}", f"sd{letter}", 100.0) for zone in (1, 2, 3, 4) for letter in "bc"]
#: A step of all copies.
WHOLE = Pace(100.0)
FIRST = "10.0.0.1/sdb"


class World:
    """A layout, its controller, and what that sees; copies have arrived unless a test says otherwise."""

    def __init__(self, *, pace=WHOLE, drain=None):
        self.clock = ManualTime()
        self.store = MemoryLayoutStore(self.clock)
        self.operations = LayoutOperations(self.store, self.clock.time)
        builder = make_builder(DEVICES, part_power=6, clock=self.clock)
        self.operations.create({"object": builder})
        self.published = []
        self.away = frozenset()
        self.in_order = True
        self.latency_s = 0.0
        self.usage = Usage()
        self.relinked = {}
        lease = LeaseKeeper(self.store, "one", 60.0, self.clock.monotonic)
        self.controller = Controller(self.store, self, self, lease, pace=pace, drain=drain or DrainPolicy())
        self.tick()

    @property
    def state(self):
        return self.operations.read()

    @property
    def builder(self):
        return self.operations.builders(self.state)["object"]

    def tick(self, seconds=0.0):
        self.clock.now_s += seconds
        return self.controller.tick().text

    def drain(self, label=FIRST, **options):
        self.operations.stage(LayoutEdit("drain", Selector.parse(label)))
        return self.operations.apply(self.usage, **options)

    # the publisher and the observer

    def version(self):
        return self.published[-1][0] if self.published else 0

    def publish(self, version, issued_s, files):
        self.published.append((version, issued_s, files))

    def look(self):
        digest = self.controller._digest("object", self.state.rings["object"])
        elsewhere = self.in_order or bool(self.away)
        # Passes that ended before a device was gone report no fault.
        progress = RingProgress(digest, self.in_order, elsewhere, left=3)
        return Observation(
            self.clock.now_s, {"object": progress}, self.away, self.usage, self.relinked, self.latency_s
        )


def test_a_change_is_carried_out_and_ends():
    world = World()
    world.drain()
    assert world.tick().endswith("copies move, 0 follow")
    assert world.version() == 2
    assert "arrived" in world.tick()
    assert world.builder.devs[0]["parts"] == 0
    assert [change.state for change in world.state.changes] == ["done"]
    assert world.tick() == "all copies are in their places"
    assert world.version() == 2


def test_the_next_step_waits_until_all_copies_have_arrived():
    world = World(pace=Pace(1.0))
    world.drain()
    world.tick()
    world.in_order = False
    assert world.tick() == "ring object: 3 copies are still to arrive"
    assert world.version() == 2
    world.in_order = True
    world.tick()
    assert world.version() == 3


def test_nothing_moves_while_it_is_paused():
    world = World()
    world.drain()
    world.operations.pause("rack 4")
    assert world.tick() == "paused: rack 4"
    world.operations.resume()
    world.tick()
    assert world.version() == 2


def test_a_revert_in_the_middle_brings_all_partitions_back():
    world = World(pace=Pace(2.0))
    before = placed(world.builder)
    world.drain()
    world.tick()
    world.tick()
    assert placed(world.builder) != before
    world.operations.revert(Usage())
    for _ in range(20):
        world.tick(3600.0)
    assert placed(world.builder) == before
    assert [change.state for change in world.state.changes] == ["reverted", "done"]


def test_a_change_that_is_objected_to_needs_force():
    world = World()
    world.operations.stage(LayoutEdit("drain", Selector(zone=4)))
    world.operations.stage(LayoutEdit("drain", Selector(zone=3)))
    with pytest.raises(Objections, match="two copies in one zone"):
        world.operations.apply(Usage())
    assert not world.state.changes and len(world.state.staged) == 2
    world.operations.apply(Usage(), force=True)
    assert world.state.changes and not world.state.staged


def test_bad_changes_are_refused_and_leave_the_layout():
    world = World()
    before = world.state
    with pytest.raises(EditError, match="nothing is staged"):
        world.operations.apply(Usage())
    with pytest.raises(EditError, match="nothing was changed"):
        world.operations.revert(Usage())
    with pytest.raises(EditError, match="no device is selected"):
        world.operations.stage(LayoutEdit("drain", Selector(ip="10.9.9.9")))
    with pytest.raises(EditError, match="already"):
        world.operations.create({"object": world.builder})
    assert world.state == before


def test_steps_keep_to_the_rate_and_to_the_latency_of_clients():
    world = World(pace=Pace(1.0, bytes_per_second=1e6, latency_budget_s=0.1))
    world.usage = Usage({f"10.0.0.{zone}/sd{letter}": (24e6, 1e9) for zone in "1234" for letter in "bc"})
    world.drain()
    world.latency_s = 0.2
    assert "more than the budget of 100 ms" in world.tick()
    for _ in range(10):
        world.tick()
    assert world.version() == 1 and world.state.pace == PACE_MIN
    world.latency_s = 0.05
    world.tick()
    assert world.version() == 2
    assert "limit of 1 MB/s" in world.tick(0.1)
    assert world.version() == 2
    world.tick(10.0)
    assert world.version() == 3


def test_a_device_that_fills_gets_nothing_more():
    world = World()
    world.drain()
    world.usage = Usage({f"10.0.0.{zone}/sd{letter}": (95.0, 100.0) for zone in "1234" for letter in "bc"})
    assert world.tick() == "the devices that are to get copies are too full"
    assert world.version() == 1


def test_a_part_power_is_increased_when_all_devices_have_linked():
    world = World()
    labels = frozenset(f"10.0.0.{zone}/sd{letter}" for zone in "1234" for letter in "bc")
    world.operations.increase_part_power("object")
    with pytest.raises(EditError, match="another change is under way"):
        world.operations.increase_part_power("object")
    assert "will be split" in world.tick()
    assert world.builder.next_part_power == 7
    world.relinked = {"object": labels - {FIRST}}
    assert world.tick() == f"ring object: run swift-object-relinker relink for {FIRST}"
    with pytest.raises(EditError, match="part power is being increased"):
        world.drain()
    world.relinked = {"object": labels}
    assert "partitions are split" in world.tick()
    assert (world.builder.part_power, world.builder.parts) == (7, 128)
    world.relinked = {}
    assert "run swift-object-relinker cleanup for" in world.tick()
    world.relinked = {"object": labels}
    assert "complete" in world.tick()
    assert world.builder.next_part_power is None
    assert "complete" in world.tick() and not world.state.is_moving
    with pytest.raises(EditError, match="cannot be reverted"):
        world.operations.revert(Usage())


def test_a_part_power_of_accounts_is_not_increased():
    with pytest.raises(EditError, match="no ring of objects"):
        World().operations.increase_part_power("account")


# --- devices that are away ------------------------------------------------------------------------------


def test_a_dead_device_is_announced_drained_and_taken_back():
    world = World(drain=DrainPolicy("on", 600.0, 2))
    before = placed(world.builder)
    world.away = frozenset((FIRST,))
    assert world.tick() == f"away: {FIRST}"
    assert world.tick(299.0) == "all copies are in their places"
    assert world.tick(1.0) == f"{FIRST} is away and will be drained in 300 s"
    assert world.tick(300.0) == f"drain {FIRST}: away for too long"
    world.tick()
    assert world.builder.devs[0]["parts"] == 0
    world.away = frozenset()
    assert world.tick() == f"take back {FIRST}"
    for _ in range(5):
        world.tick(3600.0)
    assert placed(world.builder) == before
    assert not world.state.dead and not world.state.is_moving


def test_no_more_than_some_devices_of_one_zone_are_drained_by_themselves():
    world = World(drain=DrainPolicy("on", 600.0, 1))
    world.away = frozenset((FIRST, "10.0.0.1/sdc"))
    for _ in range(10):
        world.tick(300.0)
    assert [label for label, dead in world.state.dead.items() if dead.drained_s] == [FIRST]
    reason = "at most 1 devices, all in one zone, are drained so"
    assert world.state.dead["10.0.0.1/sdc"].refused == reason and not world.state.dead[FIRST].refused
    world = World(drain=DrainPolicy("on", 600.0, 9))
    world.away = frozenset((FIRST, "10.0.0.2/sdb"))
    for _ in range(10):
        world.tick(300.0)
    assert [label for label, dead in world.state.dead.items() if dead.drained_s] == [FIRST]


def test_a_new_device_that_its_host_does_not_have_speaks_against_a_plan():
    world = World()
    world.usage = Usage({label_of(dev): (1.0, 100.0) for dev in world.builder.live_devs})
    for text in ("10.0.0.1/sdq", "10.0.0.9/sdb"):
        edit = LayoutEdit("add", Selector.parse(f"r1z4-{text}"), weight=100.0)
        world.operations.stage(edit)
    with pytest.raises(Objections, match="device 10.0.0.1/sdq is not there: its host") as refused:
        world.operations.apply(world.usage)
    assert "10.0.0.9" not in str(refused.value)


def test_a_drain_without_space_is_refused_once_with_its_reason():
    world = World(drain=DrainPolicy("on", 600.0, 2))
    world.usage = Usage({label_of(dev): (99.0, 100.0) for dev in world.builder.live_devs})
    world.away = frozenset((FIRST,))
    said = [world.tick(300.0) for _ in range(10)]
    text = f"{FIRST}: away for too long, but not drained: the others have no space for its copies"
    assert said.count(text) == 1
    assert not world.state.changes
    world.usage = Usage()
    assert world.tick() == f"drain {FIRST}: away for too long"
    assert not world.state.dead[FIRST].refused


@pytest.mark.parametrize(("mode", "announced"), [("off", False), ("dry-run", True)])
def test_dead_devices_are_left_alone_without_being_told(mode, announced):
    world = World(drain=DrainPolicy(mode, 600.0, 2))
    world.away = frozenset((FIRST,))
    said = [world.tick(300.0) for _ in range(10)]
    assert any("would be (dry-run) drained" in text for text in said) == announced
    assert not world.state.changes and world.version() == 1


def test_a_device_that_is_away_holds_other_changes_up():
    world = World()
    world.drain("10.0.0.2/sdb")
    world.away = frozenset((FIRST,))
    world.tick()
    assert world.tick() == f"ring object: {FIRST} is away; bring it back, or drain it"
    assert world.version() == 1


# --- the lease and the state ----------------------------------------------------------------------------


def test_an_old_copy_of_the_layout_is_not_carried_out():
    world = World()
    before = world.store.document
    world.drain()
    world.tick()
    assert world.version() == 2
    world.store.document = before
    assert world.tick() == (
        "the layout has version 1, this node rings of version 2: the layout's document is an old copy"
    )
    assert world.version() == 2


def test_another_controller_takes_over_when_the_lease_is_not_renewed():
    clock, store = ManualTime(), MemoryLayoutStore()
    one = LeaseKeeper(store, "one", 60.0, clock.monotonic)
    other = LeaseKeeper(store, "other", 60.0, clock.monotonic)
    assert one.hold() and not other.hold()
    clock.now_s += 59.0
    assert one.hold() and not other.hold()
    clock.now_s += 59.0
    assert not other.hold()
    clock.now_s += 1.0
    assert other.hold() and not one.hold()


def test_of_two_writers_one_wins():
    world = World()
    held = world.store.read()
    world.operations.pause("a")
    with pytest.raises(Conflict):
        world.store.write(held.state, held.etag)


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"format": 2}', b"{" * 100_000])
def test_a_damaged_document_is_no_layout(document):
    with pytest.raises(DamagedLayout):
        LayoutState.from_document(document)


@pytest.mark.parametrize("name", ["", "object-x", "../object", "object.ring.gz"])
def test_a_ring_whose_name_no_manifest_has_is_refused(name):
    operations = LayoutOperations(MemoryLayoutStore(), ManualTime().time)
    with pytest.raises(EditError, match="no name of a ring"):
        operations.create({"object": make_builder(DEVICES), name: make_builder(DEVICES)})
    with pytest.raises(NoLayout):
        operations.read()
    document = World().state.to_document().replace(b'"rings": {"object"', b'"rings": {"%b"' % name.encode())
    with pytest.raises(DamagedLayout):
        LayoutState.from_document(document)


def test_a_builder_is_unpacked_to_its_end_and_to_a_limit(monkeypatch):
    monkeypatch.setattr("swift.layout.store.BUILDER_BYTES_MAX", 1 << 16)
    packed, name = packed_builder(make_builder(DEVICES))
    assert builder_of(packed, name).parts
    bomb = gzip.compress(bytes((1 << 16) + 1))
    for damaged in (b"", packed[:-1], packed[:-9], b"x" + packed, bomb):
        with pytest.raises(DamagedLayout, match=name):
            builder_of(damaged, name)


def test_a_state_is_kept_whole():
    world = World()
    world.drain()
    world.operations.stage(LayoutEdit("zone", Selector.parse(FIRST), place=Selector(1, 7)))
    assert LayoutState.from_document(world.state.to_document()) == world.state
