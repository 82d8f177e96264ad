"""Quarantine of packed objects: what can be read of them becomes files below ``quarantined``.

They look as if the file engine had moved them there, so ``swift-quarantine`` lists and restores them.
"""

from __future__ import annotations

import json
import os
import uuid

from swift.platform.disk import Disk
from swift.platform.durable import make_directories, write_all
from swift.platform.quarantine import DIRECTORY, NOTE_ATTRIBUTE
from swift.store.errors import Damaged
from swift.store.layout import quarantine_kind
from swift.store.metadata import write_metadata_blob
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry
from swift.store.packed.files import remove
from swift.store.packed.objects import HEAD_BYTES, BadRecord
from swift.store.packed.place import Place
from swift.store.packed.volumes import StoredRecord

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NS = 1e9


def quarantine(place: Place, entries: list[Entry], reason: str) -> str:
    """Move an object to the quarantine and return its new path; the caller holds it. Raises OSError."""
    disk, device = place.core.disk, place.device
    origin = place.core.object_path(place.key).directory
    target = _new_directory(disk, device.path, quarantine_kind(place.key.policy), place.key.hash)
    for entry in entries:
        if entry.external:
            _move_file(disk, f"{origin}/{entry.name}", f"{target}/{entry.name}")
        else:
            _write_record(disk, device, entry, f"{target}/{entry.name}")
    note = {"reason": reason[:500], "origin": origin[len(device.path) + 1 :], "moved": disk.now_ns() / _NS}
    try:
        disk.setxattr(target, NOTE_ATTRIBUTE, json.dumps(note).encode())
    except OSError as error:
        place.core.notice(f"cannot note why {target} was quarantined: {error}")
    remove(place, place.partition, entries)
    place.core.notice(f"Quarantined {place.key.hash} of {device.path} to {target}: {reason}")
    return target


def _new_directory(disk: Disk, device_path: str, kind: str, name: str) -> str:
    parent = f"{device_path}/{DIRECTORY}/{kind}"
    make_directories(disk, parent, below=device_path)
    target = f"{parent}/{name}"
    try:
        disk.mkdir(target)
    except FileExistsError:
        target = f"{target}-{uuid.uuid4().hex}"
        disk.mkdir(target)
    return target


def _move_file(disk: Disk, source: str, target: str) -> None:
    try:
        disk.rename(source, target)
    except FileNotFoundError:
        return


def _write_record(disk: Disk, device: PackedDevice, entry: Entry, target: str) -> None:
    """Write what can be read of a record as a file."""
    try:
        record: StoredRecord | None = device.read(entry, HEAD_BYTES)
    except (BadRecord, Damaged, OSError):
        record = None
    fd = disk.open(target, _FLAGS, 0o600)
    try:
        if record is None:
            return
        write_all(disk, fd, record.raw_body())
        write_metadata_blob(disk, fd, record.metadata)
    finally:
        disk.close(fd)
