"""Relinking for a larger part power: link objects into their new partitions, then remove the old links.

``relink`` gives every file that counts a second name in the partition of the next power; ``remove_old``
takes the first one away, once the second is durably there; ``relink`` is for requests that come meanwhile.
All hold the old hash directory, so that no request changes it then. Nothing is removed of which the new place
has not the same or something newer. spec: object-disk.md §16
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.locks import lock_directory
from swift.platform.quarantine import move_to_quarantine
from swift.platform.syncing import sync_directory
from swift.policy.policy import ErasureCode
from swift.store.api import Location
from swift.store.chooser import choose, clean_up, remove_if_empty
from swift.store.core import EngineCore
from swift.store.errors import Damaged
from swift.store.hashes import mark_dirty
from swift.store.layout import partition_dir, quarantine_kind, suffix_of
from swift.store.reader import list_names


@dataclass
class RelinkCounts:
    """Counts of a relink, by the peer's names."""

    hash_dirs: int = 0
    files: int = 0
    linked: int = 0
    removed: int = 0
    errors: int = 0
    #: True if what was in the way was moved to the quarantine or left in place.
    collisions: int = 0

    def add(self, other: RelinkCounts) -> None:
        """Add up."""
        for name in ("hash_dirs", "files", "linked", "removed", "errors", "collisions"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def target_partition(name_hash: str, part_power: int) -> str:
    """Return the partition of an object under a part power."""
    return str(int(name_hash[:8], 16) >> (32 - part_power))


def required(old: list[str], new: list[str], ec: ErasureCode | None) -> list[str]:
    """Return the names in ``old`` that count when both places are taken together. Pure."""
    choice = choose(sorted({*old, *new}), ec)
    gone = {file.name for file in choice.obsolete}
    strange = set(choice.unexpected)
    return [name for name in sorted(old) if name not in gone and name not in strange]


class Linker:
    """Links objects into two partitions of a device."""

    def __init__(self, core: EngineCore, *, clobber: bool = False):
        self._core = core
        self._clobber = clobber

    def link_from(self, location: Location, partition: str) -> None:
        """Have everything that counts of an object be known in ``partition`` as well.

        What another file of the same name is there, stays. Raises OSError and ``LockTimeout``.
        """
        disk = self._core.disk
        old = self._directory(location)
        new = self._directory(location._replace(partition=partition))
        try:
            names = list_names(disk, old)
            if not names:
                return
            wanted = required(names, list_names(disk, new), location.policy.ec)
        except Damaged:
            # Readers of the new partition notice; the old one is no longer used.
            return
        if all(_is_same(disk, f"{old}/{name}", f"{new}/{name}") for name in wanted):
            return
        with self._both(location, partition) as (old, new, names):
            self._link(location, old, new, names, keeps_new=True)

    def _directory(self, location: Location) -> str:
        device = self._core.devices.path(location.device)
        partition = partition_dir(device, location.policy, location.partition)
        return f"{partition}/{suffix_of(location.hash)}/{location.hash}"

    @contextmanager
    def _both(self, location: Location, partition: str) -> Iterator[tuple[str, str, list[str]]]:
        """Lock the old directory; yield both directories and the old one's files after the cleanup."""
        core, policy = self._core, location.policy
        device = core.devices.path(location.device)
        old = self._directory(location)
        new = self._directory(location._replace(partition=partition))
        with ExitStack() as held:
            try:
                fd = lock_directory(core.disk, old)
            except (FileNotFoundError, NotADirectoryError):
                yield old, new, []
                return
            held.callback(core.disk.close, fd)
            for directory in (old, new):
                held.enter_context(core.changes.change(device, directory))
            self._remove_partial_files(new, policy.ec)
            yield old, new, self._remove_partial_files(old, policy.ec)

    def _remove_partial_files(self, directory: str, ec: ErasureCode | None) -> list[str]:
        core = self._core
        names = list_names(core.disk, directory)
        if not names:
            return []
        return clean_up(
            core.disk, directory, list(names), choose(names, ec), core.rules.reclaim, core.clock.time()
        )

    def _link(
        self, location: Location, old: str, new: str, old_names: list[str], *, keeps_new: bool = False
    ) -> RelinkCounts:
        core, done = self._core, RelinkCounts(hash_dirs=1 if old_names else 0)
        disk, device = core.disk, core.devices.path(location.device)
        wanted = required(old_names, list_names(disk, new), location.policy.ec)
        done.files = len(wanted)
        touched: list[str] = []
        linked = 0
        for name in wanted:
            source, target = f"{old}/{name}", f"{new}/{name}"
            if _is_same(disk, source, target):
                continue
            if not linked:
                # Before the name is visible, so that a crash leaves a dirty suffix at worst.
                touched = make_directories(disk, new, below=device)
                mark_dirty(disk, new.rsplit("/", 2)[0], (suffix_of(location.hash),), device_path=device)
            try:
                disk.link(source, target)
                linked += 1
            except FileExistsError:
                done.collisions += 1
                if keeps_new:
                    continue
                if not self._clobber:
                    core.notice(f"cannot link {source}: {target} exists and is another file")
                    done.errors += 1
                    continue
                reason = f"{name} is another file than in {old}"
                move_to_quarantine(disk, device, quarantine_kind(location.policy), new, reason=reason)
                core.notice(f"Quarantined {new}: {reason}")
                again = self._link(location, old, new, old_names)
                again.collisions += done.collisions
                return again
        if linked:
            for directory in dict.fromkeys((new, *touched)):
                sync_directory(disk, directory)
            self._remove_partial_files(new, location.policy.ec)
        done.linked = linked
        return done


class Splitter(Linker):
    """Moves objects of a device to their partitions under ``next_part_power``."""

    def __init__(self, core: EngineCore, next_part_power: int, *, clobber: bool = False):
        super().__init__(core, clobber=clobber)
        self._power = next_part_power

    def is_in_place(self, location: Location) -> bool:
        """Return True if an object lies where it belongs already."""
        return location.partition == self._target(location)

    def _target(self, location: Location) -> str:
        return target_partition(location.hash, self._power)

    def relink(self, location: Location) -> RelinkCounts:
        """Make an object known in its next place as well. Raises OSError and ``LockTimeout``."""
        with self._both(location, self._target(location)) as (old, new, old_names):
            return self._link(location, old, new, old_names)

    def remove_old(self, location: Location) -> RelinkCounts:
        """Let an object be in its next place only. Raises OSError and ``LockTimeout``."""
        core = self._core
        with self._both(location, self._target(location)) as (old, new, old_names):
            done = self._link(location, old, new, old_names, keeps_new=self._clobber)
            if done.errors or not old_names:
                return done
            device = core.devices.path(location.device)
            ours = [name for name in old_names if not self._is_unexpected(name, location.policy.ec)]
            partition = partition_dir(device, location.policy, location.partition)
            mark_dirty(core.disk, partition, (suffix_of(location.hash),), device_path=device)
            for name in ours:
                core.disk.unlink(f"{old}/{name}")
                done.removed += 1
            sync_directory(core.disk, old)
        if remove_if_empty(core.disk, old):
            remove_if_empty(core.disk, old.rpartition("/")[0])
        return done

    @staticmethod
    def _is_unexpected(name: str, ec: ErasureCode | None) -> bool:
        return bool(choose([name], ec).unexpected)


def _is_same(disk: Disk, one: str, other: str) -> bool:
    try:
        return disk.stat(one).st_ino == disk.stat(other).st_ino
    except FileNotFoundError:
        return False
