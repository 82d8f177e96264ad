"""Rules of RFC 9110 on conditions and ranges (sections 13 and 14), held for every kind of object.

Each case names its section. What the peer does otherwise is in doc/reference/differences.md.
"""

import json
from email.utils import formatdate, parsedate_to_datetime

import pytest

from swift.http.mediatypes import TypeGuesser
from swift.middleware.dlo import Dlo, DloSettings
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.telemetry.log import silent_log
from test.support import filters
from test.support.filters import FilterFixture
from test.support.s3_fixtures import S3Cluster

DATA = b"0123456789abcdef"
OTHER = b"another version of it"
#: Placeholders for the object's ETag and date, and for dates around its own.
ETAG, DATE, EARLIER, LATER = "<etag>", "<date>", "<earlier>", "<later>"
SIX = {"range": "bytes=0-5"}

CONDITIONS = [
    ("13.1.1", "GET", {"if-match": f'"{ETAG}"'}, 200),
    ("13.1.1", "GET", {"if-match": f'"x", "{ETAG}"'}, 200),
    ("13.1.1", "GET", {"if-match": "*"}, 200),
    ("13.1.1", "GET", {"if-match": '"x"'}, 412),
    ("13.1.1 strong comparison", "GET", {"if-match": f'W/"{ETAG}"'}, 412),
    ("13.1.1", "HEAD", {"if-match": '"x"'}, 412),
    ("13.1.2", "GET", {"if-none-match": f'"{ETAG}"'}, 304),
    ("13.1.2", "GET", {"if-none-match": f'"x", "{ETAG}"'}, 304),
    ("13.1.2", "GET", {"if-none-match": "*"}, 304),
    ("13.1.2", "GET", {"if-none-match": '"x"'}, 200),
    ("13.1.2 weak comparison", "GET", {"if-none-match": f'W/"{ETAG}"'}, 304),
    ("13.1.2", "HEAD", {"if-none-match": f'"{ETAG}"'}, 304),
    ("13.1.3", "GET", {"if-modified-since": DATE}, 304),
    ("13.1.3", "GET", {"if-modified-since": EARLIER}, 200),
    ("13.1.3", "GET", {"if-modified-since": LATER}, 304),
    ("13.1.3 no date", "GET", {"if-modified-since": "yesterday"}, 200),
    ("13.1.3 beside an ETag", "GET", {"if-none-match": '"x"', "if-modified-since": LATER}, 200),
    ("13.1.3", "HEAD", {"if-modified-since": DATE}, 304),
    ("13.1.4", "GET", {"if-unmodified-since": DATE}, 200),
    ("13.1.4", "GET", {"if-unmodified-since": LATER}, 200),
    ("13.1.4", "GET", {"if-unmodified-since": EARLIER}, 412),
    ("13.1.4 no date", "GET", {"if-unmodified-since": "yesterday"}, 200),
    ("13.1.4 beside an ETag", "GET", {"if-match": f'"{ETAG}"', "if-unmodified-since": EARLIER}, 200),
    ("13.2.2 step 1", "GET", {"if-match": '"x"', "if-none-match": f'"{ETAG}"'}, 412),
    ("13.2.2 step 2", "GET", {"if-unmodified-since": EARLIER, "if-none-match": f'"{ETAG}"'}, 412),
    ("13.2.2 step 3", "GET", {"if-match": f'"{ETAG}"', "if-none-match": f'"{ETAG}"'}, 304),
    ("13.2.2 step 5 after 1", "GET", {**SIX, "if-match": '"x"', "if-range": f'"{ETAG}"'}, 412),
    ("13.2.2 step 5 after 3", "GET", {**SIX, "if-none-match": "*", "if-range": '"x"'}, 304),
]
RANGES = [
    ("13.1.5", {**SIX, "if-range": f'"{ETAG}"'}, 206, DATA[:6]),
    ("13.1.5 as this API shows it", {**SIX, "if-range": ETAG}, 206, DATA[:6]),
    ("13.1.5", {**SIX, "if-range": '"x"'}, 200, DATA),
    ("13.1.5 no list", {**SIX, "if-range": f'"x", "{ETAG}"'}, 200, DATA),
    ("13.1.5 strong comparison", {**SIX, "if-range": f'W/"{ETAG}"'}, 200, DATA),
    ("13.1.5 no wildcard", {**SIX, "if-range": "*"}, 200, DATA),
    ("13.1.5 exact date", {**SIX, "if-range": DATE}, 206, DATA[:6]),
    ("13.1.5 exact date", {**SIX, "if-range": EARLIER}, 200, DATA),
    ("13.1.5 exact date", {**SIX, "if-range": LATER}, 200, DATA),
    ("13.1.5 neither", {**SIX, "if-range": "yesterday"}, 200, DATA),
    ("13.1.5 without Range", {"if-range": '"x"'}, 200, DATA),
    ("13.1.5 not applicable", {"range": "bytes=99-", "if-range": '"x"'}, 200, DATA),
    ("13.1.5 not satisfiable", {"range": "bytes=99-", "if-range": f'"{ETAG}"'}, 416, None),
    ("14.1.1 first after last", {"range": "bytes=5-4"}, 200, DATA),
    ("14.1.1 unknown unit", {"range": "lines=0-1"}, 200, DATA),
    ("14.1.1 unit without case", {"range": "BYTES=0-1"}, 206, b"01"),
    ("14.1.2 last beyond the end", {"range": "bytes=10-99"}, 206, DATA[10:]),
    ("14.1.2 open", {"range": "bytes=10-"}, 206, DATA[10:]),
    ("14.1.2 suffix", {"range": "bytes=-3"}, 206, DATA[-3:]),
    ("14.1.2 long suffix", {"range": "bytes=-99"}, 206, DATA),
    ("14.1.2 empty suffix", {"range": "bytes=-0"}, 416, None),
    ("14.2 malformed", {"range": "bytes=x"}, 200, DATA),
    ("15.5.17", {"range": "bytes=16-"}, 416, None),
]


class Bench:
    """An object with the content ``DATA``, and requests for it."""

    def __init__(self, ask, path, put):
        self._ask = ask
        self._path = path
        self._put = put
        put(DATA)
        found = ask("HEAD", path).headers
        self.etag = found["etag"].strip('"')
        self.date = found["last-modified"]
        at_s = parsedate_to_datetime(self.date).timestamp()
        self._words = {
            ETAG: self.etag,
            DATE: self.date,
            EARLIER: formatdate(at_s - 1, usegmt=True),
            LATER: formatdate(at_s + 1, usegmt=True),
        }

    def __call__(self, method, headers):
        sent = {}
        for name, value in headers.items():
            for word, text in self._words.items():
                value = value.replace(word, text)
            sent[name] = value
        return self._ask(method, self._path, sent)

    def replace(self, data):
        """Give the object another content."""
        self._put(data)


def large(sim, kind):
    """Put an object of two segments; return a function that replaces it."""
    links = Symlink(sim.app, SymlinkSettings())
    inner = Dlo(links, DloSettings(rate_limit_segments_per_sec=0), 1000, silent_log())
    front = FilterFixture(sim, Slo(inner, SloSettings(), sim.hasher, TypeGuesser("/none", ()), silent_log()))

    def put(data):
        for number, piece in enumerate((data[:4], data[4:])):
            assert sim("PUT", f"/a/s/p/{number}", {}, piece).status == 201
        if kind == "slo":
            manifest = json.dumps([{"path": f"/s/p/{number}"} for number in (0, 1)]).encode()
            assert front("PUT", "/a/c/o?multipart-manifest=put", {}, manifest).status == 201
        else:
            assert front("PUT", "/a/c/o", {"x-object-manifest": "s/p/"}).status == 201

    assert sim("PUT", "/a/s").status == 201
    return Bench(front, "/a/c/o", put)


def put_at(ask, path):
    def put(data):
        assert ask("PUT", path, {}, data).status in (200, 201)

    return put


def linked(sim):
    front = FilterFixture(sim, Symlink(sim.app, SymlinkSettings()))
    assert front("PUT", "/a/c/l", {"x-symlink-target": "c/o"}).status == 201
    return Bench(front, "/a/c/l", put_at(front, "/a/c/o"))


def in_s3(sim):
    world = S3Cluster(sim)
    assert world("PUT", "/bucket").status == 200
    return Bench(world, "/bucket/o", put_at(world, "/bucket/o"))


def made(sim, kind):
    if kind in ("slo", "dlo"):
        return large(sim, kind)
    if kind == "link":
        return linked(sim)
    if kind == "s3":
        return in_s3(sim)
    policy = "ec32" if "coded" in kind else "gold"
    assert sim("PUT", "/a/p", {"x-storage-policy": policy}).status == 201
    ask = filters.EncryptionFixture(sim) if "encrypted" in kind else FilterFixture(sim, sim.app)
    return Bench(ask, "/a/p/o", put_at(ask, "/a/p/o"))


KINDS = ["plain", "coded", "encrypted", "encrypted and coded", "slo", "dlo", "link", "s3"]


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_decide_as_the_rfc_says(sim, kind):
    bench = made(sim, kind)
    for section, method, headers, status in CONDITIONS:
        response = bench(method, headers)
        about = f"{section}: {method} {headers} of {kind}"
        assert response.status == status, about
        if status == 200:
            assert response.body == (DATA if method == "GET" else b""), about
        if status == 304:
            # 15.4.5: the headers of a 200, without content.
            assert response.headers["etag"].strip('"') == bench.etag, about
            assert response.body == b"", about


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_apply_as_the_rfc_says(sim, kind):
    bench = made(sim, kind)
    for section, headers, status, body in RANGES:
        response = bench("GET", headers)
        about = f"{section}: {headers} of {kind}"
        assert response.status == status, about
        assert body is None or response.body == body, about
        if status == 206:
            first = DATA.index(body)
            shown = f"bytes {first}-{first + len(body) - 1}/{len(DATA)}"
            # 14.4, 15.3.7.1, and 15.3.7 for the headers of a 200.
            assert response.headers["content-range"] == shown, about
            assert response.headers["etag"].strip('"') == bench.etag, about
            assert response.headers["last-modified"] == bench.date, about
        elif status == 200:
            # 14.3
            assert "content-range" not in response.headers, about
            assert response.headers["accept-ranges"] == "bytes", about


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "s3"])
def test_a_416_response_contains_the_length(sim, kind):
    """Section 14.4 and 15.5.17; S3 has a document instead."""
    response = made(sim, kind)("GET", {"range": "bytes=16-"})
    assert (response.status, response.headers["content-range"]) == (416, f"bytes */{len(DATA)}")


@pytest.mark.parametrize("kind", ["plain", "coded", "encrypted", "encrypted and coded", "slo", "link"])
def test_several_ranges_of_another_version_return_the_whole_object(sim, kind):
    """Sections 14.6 and 13.1.5."""
    bench = made(sim, kind)
    several = {"range": "bytes=0-1,4-5"}
    response = bench("GET", {**several, "if-range": f'"{ETAG}"'})
    assert response.status == 206 and response.headers["content-type"].startswith("multipart/byteranges")
    # 15.3.7.2: the parts have it, the answer does not.
    assert "content-range" not in response.headers
    response = bench("GET", {**several, "if-range": '"x"'})
    assert (response.status, response.body) == (200, DATA)


@pytest.mark.parametrize("kind", KINDS)
def test_a_download_that_is_resumed_never_mixes_two_versions(sim, kind):
    bench = made(sim, kind)
    before = bench.etag
    bench.replace(OTHER)
    response = bench("GET", {"range": "bytes=6-", "if-range": f'"{before}"'})
    assert (response.status, response.body) == (200, OTHER)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "s3"])
def test_head_ignores_range(sim, kind):
    """Section 14.2; S3 answers as to GET."""
    response = made(sim, kind)("HEAD", {**SIX, "if-range": '"x"'})
    assert (response.status, response.headers["content-length"]) == (200, str(len(DATA)))


def test_an_s3_head_respects_if_range(sim):
    bench = made(sim, "s3")
    for if_range, status, length in ((f'"{ETAG}"', 206, "6"), ('"x"', 200, "16")):
        response = bench("HEAD", {**SIX, "if-range": if_range})
        assert (response.status, response.headers["content-length"]) == (status, length)


def test_nodes_that_ignore_if_range_get_a_second_request(sim):
    """Object servers evaluate Range but ignore If-Range, as those of the peer do."""
    bench = made(sim, "plain")
    sim.transport.requests.clear()
    assert bench("GET", {**SIX, "if-range": f'"{ETAG}"'}).body == DATA[:6]
    assert len(sim.asked("object", "GET")) == 1, "what applies costs nothing"
    assert bench("GET", {**SIX, "if-range": '"x"'}).body == DATA
    assert len(sim.asked("object", "GET")) == 3


def test_a_partial_put_is_refused_and_changes_nothing(sim):
    """Section 14.5."""
    for policy in ("gold", "ec32"):
        assert sim("PUT", f"/a/{policy}", {"x-storage-policy": policy}).status == 201
        assert sim("PUT", f"/a/{policy}/o", {}, DATA).status == 201
        part = sim("PUT", f"/a/{policy}/o", {"content-range": "bytes 0-5/16"}, OTHER[:6])
        assert part.status == 400
        assert sim("GET", f"/a/{policy}/o").body == DATA
