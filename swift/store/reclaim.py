"""Cleaning up a hash directory (spec: object-disk.md §7): deciding is pure, removing follows it.

Obsolete files go at once, old tombstones and old leftovers once they are past ``reclaim_age``. A tombstone
goes last and only after the removals before it are durable: were it to vanish first in a power cut, what
it had deleted would be back.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.platform.disk import Disk
from swift.platform.syncing import sync_directory
from swift.store.choice import Choice
from swift.store.filenames import DATA, FileName


@dataclass(frozen=True, slots=True)
class ReclaimRules:
    """Ages in seconds; ``commit_window_s`` not above 0 turns the extra condition off."""

    reclaim_age_s: float = 604800.0
    commit_window_s: float = 60.0


def files_to_remove(
    choice: Choice, rules: ReclaimRules, now_s: float, mtime_of: Callable[[str], float]
) -> list[FileName]:
    """What cleanup removes, the tombstone last; ``mtime_of`` gives a file's mtime by name."""
    horizon = now_s - rules.reclaim_age_s
    gone = list(choice.obsolete)
    for file in choice.possible_reclaim:
        if file in gone or file.timestamp.seconds >= horizon:
            continue
        if file.extension == DATA and rules.commit_window_s > 0:
            try:
                if mtime_of(file.name) > now_s - rules.commit_window_s:
                    continue
            except FileNotFoundError:
                continue
        gone.append(file)
    if choice.tombstone is not None and choice.tombstone.timestamp.seconds < horizon:
        gone.append(choice.tombstone)
    return gone


def clean_up(
    disk: Disk, directory: str, names: list[str], choice: Choice, rules: ReclaimRules, now_s: float
) -> list[str]:
    """Remove what the choice allows; the names that are left. Removes an empty directory too.

    Takes a reclaimed tombstone out of the choice. Raises OSError.
    """
    gone = files_to_remove(choice, rules, now_s, lambda name: disk.stat(f"{directory}/{name}").st_mtime)
    for file in gone:
        if file is choice.tombstone:
            sync_directory(disk, directory)
            choice.tombstone = None
        try:
            disk.unlink(f"{directory}/{file.name}")
        except FileNotFoundError:
            # A server of another kind, which does not share our lock, was quicker.
            pass
    removed = {file.name for file in gone}
    left = [name for name in names if name not in removed] if removed else names
    if not left:
        remove_if_empty(disk, directory)
    return left


def remove_if_empty(disk: Disk, directory: str) -> bool:
    """rmdir when nothing is in it; whether it is gone now."""
    try:
        disk.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_made(disk: Disk, directory: str, made: Sequence[str], *, keep: str, is_held: bool = False) -> None:
    """Take back ``directory`` and the parents that ``make_directories`` made, while they are empty.

    ``keep`` (the partition) and what is above it stays. A hash directory that somebody else holds stays as
    well, because it is about to be filled; ``is_held`` says that the caller does.
    """
    # ``made`` are the parents of new directories, so its last entry existed before.
    for path in (directory, *made[:-1]):
        if len(path) <= len(keep):
            return
        is_free = is_held or path != directory
        if not (remove_if_empty(disk, path) if is_free else _remove_unheld(disk, path)):
            return


def _remove_unheld(disk: Disk, directory: str) -> bool:
    """Like ``remove_if_empty``, unless somebody holds the directory."""
    try:
        fd = disk.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return remove_if_empty(disk, directory)
    except OSError:
        return False
    finally:
        disk.close(fd)
