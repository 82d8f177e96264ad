"""The policy of a bucket as its container stores it, for requests of the Swift API.

The S3 API stores it, and reads it with the other rules of the bucket (``s3/policy/context.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from swift.base.compressed import unpack
from swift.http import fields
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import BucketPolicy, parse_policy

_PIECES = 5
_NAME = fields.SYSMETA_S3_BUCKET_POLICY.removeprefix(fields.CONTAINER_SYSMETA)
_KEYS = (_NAME, *(f"{_NAME}-{number}" for number in range(1, _PIECES)))
STORED_BYTES_MAX = 128 << 10


def stored_bucket_policy(sysmeta: Mapping[str, str], bucket: str) -> BucketPolicy | None:
    """Return the policy in a container's system metadata (names without prefix), None without one.

    Raise ``InvalidPolicy`` if it is damaged: what it denies must not be allowed then.
    """
    if not sysmeta.get(_NAME):
        return None
    return _parse("".join(sysmeta.get(key, "") for key in _KEYS), bucket)


@lru_cache(maxsize=256)
def _parse(packed: str, bucket: str) -> BucketPolicy:
    try:
        return parse_policy(unpack(packed, STORED_BYTES_MAX), bucket)
    except InvalidPolicy:
        raise
    except ValueError as error:
        raise InvalidPolicy(f"The policy of the bucket is damaged: {error}")
