"""The x-amz-expiration header of responses: date and rule."""

import re
import time
from email.utils import parsedate_to_datetime

import pytest

from test.support.s3_fixtures import S3Cluster

RULE = (
    "<LifecycleConfiguration><Rule><ID>a b/ü</ID><Status>Enabled</Status>"
    "<Filter><Prefix>logs/</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule>"
    "<Rule><ID>tagged</ID><Status>Enabled</Status><Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter>"
    "<Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>"
)


@pytest.fixture
def ending(s3):
    response = s3("PUT", "/bucket?lifecycle", {}, RULE.encode())
    assert response.status == 200, response
    return s3


def shown(answer):
    return answer.headers.get("x-amz-expiration")


def test_writes_and_reads_return_the_same_expiration(ending):
    put = shown(ending("PUT", "/bucket/logs/a", {}, b"x"))
    match = re.fullmatch(r'expiry-date="([^"]+)", rule-id="a%20b%2F%C3%BC"', put)
    assert match and parsedate_to_datetime(match[1]).strftime("%H:%M:%S") == "00:00:00"
    for method in ("GET", "HEAD"):
        assert shown(ending(method, "/bucket/logs/a")) == put


def test_objects_without_a_matching_rule_have_no_expiration(ending):
    assert shown(ending("PUT", "/bucket/other", {}, b"x")) is None
    assert shown(ending("GET", "/bucket/other")) is None


def test_tags_select_the_rule(ending):
    assert 'rule-id="tagged"' in shown(ending("PUT", "/bucket/other", {"x-amz-tagging": "k=v"}, b"x"))
    assert 'rule-id="tagged"' in shown(ending("HEAD", "/bucket/other"))
    assert shown(ending("PUT", "/bucket/other", {"x-amz-tagging": "k=w"}, b"x")) is None


def test_requests_for_a_version_return_no_expiration(ending):
    ending.versioning("bucket", "Enabled")
    version = ending("PUT", "/bucket/logs/a", {}, b"x").headers["x-amz-version-id"]
    assert shown(ending("GET", f"/bucket/logs/a?versionId={version}")) is None


def test_no_expiration_is_returned_without_rules(s3):
    s3("PUT", "/bucket/logs/a", {}, b"x")
    assert shown(s3("GET", "/bucket/logs/a")) is None


def test_days_can_be_short_for_tests_of_clients(sim):
    s3 = S3Cluster(sim, lifecycle_debug_interval="10")
    assert s3("PUT", "/bucket").status == 200
    assert s3("PUT", "/bucket?lifecycle", {}, RULE.encode()).status == 200
    found = shown(s3("PUT", "/bucket/logs/a", {}, b"x"))
    ends = parsedate_to_datetime(re.search('expiry-date="([^"]+)"', found)[1]).timestamp()
    assert time.time() + 25 < ends < time.time() + 45
