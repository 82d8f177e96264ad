"""Comparison of volumes, index and files of a device, beside servers that change them.

Volumes are read from beginning to end. Bodies of dead records are not compared: they may be holes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from swift.policy.policy import Policies
from swift.store.core import EngineCore
from swift.store.errors import Damaged
from swift.store.layout import partition_dir, suffix_of
from swift.store.lmdbindex import Index
from swift.store.packed import rows
from swift.store.packed.compaction import Compactor
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import META_SPACE, Entry, decode_entries, object_hash_of
from swift.store.packed.lost import LostRanges
from swift.store.packed.record import ALIGNMENT, BadRecord, Header, Position, padded
from swift.store.packed.rows import Spaces
from swift.store.packed.volumes import OpenVolume, StoredRecord, only_unreadable


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in a volume that is not as it should be."""

    volume: int
    unit: int
    #: In hexadecimal; empty when it is not known.
    hash: str
    reason: str

    def as_facts(self) -> dict[str, object]:
        """Return all of it for programs, with the offset that a dump of the volume shows."""
        offset = self.unit * ALIGNMENT
        return {"volume": self.volume, "offset": offset, "hash": self.hash, "reason": self.reason}


@dataclass(slots=True)
class VerifyReport:
    """Result of a comparison."""

    volumes: int = 0
    records: int = 0
    live: int = 0
    bytes: int = 0


class Verifier:
    """Compares the volumes of one device. Raises OSError."""

    def __init__(
        self,
        core: EngineCore,
        device: PackedDevice,
        policies: Policies,
        pace: Callable[[int], None] = lambda _count: None,
    ):
        self._core = core
        self._device = device
        self._policies = policies
        self._pace = pace
        self._compactor = Compactor(core.disk, device, pace)
        self.report = VerifyReport()

    def run(self, numbers: Iterable[int]) -> Iterator[Flaw]:
        """Yield the flaws of volumes."""
        wanted = list(numbers)
        indexed = self._indexed(wanted)
        for number in wanted:
            try:
                volume = self._device.volumes.open_anew(number)
            except FileNotFoundError:
                yield from self._lost(number, indexed.get(number, array("I")))
                continue
            except Damaged as error:
                yield Flaw(number, 0, "", str(error))
                continue
            self.report.volumes += 1
            if volume.damage:
                yield Flaw(number, 0, "", volume.damage)
            found, lost, torn_from = set(), LostRanges(), 0
            for position, header in self._device.volumes.scan(volume, 0, lost.add):
                lost.pass_record(position, header)
                found.add(position.unit)
                torn_from = header.batch_unit * ALIGNMENT
                yield from self._check(volume, position, header)
            for begin, end in lost.merged(torn_from):
                reason = f"{end - begin} bytes have no record that can be read"
                yield Flaw(number, begin // ALIGNMENT, "", reason)
            yield from self._lost(number, (unit for unit in indexed.get(number, ()) if unit not in found))

    def _indexed(self, numbers: list[int]) -> dict[int, array[int]]:
        """Return the units of records that the index has, by volume."""
        found = {number: array("I") for number in numbers}
        for _key, entries in all_entries(self._device):
            for entry in entries:
                if entry.position.volume in found:
                    found[entry.position.volume].append(entry.position.unit)
        return found

    def _lost(self, number: int, units: Iterable[int]) -> Iterator[Flaw]:
        """Yield what the index has of a volume and still has now, although nothing is there."""
        wanted = {Position(number, unit) for unit in units}
        if not wanted:
            return
        for key, entries in all_entries(self._device):
            for entry in entries:
                if entry.position in wanted and not self._is_there(entry):
                    where = entry.position
                    reason = f"the index has {entry.name}, but no record can be read there"
                    yield Flaw(number, where.unit, object_hash_of(key).hex(), reason)

    def _is_there(self, entry: Entry) -> bool:
        try:
            self._device.read(entry, 0)
        except (BadRecord, Damaged, FileNotFoundError):
            return False
        except OSError as error:
            only_unreadable(error)
            return False
        return True

    def _check(self, volume: OpenVolume, position: Position, header: Header) -> Iterator[Flaw]:
        self.report.records += 1
        self.report.bytes += padded(header.total_bytes)
        self._pace(header.total_bytes)
        spots = list(self._compactor.spots(position, header))
        if not spots:
            return
        self.report.live += 1
        name = header.hash.hex()
        offset = position.unit * ALIGNMENT
        try:
            StoredRecord(volume, offset, volume.read(offset, header.total_bytes)).body()
        except BadRecord as error:
            # It may have died, and its body become a hole, since the look into the index.
            if any(self._compactor.spots(position, header)):
                yield Flaw(volume.number, position.unit, name, str(error))
        except OSError as error:
            yield Flaw(volume.number, position.unit, name, f"it cannot be read: {only_unreadable(error)}")
        policy = self._policies.get(header.policy)
        if not header.external or policy is None:
            return
        for spot in spots:
            parent = partition_dir(self._device.path, policy, str(spot.partition))
            names = [entry.name for entry in spot.entries if entry.position == position]
            path = f"{parent}/{suffix_of(name)}/{name}/{names[0]}"
            try:
                self._core.disk.stat(path)
            except FileNotFoundError:
                if position in {entry.position for entry in self._entries(header, spot.partition)}:
                    yield Flaw(volume.number, position.unit, name, f"{path} is gone")

    def _entries(self, header: Header, partition: int) -> list[Entry]:
        return self._device.entries(header.policy, partition, header.hash)

    def __repr__(self) -> str:
        return f"Verifier({self._device!r})"


def all_entries(device: PackedDevice) -> Iterator[tuple[bytes, list[Entry]]]:
    """Yield the keys and the entries of all objects that an index has. Raises OSError."""
    begin = bytes((META_SPACE[0] + 1,))

    def read(index: Index, _spaces: Spaces) -> list[tuple[bytes, bytes]]:
        return index.items(begin, b"", rows.SOME)

    while some := device.read_index(read):
        for key, value in some:
            yield key, decode_entries(value)
        begin = some[-1][0] + b"\0"
