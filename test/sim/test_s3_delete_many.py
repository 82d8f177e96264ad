"""DeleteObjects: many keys in one request, each with its own result."""

from base64 import b64encode
from hashlib import md5

import pytest

from test.support.s3_fixtures import S3Cluster


def delete(s3, document, headers=None):
    body = document.encode()
    sent = {"content-md5": b64encode(md5(body).digest()).decode(), **(headers or {})}
    return s3("POST", "/bucket?delete", {n: v for n, v in sent.items() if v is not None}, body)


def named(*keys, quiet=False, more=""):
    objects = "".join(f"<Object><Key>{key}</Key>{more}</Object>" for key in keys)
    return f"<Delete>{'<Quiet>true</Quiet>' if quiet else ''}{objects}</Delete>"


@pytest.fixture
def full(s3):
    for key in ("a", "b", "c"):
        s3("PUT", f"/bucket/{key}", {}, key.encode())
    return s3


def test_each_key_is_reported_in_document_order_even_if_missing(full):
    response = delete(full, named("b", "nothing", "a"))
    assert (response.status, response.texts("Key")) == (200, ["b", "nothing", "a"])
    assert full.names("bucket") == ["c"]


def test_quiet_mode_reports_only_errors(full):
    response = delete(full, named("a", "k" * 1025, quiet=True))
    assert response.texts("Deleted") == [] and response.texts("Code") == ["KeyTooLongError"]
    assert full.names("bucket") == ["b", "c"]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("<ETag>0</ETag>", "PreconditionFailed"),
        ("<Size>1</Size>", "NotImplemented"),
        ("<LastModifiedTime>x</LastModifiedTime>", "NotImplemented"),
    ],
)
def test_failed_or_unknown_conditions_keep_the_object(full, more, code):
    assert delete(full, named("a", more=more)).texts("Code") == [code]
    assert "a" in full.names("bucket")
    assert delete(full, named("a", more=f"<ETag>{md5(b'a').hexdigest()}</ETag>")).texts("Code") == []
    assert "a" not in full.names("bucket")


@pytest.mark.parametrize(
    ("document", "headers", "code"),
    [
        (named("a"), {"content-md5": None}, "InvalidRequest"),
        (named("a"), {"content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}, "BadDigest"),
        (named("a"), {"content-md5": "x"}, "InvalidDigest"),
        (named("a"), {"x-amz-mfa": "1 2"}, "NotImplemented"),
        (named("a", ""), {}, "UserKeyMustBeSpecified"),
        (named(), {}, "MalformedXML"),
        ("<Delete><Object/></Delete>", {}, "MalformedXML"),
        ("<Delete><Object><Key>a</Key></Object>", {}, "MalformedXML"),
        ("nothing", {}, "MalformedXML"),
        (f"<!DOCTYPE a [<!ENTITY e 'a'>]>{named('&e;')}", {}, "MalformedXML"),
    ],
)
def test_an_invalid_document_deletes_nothing(full, document, headers, code):
    assert delete(full, document, headers).code == code
    assert full.names("bucket") == ["a", "b", "c"]


def test_the_number_of_keys_is_limited(sim):
    s3 = S3Cluster(sim, max_multi_delete_objects="2")
    s3("PUT", "/bucket")
    s3("PUT", "/bucket/a", {}, b"")
    assert delete(s3, named("a", "b", "c")).code == "MalformedXML"
    assert s3.names("bucket") == ["a"]
    assert delete(s3, named("a", "b")).status == 200


def test_a_missing_bucket_is_reported_once(s3):
    s3("DELETE", "/bucket")
    assert delete(s3, named("a")).code == "NoSuchBucket"


def test_keys_are_returned_as_they_were_sent(s3):
    keys = "&lt;&amp;>", "ü", "a b/c"
    for path in ("%3C%26%3E", "%C3%BC", "a%20b/c"):
        assert s3("PUT", f"/bucket/{path}", {}, b"").status == 200
    assert delete(s3, named(*keys)).texts("Key") == ["<&>", "ü", "a b/c"]
    assert s3.names("bucket") == []


def test_the_etag_of_a_version_is_a_condition_too(full):
    full.versioning("bucket", "Enabled")
    version = full("PUT", "/bucket/a", {}, b"new").headers["x-amz-version-id"]
    named_version = f"<VersionId>{version}</VersionId>"
    response = delete(full, named("a", more=f"{named_version}<ETag>x</ETag>"))
    assert response.texts("Code") == ["PreconditionFailed"]
    assert full("GET", f"/bucket/a?versionId={version}").body == b"new"
    response = delete(full, named("a", more=f"{named_version}<ETag>{md5(b'new').hexdigest()}</ETag>"))
    assert response.texts("Code") == []
    assert full("GET", f"/bucket/a?versionId={version}").code == "NoSuchVersion"


def test_versions_are_deleted_by_id_and_markers_reported(full):
    full.versioning("bucket", "Enabled")
    [marker] = delete(full, named("a")).texts("DeleteMarkerVersionId")
    assert full("GET", "/bucket/a").code == "NoSuchKey"
    response = delete(full, named("a", more=f"<VersionId>{marker}</VersionId>"))
    assert response.texts("VersionId") == [marker] and response.texts("DeleteMarker") == ["true"]
    assert full("GET", "/bucket/a").body == b"a"
    assert delete(full, named("a", more="<VersionId>odd</VersionId>")).texts("Code") == ["InvalidArgument"]
