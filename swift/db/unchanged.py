"""Tracker of unchanged databases of a device, which a pass skips.

A daemon that found a database in order remembers a mark of its files: their identity, size and change time.
As long as the mark is the same there is nothing to do but to look at it: a ``stat`` of its directories and
files, made for many at a time. What else would make a visit worth while goes into the mark as well: a
number that the daemon changes when its circumstances do (a new ring), and the current one of the periods
within which every database is visited whatever happens. Each database has its own beginning of a period, so
that they are not all due at once.

Change times move in steps, so a database that changed a moment ago has no mark yet. A database that is being
written is left alone until it comes to rest, because a visit now says little about it in a moment, and takes
the device from those who write; one that never rests is visited now and then, and one whose work cannot
wait (``prioritize``) in every pass. The first pass of a process looks at everything, and that after a change
of circumstances: a new ring may have given a database that never rests to a device that lacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from swift.db import files
from swift.db.files import DatabasePath
from swift.db.walk import is_hash
from swift.db.watch import REST_NS
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle

#: A database that is being written is visited after so long, seconds, although it did not come to rest.
BUSY_RECHECK_S = 600.0
#: Directories whose names are remembered; those of some ten thousand databases.
NAMES_MAX = 40_000
#: The share of the time between two passes for which a database must be left alone to be at rest.
REST_FRACTION = 0.25


class DueDatabase(NamedTuple):
    """Database to process, with the mark of its files; None if it changed recently."""

    place: DatabasePath
    mark: int | None

    def __str__(self) -> str:
        return self.place.directory


class Scan(NamedTuple):
    """Databases of some partitions: due ones, empty directories, unreadable ones.

    ``busy`` ones are left alone because they are being written.
    """

    due: list[DueDatabase]
    empty: list[str]
    unreadable: list[OSError]
    busy: list[DatabasePath]


class UnchangedDatabases:
    """Unchanged databases of one device, kept from pass to pass.

    Some 120 bytes a database. A pass begins with ``begin`` and ends with ``end``; databases that were not
    seen in between are forgotten. Each is visited once in ``period_s`` seconds at least, and not more often
    than every ``busy_s`` while it never goes unwritten for ``rest_s``. With ``visits_new`` one that is being
    written is visited at first sight.
    """

    def __init__(
        self,
        disk: DiskHandle,
        period_s: float,
        *,
        busy_s: float,
        rest_s: float = 0.0,
        visits_new: bool = False,
    ):
        self._disk = disk
        self._is_eager = visits_new
        self._busy_ns = busy_s * 1e9
        self._rest_ns = max(REST_NS, int(rest_s * 1e9))
        self._period_ns = int(period_s * 1e9)
        self._known: dict[bytes, int] = {}
        self._seen: dict[bytes, int] = {}
        #: Since when databases that are being written wait for a visit, Unix nanoseconds.
        self._busy: dict[bytes, int] = {}
        #: Databases that are not left alone although they are being written.
        self._urgent: set[bytes] = set()
        self._still_urgent: set[bytes] = set()
        self._is_first = True
        self._names = _Names()
        self._pass_key = 0

    def begin(self, pass_key: int) -> None:
        """Start a pass; changed ``pass_key`` make all databases due, also those that are being written."""
        self._is_first = self._is_first or pass_key != self._pass_key
        self._pass_key = pass_key
        self._seen = {}
        self._still_urgent = set()

    def end(self) -> None:
        """End a pass: forget databases that it did not see."""
        self._known, self._seen = self._seen, {}
        self._urgent = self._still_urgent
        self._is_first = False
        self._names.end()

    def scan(self, device_path: str, kind: str, partitions: Sequence[str], now_ns: int) -> Scan:
        """Scan the databases of some partitions; ``now_ns`` is Unix time."""
        return self._disk.call(self._scan, device_path, kind, partitions, now_ns)

    def _scan(self, disk: Disk, device_path: str, kind: str, partitions: Sequence[str], now_ns: int) -> Scan:
        found = Scan([], [], [], [])
        for partition in partitions:
            root = f"{device_path}/{kind}/{partition}"
            for suffix in self._list_noting(disk, root, now_ns, found):
                for name in self._list_noting(disk, f"{root}/{suffix}", now_ns, found):
                    if is_hash(name):
                        place = DatabasePath(device_path, kind, partition, name)
                        self._scan_place(disk, place, now_ns, found)
        return found

    def _list_noting(self, disk: Disk, directory: str, now_ns: int, found: Scan) -> list[str]:
        """Return the names in a directory; note it if it is empty or unreadable."""
        try:
            names = self._names.of(disk, directory, now_ns)
        except OSError as error:
            found.unreadable.append(error)
            return []
        if not names:
            found.empty.append(directory)
        return names

    def _scan_place(self, disk: Disk, place: DatabasePath, now_ns: int, found: Scan) -> None:
        try:
            mark = self._mark(disk, place, now_ns)
        except OSError:
            # Processing the database reports and handles the error.
            found.due.append(DueDatabase(place, None))
            return
        if not self._is_deferred(place, mark, now_ns):
            found.due.append(DueDatabase(place, mark))
        elif mark is None:
            found.busy.append(place)

    def _is_deferred(self, place: DatabasePath, mark: int | None, now_ns: int) -> bool:
        key = bytes.fromhex(place.name_hash)
        is_urgent = key in self._urgent
        if is_urgent:
            self._still_urgent.add(key)
        if mark is None and is_urgent:
            return False
        if mark is None:
            is_new = self._is_eager and key not in self._known and key not in self._busy
            since_ns = self._busy.setdefault(key, now_ns)
            if not (self._is_first or is_new) and 0 <= now_ns - since_ns < self._busy_ns:
                return True
            self._busy[key] = now_ns
            return False
        self._busy.pop(key, None)
        if self._known.get(key) != mark:
            return False
        self._seen[key] = mark
        return True

    def due(self, place: DatabasePath, now_ns: int) -> DueDatabase | None:
        """Return a database that changed, None if it is unchanged; does not defer busy ones."""
        try:
            mark, key = self._disk.call(self._mark, place, now_ns), bytes.fromhex(place.name_hash)
        except OSError:
            return DueDatabase(place, None)
        if mark is None or self._known.get(key) != mark:
            return DueDatabase(place, mark)
        self._seen[key] = mark
        return None

    def mark_unchanged(self, unit: DueDatabase, now_ns: int) -> None:
        """Record that processing left the database in order, unless it changed meanwhile."""
        if unit.mark is not None and self._disk.call(self._mark, unit.place, now_ns) == unit.mark:
            self._seen[bytes.fromhex(unit.place.name_hash)] = unit.mark

    def missing_partitions(
        self, device_path: str, kind: str, partition_of: Callable[[bytes], int]
    ) -> set[int]:
        """Return the partitions of databases that the last pass knew and that are missing now.

        To be asked when all were seen, before ``end``. Raises OSError.
        """
        return self._disk.call(self._missing_partitions, device_path, kind, partition_of)

    def _missing_partitions(
        self, disk: Disk, device_path: str, kind: str, partition_of: Callable[[bytes], int]
    ) -> set[int]:
        lost: set[int] = set()
        for key in self._known.keys() - self._seen.keys():
            part = partition_of(key)
            place = DatabasePath(device_path, kind, str(part), key.hex())
            if part not in lost and not files.database_files(disk, place):
                lost.add(part)
        return lost

    def prioritize(self, place: DatabasePath, *, is_urgent: bool) -> None:
        """Prioritize a database (or stop doing so): from the next pass on it is processed even while busy."""
        key = bytes.fromhex(place.name_hash)
        if is_urgent:
            self._still_urgent.add(key)
        else:
            self._still_urgent.discard(key)

    def _mark(self, disk: Disk, place: DatabasePath, now_ns: int) -> int | None:
        """Return the mark of a database now, None when it is not at rest or gone. Raises OSError."""
        facts: list[int] = []
        for name in sorted(self._names.of(disk, place.directory, now_ns)):
            if name.endswith((".db", ".pending")):
                try:
                    status = disk.stat(f"{place.directory}/{name}")
                except FileNotFoundError:
                    return None
                if not now_ns - status.st_ctime_ns > self._rest_ns:
                    return None
                facts += (status.st_ino, status.st_size, status.st_ctime_ns)
        period = (now_ns + self._begins_ns(place)) // self._period_ns
        return hash((self._pass_key, period, *facts)) if facts else None

    def _begins_ns(self, place: DatabasePath) -> int:
        """Return the offset of a database's recheck period."""
        return self._period_ns * int(place.name_hash[:8], 16) >> 32

    def __repr__(self) -> str:
        return f"<UnchangedDatabases {len(self._known)} databases>"


class _Names:
    """The names in directories, listed again only when one changed, kept from pass to pass."""

    def __init__(self) -> None:
        #: Directory → its change time, and what was in it then.
        self._known: dict[str, tuple[int, list[str]]] = {}
        self._seen: dict[str, tuple[int, list[str]]] = {}

    def end(self) -> None:
        """End the pass; forget directories that it did not list."""
        self._known, self._seen = self._seen, {}

    def of(self, disk: Disk, directory: str, now_ns: int) -> list[str]:
        """Return the names in a directory; empty if it is missing or a file.

        Raises OSError.
        """
        try:
            changed_ns = disk.stat(directory).st_ctime_ns
            found = self._seen.get(directory) or self._known.get(directory)
            if found is None or found[0] != changed_ns:
                found = changed_ns, disk.listdir(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        if now_ns - changed_ns > REST_NS and len(self._seen) < NAMES_MAX:
            self._seen[directory] = found
        return found[1]
