"""Which actions of policies an operation needs, as AWS's service authorisation reference has them."""

from __future__ import annotations

from collections.abc import Mapping

from swift.base.truth import is_true
from swift.s3.router import OPERATIONS

_SAME = "s3:"
#: Operation → the action it is called by in policies, where that is not its own name.
_NAMED: dict[str, str] = {
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
    # Each of its keys is asked for by itself.
    "DeleteObjects": "DeleteObject",
}
#: Of these a version has an action of its own.
_OF_VERSIONS = frozenset(
    (
        *("GetObject", "DeleteObject", "GetObjectAcl", "PutObjectAcl", "GetObjectTagging"),
        *("PutObjectTagging", "DeleteObjectTagging", "GetObjectTorrent", "GetObjectAttributes"),
    )
)
#: What locks an object while it is made.
_LOCKS = (
    ("s3:PutObjectRetention", "x-amz-object-lock-mode"),
    ("s3:PutObjectLegalHold", "x-amz-object-lock-legal-hold"),
)
_GRANTS = ("x-amz-acl", "x-amz-grant-")


def _action(operation: str) -> str:
    return _NAMED.get(operation, operation)


def _of_version(action: str) -> str:
    """Its name for a version, such as GetObjectVersionAcl."""
    return action.replace("Object", "ObjectVersion", 1)


#: Every action that a policy may name, in lower case.
ACTIONS = frozenset(
    (_SAME + action).lower()
    for operation in OPERATIONS
    for base in (_action(operation),)
    for action in ((base, _of_version(base)) if base in _OF_VERSIONS else (base,))
) | frozenset(
    ("s3:bypassgovernanceretention", "s3:replicateobject", "s3:replicatedelete", "s3:replicatetags")
)


def action_of(operation: str, *, versioned: bool = False) -> str:
    """The action of an operation, on a version or not."""
    name = _action(operation)
    return _SAME + (_of_version(name) if versioned and name in _OF_VERSIONS else name)


def actions_of(operation: str, params: Mapping[str, str], headers: Mapping[str, str]) -> tuple[str, ...]:
    """All actions that a request needs."""
    versioned = "versionId" in params
    found = [action_of(operation, versioned=versioned)]
    if operation == "GetObjectAttributes":
        found.append(action_of("GetObject", versioned=versioned))
    if found[0] == "s3:PutObject" and operation not in (
        "UploadPart",
        "UploadPartCopy",
        "CompleteMultipartUpload",
    ):
        if any(name.startswith(_GRANTS) for name in headers):
            found.append("s3:PutObjectAcl")
        if "x-amz-tagging" in headers:
            found.append("s3:PutObjectTagging")
        found += [action for action, header in _LOCKS if header in headers]
    if is_true(headers.get("x-amz-bypass-governance-retention")):
        found.append("s3:BypassGovernanceRetention")
    return tuple(found)
