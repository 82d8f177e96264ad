"""What conditions of policies learn about a request."""

import time
from types import SimpleNamespace

import pytest

from swift.http.request import Request
from swift.s3.core.errors import S3Error
from swift.s3.policy.context import RequestContext, principal_of


def call_of(
    headers=None, query="", *, owner="test:tester", own_account="AUTH_test", scheme="http", **session
):
    request = Request("GET", "/bucket/key", dict(headers or {}), query=query)
    request.remote_addr, request.scheme = "10.1.2.3", scheme
    claim = SimpleNamespace(
        condition_values=lambda now: {"s3:authtype": "REST-HEADER", "s3:signatureage": "5"}
    )
    given = {
        "user_id": owner,
        "own_account": own_account,
        "account": "AUTH_other",
        "is_anonymous": not owner,
        "claim": claim,
    }
    return SimpleNamespace(
        request=request,
        headers=request.headers,
        params=request.params,
        session=SimpleNamespace(**{**given, **session}),
        settings=SimpleNamespace(location="us-east-1"),
    )


def fact(key, call, tags=None, **more):
    return RequestContext(call, lambda: dict(tags or {}), **more).values(key)


@pytest.mark.parametrize(
    "key, wanted",
    [
        ("aws:sourceip", "10.1.2.3"),
        ("aws:securetransport", "false"),
        ("aws:useragent", "curl/8"),
        ("aws:referer", "http://h/\u00fc"),
        ("aws:username", "tester"),
        ("aws:userid", "test:tester"),
        ("aws:principalaccount", "AUTH_test"),
        ("aws:principalarn", "arn:aws:iam::test:user/tester"),
        ("aws:principaltype", "User"),
        ("s3:x-amz-acl", "private"),
        ("s3:prefix", "a/"),
        ("s3:max-keys", "7"),
        ("s3:versionid", "v1"),
        ("s3:if-none-match", "*"),
        ("s3:locationconstraint", "us-east-1"),
        ("s3:resourceaccount", "AUTH_other"),
        ("s3:authtype", "REST-HEADER"),
        ("aws:nobody-knows", None),
        ("s3:nobody-knows", None),
        ("s3:if-match", None),
        ("s3:delimiter", None),
    ],
)
def test_each_key_has_its_source(key, wanted):
    headers = {
        "user-agent": "curl/8",
        "referer": "http://h/\u00fc".encode().decode("latin-1"),
        "x-amz-acl": "private",
        "if-none-match": "*",
    }
    found = fact(key, call_of(headers, "prefix=a/&max-keys=7&versionId=v1"))
    assert found == (None if wanted is None else (wanted,))


def test_times_are_those_of_the_server():
    (text,) = fact("aws:epochtime", call_of())
    (when,) = fact("aws:currenttime", call_of())
    assert abs(int(text) - time.time()) < 60 and when.startswith("20") and when.endswith("Z")


def test_tls_is_told():
    assert fact("aws:securetransport", call_of(scheme="https")) == ("true",)


@pytest.mark.parametrize(
    "key, wanted",
    [("aws:userid", ("anonymous",)), ("aws:principaltype", ("Anonymous",)), ("aws:username", None)],
)
def test_nobody_is_anonymous(key, wanted):
    assert fact(key, call_of(owner="", own_account="")) == wanted


def test_a_user_without_tenant_belongs_to_the_account():
    call = call_of(owner="alice", own_account="AUTH_a")
    assert fact("aws:principalarn", call) == ("arn:aws:iam::AUTH_a:user/alice",)
    assert fact("aws:username", call) == ("alice",)
    assert principal_of(call).accounts == {"AUTH_a"}
    assert principal_of(call_of()).accounts == {"AUTH_test", "test"}


def test_tags_of_the_object_are_read_once_and_only_when_asked_for():
    read = []
    facts = RequestContext(call_of(), lambda: read.append(1) or {"team": "red"})
    assert facts.values("s3:x-amz-acl") is None and not read
    assert facts.values("s3:existingobjecttag/team") == ("red",)
    assert facts.values("s3:existingobjecttag/other") is None
    assert read == [1]


def test_tags_that_are_sent_are_those_of_the_header():
    call = call_of({"x-amz-tagging": "team=red&x=%20"})
    assert fact("s3:requestobjecttag/team", call) == ("red",)
    assert fact("s3:requestobjecttag/x", call) == (" ",)
    assert set(fact("s3:requestobjecttagkeys", call)) == {"team", "x"}
    assert fact("s3:requestobjecttagkeys", call_of()) is None


def test_tags_that_are_none_are_refused_by_the_operation_and_not_here():
    call = call_of({"x-amz-tagging": "a=1&a=2"})
    assert fact("s3:requestobjecttag/a", call) is None
    assert fact("s3:requestobjecttagkeys", call) is None


def test_a_version_that_the_caller_names_goes_before_that_of_the_query():
    call = call_of(query="versionId=v1")
    assert fact("s3:versionid", call, version="v2") == ("v2",)
    assert fact("s3:versionid", call, version="") is None


def test_an_error_of_reading_tags_is_not_hidden():
    def fail():
        raise S3Error("ServiceUnavailable")

    with pytest.raises(S3Error):
        RequestContext(call_of(), fail).values("s3:existingobjecttag/team")
