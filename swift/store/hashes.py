"""Suffix hashes of a partition and the two files that cache them (spec: object-disk.md §11).

``hashes.pkl`` holds the last known hash of every suffix, ``hashes.invalid`` is a journal of suffixes that
changed since. Writers append to the journal before a file becomes visible; a request for hashes folds
the journal into the pickle and computes the dirty ones afresh. Both files change only under ``.lock``.

The journal is not synced with every change, so a power cut may lose its end. Therefore the pickle carries
the id of the kernel's run in an attribute, and one of an earlier run is not believed: the partition is
hashed anew once (doc/decisions/0005-hashes-after-a-crash.md).
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from swift.base.clock import Clock
from swift.base.hashing import short_md5
from swift.base.pickles import PickleRefused, restricted_loads
from swift.platform.disk import Disk, JournalLines
from swift.platform.durable import make_directories, replace_file, write_all
from swift.platform.locks import file_lock, lock_directory, lock_file
from swift.platform.regularfiles import (
    IrregularFile,
    move_irregular_file_aside,
    open_or_replace,
    open_regular,
    read_regular,
)
from swift.platform.syncing import sync_directory
from swift.policy.policy import Policy
from swift.store.chooser import Choice, ReclaimRules, choose, clean_up, files_to_remove, remove_if_empty
from swift.store.layout import is_plain_data, is_suffix
from swift.store.metadata import read_attribute

HASHES_FILE = "hashes.pkl"
JOURNAL_FILE = "hashes.invalid"
LOCK_FILE = ".lock"
#: On ``hashes.pkl``: the run of the kernel in which it was written.
BOOT_ATTRIBUTE = "user.swift.boot"
#: For so long after a change, another one may not show in the time of the file.
FRESH_NS = 1_000_000_000
_RESERVED = frozenset(("valid", "updated"))
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC

#: A digest (replicated) or key → digest (erasure coding); None means dirty.
SuffixHash = str | dict[int | None, str] | None


def mark_dirty(disk: Disk, partition_path: str, suffixes: Iterable[str], *, device_path: str) -> None:
    """Journal suffixes as changed, creating a missing partition. Raises ``LockTimeout`` or OSError."""
    lines = journal_lines(partition_path, suffixes)
    try:
        _append(disk, lines)
    except FileNotFoundError:
        make_partition(disk, partition_path, below=device_path)
        try:
            _append(disk, lines)
        except FileNotFoundError:
            # The partition is being removed right now; the process that creates it again marks it again.
            return


def make_partition(disk: Disk, path: str, *, below: str) -> None:
    """Make a missing partition durably: later writers rely on that. Raises OSError."""
    for parent in make_directories(disk, path, below=below):
        sync_directory(disk, parent)


def journal_lines(partition_path: str, suffixes: Iterable[str]) -> JournalLines:
    """Return what ``mark_dirty`` appends."""
    lines = "\n".join((*suffixes, "")).encode()
    return JournalLines(f"{partition_path}/{LOCK_FILE}", f"{partition_path}/{JOURNAL_FILE}", lines)


def _append(disk: Disk, lines: JournalLines) -> None:
    if disk.try_append(lines):
        return
    lock = lock_file(disk, lines.lock_path)
    try:
        fd = open_or_replace(disk, lines.path, _APPENDING, 0o644)
        try:
            write_all(disk, fd, lines.lines)
        finally:
            disk.close(fd)
    finally:
        disk.close(lock)


def journal_token(disk: Disk, partition_path: str, now_ns: int) -> str:
    """Return what changes with every line of the journal and with ``cache_stamp``, after a slash.

    It is empty while there are lines, while the last one is too fresh to be sure, and without a cache of
    hashes. ``now_ns`` is Unix time by the kernel's clock, which stamps files. Raises OSError.
    """
    try:
        found = disk.stat(f"{partition_path}/{JOURNAL_FILE}")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if found.st_size or found.st_mtime_ns + FRESH_NS > now_ns:
        return ""
    stamp = cache_stamp(disk, partition_path)
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}/{stamp}" if stamp else ""


def cache_stamp(disk: Disk, partition_path: str) -> str:
    """Return what changes when ``hashes.pkl`` is replaced or a name in the partition comes or goes.

    It is empty without ``hashes.pkl``: removing that file is the known way to have a partition hashed anew.
    Raises OSError.
    """
    try:
        cache = disk.stat(f"{partition_path}/{HASHES_FILE}")
        directory = disk.stat(partition_path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{cache.st_ino:x}-{cache.st_mtime_ns:x}-{directory.st_ino:x}-{directory.st_mtime_ns:x}"


def journal_idle_s(disk: Disk, partition_path: str, now_ns: int) -> float:
    """Seconds since the last line came into the journal, or it was emptied; infinite without a journal.

    ``now_ns`` is Unix time by the kernel's clock, which stamps files. Raises OSError.
    """
    try:
        written_ns = disk.stat(f"{partition_path}/{JOURNAL_FILE}").st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return math.inf
    # A clock that was set back says nothing.
    return (now_ns - written_ns) / 1e9 if written_ns <= now_ns else math.inf


def _read_file(disk: Disk, path: str) -> bytes | None:
    try:
        return read_regular(disk, path)
    except FileNotFoundError:
        return None
    except IrregularFile:
        # A cache or a journal that cannot be one: as good as none, and the way is free for the next.
        move_irregular_file_aside(disk, path)
        return None


def _dirty_in(journal: bytes) -> set[str]:
    return {line for line in journal.decode("ascii", "replace").split("\n") if is_suffix(line)}


def read_hashes(disk: Disk, partition_path: str) -> dict[str, object]:
    """``hashes.pkl``; ``{"valid": False}`` when it is missing, unreadable or outdated. Raises OSError."""
    data = _read_file(disk, f"{partition_path}/{HASHES_FILE}")
    invalid: dict[str, object] = {"valid": False}
    if data is None:
        return invalid
    try:
        hashes = restricted_loads(data)
    except PickleRefused:
        return invalid
    if not isinstance(hashes, dict):
        return invalid
    for name in hashes:
        if name not in _RESERVED and not (isinstance(name, str) and is_suffix(name)):
            return invalid
    hashes.setdefault("valid", True)
    hashes.setdefault("updated", -1)
    return hashes if _is_of_this_boot(disk, f"{partition_path}/{HASHES_FILE}", hashes) else invalid


def _is_of_this_boot(disk: Disk, path: str, hashes: dict[str, object]) -> bool:
    """Return True if no change that should be in these hashes can have been lost by a crash of the
    machine.
    """
    boot = disk.boot()
    if not boot.id:
        return True
    try:
        mark = read_attribute(disk, path, BOOT_ATTRIBUTE)
    except FileNotFoundError:
        return False
    if mark is None:
        # Written by a server of another kind, which is believed as far as it believes itself.
        updated = hashes["updated"]
        return isinstance(updated, int | float) and updated >= boot.began_s
    return mark == boot.id.encode()


def write_hashes(disk: Disk, partition_path: str, hashes: dict[str, object], now_s: float) -> None:
    """Replace ``hashes.pkl``; the caller holds ``.lock``. Raises OSError."""
    hashes["updated"] = now_s
    hashes.setdefault("valid", True)
    boot = disk.boot()
    attributes = {BOOT_ATTRIBUTE: boot.id.encode()} if boot.id else None
    replace_file(disk, f"{partition_path}/{HASHES_FILE}", pickle.dumps(hashes, 2), attributes=attributes)


def consolidate(disk: Disk, partition_path: str, now_s: float) -> Hashes:
    """Fold the journal into the pickle; the hashes with dirty ones None. Raises OSError, ``LockTimeout``."""
    with file_lock(disk, f"{partition_path}/{LOCK_FILE}"):
        hashes = read_hashes(disk, partition_path)
        journal = _read_file(disk, f"{partition_path}/{JOURNAL_FILE}")
        if not journal:
            return hashes
        dirty = _dirty_in(journal)
        if dirty:
            hashes.update(dict.fromkeys(dirty))
            write_hashes(disk, partition_path, hashes, now_s)
        fd = open_regular(disk, f"{partition_path}/{JOURNAL_FILE}", os.O_WRONLY)
        try:
            disk.truncate(fd, 0)
        finally:
            disk.close(fd)
        return hashes


#: Content of ``hashes.pkl``: suffix → hash or None for a dirty one, and a few names that are none.
Hashes = dict[str, Any]


def _without_reserved(hashes: Hashes) -> dict[str, SuffixHash]:
    return {name: value for name, value in hashes.items() if name not in _RESERVED}


class SuffixHasher:
    """Computes and keeps the hashes of one partition."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        partition_path: str,
        policy: Policy,
        rules: ReclaimRules,
        changing: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Enter ``changing`` around the cleaning of a hash directory."""
        self._disk = disk
        self._clock = clock
        self._path = partition_path
        self._policy = policy
        self._rules = rules
        self._changing = changing

    def get_deferred(self, dirty_max: int) -> dict[str, SuffixHash]:
        """Return all suffix hashes; write nothing while at most ``dirty_max`` suffixes are dirty.

        They stay dirty on the disk, so the caller need not store the result. Raises like ``get``.
        """
        try:
            with file_lock(self._disk, f"{self._path}/{LOCK_FILE}"):
                hashes = read_hashes(self._disk, self._path)
                journal = _read_file(self._disk, f"{self._path}/{JOURNAL_FILE}") or b""
        except FileNotFoundError:
            return {}
        dirty = _dirty_in(journal)
        if not hashes.get("valid") or len(dirty) > dirty_max:
            return self.get()
        known: Hashes = {**hashes, **dict.fromkeys(dirty)}
        return _without_reserved(self._refresh(known, [], False) or known)

    def get(self, recalculate: Iterable[str] = (), *, list_suffixes: bool = False) -> dict[str, SuffixHash]:
        """Return all suffix hashes; see the interface. Raises OSError and ``LockTimeout``."""
        wanted = [suffix for suffix in recalculate if is_suffix(suffix)]
        while True:
            try:
                seen = consolidate(self._disk, self._path, self._clock.time())
            except FileNotFoundError:
                return {}
            result = self._refresh(dict(seen), wanted, list_suffixes)
            if result is None or self._store(seen, result):
                return _without_reserved(seen if result is None else result)

    def _refresh(self, hashes: Hashes, wanted: list[str], list_suffixes: bool) -> Hashes | None:
        """Return the hashes made current; None when nothing had to be done."""
        changed = not hashes.get("valid")
        if changed:
            hashes = {"valid": True}
        if changed or list_suffixes:
            # New and missing suffixes are dirty. A listing that finds neither is not written.
            listed = set(filter(is_suffix, self._disk.listdir(self._path)))
            for name in listed.symmetric_difference(hashes.keys() - _RESERVED):
                hashes[name] = None
        for suffix in wanted:
            hashes[suffix] = None
        for suffix in [name for name, value in hashes.items() if value is None]:
            changed = True
            try:
                hashes[suffix] = self.hash_suffix(suffix)
            except (FileNotFoundError, NotADirectoryError):
                del hashes[suffix]
            except OSError:
                # Left dirty: the next request retries.
                hashes[suffix] = None
        return hashes if changed else None

    def _store(self, seen: dict[str, object], hashes: dict[str, object]) -> bool:
        """Write unless another process did meanwhile."""
        try:
            with file_lock(self._disk, f"{self._path}/{LOCK_FILE}"):
                if read_hashes(self._disk, self._path) != seen:
                    return False
                write_hashes(self._disk, self._path, hashes, self._clock.time())
        except FileNotFoundError:
            # The partition was removed while it was hashed.
            hashes.clear()
        return True

    def hash_suffix(self, suffix: str) -> SuffixHash:
        """Clean up and hash one suffix directory. FileNotFoundError when it is (now) gone."""
        directory = f"{self._path}/{suffix}"
        listdir, is_ec = self._disk.listdir, self._policy.is_ec
        common: list[str] = []
        feeds: SuffixFeeds | None = None
        names = listdir(directory)
        if len(names) > 1:
            names.sort()
        for name in names:
            path = f"{directory}/{name}"
            try:
                files = listdir(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if len(files) == 1 and not is_ec and is_plain_data(files[0]):
                # By far the most frequent directory: one object that was never touched again.
                common.append(files[0])
                continue
            choice = self._cleaned(path, files)
            if choice is not None:
                feeds = feeds or SuffixFeeds(common)
                feeds.add(choice, is_ec=is_ec)
        if feeds is not None:
            return feeds.result(is_ec=is_ec)
        if not common and remove_if_empty(self._disk, directory):
            raise FileNotFoundError(directory)
        return {} if is_ec else _digest(common)

    def _cleaned(self, directory: str, names: list[str]) -> Choice | None:
        """Return the choice of a hash directory after cleanup; None when nothing is left of it."""
        try:
            choice = choose(names, self._policy.ec)
            now_s = self._clock.time()
            if names and not files_to_remove(choice, self._rules, now_s, lambda _name: 0.0):
                return choice
            fd = lock_directory(self._disk, directory)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            with self._changing(directory):
                names = self._disk.listdir(directory)
                choice = choose(names, self._policy.ec)
                left = clean_up(self._disk, directory, names, choice, self._rules, now_s)
        finally:
            self._disk.close(fd)
        return choose(left, self._policy.ec) if left else None


class SuffixFeeds:
    """The MD5 inputs of one suffix; add objects by rising hash."""

    __slots__ = ("common", "_fragments")

    def __init__(self, common: list[str] | None = None) -> None:
        #: All that is not of a fragment; of an object that is one replicated data file just its name.
        self.common: list[str] = [] if common is None else common
        self._fragments: dict[int | None, list[str]] = {}

    def add(self, choice: Choice, *, is_ec: bool) -> None:
        """Add one object, in the order of spec §11."""
        if choice.meta is not None:
            self.common.append(f"{choice.meta.timestamp.internal}.meta")
        elif choice.tombstone is not None:
            self.common.append(f"{choice.tombstone.timestamp.internal}.ts")
        if not is_ec:
            if choice.data is not None:
                self.common.append(f"{choice.data.timestamp.internal}.data")
        else:
            if choice.durable_timestamp is not None:
                self.common.append(f"{choice.durable_timestamp.internal}.durable")
            for timestamp, files in choice.fragment_sets:
                for index in {file.fragment for file in files}:
                    self._fragments.setdefault(index, []).append(timestamp.internal)
        if choice.ctype is not None and choice.ctype.ctype_timestamp is not None:
            self.common.append(f"{choice.ctype.ctype_timestamp.internal}_ctype")

    def result(self, *, is_ec: bool) -> SuffixHash:
        """Return a digest.

        With erasure coding one of each fragment index, and of None for what they share.
        """
        if not is_ec:
            return _digest(self.common)
        texts: dict[int | None, list[str]] = {None: self.common} if self.common else {}
        texts.update(self._fragments)
        return {key: _digest(each) for key, each in texts.items()}


def _digest(texts: list[str]) -> str:
    return short_md5("".join(texts).encode()).hexdigest()
