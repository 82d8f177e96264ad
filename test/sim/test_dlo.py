"""Dynamic large objects over a simulated cluster: objects with a prefix read as one."""

from hashlib import md5

import pytest

from swift.middleware.dlo import Dlo, DloSettings
from swift.telemetry.log import silent_log
from test.support.filters import FilterFixture

PIECES = b"0000", b"11111", b"222222"
WHOLE = b"".join(PIECES)
ETAG = md5("".join(md5(piece).hexdigest() for piece in PIECES).encode()).hexdigest()


class Front(FilterFixture):
    """The filter for dynamic large objects over the cluster."""

    def __init__(self, sim, page_rows=1000):
        settings = DloSettings.parse({"rate_limit_segments_per_sec": "0"})
        super().__init__(sim, Dlo(sim.app, settings, page_rows, silent_log()))


@pytest.fixture
def dlo(sim):
    front = Front(sim)
    assert sim("PUT", "/a/s").status == 201
    for number, piece in enumerate(PIECES):
        assert sim("PUT", f"/a/s/p/{number}", {}, piece).status == 201
    assert sim("PUT", "/a/s/q", {}, b"not of it").status == 201
    assert front("PUT", "/a/c/m", {"x-object-manifest": "s/p/", "content-type": "v/x"}).status == 201
    return front


def test_objects_with_the_prefix_read_as_one_object(dlo):
    for method in ("GET", "HEAD"):
        response = dlo(method, "/a/c/m")
        assert (response.status, response.headers["content-length"]) == (200, "15")
        assert (response.headers["etag"], response.headers["content-type"]) == (f'"{ETAG}"', "v/x")
        assert response.headers["x-object-manifest"] == "s/p/"
    assert dlo("GET", "/a/c/m").body == WHOLE


@pytest.mark.parametrize("first", range(0, 15, 3))
def test_ranges_refer_to_the_whole_object(dlo, first):
    for last in (first, first + 3, 14, 99):
        response = dlo("GET", "/a/c/m", {"range": f"bytes={first}-{last}"})
        assert (response.status, response.body) == (206, WHOLE[first : last + 1])
    assert dlo("GET", "/a/c/m", {"range": "bytes=15-"}).status == 416
    assert dlo("GET", "/a/c/m", {"range": "bytes=-4"}).body == WHOLE[-4:]


def test_conditions_refer_to_the_whole_object(dlo):
    assert dlo("GET", "/a/c/m", {"if-none-match": ETAG}).status == 304
    assert dlo("GET", "/a/c/m", {"if-match": ETAG}).body == WHOLE
    assert dlo("GET", "/a/c/m", {"if-match": md5(b"").hexdigest()}).status == 412


def test_a_segment_added_later_belongs_to_the_object(dlo, sim):
    sim("PUT", "/a/s/p/3", {}, b"more")
    assert dlo("GET", "/a/c/m").body == WHOLE + b"more"


def test_a_manifest_without_segments_is_empty(dlo):
    dlo("PUT", "/a/c/none", {"x-object-manifest": "s/nothing"})
    response = dlo("GET", "/a/c/none")
    assert (response.status, response.body, response.headers["content-length"]) == (200, b"", "0")


def test_more_segments_than_a_listing_page_are_sent_without_a_length(sim, dlo):
    front = Front(sim, page_rows=2)
    response = front("GET", "/a/c/m")
    assert not {"content-length", "etag"} & response.headers.keys()
    assert response.body == WHOLE


@pytest.mark.parametrize("value", ["s", "/p", "s/", "", "s//p", "s/p?a", "s/p&a", "/s/p"])
def test_a_manifest_header_without_a_prefix_is_refused(dlo, sim, value):
    assert dlo("PUT", "/a/c/bad", {"x-object-manifest": value}).status == 400
    assert sim("HEAD", "/a/c/bad").status == 404


def test_a_missing_segments_container_is_404(dlo, sim):
    dlo("PUT", "/a/c/lost", {"x-object-manifest": "nowhere/p"})
    assert dlo("GET", "/a/c/lost").status == 404
    dlo("PUT", "/a/c/odd", {"x-object-manifest": "s%2Fp/0"})
    assert dlo("GET", "/a/c/odd").status == 404


def test_the_manifest_itself_is_read_by_asking_for_it(dlo):
    dlo("PUT", "/a/c/m", {"x-object-manifest": "s/p/"}, b"own bytes")
    assert dlo("GET", "/a/c/m?multipart-manifest=get").body == b"own bytes"


def test_the_caller_needs_rights_to_the_segments(dlo):
    dlo.denied.add("/a/s")
    assert dlo("GET", "/a/c/m").status == 403
    dlo.denied = {"/a/s/p/0"}
    assert dlo("GET", "/a/c/m").status in (403, 409)


def test_a_deleted_segment_no_longer_belongs_to_the_object(dlo, sim):
    assert sim("DELETE", "/a/s/p/1").status == 204
    assert dlo("GET", "/a/c/m").body == PIECES[0] + PIECES[2]


@pytest.mark.parametrize(
    "value", ["s/%ff", "%ff/p", "%ff/%ff", "s/\xff", "s/%ED%A0%80", "s/%00", "%00versions%00s/p"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_manifest_with_an_impossible_prefix_is_empty_or_a_client_error(dlo, value, method):
    assert dlo("PUT", "/a/c/odd", {"x-object-manifest": value}).status == 201
    response = dlo(method, "/a/c/odd")
    assert response.status in (200, 400, 404, 412)
    assert response.status != 200 or response.headers["content-length"] == "0"
