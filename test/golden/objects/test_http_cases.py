"""The recorded conversation with one object server is answered the same (spec: object-server.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swift.base.hashing import PathHasher
from swift.http.body import BytesBody
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.wire.chunked import ChunkDecoder

CASES = json.loads((Path(__file__).parent.parent / "data/http/object-http-cases.json").read_text())["cases"]
#: Headers whose exact value other tests or nobody cares for.
IGNORED = {"server"}


def make_app(root: Path) -> ObjectServer:
    (root / "sda").mkdir()
    context = BackendContext(
        devices=Devices(str(root), mount_check=False), hasher=PathHasher(b"goldenprefix", b"goldensuffix")
    )
    settings = ObjectSettings()
    return ObjectServer(context, settings, make_stores(context, settings))


def request_of(recorded: dict) -> Request:
    headers = {name.lower(): value for name, value in recorded["headers"]}
    body = recorded["body"].encode("latin-1")
    if headers.get("transfer-encoding") == "chunked":
        pieces, _ = ChunkDecoder().feed(body)
        return Request(
            recorded["method"], recorded["path"], headers, BytesBody(b"".join(pieces), chunked=True)
        )
    return Request(recorded["method"], recorded["path"], headers, body)


def comparable(headers: dict[str, str], *, multipart: bool, has_body: bool) -> dict[str, str]:
    shown = {name: value for name, value in headers.items() if name not in IGNORED}
    if multipart:
        shown.pop("content-length", None)
    if not has_body and shown.get("content-length") == "0":
        # The writer of responses adds it where a status has a body.
        shown.pop("content-length")
    if shown.get("content-type", "").startswith("text/plain;"):
        shown["content-type"] = "text/plain"
    return shown


def test_the_recorded_conversation_is_answered_alike(tmp_path):
    app = make_app(tmp_path)
    different = []
    for number, case in enumerate(CASES):
        expected = case["response"]
        if case["request"]["method"] == "SSYNC":
            continue
        response = app.handle(request_of(case["request"]))
        body = b"" if case["request"]["method"] == "HEAD" else response.read_body()
        headers = dict(response.headers)
        if case["request"]["method"] != "HEAD":
            headers.setdefault("content-length", str(len(body)))
        wanted_headers = {name.lower(): value for name, value in expected["headers"]}
        if case["request"]["method"] == "OPTIONS":
            headers.setdefault("content-type", wanted_headers["content-type"])
        multipart = "multipart/byteranges" in headers["content-type"]
        text = body.decode("latin-1")
        if multipart:
            boundary = headers["content-type"].partition("boundary=")[2]
            assert len(boundary) == 32
            assert headers["content-length"] == str(len(body)) == wanted_headers["content-length"]
            headers["content-type"] = headers["content-type"].replace(boundary, "BOUNDARY")
            text = text.replace(boundary, "BOUNDARY")
        if case["request"]["method"] == "OPTIONS":
            wanted_headers["allow"] = wanted_headers["allow"].replace(", SSYNC", "")
            # A verb of ours.
            headers["allow"] = headers["allow"].replace(", SSYNC", "").replace(", RESERVE", "")
        if response.status == 405:
            headers.pop("allow", None)
        shape = {"multipart": multipart, "has_body": bool(text)}
        ours = (response.status, comparable(headers, **shape), text)
        theirs = (expected["status"], comparable(wanted_headers, **shape), expected["body"])
        if ours != theirs:
            different.append((number, case["note"], ours, theirs))
    for entry in different:
        print(*entry, sep="\n   ")
    assert not different


@pytest.mark.parametrize("note", ["PUT bad ETag", "chunked but X-Backend-Obj-Content-Length differs"])
def test_a_refused_body_leaves_no_file(tmp_path, note):
    app = make_app(tmp_path)
    case = next(case for case in CASES if case["note"] == note)
    assert app.handle(request_of(case["request"])).status == case["response"]["status"]
    files = [p.name for p in tmp_path.rglob("*") if p.is_file()]
    assert [name for name in files if name not in (".lock", "hashes.invalid")] == []
