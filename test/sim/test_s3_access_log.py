"""Requests to a bucket and their lines in its access log."""

import re
import time

import pytest

from swift import green
from test.support.s3_fixtures import S3Cluster

LOGGING = (
    "<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket><TargetPrefix>p/</TargetPrefix>"
    "</LoggingEnabled></BucketLoggingStatus>"
)
FIELDS = re.compile(r'\[[^\]]*\]|"[^"]*"|[^ ]+')


@pytest.fixture
def logged(sim):
    s3 = S3Cluster(sim, log_delivery_seconds="1")
    for bucket in ("bucket", "logs"):
        s3("PUT", f"/{bucket}")
    response = s3("PUT", "/bucket?logging", {}, LOGGING.encode())
    assert response.status == 200, response
    return s3


def lines(s3, wanted):
    """Wait for the wanted number of lines and return them."""
    end = time.monotonic() + 5
    found = []
    while len(found) < wanted and time.monotonic() < end:
        green.sleep(0.01)
        found = [
            line
            for n in s3.names("logs")
            if n.startswith("p/")
            for line in s3.sim("GET", f"/AUTH_test/logs/{n}").body.splitlines()
        ]
    return [FIELDS.findall(line.decode()) for line in sorted(found)]


def line_of(s3, operation, wanted=1):
    [line] = [line for line in lines(s3, wanted) if line[6] == operation]
    return line


def test_an_upload_is_logged_with_its_size(logged):
    logged("PUT", "/bucket/a%20b", {"user-agent": "agent/1"}, b"12345")
    line = line_of(logged, "REST.PUT.OBJECT")
    assert line[1] == "bucket" and line[4] == "test:tester"
    assert (line[8], line[9]) == ('"PUT /bucket/a%20b HTTP/1.1"', "200")
    assert line[12] == "5" and '"agent/1"' in line
    assert ("SigV4" in line, "AuthHeader" in line) == (True, True)


def test_a_refusal_is_logged_with_its_code(logged):
    logged("GET", "/bucket/nothing")
    line = line_of(logged, "REST.GET.OBJECT")
    assert (line[9], line[10]) == ("404", "NoSuchKey")


def test_a_request_with_an_invalid_signature_is_not_logged(logged):
    logged("GET", "/bucket/key", secret="wrong")
    logged("PUT", "/bucket/key", {}, b"1")
    operations = [line[6] for line in lines(logged, 1)]
    assert "REST.PUT.OBJECT" in operations and "REST.GET.OBJECT" not in operations


def test_a_bucket_without_a_log_is_not_logged(logged):
    logged("PUT", "/logs/x", {}, b"1")
    logged("PUT", "/bucket/key", {}, b"1")
    assert {line[1] for line in lines(logged, 1)} == {"bucket"}
