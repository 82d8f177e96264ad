"""The rights of an identified caller: the one decision about a request, for the Swift API and for S3.

The rules are AWS's, for each action of a request:

1. A Deny that applies ends it, in a policy of the caller, of the bucket, or of a boundary.
2. Each boundary (a session's policy, the limits of an access key) must allow the action too. That holds for
   owners and operators, and no ACL passes it by.
3. An operator is allowed the rest.
4. In its own account the caller is allowed if it is the owner, if one of its policies allows, or if the
   bucket's policy allows and names the caller or all callers. A bucket's policy that names only the account
   leaves the decision to the caller's policies.
5. In another account the bucket's policy must allow, and the caller's own side too: by its policies, or
   because it owns its account.

Else the verdict is SILENT, and ACLs decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from swift.identity.policy.conditions import CALLER_KEYS, PolicyContext
from swift.identity.policy.document import BucketPolicy, IdentityPolicy, Policy, TrustPolicy
from swift.identity.policy.evaluate import (
    Finding,
    PolicyRequest,
    PolicyVerdict,
    combine_verdicts,
    evaluate_policy,
)
from swift.identity.policy.principals import Principal

BUCKET_POLICY, TRUST_POLICY = "bucket policy", "trust policy"


class NamedPolicy(NamedTuple):
    """A policy and the name by which explanations call it."""

    name: str
    policy: IdentityPolicy


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """Actions on one resource, all of which must be allowed, and their context."""

    actions: tuple[str, ...]
    #: The account of the resource.
    account: str
    #: Asked for values only if a condition or a variable needs them.
    context: PolicyContext
    bucket: str = ""
    key: str = ""
    #: The ARN of a user, role or other record; empty for accounts, buckets and keys.
    arn: str = ""


class Reason(NamedTuple):
    """A part of an explanation: what a policy or the caller's standing says about an action."""

    action: str
    verdict: PolicyVerdict
    #: The name of the policy, or ``owner`` and ``operator`` for the caller's standing.
    source: str
    #: The Sid of the statement or its place, such as ``Statement[2]``; empty if no statement decides.
    statement: str = ""

    def __str__(self) -> str:
        place = f" {self.statement}" if self.statement else ""
        return f"{self.action}: {self.verdict.value} by {self.source}{place}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a request; ``reasons`` are filled in by ``Rights.explain`` only."""

    verdict: PolicyVerdict
    reasons: tuple[Reason, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """True if policies allow the request."""
        return self.verdict is PolicyVerdict.ALLOW


_DECISIONS = {verdict: Decision(verdict) for verdict in PolicyVerdict}


class _CallerContext:
    """The context of a request with the caller's values from its rights."""

    __slots__ = ("_context", "_caller_values")

    def __init__(self, context: PolicyContext, caller_values: Mapping[str, str]):
        self._context = context
        self._caller_values = caller_values

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a condition key; None if the request does not have it."""
        if key not in CALLER_KEYS:
            return self._context.values(key)
        value = self._caller_values.get(key)
        return None if value is None else (value,)


@dataclass(frozen=True)
class Rights:
    """The rights of a caller."""

    principal: Principal
    #: The caller's own account.
    account: str
    #: All rights in the own account, unless a policy denies.
    is_owner: bool = False
    #: All rights everywhere, unless a policy denies.
    is_operator: bool = False
    #: Policies of the user and its groups, or of the role.
    policies: tuple[NamedPolicy, ...] = ()
    #: Policies that must allow too: of the session, and the limits of the access key.
    boundaries: tuple[NamedPolicy, ...] = ()
    #: The values of ``CALLER_KEYS`` in lower case.
    condition_values: Mapping[str, str] = field(default_factory=dict)
    #: True if the verdict does not follow from the account alone.
    has_policies: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_policies", bool(self.policies or self.boundaries))

    def verdict_in(self, account: str) -> PolicyVerdict:
        """Return the verdict in an account if neither the caller nor the bucket has policies."""
        allowed = self.is_operator or (self.is_owner and account == self.account)
        return PolicyVerdict.ALLOW if allowed else PolicyVerdict.SILENT

    def decide(self, request: AccessRequest, bucket_policy: BucketPolicy | None) -> Decision:
        """Return the decision about a request."""
        if bucket_policy is None and not self.has_policies:
            return _DECISIONS[self.verdict_in(request.account)]
        return _DECISIONS[self._combine(request, bucket_policy, None)]

    def explain(self, request: AccessRequest, bucket_policy: BucketPolicy | None) -> Decision:
        """Return the decision about a request, with what made it."""
        reasons: list[Reason] = []
        verdict = self._combine(request, bucket_policy, reasons)
        return Decision(verdict, tuple(reasons))

    def decide_assumption(self, request: AccessRequest, trust: TrustPolicy) -> Decision:
        """Return the decision about assuming a role.

        The role's trust policy must allow it, also to owners and operators. If it names only the caller's
        account, or the role is one of another account, the caller's own side must allow it too.
        """
        reasons: list[Reason] = []
        each = self._policy_requests(request)
        verdict = combine_verdicts(self._decide_trust(one, trust, reasons) for one in each)
        return Decision(verdict, tuple(reasons))

    def _combine(
        self, request: AccessRequest, bucket_policy: BucketPolicy | None, reasons: list[Reason] | None
    ) -> PolicyVerdict:
        """Return DENY if an action is denied, ALLOW if all are allowed."""
        verdict = PolicyVerdict.ALLOW if request.actions else PolicyVerdict.SILENT
        for each in self._policy_requests(request):
            found = self._decide_action(each, bucket_policy, reasons)
            if found is PolicyVerdict.DENY:
                return found
            if found is PolicyVerdict.SILENT:
                verdict = found
        return verdict

    # one action

    def _policy_requests(self, request: AccessRequest) -> Iterator[PolicyRequest]:
        """Yield the request for each of its actions."""
        context = _CallerContext(request.context, self.condition_values)
        for action in request.actions:
            yield PolicyRequest(
                *(self.principal, action, request.bucket, request.key, context),
                *(request.account, request.account == self.account, request.arn),
            )

    def _decide_action(
        self, request: PolicyRequest, bucket_policy: BucketPolicy | None, reasons: list[Reason] | None
    ) -> PolicyVerdict:
        own = self._verdict_of_policies(request, reasons)
        granted = _evaluate(bucket_policy, request, BUCKET_POLICY, reasons)
        if own is PolicyVerdict.DENY or granted.verdict is PolicyVerdict.DENY:
            return PolicyVerdict.DENY
        if not self._is_within_boundaries(request, reasons):
            return PolicyVerdict.DENY
        if self.is_operator:
            return _by_standing(request, OPERATOR, reasons)
        allows = own is PolicyVerdict.ALLOW
        if request.is_own:
            if self.is_owner:
                return _by_standing(request, OWNER, reasons)
            is_allowed = allows or granted.names_caller
        else:
            is_allowed = granted.verdict is PolicyVerdict.ALLOW and (allows or self.is_owner)
        return PolicyVerdict.ALLOW if is_allowed else PolicyVerdict.SILENT

    def _decide_trust(
        self, request: PolicyRequest, trust: TrustPolicy, reasons: list[Reason]
    ) -> PolicyVerdict:
        own = self._verdict_of_policies(request, reasons)
        granted = _evaluate(trust, request, TRUST_POLICY, reasons)
        if own is PolicyVerdict.DENY or granted.verdict is PolicyVerdict.DENY:
            return PolicyVerdict.DENY
        if not self._is_within_boundaries(request, reasons):
            return PolicyVerdict.DENY
        allows = own is PolicyVerdict.ALLOW or self.is_operator or self.is_owner
        is_direct = request.is_own and granted.names_caller
        is_allowed = granted.verdict is PolicyVerdict.ALLOW and (is_direct or allows)
        return PolicyVerdict.ALLOW if is_allowed else PolicyVerdict.SILENT

    def _verdict_of_policies(self, request: PolicyRequest, reasons: list[Reason] | None) -> PolicyVerdict:
        verdict = PolicyVerdict.SILENT
        for name, policy in self.policies:
            found = _evaluate(policy, request, name, reasons).verdict
            if found is PolicyVerdict.DENY:
                return found
            if found is PolicyVerdict.ALLOW:
                verdict = found
        return verdict

    def _is_within_boundaries(self, request: PolicyRequest, reasons: list[Reason] | None) -> bool:
        for name, policy in self.boundaries:
            found = evaluate_policy(policy, request)
            if found.verdict is not PolicyVerdict.ALLOW:
                if reasons is not None:
                    place = _place_of(policy, found.place)
                    reasons.append(Reason(request.action, PolicyVerdict.DENY, name, place))
                return False
        return True


OWNER, OPERATOR = "owner", "operator"
_NO_FINDING = Finding(PolicyVerdict.SILENT)


def _evaluate(
    policy: Policy | None, request: PolicyRequest, name: str, reasons: list[Reason] | None
) -> Finding:
    """Return what a policy says; add it to the reasons unless it is silent."""
    if policy is None:
        return _NO_FINDING
    found = evaluate_policy(policy, request)
    if reasons is not None and found.verdict is not PolicyVerdict.SILENT:
        reasons.append(Reason(request.action, found.verdict, name, _place_of(policy, found.place)))
    return found


def _by_standing(request: PolicyRequest, standing: str, reasons: list[Reason] | None) -> PolicyVerdict:
    if reasons is not None:
        reasons.append(Reason(request.action, PolicyVerdict.ALLOW, standing))
    return PolicyVerdict.ALLOW


def _place_of(policy: Policy, index: int) -> str:
    """Return the Sid of a statement or its place; empty for none."""
    return "" if index < 0 else policy.statements[index].sid or f"Statement[{index}]"


def decide_web_identity(trust: TrustPolicy, provider: str, context: PolicyContext) -> PolicyVerdict:
    """Return the verdict of a role's trust policy on a web identity, whose claims are in the context."""
    request = PolicyRequest(Principal(provider=provider), WEB_IDENTITY_ACTION, "", "", context)
    return evaluate_policy(trust, request).verdict


WEB_IDENTITY_ACTION = "sts:AssumeRoleWithWebIdentity"
