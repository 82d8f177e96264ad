"""Relinking of packed objects for a larger part power: the index links a record into its next partition.

Nothing is removed from the former partition before the next one has the same or something newer.
"""

from __future__ import annotations

from swift.store.api import Location, ObjectKey
from swift.store.packed.devices import PackedDevices
from swift.store.packed.files import adopt, remove
from swift.store.packed.place import Place
from swift.store.reader import ANY_NAME
from swift.store.relink import RelinkCounts, required, target_partition


class PackedSplitter:
    """Moves objects of a device to their partitions under ``next_part_power``; see ``Splitter``."""

    def __init__(self, devices: PackedDevices, next_part_power: int):
        self._devices = devices
        self._power = next_part_power

    def is_in_place(self, location: Location) -> bool:
        """Return True if an object lies where it belongs already."""
        return location.partition == target_partition(location.hash, self._power)

    def _place(self, location: Location, partition: str) -> Place:
        key = ObjectKey(location.device, partition, location.policy, ANY_NAME, location.hash)
        return self._devices.place(key)

    def relink(self, location: Location) -> RelinkCounts:
        """Put an object into its next partition as well. Raises OSError, ``LockTimeout``."""
        target = target_partition(location.hash, self._power)
        old, new = self._place(location, location.partition), self._place(location, target)
        with old.device.holding(old.lock):
            adopt(old, old.partition)
        before = {entry.name for entry in new.entries()}
        self._devices.partitions(location.device).link(new, old.partition)
        names, linked = [entry.name for entry in old.entries()], {entry.name for entry in new.entries()}
        return RelinkCounts(
            hash_dirs=1 if names else 0,
            files=len(required(names, sorted(before), location.policy.ec)),
            linked=len(linked - before),
        )

    def remove_old(self, location: Location) -> RelinkCounts:
        """Let an object be in its next partition only. Raises OSError, ``LockTimeout``."""
        done = self.relink(location)
        target = target_partition(location.hash, self._power)
        old, new = self._place(location, location.partition), self._place(location, target)
        with old.device.holding(old.lock):
            entries = old.entries()
            names = [entry.name for entry in entries]
            there = [entry.name for entry in new.entries()]
            if set(required(names, there, location.policy.ec)) - set(there):
                # It was changed meanwhile; the next run goes on.
                done.errors += 1
                return done
            if entries:
                remove(old, old.partition, entries)
                done.removed = len(entries)
        return done

    def __repr__(self) -> str:
        return f"PackedSplitter({self._devices!r}, {self._power})"
