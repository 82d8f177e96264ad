"""Authorization: the one access check, made before an operation changes anything.

The rules of the bucket come first: its policy, its public access block, its ownership controls. If the
authentication filter knows policies of the caller, they decide with that of the bucket (``identity.rights``).
A policy that denies ends the request. A policy that allows gives the operation all rights in the bucket.
Without a verdict ACLs decide, except for those that the public access block or the ownership controls
disable. With ``s3_acl`` they are the ACLs of S3 (spec: middleware.md §22.3).

``authorize`` returns the call with the rights it has. GetObject and HeadObject differ: the response has the
object's ACL and tags, so ``open_object`` decides before it returns the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.response import Response
from swift.http.storedtags import Tags, decode_tags
from swift.identity.policy.evaluate import PolicyRequest, PolicyVerdict, combine_verdicts, evaluate_policy
from swift.identity.rights import AccessRequest, Rights
from swift.s3.core.call import Call, PendingRead, version_query
from swift.s3.core.errors import S3Error
from swift.s3.core.router import PathLevel
from swift.s3.core.session import (
    WHOLE_ACCOUNT,
    AclScope,
    Session,
    owner_sysmeta,
    with_silent_bucket,
    with_trusted_bucket,
)
from swift.s3.core.uploadstate import parse_upload_id, read_upload_state
from swift.s3.policy.acls import (
    Acl,
    grants_public_access,
    has_acl_headers,
    parse_acl_headers,
    parse_stored_acl,
    private_acl,
    swift_acl_of_canned,
    swift_acl_of_document,
)
from swift.s3.policy.actions import BYPASS_ACTION, action_of, actions_of, bypasses_governance
from swift.s3.policy.context import (
    OWNER_ENFORCED,
    OWNER_PREFERRED,
    OWNERSHIP_KEY,
    UPLOAD_OPERATIONS,
    BucketRules,
    CreatedUpload,
    ReadTags,
    RequestContext,
    parse_bucket_rules,
    parse_created_upload,
    principal_of,
)

# --- the check ----------------------------------------------------------------------------------------

#: Operations of the bucket's own account: its policy cannot grant them, and it denies them only to callers
#: that are neither owners nor operators, so that these can mend it.
_OWN_ACCOUNT_OPERATIONS = frozenset(("GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"))
#: The action that stands for ownership of a bucket: the right to set its policy.
_OWNER_ACTION = "s3:PutBucketPolicy"
#: The actions of reading the source of a copy: an object, and a version of it.
_READ_ACTIONS = tuple(action_of("GetObject", versioned=versioned) for versioned in (False, True))
#: Each key of these is authorized by itself.
_PER_KEY_OPERATIONS = frozenset(("DeleteObjects",))
#: These are authorized by the response to their own request.
_READ_OPERATIONS = frozenset(("GetObject", "HeadObject"))
#: The key of these, and their signature, are in their bodies.
_FORM_OPERATIONS = frozenset(("PostObject",))


def authorize(call: Call, *, is_form_read: bool = False) -> Call:
    """Return the call with the rights of its caller; raise ``S3Error`` if it is not allowed.

    ``is_form_read``: the body of a form was read.
    """
    if call.endpoint.operation.name in _FORM_OPERATIONS and not is_form_read:
        return call
    if call.bucket:
        validate_expected_owner(call.session, call.headers.get("x-amz-expected-bucket-owner"))
    call = _authorize_by_rules(call)
    if call.settings.s3_acl and not call.session.trusted_bucket:
        is_per_key = call.endpoint.operation.name in _PER_KEY_OPERATIONS
        if not (is_per_key and call.session.identity.rights):
            call = _authorize_by_acl(call)
    return call


def _authorize_by_rules(call: Call) -> Call:
    """Return the call with the rights that the bucket's rules give it; raise ``S3Error``."""
    name = call.endpoint.operation.name
    session = call.session
    rights = session.identity.rights
    if not call.bucket or name == "CreateBucket":
        return call if rights is None else _authorize_without_bucket(call, rights)
    rules = parse_bucket_rules(session.bucket_sysmeta(call.bucket), call.bucket)
    if rules is None:
        if rights is None or not _has_verdict(call, rights):
            return call
        rules = BucketRules()
    _require_payer(call, rules)
    _validate_acl_headers(call.headers, rules)
    session = session.with_acl_scope(_acl_scope_of_rules(rules))
    if session is not call.session:
        call = replace(call, session=session)
    if name in _PER_KEY_OPERATIONS:
        return call
    actions = actions_of(name, call.params, call.headers)

    def verdict_with(tags: ReadTags) -> PolicyVerdict:
        context = RequestContext(
            call,
            tags,
            version=call.params.get("versionId", ""),
            upload=partial(_read_created_upload, call) if name in UPLOAD_OPERATIONS else None,
        )
        verdict = _policy_verdict(call, rules, actions, call.bucket, call.key, context)
        if name not in _OWN_ACCOUNT_OPERATIONS or rights is None:
            return verdict
        if verdict is PolicyVerdict.DENY and not (rights.is_owner or rights.is_operator):
            return verdict
        judged = replace(rules, policy=None)
        return _policy_verdict(call, judged, actions, call.bucket, call.key, context)

    if name in _READ_OPERATIONS:
        try:
            verdict = verdict_with(_raise_tags_needed)
        except _TagsNeeded:
            return replace(call, pending_read=PendingRead(lambda tags: verdict_with(lambda: tags)))
    else:
        verdict = verdict_with(
            lambda: _read_object_tags(call, call.bucket, call.key, call.params.get("versionId", ""))
        )
    if name in _OWN_ACCOUNT_OPERATIONS:
        if session.own_account != session.account:
            raise S3Error("AccessDenied")
        if rights is not None and verdict is not PolicyVerdict.ALLOW:
            raise S3Error("AccessDenied")
    elif verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    return _with_verdict(call, verdict)


def _has_verdict(call: Call, rights: Rights) -> bool:
    """Return True if the caller's rights decide before the ACLs of a bucket without rules."""
    return rights.has_policies or call.settings.s3_acl


def _with_verdict(call: Call, verdict: PolicyVerdict, bucket: str = "") -> Call:
    """Return the call with the rights in its bucket that a verdict other than DENY gives."""
    bucket = bucket or call.bucket
    if verdict is PolicyVerdict.ALLOW:
        return replace(call, session=with_trusted_bucket(call.session, bucket))
    if call.session.identity.rights is None:
        return call
    return replace(call, session=with_silent_bucket(call.session, bucket))


def _authorize_without_bucket(call: Call, rights: Rights) -> Call:
    """Return the call for the account, or for a bucket to create; raise ``S3Error``."""
    if not _has_verdict(call, rights):
        return call
    actions = actions_of(call.endpoint.operation.name, call.params, call.headers)
    context = RequestContext(call, dict)
    request = AccessRequest(actions, call.session.account, context, call.bucket)
    verdict = rights.decide(request, None).verdict
    if verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    return _with_verdict(call, verdict, call.bucket or WHOLE_ACCOUNT)


def _read_created_upload(call: Call) -> CreatedUpload:
    """Return what an upload was created with, after its end from its object; raise ``S3Error``."""
    trusted = replace(call, session=with_trusted_bucket(call.session, call.bucket))
    upload_id = parse_upload_id(call)
    state = read_upload_state(trusted, upload_id, is_newest=False)
    if state is not None:
        return parse_created_upload(state.headers)
    found = trusted.session.head(call.bucket, call.key).headers
    return parse_created_upload(found if found.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id else {})


class _TagsNeeded(Exception):
    """A policy needs the tags of an object that was not read yet."""


def _raise_tags_needed() -> Tags:
    raise _TagsNeeded


def _authorize_by_acl(call: Call) -> Call:
    """Return the call with all rights in its bucket; raise ``S3Error`` if ACLs do not allow it."""
    name = call.endpoint.operation.name
    required = REQUIRED_PERMISSIONS.get(name, _BUCKET_OWNERSHIP)
    if required is None or not call.bucket:
        return call
    if name in _READ_OPERATIONS:
        return call if call.pending_read is not None else replace(call, pending_read=PendingRead())
    allowed = replace(call, session=with_trusted_bucket(call.session, call.bucket))
    if required.level is PathLevel.OBJECT:
        acl = read_object_acl(allowed, call.bucket, call.key)
    else:
        acl = read_bucket_acl(allowed, call.bucket)
    require_permission(allowed, acl, required.permission)
    return allowed


# --- reads, authorized by their response --------------------------------------------------------------


def open_object(call: Call, headers: HeaderMap, query: str) -> tuple[Call, Response]:
    """Read the object of a GetObject or HeadObject, authorized by its response; raise ``S3Error``.

    Return the call with its rights, and the response.
    """
    method = call.request.method
    if call.pending_read is None:
        return call, _send(call, method, headers, query)
    allowed = replace(call, session=with_trusted_bucket(call.session, call.bucket), pending_read=None)
    response = _send(allowed, method, headers, query)
    try:
        if _is_allowed(allowed, call.pending_read, response):
            return allowed, response
    except BaseException:
        drained(response, is_complete=False)
        raise
    # The policy is silent, so Swift's ACLs decide about a request of its own.
    drained(response, is_complete=False)
    call = _with_verdict(replace(call, pending_read=None), PolicyVerdict.SILENT)
    return call, _send(call, method, headers, query)


def authorize_read(call: Call) -> None:
    """Raise ``S3Error`` if the caller may not read the object; for calls that fail before they read it."""
    if call.pending_read is not None:
        allowed = replace(call, session=with_trusted_bucket(call.session, call.bucket), pending_read=None)
        _is_allowed(allowed, call.pending_read, None)


def _send(call: Call, method: str, headers: HeaderMap, query: str) -> Response:
    session = call.session
    return session.send(session.subrequest(method, call.bucket, call.key, headers=headers, query=query))


def _is_allowed(call: Call, pending: PendingRead, response: Response | None) -> bool:
    """Return True if the object may be read, False if Swift's ACLs must decide; raise ``S3Error``."""
    if pending.verdict is not None:
        tags = _tags_of_response(response)
        if tags is None:
            tags = _read_object_tags(call, call.bucket, call.key, call.params.get("versionId", ""))
        verdict = pending.verdict(tags)
        if verdict is PolicyVerdict.DENY:
            raise S3Error("AccessDenied")
        if verdict is PolicyVerdict.ALLOW:
            return True
    if not call.settings.s3_acl:
        return False
    require_permission(call, _acl_of_response(call, response), "READ")
    return True


def _has_object_metadata(response: Response, name: str) -> bool:
    """Return True if a response has the metadata of its object; some error responses do not."""
    return response.status in (200, 206) or name in response.headers


def _tags_of_response(response: Response | None) -> Tags | None:
    """Return the object's tags in a response; None if the response does not have them."""
    if response is not None and _has_object_metadata(response, fields.TRANSIENT_S3_TAGGING):
        return decode_tags(response.headers.get(fields.TRANSIENT_S3_TAGGING))
    return {} if response is not None and response.status == 404 else None


def _acl_of_response(call: Call, response: Response | None) -> Acl | None:
    """Return the object's ACL in a response, or read it with a request of its own; raise ``S3Error``."""
    if response is not None and _has_object_metadata(response, fields.SYSMETA_S3_OBJECT_ACL):
        return parse_stored_acl(response.headers.get(fields.SYSMETA_S3_OBJECT_ACL))
    if response is not None and response.status == 404:
        return _acl_of_missing_object(call, call.bucket)
    return read_object_acl(call, call.bucket, call.key)


# --- owners, sources, keys ----------------------------------------------------------------------------


def validate_expected_owner(session: Session, expected: str | None) -> None:
    """Raise ``S3Error`` unless the bucket belongs to the expected account.

    The caller's own account may also be given as its access key, which documents name as owner.
    """
    if expected is None:
        return
    is_own = session.own_account == session.account and expected == session.user_id
    if not is_own and expected != session.account:
        raise S3Error("AccessDenied")


def authorize_source(call: Call, bucket: str, key: str, version: str) -> Session:
    """Return the session that reads the source of a copy; raise ``S3Error`` if a policy denies it.

    Rights in the destination bucket do not count for the source.
    """
    session = call.session
    validate_expected_owner(session, call.headers.get("x-amz-source-expected-bucket-owner"))
    rights = session.identity.rights
    rules = parse_bucket_rules(session.bucket_sysmeta(bucket), bucket)
    if rules is None:
        if rights is None or not _has_verdict(call, rights):
            own = not session.trusted_bucket and session.acl_scope is AclScope.ALL
            return session if own else session.with_acl_scope(AclScope.ALL)
        rules = BucketRules()
    verdict = _policy_verdict_on_key(call, rules, (_READ_ACTIONS[bool(version)],), bucket, key, version)
    is_allowed = verdict is PolicyVerdict.ALLOW
    source = session.with_acl_scope(_acl_scope_of_rules(rules), trusted_bucket=bucket if is_allowed else "")
    return source if rights is None else with_silent_bucket(source, "" if is_allowed else bucket)


def authorize_deletion(call: Call, key: str, version: str | None) -> Call:
    """Return the call for one of several keys to delete; raise ``S3Error`` if a policy denies it.

    Each key is authorized separately.
    """
    rights = call.session.identity.rights
    rules = parse_bucket_rules(call.session.bucket_sysmeta(call.bucket), call.bucket)
    if rules is None:
        if rights is None or not _has_verdict(call, rights):
            return call
        rules = BucketRules()
    actions = [action_of("DeleteObject", versioned=bool(version))]
    if rights is not None and bypasses_governance(call.headers):
        actions.append(BYPASS_ACTION)
    verdict = _policy_verdict_on_key(call, rules, actions, call.bucket, key, version or "")
    found = _with_verdict(call, verdict)
    if rights is not None and call.settings.s3_acl and verdict is PolicyVerdict.SILENT:
        return _authorize_by_acl(found)
    return found


def _acl_scope_of_rules(rules: BucketRules) -> AclScope:
    """Return the part of Swift's ACLs that counts under the bucket's rules."""
    if rules.ownership == OWNER_ENFORCED:
        return AclScope.OWN
    return AclScope.NOT_PUBLIC if "IgnorePublicAcls" in rules.blocks else AclScope.ALL


def _policy_verdict_on_key(
    call: Call, rules: BucketRules, actions: Sequence[str], bucket: str, key: str, version: str
) -> PolicyVerdict:
    """Return the verdict on actions on one key; raise ``S3Error`` for a denial."""
    context = _request_context(call, bucket, key, version)
    verdict = _policy_verdict(call, rules, actions, bucket, key, context)
    if verdict is PolicyVerdict.DENY:
        raise S3Error("AccessDenied")
    return verdict


def _request_context(call: Call, bucket: str, key: str, version: str) -> RequestContext:
    def tags() -> Tags:
        return _read_object_tags(call, bucket, key, version)

    return RequestContext(call, tags, version=version)


def _policy_verdict(
    call: Call, rules: BucketRules, actions: Sequence[str], bucket: str, key: str, context: RequestContext
) -> PolicyVerdict:
    policy, session = rules.policy, call.session
    rights = session.identity.rights
    if rights is not None:
        request = AccessRequest(tuple(actions), session.account, context, bucket, key)
        verdict = rights.decide(request, policy).verdict
    elif policy is None:
        return PolicyVerdict.SILENT
    else:
        principal = principal_of(call)
        verdict = combine_verdicts(
            evaluate_policy(policy, PolicyRequest(principal, action, bucket, key, context)).verdict
            for action in actions
        )
    if "RestrictPublicBuckets" in rules.blocks and rules.is_public and session.own_account != session.account:
        # Public policies count for the bucket's own account only.
        return PolicyVerdict.DENY
    return verdict


def _read_object_tags(call: Call, bucket: str, key: str, version: str) -> Tags:
    """Return the tags of an object, read with all rights because the policy needs them."""
    if not key:
        return {}
    query = f"version-id={quote(version, safe='')}" if version else ""
    head = with_trusted_bucket(call.session, bucket).head(bucket, key, query=query)
    if head.status >= 500:
        # The verdict is unknown.
        raise S3Error("ServiceUnavailable")
    return decode_tags(head.headers.get(fields.TRANSIENT_S3_TAGGING)) if head.is_success else {}


def _require_payer(call: Call, rules: BucketRules) -> None:
    """Raise ``S3Error`` for a caller of another account that does not accept to pay."""
    if not rules.requester_pays or (
        call.session.own_account and call.session.own_account == call.session.account
    ):
        return
    payer = call.headers.get("x-amz-request-payer") or call.params.get("x-amz-request-payer")
    if call.session.is_anonymous or payer != "requester":
        raise S3Error(
            "AccessDenied",
            "Access Denied: the requester must accept the costs (x-amz-request-payer: requester).",
        )


def _validate_acl_headers(headers: Mapping[str, str], rules: BucketRules) -> None:
    """Raise ``S3Error`` for ACL headers that the bucket's rules forbid."""
    if "BlockPublicAcls" in rules.blocks and grants_public_access(headers):
        raise S3Error("AccessDenied")
    if rules.ownership == OWNER_ENFORCED and _has_foreign_acl(headers):
        raise S3Error("AccessControlListNotSupported")


def validate_acl(acl: Acl, rules: BucketRules) -> None:
    """Raise ``S3Error`` for an ACL that the bucket's rules forbid."""
    if "BlockPublicAcls" in rules.blocks and acl.is_public:
        raise S3Error("AccessDenied")
    if rules.ownership == OWNER_ENFORCED and not acl.is_private:
        raise S3Error("AccessControlListNotSupported")


def _has_foreign_acl(headers: Mapping[str, str]) -> bool:
    """Return True if ACL headers grant rights to others than the bucket's owner."""
    canned = headers.get("x-amz-acl", "private")
    if canned not in ("private", "bucket-owner-full-control"):
        return True
    return any(name.startswith("x-amz-grant-") for name in headers)


def read_bucket_rules(call: Call) -> BucketRules:
    """Return the rules of the call's bucket, by default those of a new bucket; raise ``S3Error``."""
    return parse_bucket_rules(call.session.bucket_sysmeta(call.bucket), call.bucket) or BucketRules()


# --- ACLs ---------------------------------------------------------------------------------------------

BUCKET_OWNER = "OWNER"


class RequiredPermission(NamedTuple):
    """A permission on the bucket or on the object of a request."""

    level: PathLevel
    permission: str


_BUCKET_READ = RequiredPermission(PathLevel.BUCKET, "READ")
_BUCKET_WRITE = RequiredPermission(PathLevel.BUCKET, "WRITE")
_BUCKET_OWNERSHIP = RequiredPermission(PathLevel.BUCKET, BUCKET_OWNER)
_OBJECT_READ = RequiredPermission(PathLevel.OBJECT, "READ")
#: Operation → required permission. All other operations on a bucket or key require its owner.
REQUIRED_PERMISSIONS: dict[str, RequiredPermission | None] = {
    # Swift authorizes creating and listing containers.
    "ListBuckets": None,
    "CreateBucket": None,
    **dict.fromkeys(("HeadBucket", "ListObjects", "ListObjectsV2", "ListObjectVersions"), _BUCKET_READ),
    "ListMultipartUploads": _BUCKET_READ,
    **dict.fromkeys(("PutObject", "CopyObject", "DeleteObject", "DeleteObjects"), _BUCKET_WRITE),
    "PostObject": _BUCKET_WRITE,
    **dict.fromkeys(("CreateMultipartUpload", "UploadPart", "UploadPartCopy"), _BUCKET_WRITE),
    **dict.fromkeys(("CompleteMultipartUpload", "AbortMultipartUpload", "ListParts"), _BUCKET_WRITE),
    **dict.fromkeys(("GetObject", "HeadObject", "GetObjectAttributes"), _OBJECT_READ),
    "GetBucketAcl": RequiredPermission(PathLevel.BUCKET, "READ_ACP"),
    "PutBucketAcl": RequiredPermission(PathLevel.BUCKET, "WRITE_ACP"),
    "GetObjectAcl": RequiredPermission(PathLevel.OBJECT, "READ_ACP"),
    "PutObjectAcl": RequiredPermission(PathLevel.OBJECT, "WRITE_ACP"),
}


def require_permission(call: Call, acl: Acl | None, permission: str) -> None:
    """Raise ``S3Error`` unless the ACL grants the permission; ``acl`` is None for things without owner."""
    if acl is None:
        if not call.settings.allow_no_owner:
            raise S3Error("AccessDenied")
        return
    user, rights = call.session.user_id, call.session.acl_scope
    if permission == BUCKET_OWNER or rights is AclScope.OWN:
        allowed = user == acl.owner
    else:
        allowed = acl.allows(user, permission, include_public=rights is AclScope.ALL)
    if not allowed:
        raise S3Error("AccessDenied")


def read_bucket_acl(call: Call, bucket: str) -> Acl | None:
    """Return the stored ACL of a bucket; raise ``S3Error`` if it does not exist."""
    info = call.session.bucket_info(bucket)
    return parse_stored_acl(wire_value(info.sysmeta.get("s3api-acl", "")))


def read_object_acl(call: Call, bucket: str, key: str) -> Acl | None:
    """Return the stored ACL of an object; raise ``S3Error``.

    Only callers that may list the bucket learn that an object is missing.
    """
    head = call.session.head(bucket, key, query=version_query(call))
    if head.is_success or head.status == 412:
        return parse_stored_acl(head.headers.get(fields.SYSMETA_S3_OBJECT_ACL))
    # The operation itself reports the error.
    return _acl_of_missing_object(call, bucket) if head.status == 404 else private_acl(call.session.user_id)


def _acl_of_missing_object(call: Call, bucket: str) -> Acl:
    require_permission(call, read_bucket_acl(call, bucket), "READ")
    return private_acl(call.session.user_id)


def require_owner(call: Call, bucket: str = "") -> None:
    """Raise ``S3Error`` unless the caller owns the bucket, by default that of the request."""
    bucket = bucket or call.bucket
    rights = call.session.identity.rights
    if rights is not None and _has_verdict(call, rights):
        _require_rights_of_owner(call, rights, bucket)
    elif call.settings.s3_acl:
        require_permission(call, read_bucket_acl(call, bucket), BUCKET_OWNER)
    else:
        # Rights that a policy grants do not count here.
        owner_sysmeta(call.session.with_acl_scope(AclScope.ALL), bucket)


def _require_rights_of_owner(call: Call, rights: Rights, bucket: str) -> None:
    """Raise ``S3Error`` unless the caller's policies make it act for the bucket's owner.

    In the request's own bucket the access check has decided. Another bucket must be one whose policy the
    caller may set.
    """
    session = call.session
    if session.own_account != session.account:
        raise S3Error("AccessDenied")
    if bucket == call.bucket and session.is_trusted_in(bucket):
        return
    context = RequestContext(call, dict)
    request = AccessRequest((_OWNER_ACTION,), session.account, context, bucket)
    if not rights.decide(request, None).is_allowed:
        raise S3Error("AccessDenied")


def require_owned_target(call: Call, bucket: str, code: str) -> None:
    """Raise ``S3Error`` with this code unless a bucket named in a document exists and is the caller's.

    Daemons write to it with all rights, so policies and ACLs of the request's bucket do not count.
    """
    try:
        require_owner(call, bucket)
    except S3Error as error:
        raise error if error.status >= 500 else S3Error(code)


# --- new things ---------------------------------------------------------------------------------------


def new_bucket_acl_headers(call: Call) -> HeaderMap:
    """Return the headers that store the ACL of a new bucket; raise ``S3Error``."""
    headers, owner = call.headers, call.session.user_id
    acl = parse_acl_headers(headers, owner, owner)
    if call.settings.s3_acl:
        return {fields.SYSMETA_S3_BUCKET_ACL: wire_value((acl or private_acl(owner)).to_json())}
    if acl is None:
        return {}
    return swift_acl_of_canned(headers["x-amz-acl"]) if "x-amz-acl" in headers else swift_acl_of_document(acl)


def new_object_acl_headers(call: Call, *, name: str = fields.SYSMETA_S3_OBJECT_ACL) -> HeaderMap:
    """Return the metadata that stores the ACL of a new object; without ``s3_acl`` objects have none."""
    headers, owner = call.headers, call.session.user_id
    if not call.settings.s3_acl:
        if "x-amz-acl" in headers:
            # Reject ACLs that neither the object nor its container can have.
            swift_acl_of_canned(headers["x-amz-acl"])
        return {}
    bucket_owner = owner
    if has_acl_headers(headers):
        existing = read_bucket_acl(call, call.bucket)
        bucket_owner = existing.owner if existing is not None else owner
        if headers.get("x-amz-acl") == "bucket-owner-full-control" and _prefers_bucket_owner(call):
            return {name: wire_value(private_acl(bucket_owner).to_json())}
    acl = parse_acl_headers(headers, owner, bucket_owner) or private_acl(owner)
    return {name: wire_value(acl.to_json())}


def _prefers_bucket_owner(call: Call) -> bool:
    """Return True if the bucket's owner becomes the owner of objects given to it."""
    return call.session.bucket_sysmeta(call.bucket).get(OWNERSHIP_KEY) == OWNER_PREFERRED
