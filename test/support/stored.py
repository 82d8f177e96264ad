"""Stored objects of a device, for every engine: files or packed records."""

import contextlib
import glob
import os
from pathlib import Path

from swift.base.clock import SystemClock
from swift.base.hashing import PathHasher
from swift.platform.devices import Devices
from swift.store.api import ObjectKey
from swift.store.layout import objects_dir
from swift.store.packed.files import remove
from swift.store.packed.place import Place
from swift.store.packed.record import ALIGNMENT
from swift.store.reader import ANY_NAME
from swift.store.registry import EngineParts, packed_store


@contextlib.contextmanager
def opened(device):
    """Return the packed store of a device, opened beside the processes that use it."""
    devices = Devices(str(device.parent), mount_check=False)
    store = packed_store(EngineParts(devices=devices, hasher=PathHasher(b"", b"test"), clock=SystemClock()))
    try:
        yield store
    finally:
        store.close()


class Stored:
    """One object file, or the packed record of that name."""

    def __init__(self, device, policy, partition, object_hash, name, entry=None):
        self.device = device
        self.policy = policy
        self.partition = partition
        self.hash = object_hash
        self.name = name
        self._entry = entry

    @property
    def _identity(self):
        return self.device, self.policy.index, self.partition, self.hash, self.name

    def __eq__(self, other):
        return isinstance(other, Stored) and self._identity == other._identity

    def __hash__(self):
        return hash(self._identity)

    def __repr__(self):
        return f"<Stored {self.device.name} {self.partition} {self.hash} {self.name}>"

    @property
    def is_record(self):
        return self._entry is not None and not self._entry.external

    @property
    def path(self):
        """Return the file's path; records have none."""
        folder = Path(objects_dir(str(self.device), self.policy))
        return folder / str(self.partition) / self.hash[-3:] / self.hash / self.name

    @contextlib.contextmanager
    def _record(self):
        with opened(self.device) as store:
            opened_device = store.devices.device(self.device.name)
            yield opened_device, opened_device.read(self._entry, self._entry.read_bytes)

    def body(self):
        if not self.is_record:
            return self.path.read_bytes()
        with self._record() as (_device, record):
            return bytes(record.raw_body())

    def metadata(self):
        """Return the metadata as stored."""
        if not self.is_record:
            return os.getxattr(self.path, "user.swift.metadata")
        with self._record() as (_device, record):
            return bytes(record.metadata)

    def damage(self, at, data=b"rotten"):
        """Overwrite bytes of the body."""
        if not self.is_record:
            self._write_over(self.path, at, data)
            return
        with self._record() as (device, record):
            header = record.header
            start = self._entry.position.unit * ALIGNMENT + header.prefix_bytes
            self._write_over(device.volumes.path(self._entry.position.volume), start + at, data)

    def damage_head(self):
        """Damage that shows without reading the body: truncate a file, overwrite a record's metadata."""
        if not self.is_record:
            os.truncate(self.path, 3)
            return
        with self._record() as (_device, record):
            length = record.header.metadata_bytes
        self.damage(-length, b"X")

    @staticmethod
    def _write_over(path, at, data):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data)

    def remove(self):
        """Remove the file or record as if it had never been written."""
        if not self.is_record:
            self.path.unlink()
            return
        with opened(self.device) as store:
            key = ObjectKey(self.device.name, str(self.partition), self.policy, ANY_NAME, self.hash)
            place = Place(store.core, store.devices.device(self.device.name), key)
            with place.device.holding(place.lock):
                remove(place, self.partition, [self._entry])


def stored(device, policy):
    """Return the stored files or records of a policy, while servers may add and remove some."""
    if not (device / "packed").is_dir():
        folder = Path(objects_dir(str(device), policy))
        # ``Path.glob`` fails when a directory goes away under it.
        paths = (Path(path).relative_to(folder) for path in glob.glob(f"{folder}/[0-9]*/*/*/*"))
        return [Stored(device, policy, int(p.parts[0]), p.parts[2], p.name) for p in paths]
    with opened(device) as store:
        partitions = store.devices.partitions(device.name)
        return [
            Stored(device, policy, partition, object_hash.hex(), entry.name, entry)
            for partition in partitions.numbers(policy)
            for object_hash, entries in partitions.objects(partition, policy)
            for entry in entries
        ]
