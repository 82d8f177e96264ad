"""Decisions of one policy: a table of cases."""

import pytest

from swift.identity.policy.evaluate import combine_verdicts, is_public
from test.support.policies import (
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
