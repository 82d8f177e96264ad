"""Watch of a hash directory's database files, without listing it for every request.

A directory's change time tells whether a name in it came, went or was given to another file. It moves in
steps (of some milliseconds, on old filesystems of a second), so a listing made within the step of the last
change may be out of date without showing it: only listings of directories at rest are kept. No process can
set a change time, other than a modification time.
"""

from __future__ import annotations

from swift.db import files
from swift.db.files import DatabasePath
from swift.platform.disk import Disk

#: Two changes that are so far apart have different times on every filesystem, nanoseconds.
REST_NS = 2_000_000_000


class Watch:
    """The databases of one hash directory; safe to ask in any thread."""

    __slots__ = ("_directory", "_disk", "_place", "_seen")

    def __init__(self, disk: Disk, place: DatabasePath):
        self._disk = disk
        self._place = place
        self._directory = place.directory
        self._seen: tuple[tuple[int, int, int], tuple[str, ...]] | None = None

    def databases(self) -> tuple[str, ...]:
        """Their paths from the oldest epoch on; the same object as before when no name has changed.

        Raises OSError unless the directory is simply missing.
        """
        try:
            status = self._disk.stat(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        identity = (status.st_dev, status.st_ino, status.st_ctime_ns)
        seen = self._seen
        if seen is not None and seen[0] == identity:
            return seen[1]
        # A clock that was set back makes the directory one of the future: not at rest either.
        at_rest = self._disk.now_ns() - status.st_ctime_ns > REST_NS
        found = files.database_files(self._disk, self._place)
        self._seen = (identity, found) if at_rest else None
        return found

    @property
    def is_at_rest(self) -> bool:
        """True if the directory was at rest when it was last asked for: a name that changes will show."""
        return self._seen is not None

    def __repr__(self) -> str:
        return f"<Watch {self._place.name_hash} {'at rest' if self._seen else 'moving'}>"
