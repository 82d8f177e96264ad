"""Reads with failures: other replicas, broken bodies, X-Newest, tombstones."""

import os
import random
import time

import pytest

from swift import green
from swift.http.body import BodyError
from swift.http.request import Request
from test.support.sim import node_port

#: Recent, because tombstones that are older than a week are reclaimed at once.
NOW = time.time() - 1000
BODY = bytes(random.Random(5).randbytes(300_000))


def primaries(sim):
    return sim.primaries("object", "a", "c", "o")


def put(sim, body=BODY, at=None, **headers):
    stamp = {} if at is None else {"x-timestamp": f"{at:.5f}"}
    return sim("PUT", "/a/c/o", {"content-type": "text/plain", **stamp, **headers}, body)


def put_only_on(sim, nodes, body, at):
    """Put an object on these nodes only, as if the others had missed the write."""
    with sim.refusing("object", *(set(range(1, 7)) - set(nodes))):
        put(sim, body, at)
    sim.clear_node_errors()
    having = {n for n, names in sim.files().items() if f"{at:.5f}.data" in names}
    assert having == set(nodes), "the test has what it is about"


def dies(sim, after, *nodes):
    for n in nodes:
        sim.faults.dies_after[node_port("object", n)] = after


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [500, 503, 507, None])
def test_one_good_replica_is_enough(sim, method, status):
    put(sim)
    bad = primaries(sim)[:2]
    with sim.refusing("object", *bad) if status is None else sim.responding("object", status, *bad):
        response = sim(method, "/a/c/o")
    assert response.status == 200
    assert response.headers["content-length"] == str(len(BODY))
    assert response.body == (BODY if method == "GET" else b"")


def test_busy_nodes_are_skipped_and_used_again_next_time(sim):
    put(sim)
    busy = primaries(sim)[:2]
    with sim.responding("object", 529, *busy):
        for _ in range(30):
            assert sim("GET", "/a/c/o").body == BODY
    assert not sim.avoided("object")


def test_no_good_replica_is_503_when_nodes_fail_and_404_when_none_has_the_object(sim):
    assert sim("GET", "/a/c/o").status == 404
    put(sim)
    with sim.responding("object", 500, *range(1, 7)):
        assert sim("GET", "/a/c/o").status == 503
    sim.clear_node_errors()
    with sim.refusing("object", *range(1, 7)):
        assert sim("GET", "/a/c/o").status == 503


def test_two_failing_primaries_and_a_plain_404_are_503(sim):
    """proxy.md §10, worked: the one 404 is suppressed."""
    with sim.responding("object", 503, *primaries(sim)[:2]):
        assert sim("GET", "/a/c/o").status == 503


def test_an_object_on_handoffs_only_is_found(sim):
    put_only_on(sim, sim.handoffs("a", "c", "o")[:2], BODY, NOW)
    assert sim.holders() == sorted(sim.handoffs("a", "c", "o")[:2])
    assert sim("GET", "/a/c/o").body == BODY


def test_concurrent_reads_use_all_replicas(sim):
    put(sim)
    for _ in range(3):
        sim.transport.requests.clear()
        reading = [sim.open("/a/c/o") for _ in range(6)]
        assert sorted(sim.asked("object", "GET")) == sorted(2 * primaries(sim))
        for response in reading[:3]:
            assert response.read_body() == BODY
        for response in reading:
            response.discard()
        assert not sim.context.streams, "nobody is thought to be sending any more"


def test_a_read_resumed_at_another_node_is_counted_there(sim):
    put(sim)
    dies(sim, 70_000, *primaries(sim)[:2])
    response = sim.open("/a/c/o")
    assert response.read_body() == BODY
    response.discard()
    assert not sim.context.streams


@pytest.mark.parametrize("after", [0, 1, 65536, 100_000, len(BODY) - 1])
def test_a_read_continues_at_another_replica_when_one_dies(sim, after):
    put(sim)
    dies(sim, after, *primaries(sim)[:2])
    for _ in range(3):
        response = sim("GET", "/a/c/o")
        assert (response.status, response.broke_off) == (200, None)
        assert response.body == BODY


@pytest.mark.parametrize(
    ("asked", "first", "stop"),
    [
        ("bytes=1000-250000", 1000, 250_001),
        ("bytes=1000-", 1000, None),
        ("bytes=-200000", len(BODY) - 200_000, None),
        ("bytes=-9999999", 0, None),
        ("bytes=0-9999999", 0, None),
    ],
)
def test_a_range_read_continues_with_exactly_the_rest(sim, asked, first, stop):
    put(sim)
    whole = sim("GET", "/a/c/o", {"range": asked})
    assert whole.status == 206
    dies(sim, 70_000, *primaries(sim)[:2])
    statuses = set()
    for _ in range(4):
        response = sim("GET", "/a/c/o", {"range": asked})
        statuses.add(response.status)
        assert response.broke_off is None
        assert response.body == BODY[first:stop]
        assert response.headers["content-range"] == whole.headers["content-range"]
    assert statuses == {206}


SPANS = [(0, 99_999), (150_000, 150_009), (290_000, 299_999)]


def parts(boundary, spans=SPANS):
    """Return the multipart body of several ranges as every node sends it."""
    body = b""
    for start, stop in spans:
        body += f"--{boundary}\r\nContent-Type: text/plain\r\n".encode()
        body += f"Content-Range: bytes {start}-{stop}/{len(BODY)}\r\n\r\n".encode()
        body += BODY[start : stop + 1] + b"\r\n"
    return body + f"--{boundary}--".encode()


def get_parts(sim):
    found = sim("GET", "/a/c/o", {"range": "bytes=" + ",".join(f"{a}-{b}" for a, b in SPANS)})
    return found, parts(found.headers["content-type"].partition("boundary=")[2])


@pytest.mark.parametrize(
    "after", [200, 50_000, 100_115, 100_117, 100_118, 100_150, 100_230, 100_240, 110_370, 110_400]
)
@pytest.mark.parametrize("dying", [1, 2])
def test_several_ranges_continue_at_another_replica_when_one_dies(sim, after, dying):
    put(sim)
    dies(sim, after, *primaries(sim)[:dying])
    for _ in range(3):
        found, expected = get_parts(sim)
        assert (found.status, found.broke_off) == (206, None)
        assert found.headers["content-length"] == str(len(expected))
        assert found.body == expected
        sim.clear_node_errors()


@pytest.mark.parametrize("after", [10, 20_000])
def test_several_ranges_that_no_replica_can_continue_are_cut(sim, after):
    put(sim)
    dies(sim, after, *primaries(sim))
    found, expected = get_parts(sim)
    assert found.broke_off is not None
    assert expected.startswith(found.body)


def test_a_read_that_every_replica_breaks_is_cut_not_completed_wrongly(sim):
    put(sim)
    dies(sim, 1000, *range(1, 7))
    response = sim("GET", "/a/c/o")
    assert response.broke_off is not None
    assert BODY.startswith(response.body)
    assert len(response.body) < len(BODY)


def test_a_read_never_continues_with_another_version(sim):
    nodes = primaries(sim)
    older, newer = BODY, bytes(reversed(BODY))
    put_only_on(sim, nodes, older, NOW)
    put_only_on(sim, nodes[1:], newer, NOW + 1)
    dies(sim, 50_000, nodes[0])
    begun = {older[:100]: 0, newer[:100]: 0}
    while not all(begun.values()):
        response = sim("GET", "/a/c/o")
        begun[response.body[:100]] += 1
        if response.body.startswith(older[:100]):
            # Both other nodes could go on, with the other version.
            assert response.broke_off is not None
            assert response.body == older[:50_000]
        else:
            assert (response.broke_off, response.body) == (None, newer)


def test_x_newest_requests_all_replicas_and_returns_the_latest(sim):
    nodes = primaries(sim)
    put_only_on(sim, nodes[:2], b"old", NOW)
    put_only_on(sim, nodes[2:], b"new", NOW + 1)
    for _ in range(5):
        assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"new"
    assert len(sim.asked("object", "GET")) == 6


def test_a_newer_tombstone_hides_older_data(sim):
    nodes = primaries(sim)
    put_only_on(sim, nodes, b"old", NOW)
    with sim.refusing("object", nodes[2]):
        sim("DELETE", "/a/c/o", {"x-timestamp": f"{NOW + 1:.5f}"})
    sim.clear_node_errors()
    assert nodes[2] in sim.holders()
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).status == 404
    tombstones_first = [sim("GET", "/a/c/o").status for _ in range(10)]
    assert 404 in tombstones_first


def test_data_newer_than_a_tombstone_is_served(sim):
    nodes = primaries(sim)
    put_only_on(sim, nodes, b"old", NOW)
    sim("DELETE", "/a/c/o", {"x-timestamp": f"{NOW + 1:.5f}"})
    put_only_on(sim, nodes[2:], b"new", NOW + 2)
    for _ in range(5):
        assert sim("GET", "/a/c/o").body == b"new"


@pytest.mark.files
def test_an_expired_object_is_gone(sim):
    put(sim, b"x", **{"x-delete-after": "100"})
    assert sim("GET", "/a/c/o").status == 200
    for path in sim.root.glob("node*/sdb*/objects/*/*/*/*.data"):
        path.unlink()
    put(sim, b"x", NOW, **{"x-delete-at": str(int(NOW) + 1), "x-backend-replication": "true"})
    assert sim("GET", "/a/c/o").status == 404
    assert sim("HEAD", "/a/c/o").status == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if-none-match": "{etag}"}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": "other"}, 200),
        ({"if-match": '"{etag}", x'}, 200),
        ({"if-match": "other"}, 412),
        ({"if-modified-since": "Sat, 01 Jan 2033 00:00:00 GMT"}, 304),
        ({"if-unmodified-since": "Sat, 01 Jan 2000 00:00:00 GMT"}, 412),
        ({"if-modified-since": "yesterday"}, 200),
        ({"range": "bytes=999999-"}, 416),
        ({"range": "bytes=5-3"}, 200),
        ({"range": "lines=1-2"}, 200),
        ({"if-none-match": "{etag}", "range": "bytes=0-1"}, 304),
    ],
)
@pytest.mark.parametrize("body", [b"hello", BODY], ids=["small", "large"])
def test_conditions_and_ranges(sim, headers, status, body):
    etag = put(sim, body, NOW).headers["etag"]
    sent = {name: value.replace("{etag}", etag) for name, value in headers.items()}
    response = sim("GET", "/a/c/o", sent)
    assert response.status == status
    assert response.headers["etag"].strip('"') == etag
    if status in (304, 412):
        assert response.body == b""
        assert response.headers.get("content-length", "0") == "0"
    if status == 416:
        assert response.headers["content-range"] == f"bytes */{len(body)}"


def test_if_match_star_on_nothing_is_412(sim):
    assert sim("GET", "/a/c/o", {"if-match": "*"}).status == 412


def test_concurrent_gets_request_the_next_replica_while_a_slow_one_is_awaited(make_sim):
    sim = make_sim(concurrent_gets=True, concurrency_timeout=0.02)
    sim("PUT", "/a/c")
    put(sim)
    slow = primaries(sim)[:2]
    release = green.Event()
    for n in slow:
        sim.faults.waits_for[node_port("object", n)] = release
    for _ in range(3):
        assert sim("GET", "/a/c/o").body == BODY
    release.set()
    sim.transport.settle()


def test_a_slow_node_delays_an_upload_only_by_the_grace(make_sim):
    sim = make_sim(post_quorum_timeout=0.05)
    sim("PUT", "/a/c")
    release = green.Event()
    sim.faults.waits_for[node_port("object", primaries(sim)[0])] = release
    assert put(sim, b"small").status == 201
    release.set()
    sim.transport.settle()


def test_listings_come_from_any_replica_that_is_up(sim):
    put(sim, b"x")
    with sim.refusing("container", *sim.primaries("container", "a", "c")[:2]):
        assert b'"name": "o"' in sim("GET", "/a/c?format=json").body
    with sim.refusing("account", *sim.primaries("account", "a")[:2]):
        assert b'"name": "c"' in sim("GET", "/a?format=json").body


def test_a_failing_container_server_makes_objects_503_not_404(sim):
    put(sim, b"x")
    sim.cache.values.clear()
    with sim.responding("container", 503, *range(1, 7)):
        assert sim("GET", "/a/c/o").status == 503
    sim.clear_node_errors()
    sim.cache.values.clear()
    assert sim("GET", "/a/c/o").status == 200


def test_account_and_container_info_is_cached_and_shared_by_requests(sim):
    put(sim, b"x")
    sim("GET", "/a/c/o")
    assert sim.asked("container") == []
    sim.cache.values.clear()
    sim("GET", "/a/c/o")
    assert len(sim.asked("container", "HEAD")) == 1
    assert len(sim.asked("account", "HEAD")) == 1


def spliced(sim, path):
    """Return an object's bytes, spliced through a pipe as the server does."""
    request = Request("GET", f"/v1{path}", {}, env={"swift.cache": sim.cache})
    body = sim.app.handle(request).body
    source, sink = os.pipe()
    got = b""
    try:
        while size := body.splice_into(sink, 65536):
            got += os.read(source, size)
    finally:
        body.close()
        os.close(source)
        os.close(sink)
    return got


@pytest.mark.parametrize("after", [None, 1, 100_000])
def test_a_spliced_read_continues_at_another_replica(sim, after):
    body = os.urandom(300_000)
    sim("PUT", "/a/c/o", {}, body)
    if after is not None:
        for n in sim.primaries("object", "a", "c", "o")[:2]:
            sim.faults.dies_after[node_port("object", n)] = after
    assert spliced(sim, "/a/c/o") == body


def test_a_spliced_read_that_no_replica_can_finish_is_an_error(sim):
    sim("PUT", "/a/c/o", {}, os.urandom(300_000))
    for n in range(1, 7):
        sim.faults.dies_after[node_port("object", n)] = 1000
    with pytest.raises(BodyError):
        spliced(sim, "/a/c/o")


def spoil(sim, nodes):
    """Damage the metadata of every object file of some nodes, so that reads quarantine them."""
    for n in nodes:
        for path in sim.root.glob(f"*{n}/**/*.data"):
            os.setxattr(path, "user.swift.metadata", b"junk")


@pytest.mark.files
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_that_quarantines_all_copies_gets_404(sim, method):
    put(sim)
    spoil(sim, range(1, 7))
    assert sim(method, "/a/c/o").status == 503


@pytest.mark.files
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_unreadable_copy_outweighs_404s_of_other_nodes(sim, method):
    """The object was acknowledged while two primaries were down, which are back now."""
    put_only_on(sim, [primaries(sim)[0], sim.handoffs("a", "c", "o")[0]], BODY, NOW)
    spoil(sim, range(1, 7))
    assert sim(method, "/a/c/o").status == 503
