"""Bytes of other storage classes that no object needs: of what was overwritten, of writes that broke off.

Nobody who overwrites an object asks first what it was, so the daemon looks, once in a week, at what has been
in the containers of other classes for a week. It removes what no version of its object leads to, and only
where the listing of the bucket and the objects' own nodes agree on what there is: a node that is away, or a
row that is late, must never make something look forgotten that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.middleware.s3api.lifecycle.ending import CHANGED, ENDED, KEPT, LOCKED, version_query
from swift.middleware.s3api.lifecycle.registry import RegisteredBucket, time_of
from swift.middleware.s3api.lifecycle.rules import DAY_S
from swift.middleware.s3api.lifecycle.walk import MARKER_TYPE, page_of
from swift.middleware.s3api.names import bucket_of, segments_of
from swift.middleware.s3api.uploads import marker_of

#: Days between two looks, which is also how old something must be.
DAYS = 7
#: How much later than its row an object may seem to be written, seconds.
_ROUNDING_S = 0.001


class Leftover(NamedTuple):
    """Bytes that may belong to nothing."""

    entry: RegisteredBucket
    home: EntityPath
    key: str
    upload_id: str


class Leftovers:
    """Finds them, and ends one after another; raises ``UnexpectedAnswer``."""

    def __init__(self, client: InternalClient, now: Callable[[], float], page_size: int):
        self._client = client
        self._now = now
        self._page_size = page_size

    # --- finding --------------------------------------------------------------------------------------

    def homes(self, entry: RegisteredBucket) -> list[EntityPath]:
        """The containers of the other classes of a bucket."""
        rows = self._client.containers(entry.account, prefix=f"{entry.bucket}+")
        own = segments_of(entry.bucket)
        names = (str(row["name"]) for row in rows)
        found = [name for name in names if name != own and bucket_of(name) == entry.bucket]
        return [EntityPath(entry.account, name) for name in found]

    def is_day(self, entry: RegisteredBucket) -> bool:
        """Whether a bucket is looked at today."""
        digest = md5(entry.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return (int(self._now() // DAY_S) - digest[0]) % DAYS == 0

    def find(self, entry: RegisteredBucket, homes: Sequence[EntityPath]) -> Iterator[Leftover]:
        """What has been there for long enough; whether something leads to it is not known yet."""
        before_s = self._now() - DAYS * DAY_S
        for home in homes:
            last, marker = ("", ""), ""
            while rows := page_of(self._client, home, self._page_size, marker=marker):
                for row in rows:
                    key, _, upload_id = str(row["name"]).rpartition("/")[0].rpartition("/")
                    is_old = time_of(str(row["last_modified"])).seconds < before_s
                    if key and is_old and (key, upload_id) != last:
                        last = (key, upload_id)
                        yield Leftover(entry, home, key, upload_id)
                marker = str(rows[-1]["name"])

    # --- ending ---------------------------------------------------------------------------------------

    def end(self, unit: Leftover) -> str:
        """Remove bytes if no version of their object leads to them."""
        bucket = unit.entry.path
        marks = EntityPath(bucket.account, segments_of(unit.entry.bucket))
        if self._client.head(marks._replace(obj=marker_of(unit.key, unit.upload_id))) is not None:
            # The upload is going on.
            return KEPT
        rows = list(self._rows(bucket, unit.key))
        path = bucket._replace(obj=unit.key)
        current = self._head(path)
        if (current is None) == any(self._is_object(row) for row in rows):
            return CHANGED
        found = [current] if current is not None else []
        for row in rows:
            if row.get("content_type") == MARKER_TYPE:
                continue
            version = str(row.get("version_id", ""))
            seen = self._head(path, version_query(version) if version else "")
            if seen is None or _is_older(seen, row):
                return CHANGED
            found.append(seen)
        if any(seen.get(fields.SYSMETA_S3_UPLOAD_ID) == unit.upload_id for seen in found):
            return KEPT
        prefix = f"{marker_of(unit.key, unit.upload_id)}/"
        statuses = [
            self._client.delete(unit.home._replace(obj=str(row["name"])), accept=(2, 403, 404, 409))
            for row in self._client.listing(unit.home, prefix=prefix)
        ]
        return LOCKED if 403 in statuses else ENDED

    def _is_object(self, row: JsonObject) -> bool:
        """Whether a row is of what the object is now."""
        return bool(row.get("is_latest", True)) and row.get("content_type") != MARKER_TYPE

    def _rows(self, bucket: EntityPath, key: str) -> Iterator[JsonObject]:
        """The rows of an object and its versions."""
        headers = self._client.head(bucket) or {}
        flags = "&versions=true" if "x-versions-enabled" in headers else ""
        marker = version = ""
        while True:
            query = {"prefix": key, "marker": marker, "version_marker": version}
            rows = page_of(self._client, bucket, self._page_size, flags=flags, **query)
            own = [row for row in rows if row.get("name") == key]
            yield from own
            if not flags or len(own) < len(rows) or not rows:
                return
            marker, version = key, str(rows[-1].get("version_id", "null"))

    def _head(self, path: EntityPath, query: str = "") -> HeaderMap | None:
        query += f"{'&' if query else ''}multipart-manifest=get"
        with self._client.ask("HEAD", path, {"x-newest": "true"}, query=query, accept=(2, 404)) as found:
            return dict(found.headers) if found.is_success else None


def _is_older(seen: HeaderMap, row: JsonObject) -> bool:
    """Whether what the nodes have is older than what the listing shows."""
    try:
        return (
            Timestamp(seen.get("x-timestamp", "")).seconds + _ROUNDING_S
            < time_of(str(row["last_modified"])).seconds
        )
    except InvalidTimestamp:
        return True
