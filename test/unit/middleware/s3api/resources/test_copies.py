"""A copy has the bytes of its source, and what was said of it as its maker wants (middleware.md §21)."""

import pytest

from test.support.s3_fixtures import OTHER, Multipart

SAID = {"x-amz-meta-m": "1", "content-type": "t/x", "cache-control": "no-store", "x-amz-tagging": "a=b"}
NEW = {"x-amz-meta-n": "2", "content-type": "t/y"}


@pytest.fixture
def kept(s3):
    assert s3("PUT", "/bucket/key", SAID, b"data").status == 200
    return s3


def copy(s3, target="/bucket/copy", source="/bucket/key", headers=None, **who):
    return s3("PUT", target, {"x-amz-copy-source": source, **(headers or {})}, **who)


def tags(s3, path):
    return s3("GET", f"{path}?tagging").texts("Value")


def test_a_copy_keeps_what_was_said_unless_its_maker_says_it_anew(kept):
    assert copy(kept, headers={"x-amz-meta-ignored": "1"}).status == 200
    found = kept("GET", "/bucket/copy")
    assert (found.body, found.headers["x-amz-meta-m"], found.headers["content-type"]) == (b"data", "1", "t/x")
    assert "x-amz-meta-ignored" not in found.headers and tags(kept, "/bucket/copy") == ["b"]
    assert copy(kept, headers={**NEW, "x-amz-metadata-directive": "REPLACE"}).status == 200
    found = kept("GET", "/bucket/copy").headers
    assert (found["x-amz-meta-n"], found["content-type"]) == ("2", "t/y")
    assert "x-amz-meta-m" not in found and "cache-control" not in found
    assert tags(kept, "/bucket/copy") == ["b"], "tags are said by themselves"


def test_tags_are_replaced_by_themselves(kept):
    assert copy(kept, headers={"x-amz-tagging-directive": "REPLACE", "x-amz-tagging": "c=d"}).status == 200
    assert tags(kept, "/bucket/copy") == ["d"]
    assert kept("HEAD", "/bucket/copy").headers["x-amz-meta-m"] == "1"
    assert copy(kept, headers={"x-amz-tagging-directive": "REPLACE"}).status == 200
    assert tags(kept, "/bucket/copy") == []


def test_a_copy_onto_itself_must_change_something(kept):
    assert copy(kept, "/bucket/key").code == "InvalidRequest"
    assert copy(kept, "/bucket/key", headers={**NEW, "x-amz-metadata-directive": "REPLACE"}).status == 200
    found = kept("GET", "/bucket/key")
    assert (found.body, found.headers["x-amz-meta-n"]) == (b"data", "2")


def test_a_copy_of_parts_is_one_object_that_needs_them_no_more(kept):
    upload = Multipart(kept, "/bucket/big")
    upload.part(1, b"one"), upload.part(2, b"two")
    assert upload.complete((1, b"one"), (2, b"two")).status == 200
    answer = copy(kept, source="/bucket/big")
    assert "-" not in answer.texts("ETag")[0]
    assert kept("DELETE", "/bucket/big").status == 204
    assert kept("GET", "/bucket/copy").body == b"onetwo"


WRONG = [
    ({"range": "bytes=0-1"}, "InvalidRequest"),
    ({"x-amz-copy-source-range": "bytes=0-1"}, "InvalidArgument"),
    ({"x-amz-metadata-directive": "MAYBE"}, "InvalidArgument"),
    ({"x-amz-metadata-directive": ""}, "InvalidArgument"),
    ({"x-amz-tagging-directive": "REPLACED"}, "InvalidArgument"),
    ({"x-amz-storage-class": "NONE"}, "InvalidStorageClass"),
    ({"x-amz-checksum-algorithm": "MD6"}, "InvalidRequest"),
    ({"if-none-match": '"e"'}, "NotImplemented"),
    ({"if-match": '"e"'}, "NoSuchKey"),
    ({"x-amz-object-lock-legal-hold": "ON"}, "InvalidRequest"),
]


def test_what_cannot_be_wished_copies_nothing(kept):
    for headers, code in WRONG:
        assert copy(kept, headers=headers).code == code, headers
        assert kept("HEAD", "/bucket/copy").status == 404, headers


def test_a_body_where_none_belongs_copies_nothing(kept):
    assert kept("PUT", "/bucket/copy", {"x-amz-copy-source": "/bucket/key"}, b"x").code == "UnexpectedContent"
    assert kept("HEAD", "/bucket/copy").status == 404


def test_a_copy_that_must_not_replace_anything_does_not(kept):
    kept("PUT", "/bucket/copy", {}, b"old")
    assert copy(kept, headers={"if-none-match": "*"}).code == "PreconditionFailed"
    assert kept("GET", "/bucket/copy").body == b"old"


def test_who_may_not_read_the_source_copies_nothing(kept):
    kept("PUT", "/bucket?acl", {"x-amz-acl": "public-read"})
    assert copy(kept, **OTHER).code == "AccessDenied"
    assert kept("HEAD", "/bucket/copy").status == 404


def test_a_checksum_of_another_kind_is_computed(kept):
    answer = copy(kept, headers={"x-amz-checksum-algorithm": "SHA256"})
    [stated] = answer.texts("ChecksumSHA256")
    found = kept("HEAD", "/bucket/copy", {"x-amz-checksum-mode": "ENABLED"}).headers
    assert found["x-amz-checksum-sha256"] == stated


def test_a_copy_into_a_bucket_that_there_is_not_is_told(kept):
    answer = copy(kept, "/no-bucket/copy")
    assert b"<Code>NoSuchBucket</Code>" in answer.body
