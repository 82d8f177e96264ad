"""The peer's keymaster and encryption filters as a black box: stored values and decrypted responses.

``SWIFT_PEER_BIN=... python -m test.support.encryption_transcripts`` records what the peer stores.
"""

import base64
import json
import subprocess
from pathlib import Path

from test.support.peer import PEER_BIN, environment

STORED = Path(__file__).parents[1] / "golden" / "data" / "encrypted.json"
ONE = base64.b64encode(b"A" * 32).decode()
TWO = base64.b64encode(b"B" * 32).decode()
CONFS = (
    {"encryption_root_secret": ONE},
    {"encryption_root_secret": ONE, "encryption_root_secret_two": TWO, "active_root_secret_id": "two"},
    {"encryption_root_secret": ONE, "meta_version_to_write": "1"},
    {"encryption_root_secret_two": TWO, "active_root_secret_id": "two", "meta_version_to_write": "3"},
)
#: Raw paths, and what is put there.
PATHS = (
    "/v1/a/c/o",
    "/v1/AUTH_test/c%C3%A9/o%20%C3%BC/deep",
    "/v1/a/c//slash",
    "/v1/a/%E2%82%AC/%C3%83%C2%A9",
)
BODIES = ("", "x", "plaintext", "0123456789abcdef" * 300)
OVERRIDE = "X-Object-Sysmeta-Container-Update-Override-Etag"


def make_cases():
    """Return uploads as (conf, path, headers, body)."""
    cases = []
    for conf in CONFS:
        for path in PATHS:
            for body in BODIES:
                headers = {
                    "X-Object-Meta-Color": "blue",
                    "X-Object-Meta-Odd": "r\u00c3\u00a9 ;x",
                    "X-Object-Meta-No": "",
                }
                if len(cases) % 3 == 1:
                    headers[OVERRIDE] = "0123; slo_etag=4567"
                cases.append({"conf": conf, "path": path, "headers": headers, "body": body})
    return cases


_RUN = """
import base64, io, json, sys
from swift.common.middleware.crypto import filter_factory as encryption
from swift.common.middleware.crypto.keymaster import filter_factory as keymaster
from swift.common.swob import Request, Response
from swift.common.header_key_dict import HeaderKeyDict

def through(case, app):
    return keymaster({}, **case["conf"])(encryption({})(app))

def put(case):
    seen = {}
    def app(env, start):
        req = Request(env)
        seen["body"] = base64.b64encode(env["wsgi.input"].read()).decode()
        headers = HeaderKeyDict(req.headers)
        footers = HeaderKeyDict()
        if "swift.callback.update_footers" in env:
            env["swift.callback.update_footers"](footers)
        headers.update(footers)
        seen["headers"] = {k.lower(): v for k, v in headers.items() if k.lower().startswith("x-object")}
        return Response(status=201, request=req)(env, start)
    body = case["body"].encode()
    req = Request.blank("/", method="PUT", headers=case["headers"], body=body)
    from urllib.parse import unquote
    req.environ["PATH_INFO"] = unquote(case["path"], encoding="latin-1")
    seen["status"] = req.get_response(through(case, app)).status_int
    return seen

def get(case):
    def app(env, start):
        body = base64.b64decode(case["stored"]["body"])
        headers = case["stored"]["headers"]
        return Response(status=200, body=body, headers=headers, request=Request(env))(env, start)
    req = Request.blank("/", method="GET")
    from urllib.parse import unquote
    req.environ["PATH_INFO"] = unquote(case["path"], encoding="latin-1")
    response = req.get_response(through(case, app))
    row = case["stored"]["headers"].get("x-object-sysmeta-container-update-override-etag")
    shown = None
    if row:
        def listing(env, start):
            rows = [{"name": "o", "hash": row, "bytes": 1}]
            headers = {"Content-Type": "application/json"}
            body = json.dumps(rows).encode()
            return Response(status=200, body=body, headers=headers, request=Request(env))(env, start)
        ask = Request.blank("/", method="GET")
        ask.environ["PATH_INFO"] = "/".join(req.environ["PATH_INFO"].split("/", 4)[:4])
        ask.environ["QUERY_STRING"] = "format=json"
        shown = json.loads(ask.get_response(through(case, listing)).body)[0]["hash"]
    return {"status": response.status_int, "body": base64.b64encode(response.body).decode(), "row": shown,
            "headers": {k.lower(): v for k, v in response.headers.items()}}

json.dump([(put if case["verb"] == "PUT" else get)(case) for case in json.load(sys.stdin)], sys.stdout)
"""


def ask_peer(cases):
    """Return the results of the peer's filters for cases, each with its ``verb``."""
    done = subprocess.run(
        [f"{PEER_BIN}/python", "-c", _RUN],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout)


if __name__ == "__main__":
    answers = ask_peer([{**case, "verb": "PUT"} for case in make_cases()])
    STORED.write_text("\n".join(json.dumps(response) for response in answers) + "\n")
