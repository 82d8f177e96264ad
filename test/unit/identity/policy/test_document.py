"""Policy documents: everything is checked, and what is not understood is refused."""

import json

import pytest

from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import POLICY_BYTES_MAX, parse_policy
from swift.identity.policy.principals import Principals
from test.support.policies import ALLOW, SILENT, Known, policy, statement, verdict


@pytest.mark.parametrize(
    ("principal", "wanted"),
    [
        ("*", Principals(includes_all=True)),
        ({"AWS": ["*", "acme:ann"]}, Principals(includes_all=True, users=frozenset(["acme:ann"]))),
        ({"AWS": "arn:aws:iam::acme:user/a/b"}, Principals(users=frozenset(["acme:b"]))),
        ({"AWS": "arn:aws:iam::acme:root"}, Principals(accounts=frozenset(["acme"]))),
        ({"AWS": "key"}, Principals(users=frozenset(["key"]), accounts=frozenset(["key"]))),
        ({"CanonicalUser": "acme:ann"}, Principals(users=frozenset(["acme:ann"]))),
        ({"Service": "a", "Federated": ["b", "*"]}, Principals()),
    ],
)
def test_a_principal_is_users_and_accounts(principal, wanted):
    [found] = policy(statement(principal=principal)).statements
    assert found.principals == wanted


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


def test_a_policy_is_as_large_as_it_may_be():
    def sized(size):
        text = json.dumps({"Statement": statement(), "Id": ""})
        return text.replace('"Id": "', '"Id": "' + "x" * (size - len(text))).encode()

    assert len(sized(POLICY_BYTES_MAX)) == POLICY_BYTES_MAX
    parse_policy(sized(POLICY_BYTES_MAX), "photos")
    with pytest.raises(InvalidPolicy, match="20480 bytes"):
        parse_policy(sized(POLICY_BYTES_MAX + 1), "photos")


def test_variables_are_text_in_old_policies():
    found = policy(statement(resource="photos/${aws:username}"), version="2008-10-17")
    assert verdict(found, key="bob", facts=Known(aws__username="bob")) is SILENT
    assert verdict(found, key="${aws:username}") is ALLOW


def test_variables_in_conditions_are_text_in_old_policies():
    condition = {"StringLike": {"s3:prefix": "${aws:username}*"}}
    old = policy(statement(Condition=condition), version="2008-10-17")
    assert verdict(old, facts=Known(aws__username="bob", s3__prefix="bobby")) is SILENT
    assert verdict(old, facts=Known(aws__username="bob", s3__prefix="${aws:username}/x")) is ALLOW


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
    bad(Principal={"AWS": "arn:aws:iam::acme:policy/x"}),
    bad(Principal={"AWS": "arn:aws:iam::acme:role/*"}),
    bad(Principal={"AWS": "arn:aws:sts::acme:assumed-role/x"}),
    bad(Principal={"AWS": "arn:aws:sts::acme:role/x"}),
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
    with pytest.raises(InvalidPolicy):
        parse_policy(text, "photos")


def test_bytes_that_are_no_text_are_no_policy():
    for body in (b"\xff\xfe", b"{\x00}", b'{"Id": "\xff"}'):
        with pytest.raises(InvalidPolicy):
            parse_policy(body, "photos")


def test_everything_that_may_be_left_out_may_be():
    assert verdict(parse_policy(json.dumps({"Statement": statement()}), "photos")) is ALLOW
    assert verdict(policy(statement(resource="photos/*") | {"Resource": "*"})) is ALLOW


@pytest.mark.parametrize(
    "text",
    [
        '{"\\ud800": 1}',
        '{"Statement": [{"Effect": "\\ud800"}]}',
        '{"Statement": {"Effect": ' + "[" * 9000 + "]" * 9000 + "}}",
    ],
    ids=["name", "effect", "deep"],
)
def test_the_reason_can_always_be_told(text):
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text.encode(), "photos")
    assert len(str(caught.value)) < 200
