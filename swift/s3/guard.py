"""What a bucket's rules decide before an operation: its policy first, then what of its ACLs counts.

A policy that denies ends it. One that allows lets the operation do all that it needs in the bucket. Where it
is silent the ACLs decide as if there were none, those left out that the public access block or the ownership
controls leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from swift.http import fields
from swift.s3.account import Account, Rights, trusted
from swift.s3.acls import Acl, is_public_grant
from swift.s3.call import Call
from swift.s3.errors import S3Error
from swift.s3.facts import RequestFacts, caller_of
from swift.s3.policy.actions import action_of, actions_of
from swift.s3.policy.decide import Ask, PolicyVerdict, decide, together
from swift.s3.rules import ENFORCED, BucketRules, rules_of
from swift.s3.tags import Tags, parsed_tags

#: Operations of the bucket's own account: a policy cannot give them to others or take them from the owner.
_OF_OWN_ACCOUNT = frozenset(("GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"))
#: Of these each key is asked for by itself.
_OF_KEYS = frozenset(("DeleteObjects",))


def guard(call: Call) -> None:
    """Raise ``S3Error`` when the rules of the bucket forbid an operation; note what they allow."""
    if not call.bucket or call.endpoint.operation.name == "CreateBucket":
        return
    account = call.account
    rules = rules_of(account.settings_of(call.bucket), call.bucket)
    if rules is None:
        return
    account.identify()
    name = call.endpoint.operation.name
    _check_payer(call, rules)
    _check_acl_headers(call.headers, rules)
    account.rights = _rights(rules)
    if name in _OF_KEYS:
        return
    facts = _facts(call, call.bucket, call.key, call.params.get("versionId", ""))
    actions = actions_of(name, call.params, call.headers)
    verdict = _verdict(call, rules, actions, call.bucket, call.key, facts)
    if name in _OF_OWN_ACCOUNT:
        if account.home != account.name:
            raise S3Error("AccessDenied")
    elif verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    if verdict is PolicyVerdict.ALLOW:
        account.trusted_bucket = call.bucket


def check_owner(account: Account, expected: str | None) -> None:
    """Raise ``S3Error`` when a bucket is not of the account that the caller expects.

    An account is named by its name; the caller's own also by the access key, as documents name owners.
    """
    if expected is None:
        return
    account.identify()
    is_own = account.home == account.name and expected == account.owner
    if not is_own and expected != account.name:
        raise S3Error("AccessDenied")


def source_account(call: Call, bucket: str, key: str, version: str) -> Account:
    """With which rights the source of a copy is read; raises ``S3Error`` if a policy denies it.

    What is allowed in the bucket of the copy is not in that of the source.
    """
    account = call.account
    check_owner(account, call.headers.get("x-amz-source-expected-bucket-owner"))
    rules = rules_of(account.settings_of(bucket), bucket)
    if rules is None:
        own = not account.trusted_bucket and account.rights is Rights.ALL
        return account if own else account.with_rights(Rights.ALL)
    verdict = _verdict_on_key(call, "GetObject", bucket, key, version)
    is_allowed = verdict is PolicyVerdict.ALLOW
    return account.with_rights(_rights(rules), trusted_bucket=bucket if is_allowed else "")


def guarded_deletion(call: Call, key: str, version: str | None) -> Call:
    """How one of many keys is deleted; raises ``S3Error`` if a policy denies it.

    What one key is allowed is no other's, though they are deleted at the same time.
    """
    verdict = _verdict_on_key(call, "DeleteObject", call.bucket, key, version or "")
    if verdict is not PolicyVerdict.ALLOW:
        return call
    return replace(call, account=trusted(call.account, call.bucket))


def _rights(rules: BucketRules) -> Rights:
    """What of the ACLs counts."""
    if rules.ownership == ENFORCED:
        return Rights.OWN
    return Rights.NOT_PUBLIC if "IgnorePublicAcls" in rules.blocks else Rights.ALL


def _verdict_on_key(call: Call, operation: str, bucket: str, key: str, version: str) -> PolicyVerdict:
    account = call.account
    rules = rules_of(account.settings_of(bucket), bucket)
    if rules is None:
        return PolicyVerdict.SILENT
    account.identify()
    action = action_of(operation, versioned=bool(version))
    verdict = _verdict(call, rules, (action,), bucket, key, _facts(call, bucket, key, version))
    if verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    return verdict


def _facts(call: Call, bucket: str, key: str, version: str) -> RequestFacts:
    def tags() -> Tags:
        return _tags(call, bucket, key, version)

    return RequestFacts(call, tags, version=version)


def _verdict(
    call: Call, rules: BucketRules, actions: Sequence[str], bucket: str, key: str, facts: RequestFacts
) -> PolicyVerdict:
    policy = rules.policy
    if policy is None:
        return PolicyVerdict.SILENT
    caller = caller_of(call)
    verdict = together(decide(policy, Ask(caller, action, bucket, key, facts)) for action in actions)
    account = call.account
    if "RestrictPublicBuckets" in rules.blocks and rules.is_public and account.home != account.name:
        # What a public policy allows is for the bucket's own account alone.
        return PolicyVerdict.DENY
    return verdict


def _tags(call: Call, bucket: str, key: str, version: str) -> Tags:
    """The tags of an object, read with all rights: they are for the policy."""
    if not key:
        return {}
    query = f"version-id={quote(version, safe='')}" if version else ""
    head = trusted(call.account, bucket).head(bucket, key, query=query)
    return parsed_tags(head.headers.get(fields.TRANSIENT_S3_TAGGING)) if head.is_success else {}


def _check_payer(call: Call, rules: BucketRules) -> None:
    """Raise ``S3Error`` for a caller of another account who does not say that it pays."""
    if not rules.requester_pays or (call.account.home and call.account.home == call.account.name):
        return
    said = call.headers.get("x-amz-request-payer") or call.params.get("x-amz-request-payer")
    if call.account.is_anonymous or said != "requester":
        raise S3Error("AccessDenied", "Access Denied: the requester must say that it pays.")


def _check_acl_headers(headers: Mapping[str, str], rules: BucketRules) -> None:
    """Raise ``S3Error`` for an ACL that a request must not bring."""
    if "BlockPublicAcls" in rules.blocks and is_public_grant(headers):
        raise S3Error("AccessDenied")
    if rules.ownership == ENFORCED and _brings_foreign_acl(headers):
        raise S3Error("AccessControlListNotSupported")


def check_acl(acl: Acl, rules: BucketRules) -> None:
    """Raise ``S3Error`` for an ACL that a bucket's rules do not let be set."""
    if "BlockPublicAcls" in rules.blocks and acl.is_public:
        raise S3Error("AccessDenied")
    if rules.ownership == ENFORCED and not acl.is_private:
        raise S3Error("AccessControlListNotSupported")


def _brings_foreign_acl(headers: Mapping[str, str]) -> bool:
    """Whether headers say an ACL other than that all is the bucket owner's."""
    canned = headers.get("x-amz-acl", "private")
    if canned not in ("private", "bucket-owner-full-control"):
        return True
    return any(name.startswith("x-amz-grant-") for name in headers)


def rules_of_bucket(call: Call) -> BucketRules:
    """The rules of the bucket of a request, those of a new one if there are none; raises ``S3Error``."""
    return rules_of(call.account.settings_of(call.bucket), call.bucket) or BucketRules()
