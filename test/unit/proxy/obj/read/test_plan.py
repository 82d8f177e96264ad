"""Plans say how a large object is fetched from several nodes; schedules keep to them.

See doc/explanation/striping.md.

``SWIFT_PLAN_SEEDS`` is how many random runs are tried.
"""

import heapq
import os
import random
from dataclasses import replace

import pytest

from swift.base.ranges import Span
from swift.proxy.obj.read.plan import LATE_MIN_S, PROBE_S, TransferPlan, TransferSchedule, make_plan
from test.support.checks import every

SEEDS = int(os.environ.get("SWIFT_PLAN_SEEDS", "300"))
MIB = 1 << 20


def plan_of(length=100 * MIB, start=0, **more):
    options = {"rates": [None] * 3, "unit": 4 * MIB, "memory": 32 * MIB, "from_bytes": 32 * MIB, **more}
    return make_plan(Span(start, start + length), **options)


def test_a_plan_can_be_read():
    assert str(plan_of()) == (
        "bytes 0-104857599: 25 units of 4194304 bytes from 3 nodes, 8 ahead, 33554432 bytes at most"
    )


def test_a_plan_says_what_is_known_of_its_nodes_and_leaves_out_those_that_are_much_slower():
    plan = plan_of(rates=[20e6, None, 19.5e6, 4.9e6])
    assert (plan.width, plan.left_out, plan.rates) == (3, 1, (20e6, None, 19.5e6))
    assert str(plan) == (
        "bytes 0-104857599: 25 units of 4194304 bytes from 3 nodes (20.0, ?, 19.5 MB/s), without 1 slow ones,"
        " 8 ahead, 33554432 bytes at most"
    )
    assert plan_of(rates=[20e6, 5e6, 5e6]).left_out == 0
    assert plan_of(rates=[20e6, 4e6, 4e6]) is None, "nobody is left who could help"
    assert plan_of(rates=[4e6, 20e6, 20e6]).width == 3, "the answer that is open takes part"


@pytest.mark.parametrize(
    "change",
    [
        {"length": 32 * MIB - 1},
        {"rates": [None]},
        {"memory": 0},
        {"memory": 12 * MIB},
        {"length": 7 * MIB, "from_bytes": 0},
    ],
)
def test_what_one_node_does_as_well_has_no_plan(change):
    assert plan_of(**change) is None


def test_memory_bounds_how_many_nodes_work():
    assert plan_of(memory=16 * MIB).width == 2
    assert plan_of(memory=20 * MIB).width == 3
    assert plan_of(rates=[None] * 14, memory=40 * MIB).width == 8


@pytest.mark.parametrize(("length", "start"), [(33 * MIB, 0), (32 * MIB + 1, 7), (40 * MIB - 1, 123)])
def test_units_are_the_span_without_a_gap(length, start):
    plan = plan_of(length, start)
    spans = [plan.bytes_of(number) for number in range(plan.units)]
    assert (spans[0].start, spans[-1].stop) == (start, start + length)
    assert all(a.stop == b.start for a, b in zip(spans, spans[1:], strict=False))
    assert all(0 < span.length <= plan.unit for span in spans)


class Run:
    """Sources of different rates, some of which fail or hang, and a client; time is simulated."""

    def __init__(self, draw, plan, rates, *, dies, hangs, client_rate):
        self.draw = draw
        self.plan = plan
        self.schedule = TransferSchedule(plan)
        self.rates = rates
        #: source → after how many units it is lost, or says nothing more.
        self.dies = dies
        self.hangs = hangs
        self.client_s = plan.unit / client_rate
        self.now = 0.0
        self.events = []
        self.brought = dict.fromkeys(rates, 0)
        self.most = 0
        self.got = []
        self.idle = set(rates)
        self.client_at = 0.0

    def begin(self, source):
        number = self.schedule.take(source, self.now)
        self.most = max(self.most, self.schedule.buffers)
        if number is None:
            return
        self.idle.discard(source)
        if self.brought[source] >= self.hangs.get(source, 10**9):
            # Reading from it times out in the end.
            heapq.heappush(self.events, (self.now + 10.0, self.draw.random(), source, number, False))
            return
        took = self.plan.unit / self.rates[source] * self.draw.uniform(0.7, 1.5)
        lives = self.brought[source] < self.dies.get(source, 10**9)
        heapq.heappush(self.events, (self.now + took, self.draw.random(), source, number, lives))

    def drink(self):
        while self.now >= self.client_at:
            unit = self.schedule.consume()
            if unit is None:
                return
            self.got.append(unit)
            self.client_at = self.now + self.client_s

    def run(self):
        for _ in range(100_000):
            self.drink()
            if self.schedule.is_over:
                return
            for source in self.draw.sample(sorted(self.idle), len(self.idle)):
                self.begin(source)
            moments = [self.client_at] if self.client_at > self.now else []
            moments += [self.events[0][0]] if self.events else []
            moments.append(self.now + LATE_MIN_S)
            self.now = max(self.now + 1e-6, min(moments))
            while self.events and self.events[0][0] <= self.now:
                _when, _, source, number, lives = heapq.heappop(self.events)
                if not lives:
                    self.schedule.failed(source, number)
                    continue
                self.schedule.done(source, number, self.now)
                self.brought[source] += 1
                self.idle.add(source)
        raise AssertionError(f"it does not end: {self.schedule}")


def random_run(seed):
    draw = random.Random(seed)
    count = draw.randint(2, 8)
    unit = 1000
    ahead = draw.randint(4, 20)
    units = draw.randint(2, 60)
    length = units * unit - draw.randrange(unit)
    plan = TransferPlan(Span(17, 17 + length), unit, min(count, ahead - 2), ahead)
    # What is known beforehand may be wrong.
    known = tuple(draw.choice((None, 50.0, 20_000.0)) for _ in range(plan.width))
    plan = replace(plan, rates=draw.choice(((), known)))
    rates = {n: draw.choice((100.0, 20_000.0, 20_000.0, 80_000.0)) for n in range(plan.width)}
    lost = draw.sample(range(plan.width), draw.randint(0, plan.width - 1))
    dies = {n: draw.randint(0, 10) for n in lost if draw.random() < 0.6}
    hangs = {n: draw.randint(0, 10) for n in lost if n not in dies}
    client_rate = draw.choice((5_000.0, 1e9))
    return Run(draw, plan, rates, dies=dies, hangs=hangs, client_rate=client_rate)


@every("seed", range(SEEDS))
def test_every_unit_comes_once_in_order_within_the_bound_whatever_is_lost(seed):
    run = random_run(seed)
    run.run()
    assert run.got == list(range(run.plan.units))
    assert run.most <= run.plan.ahead
    assert run.schedule.buffers <= run.plan.ahead


def seconds(rates, *, dies=None, hangs=None, units=200, known=()):
    plan = TransferPlan(Span(0, units * MIB), MIB, len(rates), len(rates) * 2 + 2, known)
    run = Run(random.Random(1), plan, rates, dies=dies or {}, hangs=hangs or {}, client_rate=1e12)
    run.run()
    return run.now


def test_several_nodes_are_nearly_so_many_times_as_quick():
    one = 200 * MIB / 20e6
    for count in (2, 3, 4, 8):
        assert one / seconds(dict.fromkeys(range(count), 20e6)) >= 0.8 * count


def test_a_slow_node_does_not_pace_the_others():
    assert 200 * MIB / 20e6 / seconds({0: 20e6, 1: 20e6, 2: 2e6}) >= 1.5


def test_what_is_known_of_a_slow_node_keeps_it_from_units_that_the_client_would_wait_for():
    schedule = TransferSchedule(TransferPlan(Span(0, 100 * MIB), MIB, 3, 8, (20e6, 20e6, 1e6)))
    assert [schedule.take(n, 0.0) for n in range(3)] == [0, 1, None]
    rates = {0: 20e6, 1: 20e6, 2: 1e6}
    assert seconds(rates, known=(20e6, 20e6, 1e6), units=6) < seconds(rates, units=6)


def test_a_node_that_was_slow_before_is_tried_again():
    schedule = TransferSchedule(TransferPlan(Span(0, 100 * MIB), MIB, 2, 8, (20e6, 1e6)))
    assert schedule.take(1, 0.0) is None
    assert schedule.take(1, PROBE_S + 0.1) is not None


def test_a_lost_node_costs_its_share_and_one_that_hangs_little_more():
    one = 200 * MIB / 20e6
    assert one / seconds({0: 20e6, 1: 20e6, 2: 20e6}, dies={1: 20}) >= 1.8
    assert one / seconds({0: 20e6, 1: 20e6, 2: 20e6}, hangs={1: 20}) >= 1.6


def test_what_comes_twice_is_used_once():
    schedule = TransferSchedule(TransferPlan(Span(0, 10), 1, 2, 5))
    assert schedule.take(0, 0.0) == 0
    assert schedule.take(1, 0.0) == 1
    assert schedule.done(1, 1, 0.1)
    assert schedule.take(1, 0.5) == 0, "the first is late"
    assert schedule.done(1, 0, 0.6)
    assert schedule.consume() == 0
    assert not schedule.done(0, 0, 5.0)
    assert schedule.consume() == 1
    assert schedule.consume() is None
    assert str(schedule) == "2 of 10 sent; held: none; under way: none"
