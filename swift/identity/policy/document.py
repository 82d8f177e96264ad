"""Policy documents: of buckets, of identities, of sessions, and of the trust of roles.

Unknown elements are rejected when a policy is stored, and never ignored when it is evaluated: a Deny that is
ignored would allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from swift.identity.policy.actions import ACTIONS
from swift.identity.policy.conditions import (
    Condition,
    InvalidPolicy,
    Json,
    ValidateKey,
    parse_condition,
    parse_texts,
    validate_condition_key,
    validate_identity_key,
    validate_trust_key,
)
from swift.identity.policy.patterns import Glob, split_outside_variables
from swift.identity.policy.principals import EVERY_HOLDER, PrincipalParser, Principals

POLICY_BYTES_MAX = 20 << 10
STATEMENTS_MAX = 1000
#: Bounds of policies of identities; sessions have AWS's bound.
IDENTITY_STATEMENTS_MAX = 100
SESSION_BYTES_MAX = 2 << 10
SID_MAX = 128
VERSIONS = ("2008-10-17", "2012-10-17")
BUCKET_ARN_PREFIX = "arn:aws:s3:::"
_IAM_ARN_PREFIXES = ("arn:aws:iam::", "arn:aws:sts::")
_TRUST_ACTIONS = (
    "sts:assumerole",
    "sts:assumerolewithwebidentity",
    "sts:tagsession",
    "sts:setsourceidentity",
)
_NOT_JSON = "Policies must be valid JSON and the first byte must be '{'"


# --- parsed documents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns of actions in lower case; ``negated``: everything that does not match."""

    #: Those without wildcards.
    names: frozenset[str]
    globs: tuple[Glob, ...]
    negated: bool = False


#: Accounts of a resource: any, and the caller's own.
ANY_ACCOUNT, OWN_ACCOUNT = "*", ""


@dataclass(frozen=True, slots=True)
class Resource:
    """A pattern of resources."""

    #: Of ``bucket/key`` or of a whole ARN; None: of everything.
    glob: Glob | None
    #: The account of buckets: a name, any, or the caller's own.
    account: str = ANY_ACCOUNT
    #: True for the ARN of a user, role or other record.
    is_arn: bool = False


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a statement; ``negated``: everything that does not match."""

    patterns: tuple[Resource, ...]
    negated: bool = False


_EVERYTHING = Resources((Resource(None),))


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy."""

    allows: bool
    principals: Principals
    not_principal: bool
    actions: Patterns
    resources: Resources
    conditions: tuple[Condition, ...]
    sid: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """The statements of a document of any kind."""

    statements: tuple[Statement, ...]


class BucketPolicy(Policy):
    """The policy of a bucket."""


class IdentityPolicy(Policy):
    """The policy of a user, a group, a role or a session, or the limits of an access key."""


class TrustPolicy(Policy):
    """The policy of a role that names the principals that may assume it."""


# --- kinds --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kind:
    """The rules of one kind of document."""

    bytes_max: int
    statements_max: int
    has_principals: bool
    #: Returns the resources of a statement; None for documents without resources.
    parse_resources: Callable[[Mapping[str, Json], bool], Resources] | None
    validate_action: Callable[[str, Glob], None]
    validate_key: ValidateKey
    #: Kinds of principals that match no caller.
    unsupported_principals: tuple[str, ...] = ()
    #: False for documents of buckets, which accept what earlier releases accepted.
    is_strict: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """The elements of a statement."""
        principal = ("Principal", "NotPrincipal") if self.has_principals else ()
        resource = ("Resource", "NotResource") if self.parse_resources is not None else ()
        return ("Sid", "Effect", "Condition", "Action", "NotAction", *principal, *resource)


def parse_policy(text: str | bytes, bucket: str) -> BucketPolicy:
    """Return the policy of a bucket; raise ``InvalidPolicy``."""
    kind = _Kind(
        POLICY_BYTES_MAX,
        STATEMENTS_MAX,
        has_principals=True,
        parse_resources=lambda item, has_variables: _parse_bucket_resources(
            item, bucket, has_variables=has_variables
        ),
        validate_action=_validate_bucket_action,
        validate_key=validate_condition_key,
        unsupported_principals=("Service", "Federated"),
        is_strict=False,
    )
    return BucketPolicy(_parse_statements(text, kind))


def parse_identity_policy(text: str | bytes) -> IdentityPolicy:
    """Return the policy of a user, group or role; raise ``InvalidPolicy`` (``located`` names the place)."""
    return IdentityPolicy(_parse_statements(text, _IDENTITY))


def parse_session_policy(text: str | bytes) -> IdentityPolicy:
    """Return the policy of a session; raise ``InvalidPolicy`` (``located`` names the place)."""
    return IdentityPolicy(_parse_statements(text, _SESSION))


def parse_trust_policy(text: str | bytes) -> TrustPolicy:
    """Return the trust policy of a role; raise ``InvalidPolicy`` (``located`` names the place)."""
    return TrustPolicy(_parse_statements(text, _TRUST))


# --- the document -------------------------------------------------------------------------------------


def _parse_statements(text: str | bytes, kind: _Kind) -> tuple[Statement, ...]:
    size = (
        len(text) if isinstance(text, bytes) or not kind.is_strict else len(text.encode("utf-8", "replace"))
    )
    if size > kind.bytes_max:
        raise InvalidPolicy(f"Policies must not be larger than {kind.bytes_max} bytes")
    tree = _parse_json(text)
    _validate_field_names(tree, ("Version", "Id", "Statement"))
    version = tree.get("Version", VERSIONS[0])
    if version not in VERSIONS:
        raise _error("The policy must contain a valid version string", "Version")
    if not isinstance(tree.get("Id", ""), str):
        raise _error("Id must be a string", "Id")
    items = tree.get("Statement")
    items = items if isinstance(items, list) else [items]
    if not items or len(items) > kind.statements_max:
        text = f"A policy has 1 to {kind.statements_max} statements"
        raise _error(
            text if kind.is_strict else "Could not parse the policy: Statement is empty!", "Statement"
        )
    statements = []
    for index, item in enumerate(items):
        with _in_field(f"Statement[{index}]"):
            statements.append(_parse_statement(item, kind, has_variables=version != VERSIONS[0]))
    if kind.is_strict:
        _validate_sids(statements)
    return tuple(statements)


def _parse_json(text: str | bytes) -> dict[str, Json]:
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        tree = json.loads(text, object_pairs_hook=_unique_members, parse_constant=_reject_constant)
    except InvalidPolicy:
        raise
    except (ValueError, RecursionError):
        raise InvalidPolicy(_NOT_JSON)
    if not isinstance(tree, dict):
        raise InvalidPolicy(_NOT_JSON)
    return tree


def _unique_members(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise InvalidPolicy("A name must not come twice")
    return tree


def _reject_constant(_text: str) -> NoReturn:
    raise InvalidPolicy(_NOT_JSON)


def _error(text: str, field: str) -> InvalidPolicy:
    return InvalidPolicy(text).in_field(field)


@contextmanager
def _in_field(name: str) -> Iterator[None]:
    """Add the name of an element to errors of a block."""
    try:
        yield
    except InvalidPolicy as error:
        raise error.in_field(name)


def _validate_field_names(tree: Mapping[str, Json], names: Sequence[str]) -> None:
    for name in tree:
        if name not in names:
            raise InvalidPolicy(f"Unknown field {name[:100]}")


def _validate_sids(statements: Sequence[Statement]) -> None:
    """Raise ``InvalidPolicy`` for identifiers that do not identify a statement."""
    known: set[str] = set()
    for index, statement in enumerate(statements):
        sid = statement.sid
        if sid in known or len(sid) > SID_MAX or not sid.isprintable():
            text = "Sid must be unique, printable and have at most 128 characters"
            raise InvalidPolicy(text, sid).in_field(f"Statement[{index}].Sid")
        known.update(filter(None, (sid,)))


def _parse_statement(item: Json, kind: _Kind, *, has_variables: bool) -> Statement:
    if not isinstance(item, dict):
        raise InvalidPolicy("Statement must be an object")
    _validate_field_names(item, kind.fields)
    sid = item.get("Sid", "")
    if not isinstance(sid, str):
        raise _error("Sid must be a string", "Sid")
    effect = item.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise _error(f"Invalid effect: {str(effect)[:100]}", "Effect")
    principals, field = EVERY_HOLDER, ""
    if kind.has_principals:
        field = _present_field(item, "Principal")
        with _in_field(field):
            principals = PrincipalParser(kind.unsupported_principals).parse(item[field])
    actions = _parse_actions(item, kind.validate_action)
    resources = _EVERYTHING
    if kind.parse_resources is not None:
        resources = kind.parse_resources(item, has_variables)
    with _in_field("Condition"):
        conditions = _parse_conditions(
            item.get("Condition", {}), kind.validate_key, has_variables=has_variables
        )
    is_exclusion = field == "NotPrincipal"
    if is_exclusion and effect == "Allow" and kind.is_strict:
        raise _error("NotPrincipal needs the effect Deny", field)
    return Statement(effect == "Allow", principals, is_exclusion, actions, resources, tuple(conditions), sid)


def _present_field(item: Mapping[str, Json], name: str) -> str:
    """Return which of the fields ``name`` and ``Not`` + ``name`` a statement has; raise ``InvalidPolicy``."""
    found = [one for one in (name, f"Not{name}") if one in item]
    if len(found) != 1:
        text = f"Missing required field {name}" if not found else f"{name} and Not{name} exclude each other"
        raise _error(text, name)
    return found[0]


# --- actions ------------------------------------------------------------------------------------------


def _parse_actions(item: Mapping[str, Json], validate: Callable[[str, Glob], None]) -> Patterns:
    which = _present_field(item, "Action")
    globs = []
    with _in_field(which):
        for text in parse_texts(item[which], "Action"):
            glob = Glob(text.lower(), has_variables=False)
            if text != "*":
                validate(text, glob)
            globs.append(glob)
    names = frozenset(glob.text for glob in globs if glob.is_fixed)
    return Patterns(names, tuple(glob for glob in globs if not glob.is_fixed), which.startswith("Not"))


def _validate_action(text: str, glob: Glob) -> None:
    """Raise ``InvalidPolicy`` for a pattern that matches no action."""
    if not (text.lower() in ACTIONS if glob.is_fixed else any(map(glob.matches, ACTIONS))):
        raise InvalidPolicy("Policy has invalid action", text)


def _validate_bucket_action(text: str, glob: Glob) -> None:
    if not text.lower().startswith("s3:"):
        raise InvalidPolicy("Policy has invalid action", text)
    _validate_action(text, glob)


def _validate_trust_action(text: str, glob: Glob) -> None:
    if not any(map(glob.matches, _TRUST_ACTIONS)):
        raise InvalidPolicy("Policy has invalid action", text)


# --- resources ----------------------------------------------------------------------------------------


def _parse_bucket_resources(item: Mapping[str, Json], bucket: str, *, has_variables: bool) -> Resources:
    which = _present_field(item, "Resource")
    patterns = []
    for text in parse_texts(item[which], "Resource"):
        if text == "*":
            patterns.append(Resource(None))
            continue
        if not text.startswith(BUCKET_ARN_PREFIX):
            raise InvalidPolicy("Policy has invalid resource")
        name = text[len(BUCKET_ARN_PREFIX) :].partition("/")[0]
        glob = Glob(text[len(BUCKET_ARN_PREFIX) :], has_variables=has_variables)
        _validate_variables(glob, validate_condition_key)
        if not Glob(name, has_variables=False).matches(bucket):
            raise InvalidPolicy("Policy has invalid resource")
        patterns.append(Resource(glob))
    return Resources(tuple(patterns), which.startswith("Not"))


def _parse_identity_resources(item: Mapping[str, Json], has_variables: bool) -> Resources:
    which = _present_field(item, "Resource")
    with _in_field(which):
        patterns = tuple(
            _parse_identity_resource(text, has_variables=has_variables)
            for text in parse_texts(item[which], "Resource")
        )
    return Resources(patterns, which.startswith("Not"))


def _parse_identity_resource(text: str, *, has_variables: bool) -> Resource:
    """Return a resource of an identity policy; raise ``InvalidPolicy``.

    A bucket without an account is one of the caller's own account. The account is a plain name or ``*``: it
    could not be told from a bucket otherwise. ``*`` as the only name means all buckets of all accounts.
    """
    if text == "*":
        return Resource(None)
    if text.startswith(_IAM_ARN_PREFIXES):
        glob = Glob(text, has_variables=has_variables)
        _validate_variables(glob, validate_identity_key)
        return Resource(glob, is_arn=True)
    if not text.startswith(BUCKET_ARN_PREFIX) or text == BUCKET_ARN_PREFIX:
        raise InvalidPolicy("Policy has invalid resource", text)
    path, account = text[len(BUCKET_ARN_PREFIX) :], OWN_ACCOUNT
    bucket, *key = split_outside_variables(path, "/", 1)
    named = split_outside_variables(bucket, ":", 1)
    if len(named) == 2:
        account, path = named[0], "/".join((named[1], *key))
        if account != ANY_ACCOUNT and (not account or not Glob(account).is_fixed or "${" in account):
            raise InvalidPolicy("The account of a resource must be a name or *", text)
    elif path == "*":
        account = ANY_ACCOUNT
    glob = Glob(path, has_variables=has_variables)
    _validate_variables(glob, validate_identity_key)
    return Resource(glob, account)


def _validate_variables(glob: Glob, validate_key: ValidateKey) -> None:
    for name in glob.variable_names:
        try:
            validate_key(name)
        except InvalidPolicy:
            raise InvalidPolicy("Policy has an unknown variable", name)


# --- conditions ---------------------------------------------------------------------------------------


def _parse_conditions(value: Json, validate_key: ValidateKey, *, has_variables: bool) -> list[Condition]:
    if not isinstance(value, dict):
        raise InvalidPolicy("Condition must be an object")
    found = []
    for operator, keys in value.items():
        with _in_field(operator[:100]):
            if not isinstance(keys, dict) or not keys:
                raise InvalidPolicy("Condition must be an object of objects")
            for key, texts in keys.items():
                values = _condition_values(texts, validate_key, has_variables=has_variables)
                found.append(parse_condition(operator, key, values, validate_key))
    return found


def _condition_values(texts: Json, validate_key: ValidateKey, *, has_variables: bool) -> tuple[str, ...]:
    values = tuple(map(_condition_value, texts if isinstance(texts, list) else [texts]))
    if not has_variables:
        return tuple(text.replace("${", "${$}{") for text in values)
    for text in values:
        _validate_variables(Glob(text), validate_key)
    return values


def _condition_value(item: Json) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str | int | float):
        return str(item)
    raise InvalidPolicy("A condition compares texts, numbers and truths")


_IDENTITY = _Kind(
    POLICY_BYTES_MAX,
    IDENTITY_STATEMENTS_MAX,
    has_principals=False,
    parse_resources=_parse_identity_resources,
    validate_action=_validate_action,
    validate_key=validate_identity_key,
)
_SESSION = _Kind(
    SESSION_BYTES_MAX,
    IDENTITY_STATEMENTS_MAX,
    has_principals=False,
    parse_resources=_parse_identity_resources,
    validate_action=_validate_action,
    validate_key=validate_identity_key,
)
_TRUST = _Kind(
    POLICY_BYTES_MAX,
    IDENTITY_STATEMENTS_MAX,
    has_principals=True,
    parse_resources=None,
    validate_action=_validate_trust_action,
    validate_key=validate_trust_key,
    unsupported_principals=("Service",),
)
