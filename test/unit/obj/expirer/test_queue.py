"""The expirer takes what is due and its own from the queue, in a fair order (replication.md §8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.base.timestamp import Timestamp
from swift.cluster.expiry import ASYNC_DELETE_TYPE, deletion_task, parse_task
from swift.obj.expirer.queue import ExpirerQueue, interleaved, is_expected
from swift.obj.expirer.settings import Delays

NOW_S = 1_700_000_000.0


class Rows:
    """A client that has listings."""

    def __init__(self, containers):
        self._containers = containers

    def containers(self, account):
        return iter([{"name": name} for name in self._containers])

    def objects(self, account, container):
        rows = [row if isinstance(row, tuple) else (row, "text/plain") for row in self._containers[container]]
        return iter([{"name": name, "content_type": kind} for name, kind in rows])


def queue(containers, **more):
    return ExpirerQueue(Rows(containers), ".expiring_objects", more.pop("delays", Delays({})), **more)


def names(found):
    return [task.name for task in found]


def test_only_containers_and_tasks_whose_time_has_come_are_taken():
    tasks = ["1699999999-a/c/o", "1700000000-a/c/p", "1700000001-a/c/q"]
    found = queue({"1699919979": tasks, "1700092800": []})
    assert list(found.containers(NOW_S)) == ["1699919979"]
    assert names(found.due("1699919979", NOW_S)) == tasks[:2]


def test_a_task_tells_the_object_and_when_it_expired():
    (task,) = queue({"1": ["0000000005-AUTH_ä/c/o/with-dashes/"]}).due("1", NOW_S)
    assert task.path == EntityPath("AUTH_ä", "c", "o/with-dashes/")
    assert task.timestamp == Timestamp(5)
    assert not task.is_async_delete


@pytest.mark.parametrize(
    "name", ["", "x", "5", "5-", "5-a", "5-a/c", "5-a/c/", "5-/c/o", "soon-a/c/o", "-a/c/o"]
)
def test_what_is_no_task_is_left_alone_and_told(name):
    messages = []
    assert (
        list(queue({"1": [name, "0000000005-a/c/o"]}, warn=messages.append).due("1", NOW_S))[0].path.obj
        == "o"
    )
    assert len(messages) == 1
    assert parse_task(name) is None


def test_what_is_no_container_of_the_queue_is_left_alone():
    messages = []
    assert list(queue({"notes": [], "0000086379": []}, warn=messages.append).containers(NOW_S)) == [
        "0000086379"
    ]
    assert len(messages) == 1


def test_a_name_with_a_digit_too_many_does_not_hide_later_containers():
    messages = []
    found = queue({"16998335999": [], "1699919979": [], "1700092800": []}, warn=messages.append)
    assert list(found.containers(NOW_S)) == ["1699919979"]
    assert len(messages) == 1 and "16998335999" in messages[0]


def test_deletions_that_clients_asked_for_come_at_once_and_to_the_moment():
    path = EntityPath("a", "c", "seg/1")
    name = deletion_task(path, Timestamp("1699999999.54355"))
    assert name == "1699999999.54355-a/c/seg/1"
    found = queue({"1": [(name, ASYNC_DELETE_TYPE)]}, delays=Delays({("a", None): 1e6}))
    (task,) = found.due("1", NOW_S)
    assert (task.is_async_delete, task.timestamp.normal, task.path) == (True, "1699999999.54355", path)


@pytest.mark.parametrize(("container", "is_due"), [("c", False), ("other", False), ("soon", True)])
def test_objects_may_stay_for_a_while_beyond_their_time(container, is_due):
    delays = Delays.parse({"delay_reaping_a%20b": "100", "delay_reaping_a%20b/soon": "5", "interval": "3"})
    found = queue({"1": [f"1699999990-a b/{container}/o"]}, delays=delays)
    assert bool(list(found.due("1", NOW_S))) is is_due


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delay_reaping_", "5"),
        ("delay_reaping_a/", "5"),
        ("delay_reaping_a/b/c", "5"),
        ("delay_reaping_a", "x"),
    ],
)
def test_a_delay_that_means_nothing_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        Delays.parse({name: value})


def test_processes_share_the_queue_and_each_task_is_of_one():
    tasks = [f"0000000005-a/c/o{number}" for number in range(50)]
    shares = [
        names(queue({"1": tasks}, processes=3, process=process).due("1", NOW_S)) for process in range(3)
    ]
    assert sorted(sum(shares, [])) == sorted(tasks)
    assert all(shares)


@pytest.mark.parametrize(
    ("container", "usual"), [(1699919979, True), (1699920000, True), (1699960000, False)]
)
def test_usual_places_of_the_queue(container, usual):
    assert is_expected(container) is usual


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())), st.integers(1, 10))
def test_all_take_turns_and_none_is_lost(items, size_max):
    taken = list(interleaved(items, lambda item: item[0], size_max))
    assert sorted(taken) == sorted(items)
    for key in "abc":
        # In a window nobody is overtaken by another of its own kind.
        window = [item for item in interleaved(items, lambda item: item[0], len(items) + 1) if item[0] == key]
        assert window == [item for item in items if item[0] == key]


def test_one_container_does_not_keep_the_others_waiting():
    items = [("big", n) for n in range(5)] + [("small", 0)]
    assert list(interleaved(items, lambda item: item[0], 100))[:2] == [("big", 0), ("small", 0)]
