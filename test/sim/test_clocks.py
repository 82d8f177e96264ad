"""Proxies with wrong clocks: later changes of other proxies are kept or refused, never dropped."""

import time

import pytest

from swift.base.clock import ManualClock
from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.runtime.backendapp import DateLimit
from test.support.sim import node_port

LARGE = b"large" * 40_000
#: Offsets of a fast clock: within the limit for later timestamps, and beyond it.
FAST_S, FAR_S = 5.0, 3600.0


def ahead(seconds):
    """Return the headers of a change from a proxy with a fast clock."""
    return {"x-timestamp": Timestamp(time.time() + seconds).internal}


def put(sim, body, headers=None, path="/a/c/o"):
    return sim("PUT", path, {"content-type": "text/plain", **(headers or {})}, body)


CHANGES = {
    "PUT": (lambda sim: put(sim, b"right").status == 201, lambda sim: sim("GET", "/a/c/o").body == b"right"),
    "large PUT": (lambda sim: put(sim, LARGE).status == 201, lambda sim: sim("GET", "/a/c/o").body == LARGE),
    "conditional PUT": (
        lambda sim: put(sim, b"right", {"if-match": "*"}).status == 201,
        lambda sim: sim("GET", "/a/c/o").body == b"right",
    ),
    "POST": (
        lambda sim: sim("POST", "/a/c/o", {"x-object-meta-of": "right"}).status == 202,
        lambda sim: sim("HEAD", "/a/c/o").headers.get("x-object-meta-of") == "right",
    ),
    "DELETE": (
        lambda sim: sim("DELETE", "/a/c/o").status == 204,
        lambda sim: sim("GET", "/a/c/o").status == 404,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_gets_a_later_timestamp_than_a_state_of_a_fast_clock(sim, change):
    apply, holds = CHANGES[change]
    assert put(sim, b"fast", ahead(FAST_S)).status == 201
    assert apply(sim)
    assert holds(sim)


def test_a_put_gets_a_later_timestamp_than_a_deletion_of_a_fast_clock(sim):
    put(sim, b"first")
    assert sim("DELETE", "/a/c/o", ahead(FAST_S)).status == 204
    assert put(sim, b"right").status == 201
    assert sim("GET", "/a/c/o").body == b"right"


@pytest.mark.files
def test_one_node_with_a_newer_state_is_enough(sim):
    """Two of three nodes store the object; the third node's newer state would replace it later."""
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", *nodes[1:]):
        put(sim, b"fast", ahead(FAST_S))
    assert put(sim, b"right").status == 201
    assert all(Timestamp(stamp).seconds > time.time() + FAST_S - 2 for stamp in stamps_of(sim, nodes))


def stamps_of(sim, nodes):
    files = [path for n in nodes for path in (sim.root / f"node{n}").rglob("objects/**/*.data")]
    return [path.name.removesuffix(".data") for path in files]


@pytest.mark.parametrize("change", CHANGES)
def test_a_state_far_ahead_of_the_clock_refuses_changes_with_a_reason(sim, change):
    assert put(sim, b"far", ahead(FAR_S)).status == 201
    apply, _holds = CHANGES[change]
    assert not apply(sim)
    response = put(sim, b"right")
    assert response.status == 503
    assert b"ahead of this server's clock" in response.body
    assert sim("GET", "/a/c/o").body == b"far"


def test_a_change_keeps_a_supplied_timestamp(sim):
    put(sim, b"fast", ahead(FAST_S))
    assert put(sim, b"given", ahead(0)).status == 202
    assert sim("GET", "/a/c/o").body == b"fast"


CONTAINER_CHANGES = {
    "POST": (
        lambda sim: sim("POST", "/a/other", {"x-container-meta-of": "right"}).status == 204,
        lambda sim: sim("HEAD", "/a/other").headers.get("x-container-meta-of") == "right",
    ),
    "PUT": (
        lambda sim: sim("PUT", "/a/other", {"x-container-meta-of": "right"}).status == 202,
        lambda sim: sim("HEAD", "/a/other").headers.get("x-container-meta-of") == "right",
    ),
    "DELETE": (
        lambda sim: sim("DELETE", "/a/other").status == 204,
        lambda sim: sim("HEAD", "/a/other").status == 404,
    ),
}


@pytest.mark.parametrize("change", CONTAINER_CHANGES)
def test_a_container_change_gets_a_later_timestamp_than_those_of_a_fast_clock(sim, change):
    made = {"x-container-meta-of": "fast", **ahead(FAST_S)}
    assert sim("PUT", "/a/other", made).status == 201
    apply, holds = CONTAINER_CHANGES[change]
    assert apply(sim)
    assert holds(sim)


def test_a_container_deleted_by_a_fast_clock_can_be_created_again(sim):
    sim("PUT", "/a/other")
    assert sim("DELETE", "/a/other", ahead(FAST_S)).status == 204
    assert sim("PUT", "/a/other").status == 201
    assert sim("HEAD", "/a/other").status == 204


def test_account_metadata_gets_a_later_timestamp_than_that_of_a_fast_clock(sim):
    sim("POST", "/a", {"x-account-meta-of": "fast", **ahead(FAST_S)})
    assert sim("POST", "/a", {"x-account-meta-of": "right"}).status == 204
    assert sim("HEAD", "/a").headers.get("x-account-meta-of") == "right"


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/a/c/new"), ("POST", "/a/c/o"), ("DELETE", "/a/c/o"), ("PUT", "/a/new"), ("POST", "/a/c"),
     ("DELETE", "/a/c"), ("POST", "/a")],
)  # fmt: skip
def test_storage_servers_refuse_changes_from_the_future(sim, method, path):
    put(sim, b"first")
    for _kind, _number, app in sim.transport.apps.values():
        app.context.dates = DateLimit(60.0)
    response = sim(
        method, path, {"content-type": "text/plain", **ahead(120.0)}, b"" if method != "PUT" else b"x"
    )
    assert response.status == 503
    assert b"this proxy's clock is 1" in response.body
    assert fields.BACKEND_TIMESTAMP_AHEAD not in response.headers
    assert sim("GET", "/a/c/o").body == b"first"
    assert sim("HEAD", "/a/c/new").status == sim("HEAD", "/a/new").status == 404


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["small", "large"])
def test_a_node_with_a_slow_clock_is_replaced_by_a_handoff(sim, body):
    nodes = sim.primaries("object", "a", "c", "o")
    app = sim.transport.apps[node_port("object", nodes[0])][2]
    app.context.dates, app.context.clock = DateLimit(60.0), ManualClock(time.time() - FAR_S)
    assert put(sim, body).status == 201
    assert sim.holders() == sorted([*nodes[1:], sim.handoffs("a", "c", "o")[0]])
    assert sim("GET", "/a/c/o").body == body


def test_an_account_is_created_although_one_node_has_a_slow_clock(sim):
    for _kind, number, app in sim.transport.apps.values():
        if number == sim.primaries("account", "new")[0]:
            app.context.dates, app.context.clock = DateLimit(60.0), ManualClock(time.time() - FAR_S)
    assert sim("PUT", "/new/c").status == 201
    assert sim("HEAD", "/new").status == 204
