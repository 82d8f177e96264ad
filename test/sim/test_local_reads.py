"""The proxy reads devices of its own machine itself, and answers as it would over the network."""

import json
import random
import shutil
import time
from dataclasses import replace

import pytest

from swift.proxy.app import ProxyApp
from swift.telemetry.inforegistry import InfoRegistry
from test.support.sim import node_port
from test.support.stored import stored

NOW = time.time() - 1000
BODY = random.Random(5).randbytes(300_000)
READS = ("GET", "HEAD")


@pytest.fixture
def near(make_sim):
    """A cluster whose proxy is on the machine of all nodes."""
    cluster = make_sim(local=range(1, 7))
    assert cluster("PUT", "/a/c").status == 201
    return cluster


def primaries(sim):
    return sim.primaries("object", "a", "c", "o")


def put(sim, body=BODY, at=NOW, path="/a/c/o", **headers):
    return sim("PUT", path, {"content-type": "text/plain", "x-timestamp": f"{at:.5f}", **headers}, body)


ASKED = [
    ("GET", {}),
    ("HEAD", {}),
    ("GET", {"range": "bytes=5-99999"}),
    ("GET", {"range": "bytes=1-2,70000-299999"}),
    ("GET", {"range": "bytes=300000-"}),
    ("GET", {"if-none-match": "*"}),
    ("GET", {"if-match": '"other"'}),
    ("GET", {"if-modified-since": "Mon, 28 Dec 2099 00:00:00 GMT"}),
    ("HEAD", {"if-unmodified-since": "Mon, 28 Dec 2009 00:00:00 GMT"}),
    ("GET", {"x-newest": "true"}),
]


@pytest.mark.parametrize("path", ["/a/c/o", "/a/c/small", "/a/c/empty", "/a/c/none"])
def test_answers_are_those_of_the_network(near, path):
    for name, body in (("o", BODY), ("small", b"x" * 100), ("empty", b"")):
        put(near, body, path=f"/a/c/{name}", **{"x-object-meta-colour": "bl\xc3\xa4u"})
    context = replace(near.context, transport=near.transport, is_own=None)
    remote = ProxyApp(context, InfoRegistry(), swift_dir="")
    for method, headers in ASKED:
        near.handle = near.app.handle
        here = near(method, path, headers)
        near.handle = remote.handle
        far = near(method, path, headers)
        for each in (here, far):
            if each.headers.get("content-type", "").startswith("multipart/"):
                boundary = each.headers["content-type"].rpartition("=")[2].encode()
                each.body = each.body.replace(boundary, b"boundary")
                each.headers["content-type"] = ""
        assert (here.status, here.headers, here.body) == (far.status, far.headers, far.body), (
            method,
            headers,
        )


@pytest.mark.parametrize("method", READS)
def test_hits_need_no_network(near, method):
    put(near)
    assert near(method, "/a/c/o").status == 200
    assert not near.asked("object")


def test_a_replica_of_this_machine_is_read_first(make_sim):
    near = make_sim(local=[1])
    near("PUT", "/a/c")
    # Some object that has a replica there.
    names = (f"/a/c/{number}" for number in range(100))
    path = next(each for each in names if 1 in near.primaries("object", *each[1:].split("/")))
    put(near, path=path)
    for _ in range(10):
        assert near("GET", path).body == BODY
        assert not near.asked("object")


def test_fragment_archives_of_this_machine_are_read_here(near):
    assert near("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
    put(near, path="/a/coded/o")
    assert near("GET", "/a/coded/o").body == BODY
    assert not near.asked("object", "GET")


def test_what_only_some_nodes_have_is_found(near):
    """A local 404 is asked for again over the network, and the next node."""
    put(near)
    for number in primaries(near)[:2]:
        shutil.rmtree(near.root / f"node{number}/sdb{number}")
        (near.root / f"node{number}/sdb{number}").mkdir()
    assert near("GET", "/a/c/o").body == BODY


def test_an_unmounted_device_is_left_to_the_network(near):
    put(near)
    for number in primaries(near)[:2]:
        shutil.rmtree(near.root / f"node{number}/sdb{number}")
    for _ in range(6):
        assert near("GET", "/a/c/o").body == BODY
        near.clear_node_errors()


@pytest.mark.files
def test_damage_is_put_away_and_never_sent(near):
    put(near)
    bad = primaries(near)[:2]
    for number in bad:
        (replica,) = stored(near.root / f"node{number}/sdb{number}", near.policies.get(0))
        replica.damage(1000)
    for _ in range(8):
        assert near("GET", "/a/c/o").body == BODY
    left = near.holders()
    assert set(bad) - set(left), "a damaged replica was put away"
    assert not near.faults.answers


def test_a_server_that_is_down_does_not_matter_to_reads_of_its_devices(near):
    put(near)
    with near.refusing("object", *range(1, 7)):
        assert near("GET", "/a/c/o").body == BODY


@pytest.mark.parametrize("method", READS)
def test_a_server_that_is_down_is_a_failed_node_for_what_is_not_here(near, method):
    with near.refusing("object", *range(1, 7)):
        assert near(method, "/a/c/o").status == 503


def test_a_deleted_object_is_deleted(near):
    put(near)
    assert near("DELETE", "/a/c/o", {"x-timestamp": f"{NOW + 1:.5f}"}).status == 204
    assert near("GET", "/a/c/o").status == 404


def test_counts_of_the_object_server_have_local_reads(near):
    put(near)
    for _ in range(5):
        near("GET", "/a/c/o")
    pages = [
        near.transport.apps[node_port("object", n)][2].context.telemetry.metrics.render() for n in range(1, 7)
    ]
    lines = [
        line
        for page in pages
        for line in page.splitlines()
        if 'responses_total{server="object",status="200"}' in line
    ]
    assert sum(float(line.rpartition(" ")[2]) for line in lines) == 5, json.dumps(lines)
