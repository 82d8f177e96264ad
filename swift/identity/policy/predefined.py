"""Policies by name that every cluster has, and the policy of an access key's limits.

The names are those that users of MinIO know. ``readonly`` lists buckets and their objects as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import BUCKET_ARN_PREFIX, IdentityPolicy, parse_identity_policy
from swift.identity.policy.patterns import escape_wildcards

VERSION = "2012-10-17"
_LISTING_ACTIONS = ("s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads")
#: Actions on keys by which a client reads, and those by which it writes.
_KEY_READ_ACTIONS = (
    *("s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectAttributes", "s3:GetObjectVersionAttributes"),
    *("s3:GetObjectTagging", "s3:GetObjectVersionTagging", "s3:GetObjectAcl", "s3:GetObjectVersionAcl"),
    *("s3:GetObjectRetention", "s3:GetObjectLegalHold", "s3:ListMultipartUploadParts"),
)
_KEY_ACTIONS = (
    *_KEY_READ_ACTIONS,
    *("s3:PutObject*", "s3:DeleteObject*", "s3:RestoreObject", "s3:AbortMultipartUpload"),
    "s3:BypassGovernanceRetention",
)
_BUCKET_READ_ACTIONS = ("s3:GetBucketLocation", "s3:GetBucketVersioning")
#: Without the headers of owners: keys of temporary URLs are among them, and those write.
_READ_ACTIONS = (
    "s3:Get*",
    "s3:List*",
    "iam:Get*",
    "iam:List*",
    "sts:GetCallerIdentity",
)
_ALL_BUCKETS = f"{BUCKET_ARN_PREFIX}*"


def _document(*statements: dict[str, object]) -> str:
    return json.dumps({"Version": VERSION, "Statement": [{"Effect": "Allow", **each} for each in statements]})


#: Name → document.
PREDEFINED_DOCUMENTS: dict[str, str] = {
    "admin": _document({"Action": "*", "Resource": "*"}),
    "readwrite": _document(
        {"Action": ["s3:*", "swift:PutContainerMetadata"], "Resource": _ALL_BUCKETS},
    ),
    "readonly": _document(
        {
            "Action": [
                *("s3:ListAllMyBuckets", "s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketVersions"),
                *("s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectAttributes", "s3:GetObjectTagging"),
                *("s3:GetObjectVersionAttributes", "s3:GetObjectVersionTagging"),
            ],
            "Resource": _ALL_BUCKETS,
        },
    ),
    "writeonly": _document({"Action": "s3:PutObject", "Resource": _ALL_BUCKETS}),
}
PREDEFINED: dict[str, IdentityPolicy] = {
    name: parse_identity_policy(document) for name, document in PREDEFINED_DOCUMENTS.items()
}


def limits_policy(
    *, read_only: bool = False, containers: Sequence[str] = (), prefix: str = "", networks: Sequence[str] = ()
) -> IdentityPolicy | None:
    """Return the policy that must allow what an access key does; None without limits.

    Raise ``InvalidPolicy`` for invalid limits. A container of another account has its account before it
    (``AUTH_other:photos``). A prefix needs containers; with it the key reaches objects only, and lists only
    within the prefix.
    """
    if not (read_only or containers or prefix or networks):
        return None
    if prefix and not containers:
        # In a pattern the star for any container would also match parts of keys.
        raise InvalidPolicy("A prefix needs a container")
    if not all(containers) or any("/" in name for name in containers):
        raise InvalidPolicy("A container has a name without slashes")
    condition: dict[str, object] = {"IpAddress": {"aws:SourceIp": list(networks)}} if networks else {}
    buckets = [BUCKET_ARN_PREFIX + escape_wildcards(name) for name in containers]
    statements: list[dict[str, object]]
    if prefix:
        pattern = f"{escape_wildcards(prefix)}*"
        statements = [
            {
                "Action": list(_KEY_READ_ACTIONS if read_only else _KEY_ACTIONS),
                "Resource": [f"{bucket}/{pattern}" for bucket in buckets],
                "Condition": condition,
            },
            {"Action": list(_BUCKET_READ_ACTIONS), "Resource": buckets, "Condition": condition},
            {
                "Action": list(_LISTING_ACTIONS),
                "Resource": buckets,
                "Condition": {**condition, "StringLike": {"s3:prefix": pattern}},
            },
        ]
    else:
        statements = [
            {
                "Action": list(_READ_ACTIONS) if read_only else "*",
                "Resource": [*buckets, *(f"{bucket}/*" for bucket in buckets)] or "*",
                "Condition": condition,
            }
        ]
    return parse_identity_policy(_document(*statements))
