"""Parts are immutable: a part that is uploaded again is used, but replaces no stored part."""

import json

import pytest

from swift.http.body import BytesBody
from swift.http.response import error_response
from swift.s3.api.parts import RewindableBody
from test.support.s3_fixtures import Multipart, interfere_before


@pytest.fixture
def upload(s3):
    return Multipart(s3)


def rows(s3):
    return s3.names("bucket+segments")


def test_a_reuploaded_part_is_used_without_replacing_the_first(s3, upload):
    upload.part(1, b"first")
    assert upload.part(1, b"again").status == 200
    own = f"key/{upload.id}/1"
    assert s3.sim("GET", f"/AUTH_test/bucket+segments/{own}").body == b"first"
    listed = s3("GET", f"/bucket/key?uploadId={upload.id}")
    assert (listed.texts("PartNumber"), listed.texts("Size")) == (["1"], ["5"])
    assert upload.complete((1, b"first")).code == "InvalidPart"
    assert upload.part(1, b"third").status == 200
    assert upload.complete((1, b"third")).status == 200
    assert s3("GET", "/bucket/key").body == b"third"
    assert len(rows(s3)) == 1


def test_a_reuploaded_large_part_is_used(s3, upload):
    large = b"x" * 300_000
    upload.part(1, large)
    assert upload.part(1, large + b"y").status == 200
    upload.complete((1, large + b"y"))
    assert s3("GET", "/bucket/key").body == large + b"y"


def test_a_part_that_arrives_after_the_abort_is_removed(s3, upload):
    interfere_before(s3, "PUT", f"/v1/AUTH_test/bucket%2Bsegments/key/{upload.id}/1", upload.abort)
    assert upload.part(1, b"late").code == "NoSuchUpload"
    assert rows(s3) == []


def test_a_late_part_does_not_replace_that_of_the_object(s3, upload):
    upload.part(1, b"part")
    path = f"/v1/AUTH_test/bucket%2Bsegments/key/{upload.id}/1"
    interfere_before(s3, "PUT", path, lambda: upload.complete((1, b"part")))
    assert upload.part(1, b"late").code == "NoSuchUpload"
    assert s3("GET", "/bucket/key").body == b"part"
    assert rows(s3) == [f"key/{upload.id}/1"]


def test_a_late_part_does_not_create_the_container_again(s3, upload):
    path = f"/v1/AUTH_test/bucket%2Bsegments/key/{upload.id}/1"
    interfere_before(s3, "PUT", path, lambda: s3("DELETE", "/bucket"))
    assert upload.part(1, b"late").code in ("NoSuchUpload", "NoSuchBucket")
    names = [row["name"] for row in json.loads(s3.sim("GET", "/AUTH_test?format=json").body)]
    assert "bucket+segments" not in names and "bucket" not in names


def test_parts_that_the_completion_does_not_name_are_deleted(s3, upload):
    for number in (1, 2, 3):
        upload.part(number, b"part")
    upload.complete((1, b"part"), (3, b"part"))
    assert rows(s3) == [f"key/{upload.id}/1", f"key/{upload.id}/3"]


def test_nodes_without_conditional_writes_still_store_parts(s3, upload):
    def weak(request):
        conditional = {"if-none-match", "x-backend-if-predecessor"} & request.headers.keys()
        return error_response(501) if conditional and request.method in ("PUT", "DELETE") else None

    s3.bottom.instead = weak
    upload.part(1, b"first")
    assert upload.part(1, b"again").status == 200
    assert rows(s3) == [f"key/{upload.id}", f"key/{upload.id}/1"]
    assert upload.complete((1, b"again")).status == 200
    assert s3("GET", "/bucket/key").body == b"again"
    other = Multipart(s3)
    other.part(1, b"part")
    assert other.abort().status == 204
    assert rows(s3) == [f"key/{upload.id}/1"]


def test_a_body_can_be_read_again_if_only_its_beginning_was_read():
    body = RewindableBody(BytesBody(b"abc" * 1000))
    assert body.read(2) == b"ab" and body.rewind()
    assert body.read(1) == b"a" and body.received == 1
    assert body.rewind() and body.read() == b"abc" * 1000
    large = RewindableBody(BytesBody(b"x" * 100_000))
    large.read()
    assert not large.rewind()
