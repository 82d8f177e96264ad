"""Devices of the packed engine, and the look at an object that all of its parts share."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext

from swift.store.api import ObjectKey, ReadOptions
from swift.store.core import TRIES, EngineCore
from swift.store.errors import Damaged, FilesChanged
from swift.store.packed.device import IndexOpener, PackedDevice, PackedRules
from swift.store.packed.edit import Place
from swift.store.packed.objects import PackedLoaded, Reader
from swift.store.packed.partitions import Partitions
from swift.store.packed.quarantine import quarantine

#: For so long a device is not looked at again, seconds.
LOOK_EVERY_S = 1.0


class PackedDevices:
    """The devices that this process has opened."""

    def __init__(self, core: EngineCore, *, open_index: IndexOpener, rules: PackedRules):
        self.core = core
        self.rules = rules
        self._open_index = open_index
        self._devices: dict[str, tuple[tuple[int, int, int], PackedDevice]] = {}
        self._looked: dict[str, float] = {}

    def device(self, name: str) -> PackedDevice:
        """Return a device, opened at first use by this process. Raises ``DeviceUnavailable``, OSError."""
        try:
            path = self.core.devices.path(name)
        except BaseException:
            self._close(name)
            raise
        now = time.monotonic()
        known = self._devices.get(name)
        is_fresh = known is not None and not known[1].is_stale and known[0][0] == os.getpid()
        if known is not None and is_fresh and now - self._looked[name] < LOOK_EVERY_S:
            return known[1]
        status = self.core.disk.stat(path)
        identity = os.getpid(), status.st_dev, status.st_ino
        if known is not None and is_fresh:
            known[1].look()
            is_fresh = not known[1].is_stale
        if known is None or not is_fresh or known[0] != identity:
            self._close(name)
            opened = PackedDevice(
                self.core.disk,
                path,
                open_index=self._open_index,
                rules=self.rules,
                notice=self.core.notice,
            )
            known = self._devices[name] = identity, opened
        self._looked[name] = now
        return known[1]

    def _close(self, name: str) -> None:
        """Close a device that is gone, or was opened by the parent of this process."""
        known = self._devices.pop(name, None)
        if known is not None and known[0][0] == os.getpid():
            known[1].close()

    def close(self) -> None:
        """Close all devices."""
        for name in list(self._devices):
            self._close(name)

    def load(
        self,
        place: Place,
        options: ReadOptions,
        *,
        open_data: bool,
        quarantines: bool = True,
        is_held: bool = False,
    ) -> PackedLoaded:
        """Return what is stored of an object; damage is quarantined on the way.

        Raises ``FilesChanged``, ``HashCollision``, OSError, and ``Damaged`` only when not to quarantine.
        """
        reader, reason = Reader(self.core, place.device), ""
        failure: FilesChanged | None = None
        for _ in range(TRIES):
            entries = place.entries()
            try:
                loaded = reader.load(place.key, place.hash, entries, options, open_data=open_data)
            except FilesChanged as error:
                failure = error
                continue
            except Damaged as error:
                if place.entries() != entries:
                    # It was compacted while it was read.
                    continue
                if not quarantines:
                    raise
                reason = str(error)
                with nullcontext() if is_held else place.device.locks.hold(place.lock):
                    if place.entries() == entries:
                        quarantine(place, entries, reason)
                continue
            loaded.state.quarantine_reason = reason
            return loaded
        raise failure or FilesChanged(f"{place.key.hash} on {place.device.path} keeps changing")

    def place(self, key: ObjectKey) -> Place:
        """Return the place of an object. Raises ``DeviceUnavailable``, OSError."""
        return Place(self.core, self.device(key.device), key)

    def partitions(self, device: str) -> Partitions:
        """Return the partitions of a device. Raises ``DeviceUnavailable``, OSError."""
        return Partitions(self.core, self.device(device))

    def __repr__(self) -> str:
        return f"PackedDevices({self.core.devices!r})"
