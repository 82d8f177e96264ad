"""Versioning and logging of buckets: what is set comes back, and what cannot be set changes nothing."""

import pytest

from test.support.s3_fixtures import OTHER


def versioning(status, more=""):
    return f"<VersioningConfiguration><Status>{status}</Status>{more}</VersioningConfiguration>".encode()


def logging(bucket="bucket", prefix="log/", more=""):
    return (
        f"<BucketLoggingStatus><LoggingEnabled><TargetBucket>{bucket}</TargetBucket>{more}"
        f"<TargetPrefix>{prefix}</TargetPrefix></LoggingEnabled></BucketLoggingStatus>"
    ).encode()


def test_a_bucket_has_no_versioning_until_it_is_set_and_then_cannot_lose_it(s3):
    assert s3("GET", "/bucket?versioning").texts("Status") == []
    for status in ("Enabled", "Suspended", "Enabled"):
        assert s3("PUT", "/bucket?versioning", {}, versioning(status)).status == 200
        assert s3("GET", "/bucket?versioning").texts("Status") == [status]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (versioning("On"), "MalformedXML"),
        (versioning(""), "MalformedXML"),
        (b"<VersioningConfiguration/>", "MalformedXML"),
        (b"junk", "MalformedXML"),
        (versioning("Enabled", "<MfaDelete>Enabled</MfaDelete>"), "NotImplemented"),
    ],
)
def test_what_is_no_versioning_changes_nothing(s3, body, code):
    assert s3("PUT", "/bucket?versioning", {}, body).code == code
    assert s3("GET", "/bucket?versioning").texts("Status") == []


def test_logging_comes_back_and_goes(s3):
    assert s3("GET", "/bucket?logging").texts("TargetBucket") == []
    assert s3("PUT", "/bucket?logging", {}, logging()).status == 200
    told = s3("GET", "/bucket?logging")
    assert (told.texts("TargetBucket"), told.texts("TargetPrefix")) == (["bucket"], ["log/"])
    assert s3("PUT", "/bucket?logging", {}, b"<BucketLoggingStatus/>").status == 200
    assert s3("GET", "/bucket?logging").texts("TargetBucket") == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (logging("none-there"), "InvalidTargetBucketForLogging"),
        (logging("No Bucket"), "InvalidTargetBucketForLogging"),
        (logging(prefix="x" * 5000), "InvalidArgument"),
        (logging(more="<TargetGrants/>"), "NotImplemented"),
    ],
)
def test_a_log_that_cannot_be_kept_is_refused_and_changes_nothing(s3, body, code):
    assert s3("PUT", "/bucket?logging", {}, body).code == code
    assert s3("GET", "/bucket?logging").texts("TargetBucket") == []


def test_nobody_else_sees_or_sets_them(s3):
    for query, body in (("versioning", versioning("Enabled")), ("logging", logging())):
        assert s3("PUT", f"/bucket?{query}", {}, body, **OTHER).code == "AccessDenied"
    assert s3("GET", "/bucket?versioning").texts("Status") == []


def test_what_buckets_and_keys_cannot_be_set_to_has_fixed_answers(s3):
    assert s3("GET", "/bucket?acceleration").status in (200, 501)
    assert s3("GET", "/bucket?accelerate").status == 200
    assert s3("GET", "/bucket/key?logging").code == "NoLoggingStatusForKey"


#: Settings that this server does not have: selector, elements of a request that sets one.
NEVER_SET = ("analytics", "metrics", "intelligent-tiering")


@pytest.mark.parametrize("selector", NEVER_SET)
def test_lists_of_settings_that_nobody_can_set_are_empty(s3, selector):
    answer = s3("GET", f"/bucket?{selector}")
    assert (answer.status, answer.texts("IsTruncated")) == (200, ["false"])
    for method in ("GET", "DELETE"):
        answer = s3(method, f"/bucket?{selector}&id=x")
        assert (answer.status, answer.code) == (404, "NoSuchConfiguration")
    answer = s3("PUT", f"/bucket?{selector}&id=x", {}, b"<x/>")
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert "header" not in answer.texts("Message")[0]
    assert s3("GET", f"/bucket?{selector}", **OTHER).code == "AccessDenied"
    assert s3("GET", f"/missing?{selector}").code == "NoSuchBucket"


def test_a_bucket_was_never_replicated(s3):
    answer = s3("GET", "/bucket?replication")
    assert (answer.status, answer.code) == (404, "ReplicationConfigurationNotFoundError")
    assert s3("DELETE", "/bucket?replication").status == 204
    assert s3("PUT", "/bucket?replication", {}, b"<x/>").code == "NotImplemented"
    assert s3("GET", "/bucket?abac").texts("Status") == ["Disabled"]
