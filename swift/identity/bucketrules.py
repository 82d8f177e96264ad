"""The policy of a bucket in its container's system metadata, and who is shut out from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swift.base.errors import SwiftError
from swift.base.memo import SizedCache
from swift.http import fields
from swift.http.packedconfig import BUCKET_POLICY, sysmeta_key
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import BucketPolicy, parse_policy
from swift.identity.policy.evaluate import is_public

POLICY_KEY = sysmeta_key(fields.SYSMETA_S3_BUCKET_POLICY)
BLOCK_KEY = sysmeta_key(fields.SYSMETA_S3_BUCKET_BLOCK)
RESTRICT_PUBLIC_BUCKETS = "RestrictPublicBuckets"


#: Policies that were read lately, within bytes of text; in memory they take some ten times as much.
_READ: SizedCache[tuple[str, str], ReadPolicy] = SizedCache(4 << 20)


class DamagedPolicy(SwiftError):
    """A bucket's policy cannot be read."""


class ReadPolicy(NamedTuple):
    """A bucket's policy, and whether it allows all principals something."""

    policy: BucketPolicy
    is_public: bool


def read_bucket_policy(sysmeta: Mapping[str, str], bucket: str) -> ReadPolicy | None:
    """Return the policy in a bucket's system metadata, None without one; raise ``DamagedPolicy``."""
    packed = BUCKET_POLICY.read_packed(sysmeta)
    if not packed:
        return None
    found = _READ.get((packed, bucket))
    if found is None:
        try:
            document = BUCKET_POLICY.unpack(packed)
            policy = parse_policy(document, bucket)
        except (InvalidPolicy, ValueError) as error:
            raise DamagedPolicy(f"the policy of {bucket!a} cannot be read: {error}")
        found = ReadPolicy(policy, is_public(policy))
        _READ.keep((packed, bucket), found, len(packed) + len(document))
    return found


def restricts_public(sysmeta: Mapping[str, str]) -> bool:
    """Return True if public policies of the bucket count for its own account only."""
    return RESTRICT_PUBLIC_BUCKETS in sysmeta.get(BLOCK_KEY, "").split(",")
