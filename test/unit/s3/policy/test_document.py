"""Policy documents: everything is checked, and what is not understood is refused."""

import json

import pytest

from swift.s3.core.router import OPERATIONS
from swift.s3.policy.conditions import InvalidPolicy
from swift.s3.policy.document import (
    ACTIONS,
    POLICY_BYTES_MAX,
    Principals,
    action_of,
    actions_of,
    combine_verdicts,
    is_public,
    parse_policy,
)
from test.support.s3_fixtures import (
    ALLOW,
    ANN,
    BOB,
    DENY,
    EVE,
    KEY,
    NOBODY,
    SILENT,
    Known,
    policy,
    statement,
    verdict,
)


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


# --- which actions of policies a request needs --------------------------------------------------------


def test_every_operation_has_an_action_that_policies_may_name():
    for operation in OPERATIONS:
        for versioned in (False, True):
            assert action_of(operation, versioned=versioned).lower() in ACTIONS


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("HeadObject", "s3:GetObject"),
        ("CopyObject", "s3:PutObject"),
        ("CreateMultipartUpload", "s3:PutObject"),
        ("DeleteObjects", "s3:DeleteObject"),
        ("ListParts", "s3:ListMultipartUploadParts"),
        ("DeleteBucketLifecycle", "s3:PutLifecycleConfiguration"),
    ],
)
def test_operations_that_do_the_same_need_the_same(operation, action):
    assert action_of(operation) == action


def test_a_version_of_an_object_has_an_action_of_its_own():
    assert actions_of("GetObject", {"versionId": "1"}, {}) == ("s3:GetObjectVersion",)
    assert actions_of("DeleteObject", {"versionId": "1"}, {}) == ("s3:DeleteObjectVersion",)
    assert actions_of("PutObject", {"versionId": "1"}, {}) == ("s3:PutObject",)


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({"x-amz-acl": "private"}, "s3:PutObjectAcl"),
        ({"x-amz-grant-read": "id=a"}, "s3:PutObjectAcl"),
        ({"x-amz-tagging": "a=b"}, "s3:PutObjectTagging"),
        ({"x-amz-object-lock-mode": "COMPLIANCE"}, "s3:PutObjectRetention"),
        ({"x-amz-object-lock-legal-hold": "ON"}, "s3:PutObjectLegalHold"),
    ],
)
def test_what_is_set_beside_the_bytes_needs_its_own_permission(headers, more):
    assert actions_of("PutObject", {}, headers) == ("s3:PutObject", more)
    assert actions_of("UploadPart", {}, headers) == ("s3:PutObject",), "a part sets nothing"


@pytest.mark.parametrize("said", ["true", "True"])
def test_passing_governance_by_is_asked_for(said):
    found = actions_of("DeleteObject", {}, {"x-amz-bypass-governance-retention": said})
    assert found == ("s3:DeleteObject", "s3:BypassGovernanceRetention")
    assert actions_of("DeleteObject", {}, {"x-amz-bypass-governance-retention": "false"}) == found[:1]


def test_attributes_are_no_way_around_the_permission_to_read():
    found = actions_of("GetObjectAttributes", {"versionId": "1"}, {})
    assert found == ("s3:GetObjectVersionAttributes", "s3:GetObjectVersion")


@pytest.mark.parametrize(
    "operation", ["GetObjectAcl", "PutObjectAcl", "GetObjectTagging", "DeleteObjectTagging"]
)
def test_versions_are_named_as_amazon_names_them(operation):
    expected = "s3:" + operation.replace("Object", "ObjectVersion")
    assert action_of(operation, versioned=True) == expected


# --- what policies decide: a table of cases -----------------------------------------------------------


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


def test_a_denial_wins_wherever_it_stands():
    yes, no = statement(), statement("Deny", {"AWS": "acme:bob"})
    for order in ((yes, no), (no, yes), (yes, no, yes)):
        assert verdict(policy(*order)) is DENY
        assert verdict(policy(*order), ANN) is ALLOW
    assert verdict(policy(no), ANN) is SILENT


def test_several_actions_must_all_be_allowed():
    assert combine_verdicts([ALLOW, ALLOW]) is ALLOW
    assert combine_verdicts([ALLOW, SILENT]) is SILENT
    assert combine_verdicts([ALLOW, DENY, SILENT]) is DENY
    assert combine_verdicts([]) is SILENT


# --- under which conditions -----------------------------------------------------------------------------


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
