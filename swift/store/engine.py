"""The filesystem engine: objects as files in hash directories (spec: object-disk.md).

It ties the parts together: ``reader`` decides what is there, ``edit`` changes it under the lock of the
hash directory, ``hashes`` keeps the suffix hashes, ``quarantine`` removes damage. Reading takes no lock:
a file that vanishes between listing and opening means that a newer one is there, so reading starts over.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Unpack

from swift.base.calls import Attempt, Run
from swift.base.timestamp import Timestamp
from swift.platform.disk import names_in
from swift.policy.policy import Policy
from swift.store.api import (
    Capabilities,
    EditOptions,
    EngineDefaults,
    HashesOptions,
    Location,
    ObjectKey,
    ObjectState,
    ReadOptions,
)
from swift.store.asyncpending import FileUpdates
from swift.store.calls import Effort
from swift.store.core import EngineCore, FileDraft
from swift.store.edit import FileEdit
from swift.store.hashes import SuffixHash, SuffixHasher, mark_dirty
from swift.store.layout import ObjectPath, is_suffix, objects_dir, partition_dir
from swift.store.maintenance import FileMaintenance
from swift.store.partitionlock import ReplicationLocks
from swift.store.reader import Loaded
from swift.store.relink import Linker
from swift.store.remembered import KnownDirectories
from swift.store.reservation import FileReservation, reserve
from swift.store.verified import FileObject, RecentChecks

_CAPABILITIES = Capabilities(rsyncable=True, sendfile=True)


class FileStore(EngineDefaults):
    """``ObjectStore`` on directories, usable by any number of threads and processes at once."""

    def __init__(self, core: EngineCore):
        self.core = core
        self._recent_checks = RecentChecks(core.clock)
        self._known = KnownDirectories(core.disk)
        self._locks = ReplicationLocks(core.disk, core.devices, per_device=core.rules.replications_per_device)
        self._short: dict[str, Run] = {}
        self._long: dict[Effort, dict[str, Run]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    @property
    def updates(self) -> FileUpdates:
        return FileUpdates(self.core.disk, self.core.devices, self.core.hasher)

    def run(self, device: str, effort: Effort) -> Run:
        """See ``ObjectStore``: short calls run on the event loop while the device is quick, see ``Pools``."""
        is_short = effort in (Effort.LOOK, Effort.SHORT, Effort.CHANGE)
        runs = self._short if is_short else self._long.setdefault(effort, {})
        run = runs.get(device)
        if run is None:
            self.core.devices.path(device)
            pools = self.core.pools
            # A device has to be known before its long calls: it is one more to protect from the others.
            run = pools.run(device)
            if not is_short:
                run = pools.threads(device, effort.value)
            runs[device] = run
        return run

    # --- reading -------------------------------------------------------------------------------------

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        return self.core.loaded(key, options, open_data=False, known=self._known)[1].state

    def open(self, key: ObjectKey, options: ReadOptions) -> FileObject:
        return self.opened(*self.core.loaded(key, options, open_data=True, known=self._known))

    def attempt(self, device: str) -> Attempt:
        """Return the executor of calls that memory answers. Raises ``DeviceUnavailable``."""
        self.core.devices.path(device)
        return self.core.pools.attempt(device)

    def try_stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState | None:
        """Return the state of an object that was read before and has not changed."""
        directory = self.core.object_path(key).directory
        loaded = self._known.load(directory, key, options, open_data=False)
        return None if loaded is None else loaded.state

    def try_open(self, key: ObjectKey, options: ReadOptions) -> FileObject | None:
        """Open an object that was read before and has not changed."""
        object_path = self.core.object_path(key)
        loaded = self._known.load(object_path.directory, key, options, open_data=True)
        return None if loaded is None else self.opened(object_path, loaded)

    def opened(self, object_path: ObjectPath, loaded: Loaded) -> FileObject:
        """Return the object behind files that were opened just now."""
        return FileObject(
            self.core.disk,
            loaded.state,
            loaded.fd,
            lambda reason: self.core.quarantine_body(object_path, loaded, reason),
            self._recent_checks,
            self.core.rules.read_bytes,
            loaded.body,
        )

    @property
    def maintenance(self) -> FileMaintenance:
        return FileMaintenance(self.core)

    # --- changing ------------------------------------------------------------------------------------

    def edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[EditOptions]) -> FileEdit:
        return FileEdit(self.core, self.core.object_path(key), options, **how)

    def relink(self, key: ObjectKey, partition: str) -> None:
        Linker(self.core).link_from(Location(key.device, partition, key.policy, key.hash), key.partition)

    def reserve(self, key: ObjectKey, writer: Timestamp) -> FileReservation:
        return reserve(self.core.disk, self.core.clock, self.core.object_path(key), writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> FileDraft:
        return self.core.draft(self.core.object_path(key), size, etag_follows=etag_follows)

    # --- partitions ----------------------------------------------------------------------------------

    def hashes(
        self, device: str, partition: str, policy: Policy, **how: Unpack[HashesOptions]
    ) -> dict[str, SuffixHash]:
        hasher = self.hasher(device, partition, policy)
        try:
            found = hasher.get(**how)
            if found:
                return found
            is_odd = False
        except NotADirectoryError:
            is_odd = True
        # A file or a dangling link is in the place of the partition, or it is empty or missing.
        device_path = self.core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        if not self.core.clear_directory(device_path, policy, path) and is_odd:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return {}

    def hasher(self, device: str, partition: str, policy: Policy) -> SuffixHasher:
        """Return the suffix hasher of a partition.

        Raises ``DeviceUnavailable``.
        """
        core, device_path = self.core, self.core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        changing = partial(core.changes.change, device_path)
        return SuffixHasher(core.disk, core.clock, path, policy, core.rules.reclaim, changing)

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        device_path = self.core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        mark_dirty(self.core.disk, path, filter(is_suffix, suffixes), device_path=device_path)

    def partitions(self, device: str, policy: Policy) -> list[str]:
        try:
            names = self.core.disk.listdir(objects_dir(self.core.devices.path(device), policy))
        except FileNotFoundError:
            return []
        return [name for name in names if name.isascii() and name.isdigit()]

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        path = partition_dir(self.core.devices.path(device), policy, partition)
        for suffix in sorted(
            filter(is_suffix, names_in(self.core.disk, path) if suffixes is None else suffixes)
        ):
            for name in sorted(names_in(self.core.disk, f"{path}/{suffix}")):
                if len(name) == 32 and name.endswith(suffix):
                    yield name

    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> AbstractContextManager[None]:
        return self._locks.hold(device, partition, policy, timeout_s, incoming=incoming)

    def __repr__(self) -> str:
        return f"FileStore({self.core.devices!r})"
