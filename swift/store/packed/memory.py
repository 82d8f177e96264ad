"""Memory of a device: answers that wait for no disk, and change nothing.

It has the reading half of the index, which is mapped, and volumes that are open, of which it reads only pages
that are in memory. Where that does not suffice, the answer is None, and a call that may wait gives it.
"""

from __future__ import annotations

from typing import Protocol

from swift.store.api import ReadOptions
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.edit import PackedEdit
from swift.store.packed.entry import BadEntry, Entry, decode_entries
from swift.store.packed.objects import CachedVolumes, MemoryReader, PackedLoaded
from swift.store.packed.place import Place
from swift.store.packed.rows import ReadsIndex, Spaces


class KnownPolicies(Protocol):
    """The conversion of a device, as far as it is in memory."""

    def is_adopted(self, index: ReadsIndex, policy: int, partition: int) -> bool:
        """Return True if it is known that the index has every file of a partition."""


class DeviceMemory:
    """The memory of one device, made for each request. Methods return None for what is not there."""

    __slots__ = ("_conversion", "_index", "_spaces", "_volumes")

    def __init__(self, index: ReadsIndex, spaces: Spaces, volumes: CachedVolumes, conversion: KnownPolicies):
        self._index = index
        self._spaces = spaces
        self._volumes = volumes
        self._conversion = conversion

    def entries(self, place: Place, partition: int) -> list[Entry] | None:
        """Return the entries of an object in a partition."""
        policy = place.key.policy.index
        try:
            if not self._conversion.is_adopted(self._index, policy, partition):
                return None
            key = self._spaces.find(self._index, policy, partition, place.hash)
            value = None if key is None else self._index.get(key)
            return decode_entries(value) if value else []
        except (IndexFailed, BadEntry):
            return None

    def load(self, place: Place, options: ReadOptions, *, open_data: bool) -> PackedLoaded | None:
        """Return what is stored of an object. Raises ``HashCollision``."""
        entries = self.entries(place, place.partition)
        if entries is None:
            return None
        reader = MemoryReader(place.key, place.hash, self._volumes)
        return reader.try_load(entries, options, open_data=open_data)

    def edit(self, place: Place, options: ReadOptions, partitions: list[int]) -> PackedEdit | None:
        """Return the edit of an object that the caller has locked. Raises ``HashCollision``."""
        known: dict[int, list[Entry]] = {}
        for partition in partitions:
            entries = self.entries(place, partition)
            if entries is None or not all(map(place.is_decided_by_entry, entries)):
                return None
            known[partition] = entries
        reader = MemoryReader(place.key, place.hash, self._volumes)
        loaded = reader.try_load(known[place.partition], options, open_data=False)
        return None if loaded is None else PackedEdit(place, reader, known, loaded.state)
