"""Policies of buckets are kept as they came, refused with a reason, and read by the owner."""

import json

from test.support.s3front import OTHER


def policy(**changes):
    item = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::bucket/*",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [{**item, **changes}]}).encode()


def test_a_policy_comes_back_byte_by_byte_and_counts_until_it_goes(s3):
    assert s3("GET", "/bucket?policy").code == s3("GET", "/bucket?policyStatus").code == "NoSuchBucketPolicy"
    s3("PUT", "/bucket/key", {}, b"data")
    text = b"\n " + policy() + b" \n"
    assert s3("PUT", "/bucket?policy", {}, text).status == 204
    answer = s3("GET", "/bucket?policy")
    assert (answer.body, answer.headers["content-type"]) == (text, "application/json")
    assert s3("GET", "/bucket?policyStatus").texts("IsPublic") == ["true"]
    assert s3("GET", "/bucket/key", **OTHER).body == b"data"
    for _ in range(2):
        assert s3("DELETE", "/bucket?policy").status == 204
    assert s3("GET", "/bucket?policy").code == "NoSuchBucketPolicy"
    assert s3("GET", "/bucket/key", **OTHER).code == "AccessDenied"


def test_what_is_for_few_is_not_public(s3):
    s3("PUT", "/bucket?policy", {}, policy(Principal={"AWS": "test:tester3"}))
    assert s3("GET", "/bucket?policyStatus").texts("IsPublic") == ["false"]


WRONG = [
    (b"", "MissingRequestBodyError"),
    (b"{", "MalformedPolicy"),
    (b"\xff", "MalformedPolicy"),
    (policy(Resource="arn:aws:s3:::other/*"), "MalformedPolicy"),
    (policy(Action="s3:Nothing"), "MalformedPolicy"),
    (policy(Surprise="\ud800\x00<&>"), "MalformedPolicy"),
    (json.dumps({"\ud800\x00<&>": 1}).encode(), "MalformedPolicy"),
    (policy(Effect="\ud800\x00<&>"), "MalformedPolicy"),
    (policy(Condition={"\ud800\x00<&>": {"s3:prefix": "x"}}), "MalformedPolicy"),
    (policy() + b" " * 20480, "MalformedPolicy"),
    (b" " * 100_000, "MalformedPolicy"),
]


def test_what_is_no_policy_changes_nothing_and_is_told_why(s3):
    s3("PUT", "/bucket?policy", {}, policy())
    for body, code in WRONG:
        answer = s3("PUT", "/bucket?policy", {}, body)
        assert answer.code == code, body[:100]
        assert b"<Message>" in answer.body and b"<Message></Message>" not in answer.body
        assert s3("GET", "/bucket?policy").body == policy()


def test_one_that_is_too_large_is_told_as_such(s3):
    for body in (policy() + b" " * 20480, b" " * 100_000):
        assert "maximum allowed document size" in s3("PUT", "/bucket?policy", {}, body).texts("Message")[0]


def test_only_the_owner_has_to_do_with_it(s3):
    s3("PUT", "/bucket?policy", {}, policy())
    for method, path, body in (
        ("GET", "/bucket?policy", b""),
        ("GET", "/bucket?policyStatus", b""),
        ("PUT", "/bucket?policy", policy(Action="s3:*", Resource="arn:aws:s3:::bucket*")),
        ("PUT", "/bucket?policy", b" " * 100_000),
        ("DELETE", "/bucket?policy", b""),
    ):
        assert s3(method, path, {}, body, **OTHER).code in ("AccessDenied", "MalformedPolicy"), path
    assert s3("GET", "/bucket?policy").body == policy()
    assert s3("PUT", "/no-bucket?policy", {}, policy()).code == "NoSuchBucket"


def test_a_public_one_is_refused_where_that_is_blocked(s3):
    block = (
        b"<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy>"
        b"</PublicAccessBlockConfiguration>"
    )
    assert s3("PUT", "/bucket?publicAccessBlock", {}, block).status == 200
    assert s3("PUT", "/bucket?policy", {}, policy()).code == "AccessDenied"
    assert s3("PUT", "/bucket?policy", {}, policy(Principal={"AWS": "test:tester3"})).status == 204
