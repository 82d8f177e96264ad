"""What the peer encrypted we read, and the reverse (middleware.md §17)."""

import base64
import hashlib
import json

import pytest

from swift.base.limits import Limits
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.keymaster.filter import Keymaster, KeymasterSettings, parse_secrets
from swift.telemetry.log import silent_log
from test.support.checks import every
from test.support.encryption_transcripts import OVERRIDE, STORED, ask_peer, make_cases
from test.support.peer import needs_peer

CASES = make_cases()


class App:
    """Keeps what is stored, and gives it out."""

    def __init__(self, stored=None, rows=None):
        self.stored = stored
        self.rows = rows

    def handle(self, request):
        if self.rows is not None:
            headers = {"content-type": "application/json"}
            return Response(200, headers, json.dumps(self.rows).encode())
        if request.method == "PUT":
            body = request.body.read()
            headers = dict(request.headers)
            footers = {}
            request.env[environkeys.UPDATE_FOOTERS](footers)
            headers.update(footers)
            kept = {name: value for name, value in headers.items() if name.startswith("x-object")}
            self.stored = {"headers": kept, "body": base64.b64encode(body).decode()}
            return Response(201)
        data = base64.b64decode(self.stored["body"])
        etag = hashlib.md5(data).hexdigest()
        return Response(200, {"etag": etag, **self.stored["headers"]}, data)


def filters(case, app):
    encryption = Encryption(app, EncryptionSettings(), Limits(), silent_log())
    return Keymaster(encryption, parse_secrets(case["conf"], KeymasterSettings.parse(case["conf"])))


def wanted_row(case):
    override = case["headers"].get(OVERRIDE)
    return override or (hashlib.md5(case["body"].encode()).hexdigest() if case["body"] else None)


@every("number", range(len(CASES)))
def test_what_the_peer_stored_is_read(number):
    case, stored = CASES[number], json.loads(STORED.read_text().splitlines()[number])
    response = filters(case, App(stored)).handle(Request("GET", case["path"]))
    assert (response.status, response.read_body().decode()) == (200, case["body"])
    assert response.headers["etag"] == hashlib.md5(case["body"].encode()).hexdigest()
    assert response.headers["x-object-meta-color"] == "blue"
    assert response.headers["x-object-meta-odd"] == case["headers"]["X-Object-Meta-Odd"]
    assert not [name for name in response.headers if "sysmeta-crypto" in name]
    row = stored["headers"].get(OVERRIDE.lower())
    if wanted_row(case) is None:
        assert row is None or row == hashlib.md5(b"").hexdigest()
        return
    rows = [{"name": "o", "hash": row, "bytes": 1}]
    listing = filters(case, App(rows=rows)).handle(Request("GET", "/".join(case["path"].split("/", 4)[:4])))
    assert json.loads(listing.read_body())[0]["hash"] == wanted_row(case)


@every("number", range(len(CASES)))
def test_what_is_stored_has_the_names_that_the_peer_stores(number):
    case, stored = CASES[number], json.loads(STORED.read_text().splitlines()[number])
    app = App()
    headers = {name.lower(): value for name, value in case["headers"].items()}
    assert filters(case, app).handle(Request("PUT", case["path"], headers, case["body"].encode())).is_success
    assert sorted(app.stored["headers"]) == sorted(stored["headers"])
    mac = "x-object-sysmeta-crypto-etag-mac"
    assert app.stored["headers"].get(mac) == stored["headers"].get(mac)


@pytest.mark.peer
@needs_peer
def test_the_peer_reads_what_we_store():
    asked = []
    for case in CASES:
        app = App()
        headers = {name.lower(): value for name, value in case["headers"].items()}
        filters(case, app).handle(Request("PUT", case["path"], headers, case["body"].encode()))
        asked.append({**case, "verb": "GET", "stored": app.stored})
    for case, answer in zip(CASES, ask_peer(asked), strict=True):
        assert answer["status"] == 200, case
        assert base64.b64decode(answer["body"]).decode() == case["body"]
        assert answer["headers"]["x-object-meta-color"] == "blue"
        assert answer["headers"]["x-object-meta-odd"] == case["headers"]["X-Object-Meta-Odd"]
        assert answer["row"] == wanted_row(case)
        if case["body"]:
            assert answer["headers"]["etag"].strip('"') == hashlib.md5(case["body"].encode()).hexdigest()
