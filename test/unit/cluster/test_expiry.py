"""Expiring objects land in the recorded queue containers (spec: replication.md §8.1)."""

from __future__ import annotations

import pytest

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.expiry import deletion_task, parse_task, queue_container, queue_task

PATH = EntityPath("AUTH_test", "c", "o1")
HASHER = PathHasher(b"goldenprefix", b"goldensuffix")


@pytest.mark.parametrize(
    ("delete_at", "container"),
    [(1700000000, "1699919979"), (6000000000, "5999961579"), (86400, "0000086379"), (1, "0000000000")],
)
def test_recorded_containers(delete_at, container):
    assert queue_container(HASHER, PATH, delete_at) == container


def test_a_task_is_named_by_its_time_and_object():
    assert queue_task(PATH, 5) == "0000000005-AUTH_test/c/o1"
    assert queue_task(PATH, 10**12) == "9999999999-AUTH_test/c/o1"


def test_a_deletion_is_named_by_the_whole_moment_at_which_it_was_asked_for():
    name = deletion_task(PATH, Timestamp("1795323158.54355"))
    assert name == "1795323158.54355-AUTH_test/c/o1"
    assert parse_task(name) == (Timestamp("1795323158.54355"), PATH)
