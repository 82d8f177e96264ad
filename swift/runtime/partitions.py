"""Which partitions a storage server takes: those of its ring, written in the one way that paths have.

A partition becomes a directory, so anything else that looks like a number (``01``, one beyond the ring) would
hide what is stored there from every daemon. Rings only ever grow: the number of partitions is read again when
one beyond it is asked for and the file has changed since. Without a ring every partition of the largest
possible one is taken.
"""

from __future__ import annotations

import os

from swift.http.response import TEXT, HTTPError
from swift.ring.errors import RingError
from swift.ring.ringfile import load_table

#: Partitions of the largest ring there can be.
PARTITIONS_MAX = 1 << 32
_DIGITS_MAX = len(str(PARTITIONS_MAX))


class Partitions:
    """The partitions of the rings in a directory; ``swift_dir`` empty stands for no rings."""

    __slots__ = ("_counts", "_dir", "_seen_ns")

    def __init__(self, swift_dir: str = ""):
        self._dir = swift_dir
        self._counts: dict[str, int] = {}
        #: When the files that were read had been written.
        self._seen_ns: dict[str, int] = {}

    def check(self, partition: str, ring_name: str) -> None:
        """Raise ``HTTPError`` 400 unless the ring ``<ring_name>.ring.gz`` has that partition."""
        if partition.isascii() and partition.isdigit() and len(partition) <= _DIGITS_MAX:
            number = int(partition)
            if len(partition) > 1 and partition[0] == "0":
                number = PARTITIONS_MAX
            if number < self._counts.get(ring_name, 0) or number < self._count(ring_name):
                return
        raise HTTPError(400, f"Invalid partition: {partition[: _DIGITS_MAX + 1]}", content_type=TEXT)

    def _count(self, ring_name: str) -> int:
        """How many partitions the ring file tells of; while they are being split the larger number."""
        if not self._dir:
            return PARTITIONS_MAX
        path = os.path.join(self._dir, f"{ring_name}.ring.gz")
        try:
            written_ns = os.stat(path).st_mtime_ns
            if self._seen_ns.get(ring_name) != written_ns:
                table = load_table(path, thorough=False)
                self._counts[ring_name] = 1 << max(table.part_power, table.next_part_power or 0)
                self._seen_ns[ring_name] = written_ns
        except (OSError, RingError):
            return self._counts.get(ring_name, PARTITIONS_MAX)
        return self._counts[ring_name]

    def __repr__(self) -> str:
        return f"Partitions({self._dir!r}, {self._counts})"
