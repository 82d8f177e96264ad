"""Static large objects read as their segments, with the rights of the caller (swift/middleware/slo)."""

import json
import time

import pytest

from swift import green
from test.support.filters import ETAG, PIECES, WHOLE, asked_name, object_paths
from test.support.sim import node_port


def test_a_manifest_reads_as_its_segments(slo):
    response = slo("GET", "/a/c/m")
    assert (response.status, response.body) == (200, WHOLE)
    assert response.headers["content-length"] == "15"
    assert (response.headers["etag"], response.headers["content-type"]) == (f'"{ETAG}"', "v/x")


def test_conditions_and_heads_are_answered_without_reading_the_manifest(slo, sim):
    for method, headers, status in (
        ("HEAD", {}, 200),
        ("GET", {"if-none-match": ETAG}, 304),
        ("GET", {"if-match": "x"}, 412),
        ("GET", {"range": "bytes=15-"}, 416),
    ):
        assert slo(method, "/a/c/m", headers).status == status
        assert {asked_name(path) for path in object_paths(sim)} == {"m"}


@pytest.mark.parametrize("policy", ["ec32", "twice"])
def test_manifests_can_be_erasure_coded(slo, sim, policy):
    assert sim("PUT", "/a/e", {"x-storage-policy": policy}).status == 201
    slo.upload("/a/e/m", [{"path": f"/s/{name}"} for name in PIECES])
    for headers, status, body in (
        ({}, 200, WHOLE),
        ({"range": "bytes=3-9"}, 206, WHOLE[3:10]),
        ({"range": "bytes=15-"}, 416, None),
        ({"if-match": ETAG}, 200, WHOLE),
        ({"if-match": "x"}, 412, b""),
        ({"if-none-match": f'"{ETAG}"'}, 304, b""),
        ({"if-none-match": "x", "range": "bytes=0-0"}, 206, WHOLE[:1]),
    ):
        response = slo("GET", "/a/e/m", headers)
        assert (response.status, response.headers["etag"]) == (status, f'"{ETAG}"')
        assert body is None or response.body == body
    assert slo("HEAD", "/a/e/m").headers["content-length"] == "15"


@pytest.mark.parametrize("first", range(15))
def test_ranges_refer_to_the_whole_object(slo, first):
    for last in range(first, 17):
        response = slo("GET", "/a/c/m", {"range": f"bytes={first}-{last}"})
        assert (response.status, response.body) == (206, WHOLE[first : last + 1])


@pytest.mark.parametrize("memory", [1, 6, 1000])
def test_prefetched_segments_have_the_same_bytes(make_slo, sim, memory):
    slo = make_slo(read_ahead_bytes=str(memory))
    slo.upload("/a/c/m", [{"path": f"/s/{name}"} for name in (*PIECES, *PIECES)])
    assert slo("GET", "/a/c/m").body == WHOLE * 2
    for first, last in ((0, 0), (3, 20), (9, 29), (14, 15)):
        response = slo("GET", "/a/c/m", {"range": f"bytes={first}-{last}"})
        assert (response.status, response.body) == (206, (WHOLE * 2)[first : last + 1])
    assert slo("GET", "/a/c/m", {"range": "bytes=0-1,7-20"}).status == 206
    sim("PUT", "/a/s/three", {"content-type": "t/p"}, b"changed")
    response = slo("GET", "/a/c/m")
    assert (response.status, response.body) == (200, WHOLE[:9])
    assert response.broke_off is not None


def test_a_range_requests_only_the_segments_and_bytes_it_covers(slo, sim):
    slo("GET", "/a/c/m", {"range": "bytes=5-6"})
    requests = [
        (path.rpartition("/")[2], headers.get("range"))
        for kind, _n, _m, path, headers in sim.transport.requests
        if kind == "object"
    ]
    assert requests == [("m", "bytes=5-6"), ("two?multipart-manifest=get", "bytes=1-2")]


def test_several_ranges_are_parts_of_one_body(slo):
    response = slo("GET", "/a/c/m", {"range": "bytes=0-1,8-9"})
    assert response.status == 206
    boundary = response.headers["content-type"].removeprefix("multipart/byteranges;boundary=")
    assert response.body.count(boundary.encode()) == 3
    assert b"Content-Range: bytes 8-9/15\r\n\r\n12\r\n" in response.body
    assert response.headers["content-length"] == str(len(response.body))


def test_a_segment_that_changed_is_409_first_and_cuts_the_download_later(slo, sim):
    sim("PUT", "/a/s/two", {}, b"11112")
    response = slo("GET", "/a/c/m")
    assert (response.body, response.broke_off is None) == (b"0000", False)
    assert slo("GET", "/a/c/m", {"range": "bytes=5-6"}).status == 409
    assert slo("GET", "/a/c/m", {"range": "bytes=0-3"}).body == b"0000"


def test_the_log_says_which_segment_broke_a_download(slo, sim):
    for path, told in (("/a/s/three", 1), ("/a/s/one", 2)):
        sim("DELETE", path)
        slo("GET", "/a/c/m")
        assert f"segment {path} answered 404" in slo.errors[-1]
        assert len(slo.errors) == told


def test_a_segment_of_another_size_is_never_sent(slo, sim):
    sim("DELETE", "/a/s/one")
    sim("PUT", "/a/s/one", {}, b"00000")
    assert slo("GET", "/a/c/m").status == 409


def test_a_segment_read_continues_at_another_replica(slo, sim):
    for n in sim.primaries("object", "a", "s", "two")[:2]:
        sim.faults.dies_after[node_port("object", n)] = 2
    for _ in range(3):
        assert slo("GET", "/a/c/m").body == WHOLE


def test_the_next_segment_is_open_before_the_current_one_is_sent(slo, sim):
    response = slo.open("GET", "/a/c/m")
    response.body.read(1)
    green.sleep(0.05)
    names = [
        path.rpartition("/")[2].partition("?")[0]
        for kind, _n, _m, path, _h in sim.transport.requests
        if kind == "object"
    ]
    assert names == ["m", "one", "two"], "one ahead and no more"
    response.discard()
    green.sleep(0.05)
    assert all(download.closed for download in sim.transport.downloads)


def test_an_empty_part_is_returned_without_a_content_range(slo, sim):
    sim("PUT", "/a/s/empty", {}, b"")
    slo.upload("/a/c/e", [{"path": "/s/one"}, {"path": "/s/empty"}])
    for method, number, status in (("GET", 1, 206), ("GET", 2, 200), ("HEAD", 2, 200), ("GET", 3, 416)):
        response = slo(method, f"/a/c/e?part-number={number}")
        assert (response.status, response.headers["x-parts-count"]) == (status, "2")
        assert ("content-range" in response.headers) is (status != 200)


@pytest.mark.parametrize("headers", [{}, {"range": "bytes=0-1"}])
def test_a_part_that_is_refused_leaves_nothing_open(slo, sim, headers):
    number = "1" if headers else "x"
    assert slo("GET", f"/a/c/m?part-number={number}", headers).status == 400
    assert all(download.closed for download in sim.transport.downloads)


def test_many_small_segments_are_rate_limited_and_large_ones_are_not(make_slo):
    front = make_slo()
    front.upload("/a/c/many", [{"path": "/s/one", "range": f"{n % 4}-{n % 4}"} for n in range(8)])
    paced = make_slo(rate_limit_segments_per_sec="20", rate_limit_after_segment="2")
    started = time.monotonic()
    assert paced("GET", "/a/c/many").body == b"0" * 8
    assert time.monotonic() - started >= 0.2
    unpaced = make_slo(
        rate_limit_segments_per_sec="0.1", rate_limit_after_segment="0", rate_limit_under_size="1"
    )
    assert unpaced("GET", "/a/c/many").body == b"0" * 8


def test_a_download_ends_at_its_time_limit(make_slo, slo):
    assert make_slo(max_get_time="0")("GET", "/a/c/m").status == 409


def test_a_manifest_without_its_size_and_etag_beside_it_is_read_for_them(slo, sim):
    entries = json.loads(slo("GET", "/a/c/m?multipart-manifest=get").body)
    sim("PUT", "/a/c/old", {"x-static-large-object": "True"}, json.dumps(entries).encode())
    for method in ("GET", "HEAD"):
        response = slo(method, "/a/c/old")
        assert (response.headers["etag"], response.headers["content-length"]) == (f'"{ETAG}"', "15")
        assert slo(method, "/a/c/old", {"if-none-match": ETAG}).status == 304
        assert slo(method, "/a/c/old", {"if-match": "x"}).status == 412
        assert slo(method, "/a/c/old", {"if-match": ETAG}).status == 200
    assert slo("GET", "/a/c/old", {"range": "bytes=4-5"}).body == b"11"
    assert slo.upload("/a/c/ofold", [{"path": "/c/old", "etag": ETAG, "size_bytes": 15}]).status == 201
    assert slo("GET", "/a/c/ofold").body == WHOLE


@pytest.mark.parametrize("text", [b"", b"{", b"[5]", b'[{"name": "/s/one", "bytes": 1}]'])
def test_a_damaged_manifest_is_409(slo, sim, text):
    sysmeta = {"x-object-sysmeta-slo-etag": "e", "x-object-sysmeta-slo-size": "5"}
    sim("PUT", "/a/c/bad", {"x-static-large-object": "True", **sysmeta}, text)
    assert slo("GET", "/a/c/bad").status == 409
    assert slo("GET", "/a/c/bad?multipart-manifest=get&format=raw").status == 409
    assert slo("GET", "/a/c/bad?part-number=1").status == 409


def test_a_manifest_that_contradicts_its_size_is_not_sent(slo, sim):
    entries = slo("GET", "/a/c/m?multipart-manifest=get").body
    sysmeta = {"x-object-sysmeta-slo-etag": ETAG, "x-object-sysmeta-slo-size": "16"}
    sim("PUT", "/a/c/lies", {"x-static-large-object": "True", **sysmeta}, entries)
    assert slo("GET", "/a/c/lies").status == 409


def test_manifests_in_manifests_are_flattened(slo):
    slo.upload("/a/c/outer", [{"path": "/c/m", "range": "3-9"}, {"path": "/s/one"}, {"path": "/c/m"}])
    assert slo("GET", "/a/c/outer").body == WHOLE[3:10] + b"0000" + WHOLE


def test_a_manifest_that_contains_itself_is_an_error(slo):
    slo.upload("/a/c/x", [{"path": "/c/m"}])
    slo.upload("/a/c/y", [{"path": "/c/x"}])
    slo.upload("/a/c/x", [{"path": "/c/y"}])
    assert slo("GET", "/a/c/x").status == 409
    assert slo("GET", "/a/c/y").status == 409


def test_more_than_ten_deep_is_refused(slo):
    slo.upload("/a/c/d1", [{"path": "/s/one"}])
    for n in range(2, 12):
        slo.upload(f"/a/c/d{n}", [{"path": f"/c/d{n - 1}"}])
    assert slo("GET", "/a/c/d10").body == b"0000"
    assert slo("GET", "/a/c/d11").status == 409


def test_a_manifest_that_changed_inside_another_is_409(slo):
    slo.upload("/a/c/outer", [{"path": "/c/m"}])
    slo.upload("/a/c/m", [{"path": "/s/three"}, {"path": "/s/two"}, {"path": "/s/one"}])
    assert slo("GET", "/a/c/outer").status == 409


def test_segments_are_read_with_the_rights_of_the_caller(slo):
    slo.denied.add(("GET", "/a/s/one"))
    assert slo("GET", "/a/c/m").status == 409
    assert slo("HEAD", "/a/c/m").status == 200
