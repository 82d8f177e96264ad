"""Partitions that are being written are left alone, unless they lacked something when last looked at."""

import math

import pytest

from swift.base.clock import ManualClock
from swift.obj.replication.task import UnchangedPartitions

VIEW, NEW_VIEW = object(), object()


@pytest.fixture
def clock():
    return ManualClock(1_500_000_000.0)


@pytest.fixture
def unchanged_partitions(clock):
    return UnchangedPartitions(clock.monotonic, idle_after_s=30.0, recheck_s=600.0)


def waits(unchanged_partitions, *, idle_s=1.0, view=VIEW, device="sda", policy=0, part=7):
    return unchanged_partitions.may_skip(device, policy, view, part, idle_s)


def found(unchanged_partitions, *, settled=(), view=VIEW):
    unchanged_partitions.note_in_sync("sda", 0, view, settled)


def test_what_was_never_looked_at_does_not_wait(unchanged_partitions):
    assert not waits(unchanged_partitions)


def test_what_was_settled_waits_while_it_is_written_and_no_longer(unchanged_partitions):
    found(unchanged_partitions, settled=[7])
    assert waits(unchanged_partitions, idle_s=29.9)
    assert not waits(unchanged_partitions, idle_s=30.0)
    assert not waits(unchanged_partitions, idle_s=math.inf)


def test_when_a_partner_may_have_lost_everything_nothing_waits(unchanged_partitions):
    found(unchanged_partitions, settled=[7, 8])
    unchanged_partitions.forget("sda", 0)
    assert not waits(unchanged_partitions) and not waits(unchanged_partitions, part=8)


def test_what_never_rests_is_looked_at_now_and_then(unchanged_partitions, clock):
    found(unchanged_partitions, settled=[7])
    clock.advance(599)
    assert waits(unchanged_partitions)
    clock.advance(1)
    assert not waits(unchanged_partitions)
    found(unchanged_partitions, settled=[7])
    assert waits(unchanged_partitions)


def test_a_new_ring_makes_everything_worth_a_look(unchanged_partitions):
    found(unchanged_partitions, settled=[7])
    assert not waits(unchanged_partitions, view=NEW_VIEW)
    assert not waits(unchanged_partitions), "what the old ring said is forgotten"


@pytest.mark.parametrize("other", [{"device": "sdb"}, {"policy": 1}, {"part": 8}])
def test_each_partition_of_a_device_and_policy_is_its_own(unchanged_partitions, other):
    found(unchanged_partitions, settled=[7])
    assert not waits(unchanged_partitions, **other)
