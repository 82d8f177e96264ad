"""Agreement of an index with the volumes (doc/formats/packed.md, "Agreement").

An index may be of another time, or not the one that other processes change: directories are replaced, and
copies are put back. Each volume tells where its records end and which volume it is. So what cannot be undone
is decided by the index, and done only if every volume agrees with the index afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from swift.platform.disk import Disk
from swift.platform.locks import poll
from swift.store.errors import Damaged
from swift.store.hashes import FRESH_NS
from swift.store.lmdbindex import Index
from swift.store.packed import rows
from swift.store.packed.lost import LostRanges
from swift.store.packed.record import ALIGNMENT, Kind
from swift.store.packed.recovery import has_tail
from swift.store.packed.rows import Spaces, VolumeRow
from swift.store.packed.volumes import OpenVolume, Volumes

T = TypeVar("T")
#: Of a volume's file and row: they agreed, and nothing was written since.
_Seen = tuple[int, int, int, VolumeRow, bytes | None]


class IndexedDevice(Protocol):
    """The device, as its agreement needs it; see ``PackedDevice``."""

    disk: Disk
    volumes: Volumes
    index: Index

    def read_index(self, work: Callable[[Index, Spaces], T]) -> T:
        """Return what ``work`` returns."""


class Agreement:
    """Compares the index of a device with all volumes. Raises OSError."""

    def __init__(self, device: IndexedDevice, publish_timeout_s: float):
        self._device = device
        self._publish_timeout_s = publish_timeout_s
        self._seen: dict[int, _Seen] = {}

    def objection(self, index: Index | None = None, *, besides: int | None = None) -> str:
        """Return the reason for which nothing may be done that cannot be undone; empty if there is none.

        With ``index``, that is the one by which it was decided. ``besides`` one volume all are compared.
        """
        known = self._device.read_index(
            lambda current, _spaces: (rows.volumes(current), rows.nonces(current))
        )
        for number in self._device.volumes.numbers():
            if number == besides:
                continue
            problem = self._problem(number, known[0].get(number, VolumeRow()), known[1].get(number))
            if problem:
                return problem
        if index is not None and index is not self._device.index:
            return "the index was replaced meanwhile"
        return ""

    def _problem(self, number: int, row: VolumeRow, nonce: bytes | None) -> str:
        """Return the difference between a volume and its row, empty if they agree."""
        volumes, path = self._device.volumes, self._device.volumes.path(number)
        try:
            status = self._device.disk.stat(path)
            seen = status.st_ino, status.st_mtime_ns, status.st_size, row, nonce
            if self._seen.get(number) == seen:
                return ""
            volume = volumes.open_anew(number)
            problem = self._difference(volume, row, nonce, status.st_size)
        except FileNotFoundError:
            # It was compacted.
            return ""
        except Damaged as error:
            return "" if self._is_accounted_for(number, row) else str(error)
        # A change of this moment may not show in the time.
        if not problem and status.st_mtime_ns + FRESH_NS < self._device.disk.now_ns():
            self._seen[number] = seen
        return problem

    def _is_accounted_for(self, number: int, row: VolumeRow) -> bool:
        """Return True if nothing of a volume that cannot be opened is missing in the index unnoticed."""
        volumes = self._device.volumes
        return row.is_closed or not volumes.is_file(number) or volumes.is_blank(number)

    def _difference(self, volume: OpenVolume, row: VolumeRow, nonce: bytes | None, size: int) -> str:
        path = self._device.volumes.path(volume.number)
        if nonce not in (None, volume.nonce) or (nonce is None and row.end > ALIGNMENT):
            return f"{path} is not the volume that was indexed"
        if row.end > max(size, ALIGNMENT):
            return f"{path} is shorter than the index says"
        if row.is_closed:
            return "" if self._is_all_unwanted(volume, row) else f"the index does not have all of {path}"
        if not has_tail(volume, row.end):
            return ""
        # Its owner indexes this batch at once; where no process does, it changes another index.
        is_published = partial(self._is_published, volume, row.end)
        if self._device.volumes.lock(volume.number) is None:
            poll(is_published, self._publish_timeout_s)
        return "" if is_published() else f"the index does not have all of {path}"

    def _is_published(self, volume: OpenVolume, end: int) -> bool:
        row = self._device.read_index(lambda index, _spaces: rows.read_volume(index, volume.number))
        return row.end > end or not has_tail(volume, row.end)

    def _is_all_unwanted(self, volume: OpenVolume, row: VolumeRow) -> bool:
        """Return True if the records behind the end of a closed volume never counted."""
        refused = self._device.read_index(lambda index, _spaces: rows.unwanted_units(index, volume.number))
        tail = self._device.volumes.scan(volume, row.end // ALIGNMENT, LostRanges().add)
        return all(at.unit in refused or header.kind is Kind.UNWANTED for at, header in tail)

    def __repr__(self) -> str:
        return f"Agreement({self._device!r})"
