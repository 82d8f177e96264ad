"""Pending container updates: the ``async_pending`` files (spec: object-disk.md §14).

One pickle per object and timestamp; an equal name is replaced, so that several failing hosts leave one
file. Written as plain dictionaries with the header names the peer uses, which its updater reads as well. Of
several updates of one object the newest holds everything. A file is rewritten under its own name, durably.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.pickles import PickleRefused, restricted_loads
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.platform.devices import Devices
from swift.platform.disk import Disk, names_in
from swift.platform.durable import make_directories, replace_file
from swift.platform.quarantine import move_to_quarantine
from swift.platform.regularfiles import IrregularFile, is_blocking, read_regular
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, PendingUpdate, UpdateRef
from swift.store.errors import Damaged
from swift.store.layout import async_dir, is_suffix, quarantine_kind, suffix_of, temporary_dir

DIRECTORY = "async_pending"
_OPS = frozenset(("PUT", "DELETE"))


def encode_update(update: AsyncUpdate, *, extra: dict[str, object] | None = None) -> bytes:
    """Return the content of the file; ``extra`` holds what the updater adds (successes, redirect_history)."""
    record: dict[str, object] = {
        "op": update.op,
        "account": update.path.account,
        "container": update.path.container,
        "obj": update.path.obj,
        "headers": dict(update.headers),
        "db_state": update.db_state,
    }
    if update.container_path is not None:
        record["container_path"] = update.container_path
    record.update(extra or {})
    return pickle.dumps(record, 2)


def decode_update(data: bytes) -> tuple[AsyncUpdate, dict[str, object]]:
    """Return a file's update and what the updater added to it; raises ``PickleRefused``."""
    record = restricted_loads(data)
    try:
        update = AsyncUpdate(
            record["op"],
            EntityPath(record["account"], record["container"], record["obj"]),
            dict(record["headers"]),
            record.get("db_state"),
            record.get("container_path"),
        )
        extra = {name: record[name] for name in ("successes", "redirect_history") if name in record}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PickleRefused(f"not an async pending: {error!r}")
    return update, extra


class FileUpdates:
    """``PendingUpdates`` of the filesystem engine."""

    def __init__(self, disk: Disk, devices: Devices, hasher: PathHasher):
        self._disk = disk
        self._devices = devices
        self._hasher = hasher

    def _path(self, ref: UpdateRef) -> str:
        root = async_dir(self._devices.path(ref.device), ref.policy)
        return f"{root}/{suffix_of(ref.name.partition('-')[0])}/{ref.name}"

    # --- keeping --------------------------------------------------------------------------------------

    def save(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        disk, device_path = self._disk, self._devices.path(device)
        name = f"{self._hasher.hexdigest(*update.path)}-{timestamp.internal}"
        path = self._path(UpdateRef(device, policy, name))
        directory = path.rpartition("/")[0]
        if is_blocking(disk, directory):
            reason = "it is in the place of a directory"
            move_to_quarantine(disk, device_path, quarantine_kind(policy), directory, reason=reason)
        unsynced = make_directories(disk, directory, below=device_path)
        if not unsynced:
            # Another process may have just created it without a sync.
            unsynced = [async_dir(device_path, policy)]
        temporary = temporary_dir(device_path, policy)
        make_directories(disk, temporary, below=device_path)
        replace_file(disk, path, encode_update(update), temporary_directory=temporary, unsynced=unsynced)

    # --- finding --------------------------------------------------------------------------------------

    def groups(self, device: str, policy: Policy) -> list[str]:
        """See ``PendingUpdates``: the suffixes."""
        return [
            name
            for name in names_in(self._disk, async_dir(self._devices.path(device), policy))
            if is_suffix(name)
        ]

    def objects(self, device: str, policy: Policy, group: str) -> tuple[list[list[UpdateRef]], list[str]]:
        directory = f"{async_dir(self._devices.path(device), policy)}/{group}"
        good: list[str] = []
        bad: list[str] = []
        for name in sorted(names_in(self._disk, directory), reverse=True):
            (good if name.count("-") == 1 and suffix_of(name.partition("-")[0]) == group else bad).append(
                name
            )
        grouped = groupby(good, key=lambda name: name.partition("-")[0])
        found = [[UpdateRef(device, policy, name) for name in names] for _, names in grouped]
        return found, [f"{directory}/{name}" for name in bad]

    def unknown_policies(self, device: str, policies: Iterable[Policy]) -> list[str]:
        path = self._devices.path(device)
        known = {os.path.basename(async_dir(path, policy)) for policy in policies}
        return sorted(
            name for name in names_in(self._disk, path) if name.startswith(DIRECTORY) and name not in known
        )

    # --- reading --------------------------------------------------------------------------------------

    def load(self, ref: UpdateRef) -> PendingUpdate | None:
        try:
            data = read_regular(self._disk, self._path(ref))
        except FileNotFoundError:
            return None
        except IrregularFile as error:
            raise Damaged(f"{error.strerror}")
        try:
            update, extra = decode_update(data)
            timestamp = Timestamp(ref.name.rpartition("-")[2])
        except (PickleRefused, InvalidTimestamp) as error:
            raise Damaged(str(error))
        if update.op not in _OPS or not update.path.container or not update.path.obj:
            raise Damaged(f"not an update of an object: {update.op!r} {update.path!r}")
        if update.container_path is not None and not _is_container(update.container_path):
            update = update._replace(container_path=None)
        headers = {str(name): str(value) for name, value in update.headers.items()}
        return PendingUpdate(
            ref,
            timestamp,
            update._replace(headers=headers),
            tuple(item for item in _items(extra, "successes") if isinstance(item, int)),
            tuple(item for item in _items(extra, "redirect_history") if isinstance(item, str)),
        )

    # --- changing -------------------------------------------------------------------------------------

    def quarantine(self, ref: UpdateRef, reason: str = "") -> str | None:
        """See ``PendingUpdates`` (object-disk.md §12)."""
        return move_to_quarantine(
            self._disk,
            self._devices.path(ref.device),
            quarantine_kind(ref.policy),
            self._path(ref),
            reason=reason,
        )

    def rewrite(self, pending: PendingUpdate) -> None:
        """See ``PendingUpdates``: under the same name."""
        extra: dict[str, object] = {"successes": list(pending.successes)}
        if pending.redirects:
            extra["redirect_history"] = list(pending.redirects)
        device_path = self._devices.path(pending.ref.device)
        temporary = temporary_dir(device_path, pending.ref.policy)
        make_directories(self._disk, temporary, below=device_path)
        data = encode_update(pending.update, extra=extra)
        replace_file(self._disk, self._path(pending.ref), data, temporary_directory=temporary)

    def remove(self, ref: UpdateRef) -> bool:
        """See ``PendingUpdates``; the directory goes with the last file. Nothing is synced."""
        path = self._path(ref)
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            return False
        try:
            self._disk.rmdir(os.path.dirname(path))
        except OSError:
            # There are others, or another process was quicker.
            return True
        return True

    def __repr__(self) -> str:
        return f"FileUpdates({self._devices!r})"


def _is_container(path: object) -> bool:
    return isinstance(path, str) and path.count("/") == 1 and all(path.split("/"))


def _items(extra: dict[str, object], name: str) -> Iterator[object]:
    value = extra.get(name)
    return iter(value if isinstance(value, (list, tuple)) else ())
