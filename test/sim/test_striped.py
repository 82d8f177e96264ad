"""Large objects are read from several nodes at once, without wrong bytes.

See doc/explanation/striping.md.
"""

import random
import time

import pytest

from swift import green
from swift.http.body import BodyError
from test.support.sim import node_port

BODY = random.Random(9).randbytes(3_000_001)
UNIT = 1 << 16
OPTIONS = {"striping_memory": 8 * UNIT, "striping_unit": UNIT, "striping_from": 4 * UNIT}
NOW = time.time() - 1000


@pytest.fixture
def sim(make_sim):
    cluster = make_sim(**OPTIONS)
    assert cluster("PUT", "/a/c").status == 201
    assert cluster("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
    return cluster


def put(sim, body=BODY, path="/a/c/o", **headers):
    assert sim("PUT", path, {"content-type": "text/plain", **headers}, body).status == 201


def primaries(sim):
    return sim.primaries("object", "a", "c", "o")


def test_all_replicas_are_read(sim):
    put(sim)
    response = sim("GET", "/a/c/o")
    assert (response.status, response.broke_off, response.body) == (200, None, BODY)
    asked = sim.asked("object", "GET")
    assert set(asked) == set(primaries(sim))
    assert min(asked.count(n) for n in primaries(sim)) >= 2


@pytest.mark.parametrize("asked", ["bytes=1000-2500000", "bytes=-2000000", "bytes=500000-"])
def test_all_replicas_are_read_for_a_large_range(sim, asked):
    put(sim)
    first, _, last = asked.removeprefix("bytes=").partition("-")
    span = BODY[-int(last) :] if not first else BODY[int(first) : int(last) + 1 if last else None]
    response = sim("GET", "/a/c/o", {"range": asked})
    assert (response.status, response.body) == (206, span)
    assert len(sim.asked("object", "GET")) > 10


@pytest.mark.parametrize(
    "headers", [{"range": "bytes=5-90000"}, {"x-newest": "true"}, {"range": "bytes=0-9,50-99"}]
)
def test_small_and_special_reads_use_one_replica(sim, headers):
    put(sim)
    before = sim("GET", "/a/c/o", headers)
    assert before.status in (200, 206)
    assert len(sim.asked("object", "GET")) == len(set(sim.asked("object", "GET")))
    put(sim, b"small")
    assert sim("GET", "/a/c/o").body == b"small"
    assert len(sim.asked("object", "GET")) == 1


def test_conditions_are_evaluated_once(sim):
    put(sim)
    etag = sim("HEAD", "/a/c/o").headers["etag"]
    assert sim("GET", "/a/c/o", {"if-match": etag}).body == BODY
    assert sim("GET", "/a/c/o", {"if-none-match": etag}).status == 304


@pytest.mark.parametrize("after", [0, 1, 40_000, UNIT, 200_000])
@pytest.mark.parametrize("lost", [1, 2])
def test_failed_nodes_are_masked(sim, after, lost):
    put(sim)
    for n in primaries(sim)[:lost]:
        sim.faults.dies_after[node_port("object", n)] = after
    for _ in range(3):
        response = sim("GET", "/a/c/o")
        assert (response.status, response.broke_off, response.body) == (200, None, BODY)
        sim.clear_node_errors()


def test_the_body_ends_early_when_all_nodes_fail(sim):
    put(sim)
    for n in range(1, 7):
        sim.faults.dies_after[node_port("object", n)] = 10_000
    assert isinstance(sim("GET", "/a/c/o").broke_off, BodyError)


def test_reads_do_not_wait_for_a_hanging_node(sim):
    put(sim)
    never = green.Event()
    sim.faults.stalls_after[node_port("object", primaries(sim)[0])] = (UNIT // 2, never)
    began = time.monotonic()
    response = sim("GET", "/a/c/o")
    assert (response.broke_off, response.body) == (None, BODY)
    assert time.monotonic() - began < 5
    never.set()


def test_nodes_with_another_version_are_not_read(sim):
    other = bytes(reversed(BODY))
    put(sim, **{"x-timestamp": f"{NOW:.5f}"})
    stale = primaries(sim)[0]
    with sim.refusing("object", stale):
        put(sim, other, **{"x-timestamp": f"{NOW + 5:.5f}"})
    sim.clear_node_errors()
    bodies = set()
    for _ in range(12):
        response = sim("GET", "/a/c/o")
        assert response.broke_off is None
        assert response.body in (BODY, other), "never bytes of both"
        bodies.add(response.body)
    assert other in bodies


def test_a_concurrent_upload_does_not_change_a_download(sim):
    put(sim)
    response = sim.open("/a/c/o")
    buffer, got = memoryview(bytearray(50_000)), b""
    while size := response.body.read_into(buffer):
        got += bytes(buffer[:size])
        if 500_000 <= len(got) < 560_000:
            put(sim, BODY[::-1])
    response.discard()
    assert got == BODY
    assert sim("GET", "/a/c/o").body == BODY[::-1]


def test_equal_bytes_with_another_timestamp_are_another_version(sim):
    put(sim, **{"x-timestamp": f"{NOW:.5f}"})
    with sim.refusing("object", primaries(sim)[0]):
        put(sim, **{"x-timestamp": f"{NOW + 5:.5f}"})
    sim.clear_node_errors()
    assert sim("GET", "/a/c/o").body == BODY


def test_an_aborted_download_leaves_nothing_open(sim):
    put(sim)
    response = sim.open("/a/c/o")
    buffer = memoryview(bytearray(100_000))
    assert response.body.read_into(buffer)
    response.discard()
    deadline = time.monotonic() + 5
    while not all(download.closed for download in sim.transport.downloads):
        assert time.monotonic() < deadline
        green.sleep(0.01)


def test_buffered_bytes_stay_within_the_limit(sim):
    put(sim)
    response = sim.open("/a/c/o")
    body, got, most = response.body, 0, 0
    buffer = memoryview(bytearray(7000))
    while size := body.read_into(buffer):
        got += size
        most = max(most, body._schedule.buffers, len(body._window) + bool(body._rest))
        green.sleep(0)
    assert got == len(BODY)
    assert most <= 8
    response.discard()


@pytest.mark.long
@pytest.mark.parametrize("stalled", [1, 2])
def test_hanging_archives_are_masked_by_others(sim, stalled):
    put(sim, BODY[:200_000], "/a/coded/o")
    never = green.Event()
    for n in sim.primaries("object", "a", "coded", "o", policy=1)[:stalled]:
        sim.faults.stalls_after[node_port("object", n)] = (20_000, never)
    for _ in range(3):
        # The first requested archives are random.
        began = time.monotonic()
        response = sim("GET", "/a/coded/o")
        assert (response.status, response.broke_off, response.body) == (200, None, BODY[:200_000])
        assert time.monotonic() - began < 5
    never.set()


def test_prefetched_segments_stay_within_the_memory_limit(sim):
    put(sim, BODY[:1_500_000], "/a/coded/o")
    response = sim.open("/a/coded/o")
    buffer = memoryview(bytearray(500))
    assert response.body.read_into(buffer)
    most = OPTIONS["striping_memory"] // 1000 - 2
    deadline = time.monotonic() + 10
    while len(response.body._window) < most:
        assert time.monotonic() < deadline
        green.sleep(0.01)
    rest = b"".join(bytes(piece) for piece in iter(lambda: response.body.read(65536), b""))
    assert bytes(buffer) + rest == BODY[:1_500_000]
    response.discard()


@pytest.mark.long
def test_the_next_download_skips_a_slow_device(sim):
    put(sim)
    slow = primaries(sim)[0]
    sim.faults.gives_s[node_port("object", slow)] = 0.03
    for n in primaries(sim)[1:]:
        sim.faults.gives_s[node_port("object", n)] = 0.001
    for _ in range(4):
        # The first node is random, and its first unit is not measured.
        assert sim("GET", "/a/c/o").body == BODY
    assert slow not in sim.asked("object", "GET")
    with sim.refusing("object", *primaries(sim)[1:]):
        assert sim("GET", "/a/c/o").body == BODY, "it is asked when there is no other"


def test_a_slow_archive_is_not_requested_while_others_suffice(sim):
    put(sim, BODY[:300_000], "/a/coded/o")
    nodes = sim.primaries("object", "a", "coded", "o", policy=1)
    for n in nodes:
        sim.context.rates.record(sim.device("object", n), 1 << 20, 1.0 if n == nodes[0] else 0.1)
    assert sim("GET", "/a/coded/o").body == BODY[:300_000]
    assert nodes[0] not in sim.asked("object", "GET")


def test_the_latency_of_an_archive_is_recorded(sim):
    put(sim, BODY[:300_000], "/a/coded/o")
    nodes = sim.primaries("object", "a", "coded", "o", policy=1)
    sim.faults.gives_s[node_port("object", nodes[0])] = 0.003
    assert sim("GET", "/a/coded/o").body == BODY[:300_000]
    known = repr(sim.context.rates)
    assert f"sdb{nodes[0]} " in known


@pytest.mark.long
def test_a_hanging_archive_is_recorded_as_slow(sim):
    put(sim, BODY[:200_000], "/a/coded/o")
    nodes = sim.primaries("object", "a", "coded", "o", policy=1)
    for n in nodes:
        sim.context.rates.record(sim.device("object", n), 100 << 20, 1.0)
    never = green.Event()
    sim.faults.stalls_after[node_port("object", nodes[0])] = (20_000, never)
    for _ in range(6):
        assert sim("GET", "/a/coded/o").body == BODY[:200_000]
    assert nodes[0] not in sim.asked("object", "GET")
    never.set()
