"""Bucket policies: actions, parsed documents, and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import NoReturn

from swift.base.truth import is_true
from swift.s3.core.call import PolicyVerdict
from swift.s3.core.router import OPERATIONS
from swift.s3.policy.conditions import (
    RESTRICTING_KEYS,
    Condition,
    Glob,
    InvalidPolicy,
    Lookup,
    PolicyContext,
    parse_condition,
    parse_network,
    validate_condition_key,
)

_ACTION_PREFIX = "s3:"
#: Operation → the action it is called by in policies, where that is not its own name.
_ACTION_NAMES: dict[str, str] = {
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
    # Each key is authorized separately.
    "DeleteObjects": "DeleteObject",
}
#: Of these a version has an action of its own.
_VERSIONED_ACTIONS = frozenset(
    (
        *("GetObject", "DeleteObject", "GetObjectAcl", "PutObjectAcl", "GetObjectTagging"),
        *("PutObjectTagging", "DeleteObjectTagging", "GetObjectTorrent", "GetObjectAttributes"),
    )
)
#: Headers that lock a new object, and the actions they need.
_LOCK_ACTIONS = (
    ("s3:PutObjectRetention", "x-amz-object-lock-mode"),
    ("s3:PutObjectLegalHold", "x-amz-object-lock-legal-hold"),
)
_ACL_HEADER_PREFIXES = ("x-amz-acl", "x-amz-grant-")


def _action_name(operation: str) -> str:
    return _ACTION_NAMES.get(operation, operation)


def _version_action_name(action: str) -> str:
    """Return the action's name for a version, such as GetObjectVersionAcl."""
    return action.replace("Object", "ObjectVersion", 1)


#: Every action that a policy may name, in lower case.
ACTIONS = frozenset(
    (_ACTION_PREFIX + action).lower()
    for operation in OPERATIONS
    for base in (_action_name(operation),)
    for action in ((base, _version_action_name(base)) if base in _VERSIONED_ACTIONS else (base,))
) | frozenset(
    ("s3:bypassgovernanceretention", "s3:replicateobject", "s3:replicatedelete", "s3:replicatetags")
)


def action_of(operation: str, *, versioned: bool = False) -> str:
    """Return the policy action of an operation; ``versioned``: on a version of an object."""
    name = _action_name(operation)
    return _ACTION_PREFIX + (_version_action_name(name) if versioned and name in _VERSIONED_ACTIONS else name)


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
        if any(name.startswith(_ACL_HEADER_PREFIXES) for name in headers):
            found.append("s3:PutObjectAcl")
        if "x-amz-tagging" in headers:
            found.append("s3:PutObjectTagging")
        found += [action for action, header in _LOCK_ACTIONS if header in headers]
    if is_true(headers.get("x-amz-bypass-governance-retention")):
        found.append("s3:BypassGovernanceRetention")
    return tuple(found)


# --- documents ----------------------------------------------------------------------------------------
# Unknown elements are rejected when a policy is stored, and never ignored when it is evaluated: a
# Deny that is ignored would allow.

POLICY_BYTES_MAX = 20 << 10
STATEMENTS_MAX = 1000
VERSIONS = ("2008-10-17", "2012-10-17")
BUCKET_ARN_PREFIX = "arn:aws:s3:::"
_IAM_ARN_PREFIX = "arn:aws:iam::"
#: Kinds of principals that the cluster does not have: they are stored and match no caller.
_UNSUPPORTED_PRINCIPALS = ("Service", "Federated")
ALL_PRINCIPALS = "*"
#: Values of JSON.
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
    """Patterns of actions or resources; ``negated``: everything that does not match."""

    globs: tuple[Glob, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy."""

    allows: bool
    principals: Principals
    not_principal: bool
    actions: Patterns
    resources: Patterns
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class BucketPolicy:
    """The statements of a bucket's policy."""

    statements: tuple[Statement, ...]


def parse_policy(text: str | bytes, bucket: str) -> BucketPolicy:
    """Return the policy of a bucket; raise ``InvalidPolicy``."""
    if len(text) > POLICY_BYTES_MAX:
        raise InvalidPolicy("Policies must not be larger than 20480 bytes")
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        tree = json.loads(text, object_pairs_hook=_unique_members, parse_constant=_reject_constant)
    except InvalidPolicy:
        raise
    except (ValueError, RecursionError):
        raise InvalidPolicy("Policies must be valid JSON and the first byte must be '{'")
    if not isinstance(tree, dict):
        raise InvalidPolicy("Policies must be valid JSON and the first byte must be '{'")
    _validate_field_names(tree, ("Version", "Id", "Statement"))
    version = tree.get("Version", VERSIONS[0])
    if version not in VERSIONS:
        raise InvalidPolicy("The policy must contain a valid version string")
    if not isinstance(tree.get("Id", ""), str):
        raise InvalidPolicy("Id must be a string")
    items = tree.get("Statement")
    items = items if isinstance(items, list) else [items]
    if not items or len(items) > STATEMENTS_MAX:
        raise InvalidPolicy("Could not parse the policy: Statement is empty!")
    return BucketPolicy(
        tuple(_parse_statement(item, bucket, has_variables=version != VERSIONS[0]) for item in items)
    )


def _unique_members(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise InvalidPolicy("A name must not come twice")
    return tree


def _reject_constant(_text: str) -> NoReturn:
    raise InvalidPolicy("Policies must be valid JSON and the first byte must be '{'")


def _validate_field_names(tree: Mapping[str, Json], names: Sequence[str]) -> None:
    for name in tree:
        if name not in names:
            raise InvalidPolicy(f"Unknown field {name[:100]}")


def _parse_statement(item: Json, bucket: str, *, has_variables: bool) -> Statement:
    if not isinstance(item, dict):
        raise InvalidPolicy("Statement must be an object")
    names = ("Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource")
    _validate_field_names(item, ("Sid", "Effect", "Condition", *names))
    if not isinstance(item.get("Sid", ""), str):
        raise InvalidPolicy("Sid must be a string")
    effect = item.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise InvalidPolicy(f"Invalid effect: {str(effect)[:100]}")
    field = _present_field(item, "Principal")
    return Statement(
        effect == "Allow",
        _parse_principals(item[field]),
        field == "NotPrincipal",
        _parse_actions(item),
        _parse_resources(item, bucket, has_variables=has_variables),
        tuple(_parse_conditions(item.get("Condition", {}), has_variables=has_variables)),
    )


def _present_field(item: Mapping[str, Json], name: str) -> str:
    """Return which of the fields ``name`` and ``Not`` + ``name`` a statement has; raise ``InvalidPolicy``."""
    found = [one for one in (name, f"Not{name}") if one in item]
    if len(found) != 1:
        raise InvalidPolicy(
            f"Missing required field {name}" if not found else f"{name} and Not{name} exclude each other"
        )
    return found[0]


def _parse_texts(value: Json, what: str) -> list[str]:
    """Return a text or a list of texts as a list."""
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not items or len(texts) != len(items):
        raise InvalidPolicy(f"{what} must be a string or a list of strings")
    return texts


# --- principals ---------------------------------------------------------------------------------------


def _parse_principals(value: Json) -> Principals:
    if value == ALL_PRINCIPALS:
        return Principals(includes_all=True)
    if not isinstance(value, dict) or not value:
        raise InvalidPolicy("Invalid principal in policy")
    includes_all = False
    users: set[str] = set()
    accounts: set[str] = set()
    for kind, names in value.items():
        for name in _parse_texts(names, "Principal"):
            if kind in _UNSUPPORTED_PRINCIPALS:
                continue
            if kind not in ("AWS", "CanonicalUser"):
                raise InvalidPolicy("Invalid principal in policy")
            if name == ALL_PRINCIPALS and kind == "AWS":
                includes_all = True
            elif kind == "CanonicalUser":
                users.add(_validate_no_wildcard(name))
            else:
                _add_principal(name, users, accounts)
    return Principals(includes_all, frozenset(users), frozenset(accounts))


def _validate_no_wildcard(name: str) -> str:
    if "*" in name or "?" in name:
        raise InvalidPolicy("Invalid principal in policy")
    return name


def _add_principal(name: str, users: set[str], accounts: set[str]) -> None:
    """Add an access key, an account, or the ARN of either."""
    if name.startswith("arn:"):
        account, _, rest = name.removeprefix(_IAM_ARN_PREFIX).partition(":")
        kind, _, user = rest.partition("/")
        if not name.startswith(_IAM_ARN_PREFIX) or not account:
            raise InvalidPolicy("Invalid principal in policy")
        if rest == "root":
            accounts.add(_validate_no_wildcard(account))
        elif kind == "user" and user:
            # The path before a user's name is ignored.
            users.add(_validate_no_wildcard(f"{account}:{user.rpartition('/')[2]}"))
        else:
            raise InvalidPolicy("Invalid principal in policy")
    elif ":" in name:
        users.add(_validate_no_wildcard(name))
    else:
        # A key of Keystone has no colon, nor has an account.
        users.add(_validate_no_wildcard(name))
        accounts.add(name)


# --- actions and resources ----------------------------------------------------------------------------


def _parse_actions(item: Mapping[str, Json]) -> Patterns:
    which = _present_field(item, "Action")
    globs = []
    for text in _parse_texts(item[which], "Action"):
        glob = Glob(text.lower(), has_variables=False)
        if text != "*" and not (text.lower().startswith("s3:") and any(map(glob.matches, ACTIONS))):
            raise InvalidPolicy("Policy has invalid action")
        globs.append(glob)
    return Patterns(tuple(globs), which.startswith("Not"))


def _parse_resources(item: Mapping[str, Json], bucket: str, *, has_variables: bool) -> Patterns:
    which = _present_field(item, "Resource")
    globs = []
    for text in _parse_texts(item[which], "Resource"):
        if text == "*":
            globs.append(Glob(text))
            continue
        if not text.startswith(BUCKET_ARN_PREFIX):
            raise InvalidPolicy("Policy has invalid resource")
        name = text[len(BUCKET_ARN_PREFIX) :].partition("/")[0]
        glob = Glob(text[len(BUCKET_ARN_PREFIX) :], has_variables=has_variables)
        _validate_variables(glob)
        if not Glob(name, has_variables=False).matches(bucket):
            raise InvalidPolicy("Policy has invalid resource")
        globs.append(glob)
    return Patterns(tuple(globs), which.startswith("Not"))


def _validate_variables(glob: Glob) -> None:
    for name in glob.variable_names:
        try:
            validate_condition_key(name)
        except InvalidPolicy:
            raise InvalidPolicy("Policy has an unknown variable")


def _parse_conditions(value: Json, *, has_variables: bool) -> list[Condition]:
    if not isinstance(value, dict):
        raise InvalidPolicy("Condition must be an object")
    found = []
    for operator, keys in value.items():
        if not isinstance(keys, dict) or not keys:
            raise InvalidPolicy("Condition must be an object of objects")
        for key, texts in keys.items():
            items = texts if isinstance(texts, list) else [texts]
            values = tuple(map(_condition_value, items))
            if has_variables:
                for text in values:
                    _validate_variables(Glob(text))
            else:
                values = tuple(text.replace("${", "${$}{") for text in values)
            found.append(parse_condition(operator, key, values))
    return found


def _condition_value(item: Json) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str | int | float):
        return str(item)
    raise InvalidPolicy("A condition compares texts, numbers and truths")


# --- verdicts -----------------------------------------------------------------------------------------

#: An address range at least so narrow is not the public.
_NARROW_V4_BITS, _NARROW_V6_BITS = 8, 32


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


def evaluate_policy(policy: BucketPolicy, request: PolicyRequest) -> PolicyVerdict:
    """Return the verdict of a policy on a request."""
    verdict = PolicyVerdict.SILENT
    for statement in policy.statements:
        if statement.allows and verdict is PolicyVerdict.ALLOW:
            # Only a denial can change it.
            continue
        if _statement_applies(statement, request):
            if not statement.allows:
                return PolicyVerdict.DENY
            verdict = PolicyVerdict.ALLOW
    return verdict


def combine_verdicts(verdicts: Iterable[PolicyVerdict]) -> PolicyVerdict:
    """Return the verdict on several actions: ALLOW if all are allowed, DENY if one is denied."""
    found = set(verdicts)
    if PolicyVerdict.DENY in found:
        return PolicyVerdict.DENY
    return PolicyVerdict.ALLOW if found == {PolicyVerdict.ALLOW} else PolicyVerdict.SILENT


def _statement_applies(statement: Statement, request: PolicyRequest) -> bool:
    lookup = _variable_lookup(request.context)
    return (
        _matches_patterns(statement.actions, request.action.lower(), lookup)
        and _matches_patterns(statement.resources, request.resource, lookup)
        and _includes_principal(statement.principals, request.principal) != statement.not_principal
        and all(condition.holds(request.context, lookup) for condition in statement.conditions)
    )


def _variable_lookup(context: PolicyContext) -> Lookup:
    def value_of(name: str) -> str | None:
        start, slash, rest = name.partition("/")
        values = context.values(start.lower() + slash + rest)
        return values[0] if values is not None and len(values) == 1 else None

    return value_of


def _matches_patterns(patterns: Patterns, text: str, lookup: Lookup) -> bool:
    return any(glob.matches(text, lookup) for glob in patterns.globs) != patterns.negated


def _includes_principal(principals: Principals, principal: Principal) -> bool:
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
        and not any(map(_is_restricting, statement.conditions))
        for statement in policy.statements
    )


def _is_restricting(condition: Condition) -> bool:
    """Return True if a condition restricts callers to fixed names or to a narrow network."""
    if (
        condition.negated
        or condition.if_exists
        or condition.quantifier
        or condition.key not in RESTRICTING_KEYS
    ):
        return False
    if condition.key == "aws:sourceip":
        return condition.operator == "ipaddress" and all(map(_is_narrow_range, condition.expected_values))
    if condition.operator in ("stringequals", "stringequalsignorecase"):
        return not any(Glob(text).variable_names for text in condition.expected_values)
    fixed = condition.operator in ("stringlike", "arnequals", "arnlike")
    return fixed and all(Glob(text).is_fixed for text in condition.expected_values)


def _is_narrow_range(text: str) -> bool:
    try:
        network = parse_network(text)
    except InvalidPolicy:
        return False
    return network.prefixlen >= (_NARROW_V4_BITS if isinstance(network, IPv4Network) else _NARROW_V6_BITS)
