"""Dispersion is what counting replicas tier by tier and partition by partition gives, also for odd tables."""

from __future__ import annotations

from array import array
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from swift.ring.dispersion import heads_of, levels_of, measure, most_replicas, repeating
from swift.ring.tiers import tier_keys

PARTS = 8


def record(dev_id, region=1, zone=1, ip="a", weight=1.0):
    return {"id": dev_id, "region": region, "zone": zone, "ip": ip, "weight": weight}


@st.composite
def rings(draw):
    """Devices, some of them gone or weightless, and any table of them, the last row perhaps a part of one."""
    places = draw(
        st.lists(
            st.tuples(
                *[st.integers(1, 2), st.integers(1, 2), st.sampled_from("ab"), st.sampled_from([0.0, 1.0])]
            ),
            min_size=1,
            max_size=7,
        )
    )
    records = [record(dev_id, *place) for dev_id, place in enumerate(places)]
    lengths = [PARTS] * draw(st.integers(0, 3)) + [draw(st.integers(1, PARTS))]
    device = st.sampled_from(range(len(records)))
    rows = [array("H", draw(st.lists(device, min_size=n, max_size=n))) for n in lengths]
    return records, rows


def counted(records, rows, replicas):
    """The same, one by one; the keys of tiers that hold nothing are left out."""
    most = most_replicas(records, replicas)
    shared = min(len(row) for row in rows)
    graph, total = {}, 0
    for depth in range(4):
        held = {tier_keys(records[dev])[depth] for row in rows for dev in row[:shared]}
        for key in held:
            graph[key] = [0] * (len(rows) + 1)
    for part in range(shared):
        worst = 0
        for depth in range(4):
            there = Counter(tier_keys(records[row[part]])[depth] for row in rows)
            worst = max(worst, sum(max(0, count - most.get(key, 0)) for key, count in there.items()))
            for key, count in there.items():
                graph[key][count] += 1
        total += worst
    for row in graph.values():
        row[0] = PARTS - sum(row)
    return graph, 100.0 * total / (PARTS * replicas)


@given(rings())
def test_it_is_what_counting_gives(ring):
    records, rows = ring
    replicas = sum(len(row) for row in rows) / PARTS
    assert measure(rows, records, parts=PARTS, replicas=replicas) == counted(records, rows, replicas)


def test_a_ring_without_rows_has_none():
    assert measure([], [record(0)], parts=PARTS, replicas=3) == ({}, 0.0)


def test_replicas_in_one_zone_count_once_however_many_tiers_they_share():
    records = [record(0), record(1), record(2, zone=2)]
    rows = [array("H", [0] * PARTS), array("H", [1] * PARTS)]
    graph, percent = measure(rows, records, parts=PARTS, replicas=2)
    assert percent == 50.0
    assert graph[(1, 1)] == [0, 0, PARTS] and (1, 2) not in graph


def test_a_tier_without_weight_should_hold_nothing():
    records = [record(0), record(1, zone=2, weight=0.0)]
    rows = [array("H", [0] * PARTS), array("H", [1] * PARTS)]
    assert measure(rows, records, parts=PARTS, replicas=2)[1] == 50.0
    assert most_replicas([record(0, weight=0.0), None], 2) == {}


def test_only_partitions_that_every_row_has_are_compared():
    heads = heads_of([array("H", range(4)), array("H", range(2))])
    assert [list(head) for head in heads] == [[0, 1], [0, 1]]


def test_one_replica_repeats_nothing():
    level = levels_of([record(0), None])[0]
    assert repeating(level, [array("H", [0, 0])], [0, 1]) == ([], [])
