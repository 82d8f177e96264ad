"""Restore of quarantined objects into the packed engine: their files become records again.

The files were verified (``store.restore``). A name that the object has again stays in the quarantine.
"""

from __future__ import annotations

from swift.platform.durable import make_directories
from swift.platform.syncing import sync_directory
from swift.store.api import Location, ObjectKey
from swift.store.chooser import remove_if_empty
from swift.store.packed.changes import Change, Update
from swift.store.packed.devices import PackedDevices
from swift.store.packed.place import Place, external_entry
from swift.store.packed.record import Record
from swift.store.packed.repack import read_file
from swift.store.reader import ANY_NAME


class PackedRestorer:
    """Restores verified files of one node's packed devices. Raises ``NoSpace``, OSError, ``LockTimeout``."""

    def __init__(self, devices: PackedDevices):
        self._devices = devices

    def restore(self, location: Location, directory: str) -> str:
        """Make verified files an object again; return the hash directory that it would have as files."""
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        place, disk = self._devices.place(key), self._devices.core.disk
        with place.device.holding(place.lock):
            taken = {entry.name for entry in place.entries()}
            for name in sorted(disk.listdir(directory)):
                if name not in taken:
                    self._restore_file(place, directory, name)
        remove_if_empty(disk, directory)
        return place.path(place.partition).directory

    def _restore_file(self, place: Place, directory: str, name: str) -> None:
        entry = external_entry(name, place.key.policy)
        if entry is None:
            return
        disk, source = self._devices.core.disk, f"{directory}/{name}"
        size_max = place.device.object_bytes_max(place.key.policy.index)
        blob, _size, body = read_file(disk, source, size_max)
        header = place.header_of(entry)
        if body is None:
            target = place.path(place.partition)
            made = make_directories(disk, target.directory, below=target.device)
            disk.rename(source, f"{target.directory}/{name}")
            for parent in (target.directory, *made):
                sync_directory(disk, parent)
            record = Record(header)
        else:
            record = Record(header._replace(external=False), blob, body)
        place.device.commit_all([Change(record, [Update(place.partition, [], merges=True)])])
        if body is not None:
            disk.unlink(source)

    def __repr__(self) -> str:
        return f"PackedRestorer({self._devices!r})"
