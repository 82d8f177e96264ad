"""Container updates and async pendings equal the recorded ones (spec: object-server.md §11, §12)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swift.base.hashing import PathHasher
from swift.base.pickles import restricted_loads
from swift.cluster.transport import BackendResponse
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.store.asyncpending import decode_update, encode_update

DATA = Path(__file__).parent.parent / "data" / "async_pending"
CASES = json.loads((DATA / "container-updates.json").read_text())
#: The pid in the recording is somebody else's, and connections add what they need.
INCIDENTAL = {"User-Agent", "Host", "Accept-Encoding"}


class ScriptedContainers:
    """Answers as the recording scripted each port; keeps what was asked."""

    def __init__(self):
        self.answers = {}
        self.seen = []

    def request(self, request):
        port, method = request.node.port, request.method
        path, headers, body = request.path, request.headers, request.body
        assert body == b""
        assert headers.get("user-agent", "").startswith("object-server ")
        self.seen.append((port, f"{method} {path} HTTP/1.1", dict(headers)))
        status = self.answers.get(str(port), 201)
        if isinstance(status, list):
            return BackendResponse(status[0], {name.lower(): value for name, value in status[1]})
        return BackendResponse(status)


@pytest.fixture
def containers():
    return ScriptedContainers()


@pytest.fixture
def app(tmp_path, containers):
    (tmp_path / "sda").mkdir()
    context = BackendContext(
        devices=Devices(str(tmp_path), mount_check=False),
        hasher=PathHasher(b"goldenprefix", b"goldensuffix"),
        transport=containers,
    )
    settings = ObjectSettings()
    return ObjectServer(context, settings, make_stores(context, settings))


def _sent(method, headers, body):
    headers = {name.lower(): value for name, value in headers}
    headers["host"] = "127.0.0.1:17200"
    if method == "PUT":
        headers["content-length"] = str(len(body))
    return Request(method, "/sda/8/AUTH_test/c/o1", headers, body)


def _pendings(root):
    found = {}
    for path in (root / "sda/async_pending").glob("*/*"):
        found[str(path.relative_to(root / "sda"))] = restricted_loads(path.read_bytes())
    return found


def _without_incidental(record):
    record = dict(record)
    record["headers"] = {k: v for k, v in dict(record["headers"]).items() if k not in INCIDENTAL}
    return record


def _order(sent):
    return sent[:2]


def test_the_recorded_requests_and_pendings_come_out(app, containers, tmp_path):
    for number, case in enumerate(CASES):
        containers.answers, containers.seen = case["fake_container_status"], []
        before = _pendings(tmp_path)
        # The recording's objects were "abc", later ones four bytes long.
        body = b"abc" if number <= 10 else b"abcd"
        response = app.handle(_sent(case["request"]["method"], case["request"]["headers"], body))
        assert response.status == case["response_status"], case["note"]
        wanted = [
            (
                sent["port"],
                sent["request_line"],
                {k.lower(): v for k, v in sent["headers"] if k not in INCIDENTAL},
            )
            for sent in case["container_requests"]
        ]
        seen = [
            (port, line, {k: v for k, v in headers.items() if k != "user-agent"})
            for port, line, headers in containers.seen
        ]
        assert sorted(seen, key=_order) == sorted(wanted, key=_order), case["note"]
        written = {name: record for name, record in _pendings(tmp_path).items() if name not in before}
        expected = {entry["path_on_device"]: entry["decoded"] for entry in case["async_pending_written"]}
        assert written.keys() == expected.keys(), case["note"]
        for name, record in written.items():
            assert _without_incidental(record) == _without_incidental(expected[name]), case["note"]


@pytest.mark.parametrize("path", sorted(DATA.glob("[01]*")), ids=lambda path: path.name[:2])
def test_the_peer_s_pending_files_decode_and_survive_a_rewrite(path):
    update, extra = decode_update(path.read_bytes())
    recorded = next(
        entry["decoded"]
        for case in CASES
        for entry in case["async_pending_written"]
        if entry["golden_file"] == path.name
    )
    assert (update.op, *update.path) == tuple(recorded[k] for k in ("op", "account", "container", "obj"))
    assert update.headers == recorded["headers"]
    assert update.db_state == recorded["db_state"]
    assert update.container_path == recorded.get("container_path")
    assert restricted_loads(encode_update(update, extra=extra)) == recorded
