"""How a body reaches all nodes of a replicated object: the same bytes everywhere, or an error."""

from __future__ import annotations

import os
from hashlib import md5
from types import SimpleNamespace

import pytest

from swift.base.clock import SystemClock
from swift.http import environkeys, fields
from swift.http.body import BodyTimeout, BytesBody, ClientDisconnected
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.write.copies import READ_BYTES, THREAD_BYTES, BodyFanout, CopyCoder, stream_headers
from swift.proxy.obj.write.queues import QueueLimits, SendQueues
from swift.wire import etagtrailer
from test.support.checks import every
from test.support.daemons import make_node
from test.support.filters import PiecedBody
from test.support.object_servers import StubCluster, StubNode

BELIEVES = {etagtrailer.OFFER: etagtrailer.CRC32}
SIZE_MAX = 3_000_000


def sinks(*talks, believers=()):
    for number in believers:
        talks[number].continue_headers = BELIEVES
    return [UploadTarget(make_node(number), talk, {}, StubCluster()) for number, talk in enumerate(talks)]


def three(**more):
    talks = [StubNode(), StubNode(), StubNode()]
    return talks, sinks(*talks, **more)


def got(talk):
    return b"".join(talk.sent)


def lines_for(taking, need=2):
    limits = QueueLimits(READ_BYTES, 4 * READ_BYTES, 1.0)
    return SendQueues(taking, need, limits, is_shared=True, clock=SystemClock(), leave=lambda *_: None)


class Fragile(StubNode):
    """A node that takes so many bytes."""

    def __init__(self, room):
        super().__init__()
        self._room = room

    def send(self, data):
        self._room -= len(data)
        if self._room < 0:
            self._fails = ("send",)
        super().send(data)


@every("queued", [False, True])
@every("believers", [(), (1,), (0, 1, 2)])
@every("size", [0, 1, THREAD_BYTES - 1, THREAD_BYTES, READ_BYTES, 2 * READ_BYTES + 7])
def test_every_node_gets_the_same_bytes_and_believers_their_md5(size, believers, queued):
    body = os.urandom(size)
    talks, taking = three(believers=believers)
    lines = lines_for(taking) if queued else None
    moved, trailers = BodyFanout(SIZE_MAX).move(BytesBody(body), taking, 2, lines)
    for sink in taking:
        sink.finish(trailers=trailers)
        sink.final_response()
    assert moved == size
    assert [got(talk) for talk in talks] == [body] * 3
    expected = {etagtrailer.ETAG: md5(body).hexdigest()} if believers else {}
    assert {name: trailers[name] for name in expected} == expected
    assert [talk.trailers for talk in talks] == [trailers if n in believers else None for n in range(3)]


def test_a_buffer_is_not_filled_again_before_all_nodes_were_sent_what_is_in_it():
    pieces = [bytes([number]) * READ_BYTES for number in range(1, 6)]
    talks, taking = three(believers=(0,))
    BodyFanout(SIZE_MAX).move(PiecedBody(*pieces), taking, 2, lines_for(taking))
    for sink in taking:
        sink.finish()
        sink.final_response()
    assert [got(talk) for talk in talks] == [b"".join(pieces)] * 3


@pytest.mark.parametrize(("excess", "status"), [(0, None), (1, 413)])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_as_large_as_allowed_and_no_larger(excess, status, chunked):
    talks, taking = three()
    body = BytesBody(b"x" * (1000 + excess), chunked=chunked)
    if status is None:
        assert BodyFanout(1000).move(body, taking, 2)[0] == 1000
        return
    with pytest.raises(HTTPError) as told:
        BodyFanout(1000).move(body, taking, 2)
    assert told.value.response.status == status
    assert [talk.trailers for talk in talks] == ["none"] * 3, "nobody is told that the body has ended"


@pytest.mark.parametrize(("need", "status"), [(2, None), (3, 503)])
def test_a_node_that_stops_taking_is_gone_and_below_a_quorum_so_is_the_upload(need, status):
    talks = [StubNode(), Fragile(10), StubNode()]
    taking = sinks(*talks)
    body = PiecedBody(b"a" * 10, b"b" * 10, b"c" * 10)
    if status is None:
        assert BodyFanout(SIZE_MAX).move(body, taking, need)[0] == 30
        assert [len(got(talk)) for talk in talks] == [30, 10, 30]
        return
    with pytest.raises(HTTPError) as told:
        BodyFanout(SIZE_MAX).move(body, taking, need)
    assert told.value.response.status == status
    assert body.received == 20, "no more is read from the client"


@pytest.mark.parametrize("error", [ClientDisconnected("gone"), BodyTimeout("slow")])
@pytest.mark.parametrize("believers", [(), (0,)])
def test_a_client_that_vanishes_ends_the_upload_nowhere(error, believers):
    talks, taking = three(believers=believers)
    with pytest.raises(type(error)):
        BodyFanout(SIZE_MAX).move(PiecedBody(b"x" * THREAD_BYTES, error), taking, 2)
    assert [talk.trailers for talk in talks] == ["none"] * 3


def test_an_upload_after_one_that_failed_is_whole():
    pump = BodyFanout(SIZE_MAX)
    with pytest.raises(ClientDisconnected):
        pump.move(PiecedBody(b"bad" * 50_000, ClientDisconnected("gone")), three(believers=(0,))[1], 2)
    talks, taking = three()
    pump.move(BytesBody(b"good"), taking, 2)
    assert got(talks[0]) == b"good"


# --- framing


def test_a_body_goes_in_chunks_so_that_what_breaks_off_is_not_taken_for_a_shorter_one():
    assert stream_headers(5)["transfer-encoding"] == "chunked"
    assert stream_headers(5)[fields.BACKEND_OBJ_CONTENT_LENGTH] == "5"
    assert fields.BACKEND_OBJ_CONTENT_LENGTH not in stream_headers(None)


SETTINGS = SimpleNamespace(client_chunk_size=10, upload_memory=0)
CONTEXT = SimpleNamespace(
    limits=SimpleNamespace(max_file_size=SIZE_MAX),
    settings=SETTINGS,
    planner=lambda _index: SimpleNamespace(settings=SETTINGS),
)
TARGET = SimpleNamespace(policy=SimpleNamespace(index=0))


def put(body, footers=None):
    env = {} if footers is None else {environkeys.UPDATE_FOOTERS: lambda given: given.update(footers)}
    return Request("PUT", "/v1/a/c/o", {}, body, env=env)


def upload(body, *, footers=None, is_conditional=False, believers=()):
    coder, request = CopyCoder(CONTEXT), put(body, footers)
    documents = coder.framing(request, is_conditional=is_conditional)
    attempts = [{}, {}, {}]
    coder.frame(attempts, TARGET, documents, request.body.length)
    talks, taking = three(believers=believers)
    made = coder.start(request, TARGET, documents, taking, 2)
    made.send()
    return made, talks, attempts


def test_a_plain_upload_is_the_bare_object():
    made, talks, attempts = upload(BytesBody(b"hello"))
    assert (made.size, [got(talk) for talk in talks]) == (5, [b"hello"] * 3)
    assert all(headers == stream_headers(5) for headers in attempts)


def test_what_a_filter_adds_follows_the_body_and_only_who_needs_it_is_asked_for_a_second_round():
    for is_conditional, end in ((False, b"--\r\n"), (True, b"\r\n")):
        made, talks, attempts = upload(
            BytesBody(b"hello"), footers={"X-Object-Meta-A": "1"}, is_conditional=is_conditional
        )
        text = got(talks[0])
        assert text.index(b"object body") < text.index(b"hello") < text.index(b'"X-Object-Meta-A": "1"')
        assert text.endswith(end) and text.endswith(b"--\r\n") is not is_conditional
        assert made.footers == {"x-object-meta-a": "1"}
        assert (fields.BACKEND_OBJ_MULTIPHASE_COMMIT in attempts[0]) is is_conditional


def test_the_md5_is_among_the_footers_where_there_are_documents():
    body = b"x" * 11
    _, talks, _ = upload(BytesBody(body), footers={"x-object-meta-a": "1"}, believers=(0, 1, 2))
    assert md5(body).hexdigest().encode() in got(talks[0])
    assert talks[0].trailers is None


def test_a_small_body_is_left_for_nodes_to_hash():
    small = CopyCoder(CONTEXT).framing(put(BytesBody(b"x" * 10)), is_conditional=True)
    large = CopyCoder(CONTEXT).framing(put(BytesBody(b"x" * 11)), is_conditional=True)
    assert (small.offers_etag, large.offers_etag) == (False, True)
