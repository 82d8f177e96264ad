"""Selection of the valid and the obsolete files of a hash directory (spec: object-disk.md §6, §7).

``choose`` is pure: it gets names and returns a ``Choice`` that says which files make up the object, which
are obsolete, and which may be reclaimed once they are old. Opening, cleaning up and hashing all act on the
same ``Choice``. Rules are applied in order, each taking files out of play: tombstones, metas, data, result.
Erasure coded data has rules of its own (``fragment_rule``).

Obsolete files go at once, old tombstones and old leftovers once they are past ``reclaim_age``. A tombstone
goes last and only after the removals before it are durable: were it to vanish first in a power cut, what it
had deleted would be back.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from swift.base.timestamp import Timestamp
from swift.platform.disk import Disk
from swift.platform.syncing import sync_directory
from swift.policy.policy import ErasureCode
from swift.store.api import FragmentPreference
from swift.store.layout import DATA, DURABLE, META, TOMBSTONE, FileName, UnexpectedName, parse_name


@dataclass(slots=True)
class Choice:
    """Meaning of the file names of one hash directory."""

    data: FileName | None = None
    meta: FileName | None = None
    ctype: FileName | None = None
    tombstone: FileName | None = None
    obsolete: list[FileName] = field(default_factory=list)
    possible_reclaim: list[FileName] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    #: Erasure coding only: the durable timestamp and every listed set, newest first.
    durable_timestamp: Timestamp | None = None
    fragment_sets: list[tuple[Timestamp, list[FileName]]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if neither an object nor a tombstone is there."""
        return self.data is None and self.tombstone is None


Files = dict[str, list[FileName]]
#: Chooses the data files of one policy type; fills ``choice.data`` and takes files out of the groups.
DataRule = Callable[[Files, Choice], None]


def exclude(groups: Files, choice: Choice, is_obsolete: Callable[[FileName], bool]) -> None:
    """Move every file that is obsolete from its group to ``choice.obsolete``."""
    for extension, files in groups.items():
        gone = [file for file in files if is_obsolete(file)]
        if gone:
            choice.obsolete.extend(gone)
            groups[extension] = [file for file in files if file not in gone]


FragmentSet = tuple[Timestamp, list[FileName]]


def fragment_rule(preferences: list[FragmentPreference] | None, fragment: int | None) -> DataRule:
    """Return the data rule for a reader with these preferences (None: durable only) and wanted index."""

    def rule(groups: Files, choice: Choice) -> None:
        _fragment_data(groups, choice, preferences, fragment)

    return rule


def _fragment_data(
    groups: Files, choice: Choice, preferences: list[FragmentPreference] | None, fragment: int | None
) -> None:
    sets = _sets(groups.get(DATA, []))
    durable_at = _durable_timestamp(groups)
    durable = next((s for s in sets if s[0] == durable_at), None)
    if durable is not None:
        sets = sets[: sets.index(durable) + 1]
    choice.fragment_sets = sets
    chosen, choice.data = _choose_fragment(sets, durable, preferences, fragment)
    if choice.data is not None and durable is not None:
        choice.durable_timestamp = durable_at
    if durable_at is not None:
        orphans = durable is None
        exclude(
            groups,
            choice,
            lambda file: file.timestamp < durable_at or (orphans and file.extension == DURABLE),
        )
    choice.possible_reclaim.extend(
        file for each in sets if each is not durable and each is not chosen for file in each[1]
    )
    if durable is None:
        choice.possible_reclaim.extend(groups.get(META, ()))
    if choice.data is not None and chosen is not durable and META in groups:
        written = choice.data.timestamp
        groups[META] = [file for file in groups[META] if file.timestamp > written]


def _sets(files: list[FileName]) -> list[FragmentSet]:
    """Return archives by timestamp, newest first.

    Each by rising index, equal indexes in descending name order.
    """
    by_time: dict[Timestamp, list[FileName]] = {}
    for file in files:
        by_time.setdefault(file.timestamp, []).append(file)
    return [
        (timestamp, sorted(members, key=lambda file: file.fragment or 0))
        for timestamp, members in sorted(by_time.items(), reverse=True)
    ]


def _durable_timestamp(groups: Files) -> Timestamp | None:
    times = [file.timestamp for file in groups.get(DATA, ()) if file.durable]
    times.extend(file.timestamp for file in groups.get(DURABLE, ()))
    return max(times, default=None)


def _choose_fragment(
    sets: list[FragmentSet],
    durable: FragmentSet | None,
    preferences: list[FragmentPreference] | None,
    fragment: int | None,
) -> tuple[FragmentSet | None, FileName | None]:
    if preferences is None:
        return (durable, _pick(durable, fragment)) if durable is not None else (None, None)
    by_time = {each[0]: each for each in sets}
    candidates = list(sets)
    for preference in preferences:
        listed = by_time.get(preference.timestamp)
        if listed is None:
            continue
        welcome = [file for file in listed[1] if file.fragment not in preference.exclude]
        if welcome:
            return listed, welcome[-1]
        if listed in candidates:
            candidates.remove(listed)
    if not candidates:
        return None, None
    return candidates[0], _pick(candidates[0], fragment)


def _pick(chosen: FragmentSet, fragment: int | None) -> FileName | None:
    members = [file for file in chosen[1] if fragment is None or file.fragment == fragment]
    return members[-1] if members else None


#: Bodies and tombstones whose time is printed without an offset, so that they sort by it.
_PLAIN = re.compile(r"[0-9]{10}\.[0-9]{5}\.(?:data|ts)\Z")
_PLAIN_STEM = 16


def choose(
    names: Collection[str],
    ec: ErasureCode | None = None,
    *,
    preferences: list[FragmentPreference] | None = None,
    fragment: int | None = None,
) -> Choice:
    """Decide over the names of one hash directory.

    ``ec`` is the geometry of an erasure coded policy; ``preferences`` (possibly empty: anything goes) and
    ``fragment`` select among its archives and mean nothing for replicated objects.
    """
    if ec is None:
        return _newer_of_two(names) or _choose(names, None, _replicated_data)
    return _choose(names, ec.fragments, fragment_rule(preferences, fragment))


def _newer_of_two(names: Collection[str]) -> Choice | None:
    """Choose between two bodies or tombstones of a plain object: the newer one wins.

    The rules below say the same. None when that is not what the names are.
    """
    if len(names) != 2:
        return None
    older, newer = sorted(names)
    if older[:_PLAIN_STEM] == newer[:_PLAIN_STEM] or not (_PLAIN.match(older) and _PLAIN.match(newer)):
        return None
    winner = parse_name(newer)
    if winner.extension == DATA:
        return Choice(data=winner, obsolete=[parse_name(older)])
    return Choice(tombstone=winner, obsolete=[parse_name(older)])


def _choose(names: Iterable[str], fragments: int | None, data_rule: DataRule) -> Choice:
    choice = Choice()
    groups: Files = {}
    for name in sorted(names, reverse=True):
        try:
            file = parse_name(name, fragments)
        except UnexpectedName:
            choice.unexpected.append(name)
            continue
        groups.setdefault(file.extension, []).append(file)
    for files in groups.values():
        files.sort(key=_timestamp, reverse=True)
    _tombstone_rule(groups, choice)
    _meta_rule(groups, choice)
    data_rule(groups, choice)
    _result_rule(groups, choice)
    return choice


def _timestamp(file: FileName) -> Timestamp:
    return file.timestamp


def _tombstone_rule(groups: Files, choice: Choice) -> None:
    tombstones = groups.get(TOMBSTONE)
    if not tombstones:
        return
    newest = tombstones[0]
    exclude(
        groups,
        choice,
        lambda file: (
            file is not newest and (file.extension == TOMBSTONE or file.timestamp <= newest.timestamp)
        ),
    )


def _meta_rule(groups: Files, choice: Choice) -> None:
    metas = groups.get(META)
    if not metas or len(metas) == 1:
        return
    first = metas[0]
    # None sorts lowest: a meta without content type says nothing about it.
    rest = sorted(metas[1:], key=_ctype_order, reverse=True)
    second = rest[0]
    keep = [first]
    if _ctype_order(second) > _ctype_order(first):
        keep = [second] if second.timestamp == first.timestamp else [first, second]
    choice.obsolete.extend(file for file in metas if file not in keep)
    groups[META] = keep


def _ctype_order(file: FileName) -> tuple[int, int]:
    ctype = file.ctype_timestamp
    return (-1, 0) if ctype is None else (ctype.raw, ctype.offset)


def _replicated_data(groups: Files, choice: Choice) -> None:
    files = groups.get(DATA)
    if not files:
        choice.possible_reclaim.extend(groups.get(META, ()))
        return
    winner = choice.data = files[0]
    exclude(
        groups,
        choice,
        lambda file: file is not winner and (file.extension == DATA or file.timestamp <= winner.timestamp),
    )


def _result_rule(groups: Files, choice: Choice) -> None:
    metas = groups.get(META)
    if choice.data is not None:
        if metas:
            choice.meta = metas[0]
            last = metas[-1]
            if last.ctype_timestamp is not None and last.ctype_timestamp > choice.data.timestamp:
                choice.ctype = last
    elif tombstones := groups.get(TOMBSTONE):
        choice.tombstone = tombstones[0]


@dataclass(frozen=True, slots=True)
class ReclaimRules:
    """Ages in seconds; ``commit_window_s`` not above 0 turns the extra condition off."""

    reclaim_age_s: float = 604800.0
    commit_window_s: float = 60.0


def files_to_remove(
    choice: Choice, rules: ReclaimRules, now_s: float, mtime_of: Callable[[str], float]
) -> list[FileName]:
    """Return the files that cleanup removes, the tombstone last; ``mtime_of`` gives a file's mtime by
    name.
    """
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

    ``keep`` (the partition) and what is above it stays. A hash directory that another process holds stays as
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
    """Like ``remove_if_empty``, unless another process holds the directory."""
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
