"""Rights of a caller: its policies, those of buckets and roles, boundaries, owners and operators."""

import json

import pytest

from swift.identity.policy.document import (
    parse_identity_policy,
    parse_policy,
    parse_session_policy,
    parse_trust_policy,
)
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.policy.predefined import PREDEFINED, limits_policy
from swift.identity.policy.principals import session_principal, user_principal
from swift.identity.rights import AccessRequest, NamedPolicy, Rights, decide_web_identity
from test.support.policies import Known

ALLOW, DENY, SILENT = PolicyVerdict.ALLOW, PolicyVerdict.DENY, PolicyVerdict.SILENT
OWN, OTHER = "AUTH_acme", "AUTH_other"


def document(*statements):
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def identity(effect="Allow", action="s3:GetObject", resource="arn:aws:s3:::photos/*", **more):
    found = {"Effect": effect, "Action": action, "Resource": resource, **more}
    return NamedPolicy("mine", parse_identity_policy(document(found)))


def bucket(effect="Allow", principal="*", action="s3:GetObject", **more):
    found = {"Effect": effect, "Action": action, "Resource": "arn:aws:s3:::photos/*", **more}
    if "NotPrincipal" not in more:
        found["Principal"] = principal
    return parse_policy(document(found), "photos")


def ann(*policies, boundaries=(), groups=("staff",), **more):
    values = {
        "aws:username": "ann",
        "aws:userid": "acme:ann",
        "aws:principaltype": "User",
        "aws:principalarn": "arn:aws:iam::acme:user/ann",
        "aws:principalaccount": OWN,
    }
    principal = user_principal("acme", "ann", OWN, groups)
    return Rights(principal, OWN, policies=policies, boundaries=boundaries, condition_values=values, **more)


def session(*policies, boundaries=(), **more):
    principal = session_principal("acme", "reader", "job7", OWN)
    return Rights(principal, OWN, policies=policies, boundaries=boundaries, **more)


def read(key="a", account=OWN, *, actions=("s3:GetObject",), context=None, bucket_name="photos"):
    return AccessRequest(actions, account, context or Known(), bucket_name, key)


def verdict(rights, request=None, policy=None):
    return rights.decide(request or read(), policy).verdict


# --- the own account ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rights", "policy", "expected"),
    [
        (ann(), None, SILENT),
        (ann(identity()), None, ALLOW),
        (ann(identity(resource="arn:aws:s3:::films/*")), None, SILENT),
        (ann(), bucket(), ALLOW),
        (ann(), bucket(principal={"AWS": "acme:ann"}), ALLOW),
        (ann(), bucket(principal={"AWS": "arn:aws:iam::acme:group/staff"}), ALLOW),
        (ann(), bucket(principal={"AWS": "arn:aws:iam::acme:group/other"}), SILENT),
        # The account alone leaves it to the caller's policies.
        (ann(), bucket(principal={"AWS": "arn:aws:iam::acme:root"}), SILENT),
        (ann(identity()), bucket(principal={"AWS": "arn:aws:iam::acme:root"}), ALLOW),
        (ann(identity("Deny")), bucket(), DENY),
        (ann(identity()), bucket("Deny"), DENY),
        (ann(identity(), identity("Deny")), None, DENY),
        (ann(is_owner=True), None, ALLOW),
        (ann(is_owner=True), bucket("Deny"), DENY),
        (ann(is_owner=True), bucket("Deny", {"AWS": "arn:aws:iam::acme:root"}), DENY),
        (ann(identity("Deny"), is_owner=True), None, DENY),
        (ann(is_operator=True), None, ALLOW),
        (ann(is_operator=True), bucket("Deny"), DENY),
        (session(), bucket(principal={"AWS": "arn:aws:iam::acme:role/reader"}), ALLOW),
        (session(), bucket(principal={"AWS": "arn:aws:iam::acme:role/path/reader"}), ALLOW),
        (session(), bucket(principal={"AWS": "arn:aws:sts::acme:assumed-role/reader/job7"}), ALLOW),
        (session(), bucket(principal={"AWS": "arn:aws:sts::acme:assumed-role/reader/job8"}), SILENT),
        (session(), bucket(principal={"AWS": "acme:ann"}), SILENT),
    ],
)
def test_in_the_own_account_one_side_is_enough(rights, policy, expected):
    assert verdict(rights, policy=policy) is expected


@pytest.mark.parametrize(
    ("rights", "policy", "expected"),
    [
        (ann(), bucket(), SILENT),
        (ann(identity(resource="arn:aws:s3:::AUTH_other:photos/*")), None, SILENT),
        (ann(identity(resource="arn:aws:s3:::AUTH_other:photos/*")), bucket(), ALLOW),
        (ann(identity(resource="arn:aws:s3:::AUTH_third:photos/*")), bucket(), SILENT),
        (ann(identity(resource="arn:aws:s3:::photos/*")), bucket(), SILENT),
        (ann(identity(resource="arn:aws:s3:::*")), bucket(), ALLOW),
        (ann(identity(resource="arn:aws:s3:::*:photos/*")), bucket(), ALLOW),
        (ann(identity(resource="*")), bucket(principal={"AWS": "arn:aws:iam::acme:root"}), ALLOW),
        (ann(identity(resource="*")), bucket(principal={"AWS": "arn:aws:iam::third:root"}), SILENT),
        (ann(is_owner=True), bucket(principal={"AWS": "acme:ann"}), ALLOW),
        (ann(is_owner=True), None, SILENT),
        (ann(identity("Deny", resource="*"), is_owner=True), bucket(), DENY),
        (ann(is_operator=True), None, ALLOW),
    ],
)
def test_in_another_account_both_sides_must_allow(rights, policy, expected):
    assert verdict(rights, read(account=OTHER), policy) is expected


def test_a_bucket_of_the_own_account_is_not_one_of_another_that_has_its_name():
    """A container may be called AUTH_other:photos."""
    rights = ann(identity(resource="arn:aws:s3:::AUTH_other:photos/*"))
    assert verdict(rights, read(bucket_name="AUTH_other:photos")) is SILENT
    rights = ann(identity(resource="arn:aws:s3:::A*"))
    assert verdict(rights, read(bucket_name="AUTH_other:photos")) is ALLOW
    assert verdict(rights) is SILENT


# --- boundaries ---------------------------------------------------------------------------------------

ALL = identity(action="*", resource="*")


@pytest.mark.parametrize("standing", [{}, {"is_owner": True}, {"is_operator": True}])
def test_every_boundary_must_allow_whoever_asks(standing):
    inside, outside = identity(), identity(resource="arn:aws:s3:::films/*")
    assert verdict(ann(ALL, boundaries=(inside,), **standing)) is ALLOW
    assert verdict(ann(ALL, boundaries=(outside,), **standing)) is DENY
    assert verdict(ann(ALL, boundaries=(inside, outside), **standing)) is DENY
    assert verdict(ann(ALL, boundaries=(ALL, identity("Deny")), **standing)) is DENY
    # Not even the bucket's policy, or an ACL after a silent verdict, passes it by.
    assert (
        verdict(ann(boundaries=(outside,), **standing), policy=bucket(principal={"AWS": "acme:ann"})) is DENY
    )


def test_a_boundary_grants_nothing():
    assert verdict(ann(boundaries=(ALL,))) is SILENT
    assert verdict(session(boundaries=(ALL,))) is SILENT


def test_a_session_policy_has_two_kibibytes():
    text = document({"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::" + "x" * 2048})
    parse_identity_policy(text)
    with pytest.raises(ValueError, match="2048 bytes"):
        parse_session_policy(text)


# --- several actions ----------------------------------------------------------------------------------


def test_all_actions_must_be_allowed_each_by_its_own_policy():
    both = read(actions=("s3:PutObject", "s3:PutObjectAcl"))
    assert verdict(ann(identity(action="s3:PutObject")), both) is SILENT
    parts = ann(identity(action="s3:PutObject"), identity(action="s3:PutObjectAcl"))
    assert verdict(parts, both) is ALLOW
    assert verdict(ann(identity(action="s3:PutObject")), both, bucket(action="s3:PutObjectAcl")) is ALLOW
    assert verdict(ann(ALL, identity("Deny", "s3:PutObjectAcl")), both) is DENY


def test_nothing_is_asked_of_a_request_that_no_policy_is_about():
    context = Known()
    assert verdict(ann(is_owner=True), read(context=context)) is ALLOW
    assert verdict(ann(), read(context=context)) is SILENT
    assert context.asked == []
    assert not ann().has_policies and ann(ALL).has_policies and ann(boundaries=(ALL,)).has_policies


# --- values of the caller -----------------------------------------------------------------------------


def test_variables_of_the_caller_come_from_its_rights():
    home = ann(identity(resource="arn:aws:s3:::home/${aws:username}/*"))
    assert verdict(home, read("ann/x", bucket_name="home")) is ALLOW
    assert verdict(home, read("bob/x", bucket_name="home", context=Known(aws__username="bob"))) is SILENT
    only = ann(identity(Condition={"StringEquals": {"aws:PrincipalArn": "arn:aws:iam::acme:user/ann"}}))
    assert verdict(only) is ALLOW
    fresh = ann(identity(Condition={"DateGreaterThan": {"aws:TokenIssueTime": "2026-01-01T00:00:00Z"}}))
    assert verdict(fresh, read(context=Known(aws__tokenissuetime="2026-02-01T00:00:00Z"))) is SILENT


def test_a_session_has_no_user_name():
    policy = identity(resource="arn:aws:s3:::photos/${aws:username}*")
    assert verdict(session(policy), read("", context=Known(aws__username="a"))) is SILENT


# --- NotPrincipal -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spared", "rights", "expected"),
    [
        (["acme:ann"], ann(ALL), DENY),
        (["arn:aws:iam::acme:root"], ann(ALL), DENY),
        (["acme:ann", "arn:aws:iam::acme:root"], ann(ALL), ALLOW),
        (["arn:aws:iam::acme:group/staff", "arn:aws:iam::acme:root"], ann(ALL), ALLOW),
        (["arn:aws:iam::acme:role/reader", "arn:aws:iam::acme:root"], session(ALL), DENY),
        (
            [
                "arn:aws:iam::acme:role/reader",
                "arn:aws:sts::acme:assumed-role/reader/job7",
                "arn:aws:iam::acme:root",
            ],
            session(ALL),
            ALLOW,
        ),
    ],
)
def test_a_denial_spares_who_is_named_with_its_account(spared, rights, expected):
    policy = bucket("Deny", NotPrincipal={"AWS": spared})
    assert verdict(rights, policy=policy) is expected


def test_an_allowance_leaves_out_who_is_named_in_any_way():
    for named in ("acme:ann", "arn:aws:iam::acme:root", "arn:aws:iam::acme:group/staff"):
        assert verdict(ann(), policy=bucket(NotPrincipal={"AWS": named})) is SILENT
    assert verdict(ann(), policy=bucket(NotPrincipal={"AWS": "acme:bob"})) is ALLOW


# --- roles --------------------------------------------------------------------------------------------

ROLE = AccessRequest(("sts:AssumeRole",), OWN, Known(), arn="arn:aws:iam::acme:role/reader")


def trust(effect="Allow", principal="*", action="sts:AssumeRole", **more):
    return parse_trust_policy(document({"Effect": effect, "Principal": principal, "Action": action, **more}))


MAY_ASSUME = identity(action="sts:AssumeRole", resource="arn:aws:iam::acme:role/*")


@pytest.mark.parametrize(
    ("rights", "policy", "expected"),
    [
        (ann(), trust(principal={"AWS": "acme:ann"}), ALLOW),
        (ann(), trust(principal={"AWS": "arn:aws:iam::acme:root"}), SILENT),
        (ann(MAY_ASSUME), trust(principal={"AWS": "arn:aws:iam::acme:root"}), ALLOW),
        (ann(is_owner=True), trust(principal={"AWS": "arn:aws:iam::acme:root"}), ALLOW),
        (ann(MAY_ASSUME), trust(principal={"AWS": "acme:bob"}), SILENT),
        (ann(is_owner=True), trust(principal={"AWS": "acme:bob"}), SILENT),
        (ann(is_operator=True), trust(principal={"AWS": "acme:bob"}), SILENT),
        (ann(is_owner=True), trust("Deny"), DENY),
        (ann(identity("Deny", "*", "*")), trust(principal={"AWS": "acme:ann"}), DENY),
        (ann(boundaries=(identity(),)), trust(principal={"AWS": "acme:ann"}), DENY),
        (ann(), trust(principal={"Federated": "corp"}, action="sts:AssumeRoleWithWebIdentity"), SILENT),
        # A chain of roles.
        (session(), trust(principal={"AWS": "arn:aws:iam::acme:role/reader"}), ALLOW),
    ],
)
def test_a_role_is_assumed_by_those_it_trusts(rights, policy, expected):
    assert rights.decide_assumption(ROLE, policy).verdict is expected


def test_a_role_of_another_account_needs_both_sides():
    role = AccessRequest(("sts:AssumeRole",), OTHER, Known(), arn="arn:aws:iam::other:role/x")
    policy = trust(principal={"AWS": "acme:ann"})
    assert ann().decide_assumption(role, policy).verdict is SILENT
    assert ann(MAY_ASSUME).decide_assumption(role, policy).verdict is SILENT
    assert ann(identity(action="sts:*", resource="*")).decide_assumption(role, policy).verdict is ALLOW


@pytest.mark.parametrize(
    ("principal", "claims", "expected"),
    [
        ({"Federated": "corp"}, {}, ALLOW),
        ({"Federated": "arn:aws:iam::acme:oidc-provider/corp"}, {}, ALLOW),
        ({"Federated": "other"}, {}, SILENT),
        # All people of the world are not meant.
        ("*", {}, SILENT),
        ({"Federated": "corp"}, {"id.example.com/r/x:sub": ["repo:a/b:ref:main"]}, ALLOW),
    ],
)
def test_a_web_identity_is_trusted_by_its_provider(principal, claims, expected):
    policy = trust(principal=principal, action="sts:AssumeRoleWithWebIdentity")
    assert decide_web_identity(policy, "corp", Known().with_(claims)) is expected


def test_claims_are_conditions_of_trust():
    condition = {
        "StringLike": {"ID.example.com/r/x:sub": "repo:a/*"},
        "ForAnyValue:StringEquals": {"id.example.com/r/x:amr": ["mfa"]},
    }
    policy = trust(
        principal={"Federated": "corp"}, action="sts:AssumeRoleWithWebIdentity", Condition=condition
    )
    good = {"id.example.com/r/x:sub": "repo:a/b", "id.example.com/r/x:amr": ["pwd", "mfa"]}
    assert decide_web_identity(policy, "corp", Known().with_(good)) is ALLOW
    for name in good:
        assert decide_web_identity(policy, "corp", Known().with_({**good, name: "x"})) is SILENT
    denied = trust("Deny", "*", "sts:*")
    assert decide_web_identity(denied, "corp", Known()) is DENY


# --- explanations -------------------------------------------------------------------------------------


def test_an_explanation_names_the_statements():
    def reasons(rights, policy=None):
        return [str(reason) for reason in rights.explain(read(), policy).reasons]

    assert reasons(ann(identity(Sid="Read"))) == ["s3:GetObject: allow by mine Read"]
    assert reasons(ann(), bucket("Deny")) == ["s3:GetObject: deny by bucket policy Statement[0]"]
    assert reasons(ann(is_owner=True)) == ["s3:GetObject: allow by owner"]
    assert reasons(ann(is_operator=True)) == ["s3:GetObject: allow by operator"]
    limit = NamedPolicy("limits of the key", limits_policy(containers=["films"]))
    assert reasons(ann(ALL, boundaries=(limit,))) == [
        "s3:GetObject: allow by mine Statement[0]",
        "s3:GetObject: deny by limits of the key",
    ]
    assert reasons(ann()) == []
    for rights in (ann(), ann(ALL), ann(identity("Deny")), ann(is_owner=True)):
        for policy in (None, bucket(), bucket("Deny")):
            assert rights.explain(read(), policy).verdict is rights.decide(read(), policy).verdict


# --- policies by name and limits of keys --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("admin", {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "iam:CreateUser", "swift:PutAccount"}),
        ("readwrite", {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}),
        ("readonly", {"s3:GetObject", "s3:ListBucket"}),
        ("writeonly", {"s3:PutObject"}),
    ],
)
def test_policies_by_name_do_what_they_say(name, allowed):
    rights = ann(NamedPolicy(name, PREDEFINED[name]))
    everything = {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "iam:CreateUser", "swift:PutAccount"}
    assert {a for a in everything if verdict(rights, read(actions=(a,))) is ALLOW} == allowed


@pytest.mark.parametrize(
    ("limits", "request_", "expected"),
    [
        ({"read_only": True}, read(), ALLOW),
        ({"read_only": True}, read(actions=("s3:PutObject",)), DENY),
        ({"read_only": True}, read(actions=("sts:AssumeRole",)), DENY),
        # The keys of temporary URLs are among these headers.
        ({"read_only": True}, read(actions=("swift:GetOwnerHeaders",)), DENY),
        ({"containers": ["photos"]}, read(), ALLOW),
        ({"containers": ["photos"]}, read(""), ALLOW),
        ({"containers": ["photos"]}, read(bucket_name="photos2"), DENY),
        ({"containers": ["pho*"]}, read(), DENY),
        ({"containers": ["photos"]}, read(account=OTHER), DENY),
        ({"containers": ["AUTH_other:photos"]}, read(account=OTHER), SILENT),
        ({"containers": ["photos"], "prefix": "a/"}, read("a/b"), ALLOW),
        ({"containers": ["photos"], "prefix": "a/"}, read("b/a/b"), DENY),
        ({"containers": ["photos"], "prefix": "a/"}, read("a/b", actions=("s3:DeleteObject",)), ALLOW),
        ({"containers": ["photos"], "prefix": "a/"}, read("", actions=("s3:PutBucketPolicy",)), DENY),
        ({"containers": ["photos"], "prefix": "a/"}, read("", actions=("s3:ListBucket",)), DENY),
        (
            {"containers": ["photos"], "prefix": "a/"},
            read("", actions=("s3:ListBucket",), context=Known(s3__prefix="a/x")),
            ALLOW,
        ),
        ({"containers": ["p"], "prefix": "a*/"}, read("axx/b", bucket_name="p"), DENY),
        ({"networks": ["10.0.0.0/8"]}, read(context=Known(aws__sourceip="10.1.2.3")), ALLOW),
        ({"networks": ["10.0.0.0/8"]}, read(context=Known(aws__sourceip="11.1.2.3")), DENY),
        ({"networks": ["10.0.0.0/8"]}, read(), DENY),
    ],
)
def test_limits_of_a_key_are_a_boundary(limits, request_, expected):
    rights = ann(is_owner=True, boundaries=(NamedPolicy("limits", limits_policy(**limits)),))
    assert verdict(rights, request_) is expected


@pytest.mark.parametrize("limits", [{"networks": ["10.0.0.0/99"]}, {"prefix": "a"}, {"containers": ["a/b"]}])
def test_limits_that_limit_nothing_certain_are_refused(limits):
    with pytest.raises(ValueError):
        limits_policy(**limits)


def test_a_key_without_limits_has_no_boundary():
    assert limits_policy() is None
