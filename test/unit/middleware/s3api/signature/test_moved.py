"""Links whose presigner moved headers into the query."""

import time

import boto3
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, code_of

MD5 = "XrY7u+Ae7tCTyyK7j1rNww=="
DATA = b"hello world"


def link(version, **params):
    """Return the URL that boto3 makes for an upload."""
    client = boto3.client(
        "s3",
        endpoint_url=HOST,
        aws_access_key_id="test:tester",
        aws_secret_access_key="testing",
        region_name="us-east-1",
        config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    return client.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "key", **params})


def stored(front):
    return front.store.objects["bucket", "key"][1]


@pytest.mark.parametrize("version", ["s3", "s3v4"])
@pytest.mark.parametrize(
    ("params", "headers"),
    [
        ({"ContentType": "text/x"}, {"Content-Type": "text/x"}),
        ({"ContentMD5": MD5}, {"Content-MD5": MD5}),
        ({"Metadata": {"a": "b"}, "ACL": "private"}, {"x-amz-meta-a": "b", "x-amz-acl": "private"}),
    ],
)
def test_a_link_of_boto3_is_good_with_the_headers_it_was_signed_for(front, version, params, headers):
    assert front.raw("PUT", link(version, **params), headers, DATA).status == 200
    assert stored(front)["content-type"] == headers.get("Content-Type", "binary/octet-stream")


def test_version_2_takes_headers_from_the_query_when_they_are_not_sent(front):
    url = link("s3", ContentType="text/x", ContentMD5=MD5, Metadata={"a": "b"})
    assert front.raw("PUT", url, {}, DATA).status == 200
    assert stored(front)["content-type"] == "text/x" and stored(front)["x-object-meta-a"] == "b"


@pytest.mark.parametrize("change", [("text%2Fx", "text%2Fy"), ("meta-a=b", "meta-a=c")])
def test_a_header_in_the_query_of_version_2_is_signed(front, change):
    url = link("s3", ContentType="text/x", Metadata={"a": "b"})
    assert change[0] in url
    assert code_of(front.raw("PUT", url.replace(*change), {}, DATA)) == "SignatureDoesNotMatch"
    assert code_of(front.raw("PUT", f"{url}&x-amz-meta-more=1", {}, DATA)) == "SignatureDoesNotMatch"
    headers = {"Content-Type": "text/z"}
    assert code_of(front.raw("PUT", url, headers, DATA)) == "SignatureDoesNotMatch"
    assert front.store.objects == {}


def test_a_standard_header_in_the_query_of_version_4_wins_over_one_that_was_not_signed(front):
    request = AWSRequest("PUT", f"{HOST}/bucket/key?content-type=text%2Fx&cache-control=no-store")
    S3SigV4QueryAuth(Credentials("test:tester", "testing"), "s3", "us-east-1").add_auth(request)
    assert front.raw("PUT", request.url, {"Content-Type": "text/z"}, DATA).status == 200
    assert stored(front)["content-type"] == "text/x" and stored(front)["cache-control"] == "no-store"


def test_a_content_md5_in_the_query_is_held_against_the_body(front):
    url = link("s3", ContentMD5=MD5)
    front.raw("PUT", url, {}, DATA)
    assert stored(front)["etag"] == "5eb63bbbe01eeed093cb22bb8f5acdc3"


@pytest.mark.parametrize("value", ["a%0D%0AX-Evil%3A1", "a%00"])
def test_a_header_from_the_query_has_no_control_characters(front, value):
    expires = int(time.time()) + 60
    query = f"content-type={value}&AWSAccessKeyId=test:tester&Signature=x&Expires={expires}"
    assert code_of(front.raw("PUT", f"/bucket/key?{query}", {}, DATA)) == "InvalidArgument"


def test_the_path_of_a_bucket_is_signed_by_version_2_with_a_slash_or_without(front):
    def ask(signed_path, path):
        head = signed_headers("GET", HOST + signed_path, version=2)
        return front.raw("GET", path, head).status

    assert ask("/bucket/", "/bucket") == ask("/bucket", "/bucket") == ask("/bucket/", "/bucket/") == 200
    assert ask("/bucket", "/bucket/") == 403
    assert ask("/bucket/key/", "/bucket/key") == 403
