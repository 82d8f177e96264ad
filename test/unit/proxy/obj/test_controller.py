"""What a client is told of a change when the servers of its object do not agree."""

from __future__ import annotations

import pytest

from swift.base.timestamp import Timestamp
from swift.http import environkeys
from swift.http.response import Response


@pytest.fixture
def stored(sim):
    """A cluster with an object, and the numbers of its primaries."""
    assert sim("PUT", "/a/c/o", {"x-object-meta-a": "1"}, b"body").status == 201
    return sim, sim.primaries("object", "a", "c", "o")


def lose(sim, *numbers):
    """These nodes have nothing any more."""
    for number in numbers:
        for path in sim.root.glob(f"node{number}/sdb*/objects/*/*/*/*"):
            path.unlink()


@pytest.mark.parametrize(("lost", "status"), [(0, 204), (1, 204), (2, 404), (3, 404)])
def test_a_deletion_says_what_most_of_the_primaries_had(stored, lost, status):
    sim, primaries = stored
    lose(sim, *primaries[:lost])
    assert sim("DELETE", "/a/c/o").status == status
    assert sim("GET", "/a/c/o").status == 404


@pytest.mark.parametrize("away", [1, 2])
def test_a_deletion_is_kept_by_handoffs_while_primaries_are_away(stored, away):
    sim, primaries = stored
    with sim.refusing("object", *primaries[:away]):
        assert sim("DELETE", "/a/c/o").status == 204
        assert sim("GET", "/a/c/o").status == 404
    assert len(sim.holders(".ts")) == 3


def test_a_post_goes_to_the_handoff_that_has_the_object(sim):
    primaries = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", *primaries[1:]):
        assert sim("PUT", "/a/c/o", {}, b"body").status == 201
    sim.clear_node_errors()
    assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 202
    assert sim("HEAD", "/a/c/o").headers["x-object-meta-b"] == "2"


def test_a_post_of_what_a_minority_has_is_neither_done_nor_missing(stored):
    sim, primaries = stored
    lose(sim, *primaries[1:])
    assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 503


def test_a_post_of_nothing_is_404(sim):
    assert sim("POST", "/a/c/none", {"x-object-meta-b": "2"}).status == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "GET", "HEAD"])
def test_nothing_is_in_a_container_that_is_not_there(sim, method):
    assert sim(method, "/a/none/o").status == 404
    assert sim.holders() == []


def test_an_older_write_than_what_there_is_is_taken_and_changes_nothing(stored):
    sim, _primaries = stored
    response = sim("PUT", "/a/c/o", {"x-timestamp": Timestamp(5).internal}, b"older")
    assert response.status == 202
    assert sim("GET", "/a/c/o").body == b"body"
    assert sim("DELETE", "/a/c/o", {"x-timestamp": Timestamp(5).internal}).status == 409
    assert sim("GET", "/a/c/o").body == b"body"


@pytest.mark.parametrize("away", [0, 1])
def test_a_write_is_acknowledged_by_a_majority_and_stored_three_times(sim, away):
    primaries = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", *primaries[:away]):
        assert sim("PUT", "/a/c/o", {}, b"body").status == 201
    assert len(sim.holders()) == 3


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("PUT", {"if-none-match": "e"}),
        ("PUT", {"if-none-match": "*, e"}),
        ("PUT", {"x-delete-after": "soon"}),
        ("PUT", {"x-delete-after": "-1"}),
        ("PUT", {"x-delete-after": "9" * 5000}),
        ("PUT", {"x-delete-at": "²"}),
        ("PUT", {"x-delete-at": "5"}),
        ("PUT", {"content-type": "\xff"}),
        ("PUT", {"x-object-meta-": "nameless"}),
        ("POST", {"x-delete-after": "1e3"}),
        ("POST", {"x-delete-at": "-5"}),
        ("POST", {"content-type": "a\xff"}),
        ("POST", {"x-object-meta-a": "v" * 300}),
    ],
)
def test_what_cannot_be_meant_is_400_and_changes_nothing(stored, method, headers):
    sim, _ = stored
    assert sim(method, "/a/c/o", headers, b"other" if method == "PUT" else b"").status == 400
    assert not sim.asked("object")
    found = sim("GET", "/a/c/o")
    assert (found.body, found.headers["x-object-meta-a"]) == (b"body", "1")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_who_is_denied_reaches_no_object_server(stored, method):
    sim, _ = stored
    assert sim(method, "/a/c/o", env={environkeys.AUTHORIZE: lambda request: Response(403)}).status == 403
    assert not sim.asked("object")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_where_nobody_knows_the_container_nothing_is_read_or_changed(stored, method):
    sim, _ = stored
    sim.cache.values.clear()
    with sim.refusing("container", *range(1, 7)):
        assert sim(method, "/a/c/o").status == 503
        assert not sim.asked("object")


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_nothing_is_changed_in_a_container_that_is_not_there(sim, method):
    assert sim(method, "/a/none/o").status == 404
    assert not sim.asked("object")


def test_the_size_that_is_only_for_listings_is_not_shown(sim):
    kind = {"content-type": "text/plain; swift_bytes=77; a=b"}
    assert sim("PUT", "/a/c/o", kind, b"body").status == 400, "only filters say it"
    assert sim("PUT", "/a/c/o", kind, b"body", env={environkeys.CONTENT_TYPE_OVERRIDDEN: True}).status == 201
    for method in ("GET", "HEAD"):
        assert sim(method, "/a/c/o").headers["content-type"] == "text/plain; a=b"


def test_a_post_without_a_type_leaves_the_type(stored):
    sim, _ = stored
    before = sim("HEAD", "/a/c/o").headers["content-type"]
    assert sim("POST", "/a/c/o", {"content-type": "", "x-object-meta-b": "2"}).status == 202
    after = sim("HEAD", "/a/c/o").headers
    assert (after["content-type"], after.get("x-object-meta-a")) == (before, None)
