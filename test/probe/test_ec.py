"""Erasure coded objects while processes of a live cluster die."""

import hashlib
import http.client
import random
import signal

import pytest

from test.support.cluster import LiveCluster

BODY = random.Random(1).randbytes(3_000_000)


@pytest.fixture
def coded(tmp_path):
    live = LiveCluster(tmp_path / "data", ec="2+1")
    live.start()
    live.request("PUT", "c", {"X-Storage-Policy": "ec"})
    yield live
    live.stop()


def archives(cluster):
    """Node → names of its archives."""
    found = {}
    for node in cluster.plan.node_numbers():
        names = [each.name for each in cluster.stored(policy=1, node=node)]
        if names:
            found[node] = names
    return found


@pytest.mark.long
def test_objects_are_read_and_written_without_any_one_node(coded):
    assert coded.request("PUT", "c/o", {}, BODY).status == 201
    holders = archives(coded)
    assert len(holders) == 3 and all(names[0].endswith("#d.data") for names in holders.values())
    for node in holders:
        coded.kill(f"object-{node}")
        got = coded.request("GET", "c/o")
        assert (got.status, got.body == BODY) == (200, True)
        assert coded.request("PUT", f"c/beside{node}", {}, BODY).status == 201
        assert coded.request("GET", f"c/beside{node}").body == BODY
        coded.restart(f"object-{node}")
    assert "Traceback" not in coded.log_text()


@pytest.mark.long
def test_a_node_that_stops_while_it_is_read_is_replaced(coded):
    large = random.Random(2).randbytes(24_000_000)
    assert coded.request("PUT", "c/large", {}, large).status == 201
    node = next(iter(archives(coded)))
    connection = http.client.HTTPConnection(coded.plan.ip, coded.plan.proxy_port, timeout=60)
    try:
        connection.request("GET", "/v1/AUTH_test/c/large", headers={"X-Auth-Token": coded.token()})
        response = connection.getresponse()
        digest = hashlib.md5(response.read(100_000))
        coded.kill(f"object-{node}", signal.SIGKILL)
        while piece := response.read(1 << 20):
            digest.update(piece)
    finally:
        connection.close()
    assert digest.hexdigest() == hashlib.md5(large).hexdigest()


def test_an_upload_aborted_by_the_client_leaves_nothing(coded):
    connection = http.client.HTTPConnection(coded.plan.ip, coded.plan.proxy_port, timeout=60)
    connection.putrequest("PUT", "/v1/AUTH_test/c/half")
    connection.putheader("X-Auth-Token", coded.token())
    connection.putheader("Content-Length", str(len(BODY)))
    connection.endheaders()
    connection.send(BODY[:2_500_000])
    connection.close()
    coded.await_true(lambda: "499" in (coded.plan.logs / "proxy.log").read_text(), "the proxy noticed")
    assert coded.request("GET", "c/half").status == 404
    coded.await_true(lambda: archives(coded) == {}, "no archive is left")
    assert coded.request("GET", "c?format=json").json() == []
