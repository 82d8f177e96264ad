"""Servers answer for databases of every age, take changes, and leave totals and hash that are true."""

import pytest

from swift.account import auditor as account_auditor
from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.container import auditor as container_auditor
from swift.container.server import ContainerServer
from swift.db.connection import chexor
from swift.db.files import DatabasePath
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from test.support import databases

HASHER = PathHasher(b"", b"ages")


@pytest.fixture
def context(tmp_path):
    (tmp_path / "sda").mkdir()
    return BackendContext(devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER)


def put_there(tmp_path, kind, make, age, *names):
    place = DatabasePath(str(tmp_path / "sda"), kind, "1", HASHER.hexdigest(*names))
    path = tmp_path / place.file()
    path.parent.mkdir(parents=True)
    make(path, age)


def ask(server, method, path, **headers):
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    path, _, query = path.partition("?")
    return server.handle(Request(method, path, sent, b"", query=query))


@pytest.mark.parametrize("age", databases.OLD_CONTAINERS)
def test_containers(tmp_path, context, age):
    put_there(tmp_path, "containers", databases.make_old_container, age, "a", "c")
    server, path = ContainerServer(context), "/sda/1/a/c"
    head = ask(server, "HEAD", path)
    assert (head.status, head.headers["x-container-object-count"]) == (204, "2")
    assert ask(server, "GET", path).read_body() == b"o1\no2\n"
    row = {"x_size": "7", "x_etag": "f", "x_content_type": "t/p"}
    assert ask(server, "PUT", f"{path}/o3", x_timestamp="0000000009.00000", **row).status == 201
    assert ask(server, "DELETE", f"{path}/o1", x_timestamp="0000000009.00000").status == 204
    meta = {"x_container_meta_color": "blue", "x_timestamp": "0000000009.00000"}
    assert ask(server, "POST", path, **meta).status == 204
    head = ask(server, "HEAD", path)
    assert head.headers["x-container-object-count"] == "2"
    assert head.headers["x-container-meta-color"] == "blue"
    assert ask(server, "GET", f"{path}?delimiter=/").read_body() == b"o2\no3\n"
    ranges = ask(server, "GET", f"{path}?format=json", x_backend_record_type="shard")
    assert ranges.status == 200

    broker = server.brokers.get(
        DatabasePath(str(tmp_path / "sda"), "containers", "1", HASHER.hexdigest("a", "c"))
    )
    assert broker.read(container_auditor.totals) == []
    total = "0" * 32
    for name, created_at in broker.read(
        lambda c: c.execute("SELECT name, created_at FROM object").fetchall()
    ):
        total = chexor(total, name, created_at)
    assert broker.info().hash == total


@pytest.mark.parametrize("age", databases.OLD_ACCOUNTS)
def test_accounts(tmp_path, context, age):
    put_there(tmp_path, "accounts", databases.make_old_account, age, "a")
    server, path = AccountServer(context), "/sda/1/a"
    head = ask(server, "HEAD", path)
    assert (head.status, head.headers["x-account-container-count"]) == (204, "2")
    assert head.headers["x-account-storage-policy-policy-0-container-count"] == "2"
    assert ask(server, "GET", path).read_body() == b"c1\nc2\n"
    row = {"x_object_count": "4", "x_bytes_used": "40", "x_put_timestamp": "0000000009.00000"}
    assert ask(server, "PUT", f"{path}/c3", x_delete_timestamp="0", **row).status == 201
    gone = {"x_object_count": "0", "x_bytes_used": "0", "x_put_timestamp": "0000000001.00000"}
    assert ask(server, "PUT", f"{path}/c1", x_delete_timestamp="0000000009.00000", **gone).status == 204
    meta = {"x_account_meta_color": "blue", "x_timestamp": "0000000009.00000"}
    assert ask(server, "POST", path, **meta).status == 204
    head = ask(server, "HEAD", path)
    assert head.headers["x-account-container-count"] == "2"
    assert head.headers["x-account-bytes-used"] == "70"
    assert head.headers["x-account-meta-color"] == "blue"
    assert ask(server, "GET", f"{path}?reverse=true").read_body() == b"c3\nc2\n"

    broker = server.brokers.get(DatabasePath(str(tmp_path / "sda"), "accounts", "1", HASHER.hexdigest("a")))
    assert broker.read(account_auditor.totals) == []
