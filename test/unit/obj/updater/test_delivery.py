"""An update is asked of all replicas that lack it, follows one redirect, and remembers who has it."""

from __future__ import annotations

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.direct import NodeTimeouts
from swift.cluster.health import UNRESPONSIVE_S
from swift.cluster.transport import BackendResponse, TimedOut, TransportError
from swift.http import fields
from swift.obj.updater.delivery import Deliverer, wire_safe
from swift.policy.policy import Policy
from swift.runtime.report import Counters
from swift.store.api import AsyncUpdate, PendingUpdate, UpdateRef
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import ErrorLog, FakeRing, ScriptedNodes

STAMP = Timestamp(100)


class Bench:
    def __init__(self):
        self.log = ErrorLog()
        self.nodes = ScriptedNodes()
        self.ring = FakeRing()
        self.counters = Counters(Telemetry(silent_log()), "object-updater")
        self.clock = ManualClock()
        self.deliverer = Deliverer(
            self.ring, PathHasher(b"", b"s"), self.nodes, self.clock, self.log, NodeTimeouts(1.0, 10.0)
        )

    def deliver(self, **changes):
        return self.deliverer.deliver(pending(**changes), self.counters)

    @property
    def paths(self):
        return [path for _number, _method, path, _headers in self.nodes.requests]


@pytest.fixture
def bench():
    return Bench()


def pending(*, container_path=None, successes=(), redirects=(), headers=None):
    sent = {"X-Timestamp": STAMP.internal, "User-Agent": "object-server 5", "X-Size": "3"}
    update = AsyncUpdate("PUT", EntityPath("a", "c", "ö"), {**sent, **(headers or {})}, container_path)
    ref = UpdateRef("sda", Policy(2, "silver"), "name")
    return PendingUpdate(ref, STAMP, update, successes, redirects)


def to_shard(location, *, quoted=True, at=200):
    headers = {"location": location, fields.BACKEND_REDIRECT_TIMESTAMP: Timestamp(at).internal}
    if quoted:
        headers[fields.BACKEND_LOCATION_IS_QUOTED] = "true"
    return BackendResponse(301, headers)


def test_every_replica_is_asked_and_then_it_is_complete(bench):
    done = bench.deliver()
    assert done.is_complete and done.is_changed
    assert done.pending.successes == (0, 1, 2)
    _number, method, path, headers = bench.nodes.requests[0]
    assert (method, path.endswith("/a/c/%C3%B6")) == ("PUT", True)
    assert headers["x-backend-storage-policy-index"] == "2"
    assert headers["x-backend-accept-redirect"] == headers["x-backend-accept-quoted-location"] == "true"
    assert headers["user-agent"].startswith("object-updater")


def test_a_replica_that_cannot_be_reached_is_told_of_once_not_with_every_update(bench):
    bench.nodes.answers[1] = TransportError("refused")
    for _ in range(3):
        bench.deliver()
    assert [line.partition(": ")[2] for line in bench.log.sentences] == ["refused"]


def test_one_that_answers_nobody_is_asked_now_and_then_and_costs_the_others_no_time(bench):
    bench.nodes.answers[1] = TimedOut("late")
    bench.deliver()
    bench.clock.advance(UNRESPONSIVE_S)
    for _ in range(3):
        assert bench.deliver().pending.successes == (0, 2)
    assert [number for number, *_ in bench.nodes.requests].count(1) == 2, "the second is a probe"
    del bench.nodes.answers[1]
    bench.clock.advance(5.0)
    assert bench.deliver().is_complete
    assert bench.deliver().is_complete


def test_one_that_refuses_is_asked_each_time(bench):
    bench.nodes.answers[1] = TransportError("refused")
    for _ in range(3):
        bench.deliver()
        bench.clock.advance(UNRESPONSIVE_S)
    assert [number for number, *_ in bench.nodes.requests].count(1) == 3


def test_those_that_have_it_are_not_asked_again(bench):
    done = bench.deliver(successes=(0, 2))
    assert bench.nodes.asked == [1]
    assert done.is_complete and set(done.pending.successes) == {0, 1, 2}


def test_who_did_not_take_it_is_left_for_later(bench):
    bench.nodes.answers = {0: 507, 1: TransportError("away")}
    done = bench.deliver()
    assert not done.is_complete and done.pending.successes == (2,)
    bench.nodes.answers = {0: 503, 1: 503, 2: 503}
    again = bench.deliver()
    assert not again.is_complete and not again.is_changed


@pytest.mark.parametrize(
    ("location", "quoted", "container"),
    [("/.shards_a/c%C3%B6-1/%C3%B6", True, ".shards_a/cö-1"), ("/.shards_a/c-1/o", False, ".shards_a/c-1")],
)
def test_a_redirect_is_followed_at_once_and_remembered(bench, location, quoted, container):
    bench.nodes.answers = {
        n: lambda _method, path: (
            BackendResponse(201) if ".shards" in path else to_shard(location, quoted=quoted)
        )
        for n in range(3)
    }
    done = bench.deliver()
    assert done.is_complete and done.pending.update.container_path == container
    assert len(bench.paths) == 6 and bench.counters.counts["redirects"] == 1


def test_the_newest_of_several_redirects_counts(bench):
    responses = {0: to_shard("/.shards_a/old/o", at=200), 1: to_shard("/.shards_a/new/o", at=300), 2: 201}
    bench.nodes.answers = {
        n: lambda _method, path, answer=response: (
            (BackendResponse(503) if ".shards" in path else answer)
            if not isinstance(answer, int)
            else BackendResponse(answer)
        )
        for n, response in responses.items()
    }
    assert bench.deliver().pending.update.container_path == ".shards_a/new"


@pytest.mark.parametrize(
    "response",
    [
        BackendResponse(301, {}),
        BackendResponse(301, {"location": "/only"}),
        BackendResponse(301, {"location": "/a/b", fields.BACKEND_REDIRECT_TIMESTAMP: "soon"}),
    ],
)
def test_a_redirect_to_nowhere_is_a_failure(bench, response):
    bench.nodes.answers = dict.fromkeys(range(3), response)
    done = bench.deliver()
    assert not done.is_complete and not done.is_changed and len(bench.paths) == 3


def test_a_circle_of_redirects_ends_after_two_tries(bench):
    bench.nodes.answers = {
        n: lambda _method, path: to_shard("/a/c/o" if ".shards" in path else "/.shards_a/c-1/o")
        for n in range(3)
    }
    done = bench.deliver()
    assert not done.is_complete and len(bench.paths) == 6


def test_a_shard_that_has_gone_sends_the_update_back_to_its_container(bench):
    bench.nodes.answers = {
        n: lambda _method, path: BackendResponse(404 if ".shards" in path else 201) for n in range(3)
    }
    done = bench.deliver(container_path=".shards_a/c-1", redirects=(".shards_a/c-1",))
    assert done.is_complete and "/a/c/" in bench.paths[-1]


def test_a_container_that_is_not_there_keeps_its_update(bench):
    bench.nodes.answers = dict.fromkeys(range(3), 404)
    done = bench.deliver()
    assert not done.is_complete and not done.is_changed and len(bench.paths) == 3


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        ("plain", "plain"),
        ("a\r\nX-Evil: 1", "a  X-Evil: 1"),
        ("é", "é"),
        ("☃", "☃".encode().decode("latin-1")),
    ],
)
def test_kept_values_cannot_break_a_request(value, safe):
    assert wire_safe(value) == safe
