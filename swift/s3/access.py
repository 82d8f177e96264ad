"""What ``s3_acl`` decides before an operation, and the ACLs of what is new (spec: middleware.md §22.3).

``ACCESS`` says of every operation what it needs. Where an ACL was asked, the rest of the pipeline is told
nothing but that it was: the caller's rights in Swift do not count then.
"""

from __future__ import annotations

from typing import NamedTuple

from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.s3.account import Rights
from swift.s3.acls import (
    Acl,
    acl_of_headers,
    has_acl_headers,
    private_acl,
    stored_acl,
    swift_acl,
    swift_acl_of_document,
)
from swift.s3.call import Call
from swift.s3.errors import S3Error
from swift.s3.router import PathLevel
from swift.s3.rules import OWNERSHIP_KEY, PREFERRED
from swift.s3.versions import version_query

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


def check_access(call: Call) -> None:
    """Raise ``S3Error`` when the ACLs do not allow what is asked for."""
    need = ACCESS.get(call.endpoint.operation.name, _BUCKET_OWNER)
    if need is None or not call.bucket:
        return
    account = call.account
    account.identify()
    account.trusted_bucket = call.bucket
    if need.level is PathLevel.OBJECT:
        found = object_acl(call, call.bucket, call.key)
    else:
        found = bucket_acl(call, call.bucket)
    demand(call, found, need.permission)


def demand(call: Call, found: Acl | None, permission: str) -> None:
    """Raise ``S3Error`` when an ACL does not allow something; None is what has no owner."""
    if found is None:
        if not call.settings.allow_no_owner:
            raise S3Error("AccessDenied")
        return
    user, rights = call.account.owner, call.account.rights
    if permission == OWNER or rights is Rights.OWN:
        allowed = user == found.owner
    else:
        allowed = found.allows(user, permission, publicly=rights is Rights.ALL)
    if not allowed:
        raise S3Error("AccessDenied")


def bucket_acl(call: Call, bucket: str) -> Acl | None:
    """The stored ACL of a bucket; raises ``S3Error`` when it is not there."""
    info = call.account.bucket_info(bucket)
    return stored_acl(wire_value(info.sysmeta.get("s3api-acl", "")))


def object_acl(call: Call, bucket: str, key: str) -> Acl | None:
    """The stored ACL of an object; raises ``S3Error``. Who may list the bucket learns what is not there."""
    head = call.account.head(bucket, key, query=version_query(call))
    if not head.is_success and head.status != 412:
        if head.status == 404:
            demand(call, bucket_acl(call, bucket), "READ")
        # The operation itself says what is the matter.
        return Acl(call.account.owner, private_acl(call.account.owner).grants)
    return stored_acl(head.headers.get(fields.SYSMETA_S3_OBJECT_ACL))


# --- new things ---------------------------------------------------------------------------------------


def new_bucket_acl(call: Call) -> HeaderMap:
    """The headers of a new container that say what its ACL is; raises ``S3Error``."""
    headers, owner = call.headers, call.account.owner
    acl = acl_of_headers(headers, owner, owner)
    if call.settings.s3_acl:
        return {fields.SYSMETA_S3_BUCKET_ACL: wire_value((acl or private_acl(owner)).stored())}
    if acl is None:
        return {}
    return swift_acl(headers["x-amz-acl"]) if "x-amz-acl" in headers else swift_acl_of_document(acl)


def new_object_acl(call: Call, *, name: str = fields.SYSMETA_S3_OBJECT_ACL) -> HeaderMap:
    """The metadata of a new object that says what its ACL is; without ``s3_acl`` objects have none."""
    headers, owner = call.headers, call.account.owner
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
    """Whether the bucket's owner becomes that of objects that are given to it."""
    return call.account.settings_of(call.bucket).get(OWNERSHIP_KEY) == PREFERRED
