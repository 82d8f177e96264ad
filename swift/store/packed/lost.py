"""Ranges of a volume that cannot be read, or have no record where one must have been."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from swift.store.packed.record import ALIGNMENT, Header, Position, padded


class Lost(NamedTuple):
    """A range of a volume, bytes, that cannot be read or has no record where one must have been."""

    begin: int
    end: int
    #: True for an error of the device, False for damage.
    is_unreadable: bool
    #: Of what begins like a record and is none: first unit of its batch, by its header, or 0.
    batch_unit: int | None = None


class LostRanges:
    """The ranges of one volume that its scan could not use."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, bool], Lost] = {}
        self._broken: list[tuple[int, int]] = []

    def add(self, lost: Lost) -> None:
        """Note a range; blocks may be met twice."""
        if lost.batch_unit is not None:
            self._broken.append((lost.begin, lost.batch_unit))
            return
        self._found[lost.begin, lost.is_unreadable] = lost

    def broken_from(self, offset: int) -> list[tuple[int, int]]:
        """Return offset and unit of the batch of what begins like a record from an offset on, and is none."""
        return [each for each in self._broken if each[0] >= offset]

    def pass_record(self, position: Position, header: Header) -> None:
        """Forget what lies within the body of a sound record: its readers get the error."""
        begin = position.unit * ALIGNMENT + header.prefix_bytes
        end = position.unit * ALIGNMENT + padded(header.total_bytes)
        for key, lost in list(self._found.items()):
            if lost.is_unreadable and begin <= lost.begin and lost.end <= end:
                del self._found[key]

    @property
    def unreadable_bytes(self) -> int:
        """Bytes that the device could not read, bodies left out."""
        ranges = _merged(lost for lost in self._found.values() if lost.is_unreadable)
        return sum(end - begin for begin, end in ranges)

    def merged(self, torn_from: int) -> list[tuple[int, int]]:
        """Return begin and end of what is lost, bytes; gaps of a batch that begins at ``torn_from`` are not.

        A power cut tears the last batch of a volume, which was not acknowledged then.
        """
        return _merged(lost for lost in self._found.values() if lost.is_unreadable or lost.begin < torn_from)


def _merged(ranges: Iterable[Lost]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted((lost.begin, lost.end) for lost in ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged
