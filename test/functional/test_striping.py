"""Large objects from several nodes at once, in real processes (doc/explanation/striping.md)."""

import http.client
import json
import os
import random
import signal
import time
from hashlib import md5
from pathlib import Path

import pytest

from swift.aio.make import make_cluster
from test.support.cluster import LiveCluster

BODY = random.Random(3).randbytes(24_000_001)
UNIT = 1 << 20


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    made = LiveCluster(
        tmp_path_factory.mktemp("striping") / "data",
        nodes=4,
        replicas=3,
        ec="2+1",
        options="\n[filter:slo]\nuse = egg:swift#slo\nread_ahead_bytes = 8000000\n",
    )
    try:
        make_cluster(made.plan)
        conf = made.plan.etc / "proxy-server.conf"
        options = f"striping_memory = {8 * UNIT}\nstriping_unit = {UNIT}\nstriping_from = {4 * UNIT}\n"
        options += f"upload_memory = {4 * UNIT}\nupload_patience = 1\n"
        conf.write_text(conf.read_text().replace("egg:swift#proxy\n", f"egg:swift#proxy\n{options}", 1))
        made.start()
        made.request("PUT", "gold")
        made.request("PUT", "coded", {"X-Storage-Policy": "ec"})
        for container in ("gold", "coded"):
            assert made.request("PUT", f"{container}/o", body=BODY).status == 201
        yield made
    finally:
        made.stop()


def reading_nodes(live, container):
    """Return the nodes whose object servers served the object, by their access log lines."""
    found = set()
    for node in live.plan.node_numbers():
        lines = (live.plan.logs / f"object-{node}.log").read_text().splitlines()
        if any('"GET ' in line and f"/AUTH_test/{container}/o" in line for line in lines):
            found.add(node)
    return found


def test_a_replicated_object_is_read_from_all_replicas_unchanged(live):
    assert live.request("GET", "gold/o").body == BODY
    live.await_true(lambda: len(reading_nodes(live, "gold")) == 3, "three nodes logged a GET")
    response = live.request("GET", "gold/o", {"Range": "bytes=1000-20000000"})
    assert (response.status, response.body) == (206, BODY[1000:20_000_001])


def halfway(live, path, then):
    """Run ``then`` half-way through a download; return its remaining bytes."""
    connection = http.client.HTTPConnection(live.plan.ip, live.plan.proxy_port, timeout=60)
    try:
        connection.request("GET", f"/v1/AUTH_test/{path}", headers={"X-Auth-Token": live.token()})
        response = connection.getresponse()
        assert response.status == 200
        first = response.read(6_000_000)
        then()
        return first + response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("container", ["gold", "coded"])
def test_a_node_failure_during_a_download_is_masked(live, container):
    try:
        assert halfway(live, f"{container}/o", lambda: live.kill("object-2")) == BODY
    finally:
        live.restart("object-2")


def has_unnamed_file(group):
    """Return True if a process of a group has a file open that has no name yet."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rpartition(")")[2].split()[2]) != group:
                continue
            targets = [os.readlink(path) for path in status.with_name("fd").iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any("/objects" in target and target.endswith(" (deleted)") for target in targets):
            return True
    return False


def test_an_upload_continues_without_a_node_that_stops_reading(live):
    live.request("PUT", "gold/slow", body=b"where it is")
    node = live.node_of(next(each for each in live.stored(policy=0) if each.body() == b"where it is"))
    server = live.pid(f"object-{node}")
    connection = http.client.HTTPConnection(live.plan.ip, live.plan.proxy_port, timeout=60)
    try:
        headers = {"X-Auth-Token": live.token(), "Content-Length": str(len(BODY))}
        connection.putrequest("PUT", "/v1/AUTH_test/gold/slow")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(BODY[: 4 * UNIT])
        live.await_true(lambda: has_unnamed_file(server), "a body that is being written")
        os.killpg(server, signal.SIGSTOP)
        began = time.monotonic()
        connection.send(BODY[4 * UNIT :])
        assert connection.getresponse().status == 201
        assert 1 <= time.monotonic() - began < 9, "the patience, not the timeout of the node"
    finally:
        os.killpg(server, signal.SIGCONT)
        connection.close()
    live.await_true(lambda: "upload continues without" in live.log_text(), "a line in the log")
    assert live.request("GET", "gold/slow", {"X-Newest": "true"}).body == BODY


def test_prefetched_segments_have_the_same_bytes(live):
    live.request("PUT", "parts")
    size, manifest = 3_000_000, []
    for start in range(0, len(BODY), size):
        piece = BODY[start : start + size]
        live.request("PUT", f"parts/{start:09}", body=piece)
        manifest.append({"path": f"/parts/{start:09}", "etag": md5(piece).hexdigest()})
    made = live.request("PUT", "gold/whole?multipart-manifest=put", body=json.dumps(manifest))
    assert made.status == 201, made
    assert live.request("GET", "gold/whole").body == BODY
    response = live.request("GET", "gold/whole", {"Range": "bytes=2999999-9000000"})
    assert response.body == BODY[2_999_999:9_000_001]
