"""Which buckets have a lifecycle or inventories: an empty object for each in a hidden account, as the expirer
has a queue.

It is written after the rules and before they are acknowledged; what stands there in vain the daemon removes,
unless it was written again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient

ACCOUNT, CONTAINER = ".s3_lifecycle", "buckets"
HOME = EntityPath(ACCOUNT, CONTAINER)


class RegisteredBucket(NamedTuple):
    """A bucket that has, or had, a lifecycle."""

    account: str
    bucket: str
    #: When its lifecycle was set last.
    changed: Timestamp

    @property
    def name(self) -> str:
        """What it is called in the registry, and in what a pass remembers."""
        return f"{self.account}/{self.bucket}"

    @property
    def path(self) -> EntityPath:
        """The bucket's container."""
        return EntityPath(self.account, self.bucket)


def place_of(account: str, bucket: str) -> EntityPath:
    """Where a bucket is registered."""
    return HOME._replace(obj=f"{account}/{bucket}")


def entries(client: InternalClient) -> Iterator[RegisteredBucket]:
    """All of them, in the order of their names; raises ``UnexpectedAnswer``."""
    for row in client.objects(ACCOUNT, CONTAINER):
        account, slash, bucket = str(row.get("name", "")).partition("/")
        if slash and account and bucket:
            yield RegisteredBucket(account, bucket, time_of(str(row.get("last_modified", ""))))


def forget(client: InternalClient, entry: RegisteredBucket) -> None:
    """Remove an entry, unless it was written again; raises ``UnexpectedAnswer``."""
    stamp = entry.changed.above(1).internal
    path = place_of(entry.account, entry.bucket)
    client.delete(path, {"x-timestamp": stamp}, accept=(2, 404, 409))


def time_of(last_modified: str) -> Timestamp:
    """The time of a row of a listing; now, which is never too early, for a row without one."""
    try:
        return Timestamp(datetime.fromisoformat(last_modified).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return Timestamp.now()
