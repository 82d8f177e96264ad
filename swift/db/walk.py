"""Finding all databases of a device, as daemons do that look at each of them.

It lists directories only; opening one shows if it holds a database.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from swift.db.files import DatabasePath
from swift.platform.diskhandle import DiskHandle

PORTION = 32
_HASH_DIGITS = 32
_HEX = frozenset("0123456789abcdef")


def is_hash(name: str) -> bool:
    """Return True if a directory's name may be a database's hash."""
    return len(name) == _HASH_DIGITS and _HEX.issuperset(name)


def partitions(disk: DiskHandle, device_path: str, kind: str, rng: random.Random) -> list[str]:
    """Return the partitions of ``accounts`` or ``containers`` on a device, in random order.

    So that daemons on several nodes do not all begin with the same. Raises OSError.
    """
    found = [name for name in names_in(disk, f"{device_path}/{kind}") if name.isascii() and name.isdigit()]
    rng.shuffle(found)
    return found


def places(
    disk: DiskHandle, device_path: str, kind: str, partition: str, unreadable: Callable[[OSError], object]
) -> Iterator[DatabasePath]:
    """Yield the hash directories of a partition, one by one.

    ``unreadable`` hears of what cannot be listed.
    """

    def names(directory: str) -> list[str]:
        try:
            return names_in(disk, directory)
        except OSError as error:
            unreadable(error)
            return []

    root = f"{device_path}/{kind}/{partition}"
    for suffix in names(root):
        for name_hash in names(f"{root}/{suffix}"):
            if is_hash(name_hash):
                yield DatabasePath(device_path, kind, partition, name_hash)


def portions(partitions: Sequence[str]) -> Iterator[Sequence[str]]:
    """Partitions, as many at a time as are looked at in one call of a disk thread."""
    for start in range(0, len(partitions), PORTION):
        yield partitions[start : start + PORTION]


def names_in(disk: DiskHandle, directory: str) -> list[str]:
    """Return the names in a directory; none when it went away, or is a file that does not belong there."""
    try:
        return disk.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
