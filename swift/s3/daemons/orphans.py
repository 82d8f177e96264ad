"""Orphan cleanup: parts that no object needs.

An overwrite does not ask what it overwrites, and a proxy may die between any two steps of an upload. So the
daemon looks, once in a week, at parts that are a week old. It removes those that no upload has and no version
of their object names (``references``), also where the bucket is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.s3.api.uploads import marker_of, number_of, page_of, references, time_of
from swift.s3.config.lifecyclerules import DAY_S
from swift.s3.daemons.expiration import CHANGED, ENDED, KEPT, LOCKED
from swift.s3.daemons.walk import RegisteredBucket, remove_parts
from swift.s3.names import bucket_of, segments_of

#: Days between two looks at a bucket.
DAYS = 7


class OrphanCandidate(NamedTuple):
    """Parts that may belong to nothing."""

    entry: RegisteredBucket
    segments: EntityPath
    key: str
    upload_id: str


class OrphanCleanup:
    """Finds them, and ends one after another; raises ``UnexpectedResponse``."""

    def __init__(self, client: InternalClient, now: Callable[[], float], page_size: int, age_s: float):
        self._client = client
        self._now = now
        self._age_s = age_s
        self._page_size = page_size

    # --- finding --------------------------------------------------------------------------------------

    def containers(self, entry: RegisteredBucket) -> list[EntityPath]:
        """Return the containers of parts of a bucket."""
        rows = self._client.containers(entry.account, prefix=f"{entry.bucket}+")
        names = (str(row["name"]) for row in rows)
        found = [name for name in names if bucket_of(name) == entry.bucket]
        return [EntityPath(entry.account, name) for name in found]

    def is_day(self, entry: RegisteredBucket) -> bool:
        """Return True if a bucket is looked at today: once in ``DAYS``, or always if parts age faster."""
        if self._age_s < DAY_S:
            return True
        digest = md5(entry.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return (int(self._now() // DAY_S) - digest[0]) % DAYS == 0

    def find(self, entry: RegisteredBucket, containers: Sequence[EntityPath]) -> Iterator[OrphanCandidate]:
        """Return uploads whose parts have been there for long enough; an object may name them."""
        before_s = self._now() - self._age_s
        for segments in containers:
            last, marker = ("", ""), ""
            while rows := page_of(self._client, segments, self._page_size, marker=marker):
                for row in rows:
                    start, _, number = str(row["name"]).rpartition("/")
                    key, _, upload_id = start.rpartition("/")
                    is_old = time_of(str(row["last_modified"])).seconds < before_s
                    if key and is_old and number_of(number) is not None and (key, upload_id) != last:
                        last = (key, upload_id)
                        yield OrphanCandidate(entry, segments, key, upload_id)
                marker = str(rows[-1]["name"])

    # --- ending ---------------------------------------------------------------------------------------

    def end(self, unit: OrphanCandidate) -> str:
        """Remove the parts of an upload that no version of its object names."""
        bucket = unit.entry.path
        marks = EntityPath(bucket.account, segments_of(unit.entry.bucket))
        if self._client.head(marks._replace(obj=marker_of(unit.key, unit.upload_id))) is not None:
            # The upload is going on.
            return KEPT
        named = references(self._client, bucket, unit.key, unit.upload_id, page_size=self._page_size)
        if named is None:
            return CHANGED
        statuses = remove_parts(self._client, unit.segments, unit.key, unit.upload_id, named)
        if not statuses:
            return KEPT
        return LOCKED if 403 in statuses else ENDED
