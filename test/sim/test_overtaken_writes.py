"""Writes that meet a newer state of their object: overtaken ones succeed, others are lost."""

import time
from hashlib import md5

import pytest
from botocore.config import Config
from botocore.session import Session

from swift.base.timestamp import Timestamp
from swift.http.response import error_response
from test.sim.test_s3_forms import form_of
from test.support.s3_fixtures import Multipart, interfere_before
from test.support.sim import NODES, node_port

BODY, LARGE = b"own bytes", b"own" * 40_000
#: Distance of the newer state's timestamp from the present, seconds.
OVERTAKEN_S, AHEAD_S = 0.0, 30.0
SOURCE = {"x-amz-copy-source": "/bucket/source"}


def meet(s3, name, off_s, *, reads=True, method="PUT"):
    """Let the next change of an object whose name ends with ``name`` meet a newer state.

    ``reads`` the body of a PUT or not.
    """
    left = [name]

    def instead(request):
        if not left or request.method != method or not request.raw_path.endswith(name):
            return None
        left.pop()
        newer = {"x-timestamp": Timestamp(time.time() + off_s).internal}
        assert s3.sim("PUT", request.raw_path.removeprefix("/v1"), newer, b"newer").status == 201
        if method == "DELETE":
            return error_response(409)
        if not reads:
            return error_response(202)
        return error_response(202, headers={"etag": md5(request.body.read()).hexdigest()})

    s3.bottom.instead = instead


def upload_part(s3, headers, body):
    upload = Multipart(s3)
    return s3("PUT", f"/bucket/key?partNumber=1&uploadId={upload.id}", headers, body)


def post_form(s3):
    config = Config(signature_version="s3v4")
    keys = {"aws_access_key_id": "test:tester", "aws_secret_access_key": "testing"}
    signer = Session().create_client(
        "s3", endpoint_url="http://h", region_name="us-east-1", config=config, **keys
    )
    status = {"success_action_status": "200"}
    made = signer.generate_presigned_post("bucket", "key", Fields=dict(status), Conditions=[status])
    sent = {"content-type": "multipart/form-data; boundary=B"}
    return s3.raw("POST", "/bucket", sent, form_of(made["fields"], BODY))


#: Ways to write the object, and the end of the name of the object that is stored.
WRITES = {
    "PutObject": (lambda s3: s3("PUT", "/bucket/key", {}, BODY), "/bucket/key"),
    "CopyObject": (lambda s3: s3("PUT", "/bucket/key", SOURCE), "/bucket/key"),
    "PostObject": (post_form, "/bucket/key"),
    "UploadPart": (lambda s3: upload_part(s3, {}, BODY), "/1"),
    "UploadPartCopy": (lambda s3: upload_part(s3, SOURCE, b""), "/1"),
}


def etag_in(answer):
    return answer.headers["etag"] if "etag" in answer.headers else answer.texts("ETag")[0]


@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("name", WRITES)
def test_an_overtaken_write_has_the_etag_of_its_own_bytes(s3, name, reads):
    s3("PUT", "/bucket/source", {}, BODY)
    write, stored = WRITES[name]
    meet(s3, stored, OVERTAKEN_S, reads=reads)
    response = write(s3)
    assert (response.status, etag_in(response)) == (200, f'"{md5(BODY).hexdigest()}"')


@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_older_than_a_state_from_the_future_is_a_retryable_error(s3, name, reads):
    s3("PUT", "/bucket/source", {}, BODY)
    write, stored = WRITES[name]
    meet(s3, stored, AHEAD_S, reads=reads)
    response = write(s3)
    # A copy's status is sent before its end is known.
    assert response.code == "ServiceUnavailable" and response.status in (200, 503)
    assert "ahead of this server's clock" in response.texts("Message")[0]


def test_a_deletion_that_a_newer_write_overtook_has_happened_before_it(s3):
    s3.versioning("bucket", "Enabled")
    s3("PUT", "/bucket/key", {}, BODY)
    meet(s3, "/bucket/key", OVERTAKEN_S, method="DELETE")
    response = s3("DELETE", "/bucket/key")
    assert response.status == 204
    listed = s3("GET", "/bucket?versions").tree.iter("DeleteMarker")
    assert [marker.find("VersionId").text for marker in listed] == [response.headers["x-amz-version-id"]]


def test_a_large_object_that_is_replaced_before_its_deletion_is_no_error(s3):
    upload = Multipart(s3)
    upload.part(1, BODY)
    assert upload.complete((1, BODY)).status == 200
    # The deletion reads the manifest first.
    interfere_before(s3, "GET", "/v1/AUTH_test/bucket/key", lambda: s3.sim("PUT", "/AUTH_test/bucket/key"))
    assert s3("DELETE", "/bucket/key").status == 204
    assert s3("GET", "/bucket/key").code == "NoSuchKey"


@pytest.mark.parametrize(("headers", "status"), [({}, 204), ({"x-timestamp": "5"}, 409)])
def test_only_a_dated_deletion_learns_that_something_newer_is_there(sim, headers, status):
    sim("PUT", "/a/c/o", {}, BODY)
    sim.faults.answers.update((node_port("object", number), 409) for number in range(1, NODES + 1))
    assert sim("DELETE", "/a/c/o", headers).status == status


def test_a_deletion_older_than_a_state_from_the_future_is_a_retryable_error(s3):
    """It leaves no delete marker, for a later one would be another."""
    s3.versioning("bucket", "Enabled")
    version = s3("PUT", "/bucket/key", {}, BODY).headers["x-amz-version-id"]
    meet(s3, "/bucket/key", AHEAD_S, method="DELETE")
    assert s3("DELETE", "/bucket/key").code == "ServiceUnavailable"
    assert s3("GET", "/bucket?versions").texts("VersionId").count(version) == 1
    assert not s3("GET", "/bucket?versions").texts("DeleteMarker")


def test_an_unread_body_must_match_its_announced_checksum(s3):
    meet(s3, "/bucket/key", OVERTAKEN_S, reads=False)
    wrong = {"x-amz-content-sha256": "0" * 64}
    assert s3("PUT", "/bucket/key", wrong, LARGE).code == "XAmzContentSHA256Mismatch"


@pytest.mark.parametrize(("off_s", "code"), [(OVERTAKEN_S, ""), (AHEAD_S, "ServiceUnavailable")])
def test_an_overtaken_completion_is_idempotent(s3, off_s, code):
    upload = Multipart(s3)
    upload.part(1, BODY)
    meet(s3, "/bucket/key", off_s)
    response = upload.complete((1, BODY))
    assert response.texts("ETag" if not code else "Code") == [
        code or f'"{md5(md5(BODY).digest()).hexdigest()}-1"'
    ]
    assert s3("GET", "/bucket?uploads").texts("UploadId") == ([upload.id] if code else [])


def test_an_overtaken_upload_is_stored_as_a_version(s3):
    s3.versioning("bucket", "Enabled")
    meet(s3, "/bucket/key", OVERTAKEN_S)
    response = s3("PUT", "/bucket/key", {}, BODY)
    assert (response.status, response.headers["etag"]) == (200, f'"{md5(BODY).hexdigest()}"')
    version = response.headers["x-amz-version-id"]
    assert s3("GET", f"/bucket/key?versionId={version}").body == BODY


def test_a_version_that_cannot_become_current_is_removed(s3):
    s3.versioning("bucket", "Enabled")
    before = s3.names("%00versions%00bucket")
    meet(s3, "/bucket/key", AHEAD_S)
    assert s3("PUT", "/bucket/key", {}, BODY).code == "ServiceUnavailable"
    assert s3.names("%00versions%00bucket") == before
