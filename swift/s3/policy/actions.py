"""Actions of S3 operations: those that policies must allow (``identity.policy.actions`` lists them)."""

from __future__ import annotations

from collections.abc import Mapping

from swift.base.truth import is_true

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
#: Headers that configure a new bucket, and the actions they need.
_BUCKET_ACTIONS = (
    ("s3:PutBucketAcl", "x-amz-acl"),
    ("s3:PutBucketAcl", "x-amz-grant-"),
    ("s3:PutBucketOwnershipControls", "x-amz-object-ownership"),
    ("s3:PutBucketObjectLockConfiguration", "x-amz-bucket-object-lock-enabled"),
    ("s3:PutBucketVersioning", "x-amz-bucket-object-lock-enabled"),
)
_ACL_HEADER_PREFIXES = ("x-amz-acl", "x-amz-grant-")


def _action_name(operation: str) -> str:
    return _ACTION_NAMES.get(operation, operation)


def _version_action_name(action: str) -> str:
    """Return the action's name for a version, such as GetObjectVersionAcl."""
    return action.replace("Object", "ObjectVersion", 1)


BYPASS_ACTION = "s3:BypassGovernanceRetention"


def bypasses_governance(headers: Mapping[str, str]) -> bool:
    """Return True if a request asks to bypass governance mode."""
    return is_true(headers.get("x-amz-bypass-governance-retention"))


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
    if operation == "CreateBucket":
        found += (action for action, start in _BUCKET_ACTIONS if any(n.startswith(start) for n in headers))
    if bypasses_governance(headers):
        found.append(BYPASS_ACTION)
    return tuple(found)
