"""The S3 API of a live cluster with the access keys of an identity service."""

import boto3
import pytest
from botocore.config import Config

from test.functional.test_s3 import refused
from test.support.cluster import LiveCluster
from test.support.stub_servers import IdentityService, token_of

OPTIONS = """
[filter:s3token]
use = egg:swift#s3token
auth_uri = {url}
auth_url = {url}
username = swift
password = own

[filter:tempauth]
use = egg:swift#keystoneauth
reseller_prefix = AUTH
"""
KEYS = {
    "ann": ("ann-secret", token_of("u1", "p1", "admin")),
    "guest": ("guest-secret", token_of("u2", "p1", "member")),
    "bob": ("bob-secret", token_of("u3", "p2", "admin")),
}


@pytest.fixture(scope="module")
def service():
    with IdentityService(KEYS) as found:
        yield found


@pytest.fixture(scope="module")
def front(service, tmp_path_factory):
    live = LiveCluster(
        tmp_path_factory.mktemp("s3keystone") / "data",
        places={"s3token": "tempauth"},
        options=OPTIONS.format(url=service.url),
    )
    live.start()
    yield live
    assert "Traceback" not in live.log_text()
    assert "-secret" not in live.log_text()
    live.stop()


def client(front, user, secret=None):
    return boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=f"http://{front.host}",
        aws_access_key_id=user,
        aws_secret_access_key=secret or KEYS[user.partition(":")[0]][0],
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )


def test_projects_have_separate_buckets(front, service):
    ann, bob = client(front, "ann"), client(front, "bob")
    ann.create_bucket(Bucket="shared-name")
    bob.create_bucket(Bucket="shared-name")
    ann.put_object(Bucket="shared-name", Key="k", Body=b"ann's")
    bob.put_object(Bucket="shared-name", Key="k", Body=b"bob's")
    assert ann.get_object(Bucket="shared-name", Key="k")["Body"].read() == b"ann's"
    assert bob.get_object(Bucket="shared-name", Key="k")["Body"].read() == b"bob's"
    asked = len(service.asked)
    for _ in range(5):
        ann.head_object(Bucket="shared-name", Key="k")
    # The secret is cached: Keystone gets no second request.
    assert len(service.asked) == asked


def test_unknown_users_and_guests_are_refused(front):
    client(front, "ann").create_bucket(Bucket="anns")
    with refused("SignatureDoesNotMatch", 403):
        client(front, "ann", "other").list_buckets()
    with refused("SignatureDoesNotMatch", 403):
        client(front, "nobody", "x").list_buckets()
    with refused("AccessDenied", 403):
        client(front, "guest").list_objects_v2(Bucket="anns")
    with refused("AccessDenied", 403):
        client(front, "ann:p2").list_objects_v2(Bucket="shared-name")


def test_a_policy_permits_a_guest(front):
    ann, guest = client(front, "ann"), client(front, "guest")
    ann.create_bucket(Bucket="guests")
    ann.put_object(Bucket="guests", Key="k", Body=b"v")
    policy = (
        '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"guest"},'
        '"Action":"s3:GetObject","Resource":"arn:aws:s3:::guests/*"}}'
    )
    ann.put_bucket_policy(Bucket="guests", Policy=policy)
    assert guest.get_object(Bucket="guests", Key="k")["Body"].read() == b"v"
    with refused("AccessDenied", 403):
        guest.put_object(Bucket="guests", Key="k", Body=b"")
    with refused("AccessDenied", 403):
        guest.delete_bucket(Bucket="guests")
