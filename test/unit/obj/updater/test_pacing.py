"""Rate limit of updates for one container."""

from collections import Counter
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.obj.updater.pacing import ContainerPacer


class Pass:
    """The context of a pass in which time passes by waiting only."""

    def __init__(self, seconds=1000.0):
        self.clock = ManualClock(0.0)
        self.deadline_s = seconds
        self.counters = SimpleNamespace(add=self.add)
        self.counts = Counter()
        self.stop = SimpleNamespace(wait=self.wait)
        self.ends_at_s = float("inf")

    def add(self, name, count=1):
        self.counts[name] += count

    def wait(self, seconds):
        self.clock.advance(seconds)
        return self.clock.monotonic() >= self.ends_at_s


def run(updates, *, held_max=100, work=None, **more):
    """The updates as they were handed out, each with its moment."""
    context = work or Pass(**more)
    pacer = ContainerPacer(context, per_second=2, buckets=1000, held_max=held_max)
    synced = [(update, context.clock.monotonic()) for update in pacer.pace(iter(updates), lambda u: u[0])]
    return synced, context.counts


def test_updates_of_many_containers_go_at_once():
    synced, counts = run(["a1", "b1", "c1"])
    assert synced == [("a1", 0.0), ("b1", 0.0), ("c1", 0.0)] and not counts


def test_those_of_one_container_have_a_pace_and_their_order():
    synced, counts = run(["a1", "a2", "a3", "b1"])
    assert synced == [("a1", 0.0), ("b1", 0.0), ("a2", 0.5), ("a3", 1.0)]
    assert counts == {"deferrals": 2, "drains": 2}


def test_what_does_not_fit_into_memory_waits_for_the_next_pass():
    synced, counts = run(["a1", "a2", "a3", "a4"], held_max=1)
    assert [update for update, _at in synced] == ["a1", "a2"]
    assert counts == {"deferrals": 1, "skips": 2, "drains": 1}


@pytest.mark.parametrize(("seconds", "sent"), [(0.4, 1), (0.6, 2), (1000.0, 5)])
def test_what_would_be_late_for_the_next_pass_waits_for_it(seconds, sent):
    synced, counts = run(["a1", "a2", "a3", "a4", "a5"], seconds=seconds)
    assert len(synced) == sent
    assert counts["skips"] == 5 - sent


def test_an_end_that_was_asked_for_is_not_waited_past():
    work = Pass()
    work.ends_at_s = 0.5
    synced, _counts = run(["a1", "a2", "a3"], work=work)
    assert [update for update, _at in synced] == ["a1"]
