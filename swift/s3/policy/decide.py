"""What a policy says of a request: an explicit Deny wins over any Allow; silence is neither."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network

from swift.s3.policy.conditions import NARROW, BadPolicy, Condition, PolicyFacts, network_of
from swift.s3.policy.document import BucketPolicy, Patterns, Principals, Statement
from swift.s3.policy.glob import Glob, Lookup

#: An address range at least so narrow is not the public.
_V4_BITS, _V6_BITS = 8, 32


class PolicyVerdict(Enum):
    """What a policy says."""

    SILENT = "silent"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: an access key and the names of its account; all empty for an anonymous caller."""

    user: str = ""
    accounts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked: an action (``s3:GetObject``) on a bucket or on a key in it, and what is known of it."""

    caller: Caller
    action: str
    bucket: str
    key: str
    facts: PolicyFacts

    @property
    def resource(self) -> str:
        """The resource without what all have in front."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket


def decide(policy: BucketPolicy, ask: Ask) -> PolicyVerdict:
    """What a policy says of what is asked."""
    verdict = PolicyVerdict.SILENT
    for statement in policy.statements:
        if statement.allows and verdict is PolicyVerdict.ALLOW:
            # Only a denial can change it.
            continue
        if _applies(statement, ask):
            if not statement.allows:
                return PolicyVerdict.DENY
            verdict = PolicyVerdict.ALLOW
    return verdict


def together(verdicts: Iterable[PolicyVerdict]) -> PolicyVerdict:
    """Of a request that needs several actions: all must be allowed, none may be denied."""
    found = set(verdicts)
    if PolicyVerdict.DENY in found:
        return PolicyVerdict.DENY
    return PolicyVerdict.ALLOW if found == {PolicyVerdict.ALLOW} else PolicyVerdict.SILENT


def _applies(statement: Statement, ask: Ask) -> bool:
    lookup = _lookup(ask.facts)
    return (
        _any(statement.actions, ask.action.lower(), lookup)
        and _any(statement.resources, ask.resource, lookup)
        and _is_one_of(statement.principals, ask.caller) != statement.not_principal
        and all(condition.holds(ask.facts, lookup) for condition in statement.conditions)
    )


def _lookup(facts: PolicyFacts) -> Lookup:
    def value_of(name: str) -> str | None:
        start, slash, rest = name.partition("/")
        values = facts.values(start.lower() + slash + rest)
        return values[0] if values is not None and len(values) == 1 else None

    return value_of


def _any(patterns: Patterns, text: str, lookup: Lookup) -> bool:
    return any(glob.matches(text, lookup) for glob in patterns.globs) != patterns.negated


def _is_one_of(principals: Principals, caller: Caller) -> bool:
    if principals.anybody:
        return True
    if not caller.user:
        return False
    return caller.user in principals.users or not principals.accounts.isdisjoint(caller.accounts)


# --- the public -----------------------------------------------------------------------------------------


def is_public(policy: BucketPolicy) -> bool:
    """Whether a policy allows everybody something, its conditions notwithstanding that leave only few."""
    return any(
        statement.allows
        and (statement.principals.anybody or statement.not_principal)
        and not any(map(_is_narrow, statement.conditions))
        for statement in policy.statements
    )


def _is_narrow(condition: Condition) -> bool:
    """Whether a condition holds for few callers: those of fixed names or of a narrow range of addresses."""
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
