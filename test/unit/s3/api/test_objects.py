"""Objects are stored, read in part, refused and deleted as S3 does (middleware.md §20)."""

from hashlib import md5

import pytest

from test.support.s3_fixtures import Multipart

DATA = b"0123456789"
ETAG = f'"{md5(DATA).hexdigest()}"'


@pytest.fixture
def kept(s3):
    said = {"x-amz-meta-m": "1", "content-type": "t/x"}
    assert s3("PUT", "/bucket/key", said, DATA).headers["etag"] == ETAG
    return s3


def test_what_is_stored_comes_back_with_what_was_said(kept):
    found = kept("GET", "/bucket/key")
    assert (found.body, found.headers["etag"], found.headers["x-amz-meta-m"]) == (DATA, ETAG, "1")
    assert found.headers["content-type"] == "t/x"
    assert not [name for name in found.headers if name.startswith(("x-object-", "x-timestamp", "x-backend"))]


RANGES = [
    ("bytes=2-4", 206, DATA[2:5], "bytes 2-4/10"),
    ("bytes=-3", 206, DATA[-3:], "bytes 7-9/10"),
    ("bytes=8-99", 206, DATA[8:], "bytes 8-9/10"),
    ("bytes=0-1,3-4", 200, DATA, None),
    ("lines=1-2", 200, DATA, None),
    ("bytes=5-2", 200, DATA, None),
    ("bytes=x", 200, DATA, None),
]


def test_a_head_says_of_a_range_what_a_get_gives(kept):
    for text, status, body, told in RANGES:
        for method in ("GET", "HEAD"):
            answer = kept(method, "/bucket/key", {"range": text})
            assert (answer.status, answer.headers.get("content-range")) == (status, told), (method, text)
            assert int(answer.headers["content-length"]) == len(body)
        assert kept("GET", "/bucket/key", {"range": text}).body == body
    assert kept("GET", "/bucket/key", {"range": "bytes=10-"}).code == "InvalidRange"
    assert kept("HEAD", "/bucket/key", {"range": "bytes=10-"}).status == 416


def test_the_end_of_nothing_is_nothing(s3):
    s3("PUT", "/bucket/empty", {}, b"")
    for method in ("GET", "HEAD"):
        assert s3(method, "/bucket/empty", {"range": "bytes=-5"}).status == 200
        assert s3(method, "/bucket/empty", {"range": "bytes=0-"}).status == 416


def test_an_object_that_is_no_upload_is_its_only_part(kept):
    answer = kept("GET", "/bucket/key?partNumber=1")
    assert (answer.status, answer.body, answer.headers["content-range"]) == (206, DATA, "bytes 0-9/10")
    assert kept("GET", "/bucket/key?partNumber=01").status == 206
    assert kept("GET", "/bucket/key?partNumber=2").code == "InvalidPartNumber"


def test_parts_are_read_by_their_numbers(s3):
    upload = Multipart(s3)
    upload.part(1, b"one"), upload.part(5, b"fifth")
    assert upload.complete((1, b"one"), (5, b"fifth")).status == 200
    for number, body in ((1, b"one"), (2, b"fifth")):
        answer = s3("GET", f"/bucket/key?partNumber={number}")
        assert (answer.status, answer.body, answer.headers["x-amz-mp-parts-count"]) == (206, body, "2")
    assert s3("GET", "/bucket/key?partNumber=3").code == "InvalidPartNumber"


CRC = {"x-amz-checksum-crc32": "rfP2XQ=="}


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        (CRC, ""),
        ({**CRC, "x-amz-sdk-checksum-algorithm": "CRC32"}, ""),
        ({**CRC, "x-amz-sdk-checksum-algorithm": "SHA1"}, "InvalidRequest"),
        ({"x-amz-checksum-crc32": "rfP2XQ==-1"}, ""),
        ({"x-amz-checksum-crc32": "rfP2"}, "InvalidRequest"),
        ({**CRC, "x-amz-checksum-sha1": "x"}, "InvalidRequest"),
        ({"x-amz-checksum-md6": "x"}, "InvalidRequest"),
        ({"x-amz-sdk-checksum-algorithm": "CRC32"}, "InvalidRequest"),
    ],
)
def test_a_completion_may_state_the_checksum_of_the_object(s3, stated, code):
    """Its form is held before the document, which it is not about."""
    upload = Multipart(s3)
    upload.part(1, DATA)
    done = upload.complete((1, DATA), headers=stated)
    assert (done.code if code else done.status) == (code or 200), done
    assert s3.names("bucket") == ([] if code else ["key"])


def test_what_is_no_part_is_refused(kept):
    for number in ("0", "10001", "x", "-1", "", "1.0", "9" * 5000, "%D9%A1", "10000000"):
        assert kept("GET", f"/bucket/key?partNumber={number}").code == "InvalidArgument", number
    assert kept("GET", "/bucket/key?partNumber=1", {"range": "bytes=0-1"}).code == "InvalidRequest"


PAST, FUTURE = "Thu, 01 Jan 2009 00:00:00 GMT", "Thu, 01 Jan 2037 00:00:00 GMT"
CONDITIONS = [
    ({"if-match": ETAG}, 200),
    ({"if-match": '"0"'}, 412),
    ({"if-none-match": ETAG}, 304),
    ({"if-none-match": '"0"'}, 200),
    ({"if-modified-since": PAST}, 200),
    ({"if-modified-since": FUTURE}, 304),
    ({"if-unmodified-since": PAST}, 412),
    ({"if-match": ETAG, "if-unmodified-since": PAST}, 200),
    ({"if-none-match": ETAG, "if-modified-since": PAST}, 304),
    ({"if-match": '"0"', "if-none-match": ETAG}, 412),
    ({"if-unmodified-since": PAST, "if-none-match": ETAG}, 412),
    ({"if-modified-since": "whenever"}, 200),
]


def test_a_read_has_conditions_and_if_match_comes_first(kept):
    for headers, status in CONDITIONS:
        answer = kept("GET", "/bucket/key", headers)
        assert answer.status == status, headers
        assert status != 412 or answer.code == "PreconditionFailed"
        assert kept("HEAD", "/bucket/key", headers).status == status, headers


def test_a_write_that_must_not_replace_anything_does_not(kept):
    assert kept("PUT", "/bucket/key", {"if-none-match": "*"}, b"new").code == "PreconditionFailed"
    assert kept("PUT", "/bucket/key", {"if-match": '"0"'}, b"new").code == "PreconditionFailed"
    assert kept("PUT", "/bucket/other", {"if-match": ETAG}, b"new").code == "NoSuchKey"
    assert kept("GET", "/bucket/key").body == DATA
    assert kept("PUT", "/bucket/key", {"if-match": ETAG}, b"new").status == 200


def test_a_query_says_otherwise_what_an_answer_is_but_breaks_no_head(kept):
    answer = kept("GET", "/bucket/key?response-content-type=a%2Fb&response-expires=never")
    assert (answer.headers["content-type"], answer.headers["expires"]) == ("a/b", "never")
    for text in ("a%0D%0AX-Evil%3A1", "a%00", "a%7F"):
        assert kept("GET", f"/bucket/key?response-content-type={text}").code == "InvalidArgument"


def test_what_is_not_there_is_named(s3):
    for method in ("GET", "HEAD"):
        assert s3(method, "/bucket/nothing").status == 404
        assert s3(method, "/bucket/nothing?versionId=odd").status == 400
    assert s3("GET", "/bucket/nothing").code == "NoSuchKey"
    assert s3("GET", "/no-bucket/key").code == "NoSuchBucket"
    assert s3("PUT", "/no-bucket/key", {}, b"x").code == "NoSuchBucket"


def test_a_deletion_for_which_two_keys_are_needed_is_not_done(kept):
    assert kept("DELETE", "/bucket/key", {"x-amz-mfa": "serial 123456"}).code == "NotImplemented"
    assert kept("DELETE", "/bucket/key?versionId=odd").code == "InvalidArgument"
    assert kept("GET", "/bucket/key").body == DATA


def test_nodes_that_do_not_answer_are_not_a_missing_key(kept):
    with kept.sim.responding("object", 503, *range(1, 7)):
        assert kept("GET", "/bucket/key").code == "ServiceUnavailable"
        assert kept("PUT", "/bucket/key", {}, b"x").code == "ServiceUnavailable"
        assert kept("DELETE", "/bucket/key").code == "ServiceUnavailable"
    assert kept("GET", "/bucket/key").body == DATA


def test_headers_of_a_response_are_chosen_by_signers_alone(make_s3):
    s3 = make_s3(anonymous_account="AUTH_test")
    s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read"})
    s3("PUT", "/bucket/key", {}, b"data")
    query = "response-content-type=text%2Fhtml"
    assert s3.raw("GET", "/bucket/key").body == b"data"
    assert s3.raw("GET", f"/bucket/key?{query}").code == "InvalidRequest"
    assert s3.raw("HEAD", f"/bucket/key?{query}").status == 400
    assert s3("GET", f"/bucket/key?{query}").headers["content-type"] == "text/html"
