"""Which containers have waited longest for an update."""

from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.obj.updater.task import OldestFailures

FAILED = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 50)))


def remembered(failed, entries_max=3):
    oldest = OldestFailures(entries_max)
    for container, time in failed:
        oldest.add("a", container, Timestamp(time))
    return oldest


@given(FAILED)
def test_with_room_the_oldest_of_each_container_is_known(failed):
    have = {container: text for text, _account, container in remembered(failed, 100).entries()}
    assert have == {
        container: Timestamp(min(time for name, time in failed if name == container)).normal
        for container in {name for name, _time in failed}
    }


@given(FAILED)
def test_memory_is_bounded_and_the_order_is_by_age(failed):
    entries = remembered(failed).entries()
    assert len(entries) <= 3
    assert entries == sorted(entries)


def test_those_that_wait_longest_stay():
    oldest = remembered([("a", 5), ("b", 3), ("c", 9), ("d", 1), ("a", 2)])
    assert [entry[2] for entry in oldest.entries()] == ["d", "a", "b"]


def test_what_another_share_remembers_is_taken_over():
    one, other = remembered([("a", 5)]), remembered([("a", 4), ("b", 6)])
    one.add_entries(other.entries())
    assert one.entries() == other.entries() and len(one) == 2


def test_the_report_has_ages_and_so_many_entries():
    stats = remembered([("a", 5), ("b", 3)]).stats(10.0, 1)
    assert stats["failures_oldest_timestamp_age"] == 7.0
    assert stats["failures_account_container_count"] == 2
    assert stats["failures_oldest_timestamp_account_containers"] == {
        "oldest_count": 1,
        "oldest_entries": [{"timestamp": 3.0, "account": "a", "container": "b"}],
    }
    assert stats["tracker_memory_usage"] > 0
    assert OldestFailures(3).stats(10.0, 1)["failures_oldest_timestamp_age"] is None
