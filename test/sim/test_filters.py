"""Filters over the simulated cluster: large objects from segments, and listings in every format."""

import hashlib
import json
import os
import time

import pytest

from swift.base.entity import EntityPath
from swift.base.ranges import Span
from swift.gateway.subrequest import make_subrequest
from swift.http.request import parse_query
from swift.http.response import Response, error_response
from swift.http.transform import TransformedBody, TransformedRequestBody, as_request_body
from swift.middleware.dlo import Dlo, DloSettings, segments_in_span
from swift.middleware.filter import Filter
from swift.middleware.listing_formats import ListingFormats
from swift.middleware.segments import Segment
from swift.telemetry.log import silent_log
from test.support.filters import FilterFixture
from test.support.sim import node_port

SEGMENTS = [b"0000", b"1111", b"2222"]
WHOLE = b"".join(SEGMENTS)
ETAG = '"18860aa59c2ab5d24e2f75e37cb385fb"'


@pytest.fixture
def make_dlo(sim):
    def make(page_rows=10000, **options):
        return FilterFixture(sim, Dlo(sim.app, DloSettings.parse(options), page_rows, silent_log()))

    return make


@pytest.fixture
def dlo(make_dlo, sim):
    front = make_dlo()
    assert sim("PUT", "/a/segs").status == 201
    for n, segment in enumerate(SEGMENTS):
        assert sim("PUT", f"/a/segs/p%20{n}", {}, segment).status == 201
    headers = {"x-object-manifest": "segs/p%20", "content-type": "video/x"}
    assert front("PUT", "/a/c/m", headers).status == 201
    return front


def test_a_manifest_reads_as_its_segments(dlo):
    response = dlo("GET", "/a/c/m")
    assert (response.status, response.body) == (200, WHOLE)
    assert response.headers["content-length"] == "12"
    assert response.headers["etag"] == ETAG
    assert response.headers["content-type"] == "video/x"
    assert response.headers["x-object-manifest"] == "segs/p%20"
    head = dlo("HEAD", "/a/c/m")
    assert (head.status, head.headers["content-length"], head.headers["etag"]) == (200, "12", ETAG)


def test_the_manifest_itself_can_be_read(dlo):
    response = dlo("GET", "/a/c/m?multipart-manifest=get")
    assert (response.body, response.headers["content-length"]) == (b"", "0")


@pytest.mark.parametrize("first", range(0, 12, 3))
@pytest.mark.parametrize("last", [0, 3, 4, 9, 11, 99])
def test_ranges_refer_to_the_whole_object(dlo, first, last):
    if last < first:
        return
    response = dlo("GET", "/a/c/m", {"range": f"bytes={first}-{last}"})
    assert (response.status, response.body) == (206, WHOLE[first : last + 1])
    assert response.headers["content-range"] == f"bytes {first}-{min(last, 11)}/12"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"range": "bytes=-5"}, 206),
        ({"range": "bytes=12-"}, 416),
        ({"range": "bytes=0-1,3-4"}, 200),
        ({"range": "bytes=x"}, 200),
        ({"if-none-match": ETAG}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"other"'}, 200),
        ({"if-match": '"other"'}, 412),
        ({"if-match": ETAG}, 200),
    ],
)
def test_conditions_refer_to_the_whole_object(dlo, headers, status):
    response = dlo("GET", "/a/c/m", headers)
    assert response.status == status
    if status == 200:
        assert response.body == WHOLE
        assert response.headers["content-type"] == "video/x"


def test_a_manifest_without_segments_is_an_empty_object(dlo):
    dlo("PUT", "/a/c/none", {"x-object-manifest": "segs/nothing"})
    response = dlo("GET", "/a/c/none")
    assert (response.status, response.headers["content-length"]) == (200, "0")
    assert response.headers["etag"] == f'"{hashlib.md5(b"").hexdigest()}"'


@pytest.mark.parametrize("value", ["segs", "/segs/p", "segs/", "segs//p", "a?b/c", "a/b&c", ""])
def test_a_malformed_manifest_is_400(dlo, value):
    response = dlo("PUT", "/a/c/bad", {"x-object-manifest": value})
    assert response.status == 400
    assert response.body == b"X-Object-Manifest must be in the format container/prefix"


@pytest.mark.files
def test_a_missing_first_segment_is_409_and_a_later_one_cuts_the_download(dlo, sim):
    everywhere = [p for p in sim.root.glob("node*/sdb*/objects/*/*/*/*.data") if p.read_bytes() == b"1111"]
    for path in everywhere:
        path.unlink()
    response = dlo("GET", "/a/c/m")
    assert response.broke_off is not None
    assert response.body == b"0000"
    assert dlo("GET", "/a/c/m", {"range": "bytes=5-6"}).status == 409


def test_a_segment_read_continues_at_another_replica(dlo, sim):
    for n in sim.primaries("object", "a", "segs", "p 1")[:2]:
        sim.faults.dies_after[node_port("object", n)] = 1
    for _ in range(3):
        assert dlo("GET", "/a/c/m").body == WHOLE


def test_a_missing_container_returns_the_status_of_its_listing(dlo, sim):
    dlo("PUT", "/a/c/lost", {"x-object-manifest": "nowhere/p"})
    assert dlo("GET", "/a/c/lost").status in (404, 409)


@pytest.mark.parametrize("page_rows", [1, 2, 3])
def test_more_segments_than_a_page_are_all_sent(make_dlo, dlo, sim, page_rows):
    listing = sim.app.handle

    class Paged:
        """A proxy with a smaller listing limit."""

        def handle(self, request):
            if "prefix=" in request.query:
                request.set_query(f"{request.query}&limit={page_rows}")
            return listing(request)

    paged = FilterFixture(sim, Dlo(Paged(), DloSettings(), page_rows, silent_log()))
    response = paged("GET", "/a/c/m")
    assert (response.status, response.body) == (200, WHOLE)
    assert "content-length" not in response.headers
    assert "etag" not in response.headers
    for n in (0, 1):
        sim("PUT", f"/a/segs/p%20{n}", {}, b"")
    assert paged("GET", "/a/c/m").body == b"2222", "pages of empty segments do not end it"


def test_segments_after_the_first_few_are_rate_limited(make_dlo, dlo):
    paced = make_dlo(rate_limit_after_segment="1", rate_limit_segments_per_sec="20")
    started = time.monotonic()
    assert paced("GET", "/a/c/m").body == WHOLE
    assert time.monotonic() - started >= 0.05


def test_slicing_keeps_only_segments_in_the_range():
    rows = [{"name": str(n), "bytes": size} for n, size in enumerate((4, 0, 4, 4))]
    container = EntityPath("a", "c")

    def segment(name, first, last):
        return Segment(EntityPath("a", "c", name), Span(first, last), 4)

    assert list(segments_in_span(rows, container, Span(3, 9))) == [
        segment("0", 3, 4),
        segment("2", 0, 4),
        segment("3", 0, 1),
    ]
    assert [s.path.obj for s in segments_in_span(rows, container, None)] == ["0", "2", "3"]
    assert list(segments_in_span(rows, container, Span(4, 4))) == []


# --- listing formats ----------------------------------------------------------------------------------


@pytest.fixture
def listing(sim):
    sim("PUT", "/a/c/b%20%26", {"content-type": "text/plain"}, b"x")
    sim("PUT", "/a/c/d/1", {}, b"x")
    return FilterFixture(sim, ListingFormats(sim.app))


@pytest.mark.parametrize(
    ("query", "accept", "kind", "start"),
    [
        ("", None, "text/plain; charset=utf-8", b"b &\nd/1\n"),
        ("?format=plain", None, "text/plain; charset=utf-8", b"b &\nd/1\n"),
        ("?format=bogus", None, "text/plain; charset=utf-8", b"b &\nd/1\n"),
        ("?format=json", None, "application/json; charset=utf-8", b'[{"bytes": 1'),
        ("", "application/json", "application/json; charset=utf-8", b"[{"),
        ("?format=xml", None, "application/xml; charset=utf-8", b'<?xml version="1.0" encoding="UTF-8"?>\n'),
        ("?format=json", "text/xml", "application/json; charset=utf-8", b"[{"),
        ("?delimiter=/", None, "text/plain; charset=utf-8", b"b &\nd/\n"),
        ("?prefix=b&format=plain", None, "text/plain; charset=utf-8", b"b &\n"),
    ],
)
def test_listings_have_the_requested_format(listing, query, accept, kind, start):
    response = listing("GET", f"/a/c{query}", {"accept": accept} if accept else {})
    assert (response.status, response.headers["content-type"]) == (200, kind)
    assert response.body.startswith(start)
    assert response.headers["content-length"] == str(len(response.body))
    head = listing("HEAD", f"/a/c{query}", {"accept": accept} if accept else {})
    assert (head.status, head.headers["content-type"]) == (204, kind)


def test_an_empty_listing_is_204_as_text_and_an_empty_list_as_json(listing):
    assert listing("GET", "/a/c?prefix=zzz").status == 204
    assert json.loads(listing("GET", "/a/c?prefix=zzz&format=json").body) == []
    assert listing("GET", "/a").body == b"c\n"


def test_an_unsupported_accept_is_406_and_errors_pass_through(listing):
    assert listing("GET", "/a/c", {"accept": "image/png"}).status == 406
    assert listing("GET", "/a/nope").status == 404
    assert listing("GET", "/a/c?limit=10001").status == 412
    assert listing("GET", "/a/c/d/1").body == b"x"


def test_reserved_names_are_hidden_from_listings(listing, sim):
    headers = {"x-backend-allow-reserved-names": "true"}
    assert sim("PUT", "/a/%00hidden", headers).status == 201
    assert b"hidden" not in listing("GET", "/a?format=json").body
    assert b"hidden" not in listing("GET", "/a").body


@pytest.mark.parametrize(
    ("query", "asked"), [("", "plain"), ("?format=json", "json"), ("?format=xml", "json")]
)
def test_only_text_clients_make_the_container_server_send_text(listing, sim, query, asked):
    sim.transport.requests.clear()
    assert listing("GET", f"/a/c{query}").status == 200
    (path,) = [
        path
        for kind, _n, method, path, _h in sim.transport.requests
        if (kind, method) == ("container", "GET")
    ]
    assert parse_query(path.partition("?")[2])["format"] == asked


def test_json_from_lower_filters_is_converted_for_text_clients(sim):
    class Json:
        """An app that always returns JSON."""

        def handle(self, request):
            assert request.query == "format=json"
            return Response(200, {"content-type": "application/json"}, b'[{"name": "x"}, {"subdir": "y/"}]')

    response = FilterFixture(sim, ListingFormats(Json()))("GET", "/a/c")
    assert (response.body, response.headers["content-length"]) == (b"x\ny/\n", "5")


def test_segments_read_through_a_foreign_filter_are_joined(make_dlo, dlo, sim):
    class Foreign:
        """A foreign WSGI filter that forwards every chunk itself."""

        def __call__(self, environ, start_response):
            yield from sim.app(environ, start_response)

    front = FilterFixture(sim, Dlo(Foreign(), DloSettings.parse({}), 10000, silent_log()))
    for _ in range(2):
        response = front("GET", "/a/c/m")
        assert (response.status, response.body, response.broke_off) == (200, WHOLE, None)
    assert front("GET", "/a/c/m", {"range": "bytes=3-8"}).body == WHOLE[3:9]


# --- filters as short as they should be ---------------------------------------------------------------


class Cipher(Filter):
    """Stores every object with its bytes inverted, as a simple form of encryption."""

    def handle(self, request):
        if request.entity is None or request.entity.path.obj is None:
            return self.forward(request)
        if request.method == "PUT":
            request.body = TransformedRequestBody(request.body, inverted)
        response = self.forward(request)
        if request.method == "GET" and response.is_success:
            response.body = TransformedBody(response.body, inverted)
        return response


class Copy(Filter):
    """PUT with X-Copy-From."""

    def handle(self, request):
        source = request.headers.pop("x-copy-from", None)
        if source is None:
            return self.forward(request)
        sub = make_subrequest(request, "GET", f"/{request.entity.version}{source}", source="SSC")
        found = self.forward(sub)
        with as_request_body(found) as request.body:
            return self.forward(request) if found.is_success else error_response(found.status)


def inverted(data):
    return bytes(byte ^ 0xFF for byte in data)


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_transforming_filter_needs_a_line_for_each_direction(sim, size):
    front, data = FilterFixture(sim, Cipher(sim.app)), os.urandom(size)
    assert front("PUT", "/a/c/o", {}, data).status == 201
    assert sim("GET", "/a/c/o").body == inverted(data)
    response = front("GET", "/a/c/o")
    assert (response.body, response.headers["content-length"]) == (data, str(size))
    if size:
        assert front("GET", "/a/c/o", {"range": "bytes=3-5"}).body == data[3:6]


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_copy_is_a_response_that_becomes_a_request(sim, size):
    front, data = FilterFixture(sim, Copy(sim.app)), os.urandom(size)
    assert sim("PUT", "/a/c/from", {}, data).status == 201
    assert front("PUT", "/a/c/to", {"x-copy-from": "/a/c/from"}).status == 201
    assert sim("GET", "/a/c/to").body == data
    assert front("PUT", "/a/c/none", {"x-copy-from": "/a/c/absent"}).status == 404
    assert all(download.closed for download in sim.transport.downloads)


def test_a_copy_whose_source_fails_stores_nothing(sim):
    front = FilterFixture(sim, Copy(sim.app))
    assert sim("PUT", "/a/c/from", {}, b"x" * 300_000).status == 201
    for n in range(1, 7):
        sim.faults.dies_after[node_port("object", n)] = 1000
    response = front("PUT", "/a/c/to", {"x-copy-from": "/a/c/from"})
    sim.faults.dies_after.clear()
    assert response.status == 503
    assert sim("GET", "/a/c/to").status == 404
