"""Opening an object: from a list of names to a merged state (spec: object-disk.md §8).

``load`` decides which files win, reads their metadata, merges the data's with the POSTs' and checks that
all of it fits together. It changes nothing; damage is raised as ``Damaged`` and the engine quarantines.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.platform.disk import Disk
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectKey, ObjectState, Viewpoint
from swift.store.chooser import Choice, choose
from swift.store.errors import Damaged, FilesChanged, HashCollision
from swift.store.filenames import DATA, FileName
from swift.store.metadata import Metadata, read_metadata

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_DAMAGE = frozenset((errno.EIO, errno.ENODATA, errno.EUCLEAN))
#: What a POST cannot change.
_DATA_ONLY = ("Content-Length", "ETag", "deleted", "X-Static-Large-Object")
_SYSMETA = "X-Object-Sysmeta-"


class Loaded:
    """A state with the open data file (None unless asked for) and the choice behind it."""

    __slots__ = ("state", "fd", "choice", "data_path")

    def __init__(self, state: ObjectState, choice: Choice, data_path: str = "", fd: int | None = None):
        self.state = state
        self.choice = choice
        self.data_path = data_path
        self.fd = fd


def load(
    disk: Disk,
    directory: str,
    names: Sequence[str],
    key: ObjectKey,
    view: Viewpoint,
    *,
    open_data: bool,
) -> Loaded:
    """The state that ``names`` in ``directory`` amount to.

    Raises ``FilesChanged`` when a file vanished meanwhile, ``Damaged``, ``HashCollision`` or OSError.
    """
    choice = _choose(names, key, view)
    if choice.data is None:
        return Loaded(_without_data(disk, directory, choice), choice)
    path = f"{directory}/{choice.data.name}"
    fd: int | None = None
    try:
        if open_data:
            fd = disk.open(path, _OPEN_FLAGS)
        source: int | str = path if fd is None else fd
        metadata = read_metadata(disk, source)
        size = (disk.stat(source) if fd is None else disk.fstat(fd)).st_size
        state = _merge(disk, directory, choice, choice.data, metadata)
        _check(state, key, size, view)
    except BaseException as error:
        if fd is not None:
            disk.close(fd)
        if isinstance(error, FileNotFoundError):
            raise FilesChanged(f"files of {directory} are changing")
        if isinstance(error, OSError) and error.errno in _DAMAGE:
            raise Damaged(f"cannot read {path}: {error.strerror}")
        raise
    if key.policy.is_ec:
        _add_fragments(state, choice)
    else:
        state.durable_timestamp = state.data_timestamp
    return Loaded(state, choice, path, fd)


def _choose(names: Sequence[str], key: ObjectKey, view: Viewpoint) -> Choice:
    if len(names) == 1 and names[0].endswith(DATA) and key.policy.ec is None:
        # By far the most frequent directory: one object that was never touched again.
        try:
            return Choice(data=FileName(names[0], Timestamp(names[0][:-5]), DATA))
        except InvalidTimestamp:
            pass
    return choose(names, key.policy.ec, preferences=view.preferences, fragment=view.fragment)


def _without_data(disk: Disk, directory: str, choice: Choice) -> ObjectState:
    if choice.tombstone is None:
        return ObjectState(ABSENT)
    path = f"{directory}/{choice.tombstone.name}"
    try:
        metadata = read_metadata(disk, path)
    except FileNotFoundError:
        raise FilesChanged(f"files of {directory} are changing")
    except OSError as error:
        if error.errno in _DAMAGE:
            raise Damaged(f"cannot read {path}: {error.strerror}")
        raise
    return ObjectState(DELETED, metadata, choice.tombstone.timestamp)


def _merge(disk: Disk, directory: str, choice: Choice, data: FileName, metadata: Metadata) -> ObjectState:
    written = data.timestamp
    state = ObjectState(LIVE, metadata, written, written, written)
    state.data_content_type = metadata.get("Content-Type", "")
    if choice.meta is None:
        state.timestamp = _timestamp(metadata, "X-Timestamp") or written
        return state
    posted = read_metadata(disk, f"{directory}/{choice.meta.name}")
    state.posted = dict(posted)
    merged = posted
    ctype_at = _timestamp(posted, "Content-Type-Timestamp")
    if choice.ctype is not None and choice.ctype is not choice.meta:
        typed = read_metadata(disk, f"{directory}/{choice.ctype.name}")
        typed_at = _timestamp(typed, "Content-Type-Timestamp")
        if typed_at is not None and typed_at > written and (ctype_at is None or typed_at > ctype_at):
            merged["Content-Type"] = typed.get("Content-Type", "")
            merged["Content-Type-Timestamp"] = typed["Content-Type-Timestamp"]
            ctype_at = typed_at
    for name, value in metadata.items():
        if name in _DATA_ONLY or name.startswith(_SYSMETA):
            merged[name] = value
    if ctype_at is None or written > ctype_at:
        merged.pop("Content-Type-Timestamp", None)
        if "Content-Type" in metadata:
            merged["Content-Type"] = metadata["Content-Type"]
        ctype_at = written
    # The name decides what all of this belongs to; it was written by the PUT.
    if "name" in metadata:
        merged["name"] = metadata["name"]
    state.metadata = merged
    state.timestamp = _timestamp(merged, "X-Timestamp") or choice.meta.timestamp
    state.ctype_timestamp = ctype_at
    return state


def _timestamp(metadata: Metadata, name: str) -> Timestamp | None:
    text = metadata.get(name)
    if text is None:
        return None
    try:
        return Timestamp(text)
    except InvalidTimestamp:
        raise Damaged(f"{name} is not a timestamp: {text!r}")


def _check(state: ObjectState, key: ObjectKey, size: int, view: Viewpoint) -> None:
    metadata = state.metadata
    name = metadata.get("name")
    if name is None:
        raise Damaged("metadata has no name")
    path = key.path
    if name != f"/{path.account}/{path.container}/{path.obj}":
        raise HashCollision(f"{key.path} is stored as {name}")
    try:
        expired = "X-Delete-At" in metadata and int(metadata["X-Delete-At"]) <= view.moment_s
        length = int(metadata["Content-Length"])
    except (KeyError, ValueError) as error:
        raise Damaged(f"bad X-Delete-At or Content-Length: {error}")
    if length != size:
        raise Damaged(f"{size} bytes on disk, {length} in the metadata")
    state.size = size
    if expired and not view.open_expired:
        state.kind = EXPIRED


def _add_fragments(state: ObjectState, choice: Choice) -> None:
    state.durable_timestamp = choice.durable_timestamp
    state.durable = choice.durable_timestamp == state.data_timestamp
    state.fragments = [
        (timestamp, [file.fragment or 0 for file in files]) for timestamp, files in choice.fragment_sets
    ]
