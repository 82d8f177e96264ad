"""Moving damaged things out of the way, with a note of why (spec: object-disk.md §12).

What is damaged is renamed below ``quarantined``; nothing is deleted, and nothing is synced: after a power cut
the damage is simply found again. The note is an extended attribute of what was moved. Servers of the peer
ignore it, and where it cannot be written the move counts all the same.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from dataclasses import dataclass

from swift.base.documents import JsonObject
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.regularfiles import is_blocking

DIRECTORY = "quarantined"
NOTE_ATTRIBUTE = "user.swift.quarantine"
_TAKEN = frozenset((errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR))
_NS = 1e9


@dataclass(frozen=True)
class QuarantineNote:
    """Why something was moved, where it was, and when (Unix seconds)."""

    reason: str = ""
    origin: str = ""
    moved_s: float = 0.0


def move_to_quarantine(disk: Disk, device_path: str, kind: str, path: str, *, reason: str = "") -> str | None:
    """Move ``path`` to ``quarantined/<kind>``; its new path, None when it was already gone.

    Raises OSError when it cannot be moved.
    """
    target = f"{device_path}/{DIRECTORY}/{kind}"
    if is_blocking(disk, f"{device_path}/{DIRECTORY}"):
        raise NotADirectoryError(errno.ENOTDIR, "a file is in the place of", f"{device_path}/{DIRECTORY}")
    make_directories(disk, target, below=device_path)
    moved = f"{target}/{os.path.basename(path)}"
    try:
        disk.rename(path, moved)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        moved = f"{moved}-{uuid.uuid4().hex}"
        disk.rename(path, moved)
    if reason:
        _write_note(disk, moved, QuarantineNote(reason, path[len(device_path) + 1 :], disk.now_ns() / _NS))
    return moved


def _write_note(disk: Disk, path: str, note: QuarantineNote) -> None:
    text = json.dumps({"reason": note.reason[:500], "origin": note.origin, "moved": note.moved_s})
    try:
        disk.setxattr(path, NOTE_ATTRIBUTE, text.encode())
    except OSError:
        # A link or a FIFO has no attributes, and a sick device refuses: the log has the reason as well.
        return


def read_note(disk: Disk, path: str) -> QuarantineNote:
    """Return the note of what was moved; an empty one when there is none."""
    try:
        found: JsonObject = json.loads(disk.getxattr(path, NOTE_ATTRIBUTE))
        return QuarantineNote(
            str(found.get("reason", "")), str(found.get("origin", "")), float(found.get("moved", 0))
        )
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return QuarantineNote()
