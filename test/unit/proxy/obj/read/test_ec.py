"""What a client gets of an erasure coded object, whatever single archives say of it."""

from __future__ import annotations

import os
from hashlib import md5
from types import SimpleNamespace

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, NodeTimeouts
from swift.ec.archive import ArchiveEncoder
from swift.http import fields
from swift.http.body import BodyError
from swift.http.request import Request
from swift.policy.policy import ErasureCode, Policy
from swift.proxy.obj.read.ec import SEARCH_AGAIN_WITHIN_S, SEARCHES_MAX, ArchiveReader
from swift.proxy.obj.read.plan import TransferRates
from swift.proxy.obj.scheme import LENGTH, Schemes
from swift.proxy.settings import ProxySettings
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.object_servers import NEW, OLD, Body, FragmentCluster, Nodes, archive, missing

POLICY = Policy(1, "ec21", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000))
SETTINGS = ProxySettings()
BODY = os.urandom(2500)


class World:
    """An object of which three nodes have archives; ``change`` may spoil what each says."""

    def __init__(self, body=BODY, change=lambda index, headers, data: data, answers=None):
        self.schemes = Schemes(SimpleNamespace(telemetry=Telemetry(silent_log())))
        self.change = change
        self.body = body
        self.looks = 0
        self.clock = ManualClock(1.0)
        self.clusters = []
        self.responses = answers or self.archives
        planner = SimpleNamespace(settings=SETTINGS, for_fragments=self._nodes, for_read=self._nodes)
        context = SimpleNamespace(
            planner=lambda _index: planner, clock=self.clock, rates=TransferRates(ManualClock(1.0))
        )
        self.reader = ArchiveReader(context, self, self.schemes)
        self.logged = []

    def _nodes(self, *_):
        self.looks += 1
        self.clusters.append(FragmentCluster(self.responses()))
        return Nodes(3, 0)

    def archives(self):
        scheme, parts = self.schemes.for_policy(POLICY), [b"", b"", b""]
        encoder = ArchiveEncoder(scheme.codec)
        for at in range(0, len(self.body), 1000):
            parts = [a + b for a, b in zip(parts, encoder.encode(self.body[at : at + 1000]), strict=True)]
        return [self._archive(index, data, encoder.etag) for index, data in enumerate(parts)]

    def _archive(self, index, data, etag):
        headers = {
            LENGTH: str(len(self.body)),
            "content-type": "text/plain",
            "etag": md5(data).hexdigest(),
            fields.BACKEND_TIMESTAMP: OLD.internal,
        }
        made = archive(index, etag=etag, data=self.change(index, headers, data))
        made.headers.update(headers)
        return made

    # as Backends

    def read_timeouts(self, settings, *, newest):
        return NodeTimeouts(1.0, 1.0)

    def stream(self, request):
        self.asked = request.headers
        return request.node

    def stream_response(self, request):
        cluster = self.clusters[-1]
        cluster.asked.append(request.node.id)
        return self.response(request.node, self.stream(request), request.headers)

    def response(self, to, exchange, headers):
        cluster = self.clusters[-1]
        if not cluster.responses[to.id]:
            # The same again.
            again = self.archives()[to.id]
            cluster.responses[to.id].append(again)
            cluster.every.append(again)
        response = cluster.response(to)
        requested = "" if fields.BACKEND_IGNORE_RANGE in headers else headers.get("range", "")
        if response is None or response.status != 200 or not requested:
            return response
        first, _, last = requested.removeprefix("bytes=").partition("-")
        data = response.stream.remaining_bytes
        first, last = (first, last) if first else (max(0, len(data) - int(last)), "")
        if int(first) >= len(data):
            return BackendResponse(416, response.headers, stream=Body(b""))
        stop = min(len(data), int(last or len(data)) + 1)
        part = {**response.headers, "content-range": f"bytes {first}-{stop - 1}/{len(data)}"}
        response.stream.remaining_bytes = data[int(first) : stop]
        return BackendResponse(206, part, stream=response.stream)

    def record_failure(self, *_):
        return

    def log_error(self, text, headers):
        self.logged.append(text)

    def __call__(self, method="GET", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        target = SimpleNamespace(policy=POLICY, view=None, part=1, path=EntityPath("a", "c", "o"))
        response = self.reader.read(Request(method, "/v1/a/c/o", sent), target, dict(sent))
        try:
            data = response.read_body()
        finally:
            response.discard()
        for _ in range(5):
            green.sleep()
        return SimpleNamespace(status=response.status, headers=response.headers, data=data)

    @property
    def left_open(self):
        """Bodies of answers that nobody closed or read to their end."""
        told = [response for cluster in self.clusters for response in cluster.every]
        pending = [
            response for cluster in self.clusters for responses in cluster.responses for response in responses
        ]
        return [r for r in told if not r.stream.is_closed and r.stream.remaining_bytes and r not in pending]


def test_an_object_is_what_was_stored_and_its_archives_are_not_seen():
    world = World()
    response = world()
    assert (response.status, response.data) == (200, BODY)
    assert response.headers["content-length"] == "2500"
    assert response.headers["etag"] == md5(BODY).hexdigest()
    assert response.headers["content-type"] == "text/plain"
    assert not [name for name in response.headers if name.startswith("x-object-sysmeta-ec-")]
    assert not world.left_open


def test_an_empty_object_is_one():
    response = World(b"")()
    assert (response.status, response.data, response.headers["content-length"]) == (200, b"", "0")


@pytest.mark.parametrize("text", [None, "", "-1", "²", "1e3", " 5", "9" * 5000, "x"])
def test_archives_that_say_no_length_are_503_and_let_go(text):
    def spoil(_index, headers, data):
        headers.pop(LENGTH)
        headers.update({} if text is None else {LENGTH: text})
        return data

    world = World(change=spoil)
    response = world()
    assert (response.status, world.left_open) == (503, [])
    assert "has an invalid object size" in world.logged[0]


@pytest.mark.parametrize("length", [0, 1, 2499, 2501, 9999, 10**19])
def test_a_length_that_is_wrong_never_gives_other_bytes(length):
    def spoil(_index, headers, data):
        headers[LENGTH] = str(length)
        return data

    world = World(change=spoil)
    try:
        response = world()
    except BodyError:
        assert length > 2000, "the answer had begun"
    else:
        assert response.status == 503 or BODY.startswith(response.data)


def test_damaged_archives_are_503_when_there_are_too_few_others():
    def spoil(index, _headers, data):
        return data if index == 0 else b"\0" * len(data)

    world = World(change=spoil)
    assert (world().status, world.left_open) == (503, [])


def test_one_damaged_archive_is_made_up_for_by_another():
    world = World(change=lambda index, _headers, data: data if index else b"\0" * len(data))
    assert world().data == BODY


def test_the_newest_metadata_is_shown():
    def posted(index, headers, data):
        headers[fields.BACKEND_TIMESTAMP] = (NEW if index == 1 else OLD).internal
        headers["x-object-meta-a"] = str(index)
        return data

    assert World(change=posted)().headers["x-object-meta-a"] == "1"


@pytest.mark.parametrize("stamp", ["nonsense", "", "-1", "9" * 5000])
def test_a_node_that_says_nonsense_about_its_time_does_not_fail_the_read(stamp):
    def posted(index, headers, data):
        headers[fields.BACKEND_TIMESTAMP] = headers["x-timestamp"] = stamp if index == 0 else OLD.internal
        headers["x-object-meta-a"] = str(index)
        return data

    response = World(change=posted)(if_modified_since="Sat, 01 Jan 2000 00:00:00 GMT")
    assert response.status == 304, "the time that is known is that of 1970"
    assert response.headers["x-object-meta-a"] == "1"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": md5(BODY).hexdigest()}, 304),
        ({"if_match": "other"}, 412),
        ({"if_match": f'"{md5(BODY).hexdigest()}"'}, 200),
        ({"if_modified_since": "Sat, 01 Jan 2000 00:00:00 GMT"}, 304),
        ({"if_unmodified_since": "yesterday"}, 200),
        ({"range": "bytes=2500-"}, 416),
    ],
)
def test_conditions_are_judged_by_the_object_and_let_nodes_go(headers, status):
    world = World()
    response = world(**headers)
    assert (response.status, world.left_open) == (status, [])
    assert response.data == (BODY if status == 200 else response.data)
    assert status == 200 or BODY[:50] not in response.data
    if status == 416:
        assert response.headers["content-range"] == "bytes */2500"


@pytest.mark.parametrize(
    ("text", "first", "stop"),
    [
        ("0-0", 0, 1),
        ("999-1000", 999, 1001),
        ("-1", 2499, 2500),
        ("2000-99999", 2000, 2500),
        ("1500-" + "9" * 4000, 1500, 2500),
        ("1-", 1, 2500),
    ],
)
def test_a_range_is_those_bytes(text, first, stop):
    response = World()(range=f"bytes={text}")
    assert (response.status, response.data) == (206, BODY[first:stop])
    assert response.headers["content-range"] == f"bytes {first}-{stop - 1}/2500"
    assert response.headers["content-length"] == str(stop - first)


@pytest.mark.parametrize(
    "text", ["bytes=", "bytes=a-b", "bytes=5-1", "lines=1-2", "bytes=" + "9" * 5000 + "-"]
)
def test_a_range_that_is_none_is_the_whole_object(text):
    assert World()(range=text).data == BODY


def test_several_ranges_come_in_parts_and_in_their_order():
    response = World()(range="bytes=2400-2410,0-9")
    assert response.status == 206
    assert response.data.index(BODY[2400:2411]) < response.data.index(BODY[:10])
    assert response.headers["content-length"] == str(len(response.data))
    assert response.headers["content-type"].startswith("multipart/byteranges;boundary=")


def test_ranges_are_ignored_for_objects_with_certain_metadata():
    def said(_index, headers, data):
        headers["x-object-sysmeta-slo"] = "true"
        return data

    response = World(change=said)(
        range="bytes=0-1", x_backend_ignore_range_if_metadata_present="X-Object-Sysmeta-Slo"
    )
    assert (response.status, response.data) == (200, BODY)


def test_an_object_that_is_being_replaced_is_looked_for_again_but_not_for_ever():
    moving = World(answers=lambda: [archive(0, OLD), archive(1, NEW), None])
    assert (moving().status, moving.looks) == (503, SEARCHES_MAX)
    gone = World(answers=lambda: [missing(), missing(), missing()])
    assert (gone().status, gone.looks) == (404, 1)


def test_a_look_that_waited_for_a_silent_node_is_the_last():
    def answers():
        world.clock.advance(SEARCH_AGAIN_WITHIN_S / 2 + 0.01)
        return [archive(0, OLD), archive(1, NEW), None]

    world = World(answers=answers)
    assert (world().status, world.looks) == (503, 2)


def test_a_replacement_that_is_done_meanwhile_is_read():
    world = World()
    rounds = [[archive(0, Timestamp(4)), archive(1, Timestamp(3)), None], world.archives()]
    world.responses = lambda: rounds.pop(0)
    assert world().data == BODY


def test_an_archive_that_goes_home_meanwhile_is_read():
    world = World()
    whole = world.archives()
    rounds = [[missing(), whole[1], None], [whole[0], world.archives()[1], None]]
    world.responses = lambda: rounds.pop(0)
    assert world().data == BODY
