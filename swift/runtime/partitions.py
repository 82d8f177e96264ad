"""Validates the partitions of requests to a storage server against its ring.

A partition becomes a directory, so anything else that looks like a number (``01``, one beyond the ring) would
hide what is stored there from every daemon. Rings only ever grow: the number of partitions is read again when
one beyond it is asked for and the file has changed since. Without a ring every partition of the largest
possible one is taken.

While partitions are being split, ``home`` says by which of its two an object is kept. The file is then looked
at for every request: all workers of a node have to turn to the new partitions at the same moment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from swift.base.clock import Clock, SystemClock
from swift.http.response import TEXT, HTTPError
from swift.ring.errors import PartPowerError, RingError
from swift.ring.ring import RELOAD_INTERVAL_S
from swift.ring.ringfile import load_table
from swift.ring.split import Home, home_of

#: Partitions of the largest ring there can be.
PARTITIONS_MAX = 1 << 32
_DIGITS_MAX = len(str(PARTITIONS_MAX))


@dataclass(slots=True)
class _Known:
    """Content of one ring file."""

    count: int = PARTITIONS_MAX
    #: None while there is no ring.
    part_power: int | None = None
    next_part_power: int | None = None
    #: When the file that was read had been written.
    written_ns: int | None = None
    #: Until when the file is not looked at again, unless there is a reason.
    until_s: float = float("-inf")


class Partitions:
    """The partitions of the rings in a directory; ``swift_dir`` empty stands for no rings."""

    __slots__ = ("_dir", "_known", "_monotonic")

    def __init__(self, swift_dir: str = "", *, clock: Clock | None = None):
        self._dir = swift_dir
        self._known: dict[str, _Known] = {}
        self._monotonic = (clock or SystemClock()).monotonic

    def check(self, partition: str, ring_name: str) -> None:
        """Raise ``HTTPError`` 400 unless the ring ``<ring_name>.ring.gz`` has that partition."""
        if partition.isascii() and partition.isdigit() and len(partition) <= _DIGITS_MAX:
            number = int(partition)
            if len(partition) > 1 and partition[0] == "0":
                number = PARTITIONS_MAX
            known = self._known.get(ring_name)
            if known is not None and known.part_power is not None and number < known.count:
                return
            if number < self._looked_at(ring_name).count:
                return
        raise HTTPError(400, f"Invalid partition: {partition[: _DIGITS_MAX + 1]}", content_type=TEXT)

    def check_hash(self, partition: str, ring_name: str, name_hash: str) -> None:
        """Raise ``HTTPError`` 400 unless a partition, which was checked, is that of a path's hash.

        While partitions are being split, both of a path's are. Without a ring every one is taken.
        """
        value, asked = int(name_hash[:8], 16), int(partition)
        known = self._known.get(ring_name)
        power = None if known is None else known.part_power
        if power is not None and value >> (32 - power) == asked:
            return
        if not self._is_one_of(value, asked, self._looked_at(ring_name)):
            raise HTTPError(400, f"Partition {partition} is not that of the path", content_type=TEXT)

    @staticmethod
    def _is_one_of(value: int, asked: int, known: _Known) -> bool:
        power, following = known.part_power, known.next_part_power
        if power is None:
            return True
        powers = [power]
        if following is not None:
            # Senders may have the ring of the step before, or of one that was cancelled.
            powers += [following, power - 1, power + 1] if following == power else [following]
        return any(value >> (32 - each) == asked for each in powers if 0 <= each <= 32)

    def home(self, partition: str, ring_name: str, name_hash: str, *, is_splitting: bool) -> Home | None:
        """Return the partition that stores an object requested with ``partition``, which has been
        validated.

        None when its partition is not being split. ``is_splitting`` is whether the sender says that it is.
        """
        known = self._known.get(ring_name)
        if known is None:
            # There are no rings.
            return None
        power = known.part_power
        if (
            is_splitting
            or known.next_part_power is not None
            or power is None
            or int(name_hash[:8], 16) >> (32 - power) != int(partition)
            or self._monotonic() >= known.until_s
        ):
            known = self._looked_at(ring_name)
        if known.part_power is None or known.next_part_power is None:
            return None
        try:
            return home_of(partition, name_hash, known.part_power, known.next_part_power)
        except PartPowerError:
            return None

    def _looked_at(self, ring_name: str) -> _Known:
        """Return the current content of the ring file; during a part power increase, the larger number of
        partitions.
        """
        known = self._known.get(ring_name)
        if known is None:
            known = _Known()
            if not self._dir:
                return known
            self._known[ring_name] = known
        path = os.path.join(self._dir, f"{ring_name}.ring.gz")
        known.until_s = self._monotonic() + RELOAD_INTERVAL_S
        try:
            written_ns = os.stat(path).st_mtime_ns
            if written_ns != known.written_ns:
                table = load_table(path, thorough=known.part_power is not None)
                known.part_power, known.next_part_power = table.part_power, table.next_part_power
                known.count = 1 << max(table.part_power, table.next_part_power or 0)
                known.written_ns = written_ns
        except (OSError, RingError):
            # What was known is better than nothing.
            return known
        return known

    def __repr__(self) -> str:
        counts = {name: known.count for name, known in self._known.items()}
        return f"Partitions({self._dir!r}, {counts})"
