"""Random policies and requests are decided as an independent evaluator decides them.

``SWIFT_POLICY_CASES=100000`` tries more of them, ``SWIFT_POLICY_SEED`` others.
"""

import json
import os
import random
from collections import Counter

import pytest

from swift.identity.policy.document import parse_identity_policy, parse_policy, parse_trust_policy
from swift.identity.policy.principals import session_principal, user_principal
from swift.identity.rights import AccessRequest, NamedPolicy, Rights, decide_web_identity
from test.support import reference_policies

CASES = int(os.environ.get("SWIFT_POLICY_CASES", 10_000))
SEED = int(os.environ.get("SWIFT_POLICY_SEED", 0))
#: Of 2,500 cases, a few seconds each.
PARTS = max(1, CASES // 2500)

# --- what is drawn ------------------------------------------------------------------------------------

ACTIONS = ["s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject", "swift:PutContainerMetadata"]
ACTION_PATTERNS = {
    "identity": [
        *ACTIONS,
        "*",
        "s3:*",
        "s3:Get*",
        "S3:putobject",
        "s3:?etObject",
        "swift:*",
        "iam:*",
        "sts:*",
    ],
    "bucket": [*ACTIONS[:4], "*", "s3:*", "s3:*Object", "S3:GETOBJECT", "s3:List*", "s3:?etObject"],
    "trust": ["sts:AssumeRole", "sts:*", "*", "sts:AssumeRoleWithWebIdentity", "STS:assumerole"],
}
BUCKETS, KEYS = ["photos", "films"], ["", "a", "a/b", "ann/x", "b*", "${aws:username}/x"]
TENANTS = ["acme", "other"]
RESOURCES = [
    *("arn:aws:s3:::photos", "arn:aws:s3:::photos/*", "arn:aws:s3:::photos*", "arn:aws:s3:::*", "*"),
    *("arn:aws:s3:::*/*", "arn:aws:s3:::photos/${aws:username}/*", "arn:aws:s3:::photos/a?b"),
    *("arn:aws:s3:::photos/b${*}", "arn:aws:s3:::films/*", "arn:aws:s3:::AUTH_other:photos/*"),
    *("arn:aws:s3:::AUTH_acme:photos/a*", "arn:aws:s3:::*:photos*", "arn:aws:s3:::f*s/*"),
    *(
        "arn:aws:iam::acme:role/*",
        "arn:aws:iam::*:role/reader",
        "arn:aws:iam::${aws:PrincipalAccount}:role/*",
    ),
    *("arn:aws:s3:::p*/${s3:prefix}*", "arn:aws:s3:::photos/${aws:userid}"),
]
BUCKET_RESOURCES = [one for one in RESOURCES if one.startswith(("arn:aws:s3:::photos", "arn:aws:s3:::p"))]
BUCKET_RESOURCES += ["*", "arn:aws:s3:::*", "arn:aws:s3:::*/*"]
PRINCIPALS = [
    *("acme:ann", "other:ann", "arn:aws:iam::acme:user/ann", "arn:aws:iam::acme:user/bob"),
    *("arn:aws:iam::acme:group/staff", "arn:aws:iam::other:group/staff", "arn:aws:iam::acme:root"),
    *("arn:aws:iam::other:root", "AUTH_acme", "acme", "arn:aws:iam::acme:role/reader", "*"),
    *("arn:aws:sts::acme:assumed-role/reader/job7", "arn:aws:sts::acme:assumed-role/reader/job8"),
]
TEXTS = ["", "a", "A", "a/", "a*", "ann", "b?", "${aws:username}", "home/${aws:username}/*", "${*}", "*"]
SAID = ["", "a", "A", "a/b", "ann", "b", "*", "home/ann/x", "${aws:username}"]
CONDITIONS = {
    ("String", "s3:prefix"): (TEXTS, SAID),
    ("String", "aws:username"): (["ann", "a*", "bob"], None),
    ("String", "s3:ExistingObjectTag/Team"): (["red", "r*", "blue"], ["red", "blue"]),
    ("String", "aws:PrincipalType"): (["User", "AssumedRole", "*"], None),
    ("Numeric", "s3:max-keys"): (["1", "10", "10.0", "-1", 5], ["1", "10", "11", "few"]),
    ("Date", "aws:CurrentTime"): (
        ["2026-01-01", "2026-06-01T00:00:00Z", "1767225600"],
        ["2026-01-01T00:00:00Z", "2026-03-01T12:00:00Z"],
    ),
    ("Bool", "aws:SecureTransport"): (["true", "false", True, False], ["true", "false"]),
    ("IpAddress", "aws:SourceIp"): (
        ["10.0.0.0/8", "10.1.2.3", "2001:db8::/32", "::ffff:10.0.0.0/104", "0.0.0.0/0"],
        ["10.1.2.3", "11.0.0.1", "2001:db8::5", "::ffff:10.0.0.1"],
    ),
    ("Arn", "aws:PrincipalArn"): (
        ["arn:aws:iam::acme:user/*", "arn:aws:iam::*:user/ann", "arn:aws:*::acme:*"],
        None,
    ),
    ("Many", "s3:RequestObjectTagKeys"): (["a", "b", "c*"], [["a"], ["a", "b"], ["c1", "x"], ["x"]]),
}
OPERATORS = {
    "String": ["StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringLike", "StringNotLike"],
    "Numeric": [f"Numeric{how}" for how in ("NotEquals", *reference_policies.COMPARISONS)],
    "Date": [f"Date{how}" for how in ("NotEquals", *reference_policies.COMPARISONS)],
    "Bool": ["Bool"],
    "IpAddress": ["IpAddress", "NotIpAddress"],
    "Arn": ["ArnEquals", "ArnLike", "ArnNotLike", "ArnNotEquals"],
    "Many": [
        f"{quantifier}:{one}"
        for quantifier in ("ForAllValues", "ForAnyValue")
        for one in ("StringEquals", "StringLike", "StringNotLike", "StringNotEquals")
    ],
}
CLAIM = "id.example.com/r/X:sub"


class Draw:
    """One random case after the other."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def some(self, choices, most=3):
        found = [self.random.choice(choices) for _ in range(self.random.randint(1, most))]
        return found[0] if len(found) == 1 and self.chance(0.5) else found

    def condition(self, kind):
        found = {}
        for _ in range(self.random.randint(1, 2)):
            if kind == "trust" and self.chance(0.5):
                operator, key, wanted = "StringLike", CLAIM, self.some(["a", "repo:*", "*"])
            else:
                group, key = self.random.choice(
                    [pair for pair in CONDITIONS if kind != "trust" or pair[1].startswith("aws:")]
                )
                operator = self.random.choice(OPERATORS[group])
                wanted = self.some(CONDITIONS[group, key][0])
            if self.chance(0.15):
                operator += "IfExists"
            if self.chance(0.08):
                operator, wanted = "Null", self.random.choice(["true", "false", True])
            found.setdefault(operator, {})[key] = wanted
        return found

    def statement(self, kind, denials):
        effect = "Deny" if self.chance(denials) else "Allow"
        found = {"Effect": effect}
        if self.chance(0.12):
            found["NotAction"] = self.some(ACTION_PATTERNS[kind])
        else:
            found["Action"] = self.some(ACTION_PATTERNS[kind])
        if kind != "trust":
            resources = RESOURCES if kind == "identity" else BUCKET_RESOURCES
            found["NotResource" if self.chance(0.12) else "Resource"] = self.some(resources)
        if kind != "identity":
            refused = kind == "trust" and effect == "Allow"
            element = "NotPrincipal" if self.chance(0.2) and not refused else "Principal"
            found[element] = self.principals(kind)
        if self.chance(0.35):
            found["Condition"] = self.condition(kind)
        return found

    def principals(self, kind):
        if self.chance(0.15):
            return "*"
        if kind == "trust" and self.chance(0.4):
            return {"Federated": self.some(["corp", "arn:aws:iam::acme:oidc-provider/corp", "else"])}
        return {"AWS": self.some(PRINCIPALS, 4)}

    def document(self, kind, denials=0.25):
        statements = [self.statement(kind, denials) for _ in range(self.random.randint(1, 3))]
        return {"Version": "2008-10-17" if self.chance(0.1) else "2012-10-17", "Statement": statements}

    def caller(self, *, web):
        tenant = self.random.choice(["acme", "acme", "acme", "other"])
        caller = {"tenant": tenant, "account": f"AUTH_{tenant}", "user": "", "role": "", "session": ""}
        caller.update(groups=[], provider="", owner=self.chance(0.15), operator=self.chance(0.05))
        if web:
            caller.update(provider="corp", owner=False, operator=False)
            caller["values"] = {}
            return caller
        values = {"aws:principalaccount": [tenant]}
        if self.chance(0.3):
            caller.update(role="reader", session=self.random.choice(["job7", "job8"]))
            arn = f"arn:aws:sts::{tenant}:assumed-role/reader/{caller['session']}"
            values.update({"aws:principaltype": ["AssumedRole"], "aws:principalarn": [arn]})
        else:
            name = self.random.choice(["ann", "bob"])
            caller.update(user=name, groups=["staff"] if self.chance(0.5) else [])
            arn = f"arn:aws:iam::{tenant}:user/{name}"
            values.update({"aws:principaltype": ["User"], "aws:principalarn": [arn]})
            values.update({"aws:username": [name], "aws:userid": [f"{tenant}:{name}"]})
        caller["values"] = values
        return caller

    def values(self):
        found = {}
        for (_, key), (_, said) in CONDITIONS.items():
            if said and self.chance(0.7):
                value = self.random.choice(said)
                found[reference_policies.lookup_name(key)] = value if isinstance(value, list) else [value]
        if self.chance(0.5):
            found[CLAIM] = [self.random.choice(["a", "repo:x"])]
        return found

    def case(self):
        kind = "trust" if self.chance(0.2) else "bucket"
        web = kind == "trust" and self.chance(0.4)
        request = {
            "account": f"AUTH_{self.random.choice(TENANTS)}",
            "bucket": "",
            "key": "",
            "arn": "",
            "values": self.values(),
        }
        if kind == "trust":
            request["arn"] = "arn:aws:iam::acme:role/reader"
            request["actions"] = ["sts:AssumeRoleWithWebIdentity" if web else "sts:AssumeRole"]
        elif self.chance(0.1):
            request.update(arn="arn:aws:iam::acme:role/reader", actions=["iam:GetRole"])
        else:
            request.update(bucket=self.random.choice(BUCKETS), key=self.random.choice(KEYS))
            request["actions"] = self.random.sample(ACTIONS, self.random.choice([1, 1, 1, 2]))
        of_bucket = kind == "bucket" and (request["arn"] or request["bucket"] != "photos" or self.chance(0.3))
        return {
            "kind": kind,
            "caller": self.caller(web=web),
            "request": request,
            "policies": [] if web else [self.document("identity") for _ in range(self.random.randint(0, 2))],
            "boundaries": [] if web or self.chance(0.7) else [self.document("identity", 0.15)],
            "resource_policy": None if of_bucket else self.document(kind),
        }


# --- how it is decided --------------------------------------------------------------------------------


class Values:
    def __init__(self, found):
        self.found = found

    def values(self, key):
        return self.found.get(key)


def named(documents):
    return tuple(NamedPolicy("p", parse_identity_policy(json.dumps(document))) for document in documents)


def decided(case):
    """Return our verdict."""
    caller, request = case["caller"], case["request"]
    context, text = Values(request["values"]), json.dumps(case["resource_policy"])
    if caller["provider"]:
        return decide_web_identity(parse_trust_policy(text), caller["provider"], context).value
    tenant, account = caller["tenant"], caller["account"]
    if caller["session"]:
        principal = session_principal(tenant, caller["role"], caller["session"], account)
    else:
        principal = user_principal(tenant, caller["user"], account, caller["groups"])
    rights = Rights(
        principal,
        account,
        is_owner=caller["owner"],
        is_operator=caller["operator"],
        policies=named(case["policies"]),
        boundaries=named(case["boundaries"]),
        condition_values={key: value for key, [value] in caller["values"].items()},
    )
    asked = AccessRequest(
        tuple(request["actions"]),
        request["account"],
        context,
        request["bucket"],
        request["key"],
        arn=request["arn"],
    )
    if case["kind"] == "trust":
        return rights.decide_assumption(asked, parse_trust_policy(text)).verdict.value
    policy = parse_policy(text, "photos") if case["resource_policy"] else None
    verdict = rights.decide(asked, policy).verdict
    assert rights.explain(asked, policy).verdict is verdict
    return verdict.value


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_random_requests_are_decided_as_the_reference_decides_them(part):
    draw, seen = Draw(f"{SEED}/{part}"), Counter()
    for number in range(CASES // PARTS):
        case = draw.case()
        expected, found = reference_policies.decide(case), decided(case)
        assert found == expected, f"case {number} of part {part}: {json.dumps(case)}"
        seen[case["kind"], found] += 1
    for kind in ("bucket", "trust"):
        total = sum(count for (of, _), count in seen.items() if of == kind)
        for verdict in ("allow", "deny", "silent"):
            assert seen[kind, verdict] > total / 50, f"nearly no case of {kind} ends in {verdict}: {seen}"
