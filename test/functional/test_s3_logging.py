"""Access logs of buckets, delivered to buckets of the same owner."""

import time

import pytest

from test.functional.test_s3 import client_of, refused


@pytest.fixture(scope="module")
def s3(site):
    made = client_of(site)
    for name in ("watched", "logs"):
        made.create_bucket(Bucket=name)
    return made


def log_to(s3, bucket="logs", prefix="w/", watched="watched", **more):
    requested = {"LoggingEnabled": {"TargetBucket": bucket, "TargetPrefix": prefix, **more}}
    s3.put_bucket_logging(Bucket=watched, BucketLoggingStatus=requested)


def lines_of(s3):
    rows = s3.list_objects_v2(Bucket="logs", Prefix="w/").get("Contents", ())
    return "".join(s3.get_object(Bucket="logs", Key=row["Key"])["Body"].read().decode() for row in rows)


def test_requests_are_written_to_the_access_log(site, s3):
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket="watched")
    log_to(s3)
    said = s3.get_bucket_logging(Bucket="watched")["LoggingEnabled"]
    assert said == {"TargetBucket": "logs", "TargetPrefix": "w/"}
    time.sleep(1.1)
    s3.put_object(Bucket="watched", Key="a b", Body=b"12345")
    s3.get_object(Bucket="watched", Key="a b")["Body"].read()
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket="watched", Key="nothing")
    s3.delete_object(Bucket="watched", Key="a b")

    def wanted():
        text = lines_of(s3)
        return all(
            words in text
            for words in (
                " REST.PUT.OBJECT a%20b ",
                " REST.GET.OBJECT nothing ",
                " REST.DELETE.OBJECT a%20b ",
            )
        )

    site.await_true(wanted, "the log was delivered", seconds=20)
    lines = lines_of(s3).splitlines()
    (got,) = (line for line in lines if " REST.GET.OBJECT a%20b " in line)
    assert got.startswith("AUTH_test watched [") and " test:tester " in got
    assert '"GET /watched/a%20b HTTP/1.1" 200 - 5 5 ' in got and " SigV4 - AuthHeader " in got
    (missed,) = (line for line in lines if " REST.GET.OBJECT nothing " in line)
    assert " 404 NoSuchKey " in missed


def test_logging_stops_when_it_is_disabled(s3):
    s3.put_bucket_logging(Bucket="watched", BucketLoggingStatus={})
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket="watched")


def test_a_log_cannot_go_to_a_bucket_of_another_owner(site, s3):
    other = client_of(site, "test2:tester2")
    other.create_bucket(Bucket="their-logs")
    for place in ("their-logs", "nothing-there", "AUTH_test2:their-logs", "x", "a/b"):
        with refused("InvalidTargetBucketForLogging", 400):
            log_to(s3, place)
    with refused("InvalidArgument", 400):
        log_to(s3, prefix="x" * 513)
    with refused("AccessDenied", 403):
        log_to(client_of(site, "test:tester3"))
    grant = {"Grantee": {"Type": "CanonicalUser", "ID": "test:tester3"}, "Permission": "READ"}
    with refused("NotImplemented", 501):
        log_to(s3, TargetGrants=[grant])
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket="watched")
