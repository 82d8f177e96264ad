"""Appending to a volume: zeros are written ahead of the records.

A sync then changes neither size nor extents of the file and writes nothing but the records. Long batches make
the file longer instead: zeros would double what the device has to write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from swift.base.errors import NoSpace
from swift.platform.devices import NO_SPACE_ERRORS
from swift.platform.disk import Disk
from swift.store.packed.volumes import ZEROS, OpenVolume, write_at

#: Zeros written ahead of the records at a time, bytes.
AHEAD_BYTES = 4 << 20
#: Batches from this size on are written without zeros ahead, bytes.
LONG_BYTES = 256 << 10
#: Pieces from this size on are written from where they are, shorter ones are joined before, bytes.
_UNJOINED_BYTES = 64 << 10


class Appender:
    """The volume that this process appends to; used by one thread at a time."""

    def __init__(self, disk: Disk, volume: OpenVolume, *, end: int, volume_bytes: int):
        self.volume = volume
        #: Offset of the next record, bytes.
        self.end = end
        #: End of the records that are in the index, bytes.
        self.published = end
        #: True if the index has the nonce of the volume.
        self.is_noted = False
        self._disk = disk
        self._volume_bytes = volume_bytes
        status = disk.fstat(volume.fd)
        self._identity = status.st_dev, status.st_ino
        self._zeroed = status.st_size
        #: True if a write or a sync of it failed; nothing is appended any more.
        self.has_failed = False
        #: Monotonic time of the last use, seconds.
        self.used_s = time.monotonic()

    def has_room(self, length: int) -> bool:
        """Return True if so many bytes fit into the volume."""
        return not self.has_failed and self.end + length <= self._volume_bytes

    def is_at(self, path: str) -> bool:
        """Return True if the volume still has this path; raises OSError."""
        try:
            there = self._disk.stat(path)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == self._identity

    def append(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Append records durably, which the pieces are together. Raises ``NoSpace`` or OSError.

        If ``has_failed`` is true then, nothing more may be appended.
        """
        self.used_s = time.monotonic()
        length = sum(map(len, pieces))
        try:
            try:
                self._write_ahead(length)
                at = self.end
                for run in _runs(pieces):
                    write_at(self._disk, self.volume.fd, run, at)
                    at += len(run)
            except OSError as error:
                if error.errno not in NO_SPACE_ERRORS:
                    raise
                self._take_back()
                raise NoSpace(str(error))
            self._disk.fdatasync(self.volume.fd)
        except NoSpace:
            raise
        except BaseException:
            self.has_failed = True
            raise
        self.end += length

    def _take_back(self) -> None:
        """Leave zeros behind the end, as before: smaller records, as of deletions, may still fit."""
        try:
            self._zeroed = self._disk.fstat(self.volume.fd).st_size
            for at in range(self.end, self._zeroed, len(ZEROS)):
                write_at(self._disk, self.volume.fd, ZEROS[: min(len(ZEROS), self._zeroed - at)], at)
            self._disk.fdatasync(self.volume.fd)
        except OSError:
            self.has_failed = True

    def _write_ahead(self, length: int) -> None:
        """Write zeros up to a multiple of ``AHEAD_BYTES``; they are synced with the records."""
        needed = self.end + length
        if needed <= self._zeroed:
            return
        if length >= LONG_BYTES:
            self._zeroed = needed
            return
        end = min(-(-needed // AHEAD_BYTES) * AHEAD_BYTES, max(self._volume_bytes, needed))
        at = self._zeroed
        try:
            while at < end:
                piece = ZEROS[: min(len(ZEROS), end - at)]
                write_at(self._disk, self.volume.fd, piece, at)
                at += len(piece)
        except OSError as error:
            # The records themselves may still fit.
            if error.errno not in NO_SPACE_ERRORS:
                raise
        self._zeroed = max(at, needed)

    def __repr__(self) -> str:
        return f"<Appender at {self.end} of {self.volume!r}>"


def _runs(pieces: Sequence[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield the pieces, short ones joined."""
    short: list[bytes | memoryview] = []
    for piece in pieces:
        if len(piece) < _UNJOINED_BYTES:
            short.append(piece)
        else:
            yield b"".join(short)
            yield piece
            short = []
    yield b"".join(short)
