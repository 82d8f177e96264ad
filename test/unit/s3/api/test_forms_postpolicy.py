"""What the policy of a form lets it say."""

import json
from base64 import b64encode

import pytest

from swift.s3.api.forms import check_form, parse_post_policy
from swift.s3.errors import S3Error

END = "2026-12-01T12:00:00.000Z"
NOW = 1_780_000_000.0


def encoded(tree):
    text = tree if isinstance(tree, str) else json.dumps(tree)
    return b64encode(text.encode()).decode()


def policy(*conditions, expiration=END):
    return parse_post_policy(encoded({"expiration": expiration, "conditions": list(conditions)}))


@pytest.mark.parametrize(
    ("conditions", "fields", "good"),
    [
        ([{"key": "a"}], {"key": "a"}, True),
        ([{"key": "a"}], {"key": "b"}, False),
        ([{"key": "a"}], {}, False),
        ([["eq", "$Key", "a"]], {"key": "a"}, True),
        ([["starts-with", "$key", "user/"]], {"key": "user/x"}, True),
        ([["starts-with", "$key", "user/"]], {"key": "other"}, False),
        ([["starts-with", "$key", ""]], {"key": "anything"}, True),
        ([["starts-with", "$content-type", "image/"]], {"content-type": "image/png,image/gif"}, True),
        ([["starts-with", "$content-type", "image/"]], {"content-type": "image/png,text/html"}, False),
        ([{"key": "a"}], {"key": "a", "acl": "public-read"}, False),
        ([{"key": "a", "acl": "private"}], {"key": "a", "acl": "private"}, True),
        ([{"key": "a"}], {"key": "a", "x-ignore-me": "x", "policy": "p", "x-amz-signature": "s"}, True),
        ([{"key": "a"}], {"key": "a", "x-amz-meta-a": "x"}, False),
        ([{"key": "a"}, {"bucket": "b"}], {"key": "a", "bucket": "b"}, True),
        ([{"key": "a"}, {"bucket": "b"}], {"key": "a", "bucket": "c"}, False),
        ([{"key": "a"}], {"key": "a", "bucket": "b"}, False),
        ([{"key": "a"}, ["starts-with", "$bucket", ""]], {"key": "a", "bucket": "b"}, True),
    ],
)
def test_every_field_needs_a_condition_that_holds(conditions, fields, good):
    found = policy(*conditions)
    if good:
        check_form(found, fields, fields, NOW)
        return
    with pytest.raises(S3Error) as caught:
        check_form(found, fields, fields, NOW)
    assert caught.value.code == "AccessDenied"


def test_the_name_of_the_file_is_put_in_before_the_key_is_compared():
    starts = policy(["starts-with", "$key", "user/"])
    with pytest.raises(S3Error):
        check_form(starts, {"key": "../x"}, {"key": "${filename}"}, NOW)
    literally = policy({"key": "user/${filename}"})
    check_form(literally, {"key": "user/x"}, {"key": "user/${filename}"}, NOW)
    with pytest.raises(S3Error):
        check_form(literally, {"key": "user/x"}, {"key": "user/x"}, NOW)


def test_a_policy_ends():
    found = policy({"key": "a"})
    check_form(found, {"key": "a"}, {"key": "a"}, found.expires - 1)
    with pytest.raises(S3Error, match="expired"):
        check_form(found, {"key": "a"}, {"key": "a"}, found.expires)


def test_the_narrowest_of_sizes_counts():
    found = policy(["content-length-range", 1, 100], ["content-length-range", "5", "1000"])
    assert (found.size_min, found.size_max) == (5, 100)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%%%",
        encoded("x"),
        encoded("[]"),
        encoded("[" * 9000),
        encoded({}),
        encoded({"expiration": END}),
        encoded({"expiration": END, "conditions": {}}),
        encoded({"expiration": "soon", "conditions": []}),
        encoded({"expiration": 5, "conditions": []}),
        encoded({"expiration": END, "conditions": [], "more": 1}),
        encoded({"expiration": END, "conditions": [5]}),
        encoded({"expiration": END, "conditions": [{}]}),
        encoded({"expiration": END, "conditions": [{"key": 5}]}),
        encoded({"expiration": END, "conditions": [["eq", "$key"]]}),
        encoded({"expiration": END, "conditions": [["eq", "key", "a"]]}),
        encoded({"expiration": END, "conditions": [["ends-with", "$key", "a"]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", -1, 5]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", True, 5]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", "x", 5]]}),
        b64encode(b"\xff\xfe{}").decode(),
        "A" * 50_000,
    ],
)
def test_what_is_no_policy_is_told_so(text):
    with pytest.raises(S3Error) as caught:
        parse_post_policy(text)
    assert caught.value.code == "InvalidPolicyDocument"
