"""DELETE follows its table (spec: object-server.md §8)."""

from __future__ import annotations

import pytest

from swift.base.timestamp import ZERO, Timestamp
from swift.obj.delete import DeletePlan, decide_delete
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectState

R_NEWER, R_OLDER = Timestamp(20), Timestamp(5)
D = Timestamp(10)


def state(kind):
    if kind == ABSENT:
        return ObjectState()
    metadata = {"X-Delete-At": "0000000007"} if kind in (LIVE, EXPIRED) else {}
    return ObjectState(kind, metadata, D, D if kind in (LIVE, EXPIRED) else ZERO)


@pytest.mark.parametrize(
    ("kind", "timestamp", "if_delete_at", "status", "tombstone"),
    [
        (ABSENT, R_NEWER, None, 404, True),
        (ABSENT, R_NEWER, 7, 404, False),
        (LIVE, R_NEWER, None, 204, True),
        (LIVE, R_NEWER, 7, 204, True),
        (LIVE, R_NEWER, 8, 412, False),
        (LIVE, R_OLDER, None, 409, False),
        (LIVE, R_OLDER, 7, 409, False),
        (LIVE, D, None, 409, False),
        (EXPIRED, R_NEWER, None, 404, True),
        (EXPIRED, R_NEWER, 7, 204, True),
        (EXPIRED, R_NEWER, 8, 412, False),
        (EXPIRED, R_OLDER, None, 404, False),
        (EXPIRED, R_OLDER, 7, 409, False),
        (DELETED, R_NEWER, None, 404, True),
        (DELETED, R_NEWER, 7, 412, False),
        (DELETED, R_OLDER, None, 404, False),
        (DELETED, R_OLDER, 7, 409, False),
    ],
)
def test_the_table(kind, timestamp, if_delete_at, status, tombstone):
    verdict = decide_delete(state(kind), DeletePlan(timestamp, if_delete_at, None))
    assert (verdict.status, verdict.tombstone) == (status, tombstone)


def test_a_delete_older_than_reclaim_age_leaves_nothing(bench):
    response = bench.ask("DELETE", headers={"x-timestamp": "1000"})
    assert response.status == 404
    assert response.headers["x-backend-timestamp"] == Timestamp(1000).internal
    assert bench.files() == []


@pytest.mark.parametrize("value", ["bad", "", "9" * 40, "nan", "inf", "1_0", "²"])
def test_a_bad_x_if_delete_at_is_refused(bench, value):
    assert bench.ask("DELETE", headers={"x-if-delete-at": value}).status == 400
    assert bench.files() == []


def test_what_is_not_deleted_by_x_if_delete_at_leaves_no_directory(bench):
    assert bench.ask("DELETE", headers={"x-if-delete-at": "5"}).status == 404
    assert list((bench.root / "sda").glob("objects/*/*/*")) == []
