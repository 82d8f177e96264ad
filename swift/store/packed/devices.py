"""Devices of the packed engine, and the look at an object that all of its parts share."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

from swift.base.errors import LockTimeout
from swift.platform.locks import HOLDER_TIMEOUT_S, Patience, poll
from swift.store.api import ObjectKey, ReadOptions
from swift.store.core import TRIES, EngineCore
from swift.store.errors import Damaged, FilesChanged
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry
from swift.store.packed.objects import PackedLoaded
from swift.store.packed.partitions import Partitions
from swift.store.packed.place import Place
from swift.store.packed.quarantine import quarantine
from swift.store.packed.session import IndexOpener
from swift.store.packed.writer import PackedRules

#: For so long a device is not looked at again, seconds.
LOOK_EVERY_S = 1.0
#: Process, device number and inode of a directory, and what was opened there.
_Opened = tuple[tuple[int, int, int], PackedDevice]


class PackedDevices:
    """The devices that this process has opened."""

    def __init__(
        self,
        core: EngineCore,
        *,
        open_index: IndexOpener,
        rules: PackedRules,
        holder_timeout_s: float = HOLDER_TIMEOUT_S,
    ):
        self.core = core
        self.rules = rules
        self._open_index = open_index
        self._devices: dict[str, _Opened] = {}
        self._looked: dict[str, float] = {}
        self._busy: set[str] = set()
        #: With others of this process that look at a device, and with other processes that open it.
        self._here = defaultdict[str, Patience](partial(Patience, holder_timeout_s))
        self._elsewhere = defaultdict[str, Patience](partial(Patience, holder_timeout_s))
        self._mutex = threading.Lock()

    def device(self, name: str) -> PackedDevice:
        """Return a device, opened at first use by this process.

        Raises ``DeviceUnavailable``, ``LockTimeout``, OSError.
        """
        device = self.fresh(name)
        if device is None:
            with self._opening(name):
                # Another one may have opened it meanwhile.
                device = self.fresh(name) or self._looked_at(name)
        return device

    def fresh(self, name: str) -> PackedDevice | None:
        """Return a device that was looked at a moment ago; else None. Raises ``DeviceUnavailable``."""
        try:
            self.core.devices.path(name)
        except BaseException:
            # Its files are closed as soon as the last call that uses them ends.
            self._devices.pop(name, None)
            raise
        known = self._devices.get(name)
        if known is None:
            return None
        (pid, _device, _inode), device = known
        is_mine = pid == os.getpid() and not device.is_stale
        return device if is_mine and time.monotonic() - self._looked[name] < LOOK_EVERY_S else None

    def _looked_at(self, name: str) -> PackedDevice:
        """Return a device after a look at it; opened again if it is another one now."""
        path, known = self.core.devices.path(name), self._devices.get(name)
        status = self.core.disk.stat(path)
        identity = os.getpid(), status.st_dev, status.st_ino
        if known is not None and known[0] == identity:
            known[1].refresh()
        if known is None or known[0] != identity or known[1].is_stale:
            self._devices.pop(name, None)
            opened = PackedDevice(
                self.core.disk,
                path,
                open_index=self._open_index,
                rules=self.rules,
                notice=self.core.notice,
                patience=self._elsewhere[name],
            )
            known = self._devices[name] = identity, opened
        self._looked[name] = time.monotonic()
        return known[1]

    @contextmanager
    def _opening(self, name: str) -> Iterator[None]:
        """Let one thread or green thread at a time look at a device. Raises ``LockTimeout``.

        It may take long: to make an index again, or to wait for another process.
        """
        here = self._here[name]
        is_long = here.is_exhausted or self._elsewhere[name].is_exhausted
        seconds = 0.0 if is_long else here.timeout_s
        here.is_exhausted = not poll(partial(self._begin, name), seconds)
        if here.is_exhausted:
            raise LockTimeout(f"{self.core.devices.path(name)}, which this process is opening,", seconds)
        try:
            yield
        finally:
            with self._mutex:
                self._busy.discard(name)

    def _begin(self, name: str) -> bool:
        """Begin to look at a device; return False while another one does."""
        with self._mutex:
            is_free = name not in self._busy
            self._busy.add(name)
        return is_free

    def close(self) -> None:
        """Close all devices."""
        for name in list(self._devices):
            identity, device = self._devices.pop(name)
            if identity[0] == os.getpid():
                device.close()

    def load(
        self,
        place: Place,
        options: ReadOptions,
        known: list[Entry] | None = None,
        *,
        open_data: bool,
        quarantines: bool = True,
        is_held: bool = False,
    ) -> PackedLoaded:
        """Return what is stored of an object; damage is quarantined on the way.

        ``known`` are its entries, if they were read just now.

        Raises ``FilesChanged``, ``HashCollision``, OSError, and ``Damaged`` only when not to quarantine.
        """
        reader, reason = place.reader(), ""
        failure: Exception | None = None
        for _ in range(TRIES):
            entries, known = place.entries() if known is None else known, None
            try:
                loaded = reader.load(entries, options, open_data=open_data)
            except (FilesChanged, Damaged) as error:
                if place.entries() != entries:
                    # It was changed or compacted while it was read.
                    failure = error
                    continue
                # A record or file that the index has and that is missing counts as damaged.
                place.device.look()
                if place.device.is_stale:
                    # The device was replaced, which proves nothing about the object.
                    raise FileNotFoundError(errno.ENOENT, str(error), place.device.directory)
                if not quarantines:
                    raise Damaged(str(error))
                reason = str(error)
                with nullcontext() if is_held else place.device.holding(place.lock):
                    if place.entries() == entries:
                        quarantine(place, entries, reason)
                continue
            loaded.state.quarantine_reason = reason
            loaded.state.is_unconfirmed = place.device.confirmation.is_unconfirmed(
                place.key.policy.index, place.partition
            )
            return loaded
        raise FilesChanged(f"{place.key.hash} on {place.device.path} keeps changing: {failure}")

    def place(self, key: ObjectKey) -> Place:
        """Return the place of an object. Raises ``DeviceUnavailable``, OSError."""
        return Place(self.core, self.device(key.device), key)

    def partitions(self, device: str) -> Partitions:
        """Return the partitions of a device. Raises ``DeviceUnavailable``, OSError."""
        return Partitions(self.core, self.device(device), device)

    def __repr__(self) -> str:
        return f"PackedDevices({self.core.devices!r})"
