"""Reading bodies so that a wrong byte is noticed before it is sent (doc/decisions/0002-verified-reads.md).

Three ways, by what checksums there are: small bodies are read at once and compared with their MD5; bodies
with a sidecar are read chunk by chunk, each compared with its CRC-32; others are hashed while a full read
goes on, and the last piece is held back until the MD5 was right. Only range reads of the last kind cannot
be verified.

The sidecar is a fast checksum for every chunk of a body, kept in an attribute of our own beside the MD5.
MD5 covers only whole bodies and costs five times as much as CRC-32. The sidecar lets large and range
reads be verified chunk by chunk before a byte is sent (doc/decisions/0002-verified-reads.md). Other
implementations neither write nor read it; a body without one, or with a damaged one, is as good as ever.

Attribute ``user.swift.crc32``: ``1:<log2 of the chunk size>:`` and one big-endian CRC-32 per chunk.

``RecentChecks`` are the chunks found right a short while ago, so that hot objects are not checked each time.
A chunk that this process verified, that has not left the page cache since and whose file did not change can
be sent as it is: the check is against what devices do to data, and the device was not asked again.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import md5

from swift.base.checksum import CHUNK_BYTES, CHUNKS_MAX, ChunkSums
from swift.base.clock import Clock
from swift.http.body import FileBody
from swift.platform.disk import Disk
from swift.store.api import ObjectState
from swift.store.errors import CorruptBody
from swift.store.metadata import read_attribute

SIDECAR_ATTRIBUTE = "user.swift.crc32"
#: Bodies up to this size are always read whole and checked by MD5.
SMALL_BYTES = 65536
_HEAD = b"1:"


def encode_sums(sums: ChunkSums) -> bytes | None:
    """Return the attribute's value; None when there are too many chunks to keep."""
    packed = sums.packed()
    if not packed or len(packed) > CHUNKS_MAX * 4:
        return None
    return b"%b%d:" % (_HEAD, sums.chunk.bit_length() - 1) + packed


class Sidecar:
    """The chunk size and the checksums read back."""

    __slots__ = ("chunk", "sums")

    def __init__(self, chunk: int, sums: tuple[int, ...]):
        self.chunk = chunk
        self.sums = sums

    @classmethod
    def decode(cls, value: bytes | None, size: int) -> Sidecar | None:
        """Return the sidecar of a body of ``size`` bytes; None when it is missing or does not fit it."""
        if value is None or not value.startswith(_HEAD):
            return None
        end = value.find(b":", len(_HEAD))
        exponent, packed = value[len(_HEAD) : end], value[end + 1 :]
        if end < 0 or not exponent.isdigit() or not 16 <= int(exponent) <= 30 or len(packed) % 4:
            return None
        chunk = 1 << int(exponent)
        if len(packed) // 4 != -(-size // chunk):
            return None
        return cls(chunk, struct.unpack(f">{len(packed) // 4}I", packed))

    def matches(self, number: int, pieces: Iterable[bytes]) -> bool:
        """Return True if ``pieces`` together are chunk ``number``."""
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        return checksum == self.sums[number]


#: Validity of a check, seconds.
BELIEVED_S = 60.0
#: Files remembered; the longest unread is forgotten first.
FILES_MAX = 2048

#: Device, inode and change time of a file in nanoseconds.
Identity = tuple[int, int, int]


class RecentChecks:
    """Chunk numbers by file; for use by one process, from any of its threads."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._files: OrderedDict[Identity, dict[int, float]] = OrderedDict()

    def add(self, file: Identity, chunk: int) -> None:
        """Note that a chunk is valid."""
        chunks = self._files.get(file)
        if chunks is None:
            chunks = self._files[file] = {}
            if len(self._files) > FILES_MAX:
                self._files.popitem(last=False)
        chunks[chunk] = self._clock.monotonic()

    def knows(self, file: Identity, chunk: int) -> bool:
        """Return True if the chunk was found right less than ``BELIEVED_S`` ago."""
        chunks = self._files.get(file)
        checked = None if chunks is None else chunks.get(chunk)
        return checked is not None and self._clock.monotonic() - checked < BELIEVED_S

    def __repr__(self) -> str:
        return f"<RecentChecks of {len(self._files)} files>"


#: From this size on the MD5 costs more than to remember that it was right.
REMEMBERED_BYTES = 8 << 10
#: A run of verified chunks is sent in ranges of this size, so that no other request waits long.
RANGE_BYTES_MAX = 8 << 20
#: Bytes of a read of a chunk that is only verified.
CHECKED_BYTES = 128 << 10
#: Distance of the pages that show if a chunk is in memory, bytes.
PROBE_EVERY_BYTES = 256 << 10


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _nothing_to_close() -> None:
    """Close nothing: the file belongs to the object."""


class FileObject:
    """An opened object of the filesystem engine; owns its descriptor."""

    __slots__ = (
        "state",
        "keep_cache",
        "check_md5",
        "_body",
        "_disk",
        "_fd",
        "_quarantine",
        "_recent",
        "_chunk_bytes",
    )

    def __init__(
        self,
        disk: Disk,
        state: ObjectState,
        fd: int | None,
        quarantine: Callable[[str], None],
        recent: RecentChecks,
        chunk_bytes: int = CHUNK_BYTES,
        body: bytes | None = None,
    ) -> None:
        self.state = state
        self.keep_cache = True
        self.check_md5 = True
        self._chunk_bytes = chunk_bytes
        #: All of a small body if it was read when the file was opened.
        self._body = body
        self._disk = disk
        self._fd = fd
        self._quarantine = quarantine
        self._recent = recent

    def close(self) -> None:
        """Close the file once."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)

    def __del__(self) -> None:
        # The requesting task may have been killed before it got the result.
        self.close()

    def read_cached(self, size_max: int) -> bytes | None:
        size = self.state.size
        if self._fd is None or size > size_max:
            return None
        data = self._body
        if data is None:
            data = self._disk.read_cached(self._fd, size) if size else b""
        if data is not None:
            self._verify_once_in_a_while(data)
            if not self.keep_cache and size:
                self._disk.drop_cache(self._fd, 0, size)
        return data

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        size = self.state.size
        if start >= stop:
            return iter(())
        if size <= SMALL_BYTES:
            return self._small(start, stop)
        sidecar = self._read_sidecar()
        if sidecar is not None:
            return (piece for _number, piece in self._checked(sidecar, start, stop))
        if start == 0 and stop == size and self.check_md5:
            return self._hashed()
        return self._unchecked(start, stop)

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        sidecar = self._read_sidecar() if self.keep_cache and self.state.size > SMALL_BYTES else None
        if sidecar is None:
            return iter(self.blocks(start, stop))
        return self._sendable(sidecar, start, stop)

    def has_sums(self) -> bool:
        """Return True if every part of the body can be verified by itself."""
        return self.state.size > SMALL_BYTES and self._read_sidecar() is not None

    def _read_sidecar(self) -> Sidecar | None:
        assert self._fd is not None
        return Sidecar.decode(read_attribute(self._disk, self._fd, SIDECAR_ATTRIBUTE), self.state.size)

    def _sendable(self, sidecar: Sidecar, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """Ranges of the file whose chunks were checked and are in memory; other chunks as bytes."""
        assert self._fd is not None
        file = _identity(self._disk.fstat(self._fd))
        chunk, position = sidecar.chunk, start
        stays = True
        while position < stop:
            end = position
            while end < stop and end - position < RANGE_BYTES_MAX and self._is_at_hand(file, chunk, end):
                end = min(stop, (end // chunk + 1) * chunk)
            if end > position:
                yield FileBody(self._fd, position, end - position, _nothing_to_close)
                position = end
                continue
            number = position // chunk
            if stays and self._is_right(sidecar, number):
                self._recent.add(file, number)
                stays = self._is_at_hand(file, chunk, position)
                if stays:
                    continue
            # Damaged, which is judged there; or what is read does not stay in memory, here or ever.
            end = min(stop, (number + 1) * chunk)
            for _number, data in self._checked(sidecar, position, end):
                self._recent.add(file, number)
                yield data
            position = end

    def _is_right(self, sidecar: Sidecar, number: int) -> bool:
        """Return True if a chunk is what was written; needs little memory for it."""
        begin = number * sidecar.chunk
        end = min(begin + sidecar.chunk, self.state.size)
        pieces = range(begin, end, CHECKED_BYTES)
        self._prefetch(begin, end - begin)
        return sidecar.matches(number, (self._read(at, min(CHECKED_BYTES, end - at)) for at in pieces))

    def _is_at_hand(self, file: Identity, chunk: int, position: int) -> bool:
        """Return True if the chunk at ``position`` was checked and, by a sample of its pages, stayed in
        memory.
        """
        if not self._recent.knows(file, position // chunk):
            return False
        assert self._fd is not None
        begin = position // chunk * chunk
        end = min(begin + chunk, self.state.size)
        probes = range(end - 1, begin, -PROBE_EVERY_BYTES)
        return all(self._disk.read_cached(self._fd, 1, offset) is not None for offset in probes)

    def _prefetch(self, offset: int, length: int) -> None:
        """Request ranges beyond the kernel's readahead at once."""
        assert self._fd is not None
        if length > CHECKED_BYTES:
            self._disk.prefetch(self._fd, offset, length)

    def _read(self, offset: int, length: int) -> bytes:
        """Return exactly ``length`` bytes; fewer mean damage. Raises OSError when the device fails."""
        assert self._fd is not None
        self._prefetch(offset, length)
        pieces, left, begin = [], length, offset
        while left:
            piece = self._disk.pread(self._fd, left, offset)
            if not piece:
                self._give_up(f"body ends {left} bytes early")
            pieces.append(piece)
            offset += len(piece)
            left -= len(piece)
        if not self.keep_cache:
            self._disk.drop_cache(self._fd, begin, length)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _small(self, start: int, stop: int) -> Iterator[bytes]:
        data = self._read(0, self.state.size)
        self._verify(data)
        yield data if stop - start == len(data) else data[start:stop]

    def _checked(self, sidecar: Sidecar, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the numbers of the chunks and what is wanted of each."""
        size, chunk = self.state.size, sidecar.chunk
        trusted = False
        for number in range(start // chunk, -(-stop // chunk)):
            begin = number * chunk
            data = self._read(begin, min(chunk, size - begin))
            if not trusted and not sidecar.matches(number, (data,)):
                # Either the body or the sidecar is wrong; the MD5 of the whole body is the judge.
                self._verify_whole()
                trusted = True
            first, last = max(start - begin, 0), min(stop - begin, len(data))
            yield number, data if last - first == len(data) else data[first:last]

    def _hashed(self) -> Iterator[bytes]:
        digest = md5(usedforsecurity=False)
        size = self.state.size
        for begin in range(0, size, self._chunk_bytes):
            data = self._read(begin, min(self._chunk_bytes, size - begin))
            digest.update(data)
            if begin + len(data) == size:
                self._compare(digest.hexdigest())
            yield data

    def _unchecked(self, start: int, stop: int) -> Iterator[bytes]:
        for begin in range(start, stop, self._chunk_bytes):
            yield self._read(begin, min(self._chunk_bytes, stop - begin))

    def _verify_whole(self) -> None:
        for _ in self._hashed():
            pass

    def _verify(self, data: bytes) -> None:
        if not self.check_md5:
            return
        self._compare(md5(data, usedforsecurity=False).hexdigest())

    def _verify_once_in_a_while(self, data: bytes) -> None:
        """Verify a whole body from memory, unless that was done a short while ago."""
        assert self._fd is not None
        if len(data) < REMEMBERED_BYTES or not self.check_md5:
            self._verify(data)
            return
        file = _identity(self._disk.fstat(self._fd))
        if not self._recent.knows(file, 0):
            self._verify(data)
            self._recent.add(file, 0)

    def _compare(self, digest: str) -> None:
        expected = self.state.metadata.get("ETag")
        if digest != expected:
            self._give_up(f"MD5 of the body is {digest}, not {expected}")

    def _give_up(self, reason: str) -> None:
        self._quarantine(reason)
        raise CorruptBody(reason)

    def __repr__(self) -> str:
        return f"<FileObject {self.state.kind} {self.state.size} bytes>"
