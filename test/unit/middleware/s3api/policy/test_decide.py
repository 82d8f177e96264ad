"""What policies decide: a table of cases."""

import json

import pytest

from swift.middleware.s3api.policy.conditions import BadPolicy
from swift.middleware.s3api.policy.decide import Ask, Caller, PolicyVerdict, decide, is_public, together
from swift.middleware.s3api.policy.document import parse_policy

ANN = Caller("acme:ann", frozenset(("acme", "AUTH_acme")))
BOB = Caller("acme:bob", frozenset(("acme", "AUTH_acme")))
EVE = Caller("other:eve", frozenset(("other", "AUTH_other")))
KEY = Caller("0123abcd", frozenset(("AUTH_p1",)))
NOBODY = Caller()
ALLOW, DENY, SILENT = PolicyVerdict.ALLOW, PolicyVerdict.DENY, PolicyVerdict.SILENT


class Known:
    """Facts as a test says them; it keeps the keys that were asked for."""

    def __init__(self, **values):
        self.found = {
            name.replace("__", ":"): v if isinstance(v, list) else [v] for name, v in values.items()
        }
        self.asked = []

    def with_(self, pairs):
        self.found.update({name: v if isinstance(v, list) else [v] for name, v in pairs.items()})
        return self

    def values(self, key):
        self.asked.append(key)
        return self.found.get(key)


def statement(effect="Allow", principal="*", action="s3:GetObject", resource="photos/*", **more):
    found = {"Effect": effect, "Action": action, "Resource": f"arn:aws:s3:::{resource}", **more}
    if "NotPrincipal" not in more:
        found["Principal"] = principal
    return found


def policy(*statements, version="2012-10-17"):
    return parse_policy(json.dumps({"Version": version, "Statement": list(statements)}), "photos")


def verdict(found, caller=BOB, action="s3:GetObject", key="k", facts=None):
    return decide(found, Ask(caller, action, "photos", key, facts or Known()))


# --- who ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "who"),
    [
        ("*", {ANN, BOB, EVE, KEY, NOBODY}),
        ({"AWS": "*"}, {ANN, BOB, EVE, KEY, NOBODY}),
        ({"AWS": "acme:ann"}, {ANN}),
        ({"AWS": ["acme:ann", "other:eve"]}, {ANN, EVE}),
        ({"AWS": "arn:aws:iam::acme:user/ann"}, {ANN}),
        ({"AWS": "arn:aws:iam::acme:user/team/ann"}, {ANN}),
        ({"AWS": "arn:aws:iam::acme:root"}, {ANN, BOB}),
        ({"AWS": "AUTH_acme"}, {ANN, BOB}),
        ({"AWS": "AUTH_p1"}, {KEY}),
        ({"AWS": "0123abcd"}, {KEY}),
        ({"CanonicalUser": "other:eve"}, {EVE}),
        ({"Service": "logging.s3.amazonaws.com"}, set()),
        ({"Service": "x", "AWS": "acme:ann"}, {ANN}),
    ],
)
def test_a_principal_is_who_it_says(principal, who):
    found = policy(statement(principal=principal))
    assert {c for c in (ANN, BOB, EVE, KEY, NOBODY) if verdict(found, c) is ALLOW} == who
    others = policy(statement("Deny", NotPrincipal=principal))
    assert {c for c in (ANN, BOB, EVE, KEY, NOBODY) if verdict(others, c) is SILENT} == who


# --- what -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "asked", "applies"),
    [
        ("s3:GetObject", "s3:GetObject", True),
        ("s3:getobject", "s3:GetObject", True),
        ("s3:GetObject", "s3:GetObjectVersion", False),
        ("s3:Get*", "s3:GetObjectAcl", True),
        ("s3:*Object", "s3:PutObject", True),
        ("s3:?etObject", "s3:GetObject", True),
        ("s3:*", "s3:DeleteBucketPolicy", True),
        ("*", "s3:PutObject", True),
        (["s3:PutObject", "s3:DeleteObject"], "s3:DeleteObject", True),
        (["s3:PutObject", "s3:DeleteObject"], "s3:GetObject", False),
    ],
)
def test_an_action_is_what_it_says(action, asked, applies):
    assert (verdict(policy(statement(action=action, resource="photos*")), action=asked) is ALLOW) == applies
    other = statement(resource="photos*", NotAction=action)
    del other["Action"]
    assert (verdict(policy(other), action=asked) is ALLOW) != applies


@pytest.mark.parametrize(
    ("resource", "key", "applies"),
    [
        ("photos/*", "a/b", True),
        ("photos/*", "", False),
        ("photos", "", True),
        ("photos", "a", False),
        ("photos*", "a", True),
        ("photos/a/*", "a/b", True),
        ("photos/a/*", "b", False),
        ("photos/a?c", "abc", True),
        ("photos/*.jpg", "x/y.jpg", True),
        ("ph*s/k", "k", True),
        ("photos/${aws:username}/*", "bob/x", True),
        ("photos/${aws:username}/*", "ann/x", False),
        ("photos/${s3:prefix}/*", "bob/x", False),
    ],
)
def test_a_resource_is_what_it_says(resource, key, applies):
    facts = Known(aws__username="bob")
    assert (verdict(policy(statement(resource=resource)), key=key, facts=facts) is ALLOW) == applies
    other = statement(NotResource=f"arn:aws:s3:::{resource}")
    del other["Resource"]
    assert (verdict(policy(other), key=key, facts=facts) is ALLOW) != applies


def test_a_denial_wins_wherever_it_stands():
    yes, no = statement(), statement("Deny", {"AWS": "acme:bob"})
    for order in ((yes, no), (no, yes), (yes, no, yes)):
        assert verdict(policy(*order)) is DENY
        assert verdict(policy(*order), ANN) is ALLOW
    assert verdict(policy(no), ANN) is SILENT


def test_several_actions_must_all_be_allowed():
    assert together([ALLOW, ALLOW]) is ALLOW
    assert together([ALLOW, SILENT]) is SILENT
    assert together([ALLOW, DENY, SILENT]) is DENY
    assert together([]) is SILENT


def test_variables_are_text_in_old_policies():
    found = policy(statement(resource="photos/${aws:username}"), version="2008-10-17")
    assert verdict(found, key="bob", facts=Known(aws__username="bob")) is SILENT
    assert verdict(found, key="${aws:username}") is ALLOW


# --- under which conditions -----------------------------------------------------------------------------

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
    found = policy(statement(Condition={operator: {key: wanted}}))
    assert (verdict(found, facts=facts) is ALLOW) == holds


def test_all_conditions_must_hold():
    both = {"StringEquals": {"s3:prefix": "a", "s3:delimiter": "/"}, "Bool": {"aws:SecureTransport": "true"}}
    found = policy(statement(Condition=both))
    good = {"s3:prefix": "a", "s3:delimiter": "/", "aws:securetransport": "true"}
    assert verdict(found, facts=Known().with_(good)) is ALLOW
    for name in good:
        assert verdict(found, facts=Known().with_({**good, name: "x"})) is SILENT


def test_nothing_is_asked_that_does_not_matter():
    """The tags of an object cost a request."""
    facts = Known()
    tagged = statement("Deny", {"AWS": "acme:ann"}, Condition={"Null": {"s3:ExistingObjectTag/a": "true"}})
    assert verdict(policy(statement(), tagged), BOB, facts=facts) is ALLOW
    assert facts.asked == []
    assert verdict(policy(statement(), tagged), ANN, facts=facts) is DENY


# --- what is public -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "public"),
    [
        (statement(), True),
        (statement(principal={"AWS": ["acme:ann", "*"]}), True),
        (statement(principal={"AWS": "acme:ann"}), False),
        (statement("Deny"), False),
        (statement(NotPrincipal={"AWS": "acme:ann"}), True),
        (statement(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}), False),
        (statement(Condition={"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "0.0.0.0/0"]}}), True),
        (statement(Condition={"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}), False),
        (statement(Condition={"IpAddress": {"aws:SourceIp": "2000::/3"}}), True),
        (statement(Condition={"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}), True),
        (statement(Condition={"IpAddressIfExists": {"aws:SourceIp": "10.0.0.0/8"}}), True),
        (statement(Condition={"StringEquals": {"aws:username": "ann"}}), False),
        (statement(Condition={"StringLike": {"aws:username": "*"}}), True),
        (statement(Condition={"StringEquals": {"aws:Referer": "http://x"}}), True),
        (statement(Condition={"Bool": {"aws:SecureTransport": "true"}}), True),
    ],
)
def test_what_everybody_may_is_public(one, public):
    assert is_public(policy(one)) == public
    assert is_public(policy(statement(principal={"AWS": "acme:ann"}), one)) == public


# --- what is no policy ----------------------------------------------------------------------------------


def bad(**change):
    found = {**statement(), **change}
    return {"Statement": [{name: value for name, value in found.items() if value is not None}]}


BAD = [
    "",
    "x",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"Statement": []}',
    '{"Statement": null}',
    '{"Statement": "all"}',
    '{"Statement": [[]]}',
    '{"Version": "2012-10-17", "Version": "2012-10-17"}',
    '{"Statement": NaN}',
    "[" * 15000,
    '{"a":' * 4000,
    '{"Statement": ' + "1" * 15000 + "}",
    "\ufeff{}",
    {"Version": "2020-01-01", **bad()},
    {"Version": 5, **bad()},
    {"Extra": 1, **bad()},
    {"Id": 5, **bad()},
    {"Statement": [statement()] * 1001},
    bad(Effect="Maybe"),
    bad(Effect=None),
    bad(Effect=True),
    bad(Sid=5),
    bad(Surprise="x"),
    bad(Principal=None),
    bad(Principal="acme:ann"),
    bad(Principal={}),
    bad(Principal={"AWS": []}),
    bad(Principal={"AWS": ["acme:ann", 5]}),
    bad(Principal={"AWS": "arn:aws:iam::acme:role/x"}),
    bad(Principal={"AWS": "arn:aws:iam:::root"}),
    bad(Principal={"AWS": "arn:aws:s3:::x"}),
    bad(Principal={"AWS": "acme:*"}),
    bad(Principal={"CanonicalUser": "*"}),
    bad(Principal={"Somebody": "x"}),
    bad(NotPrincipal="*"),
    bad(Action=None),
    bad(Action=[]),
    bad(Action=5),
    bad(Action="s3:NoSuchThing"),
    bad(Action="ec2:*"),
    bad(Action=["s3:GetObject", "s3:Nope*"]),
    bad(NotAction="s3:GetObject"),
    bad(Resource=None),
    bad(Resource="photos/*"),
    bad(Resource="arn:aws:s3:::other/*"),
    bad(Resource=["arn:aws:s3:::photos/*", "arn:aws:s3:::other"]),
    bad(Resource={"a": "b"}),
    bad(Condition="x"),
    bad(Condition={"StringEquals": "x"}),
    bad(Condition={"StringEquals": {}}),
    bad(Condition={"StringEquals": {"s3:prefix": []}}),
    bad(Condition={"StringEquals": {"s3:prefix": [{}]}}),
    bad(Condition={"StringEquals": {"s3:prefix": None}}),
    bad(Condition={"StringSounds": {"s3:prefix": "x"}}),
    bad(Condition={"NullIfExists": {"s3:prefix": "true"}}),
    bad(Condition={"Null": {"s3:prefix": "maybe"}}),
    bad(Condition={"StringEquals": {"s3:nothing": "x"}}),
    bad(Condition={"StringEquals": {"s3:ExistingObjectTag/": "x"}}),
    bad(Condition={"NumericEquals": {"s3:max-keys": "many"}}),
    bad(Condition={"DateEquals": {"aws:CurrentTime": "soon"}}),
    bad(Condition={"Bool": {"aws:SecureTransport": "perhaps"}}),
    bad(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/99"}}),
    bad(Condition={"ArnLike": {"aws:PrincipalArn": "x"}}),
    {"Version": "2012-10-17", **bad(Resource="arn:aws:s3:::photos/${aws:nothing}")},
    {"Version": "2012-10-17", **bad(Condition={"StringEquals": {"s3:prefix": "${x}"}})},
    {"Statement": [statement(resource="photos/" + "x" * 21000)]},
]


@pytest.mark.parametrize("document", BAD, ids=range(len(BAD)))
def test_what_is_not_understood_is_no_policy(document):
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(BadPolicy):
        parse_policy(text, "photos")


def test_bytes_that_are_no_text_are_no_policy():
    for body in (b"\xff\xfe", b"{\x00}", b'{"Id": "\xff"}'):
        with pytest.raises(BadPolicy):
            parse_policy(body, "photos")


def test_everything_that_may_be_left_out_may_be():
    assert verdict(parse_policy(json.dumps({"Statement": statement()}), "photos")) is ALLOW
    assert verdict(policy(statement(resource="photos/*") | {"Resource": "*"})) is ALLOW
