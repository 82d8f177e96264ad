"""Fragment archives of a whole object while it is uploaded (spec: proxy.md §13).

``ArchiveEncoder`` takes the object's bytes in any cut and gives the fragments of one segment at a time,
hashing the object and every archive on the way. ``encode`` is the part that costs time and may run in a
thread, one segment at a time and in order; the rest is bookkeeping. Who stores the archives it does not
know.
"""

from __future__ import annotations

from hashlib import md5

from swift.base.checksum import ChunkSums
from swift.ec.codec import Codec
from swift.ec.geometry import Geometry
from swift.platform.fastcrc import crc32


class Segmenter:
    """Cuts a stream into segments."""

    def __init__(self, segment_size: int):
        self._size = segment_size
        self._pieces: list[bytes] = []
        self._held = 0

    @property
    def missing(self) -> int:
        """Bytes until the current segment is full."""
        return self._size - self._held

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the segments that these bytes complete."""
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held < self._size:
            return []
        joined = b"".join(self._pieces)
        whole = len(joined) // self._size * self._size
        rest = joined[whole:]
        self._pieces, self._held = ([rest] if rest else []), len(rest)
        return [joined[at : at + self._size] for at in range(0, whole, self._size)]

    def rest(self) -> bytes:
        """Return the last, short segment; empty when there is none."""
        last = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        return last


class ArchiveEncoder:
    """Encodes segments and keeps the checksums of the object and of its archives.

    With ``sums_chunk`` bytes those of an archive's chunks (``base.checksum``) are kept as well.
    """

    def __init__(self, codec: Codec, *, sums_chunk: int | None = None):
        self._codec = codec
        self._object = md5(usedforsecurity=False)
        self._archives = [md5(usedforsecurity=False) for _ in range(codec.fragments)]
        self._sums = [ChunkSums(sums_chunk, crc32()) for _ in range(codec.fragments)] if sums_chunk else []
        self.size = 0

    def encode(self, segment: bytes) -> list[bytes]:
        """Return the fragments of the next segment, which must not be empty. Blocking."""
        self.size += len(segment)
        self._object.update(segment)
        fragments = self._codec.encode(segment)
        for digest, fragment in zip(self._archives, fragments, strict=True):
            digest.update(fragment)
        if self._sums:
            for sums, fragment in zip(self._sums, fragments, strict=True):
                sums.update(fragment)
        return fragments

    @property
    def etag(self) -> str:
        """MD5 of the object so far."""
        return self._object.hexdigest()

    def archive_etag(self, index: int) -> str:
        """MD5 of archive ``index`` so far."""
        return self._archives[index].hexdigest()

    def archive_sums(self, index: int) -> str | None:
        """Return the digest of archive ``index``'s chunk checksums so far, None when they are not kept."""
        return self._sums[index].digest() if self._sums else None


def archive_length(codec: Codec, geometry: Geometry, length: int) -> int:
    """Bytes of every archive of an object of ``length`` bytes."""
    full, rest = divmod(length, geometry.segment_size)
    return full * geometry.fragment_size + codec.fragment_length(rest)


def geometry_of(codec: Codec, segment_size: int) -> Geometry:
    """Return the geometry of objects that this codec encodes in segments of ``segment_size`` bytes."""
    return Geometry(segment_size, codec.fragment_length(segment_size))
