"""Documents of identities, sessions and trust: what they may say, and errors that name the place."""

import json

import pytest

from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import (
    IDENTITY_STATEMENTS_MAX,
    POLICY_BYTES_MAX,
    SESSION_BYTES_MAX,
    parse_identity_policy,
    parse_session_policy,
    parse_trust_policy,
)
from swift.identity.policy.principals import Principals

GOOD = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::photos/*"}
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "acme:ann"}}


def changed(statement, **change):
    return {name: value for name, value in {**statement, **change}.items() if value is not None}


def located(parse, document):
    text = document if isinstance(document, str) else json.dumps({"Version": "2012-10-17", **document})
    with pytest.raises(InvalidPolicy) as caught:
        parse(text)
    assert len(caught.value.located) < 400 and caught.value.located.isprintable()
    return caught.value.located


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"Action": "s3:NoSuchThing"}, "Statement[1].Action: Policy has invalid action: 's3:NoSuchThing'"),
        ({"Action": ["s3:*", "ec2:*"]}, "Statement[1].Action: Policy has invalid action: 'ec2:*'"),
        ({"Action": 5}, "Statement[1].Action: Action must be a string or a list of strings"),
        ({"Action": None}, "Statement[1].Action: Missing required field Action"),
        ({"NotAction": "s3:*"}, "Statement[1].Action: Action and NotAction exclude each other"),
        ({"Action": None, "NotAction": "s3:x"}, "Statement[1].NotAction: Policy has invalid action: 's3:x'"),
        ({"Resource": None}, "Statement[1].Resource: Missing required field Resource"),
        ({"Resource": "photos"}, "Statement[1].Resource: Policy has invalid resource: 'photos'"),
        (
            {"Resource": "arn:aws:s3:::"},
            "Statement[1].Resource: Policy has invalid resource: 'arn:aws:s3:::'",
        ),
        (
            {"Resource": "arn:aws:s3:::AUTH_*:photos"},
            "Statement[1].Resource: The account of a resource must be a name or *: "
            "'arn:aws:s3:::AUTH_*:photos'",
        ),
        (
            {"Resource": "arn:aws:s3:::${aws:username}:x/y"},
            "Statement[1].Resource: The account of a resource must be a name or *: "
            "'arn:aws:s3:::${aws:username}:x/y'",
        ),
        (
            {"Resource": "arn:aws:s3:::p/${aws:x}"},
            "Statement[1].Resource: Policy has an unknown variable: 'aws:x'",
        ),
        ({"Effect": "Maybe"}, "Statement[1].Effect: Invalid effect: Maybe"),
        ({"Principal": "*"}, "Statement[1]: Unknown field Principal"),
        ({"Sid": 5}, "Statement[1].Sid: Sid must be a string"),
        (
            {"Sid": "a\nb"},
            "Statement[1].Sid: Sid must be unique, printable and have at most 128 characters: 'a\\nb'",
        ),
        (
            {"Sid": "first"},
            "Statement[1].Sid: Sid must be unique, printable and have at most 128 characters: 'first'",
        ),
        ({"Condition": "x"}, "Statement[1].Condition: Condition must be an object"),
        (
            {"Condition": {"StringEquals": {"s3:nothing": "x"}}},
            "Statement[1].Condition.StringEquals: Policy has an invalid condition key: 's3:nothing'",
        ),
        (
            {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/99"}}},
            "Statement[1].Condition.IpAddress: Policy has an invalid IP address in a condition: "
            "'10.0.0.0/99'",
        ),
        (
            {"Condition": {"StringEquals": "x"}},
            "Statement[1].Condition.StringEquals: Condition must be an object of objects",
        ),
    ],
)
def test_an_error_names_the_element(change, place):
    document = {"Statement": [{**GOOD, "Sid": "first"}, changed(GOOD, **change)]}
    assert located(parse_identity_policy, document) == place


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"Action": "s3:GetObject"}, "Statement[0].Action: Policy has invalid action: 's3:GetObject'"),
        (
            {"Action": "sts:GetSessionToken"},
            "Statement[0].Action: Policy has invalid action: 'sts:GetSessionToken'",
        ),
        ({"Resource": "*"}, "Statement[0]: Unknown field Resource"),
        ({"Principal": None}, "Statement[0].Principal: Missing required field Principal"),
        ({"Principal": "acme:ann"}, "Statement[0].Principal: Invalid principal in policy: 'acme:ann'"),
        ({"Principal": {"AWS": "acme:*"}}, "Statement[0].Principal: Invalid principal in policy: 'acme:*'"),
        ({"Principal": {"Federated": "*"}}, "Statement[0].Principal: Invalid principal in policy: '*'"),
        (
            {"Principal": {"Federated": "arn:aws:iam::a:user/x"}},
            "Statement[0].Principal: Invalid principal in policy: 'arn:aws:iam::a:user/x'",
        ),
        (
            {"Principal": None, "NotPrincipal": {"AWS": "acme:ann"}},
            "Statement[0].NotPrincipal: NotPrincipal needs the effect Deny",
        ),
        (
            {"Condition": {"StringEquals": {"s3:prefix": "x"}}},
            "Statement[0].Condition.StringEquals: Policy has an invalid condition key: 's3:prefix'",
        ),
        (
            {"Condition": {"StringEquals": {"aws:sub": "x"}}},
            "Statement[0].Condition.StringEquals: Policy has an invalid condition key: 'aws:sub'",
        ),
    ],
)
def test_an_error_of_trust_names_the_element(change, place):
    assert located(parse_trust_policy, {"Statement": [changed(TRUST, **change)]}) == place


@pytest.mark.parametrize(
    "key",
    [
        *(
            "accounts.google.com:aud",
            "token.actions.githubusercontent.com:sub",
            "id.example.com/realms/X:amr",
        ),
        *("localhost:8080/x:sub", "sts:ExternalId", "sts:RoleSessionName", "aws:SourceIp"),
    ],
)
def test_claims_of_providers_are_keys_of_trust(key):
    parse_trust_policy(json.dumps({"Statement": changed(TRUST, Condition={"StringEquals": {key: "x"}})}))


@pytest.mark.parametrize(
    "resource",
    [
        *(
            "*",
            "arn:aws:s3:::*",
            "arn:aws:s3:::photos",
            "arn:aws:s3:::AUTH_other:photos/*",
            "arn:aws:s3:::*:p/x:y",
        ),
        *(
            "arn:aws:s3:::home/${aws:username}/*",
            "arn:aws:iam::acme:user/*",
            "arn:aws:sts::acme:assumed-role/*",
        ),
    ],
)
def test_a_resource_is_anything_that_there_is(resource):
    text = json.dumps({"Version": "2012-10-17", "Statement": {**GOOD, "Resource": resource}})
    assert len(parse_identity_policy(text).statements) == 1


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (
            {"AWS": "arn:aws:iam::acme:group/a/staff"},
            Principals(arns=frozenset(["arn:aws:iam::acme:group/staff"])),
        ),
        ({"AWS": "arn:aws:iam::acme:role/x"}, Principals(arns=frozenset(["arn:aws:iam::acme:role/x"]))),
        (
            {"AWS": "arn:aws:sts::acme:assumed-role/x/y"},
            Principals(arns=frozenset(["arn:aws:sts::acme:assumed-role/x/y"])),
        ),
        (
            {"Federated": ["corp", "arn:aws:iam::acme:oidc-provider/id.example.com/r"], "Service": "x"},
            Principals(providers=frozenset(["corp", "id.example.com/r"])),
        ),
    ],
)
def test_principals_of_trust(principal, expected):
    [found] = parse_trust_policy(json.dumps({"Statement": changed(TRUST, Principal=principal)})).statements
    assert found.principals == expected


def test_documents_are_as_large_as_they_may_be():
    def sized(size):
        text = json.dumps({"Id": "", "Statement": GOOD})
        return text.replace('"Id": "', '"Id": "' + "x" * (size - len(text)))

    for parse, most in ((parse_identity_policy, POLICY_BYTES_MAX), (parse_session_policy, SESSION_BYTES_MAX)):
        parse(sized(most))
        assert located(parse, sized(most + 1)) == f"Policies must not be larger than {most} bytes"
    # Bytes count, not characters.
    assert "2048 bytes" in located(parse_session_policy, sized(2000).replace("x", "\u00fc"))
    many = {"Statement": [GOOD] * (IDENTITY_STATEMENTS_MAX + 1)}
    assert located(parse_identity_policy, many) == "Statement: A policy has 1 to 100 statements"


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 9000, '{"Statement": ' + "[" * 9000, '{"Id": "a", "Id": "b"}']
)
def test_what_is_no_document_is_refused(text):
    assert located(parse_identity_policy, text)
