"""What deletions are told as."""

from __future__ import annotations

from swift.s3.call import Call
from swift.s3.notifications.events import announce
from swift.s3.removal import Removed


def announce_removal(call: Call, key: str, removed: Removed, *, by_version: bool) -> None:
    """Keep the event of a deletion; raises ``S3Error``. Removing a version, a mark too, is a deletion."""
    made_marker = removed.is_marker and not by_version
    event = "DeleteMarkerCreated" if made_marker else "Delete"
    announce(call, f"s3:ObjectRemoved:{event}", key, version=removed.version)
