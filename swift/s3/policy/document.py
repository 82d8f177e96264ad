"""Policy documents: from JSON to a value, everything checked that AWS checks.

What is not understood is refused when a policy is stored, and not passed over when it is asked: a Deny that
nobody understands would allow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from swift.s3.policy.actions import ACTIONS
from swift.s3.policy.conditions import BadPolicy, Condition, condition_of, known_key
from swift.s3.policy.glob import Glob

POLICY_BYTES_MAX = 20 << 10
STATEMENTS_MAX = 1000
VERSIONS = ("2008-10-17", "2012-10-17")
ARN = "arn:aws:s3:::"
_USER_ARN = "arn:aws:iam::"
#: In a bucket's policy, who is not a user of ours: they are kept and match nobody.
_FOREIGN = ("Service", "Federated")
ANYBODY = "*"
#: What JSON can hold.
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Principals:
    """Whom a statement is about."""

    #: Everybody, anonymous callers too.
    anybody: bool = False
    #: Access keys.
    users: frozenset[str] = frozenset()
    #: Accounts, all of whose users are meant.
    accounts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns of actions or resources, or everything but those."""

    globs: tuple[Glob, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement."""

    allows: bool
    principals: Principals
    not_principal: bool
    actions: Patterns
    resources: Patterns
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class BucketPolicy:
    """The statements of a bucket."""

    statements: tuple[Statement, ...]


def parse_policy(text: str | bytes, bucket: str) -> BucketPolicy:
    """The policy of a bucket; raises ``BadPolicy``."""
    if len(text) > POLICY_BYTES_MAX:
        raise BadPolicy("Policies must not be larger than 20480 bytes")
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        tree = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except BadPolicy:
        raise
    except (ValueError, RecursionError):
        raise BadPolicy("Policies must be valid JSON and the first byte must be '{'")
    if not isinstance(tree, dict):
        raise BadPolicy("Policies must be valid JSON and the first byte must be '{'")
    _only(tree, ("Version", "Id", "Statement"))
    version = tree.get("Version", VERSIONS[0])
    if version not in VERSIONS:
        raise BadPolicy("The policy must contain a valid version string")
    if not isinstance(tree.get("Id", ""), str):
        raise BadPolicy("Id must be a string")
    items = tree.get("Statement")
    items = items if isinstance(items, list) else [items]
    if not items or len(items) > STATEMENTS_MAX:
        raise BadPolicy("Could not parse the policy: Statement is empty!")
    return BucketPolicy(tuple(_statement(item, bucket, variables=version != VERSIONS[0]) for item in items))


def _once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise BadPolicy("A name must not come twice")
    return tree


def _no_number(_text: str) -> NoReturn:
    raise BadPolicy("Policies must be valid JSON and the first byte must be '{'")


def _only(tree: Mapping[str, Json], names: Sequence[str]) -> None:
    for name in tree:
        if name not in names:
            raise BadPolicy(f"Unknown field {name[:100]}")


def _statement(item: Json, bucket: str, *, variables: bool) -> Statement:
    if not isinstance(item, dict):
        raise BadPolicy("Statement must be an object")
    names = ("Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource")
    _only(item, ("Sid", "Effect", "Condition", *names))
    if not isinstance(item.get("Sid", ""), str):
        raise BadPolicy("Sid must be a string")
    effect = item.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise BadPolicy(f"Invalid effect: {str(effect)[:100]}")
    who = _which(item, "Principal")
    return Statement(
        effect == "Allow",
        _principals(item[who]),
        who == "NotPrincipal",
        _actions(item),
        _resources(item, bucket, variables=variables),
        tuple(_conditions(item.get("Condition", {}), variables=variables)),
    )


def _which(item: Mapping[str, Json], name: str) -> str:
    """Which of ``name`` and ``Notname`` is there."""
    found = [one for one in (name, f"Not{name}") if one in item]
    if len(found) != 1:
        raise BadPolicy(
            f"Missing required field {name}" if not found else f"{name} and Not{name} exclude each other"
        )
    return found[0]


def _texts(value: Json, what: str) -> list[str]:
    """One text or a list of them."""
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not items or len(texts) != len(items):
        raise BadPolicy(f"{what} must be a string or a list of strings")
    return texts


# --- principals ---------------------------------------------------------------------------------------


def _principals(value: Json) -> Principals:
    if value == ANYBODY:
        return Principals(anybody=True)
    if not isinstance(value, dict) or not value:
        raise BadPolicy("Invalid principal in policy")
    anybody = False
    users: set[str] = set()
    accounts: set[str] = set()
    for kind, names in value.items():
        for name in _texts(names, "Principal"):
            if kind in _FOREIGN:
                continue
            if kind not in ("AWS", "CanonicalUser"):
                raise BadPolicy("Invalid principal in policy")
            if name == ANYBODY and kind == "AWS":
                anybody = True
            elif kind == "CanonicalUser":
                users.add(_plain(name))
            else:
                _add_principal(name, users, accounts)
    return Principals(anybody, frozenset(users), frozenset(accounts))


def _plain(name: str) -> str:
    if "*" in name or "?" in name:
        raise BadPolicy("Invalid principal in policy")
    return name


def _add_principal(name: str, users: set[str], accounts: set[str]) -> None:
    """An access key, an account, or the ARN of either."""
    if name.startswith("arn:"):
        account, _, rest = name.removeprefix(_USER_ARN).partition(":")
        kind, _, user = rest.partition("/")
        if not name.startswith(_USER_ARN) or not account:
            raise BadPolicy("Invalid principal in policy")
        if rest == "root":
            accounts.add(_plain(account))
        elif kind == "user" and user:
            # A path before a user's name says nothing here.
            users.add(_plain(f"{account}:{user.rpartition('/')[2]}"))
        else:
            raise BadPolicy("Invalid principal in policy")
    elif ":" in name:
        users.add(_plain(name))
    else:
        # A key of Keystone has no colon, nor has an account.
        users.add(_plain(name))
        accounts.add(name)


# --- actions and resources ----------------------------------------------------------------------------


def _actions(item: Mapping[str, Json]) -> Patterns:
    which = _which(item, "Action")
    globs = []
    for text in _texts(item[which], "Action"):
        glob = Glob(text.lower(), variables=False)
        if text != "*" and not (text.lower().startswith("s3:") and any(map(glob.matches, ACTIONS))):
            raise BadPolicy("Policy has invalid action")
        globs.append(glob)
    return Patterns(tuple(globs), which.startswith("Not"))


def _resources(item: Mapping[str, Json], bucket: str, *, variables: bool) -> Patterns:
    which = _which(item, "Resource")
    globs = []
    for text in _texts(item[which], "Resource"):
        if text == "*":
            globs.append(Glob(text))
            continue
        if not text.startswith(ARN):
            raise BadPolicy("Policy has invalid resource")
        name = text[len(ARN) :].partition("/")[0]
        glob = Glob(text[len(ARN) :], variables=variables)
        _check_names(glob)
        if not Glob(name, variables=False).matches(bucket):
            raise BadPolicy("Policy has invalid resource")
        globs.append(glob)
    return Patterns(tuple(globs), which.startswith("Not"))


def _check_names(glob: Glob) -> None:
    for name in glob.names:
        try:
            known_key(name)
        except BadPolicy:
            raise BadPolicy("Policy has an unknown variable")


def _conditions(value: Json, *, variables: bool) -> list[Condition]:
    if not isinstance(value, dict):
        raise BadPolicy("Condition must be an object")
    found = []
    for operator, keys in value.items():
        if not isinstance(keys, dict) or not keys:
            raise BadPolicy("Condition must be an object of objects")
        for key, texts in keys.items():
            items = texts if isinstance(texts, list) else [texts]
            values = tuple(map(_value, items))
            if variables:
                for text in values:
                    _check_names(Glob(text))
            else:
                values = tuple(text.replace("${", "${$}{") for text in values)
            found.append(condition_of(operator, key, values))
    return found


def _value(item: Json) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str | int | float):
        return str(item)
    raise BadPolicy("A condition compares texts, numbers and truths")
