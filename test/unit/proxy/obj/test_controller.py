"""What a client is told of a change when the servers of its object do not agree."""

from __future__ import annotations

import pytest

from swift.base.timestamp import Timestamp


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
    sim.forgive()
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
    answer = sim("PUT", "/a/c/o", {"x-timestamp": Timestamp(5).internal}, b"older")
    assert answer.status == 202
    assert sim("GET", "/a/c/o").body == b"body"
    assert sim("DELETE", "/a/c/o", {"x-timestamp": Timestamp(5).internal}).status == 409
    assert sim("GET", "/a/c/o").body == b"body"


@pytest.mark.parametrize("away", [0, 1])
def test_a_write_is_acknowledged_by_a_majority_and_stored_three_times(sim, away):
    primaries = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", *primaries[:away]):
        assert sim("PUT", "/a/c/o", {}, b"body").status == 201
    assert len(sim.holders()) == 3
