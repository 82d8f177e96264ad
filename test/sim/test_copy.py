"""Copies over the simulated cluster (swift/middleware/copy.py)."""

import json
import os

import pytest

from swift.http.mediatypes import TypeGuesser
from swift.middleware.copy import Copy, CopySettings
from swift.middleware.dlo import Dlo, DloSettings
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.telemetry.log import silent_log
from test.support.filters import FilterFixture
from test.support.sim import node_port

DATA = os.urandom(300_000)


class Front(FilterFixture):
    """The filters that handle copies."""

    def __init__(self, sim, size_max=1 << 30):
        inner = Dlo(sim.app, DloSettings(), 10000, silent_log())
        large = Slo(inner, SloSettings(), sim.hasher, TypeGuesser("/none", ()), silent_log())
        super().__init__(sim, Copy(large, CopySettings(), size_max, silent_log()))


@pytest.fixture
def front(sim):
    headers = {"content-type": "t/x", "x-object-meta-a": "1", "x-object-sysmeta-b": "2"}
    assert sim("PUT", "/a/c/from", headers, DATA).status == 201
    return Front(sim)


def test_both_request_forms_copy_bytes_and_metadata(front, sim):
    for method, path, headers in (
        ("COPY", "/a/c/from", {"destination": "c/to"}),
        ("PUT", "/a/c/to", {"x-copy-from": "c/from"}),
    ):
        response = front(method, path, headers)
        assert (response.status, response.headers["x-copied-from"]) == (201, "c/from")
        copy = sim("GET", "/a/c/to")
        assert copy.body == DATA
        assert [copy.headers[n] for n in ("content-type", "x-object-meta-a", "x-object-sysmeta-b")] == [
            "t/x",
            "1",
            "2",
        ]
        assert sim("DELETE", "/a/c/to").status == 204
        assert all(download.closed for download in sim.transport.downloads)


def test_the_request_overrides_and_fresh_metadata_leaves_out_what_a_post_could_set(front, sim):
    front("COPY", "/a/c/from", {"destination": "c/to", "x-fresh-metadata": "true", "x-object-meta-c": "3"})
    copy = sim("HEAD", "/a/c/to").headers
    assert (copy["x-object-meta-c"], copy["x-object-sysmeta-b"], copy["content-type"]) == ("3", "2", "t/x")
    assert "x-object-meta-a" not in copy


def test_the_newest_version_is_copied(front, sim):
    front("COPY", "/a/c/from", {"destination": "c/to"})
    (read,) = {
        headers.get("x-newest")
        for kind, _n, method, _p, headers in sim.transport.requests
        if (kind, method) == ("object", "GET")
    }
    assert read == "true"


@pytest.mark.parametrize(
    ("denied", "stored"),
    [(("GET", "/a/c/from"), False), (("PUT", "/a/c/to"), False), (("PUT", "/a/c/from"), True)],
)
def test_source_and_destination_need_the_callers_rights(front, sim, denied, stored):
    front.denied.add(denied)
    assert front("COPY", "/a/c/from", {"destination": "c/to"}).status == (201 if stored else 403)
    assert (sim("HEAD", "/a/c/to").status == 200) is stored


def test_segments_of_the_source_are_read_with_the_callers_rights(front, sim):
    manifest = json.dumps([{"path": "/c/from"}]).encode()
    assert front("PUT", "/a/c/m?multipart-manifest=put", {}, manifest).status == 201
    front.denied.add(("GET", "/a/c/from"))
    assert front("COPY", "/a/c/m", {"destination": "c/to"}).status == 409
    assert sim("HEAD", "/a/c/to").status == 404


def test_a_manifest_is_copied_as_a_manifest_or_as_its_content(front, sim):
    manifest = json.dumps([{"path": "/c/from"}, {"data": "ZW5k"}]).encode()
    front("PUT", "/a/c/m?multipart-manifest=put", {"content-type": "v/x"}, manifest)
    assert front("COPY", "/a/c/m", {"destination": "c/flat"}).status == 201
    flat = sim("GET", "/a/c/flat")
    assert flat.body == DATA + b"end"
    assert not [name for name in flat.headers if "slo" in name or "static" in name]
    assert front("COPY", "/a/c/m?multipart-manifest=get", {"destination": "c/same"}).status == 201
    assert front("GET", "/a/c/same").body == DATA + b"end"
    assert front("HEAD", "/a/c/same").headers["x-static-large-object"] == "True"
    rows = {row["name"]: row for row in json.loads(sim("GET", "/a/c?format=json").body)}
    assert "slo_etag" not in rows["flat"]["hash"]
    assert rows["same"]["bytes"] == rows["flat"]["bytes"] == len(DATA) + 3


def test_a_source_that_fails_during_the_copy_stores_nothing(front, sim):
    for n in range(1, 7):
        sim.faults.dies_after[node_port("object", n)] = 1000
    response = front("COPY", "/a/c/from", {"destination": "c/to"})
    sim.faults.dies_after.clear()
    assert response.status == 503
    assert sim("HEAD", "/a/c/to").status == 404


def test_a_source_that_is_damaged_in_transit_is_not_stored(front, sim):
    sim.faults.garbles.update(node_port("object", n) for n in range(1, 7))
    response = front("COPY", "/a/c/from", {"destination": "c/to"})
    sim.faults.garbles.clear()
    assert response.status >= 400
    assert sim("HEAD", "/a/c/to").status == 404


def test_a_copy_that_is_too_large_is_refused_before_it_begins(sim, front):
    response = Front(sim, size_max=len(DATA) - 1)("COPY", "/a/c/from", {"destination": "c/to"})
    assert response.status == 413
    assert all(download.closed for download in sim.transport.downloads)
    assert (
        Front(sim, size_max=9)("COPY", "/a/c/from", {"destination": "c/to", "range": "bytes=0-8"}).status
        == 201
    )


def test_the_condition_of_a_copy_refers_to_its_source(front, sim):
    etag = sim("HEAD", "/a/c/from").headers["etag"]
    for match, status in ((etag, 201), ('"x"', 412)):
        assert front("COPY", "/a/c/from", {"destination": "c/to", "if-match": match}).status == status


@pytest.mark.parametrize("value", ["", "c", "/c/", "//c/from", "/%ff/x", "c/%c3%28"])
def test_a_malformed_source_or_destination_is_412_and_changes_nothing(front, sim, value):
    assert front("COPY", "/a/c/from", {"destination": value}).status == 412
    if value:
        assert front("PUT", "/a/c/to", {"x-copy-from": value}).status == 412
    assert sim("HEAD", "/a/c/to").status == 404


def test_a_copy_whose_response_is_not_read_releases_its_source(front, sim):
    response = front.open("COPY", "/a/c/from?heartbeat=on", {"destination": "c/to"})
    assert response.status == 202
    response.discard()
    assert all(download.closed for download in sim.transport.downloads)
    assert sim("HEAD", "/a/c/to").status == 404


def test_the_report_of_a_long_copy_names_no_internal_headers(front):
    response = front("COPY", "/a/c/from?heartbeat=on", {"destination": "c/to", "accept": "application/json"})
    report = json.loads(response.body)
    assert report["Response Status"] == "201 Created"
    assert not [name for name in report if name.lower().startswith(("x-backend", "x-object-sysmeta"))]
