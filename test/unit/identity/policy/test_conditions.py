"""Conditions of policies: a table of cases, and what is none."""

import pytest

from swift.identity.policy.conditions import (
    OPERATORS,
    InvalidPolicy,
    parse_condition,
    parse_network,
    validate_condition_key,
)
from test.support.policies import Known

CONDITIONS = [
    # operator, key, values of the policy, values of the request (None: none), does it hold
    ("StringEquals", "s3:prefix", "a", "a", True),
    ("StringEquals", "s3:prefix", ["a", "b"], "b", True),
    ("StringEquals", "s3:prefix", "a", "A", False),
    ("StringEquals", "s3:prefix", "a*", "ab", False),
    ("StringEquals", "s3:prefix", "a*", "a*", True),
    ("StringEquals", "s3:prefix", "a", None, False),
    ("StringEqualsIfExists", "s3:prefix", "a", None, True),
    ("StringEqualsIfExists", "s3:prefix", "a", "b", False),
    ("StringNotEquals", "s3:prefix", "a", "b", True),
    ("StringNotEquals", "s3:prefix", ["a", "b"], "b", False),
    ("StringNotEquals", "s3:prefix", "a", None, True),
    ("StringEqualsIgnoreCase", "s3:prefix", "a", "A", True),
    ("StringNotEqualsIgnoreCase", "s3:prefix", "a", "A", False),
    ("StringLike", "s3:prefix", "a*c", "abc", True),
    ("StringLike", "s3:prefix", ["x", "a?"], "ab", True),
    ("StringLike", "s3:prefix", "", "", True),
    ("StringNotLike", "s3:prefix", "a*", "abc", False),
    ("StringNotLike", "aws:Referer", "http://good/*", None, True),
    ("stringlike", "S3:PREFIX", "a*", "a", True),
    ("StringEquals", "s3:prefix", "${aws:username}", "bob", True),
    ("StringLike", "s3:prefix", "${aws:username}/*", "ann/x", False),
    ("NumericLessThanEquals", "s3:max-keys", "10", "10", True),
    ("NumericLessThan", "s3:max-keys", 10, "10", False),
    ("NumericGreaterThan", "s3:max-keys", 10, "11", True),
    ("NumericGreaterThanEquals", "s3:max-keys", "10", "9", False),
    ("NumericEquals", "s3:max-keys", "10", "10.0", True),
    ("NumericNotEquals", "s3:max-keys", "10", "11", True),
    ("NumericLessThan", "s3:max-keys", "10", "few", False),
    ("NumericLessThan", "s3:max-keys", "10", None, False),
    ("DateGreaterThan", "aws:CurrentTime", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", True),
    ("DateLessThan", "aws:CurrentTime", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", False),
    ("DateLessThanEquals", "aws:CurrentTime", "2026-01-01", "2026-01-01T00:00:00Z", True),
    ("DateGreaterThanEquals", "aws:EpochTime", "1767225600", "2026-01-01T00:00:00Z", True),
    ("DateEquals", "aws:EpochTime", "1767225600", "1767225600", True),
    ("DateNotEquals", "aws:EpochTime", "1767225600", "1767225600", False),
    ("DateEquals", "aws:CurrentTime", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00", True),
    ("DateLessThan", "aws:CurrentTime", "9999-12-31T23:59:59-23:59", "2026-01-01", True),
    ("DateGreaterThan", "aws:CurrentTime", "0001-01-01T00:00:00+23:59", "2026-01-01", True),
    ("NumericGreaterThan", "s3:max-keys", "-1", "0", True),
    ("NumericEquals", "s3:max-keys", "10", "1e1", False),
    ("NumericEquals", "s3:max-keys", "1", "\u0661", False),
    ("NumericGreaterThan", "s3:max-keys", "0", "9" * 400, False),
    ("Bool", "aws:SecureTransport", "true", "true", True),
    ("Bool", "aws:SecureTransport", True, "true", True),
    ("Bool", "aws:SecureTransport", False, "true", False),
    ("Bool", "aws:SecureTransport", "false", None, False),
    ("BoolIfExists", "aws:SecureTransport", "false", None, True),
    ("IpAddress", "aws:SourceIp", "10.0.0.0/8", "10.1.2.3", True),
    ("IpAddress", "aws:SourceIp", "10.0.0.0/8", "11.0.0.1", False),
    ("IpAddress", "aws:SourceIp", ["192.0.2.1", "2001:db8::/32"], "2001:db8::5", True),
    ("IpAddress", "aws:SourceIp", "10.0.0.0/8", "::ffff:10.0.0.1", True),
    ("IpAddress", "aws:SourceIp", "10.0.0.5/8", "10.0.0.1", True),
    ("IpAddress", "aws:SourceIp", "::ffff:10.0.0.0/104", "10.0.0.1", True),
    ("IpAddress", "aws:SourceIp", "::ffff:10.0.0.1", "::ffff:10.0.0.1", True),
    ("NotIpAddress", "aws:SourceIp", "::ffff:10.0.0.0/104", "10.0.0.1", False),
    ("IpAddress", "aws:SourceIp", "::/0", "10.0.0.1", False),
    ("IpAddress", "aws:SourceIp", "fe80::/10", "fe80::1%eth0", True),
    ("IpAddress", "aws:SourceIp", "10.0.0.0/8", "somewhere", False),
    ("IpAddress", "aws:SourceIp", "10.0.0.0/8", None, False),
    ("NotIpAddress", "aws:SourceIp", "10.0.0.0/8", "11.0.0.1", True),
    ("NotIpAddress", "aws:SourceIp", "10.0.0.0/8", "10.0.0.1", False),
    ("Null", "s3:x-amz-acl", "true", None, True),
    ("Null", "s3:x-amz-acl", "true", "private", False),
    ("Null", "s3:x-amz-acl", False, "private", True),
    ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::acme:user/*", "arn:aws:iam::acme:user/ann", True),
    ("ArnEquals", "aws:PrincipalArn", "arn:aws:iam::*:user/ann", "arn:aws:iam::acme:user/bob", False),
    ("ArnNotEquals", "aws:PrincipalArn", "arn:aws:iam::acme:user/ann", "arn:aws:iam::acme:user/bob", True),
    ("ArnNotLike", "aws:PrincipalArn", "arn:aws:iam::acme:*", "arn:aws:iam::acme:user/bob", False),
    ("StringEquals", "s3:ExistingObjectTag/colour", "red", "red", True),
    ("StringEquals", "s3:ExistingObjectTag/Colour", "red", None, False),
    ("StringEquals", "s3:RequestObjectTag/colour", "red", "blue", False),
    ("ForAllValues:StringEquals", "s3:RequestObjectTagKeys", ["a", "b"], ["a", "b"], True),
    ("ForAllValues:StringEquals", "s3:RequestObjectTagKeys", ["a", "b"], ["a", "c"], False),
    ("ForAllValues:StringEquals", "s3:RequestObjectTagKeys", "a", None, True),
    ("ForAnyValue:StringEquals", "s3:RequestObjectTagKeys", "a", ["x", "a"], True),
    ("ForAnyValue:StringEquals", "s3:RequestObjectTagKeys", "a", ["x"], False),
    ("ForAnyValue:StringEquals", "s3:RequestObjectTagKeys", "a", None, False),
    ("ForAnyValue:StringNotEquals", "s3:RequestObjectTagKeys", "a", ["x", "a"], True),
    ("ForAllValues:StringNotLike", "s3:RequestObjectTagKeys", "a*", ["x", "ab"], False),
    ("StringEquals", "s3:RequestObjectTagKeys", "a", ["x", "a"], True),
    ("StringNotEquals", "s3:RequestObjectTagKeys", "a", ["x", "a"], False),
]


@pytest.mark.parametrize(("operator", "key", "wanted", "said", "holds"), CONDITIONS)
def test_a_condition_holds_or_not(operator, key, wanted, said, holds):
    start, slash, name = key.partition("/")
    facts = Known(aws__username="bob").with_({} if said is None else {start.lower() + slash + name: said})
    texts = [str(text) for text in (wanted if isinstance(wanted, list) else [wanted])]
    found = parse_condition(operator, key, tuple(texts))
    assert found.holds(facts, lambda name: "bob" if name == "aws:username" else None) == holds


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_what_a_request_does_not_say_holds_for_negations_only(operator):
    wanted = {"bool": "true", "arn": "arn:aws:iam::a:user/b", "ip": "10.0.0.1", "notip": "10.0.0.1"}
    text = next((wanted[start] for start in wanted if operator.startswith(start)), "1")
    for suffix, holds in (("", "not" in operator), ("IfExists", True)):
        assert parse_condition(operator + suffix, "s3:prefix", (text,)).holds(Known(), {}.get) == holds


@pytest.mark.parametrize(
    "said", ["", "x", "\ud800", "\x00", "1.2.3.4.5", "9" * 5000, "arn:::::", "\u0661", "nan"]
)
def test_nothing_that_a_request_says_is_a_fault(said):
    for operator in OPERATORS:
        for text in ("1", "true", "10.0.0.1", "arn:a:b:c:d:e", "2026-01-01"):
            try:
                made = parse_condition(operator, "s3:prefix", (text,))
            except InvalidPolicy:
                continue
            assert made.holds(Known(s3__prefix=said), {}.get) in (True, False)


@pytest.mark.parametrize(
    ("operator", "key", "texts"),
    [
        ("StringEquals", "s3:prefix", ()),
        ("StringSounds", "s3:prefix", ("x",)),
        ("", "s3:prefix", ("x",)),
        ("IfExists", "s3:prefix", ("x",)),
        ("ForAllValues:", "s3:prefix", ("x",)),
        ("ForAllValues:ForAnyValue:StringEquals", "s3:prefix", ("x",)),
        ("ForAllValues:Null", "s3:prefix", ("true",)),
        ("NullIfExists", "s3:prefix", ("true",)),
        ("Null", "s3:prefix", ("true", "maybe")),
        ("StringEquals", "s3:nothing", ("x",)),
        ("NumericEquals", "s3:max-keys", ("1", "many")),
        ("NumericEquals", "s3:max-keys", ("inf",)),
        ("NumericEquals", "s3:max-keys", ("9" * 400,)),
        ("DateEquals", "aws:CurrentTime", ("2026-13-01",)),
        ("Bool", "aws:SecureTransport", ("",)),
        ("IpAddress", "aws:SourceIp", ("10.0.0.0/33",)),
        ("IpAddress", "aws:SourceIp", ("10.0.0.0/255.0.255.0",)),
        ("ArnLike", "aws:PrincipalArn", ("a:b:c:d:e",)),
    ],
)
def test_what_is_no_condition_is_refused(operator, key, texts):
    with pytest.raises(InvalidPolicy):
        parse_condition(operator, key, texts)


def test_keys_are_known_in_any_letters_but_names_of_tags_stay():
    assert validate_condition_key("S3:EXISTINGOBJECTTAG/Colour/x") == "s3:existingobjecttag/Colour/x"
    for text in ("", "/", "s3:ExistingObjectTag/", "s3:ExistingObjectTag", "s3:prefix/x", "aws:nothing"):
        with pytest.raises(InvalidPolicy):
            validate_condition_key(text)


def test_a_network_is_that_of_its_addresses():
    assert str(parse_network("10.1.2.3/8")) == "10.0.0.0/8"
    assert str(parse_network("::ffff:10.1.2.3/104")) == "10.0.0.0/8"
    assert str(parse_network("::ffff:0:0/95")) == "::fffe:0:0/95"
