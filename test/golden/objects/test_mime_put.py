"""Recorded multi-stage PUTs are answered alike and leave the same files (spec: object-server.md §10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swift.base.hashing import PathHasher
from swift.http.body import ClientDisconnected, RequestBody
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.runtime.backendapp import BackendContext
from swift.wire.chunked import ChunkDecoder

CASES = json.loads((Path(__file__).parent.parent / "data/http/mime-put.json").read_text())
HASHER = PathHasher(b"goldenprefix", b"goldensuffix")
POLICIES = Policies(
    [Policy(0, "gold", is_default=True), Policy(1, "ec42", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))]
)


class RecordedBody(RequestBody):
    """The chunked bodies that the recorded client sent, one per stage, in small pieces."""

    length = None

    def __init__(self, stages, piece=1 << 20):
        self._stages = stages
        self._piece = piece
        self._data = None
        self.continued = []

    def read(self, size=-1):
        if self._data is None:
            if not self._stages:
                raise ClientDisconnected("gone")
            self._data = self._stages.pop(0)
        piece, self._data = self._data[: min(size, self._piece)], self._data[min(size, self._piece) :]
        return piece

    def send_continue(self, headers):
        self.continued.append(dict(headers))

    def begin_next_body(self):
        self._data = None


def parse(sent: str):
    head, _, _ = sent.partition("\r\n\r\n")
    line, *fields = head.split("\r\n")
    method, path, _ = line.split(" ")
    return method, path, {name.lower(): value for name, _, value in (f.partition(": ") for f in fields)}


def unchunk(sent: str) -> bytes:
    pieces, _ = ChunkDecoder().feed(sent.encode("latin-1"))
    return b"".join(pieces)


@pytest.fixture(params=[1 << 20, 1], ids=["at-once", "byte-by-byte"])
def piece(request):
    return request.param


def test_recorded_multi_stage_puts(tmp_path, piece):
    for device in ("ec0", "sda"):
        (tmp_path / device).mkdir()
    context = BackendContext(
        devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER, policies=POLICIES
    )
    settings = ObjectSettings()
    app = ObjectServer(context, settings, make_stores(context, settings))
    for case in CASES:
        steps = case["steps"]
        method, path, headers = parse(steps[0]["send"])
        body = RecordedBody([unchunk(step["send"]) for step in steps[1:]], piece)
        request = Request(method, path, headers, body)
        request.expects_continue = True
        response = app.handle(request)
        continues = [
            {line.split(": ")[0].lower(): "yes" for line in step["recv"].split("\r\n")[1:] if line}
            for step in steps
            if step["recv"].startswith("HTTP/1.1 100")
        ]
        assert body.continued == continues, case["case"]
        final = next((s["recv"] for s in steps if not s["recv"].startswith("HTTP/1.1 100")), None)
        if final is None:
            assert response.status == 499, case["case"]
        else:
            status = int(final.split(" ")[1])
            if status == 500:
                # What the client did wrong is the client's error here.
                status = 400
            assert response.status == status, case["case"]
            if status == 201:
                assert f"Etag: {response.headers['etag']}\r\n" in final
            text = final.partition("\r\n\r\n")[2]
            if "traceback" not in text and status not in (400, 201) or "MIME" in text:
                assert response.read_body().decode() == text, case["case"]
        directory = next(tmp_path.glob(f"{path.split('/')[1]}/objects*/3/*/*"))
        assert sorted(p.name for p in directory.iterdir()) == case["files_after"], case["case"]


def test_footers_become_metadata_and_override_headers(tmp_path):
    (tmp_path / "sda").mkdir()
    context = BackendContext(devices=Devices(str(tmp_path), mount_check=False), hasher=HASHER)
    settings = ObjectSettings()
    app = ObjectServer(context, settings, make_stores(context, settings))
    case = next(case for case in CASES if case["case"].startswith("replicated policy with footers"))
    method, path, headers = parse(case["steps"][0]["send"])
    stages = [unchunk(step["send"]) for step in case["steps"][1:]]
    assert app.handle(Request(method, path, headers, RecordedBody(stages))).status == 201
    response = app.handle(Request("GET", path))
    assert response.read_body() == b"F" * 20
    shown = {name: value for name, value in response.headers.items() if name.startswith("x-object-")}
    assert shown == {
        "x-object-meta-from-header": "h",
        "x-object-meta-from-footer": "m",
        "x-object-sysmeta-crypto-body-meta": "cm",
        "x-object-transient-sysmeta-x": "t",
    }
