"""The one access check: whether an operation may begin, decided before anything is done.

The rules of the bucket come first: its policy, its public access block, its ownership controls. A policy that
denies ends the request. One that allows lets the operation do all that it needs in the bucket. Where it is
silent ACLs decide, without those that the public access block or the ownership controls switch off; with
``s3_acl`` these are the ACLs of S3 (spec: middleware.md §22.3).

``authorize`` returns the call with the rights that were found. GetObject and HeadObject are different: an ACL
or the tags of an object are in the answer to the request itself, so ``open_object`` decides on that, before
its first byte goes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.response import Response
from swift.s3.api.call import Call, PendingRead
from swift.s3.api.put import version_query
from swift.s3.api.router import PathLevel
from swift.s3.api.tags import Tags, parsed_tags
from swift.s3.auth.session import Rights, Session, trusted
from swift.s3.errors import S3Error
from swift.s3.policy.acls import (
    Acl,
    acl_of_headers,
    has_acl_headers,
    is_public_grant,
    private_acl,
    stored_acl,
    swift_acl,
    swift_acl_of_document,
)
from swift.s3.policy.context import (
    ENFORCED,
    OWNERSHIP_KEY,
    PREFERRED,
    BucketRules,
    ReadTags,
    RequestContext,
    principal_of,
    rules_of,
)
from swift.s3.policy.document import (
    PolicyRequest,
    PolicyVerdict,
    action_of,
    actions_of,
    decide,
    together,
)

# --- the check ----------------------------------------------------------------------------------------

#: Operations of the bucket's own account: a policy cannot give them to others or take them from the owner.
_OF_OWN_ACCOUNT = frozenset(("GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"))
#: Each key of these is authorized by itself.
_OF_KEYS = frozenset(("DeleteObjects",))
#: These are authorized on the answer to their own request.
_READS = frozenset(("GetObject", "HeadObject"))
#: The key of these, and their signature, are in their bodies.
_LATER = frozenset(("PostObject",))


def authorize(call: Call, *, is_read: bool = False) -> Call:
    """Return the call with the rights of its caller; raise ``S3Error`` if it may not be done.

    ``is_read``: the body of a form was read.
    """
    if call.endpoint.operation.name in _LATER and not is_read:
        return call
    if call.session.is_foreign:
        call.session.identify()
    if call.bucket:
        check_owner(call.session, call.headers.get("x-amz-expected-bucket-owner"))
    call = _authorize_by_rules(call)
    if call.settings.s3_acl and not call.session.trusted_bucket:
        call = _authorize_by_acl(call)
    return call


def _authorize_by_rules(call: Call) -> Call:
    """Return the call with the rights that the rules of the bucket give; raise ``S3Error``."""
    name = call.endpoint.operation.name
    if not call.bucket or name == "CreateBucket":
        return call
    session = call.session
    rules = rules_of(session.settings_of(call.bucket), call.bucket)
    if rules is None:
        return call
    session.identify()
    _check_payer(call, rules)
    _check_acl_headers(call.headers, rules)
    session = session.with_rights(_acl_rights(rules))
    call = replace(call, session=session)
    if name in _OF_KEYS:
        return call
    actions = actions_of(name, call.params, call.headers)

    def verdict_with(tags: ReadTags) -> PolicyVerdict:
        context = RequestContext(call, tags, version=call.params.get("versionId", ""))
        return _verdict(call, rules, actions, call.bucket, call.key, context)

    if name in _READS:
        try:
            verdict = verdict_with(_tags_are_needed)
        except _TagsNeeded:
            return replace(call, pending=PendingRead(lambda tags: verdict_with(lambda: tags)))
    else:
        verdict = verdict_with(lambda: _tags(call, call.bucket, call.key, call.params.get("versionId", "")))
    if name in _OF_OWN_ACCOUNT:
        if session.own_account != session.account:
            raise S3Error("AccessDenied")
    elif verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    if verdict is PolicyVerdict.ALLOW:
        return replace(call, session=trusted(session, call.bucket))
    return call


class _TagsNeeded(Exception):
    """A policy asks for the tags of an object that is not read yet."""


def _tags_are_needed() -> Tags:
    raise _TagsNeeded


def _authorize_by_acl(call: Call) -> Call:
    """Return the call with all rights in its bucket; raise ``S3Error`` if the ACLs do not allow it."""
    name = call.endpoint.operation.name
    need = ACCESS.get(name, _BUCKET_OWNER)
    if need is None or not call.bucket:
        return call
    call.session.identify()
    if name in _READS:
        return call if call.pending is not None else replace(call, pending=PendingRead())
    allowed = replace(call, session=trusted(call.session, call.bucket))
    if need.level is PathLevel.OBJECT:
        found = object_acl(allowed, call.bucket, call.key)
    else:
        found = bucket_acl(allowed, call.bucket)
    require_permission(allowed, found, need.permission)
    return allowed


# --- reads, authorized on their answer ----------------------------------------------------------------


def open_object(call: Call, headers: HeaderMap, query: str) -> tuple[Call, Response]:
    """Read the object of a GetObject or HeadObject, authorized on the answer; raise ``S3Error``.

    Return the call with the rights that were found too.
    """
    method = call.request.method
    if call.pending is None:
        return call, _opened(call, method, headers, query)
    allowed = replace(call, session=trusted(call.session, call.bucket), pending=None)
    response = _opened(allowed, method, headers, query)
    try:
        if _is_allowed(allowed, call.pending, response):
            return allowed, response
    except BaseException:
        _release(response)
        raise
    # The policy is silent, so Swift's ACLs decide about a request of its own.
    _release(response)
    call = replace(call, pending=None)
    return call, _opened(call, method, headers, query)


def authorize_read(call: Call) -> None:
    """Raise ``S3Error`` if an object may not be read by a call that will not read it."""
    if call.pending is not None:
        allowed = replace(call, session=trusted(call.session, call.bucket), pending=None)
        _is_allowed(allowed, call.pending, None)


def _opened(call: Call, method: str, headers: HeaderMap, query: str) -> Response:
    session = call.session
    return session.open(session.subrequest(method, call.bucket, call.key, headers=headers, query=query))


def _release(response: Response) -> None:
    response.discard()
    response.report_end(0, False)


def _is_allowed(call: Call, pending: PendingRead, response: Response | None) -> bool:
    """Return True if an object may be read, False if Swift's ACLs are to say it; raise ``S3Error``."""
    if pending.verdict is not None:
        tags = _tags_in(response)
        if tags is None:
            tags = _tags(call, call.bucket, call.key, call.params.get("versionId", ""))
        verdict = pending.verdict(tags)
        if verdict is PolicyVerdict.DENY:
            raise S3Error("AccessDenied")
        if verdict is PolicyVerdict.ALLOW:
            return True
    if not call.settings.s3_acl:
        return False
    require_permission(call, _acl_in(call, response), "READ")
    return True


def _tells_of_object(response: Response, name: str) -> bool:
    """Return True if an answer has the metadata of its object, which not all refusals have."""
    return response.status in (200, 206) or name in response.headers


def _tags_in(response: Response | None) -> Tags | None:
    """Return the tags of the object of an answer; None if the answer does not tell."""
    if response is not None and _tells_of_object(response, fields.TRANSIENT_S3_TAGGING):
        return parsed_tags(response.headers.get(fields.TRANSIENT_S3_TAGGING))
    return {} if response is not None and response.status == 404 else None


def _acl_in(call: Call, response: Response | None) -> Acl | None:
    """Return the ACL of the object of an answer, from another request if need be; raise ``S3Error``."""
    if response is not None and _tells_of_object(response, fields.SYSMETA_S3_OBJECT_ACL):
        return stored_acl(response.headers.get(fields.SYSMETA_S3_OBJECT_ACL))
    if response is not None and response.status == 404:
        return _missing_acl(call, call.bucket)
    return object_acl(call, call.bucket, call.key)


# --- owners, sources, keys ----------------------------------------------------------------------------


def check_owner(session: Session, expected: str | None) -> None:
    """Raise ``S3Error`` when a bucket is not of the account that the caller expects.

    An account is named by its name; the caller's own also by the access key, as documents name owners.
    """
    if expected is None:
        return
    session.identify()
    is_own = session.own_account == session.account and expected == session.owner
    if not is_own and expected != session.account:
        raise S3Error("AccessDenied")


def authorize_source(call: Call, bucket: str, key: str, version: str) -> Session:
    """Return the session that reads the source of a copy; raise ``S3Error`` if a policy denies it.

    What is allowed in the bucket of the copy is not in that of the source.
    """
    session = call.session
    check_owner(session, call.headers.get("x-amz-source-expected-bucket-owner"))
    rules = rules_of(session.settings_of(bucket), bucket)
    if rules is None:
        own = not session.trusted_bucket and session.rights is Rights.ALL
        return session if own else session.with_rights(Rights.ALL)
    verdict = _verdict_on_key(call, "GetObject", bucket, key, version)
    is_allowed = verdict is PolicyVerdict.ALLOW
    return session.with_rights(_acl_rights(rules), trusted_bucket=bucket if is_allowed else "")


def authorize_deletion(call: Call, key: str, version: str | None) -> Call:
    """Return the call for one of many keys; raise ``S3Error`` if a policy denies its deletion.

    What one key is allowed is no other's, though they are deleted at the same time.
    """
    verdict = _verdict_on_key(call, "DeleteObject", call.bucket, key, version or "")
    if verdict is not PolicyVerdict.ALLOW:
        return call
    return replace(call, session=trusted(call.session, call.bucket))


def _acl_rights(rules: BucketRules) -> Rights:
    """Return the part of Swift's ACLs that counts."""
    if rules.ownership == ENFORCED:
        return Rights.OWN
    return Rights.NOT_PUBLIC if "IgnorePublicAcls" in rules.blocks else Rights.ALL


def _verdict_on_key(call: Call, operation: str, bucket: str, key: str, version: str) -> PolicyVerdict:
    session = call.session
    rules = rules_of(session.settings_of(bucket), bucket)
    if rules is None:
        return PolicyVerdict.SILENT
    session.identify()
    action = action_of(operation, versioned=bool(version))
    verdict = _verdict(call, rules, (action,), bucket, key, _context(call, bucket, key, version))
    if verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    return verdict


def _context(call: Call, bucket: str, key: str, version: str) -> RequestContext:
    def tags() -> Tags:
        return _tags(call, bucket, key, version)

    return RequestContext(call, tags, version=version)


def _verdict(
    call: Call, rules: BucketRules, actions: Sequence[str], bucket: str, key: str, context: RequestContext
) -> PolicyVerdict:
    policy = rules.policy
    if policy is None:
        return PolicyVerdict.SILENT
    principal = principal_of(call)
    verdict = together(
        decide(policy, PolicyRequest(principal, action, bucket, key, context)) for action in actions
    )
    session = call.session
    if "RestrictPublicBuckets" in rules.blocks and rules.is_public and session.own_account != session.account:
        # What a public policy allows is for the bucket's own account alone.
        return PolicyVerdict.DENY
    return verdict


def _tags(call: Call, bucket: str, key: str, version: str) -> Tags:
    """Return the tags of an object, read with all rights: they are for the policy."""
    if not key:
        return {}
    query = f"version-id={quote(version, safe='')}" if version else ""
    head = trusted(call.session, bucket).head(bucket, key, query=query)
    return parsed_tags(head.headers.get(fields.TRANSIENT_S3_TAGGING)) if head.is_success else {}


def _check_payer(call: Call, rules: BucketRules) -> None:
    """Raise ``S3Error`` for a caller of another account who does not say that it pays."""
    if not rules.requester_pays or (
        call.session.own_account and call.session.own_account == call.session.account
    ):
        return
    said = call.headers.get("x-amz-request-payer") or call.params.get("x-amz-request-payer")
    if call.session.is_anonymous or said != "requester":
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
    """Return True if headers say an ACL other than that all is the bucket owner's."""
    canned = headers.get("x-amz-acl", "private")
    if canned not in ("private", "bucket-owner-full-control"):
        return True
    return any(name.startswith("x-amz-grant-") for name in headers)


def rules_of_bucket(call: Call) -> BucketRules:
    """Return the rules of the bucket of a request, those of a new one if there are none.

    Raise ``S3Error``.
    """
    return rules_of(call.session.settings_of(call.bucket), call.bucket) or BucketRules()


# --- ACLs ---------------------------------------------------------------------------------------------

OWNER = "OWNER"


class Need(NamedTuple):
    """A permission on the bucket or on the object of a request."""

    level: PathLevel
    permission: str


_BUCKET_READ, _BUCKET_WRITE = Need(PathLevel.BUCKET, "READ"), Need(PathLevel.BUCKET, "WRITE")
_OBJECT_READ, _BUCKET_OWNER = Need(PathLevel.OBJECT, "READ"), Need(PathLevel.BUCKET, OWNER)
#: Operation → what it needs. Of others on a bucket or key the caller must own the bucket.
ACCESS: dict[str, Need | None] = {
    # Swift decides who may make containers and see all of them.
    "ListBuckets": None,
    "CreateBucket": None,
    **dict.fromkeys(("HeadBucket", "ListObjects", "ListObjectsV2", "ListObjectVersions"), _BUCKET_READ),
    **dict.fromkeys(("ListMultipartUploads",), _BUCKET_READ),
    **dict.fromkeys(("PutObject", "CopyObject", "DeleteObject", "DeleteObjects"), _BUCKET_WRITE),
    "PostObject": _BUCKET_WRITE,
    **dict.fromkeys(("CreateMultipartUpload", "UploadPart", "UploadPartCopy"), _BUCKET_WRITE),
    **dict.fromkeys(("CompleteMultipartUpload", "AbortMultipartUpload", "ListParts"), _BUCKET_WRITE),
    **dict.fromkeys(("GetObject", "HeadObject", "GetObjectAttributes"), _OBJECT_READ),
    "GetBucketAcl": Need(PathLevel.BUCKET, "READ_ACP"),
    "PutBucketAcl": Need(PathLevel.BUCKET, "WRITE_ACP"),
    "GetObjectAcl": Need(PathLevel.OBJECT, "READ_ACP"),
    "PutObjectAcl": Need(PathLevel.OBJECT, "WRITE_ACP"),
}


def require_permission(call: Call, found: Acl | None, permission: str) -> None:
    """Raise ``S3Error`` when an ACL does not allow something; None is what has no owner."""
    if found is None:
        if not call.settings.allow_no_owner:
            raise S3Error("AccessDenied")
        return
    user, rights = call.session.owner, call.session.rights
    if permission == OWNER or rights is Rights.OWN:
        allowed = user == found.owner
    else:
        allowed = found.allows(user, permission, publicly=rights is Rights.ALL)
    if not allowed:
        raise S3Error("AccessDenied")


def bucket_acl(call: Call, bucket: str) -> Acl | None:
    """Return the stored ACL of a bucket; raise ``S3Error`` when it is not there."""
    info = call.session.bucket_info(bucket)
    return stored_acl(wire_value(info.sysmeta.get("s3api-acl", "")))


def object_acl(call: Call, bucket: str, key: str) -> Acl | None:
    """Return the stored ACL of an object; raise ``S3Error``.

    Only a caller who may list the bucket learns that an object is missing.
    """
    head = call.session.head(bucket, key, query=version_query(call))
    if head.is_success or head.status == 412:
        return stored_acl(head.headers.get(fields.SYSMETA_S3_OBJECT_ACL))
    # The operation itself answers the error.
    return _missing_acl(call, bucket) if head.status == 404 else private_acl(call.session.owner)


def _missing_acl(call: Call, bucket: str) -> Acl:
    require_permission(call, bucket_acl(call, bucket), "READ")
    return private_acl(call.session.owner)


# --- new things ---------------------------------------------------------------------------------------


def new_bucket_acl(call: Call) -> HeaderMap:
    """Return the headers of a new container that say what its ACL is; raise ``S3Error``."""
    headers, owner = call.headers, call.session.owner
    acl = acl_of_headers(headers, owner, owner)
    if call.settings.s3_acl:
        return {fields.SYSMETA_S3_BUCKET_ACL: wire_value((acl or private_acl(owner)).stored())}
    if acl is None:
        return {}
    return swift_acl(headers["x-amz-acl"]) if "x-amz-acl" in headers else swift_acl_of_document(acl)


def new_object_acl(call: Call, *, name: str = fields.SYSMETA_S3_OBJECT_ACL) -> HeaderMap:
    """Return the metadata of a new object that says what its ACL is; without ``s3_acl`` objects have none."""
    headers, owner = call.headers, call.session.owner
    if not call.settings.s3_acl:
        if "x-amz-acl" in headers:
            # Refuse what neither the object nor its container can have.
            swift_acl(headers["x-amz-acl"])
        return {}
    bucket_owner = owner
    if has_acl_headers(headers):
        found = bucket_acl(call, call.bucket)
        bucket_owner = found.owner if found is not None else owner
        if headers.get("x-amz-acl") == "bucket-owner-full-control" and _is_preferred(call):
            return {name: wire_value(private_acl(bucket_owner).stored())}
    acl = acl_of_headers(headers, owner, bucket_owner) or private_acl(owner)
    return {name: wire_value(acl.stored())}


def _is_preferred(call: Call) -> bool:
    """Return True if the bucket's owner becomes that of objects that are given to it."""
    return call.session.settings_of(call.bucket).get(OWNERSHIP_KEY) == PREFERRED
