"""Multipart uploads: initiation, parts, copies, listings and aborts."""

import json
from urllib.parse import quote

import pytest

from test.support.s3_fixtures import Multipart, etag_of

SOURCE = {"x-amz-copy-source": "/bucket/source"}


@pytest.fixture
def upload(s3):
    return Multipart(s3)


def test_an_incomplete_upload_is_not_visible(s3, upload):
    upload.part(1, b"part")
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert s3("GET", "/bucket").texts("Key") == []
    assert s3("GET", "/bucket?uploads").texts("UploadId") == [upload.id]


@pytest.mark.parametrize("number", ["0", "10001", "-1", "one", "1.5", "9" * 5000, "%D9%A1"])
def test_a_part_needs_a_valid_number(s3, upload, number):
    assert upload.part(number, b"x").code == "InvalidArgument"
    assert s3.names("bucket+segments") == [f"key/{upload.id}"]


@pytest.mark.parametrize("upload_id", ["bm9uZQ==", "", "%00", "%FF", "..", "a%2Fb", "x" * 5000])
def test_a_part_of_an_unknown_upload_is_not_stored(s3, upload, upload_id):
    before = s3.names("bucket+segments")
    upload.id = upload_id
    assert upload.part(1, b"x").code in ("NoSuchUpload", "InvalidURI", "InvalidArgument")
    assert s3.names("bucket+segments") == before


def test_an_upload_belongs_to_one_key(s3, upload):
    upload.path = "/bucket/other"
    assert upload.part(1, b"x").code == "NoSuchUpload"


def test_uploads_need_a_bucket(s3):
    assert s3("POST", "/no-bucket/key?uploads").code == "NoSuchBucket"


# --- giving up ----------------------------------------------------------------------------------------


def test_an_aborted_upload_leaves_nothing(s3, upload):
    for number in (1, 2, 11):
        upload.part(number, b"part")
    other = Multipart(s3)
    other.part(1, b"stays")
    assert upload.abort().status == 204
    assert s3.names("bucket+segments") == [f"key/{other.id}", f"key/{other.id}/1"]
    assert upload.part(1, b"late").code == "NoSuchUpload"
    assert upload.abort().code == "NoSuchUpload"


def test_a_completed_upload_cannot_be_aborted(s3, upload):
    upload.part(1, b"part")
    upload.complete((1, b"part"))
    assert upload.abort().code == "NoSuchUpload"
    assert s3("GET", "/bucket/key").body == b"part"


# --- copies -------------------------------------------------------------------------------------------


@pytest.fixture
def source(s3):
    assert s3("PUT", "/bucket/source", {}, b"0123456789").status == 200


def test_a_part_is_copied_from_a_range_of_an_object(upload, source, s3):
    response = upload.part(1, b"", {**SOURCE, "x-amz-copy-source-range": "bytes=2-4"})
    assert response.texts("ETag") == [f'"{etag_of(b"234")}"']
    assert upload.part(2, b"", SOURCE).status == 200
    upload.complete((1, b"234"), (2, b"0123456789"))
    assert s3("GET", "/bucket/key").body == b"2340123456789"


@pytest.mark.parametrize(
    "text",
    ["", "bytes=", "bytes=5", "bytes=-3", "bytes=3-", "bytes=4-2", "bytes=0-10", "bytes=0-1,3-4", "items=0-1"]
    + ["bytes=a-b", "bytes=0-" + "9" * 5000, "0-1"],
)
def test_a_range_beyond_the_source_is_not_copied(upload, source, s3, text):
    assert upload.part(1, b"", {**SOURCE, "x-amz-copy-source-range": text}).code == "InvalidArgument"
    assert s3.names("bucket+segments") == [f"key/{upload.id}"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-copy-source": "/bucket/nothing"}, "NoSuchKey"),
        ({"x-amz-copy-source": "/no-bucket/source"}, "NoSuchBucket"),
        ({"x-amz-copy-source-if-match": '"0"'}, "PreconditionFailed"),
        ({"x-amz-copy-source-if-none-match": "*"}, "PreconditionFailed"),
    ],
)
def test_a_forbidden_source_is_reported(upload, source, headers, code):
    assert upload.part(1, b"", {**SOURCE, **headers}).code == code


# --- listings -----------------------------------------------------------------------------------------


def test_parts_are_listed_in_the_order_of_their_numbers_in_pages(s3, upload):
    for number in (10, 9, 1, 100):
        upload.part(number, b"x" * number)
    first = s3("GET", f"/bucket/key?uploadId={upload.id}&max-parts=3")
    assert first.texts("PartNumber") == ["1", "9", "10"]
    assert first.texts("Size") == ["1", "9", "10"]
    assert first.texts("IsTruncated") == ["true"]
    [marker] = first.texts("NextPartNumberMarker")
    rest = s3("GET", f"/bucket/key?uploadId={upload.id}&part-number-marker={marker}")
    assert (rest.texts("PartNumber"), rest.texts("IsTruncated")) == (["100"], ["false"])


@pytest.mark.parametrize(
    "query", ["max-parts=x", "max-parts=-1", "part-number-marker=x", "max-parts=" + "9" * 5000]
)
def test_an_invalid_page_is_an_invalid_argument(s3, upload, query):
    response = s3("GET", f"/bucket/key?uploadId={upload.id}&{query}")
    assert response.code == "InvalidArgument"


def test_uploads_are_listed_in_pages_with_common_prefixes(s3):
    made = [Multipart(s3, f"/bucket/{key}") for key in ("a", "d/1", "d/2", "z")]
    for upload in made:
        upload.part(1, b"parts are not listed")
    assert s3("GET", "/bucket?uploads").texts("UploadId") == [upload.id for upload in made]
    page = s3("GET", "/bucket?uploads&delimiter=%2F&max-uploads=2")
    assert (page.texts("Key"), page.texts("IsTruncated")) == (["a"], ["true"])
    assert page.tree.find("CommonPrefixes/Prefix").text == "d/"
    marker = quote(page.texts("NextKeyMarker")[0], safe="")
    rest = s3("GET", f"/bucket?uploads&delimiter=%2F&key-marker={marker}")
    assert (rest.texts("Key"), rest.texts("IsTruncated")) == (["z"], ["false"])


def test_a_listing_continues_after_the_upload_id_marker(s3):
    ids = sorted(Multipart(s3).id for _ in range(3))
    rest = s3("GET", f"/bucket?uploads&key-marker=key&upload-id-marker={ids[0]}")
    assert rest.texts("UploadId") == ids[1:]
    assert s3("GET", "/bucket?uploads&key-marker=key&upload-id-marker=%21").code == "InvalidArgument"


# --- checksums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "kind", "code"),
    [
        ("MD6", None, "InvalidRequest"),
        ("CRC32", "ODD", "InvalidRequest"),
        ("SHA1", "FULL_OBJECT", "InvalidRequest"),
        ("CRC64NVME", "COMPOSITE", "InvalidRequest"),
        (None, "COMPOSITE", "InvalidRequest"),
    ],
)
def test_an_unknown_checksum_algorithm_starts_no_upload(s3, algorithm, kind, code):
    named = {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}
    headers = {name: text for name, text in named.items() if text}
    assert s3("POST", "/bucket/key?uploads", headers).code == code
    assert s3("GET", "/bucket?uploads").texts("UploadId") == []


def test_parts_of_a_composite_checksum_need_checksums(s3):
    upload = Multipart(s3, headers={"x-amz-checksum-algorithm": "CRC32"})
    assert upload.begun.headers["x-amz-checksum-type"] == "COMPOSITE"
    assert upload.part(1, b"x").code == "InvalidRequest"
    assert upload.part(1, b"x", {"x-amz-checksum-crc32c": "AAAAAA=="}).code == "InvalidRequest"
    assert upload.part(1, b"x", {"x-amz-checksum-crc32": "AAAAAA=="}).code == "BadDigest"
    assert upload.part(1, b"x", {"x-amz-checksum-crc32": "jNwWgw=="}).status == 200


def test_a_key_that_is_too_long_for_part_names_is_reported(s3):
    assert s3("POST", f"/bucket/{'k' * 975}?uploads").code == "KeyTooLongError"
    upload = Multipart(s3, f"/bucket/{'k' * 972}")
    path = f"{upload.path}?uploadId={upload.id}&partNumber="
    assert s3("PUT", f"{path}100", {}, b"x").code == "KeyTooLongError"
    assert s3("PUT", f"{path}1", {}, b"x").status == 200


# --- what listings cost -------------------------------------------------------------------------------


class Counted:
    """Counts the requests for the container of parts, and the rows of their responses."""

    def __init__(self, s3):
        self.requests = self.rows = 0
        self._app = s3.bottom._app
        s3.bottom.instead = self._answer

    def _answer(self, request):
        if request.method != "GET" or request.entity.path[1:] != ("bucket+segments", None):
            return None
        response = self._app.handle(request)
        body = response.read_body() if response.status == 200 else b"[]"
        response.body = body
        self.requests += 1
        self.rows += len(json.loads(body or b"[]"))
        return response


def test_the_cost_of_listing_uploads_does_not_depend_on_stored_parts(s3):
    s3("PUT", "/bucket")
    for key in ("a", "z/1", "z/2"):
        Multipart(s3, f"/bucket/{key}")
    for number in range(300):
        s3.sim("PUT", f"/AUTH_test/bucket+segments/m/old/{number}", {}, b"")
    counted = Counted(s3)
    assert s3("GET", "/bucket?uploads").texts("Key") == ["a", "z/1", "z/2"]
    assert (counted.requests, counted.rows) == (1, 3)
    counted.requests = counted.rows = 0
    told = s3("GET", "/bucket?uploads&delimiter=%2F&max-uploads=1")
    assert told.texts("Key") == ["a"] and told.texts("IsTruncated") == ["true"]
    assert counted.requests <= 2 and counted.rows <= 6
    told = s3("GET", "/bucket?uploads&delimiter=%2F")
    assert [prefix.text for prefix in told.tree.findall("CommonPrefixes/Prefix")] == ["z/"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_pages_of_uploads_are_complete_although_nodes_list_parts(s3, most):
    """Nodes of OpenStack Swift list parts too."""
    s3("PUT", "/bucket")
    keys = ["a", "b/1", "b/2", "c", "c", "d"]
    ids = {Multipart(s3, f"/bucket/{key}").id for key in keys}
    for number in range(40):
        s3.sim("PUT", f"/AUTH_test/bucket+segments/b/1/old/{number}", {}, b"")

    def instead(request):
        request.headers.pop("x-backend-listing-directories", None)

    s3.bottom.instead = instead
    found, seen, query = [], set(), ""
    while True:
        told = s3("GET", f"/bucket?uploads&max-uploads={most}{query}")
        found += told.texts("Key")
        seen |= set(told.texts("UploadId"))
        if told.texts("IsTruncated") == ["false"]:
            break
        [key], [upload_id] = told.texts("NextKeyMarker"), told.texts("NextUploadIdMarker")
        query = f"&key-marker={quote(key, safe='')}&upload-id-marker={upload_id}"
    assert (found, seen) == (keys, ids)
