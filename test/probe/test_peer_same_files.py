"""The peer's servers and ours on the same databases: each serves rows that the other wrote.

Both run at the same time on one device (ours sees it through a link), as no operator would have it, but as it
is one after the other when a node is taken over and given back. Locks, pending files, journals and triggers
must be understood by both.
"""

import http.client
import json
import shutil
import threading

import pytest

from test.probe.test_peer_databases import HASHER, OURS, PART_POWER, PEER, Mixed, stamp
from test.support import databases
from test.support.peer import can_hide_etc, needs_peer

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
    pytest.mark.skipif(shutil.which("rsync") is None, reason="the nodes of this test start one"),
]
BOTH = pytest.mark.parametrize(("writer", "reader"), [(PEER, OURS), (OURS, PEER)], ids=["by peer", "by us"])


class Shared(Mixed):
    """Servers of both kinds on the peer's device."""

    def __init__(self, root):
        super().__init__(root)
        self.device(OURS).rmdir()
        self.device(OURS).symlink_to(self.device(PEER))

    def get(self, kind, node, names, query="?format=json"):
        """Return status, the info headers, and the rows."""
        part = HASHER.digest(*names)[0] >> (8 - PART_POWER)
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[kind, node], timeout=30)
        try:
            connection.request("GET", f"/sd{node}/{part}/{'/'.join(names)}{query}")
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        told = {
            name: value for name, value in headers.items() if name.startswith((f"x-{kind}-", "x-backend-"))
        }
        return response.status, told, json.loads(body) if body and response.status == 200 else body


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    nodes = Shared(tmp_path_factory.mktemp("shared"))
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()


@pytest.fixture(autouse=True)
def empty_device(shared):
    """Every test begins with an empty device; servers notice that by themselves."""
    yield
    for path in shared.device(PEER).iterdir():
        if path.is_file():
            # The fingerprint of the hash path stays.
            continue
        shutil.rmtree(path)


def put_container_row(shared, node, name, tick):
    headers = {
        "x-put-timestamp": stamp(tick),
        "x-delete-timestamp": "0",
        "x-object-count": str(tick),
        "x-bytes-used": "9",
    }
    assert shared.ask("account", node, "PUT", ("a", name), headers).status == 201


def assert_both_say_the_same(shared, kind, *names):
    responses = [shared.get(kind, node, names) for node in (PEER, OURS)]
    assert responses[0] == responses[1]
    assert responses[0][0] == 200
    return responses[0]


@BOTH
def test_containers_are_served_by_the_other(shared, writer, reader):
    shared.put_container(writer, "c", **{"x-container-meta-color": "blue"})
    # Rows that are not merged yet are in a separate file.
    shared.put_rows(writer, "c", range(2, 12))
    _status, headers, rows = shared.get("container", reader, ("a", "c"))
    assert (headers["x-container-object-count"], headers["x-container-meta-color"]) == ("10", "blue")
    assert [row["name"] for row in rows] == [f"o{tick:03}" for tick in range(2, 12)]
    shared.put_rows(reader, "c", range(20, 25))
    shared.put_rows(reader, "c", (3, 4), "DELETE", later=30)
    shared.put_rows(writer, "c", (4,), later=40)
    post = {"x-timestamp": stamp(50), "x-container-meta-color": "red"}
    assert shared.ask("container", reader, "POST", ("a", "c"), post).status == 204
    _status, headers, rows = assert_both_say_the_same(shared, "container", "a", "c")
    assert (headers["x-container-object-count"], headers["x-container-meta-color"]) == ("14", "red")
    assert shared.ask("container", writer, "DELETE", ("a", "c"), {"x-timestamp": stamp(60)}).status == 409


@BOTH
def test_a_container_deleted_by_one_is_recreated_by_the_other(shared, writer, reader):
    shared.put_container(writer, "c")
    assert shared.ask("container", reader, "DELETE", ("a", "c"), {"x-timestamp": stamp(5)}).status == 204
    assert shared.ask("container", writer, "HEAD", ("a", "c")).status == 404
    again = {"x-timestamp": stamp(9), "x-backend-storage-policy-index": "1"}
    assert shared.ask("container", writer, "PUT", ("a", "c"), again).status == 201
    for node in (PEER, OURS):
        response = shared.ask("container", node, "HEAD", ("a", "c"))
        assert (response.status, response.getheader("x-backend-storage-policy-index")) == (204, "1")


@BOTH
def test_accounts_are_served_by_the_other(shared, writer, reader):
    assert shared.ask("account", writer, "PUT", ("a",), {"x-timestamp": stamp(1)}).status == 201
    for tick in range(2, 8):
        put_container_row(shared, writer, f"c{tick}", tick)
    _status, headers, rows = shared.get("account", reader, ("a",))
    assert headers["x-account-container-count"] == "6"
    put_container_row(shared, reader, "c20", 20)
    put_container_row(shared, reader, "c3", 30)
    _status, headers, rows = assert_both_say_the_same(shared, "account", "a")
    assert headers["x-account-container-count"] == "7"
    assert [row["name"] for row in rows] == ["c2", "c20", "c3", "c4", "c5", "c6", "c7"]
    assert shared.ask("account", reader, "DELETE", ("a",), {"x-timestamp": stamp(60)}).status == 204
    for node in (PEER, OURS):
        response = shared.ask("account", node, "HEAD", ("a",))
        assert (response.status, response.getheader("x-account-status")) == (404, "Deleted")


def test_both_write_to_one_container_at_the_same_time(shared):
    shared.put_container(OURS, "c")
    shared.ask("container", PEER, "HEAD", ("a", "c"))
    failures = []

    def write(node, first):
        try:
            for tick in range(first, first + 40):
                shared.put_rows(node, "c", (tick,))
                if tick % 7 == 0:
                    shared.ask("container", node, "HEAD", ("a", "c"))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(node, 100 * node)) for node in (PEER, OURS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    _status, headers, rows = assert_both_say_the_same(shared, "container", "a", "c")
    assert headers["x-container-object-count"] == "80"
    assert len(rows) == 80


@pytest.mark.parametrize("age", databases.OLD_CONTAINERS)
def test_container_databases_of_every_age_migrated_by_us_are_served_by_the_peer(shared, age):
    folder = shared.folder("container", PEER, "a", "c")
    folder.mkdir(parents=True)
    databases.make_old_container(folder / f"{folder.name}.db", age)
    shared.put_rows(OURS, "c", (7,))
    _status, headers, rows = assert_both_say_the_same(shared, "container", "a", "c")
    shared.put_rows(PEER, "c", (8,))
    _status, headers, rows = assert_both_say_the_same(shared, "container", "a", "c")
    assert [row["name"] for row in rows] == ["o007", "o008", "o1", "o2"]
    assert headers["x-container-object-count"] == "4"


@pytest.mark.parametrize("age", databases.OLD_ACCOUNTS)
def test_account_databases_of_every_age_migrated_by_us_are_served_by_the_peer(shared, age):
    folder = shared.folder("account", PEER, "a")
    folder.mkdir(parents=True)
    databases.make_old_account(folder / f"{folder.name}.db", age)
    put_container_row(shared, OURS, "c7", 7)
    assert_both_say_the_same(shared, "account", "a")
    put_container_row(shared, PEER, "c8", 8)
    _status, headers, rows = assert_both_say_the_same(shared, "account", "a")
    assert [row["name"] for row in rows] == ["c1", "c2", "c7", "c8"]
    assert headers["x-account-container-count"] == "4"
