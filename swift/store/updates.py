"""Container updates kept for later: the ``async_pending`` files (spec: object-disk.md §14).

One pickle per object and timestamp; an equal name is replaced, so that several failing hosts leave one
file. Written as plain dictionaries with the header names the peer uses, which its updater reads as well.
"""

from __future__ import annotations

import pickle
from typing import Any

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.pickles import PickleRefused, restricted_loads
from swift.base.timestamp import Timestamp
from swift.platform.disk import Disk
from swift.platform.durable import make_directories, replace_file
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate
from swift.store.layout import async_dir, suffix_of, temporary_dir


def encode_update(update: AsyncUpdate, *, extra: dict[str, Any] | None = None) -> bytes:
    """The content of the file; ``extra`` holds what the updater adds (successes, redirect_history)."""
    record: dict[str, Any] = {
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


def decode_update(data: bytes) -> tuple[AsyncUpdate, dict[str, Any]]:
    """A file's update and what the updater added to it; raises ``PickleRefused``."""
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


def update_path(device_path: str, policy: Policy, object_hash: str, timestamp: Timestamp) -> str:
    """Where the update of an object lies."""
    directory = async_dir(device_path, policy)
    return f"{directory}/{suffix_of(object_hash)}/{object_hash}-{timestamp.internal}"


def write_update(
    disk: Disk,
    hasher: PathHasher,
    device_path: str,
    policy: Policy,
    update: AsyncUpdate,
    timestamp: Timestamp,
    *,
    extra: dict[str, Any] | None = None,
) -> str:
    """Keep an update durably, replacing one of the same object and time; its path. Raises OSError."""
    path = update_path(device_path, policy, hasher.hexdigest(*update.path), timestamp)
    unsynced = make_directories(disk, path.rpartition("/")[0], below=device_path)
    if not unsynced:
        # It may be as new as if we had made it, and not yet synced by whoever did.
        unsynced = [async_dir(device_path, policy)]
    temporary = temporary_dir(device_path, policy)
    make_directories(disk, temporary, below=device_path)
    replace_file(
        disk, path, encode_update(update, extra=extra), temporary_directory=temporary, unsynced=unsynced
    )
    return path
