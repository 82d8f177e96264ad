"""Container updates are sent at once, waited for shortly, never lost (object-server.md §11, §12)."""

from __future__ import annotations

import pytest

from swift.cluster.health import UNRESPONSIVE_S
from swift.cluster.transport import BackendResponse, TimedOut, TransportError
from swift.green import Event, sleep
from swift.obj.containerupdates import (
    shard_path,
    split_address,
    split_hosts,
    with_swift_bytes,
    without_swift_bytes,
)
from swift.store.asyncpending import decode_update
from swift.store.handle import StoreHandle
from swift.store.layered import ForwardingStore
from test.support.daemons import ErrorLog

ASK = {"x-container-host": "10.0.0.1:6201", "x-container-device": "sdb", "x-container-partition": "9"}


def test_an_update_that_arrives_leaves_no_pending(bench):
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    ((ip, port, method, path, headers),) = bench.containers.requests
    assert (ip, port, method, path) == ("10.0.0.1", 6201, "PUT", "/sdb/9/AUTH_a/c/o")
    assert headers["x-size"] == "1"
    assert bench.pendings() == []


@pytest.mark.parametrize(
    "response", [TransportError("down"), ValueError("a line break"), 500, 404, 507, BackendResponse(301)]
)
def test_an_update_that_fails_is_kept(bench, response):
    bench.containers.answers[6201] = response
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    assert len(bench.pendings()) == 1


@pytest.mark.parametrize("method", ("PUT", "POST", "DELETE"))
def test_a_change_whose_row_can_be_neither_sent_nor_saved_is_not_acknowledged(make_bench, method):
    log = ErrorLog()
    bench = make_bench(log=log)
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    bench.containers.answers[6201] = 507
    (bench.root / "sda/async_pending").symlink_to("/proc/self/nowhere")
    assert bench.ask(method, headers=ASK, body=b"y" if method == "PUT" else b"").status == 503
    assert any("is lost, neither sent nor saved" in sentence for sentence in log.sentences)


def test_a_container_server_that_fails_is_told_of_once_for_each_reason_not_with_every_update(make_bench):
    log = ErrorLog()
    bench = make_bench(log=log)
    for response in (507, 507, 404, 404, 507):
        bench.containers.answers[6201] = response
        bench.ask("PUT", headers=ASK, body=b"x")
    said = "ERROR Container update failed (saving for async update later): status"
    assert log.sentences == [f"{said} {status} from 10.0.0.1:6201/sdb" for status in (507, 404)]


@pytest.mark.parametrize(
    ("headers", "shard"),
    [
        ({"location": "/.shards_a/c-%C3%BC/o", "x-backend-location-is-quoted": "true"}, ".shards_a/c-ü"),
        ({"location": "/.shards_a/c-\xc3\xbc/o"}, ".shards_a/c-ü"),
        ({"location": "/.shards_a/c"}, ".shards_a/c"),
        ({"location": "/.shards_a"}, None),
    ],
)
def test_an_update_that_is_redirected_is_kept_with_its_shard(bench, headers, shard):
    stamp = {"x-backend-redirect-timestamp": "0000000005.00000"}
    bench.containers.answers[6201] = BackendResponse(301, {**headers, **stamp})
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    (path,) = bench.root.glob("*/async_pending*/*/*")
    assert decode_update(path.read_bytes())[0].container_path == shard


def test_an_address_that_is_none_is_kept_for_later(bench):
    assert bench.ask("PUT", headers={**ASK, "x-container-host": "nonsense"}, body=b"x").status == 201
    assert bench.containers.requests == []
    assert len(bench.pendings()) == 1


def test_lists_of_different_lengths_are_skipped(bench):
    assert bench.ask("PUT", headers={**ASK, "x-container-device": "a,b"}, body=b"x").status == 201
    assert bench.containers.requests == []
    assert bench.pendings() == []


def test_a_client_does_not_wait_longer_than_the_bound_and_the_update_goes_on(make_bench):
    bench = make_bench(container_update_timeout=0.02)
    release = Event()

    def slow():
        release.wait()
        return BackendResponse(503)

    bench.containers.answers[6201] = slow
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    assert bench.pendings() == []
    release.set()
    for _ in range(100):
        if bench.pendings():
            break
        sleep(0.001)
    assert len(bench.pendings()) == 1


def test_nobody_waits_for_a_container_server_that_answers_nobody(make_bench):
    bench = make_bench(container_update_timeout=0.02, node_timeout=3)
    release = Event()

    def stopped():
        release.wait()
        raise TimedOut("late")

    bench.containers.answers[6201] = stopped
    assert bench.ask("PUT", headers=ASK, body=b"x").status == 201
    bench.clock.advance(UNRESPONSIVE_S)
    for number in range(3):
        assert bench.ask("PUT", headers=ASK, body=b"x", path=f"/sda/1/AUTH_a/c/o{number}").status == 201
    assert len(bench.containers.requests) == 2, "the second is a probe"
    assert len(bench.pendings()) == 2
    bench.containers.answers[6201] = 201
    bench.clock.advance(1.5)
    bench.ask("PUT", headers=ASK, body=b"x", path="/sda/1/AUTH_a/c/p1")
    sleep(0)
    bench.ask("PUT", headers=ASK, body=b"x", path="/sda/1/AUTH_a/c/p2")
    assert len(bench.containers.requests) == 4 and len(bench.pendings()) == 2
    release.set()
    while len(bench.pendings()) < 4:
        sleep(0.001)


def test_a_container_server_that_refuses_is_not_silent(make_bench):
    bench = make_bench()
    for _ in range(3):
        bench.containers.answers[6201] = TransportError("down")
        bench.ask("PUT", headers=ASK, body=b"x")
        bench.clock.advance(UNRESPONSIVE_S)
    assert len(bench.containers.requests) == 3


def test_nothing_is_told_about_a_request_that_was_refused(bench):
    bench.ask("PUT", body=b"x")
    bench.ask("PUT", headers={**ASK, "x-timestamp": "1"}, body=b"x")
    bench.ask("DELETE", headers={**ASK, "x-timestamp": "1"})
    bench.ask("POST", headers={**ASK, "x-timestamp": "1"})
    assert bench.containers.requests == []


def test_deleting_an_expiring_object_takes_it_out_of_the_queue(bench):
    bench.ask("PUT", headers={"x-delete-at": "6000000000"}, body=b"x")
    assert bench.pendings() == []
    bench.ask("DELETE")
    assert len(bench.pendings()) == 1


def test_a_queue_host_without_device_or_partition_goes_straight_to_pending(bench):
    headers = {"x-delete-at": "6000000000", "x-delete-at-host": "10.0.0.1:6201"}
    bench.ask("PUT", headers=headers, body=b"x")
    assert bench.containers.requests == []
    assert len(bench.pendings()) == 1


def test_the_proxy_s_queue_container_is_used(bench):
    headers = {
        "x-delete-at": "6000000000",
        "x-delete-at-host": "10.0.0.1:6201",
        "x-delete-at-device": "sdb",
        "x-delete-at-partition": "9",
        "x-delete-at-container": "5999999999",
    }
    bench.ask("PUT", headers=headers, body=b"x")
    (request,) = bench.containers.requests
    assert request[3] == "/sdb/9/.expiring_objects/5999999999/6000000000-AUTH_a/c/o"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1:6201", ("10.0.0.1", 6201)),
        ("[::1]:6201", ("::1", 6201)),
        ("host:80", ("host", 80)),
        ("host", None),
        (":80", None),
        ("host:x", None),
        ("host:99999", None),
    ],
)
def test_addresses(text, address):
    assert split_address(text) == address


def test_hosts_pair_with_devices():
    assert split_hosts("a:1, b:2", "x, y") == (("a:1", "x"), ("b:2", "y"))
    assert split_hosts("", "") == ()


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({}, None),
        ({"x-backend-container-path": "a/c"}, "a/c"),
        ({"x-backend-container-path": "a%20/c"}, "a%20/c"),
        ({"x-backend-quoted-container-path": "a%20/c"}, "a /c"),
        ({"x-backend-container-path": "a"}, None),
        ({"x-backend-container-path": "a/b/c"}, None),
    ],
)
def test_shard_paths(headers, path):
    assert shard_path(headers) == path


def test_swift_bytes_stay_with_the_body_whatever_type_is_posted():
    assert with_swift_bytes("a/b", "x/y;swift_bytes=9") == "a/b;swift_bytes=9"
    assert with_swift_bytes("a/b", "x/y") == "a/b"
    assert without_swift_bytes("x/y;swift_bytes=9") == "x/y"
    assert without_swift_bytes("x/y;swift_bytes=9;charset=a") == "x/y;charset=a"
    assert without_swift_bytes("x/y; charset=a") == "x/y; charset=a"


def test_an_update_is_kept_though_its_directory_vanishes_meanwhile(bench):
    failures = [FileNotFoundError("removed"), FileNotFoundError("again")]

    class Vanishing:
        def __init__(self, kept):
            self._kept = kept

        def save(self, *args):
            if failures:
                raise failures.pop()
            self._kept.save(*args)

    class Store(ForwardingStore):
        @property
        def updates(self):
            return Vanishing(self.inner.updates)

    stores = bench.app._stores
    bench.app._update_sender._store_at = lambda policy, device: StoreHandle(
        Store(stores.engine(policy)), device
    )
    bench.containers.answers = {1: 503}
    headers = {"X-Container-Host": "127.0.0.1:1", "X-Container-Device": "c1", "X-Container-Partition": "7"}
    assert bench.ask("PUT", headers=headers, body=b"abc").status == 201
    assert not failures
    assert len(bench.pendings()) == 1
