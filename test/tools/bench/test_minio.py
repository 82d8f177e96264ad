"""MinIO as a contestant: buckets are made with a signature and opened to all, objects go without."""

from __future__ import annotations

import json
import re
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from swift.aio.plan import new_plan
from swift.base.errors import ConfigError
from tools.bench.contestants import Contestant, our_program
from tools.bench.minio import MinioContestant, minio_contestant
from tools.bench.s3side import OurS3
from tools.bench.wrk import Load


class Handler(BaseHTTPRequestHandler):
    """Keeps what it is asked; answers with the status that the test set."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        return

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        self.send_response(self.server.says)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.says = [], 200
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def minio(server, tmp_path):
    plan = new_plan(tmp_path, proxy_port=server.server_port, base_port=1, cache_port=1)
    return MinioContestant(plan, Path("minio"))


def test_a_container_is_a_bucket_that_everybody_may_use(minio, server):
    assert minio.request("PUT", "/v1/AUTH_test/c") == 200
    (_, made, headers, _), (_, opened, _, policy) = server.asked
    assert (made, opened) == ("/c", "/c?policy=")
    names = {name.lower(): value for name, value in headers.items()}
    assert re.match(
        r"AWS4-HMAC-SHA256 Credential=benchuser/\d{8}/us-east-1/s3/aws4_request, "
        r"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=[0-9a-f]{64}$",
        names["authorization"],
    )
    assert names["x-amz-content-sha256"] == sha256(b"").hexdigest()
    assert json.loads(policy)["Statement"][0]["Resource"] == ["arn:aws:s3:::c/*"]


def test_a_bucket_that_is_there_already_is_none_the_worse(minio, server):
    server.says = 409
    assert minio.request("PUT", "/v1/AUTH_test/c") == 409


def test_a_refusal_is_told(minio, server):
    server.says = 403
    with pytest.raises(ConfigError, match="PUT /c: 403"):
        minio.request("PUT", "/v1/AUTH_test/c")


def test_objects_go_without_a_signature_by_their_own_path(minio, server):
    assert minio.request("PUT", "/v1/AUTH_test/c/o", b"body") == 200
    ((method, path, headers, body),) = server.asked
    assert (method, path, body) == ("PUT", "/c/o", b"body")
    assert "authorization" not in {name.lower() for name in headers}


def test_a_load_has_minios_paths(minio):
    fields = dict.fromkeys(Load.__dataclass_fields__)
    assert minio.bounded(Load(**{**fields, "base": "/v1/AUTH_test/c"})).base == "/c"


def test_a_contestant_begins_with_nothing_of_an_earlier_one(tmp_path):
    (tmp_path / "minio/old").mkdir(parents=True)
    made = minio_contestant(tmp_path, Path("minio"), {})
    assert made.name == "minio" and not (tmp_path / "minio/old").exists()


def test_a_load_of_one_path_is_signed(minio):
    load = minio.bounded(Load("GET", "/v1/AUTH_test/c/0", 1, 1.0, order="fixed"))
    assert dict(load.headers)["authorization"].startswith("AWS4-HMAC-SHA256 Credential=benchuser/")
    assert not minio.bounded(Load("GET", "/v1/AUTH_test/c/", 1, 1.0)).headers


def test_buckets_of_our_own_stand_beside_the_containers(minio):
    ours = OurS3(Contestant("ours", minio.plan, our_program))
    assert ours.bounded(Load("PUT", "/v1/AUTH_test/c/w", 1, 1.0)).base == "/c-s3/w"
