"""What conditions of policies may ask of a request, and what they hear."""

import json
from types import SimpleNamespace

import pytest

from swift.http.request import Request
from swift.middleware.s3api.facts import RequestFacts

ACCOUNT = {"owner": "test:tester", "home": "AUTH_test", "name": "AUTH_test", "is_anonymous": False}


def facts(headers=None, query="", tags=None, scheme="http", version=None, **account):
    request = Request("GET", "/bucket/key", dict(headers or {}), query=query, scheme=scheme)
    request.remote_addr = "10.0.0.1"
    claim = SimpleNamespace(facts=lambda now: {"s3:authtype": "REST-HEADER"})
    call = SimpleNamespace(
        request=request,
        headers=request.headers,
        params=request.params,
        settings=SimpleNamespace(location="us-east-1"),
        account=SimpleNamespace(**{**ACCOUNT, "claim": claim, **account}),
    )
    return RequestFacts(call, tags or dict, version=version)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("aws:sourceip", "10.0.0.1"),
        ("aws:securetransport", "false"),
        ("aws:useragent", "agent"),
        ("aws:referer", "http://ü"),
        ("aws:username", "tester"),
        ("aws:userid", "test:tester"),
        ("aws:principaltype", "User"),
        ("aws:principalarn", "arn:aws:iam::test:user/tester"),
        ("s3:x-amz-acl", "private"),
        ("s3:prefix", "a/"),
        ("s3:max-keys", "5"),
        ("s3:locationconstraint", "us-east-1"),
        ("s3:authtype", "REST-HEADER"),
        ("s3:requestobjecttag/k", "v"),
        ("s3:existingobjecttag/old", "1"),
    ],
)
def test_each_fact_has_its_place(key, value):
    headers = {"user-agent": "agent", "referer": "http://ü".encode().decode("latin-1")}
    headers |= {"x-amz-acl": "private", "x-amz-tagging": "k=v"}
    assert facts(headers, "prefix=a/&max-keys=5", lambda: {"old": "1"}).values(key) == (value,)


@pytest.mark.parametrize(
    "key",
    [
        "aws:useragent",
        "aws:odd",
        "s3:odd",
        "s3:prefix",
        "s3:requestobjecttag/k",
        "s3:requestobjecttagkeys",
        "",
    ],
)
def test_what_was_not_said_is_no_fact(key):
    assert facts().values(key) is None


def test_nobody_has_no_name():
    nobody = facts(is_anonymous=True, owner="", home="")
    assert nobody.values("aws:principaltype") == ("Anonymous",)
    assert nobody.values("aws:userid") == ("anonymous",)
    for key in ("aws:username", "aws:principalarn", "aws:principalaccount"):
        assert nobody.values(key) is None


def test_the_tags_of_an_object_are_read_once_and_only_if_they_count():
    read = []
    found = facts(tags=lambda: read.append(1) or {"k": "v"})
    found.values("s3:prefix")
    assert read == []
    assert found.values("s3:existingobjecttag/k") == ("v",) and found.values("s3:existingobjecttag/x") is None
    assert read == [1]


def test_tags_that_are_none_are_no_facts_and_no_fault():
    found = facts({"x-amz-tagging": "a=1&a=2&%ff"})
    assert found.values("s3:requestobjecttag/a") is None and found.values("s3:requestobjecttagkeys") is None


def test_a_version_is_that_of_the_object_that_is_meant():
    assert facts(query="versionId=1").values("s3:versionid") == ("1",)
    assert facts(query="versionId=1", version="2").values("s3:versionid") == ("2",)
    assert facts(query="versionId=1", version="").values("s3:versionid") is None


def test_a_policy_is_asked_with_them(s3):
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": "arn:aws:s3:::bucket/*",
        "Condition": {"StringNotEquals": {"s3:RequestObjectTag/class": "open"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
    assert s3("PUT", "/bucket?policy", {}, policy).status in (200, 204)
    assert s3("PUT", "/bucket/key", {}, b"x").code == "AccessDenied"
    assert s3("PUT", "/bucket/key", {"x-amz-tagging": "class=open"}, b"x").status == 200
