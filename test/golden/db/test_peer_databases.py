"""Databases that the peer wrote open, merge and answer exactly as they did there; and the reverse.

``peer-databases.tar.gz`` holds hash directories as the peer left them (two with pending rows),
``peer-answers.json`` what its servers then answered and what its tables held after merging.
"""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.container.server import ContainerServer
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from test.support import checks

DATA = Path(__file__).parents[1] / "data" / "db"
GOLDEN = json.loads((DATA / "peer-answers.json").read_text())
HASHER = PathHasher(GOLDEN["hash_prefix"].encode(), GOLDEN["hash_suffix"].encode())
PEER_BIN = os.environ.get("SWIFT_PEER_BIN")


@pytest.fixture()
def servers(tmp_path):
    (tmp_path / "sda").mkdir()
    checks.unpack(DATA / "peer-databases.tar.gz", tmp_path / "sda")
    context = BackendContext(devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER)
    return {"account": AccountServer(context), "container": ContainerServer(context)}


def ask(servers, answer):
    path, _, query = answer["path"].partition("?")
    request = Request(answer["method"], path, dict(answer["headers"]), query=query)
    return servers[answer["server"]].handle(request)


@pytest.mark.parametrize("answer", GOLDEN["answers"], ids=lambda a: f"{a['method']} {a['path']}")
def test_every_answer_is_the_peers(servers, answer):
    response = ask(servers, answer)
    assert response.status == answer["status"]
    if answer["method"] != "HEAD":
        assert response.read_body().decode() == answer["body"]
    ours = {name: value for name, value in response.headers.items() if name != "content-length"}
    assert ours == answer["response_headers"]


@pytest.mark.parametrize("name", GOLDEN["merged"])
def test_merging_pending_rows_gives_the_peers_rows_and_hash(servers, tmp_path, name):
    names = name.split("/")
    kind, table = (
        ("accounts", "account_stat, container")
        if len(names) == 1
        else ("containers", "container_info, object")
    )
    server = servers[kind[:-1]]
    server.handle(Request("HEAD", f"/sda/1/{name}"))
    digest = HASHER.hexdigest(*names)
    path = tmp_path / "sda" / kind / "1" / digest[-3:] / digest / f"{digest}.db"
    assert path.with_name(f"{digest}.db.pending").stat().st_size == 0
    stat, rows = table.split(", ")
    columns = (
        "name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, storage_policy_index"
        if kind == "accounts"
        else "name, created_at, size, content_type, etag, deleted, storage_policy_index"
    )
    connection = sqlite3.connect(path)
    found = sorted(map(list, connection.execute(f"SELECT {columns} FROM {rows}")))
    assert found == GOLDEN["merged"][name]["rows"]
    assert connection.execute(f"SELECT hash FROM {stat}").fetchone()[0] == GOLDEN["merged"][name]["hash"]


@pytest.mark.peer
@pytest.mark.skipif(not PEER_BIN, reason="SWIFT_PEER_BIN is not set")
def test_the_peers_tools_read_our_databases(servers, tmp_path):
    headers = {"x-timestamp": "1700000100.00000", "x-container-meta-color": "red"}
    created = servers["container"].handle(Request("PUT", "/sda/1/AUTH_ours/c", headers))
    assert created.status == 201
    row = {"x-timestamp": "1700000101.00000", "x-size": "7", "x-etag": "e", "x-content-type": "t/p"}
    servers["container"].handle(Request("PUT", "/sda/1/AUTH_ours/c/o", row))
    digest = HASHER.hexdigest("AUTH_ours", "c")
    path = tmp_path / "sda" / "containers" / "1" / digest[-3:] / digest / f"{digest}.db"
    (tmp_path / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_prefix = changeme\nswift_hash_path_suffix = changeme\n"
    )
    shown = subprocess.run(
        [f"{PEER_BIN}/swift-container-info", "-d", str(tmp_path), str(path)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "Object Count: 1" in shown and "Bytes Used: 7" in shown
    assert "Color: red" in shown or "red" in shown
