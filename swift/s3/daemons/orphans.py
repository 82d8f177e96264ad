"""Orphan cleanup: deletes parts that no object needs.

Overwriting an object leaves its parts, and a proxy may stop between any two steps of an upload. So once a
week the daemon checks all parts older than a week, also of deleted buckets. It deletes those to which no
upload and no version of their object refers (``find_part_references``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from itertools import chain
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.identity.policy.resources import bucket_of_container
from swift.s3.api.partreferences import find_part_references, row_timestamp
from swift.s3.config.lifecyclerules import DAY_S
from swift.s3.core.names import segments_container
from swift.s3.core.uploadstate import marker_name, part_number_of_name
from swift.s3.daemons.expiration import CHANGED, ENDED, KEPT, LOCKED
from swift.s3.daemons.walk import RegisteredBucket, remove_parts

#: Days between two checks of a bucket.
INTERVAL_DAYS = 7


class OrphanCandidate(NamedTuple):
    """Parts of an upload that may be unreferenced."""

    entry: RegisteredBucket
    segments: EntityPath
    key: str
    upload_id: str


class OrphanCleanup:
    """Finds candidates and deletes unreferenced parts; raises ``UnexpectedResponse``."""

    def __init__(self, client: InternalClient, now: Callable[[], float], page_size: int, age_s: float):
        self._client = client
        self._now = now
        self._age_s = age_s
        self._page_size = page_size

    # --- finding --------------------------------------------------------------------------------------

    def list_segments_containers(self, entry: RegisteredBucket) -> list[EntityPath]:
        """Return the segments containers of a bucket."""
        rows = self._client.containers(entry.account, prefix=f"{entry.bucket}+")
        names = (str(row["name"]) for row in rows)
        found = [name for name in names if bucket_of_container(name) == entry.bucket]
        return [EntityPath(entry.account, name) for name in found]

    def is_due_today(self, entry: RegisteredBucket) -> bool:
        """Return True if a bucket is checked today: every ``INTERVAL_DAYS``, or daily if parts age faster."""
        if self._age_s < DAY_S:
            return True
        digest = md5(entry.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return (int(self._now() // DAY_S) - digest[0]) % INTERVAL_DAYS == 0

    def find_candidates(
        self, entry: RegisteredBucket, containers: Sequence[EntityPath]
    ) -> Iterator[OrphanCandidate]:
        """Yield uploads with old parts; an object may still refer to them."""
        before_s = self._now() - self._age_s
        for segments in containers:
            last = "", ""
            for row in chain.from_iterable(self._client.pages(segments, size=self._page_size)):
                start, _, number = str(row["name"]).rpartition("/")
                key, _, upload_id = start.rpartition("/")
                is_old = row_timestamp(str(row["last_modified"])).seconds < before_s
                is_part = bool(key) and part_number_of_name(number) is not None
                if is_part and is_old and (key, upload_id) != last:
                    last = key, upload_id
                    yield OrphanCandidate(entry, segments, key, upload_id)

    # --- ending ---------------------------------------------------------------------------------------

    def remove_orphan(self, unit: OrphanCandidate) -> str:
        """Delete the parts of an upload to which no version of its object refers."""
        bucket = unit.entry.path
        marks = EntityPath(bucket.account, segments_container(unit.entry.bucket))
        if self._client.head(marks._replace(obj=marker_name(unit.key, unit.upload_id))) is not None:
            # The upload has not ended.
            return KEPT
        named = find_part_references(
            self._client, bucket, unit.key, unit.upload_id, page_size=self._page_size
        )
        if named is None:
            return CHANGED
        statuses = remove_parts(self._client, unit.segments, unit.key, unit.upload_id, named)
        if not statuses:
            return KEPT
        return LOCKED if 403 in statuses else ENDED
