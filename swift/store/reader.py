"""Opening an object: from a list of names to a merged state (spec: object-disk.md §8).

``load`` decides which files win, reads their metadata, merges the data's with the POSTs' and checks that
all of it fits together. It changes nothing; damage is raised as ``Damaged`` and the engine quarantines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.platform.disk import Disk, SoleFile
from swift.platform.regularfiles import (
    IrregularFile,
    check_regular,
    irregular_file_at,
    is_blocking,
    open_with_status,
)
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectKey, ObjectState, ReadOptions
from swift.store.chooser import Choice, choose
from swift.store.errors import Damaged, FilesChanged, HashCollision
from swift.store.layout import DATA, FileName
from swift.store.metadata import Metadata, check_metadata_blob, decode_metadata, read_metadata

#: Metadata that a POST cannot change.
_DATA_ONLY = ("Content-Length", "ETag", "deleted", "X-Static-Large-Object")
_SYSMETA = fields.OBJECT_SYSMETA.title()
#: The path of a key whose object is known by its hash only; such callers check the name themselves.
ANY_NAME = EntityPath("")


class Loaded:
    """A state with the open data file (None unless asked for), its status, and the choice behind it.

    ``body`` is that of a small file if it was read with it.
    """

    __slots__ = ("state", "fd", "choice", "data_path", "status", "body")

    def __init__(
        self,
        state: ObjectState,
        choice: Choice,
        data_path: str = "",
        fd: int | None = None,
        status: os.stat_result | None = None,
        body: bytes | None = None,
    ):
        self.state = state
        self.status = status
        self.body = body
        self.choice = choice
        self.data_path = data_path
        self.fd = fd


def list_names(disk: Disk, directory: int | str) -> list[str]:
    """Return the names in a hash directory or its descriptor, none when it is absent.

    Raises ``Damaged`` for what is no directory, and OSError. A directory that cannot be listed is the
    device's error: nothing proves that the object is damaged.
    """
    try:
        return disk.listdir(directory)
    except FileNotFoundError:
        if isinstance(directory, str) and is_blocking(disk, directory):
            raise Damaged("a dangling symbolic link is in place of the hash directory")
        return []
    except NotADirectoryError:
        raise Damaged("a file is in place of the hash directory or of one above it")


def load(
    disk: Disk,
    directory: str,
    names: Sequence[str],
    key: ObjectKey,
    options: ReadOptions,
    *,
    open_data: bool,
    keep: dict[str, Metadata] | None = None,
    sole: SoleFile | None = None,
) -> Loaded:
    """Return the state that ``names`` in ``directory`` amount to; ``keep`` gets the metadata of its files.

    ``sole`` is the only file if it was read already, and closed if it is not returned.
    Raises ``FilesChanged`` when a file vanished meanwhile, ``Damaged`` for files that were read and
    contradict themselves, ``HashCollision``, and OSError when the device fails.
    """
    choice = choose_for(names, key, options)
    data = choice.data
    path = "" if data is None else f"{directory}/{data.name}"
    fd: int | None = None
    if data is None and sole is not None and sole.fd >= 0:
        disk.close(sole.fd)

    def read(file: FileName) -> Metadata:
        where = fd if fd is not None and file is data else f"{directory}/{file.name}"
        if sole is None or file is not data:
            metadata = read_metadata(disk, where)
        else:
            metadata = decode_metadata(check_metadata_blob(disk, where, sole.metadata, sole.checksum)[0])
        if keep is not None:
            keep[file.name] = dict(metadata)
        return metadata

    status: os.stat_result | None = None
    try:
        if data is not None:
            fd, status = _opened(disk, path, sole, open_data=open_data)
        state = state_of(choice, key, options, read, 0 if status is None else status.st_size)
        return Loaded(state, choice, path, fd, status, None if sole is None else sole.body)
    except BaseException as error:
        if fd is not None:
            disk.close(fd)
        if isinstance(error, FileNotFoundError):
            for file in (choice.meta, choice.ctype, choice.tombstone):
                odd = None if file is None else irregular_file_at(disk, f"{directory}/{file.name}")
                if odd is not None:
                    raise Damaged(f"{odd.filename}: {odd.strerror}")
            raise FilesChanged(f"files of {directory} are changing")
        if isinstance(error, IrregularFile):
            raise Damaged(f"{path}: {error.strerror}")
        raise


def _opened(
    disk: Disk, path: str, sole: SoleFile | None, *, open_data: bool
) -> tuple[int | None, os.stat_result]:
    """Return the descriptor of a data file, None unless it is to be opened, and its status."""
    if sole is not None:
        return (sole.fd if sole.fd >= 0 else None), sole.status
    if open_data:
        return open_with_status(disk, path, os.O_RDONLY)
    status = disk.stat(path, follow_symlinks=False)
    check_regular(status.st_mode, path)
    return None, status


def choose_for(names: Sequence[str], key: ObjectKey, options: ReadOptions) -> Choice:
    """Return the choice among ``names`` as this viewer is to have it."""
    if len(names) == 1 and names[0].endswith(DATA) and key.policy.ec is None:
        # By far the most frequent directory: one object that was never touched again.
        try:
            return Choice(data=FileName(names[0], Timestamp(names[0][:-5]), DATA))
        except InvalidTimestamp:
            pass
    return choose(names, key.policy.ec, preferences=options.preferences, fragment=options.fragment)


def state_of(
    choice: Choice, key: ObjectKey, options: ReadOptions, read: Callable[[FileName], Metadata], size: int
) -> ObjectState:
    """Return the state behind a choice; ``read`` gives a file's metadata, ``size`` is that of the data file.

    Raises ``Damaged`` and ``HashCollision``.
    """
    if choice.data is None:
        if choice.tombstone is None:
            return ObjectState(ABSENT)
        return ObjectState(DELETED, read(choice.tombstone), choice.tombstone.timestamp)
    state = _merge_post(choice, choice.data, read)
    _check(state, key, size, options)
    if key.policy.is_ec:
        _add_fragments(state, choice)
    else:
        state.durable_timestamp = state.data_timestamp
    return state


def _merge_post(choice: Choice, data: FileName, read: Callable[[FileName], Metadata]) -> ObjectState:
    written = data.timestamp
    metadata = read(data)
    state = ObjectState(LIVE, metadata, written, written, written)
    state.data_content_type = metadata.get("Content-Type", "")
    state.written = metadata
    if choice.meta is None:
        same = metadata.get("X-Timestamp") == written.internal
        state.timestamp = written if same else _timestamp(metadata, "X-Timestamp") or written
        return state
    posted = read(choice.meta)
    state.posted = dict(posted)
    ctype_at = _apply_newer_type(posted, choice, written, read)
    _apply_post(posted, metadata)
    if ctype_at is None or written > ctype_at:
        posted.pop("Content-Type-Timestamp", None)
        if "Content-Type" in metadata:
            posted["Content-Type"] = metadata["Content-Type"]
        ctype_at = written
    state.metadata = posted
    state.timestamp = _timestamp(posted, "X-Timestamp") or choice.meta.timestamp
    state.ctype_timestamp = ctype_at
    return state


def _apply_newer_type(
    posted: Metadata, choice: Choice, written: Timestamp, read: Callable[[FileName], Metadata]
) -> Timestamp | None:
    """Take the content type of a separate file when it is newer; when it was set, None when never."""
    ctype_at = _timestamp(posted, "Content-Type-Timestamp")
    if choice.ctype is None or choice.ctype is choice.meta:
        return ctype_at
    typed = read(choice.ctype)
    typed_at = _timestamp(typed, "Content-Type-Timestamp")
    if typed_at is None or typed_at <= written or (ctype_at is not None and typed_at <= ctype_at):
        return ctype_at
    posted["Content-Type"] = typed.get("Content-Type", "")
    posted["Content-Type-Timestamp"] = typed["Content-Type-Timestamp"]
    return typed_at


def _apply_post(posted: Metadata, metadata: Metadata) -> None:
    """Put what only a PUT can set over what a POST set."""
    for name, value in metadata.items():
        if name in _DATA_ONLY or name.startswith(_SYSMETA):
            posted[name] = value
    # The name decides what all of this belongs to; it was written by the PUT.
    if "name" in metadata:
        posted["name"] = metadata["name"]


def _timestamp(metadata: Metadata, name: str) -> Timestamp | None:
    text = metadata.get(name)
    if text is None:
        return None
    try:
        return Timestamp(text)
    except InvalidTimestamp:
        raise Damaged(f"{name} is not a timestamp: {text!r}")


def _check(state: ObjectState, key: ObjectKey, size: int, options: ReadOptions) -> None:
    metadata = state.metadata
    name = metadata.get("name")
    if name is None:
        raise Damaged("metadata has no name")
    path = key.path
    if path is not ANY_NAME and name != f"/{path.account}/{path.container}/{path.obj}":
        raise HashCollision(f"{key.path} is stored as {name}")
    try:
        expired = "X-Delete-At" in metadata and int(metadata["X-Delete-At"]) <= options.moment_s
        length = int(metadata["Content-Length"])
    except (KeyError, ValueError) as error:
        raise Damaged(f"bad X-Delete-At or Content-Length: {error}")
    if length != size:
        raise Damaged(f"{size} bytes on disk, {length} in the metadata")
    state.size = size
    if expired and not options.open_expired:
        state.kind = EXPIRED


def _add_fragments(state: ObjectState, choice: Choice) -> None:
    state.durable_timestamp = choice.durable_timestamp
    state.durable = choice.durable_timestamp == state.data_timestamp
    state.fragments = [
        (timestamp, [file.fragment or 0 for file in files]) for timestamp, files in choice.fragment_sets
    ]
