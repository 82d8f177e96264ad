"""Partitions that are being written are left alone, unless they lacked something when last looked at."""

import math

import pytest

from swift.base.clock import ManualClock
from swift.obj.compare.task import Calm

VIEW, NEW_VIEW = object(), object()


@pytest.fixture
def clock():
    return ManualClock(1_500_000_000.0)


@pytest.fixture
def calm(clock):
    return Calm(clock.monotonic, calm_s=30.0, busy_s=600.0)


def waits(calm, *, idle_s=1.0, view=VIEW, device="sda", policy=0, part=7):
    return calm.may_wait(device, policy, view, part, idle_s)


def found(calm, *, settled=(), view=VIEW):
    calm.settled("sda", 0, view, settled)


def test_what_was_never_looked_at_does_not_wait(calm):
    assert not waits(calm)


def test_what_was_settled_waits_while_it_is_written_and_no_longer(calm):
    found(calm, settled=[7])
    assert waits(calm, idle_s=29.9)
    assert not waits(calm, idle_s=30.0)
    assert not waits(calm, idle_s=math.inf)


def test_when_a_partner_may_have_lost_everything_nothing_waits(calm):
    found(calm, settled=[7, 8])
    calm.forget("sda", 0)
    assert not waits(calm) and not waits(calm, part=8)


def test_what_never_rests_is_looked_at_now_and_then(calm, clock):
    found(calm, settled=[7])
    clock.advance(599)
    assert waits(calm)
    clock.advance(1)
    assert not waits(calm)
    found(calm, settled=[7])
    assert waits(calm)


def test_a_new_ring_makes_everything_worth_a_look(calm):
    found(calm, settled=[7])
    assert not waits(calm, view=NEW_VIEW)
    assert not waits(calm), "what the old ring said is forgotten"


@pytest.mark.parametrize("other", [{"device": "sdb"}, {"policy": 1}, {"part": 8}])
def test_each_partition_of_a_device_and_policy_is_its_own(calm, other):
    found(calm, settled=[7])
    assert not waits(calm, **other)
