"""Tags of objects and buckets: replaced as a whole, without changes of other metadata."""

import pytest


def tags(**pairs):
    items = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in pairs.items())
    return f"<Tagging><TagSet>{items}</TagSet></Tagging>".encode()


def told(answer):
    return dict(zip(answer.texts("Key"), answer.texts("Value"), strict=True))


@pytest.fixture
def tagged(s3):
    headers = {
        "x-amz-tagging": "old=1",
        "x-amz-meta-m": "kept",
        "content-type": "text/x",
        "cache-control": "no",
    }
    assert s3("PUT", "/bucket/key", headers, b"body").status == 200
    return s3


def test_tags_are_returned_and_change_nothing_else(tagged):
    assert told(tagged("GET", "/bucket/key?tagging")) == {"old": "1"}
    assert tagged("PUT", "/bucket/key?tagging", {}, tags(new="ü +x", other="")).status == 200
    assert told(tagged("GET", "/bucket/key?tagging")) == {"new": "ü +x", "other": ""}
    found = tagged("GET", "/bucket/key")
    assert found.headers["x-amz-tagging-count"] == "2" and found.body == b"body"
    assert found.headers["x-amz-meta-m"] == "kept"
    assert (found.headers["content-type"], found.headers["cache-control"]) == ("text/x", "no")


def test_deleting_tags_keeps_metadata(tagged):
    assert tagged("DELETE", "/bucket/key?tagging").status == 204
    assert told(tagged("GET", "/bucket/key?tagging")) == {}
    assert tagged("HEAD", "/bucket/key").headers["x-amz-meta-m"] == "kept"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (tags(**{f"k{n}": "" for n in range(11)}), "BadRequest"),
        (tags(**{"k" * 129: ""}), "InvalidTag"),
        (tags(k="v" * 257), "InvalidTag"),
        (tags(**{"": "v"}), "InvalidTag"),
        (b"<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>", "MalformedXML"),
        (tags(a="1").replace(b"</TagSet>", b"<Tag><Key>a</Key><Value/></Tag></TagSet>"), "InvalidTag"),
        (b"<Tagging/>", "MalformedXML"),
        (b"no", "MalformedXML"),
    ],
)
@pytest.mark.parametrize("path", ["/bucket/key", "/bucket"])
def test_invalid_tags_change_nothing(tagged, path, document, code):
    tagged("PUT", "/bucket?tagging", {}, tags(old="1"))
    response = tagged("PUT", f"{path}?tagging", {}, document)
    if path == "/bucket" and code == "BadRequest":
        assert response.status == 204, "a bucket may have fifty"
        return
    assert response.code in (code, "InvalidTag", "MalformedXML")
    assert told(tagged("GET", f"{path}?tagging")) == {"old": "1"}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_missing_objects_have_no_tags(s3, method):
    body = tags(a="1") if method == "PUT" else b""
    assert s3(method, "/bucket/nothing?tagging", {}, body).code == "NoSuchKey"
    assert s3(method, "/no-bucket/key?tagging", {}, body).code == "NoSuchBucket"
    assert s3(method, "/no-bucket?tagging", {}, body).code == "NoSuchBucket"


def test_a_bucket_without_tags_gets_no_such_tag_set(s3):
    assert s3("GET", "/bucket?tagging").code == "NoSuchTagSet"
    s3("PUT", "/bucket?tagging", {}, tags(a="1"))
    assert told(s3("GET", "/bucket?tagging")) == {"a": "1"}
    assert s3("DELETE", "/bucket?tagging").status == 204
    assert s3("GET", "/bucket?tagging").code == "NoSuchTagSet"


def test_each_version_has_its_own_tags(s3):
    s3.versioning("bucket", "Enabled")
    first = s3("PUT", "/bucket/key", {"x-amz-tagging": "n=1"}, b"1").headers["x-amz-version-id"]
    s3("PUT", "/bucket/key", {"x-amz-tagging": "n=2"}, b"2")
    response = s3("PUT", f"/bucket/key?tagging&versionId={first}", {}, tags(n="one"))
    assert (response.status, response.headers["x-amz-version-id"]) == (200, first)
    assert told(s3("GET", f"/bucket/key?tagging&versionId={first}")) == {"n": "one"}
    assert told(s3("GET", "/bucket/key?tagging")) == {"n": "2"}
    assert s3("GET", f"/bucket/key?versionId={first}").body == b"1"
