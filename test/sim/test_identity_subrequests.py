"""Requests that filters make for a caller are judged by the caller's policies too."""

import json

import pytest

from swift.http.request import Request
from swift.identity.policy.predefined import limits_policy
from swift.identity.rights import NamedPolicy
from swift.runtime.wsgi import response_or_error
from test.support.identity import RightsAuth, named_policy, rights_of
from test.support.s3_fixtures import S3Cluster

#: An owner of the account as groups have it, and a user that is none.
OWNER, USER = ("test:tester", "AUTH_test", ".admin"), ("test:tester3",)
MANIFEST = json.dumps([{"path": "/there/target"}]).encode()
HERE = {"Action": "s3:*", "Resource": ["arn:aws:s3:::here", "arn:aws:s3:::here/*"]}
THERE = {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::there/*"}


class Pipeline:
    """Authentication, large objects and links over a simulated cluster."""

    def __init__(self, sim):
        self.s3 = S3Cluster(sim, auth=RightsAuth)
        for container in ("here", "there"):
            assert sim("PUT", f"/AUTH_test/{container}").status == 201
        self.rights = None
        self.as_owner("PUT", "there/target", body=b"data")
        self.as_owner("PUT", "here/link", {"x-symlink-target": "there/target"})
        self.as_owner("PUT", "here/large", body=MANIFEST, query="multipart-manifest=put")

    def as_owner(self, method, path, headers=None, **content):
        self.s3.auth.rights = {}
        response = self.send(OWNER, method, path, headers, **content)
        assert response.status == 201, response

    def send(self, caller, method, path, headers=None, *, body=b"", query="", address="10.1.2.3"):
        env = {"swift.cache": self.s3.sim.cache, "swift.trans_id": "tx1"}
        sent = {"content-length": str(len(body)), **(headers or {})}
        request = Request(method, f"/v1/AUTH_test/{path}", sent, body, query=query, env=env)
        request.remote_addr = address
        return response_or_error(lambda request: self.s3.auth.serve(request, *caller), request)

    def read(self, caller, path, **content):
        response = self.send(caller, "GET", path, **content)
        return response.status, response.read_body() if response.status == 200 else b""

    def may(self, caller, *statements, **more):
        tenant, name = caller[0].split(":")
        policies = (named_policy(*statements),) if statements else ()
        self.s3.auth.rights = {caller[0]: rights_of(tenant, name, *policies, **more)}


@pytest.fixture
def pipeline(sim):
    return Pipeline(sim)


@pytest.mark.parametrize(("path", "refusal"), [("here/link", 403), ("here/large", 409)])
def test_the_target_needs_rights_of_its_own(pipeline, path, refusal):
    pipeline.may(USER, HERE)
    assert pipeline.read(USER, path)[0] == refusal
    pipeline.may(USER, HERE, THERE)
    assert pipeline.read(USER, path) == (200, b"data")
    # The groups of an owner are no way past its limits, nor past what a policy denies.
    pipeline.may(OWNER, is_owner=True)
    assert pipeline.read(OWNER, path) == (200, b"data")
    pipeline.may(OWNER, is_owner=True, boundaries=(named_policy(HERE),))
    assert pipeline.read(OWNER, path)[0] == refusal
    pipeline.may(OWNER, {**THERE, "Effect": "Deny"}, is_owner=True)
    assert pipeline.read(OWNER, path)[0] == refusal


@pytest.mark.parametrize("path", ["here/link", "here/large"])
def test_the_networks_of_a_key_are_those_of_its_client(pipeline, path):
    limits = NamedPolicy("limits", limits_policy(networks=["10.0.0.0/8"]))
    pipeline.may(OWNER, is_owner=True, boundaries=(limits,))
    assert pipeline.read(OWNER, path) == (200, b"data")
    assert pipeline.read(OWNER, path, address="11.1.2.3")[0] == 403


@pytest.mark.parametrize("query", ["multipart-manifest=delete", "multipart-manifest=delete&async=on"])
def test_segments_are_deleted_by_those_who_may_delete_them(pipeline, query):
    read, delete = {**HERE, "Action": "s3:GetObject"}, {**HERE, "Action": "s3:DeleteObject"}
    every = {"Action": "s3:*", "Resource": "arn:aws:s3:::there/*"}
    # Other names in the container of the segments are no help.
    other = {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::there/target"}
    pipeline.may(USER, read, delete, every, other)
    response = pipeline.send(USER, "DELETE", "here/large", query=query)
    assert response.status == 403 or b"403 Forbidden" in response.read_body()
    assert pipeline.s3.sim("HEAD", "/AUTH_test/there/target").status == 200
    pipeline.may(USER, HERE, every)
    pipeline.as_owner("PUT", "here/large", body=MANIFEST, query="multipart-manifest=put")
    pipeline.may(USER, HERE, every)
    assert pipeline.send(USER, "DELETE", "here/large", query=query).status in (200, 204)
