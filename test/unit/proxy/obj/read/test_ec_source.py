"""An archive is read from one node in order; a node that sends something else fails, and nobody else."""

from __future__ import annotations

import io

import pytest

from swift.base.ranges import Span
from swift.cluster.transport import BackendResponse, NodeTimeouts, TransportError
from swift.http.body import ResponseBody
from swift.proxy.obj.read.ec_search import (
    ArchiveSource,
    SourceFailed,
    found_archive_of,
    is_archive,
    unconditional_plan,
)
from swift.proxy.reading import ReadPlan
from test.support.daemons import make_node

ARCHIVE = bytes(range(256)) * 4


class Body(ResponseBody):
    """A body that comes in small pieces."""

    def __init__(self, data, piece=7):
        self._file = io.BytesIO(data)
        self._piece = piece
        self.length = len(data)
        self.is_closed = False

    def read_into(self, buffer):
        return self._file.readinto(buffer[: self._piece])

    def close(self):
        self.is_closed = True


def whole(data=ARCHIVE, **headers):
    return BackendResponse(200, {"content-length": str(len(ARCHIVE)), **headers}, stream=Body(data))


def part(start, stop, text=None):
    headers = {"content-range": text or f"bytes {start}-{stop - 1}/{len(ARCHIVE)}"}
    return BackendResponse(206, headers, stream=Body(ARCHIVE[start:stop]))


def source(reply):
    return ArchiveSource(make_node(1), reply)


def test_bytes_come_from_where_they_are_wanted_and_further_on():
    archive = source(whole())
    assert archive.read(0, 10) == ARCHIVE[:10]
    assert archive.read(100, 300) == ARCHIVE[100:400]
    assert archive.read(400, 1) == ARCHIVE[400:401]


def test_a_part_knows_where_it_begins():
    archive = source(part(200, 600))
    assert archive.covers(Span(200, 600)) and archive.covers(Span(300, 400))
    assert not archive.covers(Span(100, 300)) and not archive.covers(Span(300, 700))
    assert archive.read(250, 50) == ARCHIVE[250:300]


def test_a_part_that_reaches_the_end_covers_what_is_wanted_behind_it():
    assert source(part(1000, 1024)).covers(Span(1000, 5000))


def test_nobody_can_go_back():
    archive = source(whole())
    archive.read(10, 10)
    with pytest.raises(SourceFailed, match="does not send byte 5"):
        archive.read(5, 1)


def test_an_archive_that_ends_early_is_a_failure_of_its_node():
    archive = source(whole(ARCHIVE[:100]))
    with pytest.raises(TransportError, match="ended its archive early"):
        archive.read(90, 20)
    with pytest.raises(TransportError):
        source(whole(ARCHIVE[:100])).read(200, 1)


@pytest.mark.parametrize(
    "response",
    [
        part(0, 10, "bytes */1024"),
        part(0, 10, "bytes 0-9/*"),
        part(0, 10, "items 0-9/1024"),
        part(0, 10, f"bytes {'9' * 21}-{'9' * 22}/{'9' * 23}"),
        part(0, 10, "bytes ²-9/10"),
        BackendResponse(206, {}, stream=Body(b"x")),
        BackendResponse(304, {}, stream=Body(b"")),
        BackendResponse(416, {}, stream=Body(b"")),
    ],
)
def test_a_body_that_is_none_of_the_archive_gives_nothing(response):
    archive = source(response)
    assert not archive.covers(Span(0, 1))
    with pytest.raises(SourceFailed):
        archive.read(0, 1)


@pytest.mark.parametrize(
    ("status", "is_one"), [(200, True), (206, True), (304, True), (416, True), (404, False), (503, False)]
)
def test_which_answers_are_of_an_archive(status, is_one):
    assert is_archive(BackendResponse(status, {}, stream=Body(b""))) is is_one


def test_an_answer_without_what_an_archive_says_is_none():
    assert found_archive_of(make_node(1), whole()) is None
    assert found_archive_of(make_node(1), BackendResponse(404, {}, stream=Body(b""))) is None


def test_the_rest_is_asked_for_whatever_the_conditions_were():
    headers = {"if-match": "e", "if-none-match": "f", "x-a": "1"}
    plan = ReadPlan("GET", None, 7, headers, "", False, NodeTimeouts(1.0, 5.0))
    assert unconditional_plan(plan).headers == {"x-a": "1"}


def test_closing_lets_the_connection_go():
    response = whole()
    source(response).close()
    assert response.stream.is_closed
