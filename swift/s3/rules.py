"""What a bucket is set to about access: its policy, its public access block, its ownership controls.

Nothing is parsed twice that has not changed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from swift.http import fields
from swift.s3.errors import S3Error
from swift.s3.kept import kept_document
from swift.s3.policy.conditions import BadPolicy
from swift.s3.policy.decide import is_public
from swift.s3.policy.document import BucketPolicy, parse_policy

#: The switches of a public access block, in the order of its document.
BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
ENFORCED, PREFERRED, WRITER = "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"
OWNERSHIPS = (PREFERRED, WRITER, ENFORCED)


def _key(header: str) -> str:
    return header.removeprefix(fields.CONTAINER_SYSMETA)


POLICY_KEY = _key(fields.SYSMETA_S3_BUCKET_POLICY)
BLOCK_KEY = _key(fields.SYSMETA_S3_BUCKET_BLOCK)
OWNERSHIP_KEY = _key(fields.SYSMETA_S3_BUCKET_OWNERSHIP)
PAYER_KEY = _key(fields.SYSMETA_S3_BUCKET_PAYER)
OWNER_PAYS, REQUESTER_PAYS = "BucketOwner", "Requester"
_KEYS = (POLICY_KEY, BLOCK_KEY, OWNERSHIP_KEY, PAYER_KEY)


@dataclass(frozen=True, slots=True)
class BucketRules:
    """What there is to be asked before anything is done in a bucket."""

    policy: BucketPolicy | None = None
    is_public: bool = False
    blocks: frozenset[str] = frozenset()
    ownership: str = WRITER
    #: Callers of other accounts must say that they pay.
    requester_pays: bool = False


def rules_of(sysmeta: Mapping[str, str], bucket: str) -> BucketRules | None:
    """The rules of a bucket, None when it has none of its own; raises ``S3Error``."""
    if not any(map(sysmeta.get, _KEYS)):
        return None
    document = kept_document(sysmeta, fields.SYSMETA_S3_BUCKET_POLICY)
    policy, public = _parsed(document, bucket) if document else (None, False)
    blocks = frozenset(sysmeta.get(BLOCK_KEY, "").split(",")) & frozenset(BLOCKS)
    pays = sysmeta.get(PAYER_KEY) == REQUESTER_PAYS
    return BucketRules(policy, public, blocks, sysmeta.get(OWNERSHIP_KEY) or WRITER, pays)


@lru_cache(maxsize=256)
def _parsed(document: bytes, bucket: str) -> tuple[BucketPolicy, bool]:
    try:
        policy = parse_policy(document, bucket)
    except BadPolicy:
        # What it denies nobody knows.
        raise S3Error("InternalError")
    return policy, is_public(policy)
