"""REPLICATE refuses what it cannot use and takes databases only when they are whole."""

import json
import shutil
import sqlite3
from types import SimpleNamespace

import pytest

from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.container.server import ContainerServer
from swift.http.body import BytesBody, ClientDisconnected
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext

HASHER = PathHasher(b"", b"s")
HASH = HASHER.hexdigest("a", "c")
UPLOAD = "x-backend-database-upload"
ROW = {"x-timestamp": "1700000001.00000", "x-size": "5", "x-etag": "e", "x-content-type": "t/p"}


@pytest.fixture
def server(tmp_path):
    (tmp_path / "sda").mkdir()
    (tmp_path / "sdb").mkdir()
    return ContainerServer(BackendContext(devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER))


def put(server, device="sda", rows=2):
    headers = {"x-timestamp": "1700000000.00000"}
    assert server.handle(Request("PUT", f"/{device}/1/a/c", headers)).status == 201
    for n in range(rows):
        assert server.handle(Request("PUT", f"/{device}/1/a/c/{device}{n}", dict(ROW))).status == 201


def say(server, *message, device="sda", name_hash=HASH, body=None, headers=None):
    data = json.dumps(message).encode() if body is None else body
    return server.handle(Request("REPLICATE", f"/{device}/1/{name_hash}", headers or {}, data))


def sync(server, device="sda", **changes):
    facts = {
        "max_row": 0,
        "hash": "0" * 32,
        "id": "them",
        "created_at": "1700000000.00000",
        "put_timestamp": "1700000000.00000",
        "delete_timestamp": "0",
        "metadata": "",
        **changes,
    }
    return say(server, "sync", *facts.values(), device=device)


def folder(tmp_path, device="sda"):
    return tmp_path / device / "containers" / "1" / HASH[-3:] / HASH


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{}", b"Invalid object type"),
        (b'"sync"', b"Invalid object type"),
        (b"[]", b"Invalid object type"),
        (b"[1]", b"Invalid object type"),
        (b"[[", b"Invalid JSON"),
        (b'["dance"]', b"unknown operation"),
        (b'["complete_rsync"]', b"not the id"),
        (b'["complete_rsync", "../x"]', b"not the id"),
        (b'["complete_rsync", "x", "y.db"]', b"not the name"),
    ],
)
def test_nonsense_is_refused(server, body, words):
    response = say(server, body=body)
    assert response.status == 400
    assert words in response.read_body()


@pytest.mark.parametrize(
    "message",
    [
        ("sync", 1, "h"),
        ("sync", "x", "h", "id", "1", "1", "0", ""),
        ("sync", 1, "h", "a/b", "1", "1", "0", ""),
        ("sync", 1, "h", "id", "yesterday", "1", "0", ""),
        ("merge_items", "rows", "id"),
        ("merge_items", [{"ROWID": 1}], "id"),
        ("merge_items", [{"ROWID": "x", "name": "o", "created_at": "1700000001.00000"}], "id"),
        ("merge_items", []),
        ("merge_syncs", [{"remote_id": "x"}]),
        ("merge_syncs", [{"remote_id": "x", "sync_point": float("inf")}]),
        ("merge_syncs", [{"remote_id": "x", "sync_point": 10**30}]),
        ("merge_syncs", [{"remote_id": "\ud800", "sync_point": 1}]),
        ("sync", 1, "h", "\ud800", "1", "1", "0", ""),
        ("merge_items", [{"ROWID": 1, "name": "o", "created_at": "1700000001.00000"}], "\ud800"),
        ("merge_shard_ranges", [{"name": "a/\ud800", "timestamp": "1"}], "id"),
        ("complete_rsync", "\ud800"),
        ("rsync_then_merge", "x" * 5000),
        ("merge_shard_ranges", [{"name": "x"}], "id"),
    ],
)
def test_malformed_arguments_are_refused_and_change_nothing(server, message):
    put(server)
    before = sync(server).read_body()
    assert say(server, *message).status == 400
    assert sync(server).read_body() == before


def test_metadata_that_nobody_can_read_is_none(server):
    put(server)
    assert sync(server, metadata="[" * 100_000).status == 200


@pytest.mark.parametrize("path", ["/sda/1/xyz", "/sda/x/" + HASH, "/sda/1/" + "Z" * 32, "/sda/1"])
def test_malformed_paths_are_refused(server, path):
    assert server.handle(Request("REPLICATE", path, {}, b'["sync"]')).status == 400


def test_a_missing_device_is_507_and_a_missing_database_404(server, tmp_path):
    assert say(server, "sync", device="sdz").status == 507
    response = sync(server)
    assert response.status == 404
    # So that rsync finds where to write, and we where to upload.
    assert (tmp_path / "sda" / "tmp").is_dir()
    assert response.headers[UPLOAD] == "true"


def test_accounts_know_no_shard_ranges(tmp_path):
    (tmp_path / "sda").mkdir()
    server = AccountServer(BackendContext(devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER))
    assert say(server, "get_shard_ranges").status == 400


def test_equal_hashes_are_remembered_as_everything_sent(server):
    put(server)
    info = json.loads(sync(server).read_body())
    assert info["point"] == -1
    learned = json.loads(sync(server, hash=info["hash"], max_row=17).read_body())
    assert learned["point"] == 17
    assert json.loads(sync(server).read_body())["point"] == 17


def test_the_servers_own_broker_keeps_its_names(server):
    put(server)
    server.brokers.close()
    sync(server)
    (broker,) = server.brokers._brokers.values()
    assert (broker.account, broker.container) == ("a", "c")


def test_an_upload_becomes_a_database_of_its_own_once(server, tmp_path):
    put(server, "sdb")
    sync(server, "sdb")
    (source,) = folder(tmp_path, "sdb").glob("*.db")
    assert say(server, body=source.read_bytes(), headers={UPLOAD: "theirs"}).status == 204
    assert not folder(tmp_path).exists()
    assert say(server, "complete_rsync", "theirs", f"{HASH}.db").status == 204
    assert say(server, "complete_rsync", "theirs", f"{HASH}.db").status == 404
    connection = sqlite3.connect(folder(tmp_path) / f"{HASH}.db")
    own_id = connection.execute("SELECT id FROM container_info").fetchone()[0]
    assert own_id.endswith("-sda")
    assert ("theirs", 2) in connection.execute("SELECT remote_id, sync_point FROM incoming_sync").fetchall()
    assert json.loads(sync(server, id="theirs").read_body())["point"] == 2
    assert not list((tmp_path / "sda" / "tmp").iterdir())


def test_an_upload_that_comes_too_late_leaves_the_database_and_no_file(server, tmp_path):
    for device in ("sda", "sdb"):
        put(server, device)
        sync(server, device)
    (source,) = folder(tmp_path, "sdb").glob("*.db")
    (have,) = folder(tmp_path).glob("*.db")
    before = have.read_bytes()
    assert say(server, body=source.read_bytes(), headers={UPLOAD: "theirs"}).status == 204
    assert say(server, "complete_rsync", "theirs", f"{HASH}.db").status == 404
    assert have.read_bytes() == before
    assert not list((tmp_path / "sda" / "tmp").iterdir())


def test_an_upload_that_breaks_off_leaves_nothing(server, tmp_path):
    class Broken(BytesBody):
        def read(self, size=-1):
            data = super().read(10)
            if not data:
                raise ClientDisconnected("gone")
            return data

    request = Request("REPLICATE", f"/sda/1/{HASH}", {UPLOAD: "theirs"}, Broken(b"x" * 35))
    assert server.handle(request).status == 499
    assert not list((tmp_path / "sda" / "tmp").iterdir())


@pytest.mark.parametrize("damage", ["cut", "other", "garbage"])
def test_what_is_not_this_database_whole_gets_no_name(server, tmp_path, damage):
    put(server, "sdb", rows=200)
    sync(server, "sdb")
    (source,) = folder(tmp_path, "sdb").glob("*.db")
    data = source.read_bytes()
    name_hash = HASH
    if damage == "cut":
        data = data[: len(data) // 2 // 4096 * 4096]
    elif damage == "garbage":
        data = b"\x00garbage" * 1000
    else:
        name_hash = HASHER.hexdigest("a", "other")
    assert say(server, body=data, headers={UPLOAD: "theirs"}, name_hash=name_hash).status == 204
    assert say(server, "complete_rsync", "theirs", name_hash=name_hash).status == 404
    assert not list((tmp_path / "sda").glob("containers/*/*/*/*.db"))
    assert not list((tmp_path / "sda" / "tmp").iterdir())


def test_rows_of_both_are_in_the_exchanged_database(server, tmp_path):
    put(server, "sda", rows=3)
    put(server, "sdb", rows=1500)
    info = json.loads(sync(server, "sdb").read_body())
    before = json.loads(sync(server).read_body())["id"]
    (source,) = folder(tmp_path, "sdb").glob("*.db")
    assert say(server, "rsync_then_merge", "theirs", f"{HASH}.db").status == 404
    assert say(server, body=source.read_bytes(), headers={UPLOAD: info["id"]}).status == 204
    assert say(server, "rsync_then_merge", info["id"], f"{HASH}.db").status == 204
    after = json.loads(sync(server, id=info["id"]).read_body())
    assert after["count"] == 1503
    assert after["id"] not in (before, info["id"])
    assert after["point"] >= 1500
    # The server goes on with the new file.
    assert server.handle(Request("PUT", "/sda/1/a/c/later", dict(ROW))).status == 201
    assert json.loads(sync(server).read_body())["count"] == 1504


def test_an_arrived_database_takes_the_place_of_none_that_is_being_split_up(server, tmp_path):
    put(server, "sda", rows=3)
    put(server, "sdb", rows=2)
    info = json.loads(sync(server, "sdb").read_body())
    (source,) = folder(tmp_path, "sdb").glob("*.db")
    sync(server)
    (old,) = folder(tmp_path).glob("*.db")
    new = old.with_name(f"{HASH}_1700000009.00000.db")
    shutil.copy(old, new)
    before = new.read_bytes(), old.read_bytes()
    assert say(server, body=source.read_bytes(), headers={UPLOAD: info["id"]}).status == 204
    for name in (new.name, old.name):
        assert say(server, "rsync_then_merge", info["id"], name).status == 404
    assert (new.read_bytes(), old.read_bytes()) == before


def test_an_upload_that_breaks_off_is_discarded_at_once_whoever_remembers_the_error(server, tmp_path):
    error = ClientDisconnected("gone")

    class Broken(BytesBody):
        def read(self, size=-1):
            raise error

    request = Request("REPLICATE", f"/sda/1/{HASH}", {UPLOAD: "theirs"}, Broken(b"x"))
    assert server.handle(request).status == 499
    assert error.__traceback__ is not None
    assert not list((tmp_path / "sda" / "tmp").iterdir())


def test_a_broken_database_is_quarantined_and_reported_missing(server, tmp_path):
    put(server)
    server.brokers.close()
    (folder(tmp_path) / f"{HASH}.db").write_bytes(b"\xff" * 9000)
    assert sync(server).status == 404
    assert (tmp_path / "sda" / "quarantined" / "containers" / HASH).is_dir()
    assert sync(server).status == 404


def test_a_database_under_a_wrong_name_is_not_believed(server, tmp_path):
    put(server)
    server.brokers.close()
    wrong = folder(tmp_path).with_name("0" * 29 + HASH[-3:])
    folder(tmp_path).rename(wrong)
    (wrong / f"{HASH}.db").rename(wrong / f"{wrong.name}.db")
    arguments = (0, "h", "id", "1700000000.00000", "1700000000.00000", "0", "")
    assert say(server, "sync", *arguments, name_hash=wrong.name).status == 409


def test_bodies_in_small_pieces_are_read_whole(server):
    put(server)

    class Slow(BytesBody):
        def read(self, size=-1):
            return super().read(7)

    rows = [{"name": f"p{n}", "created_at": "1700000002.00000", "size": 1} for n in range(50)]
    body = Slow(json.dumps(rows).encode())
    request = Request("UPDATE", "/sda/1/a/c", {"x-timestamp": "1700000002.00000"}, body)
    assert server.handle(request).status == 202
    assert json.loads(sync(server).read_body())["count"] == 52


def test_a_server_for_clients_only_does_not_replicate(tmp_path):
    context = BackendContext(devices=Devices(str(tmp_path)), replication_server=False)
    assert SimpleNamespace(app=ContainerServer(context)).app.handle(Request("REPLICATE", "/x")).status == 405


LOST = {"x-backend-lost-partitions": "true"}


def hear(server, body, path="/sda/1"):
    return server.handle(Request("REPLICATE", path, dict(LOST), body))


def test_what_another_node_lost_looks_changed_here(server, tmp_path):
    put(server)
    path = folder(tmp_path) / f"{HASH}.db"
    before = path.stat().st_ctime_ns
    answer = hear(server, b"[1, 2]")
    assert (answer.status, json.loads(answer.read_body())) == (200, {"databases": 1, "partitions": [1]})
    assert answer.headers[next(iter(LOST))] == "true"
    assert path.stat().st_ctime_ns > before
    assert json.loads(hear(server, b"[2]").read_body()) == {"databases": 0, "partitions": []}
    assert sync(server).status == 200


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        (b"nonsense", "/sda/1", 400),
        (b"[1]", "/sda", 400),
        (b"[1]", "/../1", 400),
        (b"[" + b"1," * 20_000 + b"1]", "/sda/1", 413),
    ],
)
def test_a_message_of_losses_that_is_none_is_refused(server, body, path, status):
    assert hear(server, body, path).status == status


def test_a_device_that_is_not_mounted_hears_of_no_losses(tmp_path):
    (tmp_path / "sda").mkdir()
    server = ContainerServer(BackendContext(devices=Devices(str(tmp_path), mount_check=True), hasher=HASHER))
    assert hear(server, b"[1]").status == 507
