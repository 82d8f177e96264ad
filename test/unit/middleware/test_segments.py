"""A segment is given only as it was promised, with the rights of the caller and no others."""

import pytest

from swift.base.entity import EntityPath
from swift.base.ranges import Span
from swift.http import fields
from swift.http.body import IterableBody
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.segments import (
    Segment,
    SegmentError,
    SegmentRateLimit,
    SegmentSource,
    content_location_path,
    hidden_parts_container,
    is_hidden_part,
    version_query,
)
from test.support.filters import Errors

PATH = EntityPath("a", "s", "one")
FREE = SegmentRateLimit(free_segments=0, segments_per_s=0, max_time_s=1000)


class Bench:
    """A download whose segments are answered so."""

    def __init__(self, response=None, pace=FREE, headers=None):
        self.asked, self.errors, self.closed = [], [], []
        self.response = response or Response(200, {"etag": '"e"', "content-length": "10"}, b"0123456789")
        request = Request("GET", "/v1/a/c/big", dict(headers or {}))
        self.source = SegmentSource(self.handle, request, "v1", "SLO", pace, Errors(self.errors))

    def handle(self, request):
        self.asked.append(request)
        self.response.body = IterableBody([b""], 0, lambda: self.closed.append(1))
        return self.response


@pytest.mark.parametrize(
    ("span", "header"), [(Span(0, 10), None), (Span(0, 9), "bytes=0-8"), (Span(9, 10), "bytes=9-9")]
)
def test_only_the_wanted_bytes_are_asked_for(span, header):
    segment = Segment(PATH, span, 10, "e")
    assert segment.range_header == header
    status = 200 if header is None else 206
    bench = Bench(Response(status, {"etag": "e", "content-length": str(span.length)}))
    assert bench.source.open(segment) is bench.response
    [asked] = bench.asked
    assert (asked.headers.get("range"), asked.params) == (header, {"multipart-manifest": "get"})


def test_the_caller_is_who_asks_and_conditions_are_not_asked_again():
    sent = {
        "x-auth-token": "t",
        "x-storage-token": "u",
        "if-match": "x",
        "range": "bytes=5-",
        "user-agent": "me",
    }
    bench = Bench(headers=sent)
    bench.source.open(Segment(PATH, Span(0, 10), 10))
    [asked] = bench.asked
    assert (asked.headers["x-auth-token"], asked.headers["x-storage-token"]) == ("t", "u")
    assert asked.headers.keys().isdisjoint({"if-match", "range", fields.BACKEND_ALLOW_RESERVED_NAMES})
    assert asked.headers["user-agent"] == "me SLO MultipartGET"
    assert "swift.authorize_override" not in asked.env


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (error_response(404), "answered 404"),
        (error_response(503), "answered 503"),
        (Response(206, {"etag": "e", "content-length": "10"}), "answered 206"),
        (Response(200, {"etag": '"other"', "content-length": "10"}), "has the ETag other, not e"),
        (Response(200, {"content-length": "10"}), "has the ETag , not e"),
        (Response(200, {"etag": "e", "content-length": "11"}), "gives 11 bytes, not 10"),
        (Response(200, {"etag": "e", "content-length": "ten"}), "gives ten bytes, not 10"),
    ],
)
def test_what_is_not_the_segment_breaks_the_download_and_is_released(response, text):
    bench = Bench(response)
    with pytest.raises(SegmentError, match=text):
        bench.source.open(Segment(PATH, Span(0, 10), 10, "e"))
    assert bench.errors == [f"ERROR GET /v1/a/c/big: segment {PATH} {text}"]
    assert bench.closed == [1]


def test_a_range_that_is_answered_with_everything_is_not_the_segment():
    bench = Bench(Response(200, {"etag": "e", "content-length": "10"}))
    with pytest.raises(SegmentError, match="answered 200"):
        bench.source.open(Segment(PATH, Span(2, 10), 10, "e"))


def test_a_download_has_its_time():
    bench = Bench(pace=SegmentRateLimit(free_segments=0, segments_per_s=0, max_time_s=-1))
    with pytest.raises(SegmentError, match="longer than -1 s"):
        bench.source.open(Segment(PATH, Span(0, 10), 10))
    assert bench.asked == []


OWNER = EntityPath("a", "c", "o")


@pytest.mark.parametrize(
    ("path", "is_part"),
    [
        (EntityPath("a", "\0segments\0c", "\0o\0id\x0000001"), True),
        (EntityPath("b", "\0segments\0c", "\0o\0id\x0000001"), False),
        (EntityPath("a", "\0segments\0d", "\0o\0id\x0000001"), False),
        (EntityPath("a", "\0segments\0c", "\0p\0id\x0000001"), False),
        (EntityPath("a", "\0segments\0c", "\0o\0x\0id\x0000001"), False),
        (EntityPath("a", "\0segments\0c", "o\0id\x0000001"), False),
        (EntityPath("a", "c", "\0o\0id\x0000001"), False),
        (EntityPath("a", "\0segments\0c", None), False),
        (EntityPath("a", None, None), False),
    ],
)
def test_only_parts_of_an_object_are_its_hidden_parts(path, is_part):
    assert is_hidden_part(path, OWNER) is is_part
    bench = Bench()
    bench.source.hidden_part_owners.add(OWNER)
    if path.obj:
        sub = bench.source.subrequest("GET", path)
        assert (fields.BACKEND_ALLOW_RESERVED_NAMES in sub.headers) is is_part
        assert bool(sub.env.get("swift.authorize_override")) is is_part


def test_hidden_parts_are_in_a_container_that_nobody_may_name():
    assert hidden_parts_container("c") == "\0segments\0c"


@pytest.mark.parametrize(
    ("query", "given", "found"),
    [
        ("", "", ""),
        ("", "a=b", "a=b"),
        ("version-id=1", "", "version-id=1"),
        ("version-id=1", "a=b", "a=b&version-id=1"),
        ("version-id=%26x%3D%C3%A9", "", "version-id=%26x%3D%C3%A9"),
        ("version-id=", "a=b", "a=b"),
    ],
)
def test_segments_are_those_of_the_version_that_was_asked_for(query, given, found):
    assert version_query(Request("GET", "/v1/a/c/o", query=query), given) == found


@pytest.mark.parametrize(
    ("location", "home"),
    [
        (None, PATH),
        ("/v1/b/d/x%20y?version-id=1", EntityPath("b", "d", "x y")),
        ("nonsense", PATH),
        ("/v1/b/d/%ff", PATH),
        ("", PATH),
        ("/v1", PATH),
    ],
)
def test_a_link_leads_to_where_its_segments_are(location, home):
    assert content_location_path({} if location is None else {"content-location": location}, PATH) == home
