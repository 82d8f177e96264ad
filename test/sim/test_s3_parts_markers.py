"""Concurrent aborts, completions and bucket deletions: one of them wins."""

import pytest

from swift.http.response import error_response
from test.support.s3_fixtures import Multipart, interfere_before

MARKERS = "/v1/AUTH_test/bucket%2Bsegments/key/"


@pytest.fixture
def upload(s3):
    made = Multipart(s3)
    made.part(1, b"part")
    return made


def test_an_abort_during_a_completion_removes_nothing(s3, upload):
    interfere_before(s3, "DELETE", MARKERS + upload.id, lambda: upload.complete((1, b"part")))
    assert upload.abort().code == "NoSuchUpload"
    assert s3("GET", "/bucket/key").body == b"part"


def test_a_completion_during_an_abort_stores_nothing(s3, upload):
    interfere_before(s3, "PUT", MARKERS + upload.id, upload.abort)
    assert upload.complete((1, b"part")).code == "NoSuchUpload"
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert s3.names("bucket+segments") == []


def test_an_upload_during_completion_accepts_no_parts_and_no_abort(s3, upload):
    from_inside = []

    def meanwhile():
        from_inside.extend((upload.abort().code, upload.part(2, b"late").code))

    interfere_before(s3, "PUT", "/v1/AUTH_test/bucket/key", meanwhile)
    assert upload.complete((1, b"part")).status == 200
    assert from_inside == ["NoSuchUpload", "NoSuchUpload"]


def test_a_repeated_completion_with_other_parts_is_no_such_upload(s3, upload):
    upload.part(2, b"more")
    from_inside = []

    def meanwhile():
        from_inside.append(upload.complete((2, b"more")).code)
        from_inside.append(upload.complete((1, b"part")).status)

    interfere_before(s3, "PUT", "/v1/AUTH_test/bucket/key", meanwhile)
    assert upload.complete((1, b"part")).status == 200
    assert from_inside == ["NoSuchUpload", 200]


def test_a_refused_completion_leaves_the_upload_open(s3, upload):
    s3("PUT", "/bucket/key", {}, b"there")
    assert upload.complete((1, b"part"), headers={"If-None-Match": "*"}).code == "PreconditionFailed"
    assert upload.complete((1, b"part")).status == 200
    assert s3("GET", "/bucket/key").body == b"part"


def test_deleting_a_bucket_keeps_the_parts_of_a_running_completion(s3, upload):
    interfere_before(s3, "PUT", "/v1/AUTH_test/bucket/key", lambda: s3("DELETE", "/bucket"))
    upload.complete((1, b"part"))
    assert f"key/{upload.id}/1" in s3.names("bucket+segments")


def test_a_marker_of_an_earlier_release_aborts_no_complete_upload(s3, upload):
    marker = f"/AUTH_test/bucket+segments/key/{upload.id}"
    upload.complete((1, b"part"))
    assert s3.sim("PUT", marker, {"content-type": "application/directory"}).status == 201
    assert upload.abort().status == 204
    assert s3("GET", "/bucket/key").body == b"part"


def test_an_interrupted_deletion_keeps_the_object_complete(s3, upload):
    upload.complete((1, b"part"))
    requests = []

    def failing(request):
        requests.append(request.method)
        return error_response(503) if request.method == "DELETE" else None

    s3.bottom.instead = failing
    assert s3("DELETE", "/bucket/key").status == 503
    # The queue of the expirer is an UPDATE.
    assert "DELETE" in requests and "UPDATE" not in requests
    s3.bottom.instead = lambda _request: None
    assert s3("GET", "/bucket/key").body == b"part"
