"""Policies of buckets are kept as they came, refused with a reason, and read by the owner."""

import json

import pytest

from test.support.s3_fixtures import OTHER, SECOND, STRANGER

EVERYTHING = {"Action": "s3:*", "Resource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]}


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


@pytest.mark.parametrize("options", [{}, {"s3_acl": "true"}])
@pytest.mark.parametrize(
    "change", [{}, {"NotAction": "s3:GetObject"}, {"Principal": {"AWS": "test2:stranger"}}]
)
def test_no_policy_gives_itself_to_another_account(make_s3, options, change):
    s3 = make_s3(**options)
    document = policy(**{**EVERYTHING, **change})
    if "NotAction" in change:
        document = document.replace(b'"Action": "s3:*", ', b"")
    assert s3("PUT", "/bucket?policy", {}, document).status == 204
    for ask in (lambda *request: s3(*request, **STRANGER), s3.raw):
        assert ask("PUT", "/AUTH_test%3Abucket?policy", {}, policy(Effect="Deny")).code == "AccessDenied"
        assert ask("DELETE", "/AUTH_test%3Abucket?policy").code == "AccessDenied"
        assert ask("GET", "/AUTH_test%3Abucket?policy").code == "AccessDenied"
    assert s3("GET", "/bucket?policy").body == document


def test_a_policy_gives_itself_to_users_of_its_account_and_never_locks_the_owner_out(s3):
    s3("PUT", "/bucket?policy", {}, policy(**EVERYTHING))
    assert s3("GET", "/bucket?policy", **OTHER).status == 200
    denial = policy(**EVERYTHING, Effect="Deny")
    assert s3("PUT", "/bucket?policy", {}, denial, **OTHER).status == 204
    assert s3("GET", "/bucket?policy", **OTHER).code == "AccessDenied"
    assert s3("GET", "/bucket?policy").body == denial
    assert s3("DELETE", "/bucket?policy").status == 204


def logging(target):
    return (
        f"<BucketLoggingStatus><LoggingEnabled><TargetBucket>{target}</TargetBucket>"
        "<TargetPrefix>p</TargetPrefix></LoggingEnabled></BucketLoggingStatus>"
    ).encode()


def inventory(target):
    return (
        "<InventoryConfiguration><Destination><S3BucketDestination><Format>CSV</Format>"
        f"<Bucket>arn:aws:s3:::{target}</Bucket></S3BucketDestination></Destination><Id>a</Id>"
        "<IsEnabled>true</IsEnabled><IncludedObjectVersions>Current</IncludedObjectVersions>"
        "<Schedule><Frequency>Daily</Frequency></Schedule></InventoryConfiguration>"
    ).encode()


@pytest.mark.parametrize(
    ("query", "document", "code"),
    [
        ("logging", logging, "InvalidTargetBucketForLogging"),
        ("inventory&id=a", inventory, "InvalidS3DestinationBucket"),
    ],
)
@pytest.mark.parametrize(
    ("options", "user"),
    [({}, OTHER), ({}, STRANGER), ({"s3_acl": "true"}, STRANGER), ({"s3_acl": "true"}, SECOND)],
)
def test_what_is_allowed_in_a_bucket_sends_nothing_to_another(make_s3, options, user, query, document, code):
    s3 = make_s3(**options)
    assert s3("PUT", "/private").status == 200
    s3("PUT", "/bucket?policy", {}, policy(**EVERYTHING))
    path = f"/AUTH_test%3Abucket?{query}"
    assert s3("PUT", path, {}, document("private"), **user).code == code
    kept = s3.sim("HEAD", "/AUTH_test/bucket").headers
    assert not [name for name in kept if "logging" in name or "inventor" in name]
    assert s3("PUT", path, {}, document("private")).status in (200, 204)


def test_the_owner_of_one_bucket_of_an_account_sends_nothing_to_that_of_another_user(make_s3):
    s3 = make_s3(s3_acl="true")
    assert s3("PUT", "/second", **SECOND).status == 200
    answer = s3("PUT", "/second?logging", {}, logging("bucket"), **SECOND)
    assert answer.code == "InvalidTargetBucketForLogging"
    assert s3("PUT", "/second?logging", {}, logging("second"), **SECOND).status == 200
