"""The source of a copy: which object it names, and under which conditions it is copied."""

from hashlib import md5

import pytest

ETAG = f'"{md5(b"data").hexdigest()}"'


@pytest.fixture
def source(s3):
    assert s3("PUT", "/bucket/a%20b/%C3%BC", {"x-amz-meta-m": "1"}, b"data").status == 200
    return s3


def copy(s3, named, **headers):
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return s3("PUT", "/bucket/copy", {"x-amz-copy-source": named, **sent})


@pytest.mark.parametrize("named", ["/bucket/a%20b/%C3%BC", "bucket/a%20b/%C3%BC", "bucket/a%20b%2F%C3%BC"])
def test_a_source_is_named_as_a_quoted_path(source, named):
    answer = copy(source, named)
    assert (answer.status, answer.texts("ETag")) == (200, [ETAG])
    found = source("GET", "/bucket/copy")
    assert (found.body, found.headers["x-amz-meta-m"]) == (b"data", "1")


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("", "InvalidArgument"),
        ("/", "InvalidArgument"),
        ("bucket", "InvalidArgument"),
        ("/bucket/", "InvalidArgument"),
        ("//key", "InvalidArgument"),
        ("/bucket/%ff", "InvalidArgument"),
        ("/bucket/%00versions%00", "InvalidArgument"),
        ("/bucket/key?versionId=", "InvalidArgument"),
        ("/bucket/key?versionId=1&x=2", "InvalidArgument"),
        ("/bucket/key?other=1", "InvalidArgument"),
        ("/bucket/key?versionId=odd", "InvalidArgument"),
        ("/A_B/key", "NoSuchBucket"),
        ("/no-bucket/key", "NoSuchBucket"),
        ("/bucket/nothing", "NoSuchKey"),
    ],
)
def test_what_names_no_source_copies_nothing(source, named, code):
    assert copy(source, named).code == code
    assert source("HEAD", "/bucket/copy").status == 404


@pytest.mark.parametrize(
    ("headers", "ok"),
    [
        ({"x_amz_copy_source_if_match": ETAG}, True),
        ({"x_amz_copy_source_if_match": '"0"'}, False),
        ({"x_amz_copy_source_if_none_match": ETAG}, False),
        ({"x_amz_copy_source_if_none_match": '"0"'}, True),
        ({"x_amz_copy_source_if_modified_since": "Thu, 01 Jan 2037 00:00:00 GMT"}, False),
        ({"x_amz_copy_source_if_unmodified_since": "Thu, 01 Jan 2009 00:00:00 GMT"}, False),
    ],
)
def test_conditions_are_those_of_the_source(source, headers, ok):
    answer = copy(source, "/bucket/a%20b/%C3%BC", **headers)
    assert (answer.status == 200) if ok else (answer.code == "PreconditionFailed")
    assert source("HEAD", "/bucket/copy").status == (200 if ok else 404)


def test_a_version_is_copied_by_its_name(s3):
    s3.versioning("bucket", "Enabled")
    first = s3("PUT", "/bucket/key", {}, b"1").headers["x-amz-version-id"]
    s3("PUT", "/bucket/key", {}, b"2")
    assert copy(s3, f"/bucket/key?versionId={first}").headers["x-amz-copy-source-version-id"] == first
    assert s3("GET", "/bucket/copy").body == b"1"
    assert copy(s3, "/bucket/key?versionId=1700000000.00000").code == "NoSuchVersion"


@pytest.mark.parametrize(
    ("stored", "body"),
    [
        (("a%2Bb%20c",), b"a%2Bb%20c"),
        (("a%20b%20c",), b"a%20b%20c"),
        (("a%2Bb%20c", "a%20b%20c"), b"a%2Bb%20c"),
        (("a%20b%2Bc", "a%2Bb%2Bc"), None),
    ],
)
def test_a_plus_is_a_plus_and_else_a_blank(s3, stored, body):
    for name in stored:
        assert s3("PUT", f"/bucket/{name}", {}, name.encode()).status == 200
    answer = copy(s3, "/bucket/a+b%20c")
    if body is None:
        assert (answer.status, answer.code, answer.texts("Key")) == (404, "NoSuchKey", ["a+b c"])
    else:
        assert answer.status == 200
        assert s3("GET", "/bucket/copy").body == body
    assert copy(s3, "/bucket/a%2Bb%20c").status == (200 if "a%2Bb%20c" in stored else 404)
