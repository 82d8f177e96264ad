"""Bucket policies: actions, documents as values, and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network
from typing import NoReturn

from swift.base.truth import is_true
from swift.s3.api.router import OPERATIONS
from swift.s3.policy.conditions import (
    NARROW,
    BadPolicy,
    Condition,
    Glob,
    Lookup,
    PolicyContext,
    condition_of,
    known_key,
    network_of,
)

_SAME = "s3:"
#: Operation → the action it is called by in policies, where that is not its own name.
_NAMED: dict[str, str] = {
    "ListBuckets": "ListAllMyBuckets",
    **dict.fromkeys(("HeadBucket", "ListObjects", "ListObjectsV2"), "ListBucket"),
    "ListObjectVersions": "ListBucketVersions",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    **{
        f"{verb}BucketCors": f"{'Get' if verb == 'Get' else 'Put'}BucketCORS"
        for verb in ("Get", "Put", "Delete")
    },
    "DeleteBucketTagging": "PutBucketTagging",
    **{f"{verb}PublicAccessBlock": f"{verb}BucketPublicAccessBlock" for verb in ("Get", "Put")},
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "DeleteBucketOwnershipControls": "PutBucketOwnershipControls",
    **{f"{verb}BucketAccelerateConfiguration": f"{verb}AccelerateConfiguration" for verb in ("Get", "Put")},
    **{f"{verb}BucketEncryption": f"{verb}EncryptionConfiguration" for verb in ("Get", "Put")},
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    **{
        f"{verb}BucketLifecycle{more}": f"{verb}LifecycleConfiguration"
        for verb in ("Get", "Put")
        for more in ("", "Configuration")
    },
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "PutBucketNotificationConfiguration": "PutBucketNotification",
    **{f"{verb}ObjectLockConfiguration": f"{verb}BucketObjectLockConfiguration" for verb in ("Get", "Put")},
    **{f"{verb}BucketReplication": f"{verb}ReplicationConfiguration" for verb in ("Get", "Put")},
    "DeleteBucketReplication": "PutReplicationConfiguration",
    **{
        f"{verb}Bucket{noun}Configuration{more}": f"{what}{noun}Configuration"
        for noun in ("Analytics", "IntelligentTiering", "Inventory", "Metrics")
        for verb, what, more in (
            *(("Get", "Get", ""), ("Put", "Put", "")),
            *(("Delete", "Put", ""), ("List", "Get", "s")),
        )
    },
    **dict.fromkeys(
        (
            *("PostObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy"),
            *("CompleteMultipartUpload", "RenameObject"),
        ),
        "PutObject",
    ),
    "HeadObject": "GetObject",
    "SelectObjectContent": "GetObject",
    "ListParts": "ListMultipartUploadParts",
    # Each of its keys is asked for by itself.
    "DeleteObjects": "DeleteObject",
}
#: Of these a version has an action of its own.
_OF_VERSIONS = frozenset(
    (
        *("GetObject", "DeleteObject", "GetObjectAcl", "PutObjectAcl", "GetObjectTagging"),
        *("PutObjectTagging", "DeleteObjectTagging", "GetObjectTorrent", "GetObjectAttributes"),
    )
)
#: What locks an object while it is made.
_LOCKS = (
    ("s3:PutObjectRetention", "x-amz-object-lock-mode"),
    ("s3:PutObjectLegalHold", "x-amz-object-lock-legal-hold"),
)
_GRANTS = ("x-amz-acl", "x-amz-grant-")


def _action(operation: str) -> str:
    return _NAMED.get(operation, operation)


def _of_version(action: str) -> str:
    """Return the action's name for a version, such as GetObjectVersionAcl."""
    return action.replace("Object", "ObjectVersion", 1)


#: Every action that a policy may name, in lower case.
ACTIONS = frozenset(
    (_SAME + action).lower()
    for operation in OPERATIONS
    for base in (_action(operation),)
    for action in ((base, _of_version(base)) if base in _OF_VERSIONS else (base,))
) | frozenset(
    ("s3:bypassgovernanceretention", "s3:replicateobject", "s3:replicatedelete", "s3:replicatetags")
)


def action_of(operation: str, *, versioned: bool = False) -> str:
    """Return the action of an operation, on a version or not."""
    name = _action(operation)
    return _SAME + (_of_version(name) if versioned and name in _OF_VERSIONS else name)


def actions_of(operation: str, params: Mapping[str, str], headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return all actions that a request needs."""
    versioned = "versionId" in params
    found = [action_of(operation, versioned=versioned)]
    if operation == "GetObjectAttributes":
        found.append(action_of("GetObject", versioned=versioned))
    if found[0] == "s3:PutObject" and operation not in (
        "UploadPart",
        "UploadPartCopy",
        "CompleteMultipartUpload",
    ):
        if any(name.startswith(_GRANTS) for name in headers):
            found.append("s3:PutObjectAcl")
        if "x-amz-tagging" in headers:
            found.append("s3:PutObjectTagging")
        found += [action for action, header in _LOCKS if header in headers]
    if is_true(headers.get("x-amz-bypass-governance-retention")):
        found.append("s3:BypassGovernanceRetention")
    return tuple(found)


# --- documents ----------------------------------------------------------------------------------------
# What is not understood is refused when a policy is stored, and not passed over when it is asked: a
# Deny that is not understood would allow.

POLICY_BYTES_MAX = 20 << 10
STATEMENTS_MAX = 1000
VERSIONS = ("2008-10-17", "2012-10-17")
ARN = "arn:aws:s3:::"
_USER_ARN = "arn:aws:iam::"
#: In a bucket's policy, who is not a user of ours: they are stored and match no principal.
_FOREIGN = ("Service", "Federated")
ALL_PRINCIPALS = "*"
#: What JSON can hold.
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Principals:
    """The principals of a statement."""

    #: All principals, anonymous ones included.
    includes_all: bool = False
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
    """Return the policy of a bucket; raise ``BadPolicy``."""
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
    """Return the one of ``name`` and ``Notname`` that a statement has."""
    found = [one for one in (name, f"Not{name}") if one in item]
    if len(found) != 1:
        raise BadPolicy(
            f"Missing required field {name}" if not found else f"{name} and Not{name} exclude each other"
        )
    return found[0]


def _texts(value: Json, what: str) -> list[str]:
    """Return one text or a list of them as a list."""
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not items or len(texts) != len(items):
        raise BadPolicy(f"{what} must be a string or a list of strings")
    return texts


# --- principals ---------------------------------------------------------------------------------------


def _principals(value: Json) -> Principals:
    if value == ALL_PRINCIPALS:
        return Principals(includes_all=True)
    if not isinstance(value, dict) or not value:
        raise BadPolicy("Invalid principal in policy")
    includes_all = False
    users: set[str] = set()
    accounts: set[str] = set()
    for kind, names in value.items():
        for name in _texts(names, "Principal"):
            if kind in _FOREIGN:
                continue
            if kind not in ("AWS", "CanonicalUser"):
                raise BadPolicy("Invalid principal in policy")
            if name == ALL_PRINCIPALS and kind == "AWS":
                includes_all = True
            elif kind == "CanonicalUser":
                users.add(_plain(name))
            else:
                _add_principal(name, users, accounts)
    return Principals(includes_all, frozenset(users), frozenset(accounts))


def _plain(name: str) -> str:
    if "*" in name or "?" in name:
        raise BadPolicy("Invalid principal in policy")
    return name


def _add_principal(name: str, users: set[str], accounts: set[str]) -> None:
    """Add an access key, an account, or the ARN of either."""
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


# --- verdicts -----------------------------------------------------------------------------------------

#: An address range at least so narrow is not the public.
_V4_BITS, _V6_BITS = 8, 32


class PolicyVerdict(Enum):
    """The verdict of a policy."""

    SILENT = "silent"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: an access key and the names of its account; all empty for an anonymous one."""

    user: str = ""
    accounts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """An action (``s3:GetObject``) on a bucket or on a key in it, and its context."""

    principal: Principal
    action: str
    bucket: str
    key: str
    context: PolicyContext

    @property
    def resource(self) -> str:
        """The resource without the common prefix."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket


def decide(policy: BucketPolicy, request: PolicyRequest) -> PolicyVerdict:
    """Return the verdict of a policy on a request."""
    verdict = PolicyVerdict.SILENT
    for statement in policy.statements:
        if statement.allows and verdict is PolicyVerdict.ALLOW:
            # Only a denial can change it.
            continue
        if _applies(statement, request):
            if not statement.allows:
                return PolicyVerdict.DENY
            verdict = PolicyVerdict.ALLOW
    return verdict


def together(verdicts: Iterable[PolicyVerdict]) -> PolicyVerdict:
    """Return the verdict on a request of several actions: all must be allowed, none denied."""
    found = set(verdicts)
    if PolicyVerdict.DENY in found:
        return PolicyVerdict.DENY
    return PolicyVerdict.ALLOW if found == {PolicyVerdict.ALLOW} else PolicyVerdict.SILENT


def _applies(statement: Statement, request: PolicyRequest) -> bool:
    lookup = _lookup(request.context)
    return (
        _any(statement.actions, request.action.lower(), lookup)
        and _any(statement.resources, request.resource, lookup)
        and _is_one_of(statement.principals, request.principal) != statement.not_principal
        and all(condition.holds(request.context, lookup) for condition in statement.conditions)
    )


def _lookup(context: PolicyContext) -> Lookup:
    def value_of(name: str) -> str | None:
        start, slash, rest = name.partition("/")
        values = context.values(start.lower() + slash + rest)
        return values[0] if values is not None and len(values) == 1 else None

    return value_of


def _any(patterns: Patterns, text: str, lookup: Lookup) -> bool:
    return any(glob.matches(text, lookup) for glob in patterns.globs) != patterns.negated


def _is_one_of(principals: Principals, principal: Principal) -> bool:
    if principals.includes_all:
        return True
    if not principal.user:
        return False
    return principal.user in principals.users or not principals.accounts.isdisjoint(principal.accounts)


# --- the public -----------------------------------------------------------------------------------------


def is_public(policy: BucketPolicy) -> bool:
    """Return True if a policy allows all principals something, without a restricting condition."""
    return any(
        statement.allows
        and (statement.principals.includes_all or statement.not_principal)
        and not any(map(_is_narrow, statement.conditions))
        for statement in policy.statements
    )


def _is_narrow(condition: Condition) -> bool:
    """Return True if a condition holds for few callers: of fixed names or of a narrow network."""
    if condition.negated or condition.if_exists or condition.quantifier or condition.key not in NARROW:
        return False
    if condition.key == "aws:sourceip":
        return condition.operator == "ipaddress" and all(map(_is_narrow_range, condition.texts))
    if condition.operator in ("stringequals", "stringequalsignorecase"):
        return not any(Glob(text).names for text in condition.texts)
    fixed = condition.operator in ("stringlike", "arnequals", "arnlike")
    return fixed and all(Glob(text).is_fixed for text in condition.texts)


def _is_narrow_range(text: str) -> bool:
    try:
        network = network_of(text)
    except BadPolicy:
        return False
    return network.prefixlen >= (_V4_BITS if isinstance(network, IPv4Network) else _V6_BITS)
