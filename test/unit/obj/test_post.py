"""POST decides by times alone (spec: object-server.md §5)."""

from __future__ import annotations

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import ZERO, Timestamp
from swift.http.response import HTTPError
from swift.obj.post import PostPlan, decide_post
from swift.policy.policy import Policy
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectKey, ObjectState

KEY = ObjectKey("sda", "1", Policy(0, "gold"), EntityPath("a", "c", "o"), "f" * 32)


def state(meta_at, ctype_at, *, data_at=1, posted=True):
    return ObjectState(
        LIVE,
        {"Content-Type": "old/type", "X-Object-Meta-Old": "1"},
        Timestamp(meta_at),
        Timestamp(data_at),
        Timestamp(ctype_at),
        posted={"X-Timestamp": "x", "X-Object-Meta-Old": "1"} if posted else None,
    )


def plan(at, content_type=None, ctype_at=None):
    ctype_timestamp = ZERO if content_type is None else Timestamp(ctype_at if ctype_at is not None else at)
    return PostPlan(Timestamp(at), {"X-Object-Meta-New": "2"}, content_type, ctype_timestamp, None, None)


def decide(state, wanted):
    return decide_post(state, wanted, KEY)


@pytest.mark.parametrize("kind", [ABSENT, DELETED, EXPIRED])
def test_what_is_not_there_cannot_be_posted_to(kind):
    with pytest.raises(HTTPError) as caught:
        decide(ObjectState(kind), plan(5))
    assert caught.value.response.status == 404


@pytest.mark.parametrize("candidate", [plan(3), plan(2), plan(2, "new/type", 2), plan(3, "new/type", 1.5)])
def test_what_is_not_newer_in_any_respect_conflicts(candidate):
    with pytest.raises(HTTPError) as caught:
        decide(state(3, 2), candidate)
    assert caught.value.response.status == 409
    assert caught.value.response.headers["x-backend-timestamp"] == Timestamp(3).internal


def test_a_newer_post_starts_metadata_afresh_and_carries_the_type_of_an_earlier_one():
    change = decide(state(3, 2), plan(4))
    assert change.metadata == {
        "X-Timestamp": Timestamp(4).internal,
        "X-Object-Meta-New": "2",
        "Content-Type": "old/type",
        "Content-Type-Timestamp": Timestamp(2).internal,
        "name": "/a/c/o",
    }
    assert change.stored_ctype_timestamp == Timestamp(2)


def test_the_type_that_came_with_the_body_is_not_repeated():
    change = decide(state(1, 1, posted=False), plan(4))
    assert "Content-Type" not in change.metadata
    assert change.stored_ctype_timestamp is None
    assert change.content_type == "old/type"


def test_an_older_post_with_a_newer_type_changes_only_the_type():
    change = decide(state(4, 3), plan(3.5, "new/type"))
    assert change.timestamp == Timestamp(4)
    assert change.metadata["X-Object-Meta-Old"] == "1"
    assert "X-Object-Meta-New" not in change.metadata
    assert (change.metadata["Content-Type"], change.ctype_timestamp) == ("new/type", Timestamp(3.5))


def test_a_type_newer_than_the_body_but_posted_before_it_conflicts():
    with pytest.raises(HTTPError) as caught:
        decide(state(5, 5, data_at=5, posted=False), plan(4, "new/type", 6))
    assert caught.value.response.status == 409


def test_sysmeta_of_a_post_is_ignored(bench):
    bench.ask("PUT", headers={"x-object-sysmeta-a": "kept"}, body=b"x")
    response = bench.ask("POST", headers={"x-object-sysmeta-a": "no", "x-object-transient-sysmeta-b": "1"})
    assert response.headers["x-object-sysmeta-a"] == "kept"
    shown = bench.ask("HEAD").headers
    assert (shown["x-object-sysmeta-a"], shown["x-object-transient-sysmeta-b"]) == ("kept", "1")


@pytest.mark.parametrize(
    "headers",
    [{"x-delete-at": "1"}, {"x-delete-at": "x"}, {"content-type": "a/b", "content-type-timestamp": "x"}],
)
def test_bad_posts_are_refused(bench, headers):
    bench.ask("PUT", body=b"x")
    assert bench.ask("POST", headers=headers).status == 400
    assert len(bench.files()) == 1
