"""Creators that must not replace anything, where some or all object servers are the peer's.

Those promise nothing, so conditional changes are 501. Where ``weak_if_none_match`` allows it, two creators at
one moment are decided as the peer decides; one after the other they are refused as ever, and nothing of an
upload is lost or half-stored on either kind of node.
"""

import base64
from hashlib import md5
from zlib import crc32

import pytest

from test.probe.test_peer_ec import Mixed
from test.support.peer import can_hide_etc, needs_peer
from test.support.s3 import chunked, signed_headers

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]
EXCLUSIVE = {"If-None-Match": "*"}
BODIES = {"empty": b"", "small": b"s" * 100, "large": b"l" * 3_000_000}


class MixedProxies(Mixed):
    """As ``Mixed``; its own proxy can be restarted with either rule of creation."""

    def allow_weak_creation(self, allowed):
        conf = self.plan.etc / "proxy-server.conf"
        lines = [x for x in conf.read_text().splitlines() if not x.startswith("weak_if_none_match")]
        at = lines.index("[app:proxy-server]") + 1
        lines.insert(at, f"weak_if_none_match = {str(allowed).lower()}")
        conf.write_text("\n".join(lines) + "\n")
        self.kill("proxy")
        self.restart("proxy")


@pytest.fixture(scope="module", params=[(1, 2), (1, 2, 3, 4)], ids=["half", "all"])
def mixed(request, tmp_path_factory):
    live = MixedProxies(tmp_path_factory.mktemp("mixed") / "data", ec="2+1")
    try:
        live.start()
        live.allow_weak_creation(False)
        live.give_to_peer(*request.param)
        for policy in ("gold", "ec"):
            assert live.request("PUT", policy, {"X-Storage-Policy": policy}).status == 201
        yield live
    finally:
        live.stop()


@pytest.mark.parametrize("policy", ["gold", "ec"])
@pytest.mark.parametrize("size", BODIES)
def test_conditional_changes_are_refused_and_change_nothing(mixed, policy, size):
    mixed.allow_weak_creation(False)
    path = f"{policy}/{size}-501"
    assert mixed.request("PUT", path, EXCLUSIVE, BODIES[size]).status == 501
    assert mixed.request("GET", path, {"X-Newest": "true"}).status == 404
    assert mixed.request("PUT", path, {}, BODIES[size]).status == 201
    for headers in ({"If-Match": "*"}, {"If-None-Match": "0"}):
        for method in ("POST", "DELETE"):
            assert mixed.request(method, path, {**headers, "X-Object-Meta-A": "b"}).status == 501
    assert mixed.request("PUT", path, {"If-Match": "*"}, b"other").status == 501
    response = mixed.request("GET", path, {"X-Newest": "true"})
    assert (response.status, response.body) == (200, BODIES[size])
    assert "x-object-meta-a" not in response.headers


@pytest.mark.parametrize("policy", ["gold", "ec"])
@pytest.mark.parametrize("size", BODIES)
def test_the_first_creator_wins_and_the_second_is_refused_where_the_weaker_rule_is_allowed(
    mixed, policy, size
):
    mixed.allow_weak_creation(True)
    for number in range(4):
        path = f"{policy}/{size}-{number}"
        assert mixed.request("PUT", path, EXCLUSIVE, BODIES[size]).status == 201
        assert mixed.request("PUT", path, EXCLUSIVE, b"other").status == 412
        response = mixed.request("GET", path, {"X-Newest": "true"})
        assert (response.status, response.body) == (200, BODIES[size])
    assert "Traceback" not in mixed.log_text()


@pytest.mark.parametrize("size", BODIES)
def test_a_checksum_in_a_trailer_is_stored_by_both_kinds(mixed, size):
    """The checksum is a footer; our nodes accept the proxy's MD5 beside it, the peer's compute it."""
    body = BODIES[size]
    digest = base64.b64encode(crc32(body).to_bytes(4, "big")).decode()
    path = f"/gold/{size}-trailer"
    headers = {
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": str(len(body)),
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    head = signed_headers("PUT", f"http://{mixed.host}{path}", headers)
    sent = chunked([body] if body else [], head, signed=False, trailer=("x-amz-checksum-crc32", digest))
    assert mixed.raw("PUT", path, head, sent).status == 200
    for _ in range(4):
        response = mixed.request("GET", path.lstrip("/"))
        assert (response.status, response.body) == (200, body)
        assert response.headers["etag"].strip('"') == md5(body).hexdigest()
    assert "Traceback" not in mixed.log_text()


def s3(live, method, path, body=b""):
    """Return the response to a signed request."""
    return live.raw(method, path, signed_headers(method, f"http://{live.host}{path}", {}, body), body)


def test_multipart_uploads_work_without_conditions(mixed):
    """Parts are replaced, uploads completed and aborted under either rule of creation."""
    for is_weak in (False, True):
        mixed.allow_weak_creation(is_weak)
        bucket = f"/multipart-{is_weak}".lower()
        assert s3(mixed, "PUT", bucket).status == 200
        for number in range(4):
            key = f"{bucket}/key{number}"
            begun = s3(mixed, "POST", f"{key}?uploads").body
            upload_id = begun.partition(b"<UploadId>")[2].partition(b"</UploadId>")[0].decode()
            contents = [b"first", f"{number} again ".encode() * 250_000]
            for content in contents:
                part = s3(mixed, "PUT", f"{key}?partNumber=1&uploadId={upload_id}", content)
                assert part.status == 200, part
            if number == 3:
                assert s3(mixed, "DELETE", f"{key}?uploadId={upload_id}").status == 204
                continue
            item = f"<Part><PartNumber>1</PartNumber><ETag>{part.headers['etag']}</ETag></Part>"
            document = f"<CompleteMultipartUpload>{item}</CompleteMultipartUpload>".encode()
            done = s3(mixed, "POST", f"{key}?uploadId={upload_id}", document)
            assert done.status == 200 and b"<Error>" not in done.body, done
            assert s3(mixed, "GET", key).body == contents[-1]
        assert b"<Upload>" not in s3(mixed, "GET", f"{bucket}?uploads").body
