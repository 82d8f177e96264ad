"""Evaluation of one policy: whether its statements allow or deny an action, and which of them decides."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from ipaddress import IPv4Network
from typing import NamedTuple

from swift.identity.policy.conditions import (
    RESTRICTING_KEYS,
    Condition,
    InvalidPolicy,
    PolicyContext,
    normalize_key,
    parse_network,
)
from swift.identity.policy.document import (
    ANY_ACCOUNT,
    OWN_ACCOUNT,
    BucketPolicy,
    Patterns,
    Policy,
    Resources,
    Statement,
)
from swift.identity.policy.patterns import Glob
from swift.identity.policy.principals import EVERY_HOLDER, Principal


class PolicyVerdict(Enum):
    """The verdict of policies on a request."""

    SILENT = "silent"
    ALLOW = "allow"
    DENY = "deny"


class PolicyRequest(NamedTuple):
    """An action (``s3:GetObject``) on a bucket, on a key in it, or on a record, and its context."""

    principal: Principal
    action: str
    bucket: str
    key: str
    context: PolicyContext
    #: The account of the resource, and True if it is the caller's own.
    account: str = ""
    is_own: bool = True
    #: The ARN of a user, role or other record; empty for buckets.
    arn: str = ""

    @property
    def resource(self) -> str:
        """The resource without the common prefix."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    def lookup(self, name: str) -> str | None:
        """Return the value of a variable; None if the request has none or several."""
        values = self.context.values(normalize_key(name))
        return values[0] if values is not None and len(values) == 1 else None


class Finding(NamedTuple):
    """The verdict of one policy."""

    verdict: PolicyVerdict
    #: The index of the statement that decides.
    place: int = -1
    #: The statement that allows names the caller, not only its account.
    names_caller: bool = False


_SILENT = Finding(PolicyVerdict.SILENT)


def evaluate_policy(policy: Policy, request: PolicyRequest) -> Finding:
    """Return what a policy says about a request: a Deny wins, then an Allow that names the caller."""
    found = _SILENT
    action, resource = request.action.lower(), request.resource
    for place, statement in enumerate(policy.statements):
        allows = statement.allows
        if (allows and found.names_caller) or not _matches_action(statement.actions, action):
            # Of what is allowed only a denial can change something.
            continue
        if not (
            _matches_resource(statement.resources, request, resource)
            and (statement.principals is EVERY_HOLDER or _concerns_caller(statement, request.principal))
            and _holds(statement.conditions, request)
        ):
            continue
        if not allows:
            return Finding(PolicyVerdict.DENY, place)
        names_caller = statement.principals is EVERY_HOLDER or _names_caller(statement, request.principal)
        if names_caller or found is _SILENT:
            found = Finding(PolicyVerdict.ALLOW, place, names_caller)
    return found


def _names_caller(statement: Statement, principal: Principal) -> bool:
    """Return True if an Allow is for the caller itself: to a caller without rights all of them are."""
    return (
        not principal.needs_named_account
        or statement.not_principal
        or statement.principals.names_caller(principal, allows=True)
    )


def combine_verdicts(verdicts: Iterable[PolicyVerdict]) -> PolicyVerdict:
    """Return the verdict on several actions: ALLOW if all are allowed, DENY if one is denied."""
    found = set(verdicts)
    if PolicyVerdict.DENY in found:
        return PolicyVerdict.DENY
    return PolicyVerdict.ALLOW if found == {PolicyVerdict.ALLOW} else PolicyVerdict.SILENT


def _matches_action(patterns: Patterns, action: str) -> bool:
    if action in patterns.names:
        return not patterns.negated
    for glob in patterns.globs:
        if glob.matches(action):
            return not patterns.negated
    return patterns.negated


def _matches_resource(resources: Resources, request: PolicyRequest, path: str) -> bool:
    for pattern in resources.patterns:
        glob = pattern.glob
        if glob is None:
            return not resources.negated
        if request.arn or pattern.is_arn:
            is_match = pattern.is_arn and bool(request.arn) and glob.matches(request.arn, request.lookup)
        else:
            account = pattern.account
            is_here = account in (ANY_ACCOUNT, request.account) or (account == OWN_ACCOUNT and request.is_own)
            is_match = is_here and glob.matches(path, request.lookup)
        if is_match:
            return not resources.negated
    return resources.negated


def _holds(conditions: tuple[Condition, ...], request: PolicyRequest) -> bool:
    return not conditions or all(condition.holds(request.context, request.lookup) for condition in conditions)


def _concerns_caller(statement: Statement, principal: Principal) -> bool:
    principals, allows = statement.principals, statement.allows
    if statement.not_principal:
        return not principals.spares(principal, allows=allows)
    return principals.names_caller(principal, allows=allows) or principals.names_account(principal)


# --- the public ---------------------------------------------------------------------------------------

#: An address range at least so narrow is not the public.
_NARROW_V4_BITS, _NARROW_V6_BITS = 8, 32


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
