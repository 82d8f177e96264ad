"""One object's directories on a usable device (spec: object-disk.md §1)."""

from __future__ import annotations

from swift.store.api import ObjectKey
from swift.store.layout import partition_dir, suffix_of


class Place:
    """The device, partition, suffix and hash directory of an object; nothing is touched."""

    __slots__ = ("key", "device", "partition", "suffix", "directory")

    def __init__(self, key: ObjectKey, device_path: str):
        self.key = key
        self.device = device_path
        self.partition = partition_dir(device_path, key.policy, key.partition)
        self.suffix = f"{self.partition}/{suffix_of(key.hash)}"
        self.directory = f"{self.suffix}/{key.hash}"
