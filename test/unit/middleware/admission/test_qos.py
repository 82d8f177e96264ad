"""A rate is divided fairly: guarantees are kept, the sum is never above capacity.

See doc/explanation/admission.md.

``SWIFT_ADMISSION_SEEDS`` is how many random loads are tried.
"""

import os
import random

import pytest

from swift.middleware.admission.qos import QosClasses, RateLimit
from test.support.checks import every

SEEDS = int(os.environ.get("SWIFT_ADMISSION_SEEDS", "200"))
BURST_S = 0.5
CAPACITY = 1000.0
PIECE = 10.0


class Load:
    """Greedy clients of lanes: each connection takes a piece whenever it may, and waits as it is told."""

    def __init__(self, qos_classes, connections):
        self.qos_classes = qos_classes
        self.shapes = {
            key: (qos_class.guaranteed, qos_class.weight) for key, qos_class in qos_classes._classes.items()
        }
        self.connections = connections
        self.used = dict.fromkeys(connections, 0.0)
        self.waits = {(key, n): 0.0 for key, count in connections.items() for n in range(count)}

    def run(self, begin, end, step_s, draw, *, is_on=lambda key, now: True):
        now = begin
        while now < end:
            turns = list(self.waits)
            draw.shuffle(turns)
            for turn in turns:
                key = turn[0]
                if not is_on(key, now) or self.waits[turn] > now:
                    continue
                guaranteed, weight = self.shapes.get(key, (0.0, 1.0))
                self.qos_classes.set_class(key, guaranteed=guaranteed, weight=weight)
                wait_s = self.qos_classes.wait_s(key, now)
                if wait_s:
                    self.waits[turn] = now + wait_s
                    continue
                self.qos_classes.consume(key, PIECE, now)
                self.used[key] += PIECE
            now += step_s
        return now


def make_classes(**guarantees):
    qos_classes = QosClasses(CAPACITY, BURST_S, 0.0)
    for key, (guaranteed, weight) in guarantees.items():
        qos_classes.set_class(key, guaranteed=guaranteed, weight=weight)
    return qos_classes


@pytest.mark.long
@every("seed", range(SEEDS))
def test_whatever_the_load_the_sum_keeps_to_capacity_and_guarantees_are_kept(seed):
    draw = random.Random(seed)
    count = draw.randint(1, 6)
    left, guarantees, connections = CAPACITY, {}, {}
    for n in range(count):
        guaranteed = draw.choice((0.0, draw.uniform(0, left)))
        left -= guaranteed
        guarantees[f"l{n}"] = (guaranteed, draw.choice((0.5, 1.0, 3.0)))
        connections[f"l{n}"] = draw.choice((1, 2, 30))
    qos_classes = make_classes(**guarantees)
    load = Load(qos_classes, connections)
    sleepers = {key for key in connections if draw.random() < 0.3}
    wakes_at = draw.uniform(1, 6)
    load.run(0.0, 12.0, 0.02, draw, is_on=lambda key, now: key not in sleepers or now > wakes_at)
    pieces = PIECE * sum(connections.values())
    assert sum(load.used.values()) <= CAPACITY * (12.0 + 2 * BURST_S) + pieces
    for key, (guaranteed, _weight) in guarantees.items():
        asked_s = 12.0 - (wakes_at if key in sleepers else 0.0)
        # What a lane's connections may take in a step bounds it as well.
        able = connections[key] * PIECE / 0.02 * asked_s
        assert load.used[key] >= min(0.97 * guaranteed * asked_s, 0.5 * able) - 4 * PIECE, key
    busy = [key for key in connections if connections[key] == 30 and key not in sleepers]
    if busy:
        assert sum(load.used.values()) >= 0.97 * CAPACITY * 12.0, "nothing is left while somebody asks"


@pytest.mark.long
def test_a_thousand_connections_gain_nothing():
    qos_classes = make_classes(one=(0.0, 1.0), many=(0.0, 1.0))
    load = Load(qos_classes, {"one": 4, "many": 1000})
    load.run(0.0, 20.0, 0.01, random.Random(1))
    assert load.used["one"] >= 0.9 * 20.0 * CAPACITY / 2
    assert load.used["many"] <= 1.1 * (20.0 + 2 * BURST_S) * CAPACITY / 2 + 1000 * PIECE


def test_weights_divide_what_is_free():
    qos_classes = make_classes(a=(0.0, 1.0), b=(0.0, 3.0))
    load = Load(qos_classes, {"a": 5, "b": 5})
    load.run(0.0, 20.0, 0.01, random.Random(2))
    assert load.used["b"] / load.used["a"] == pytest.approx(3.0, rel=0.05)


def test_an_idle_guarantee_is_lent_and_taken_back_at_once():
    qos_classes = make_classes(kept=(800.0, 1.0), other=(0.0, 1.0))
    load, draw = Load(qos_classes, {"kept": 20, "other": 20}), random.Random(3)
    now = load.run(0.0, 10.0, 0.01, draw, is_on=lambda key, _now: key == "other")
    assert load.used["other"] >= 0.97 * 10.0 * CAPACITY
    load.run(now, now + 5.0, 0.01, draw)
    assert load.used["kept"] >= 0.97 * 5.0 * 800


def test_who_comes_seldom_is_let_in_however_full_it_is():
    qos_classes = make_classes(busy=(0.0, 1.0))
    load, draw = Load(qos_classes, {"busy": 200}), random.Random(4)
    now, refused = 0.0, 0
    for _ in range(20):
        now = load.run(now, now + 1.0, 0.02, draw)
        qos_classes.set_class("seldom")
        refused += qos_classes.wait_s("seldom", now) > 0
        qos_classes.consume("seldom", PIECE, now)
    assert refused == 0


def test_what_one_stream_took_at_once_is_paid_back_before_anything_else():
    qos_classes = make_classes(a=(100.0, 1.0))
    assert qos_classes.wait_s("a", 0.0) == 0
    qos_classes.consume("a", 2000.0, 0.0)
    wait_s = qos_classes.wait_s("a", 0.0)
    assert 0 < wait_s < 3
    assert qos_classes.wait_s("a", wait_s + 0.1) == 0


def test_less_capacity_than_promised_is_divided_by_what_was_promised():
    qos_classes = make_classes(a=(600.0, 1.0), b=(300.0, 1.0))
    qos_classes.set_capacity(450.0, 0.0)
    load = Load(qos_classes, {"a": 20, "b": 20})
    load.run(0.0, 20.0, 0.01, random.Random(5))
    assert load.used["a"] / load.used["b"] == pytest.approx(2.0, rel=0.15)
    assert sum(load.used.values()) <= 450 * 20 + CAPACITY * BURST_S + 40 * PIECE


def test_without_a_capacity_nothing_waits():
    qos_classes = QosClasses(None, BURST_S, 0.0)
    qos_classes.set_class("a")
    for _ in range(1000):
        assert qos_classes.wait_s("a", 0.0) == 0
        qos_classes.consume("a", 1e9, 0.0)


def test_lanes_that_nobody_asks_for_are_forgotten():
    qos_classes = QosClasses(CAPACITY, BURST_S, 0.0)
    for n in range(500):
        qos_classes.set_class(f"l{n}")
        qos_classes.wait_s(f"l{n}", n * 0.01)
    qos_classes.refill(100.0)
    assert len(qos_classes._classes) == 0


def test_a_bound_is_a_rate_and_a_burst():
    bound, now, used = RateLimit(100.0, BURST_S, 0.0), 0.0, 0.0
    while now < 10.0:
        if bound.wait_s(now) == 0:
            bound.consume(5.0)
            used += 5.0
        now += 0.01
    assert used == pytest.approx(100.0 * 10 + 50, abs=10)
    bound.consume(100.0)
    assert bound.wait_s(now) == pytest.approx(1.0, abs=0.1)
