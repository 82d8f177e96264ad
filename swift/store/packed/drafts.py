"""Bodies being written: in memory until it is clear that they are large, then in a file."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5

from swift.base.checksum import ChunkSums, chunk_size_for
from swift.platform.buffers import BufferPool
from swift.platform.fastcrc import crc32
from swift.store.core import FileDraft

#: Longer bodies of an announced size, up to that of a buffer, are kept in a buffer, bytes.
_BUFFERED_BYTES = 64 << 10
_buffers = BufferPool(1 << 20, kept_max=16)


class PackedDraft:
    """``Draft`` of at most ``size_max`` bytes in memory; a longer one goes on as a ``FileDraft``."""

    __slots__ = ("file", "_buffer", "_etag", "_make_file", "_md5", "_pieces", "size", "_size_max", "_sums")

    def __init__(
        self,
        size: int | None,
        size_max: int,
        make_file: Callable[[], FileDraft],
        *,
        etag_follows: bool = False,
        etag: str = "",
    ):
        #: None while the body is in memory.
        self.file: FileDraft | None = None
        self._make_file = make_file
        self._pieces: list[bytes] = []
        self.size = 0
        self._size_max = size_max
        self._etag = etag
        self._md5 = None if etag or etag_follows else md5(usedforsecurity=False)
        self._sums = ChunkSums(chunk_size_for(size), crc32()) if etag_follows else None
        #: Of a body that comes in pieces.
        self._buffer: memoryview | None = None
        if size_max < 0 or (size is not None and size > size_max):
            self.file = make_file()
        elif size is not None and not etag and _BUFFERED_BYTES < size <= _buffers.size:
            self._buffer, self._size_max = _buffers.acquire(), min(size_max, _buffers.size)

    def write(self, data: bytes | memoryview) -> None:
        if self.file is not None:
            self.file.write(data)
            self.size = self.file.size
            return
        if self.size + len(data) > self._size_max:
            self.become_file()
            self.write(data)
            return
        end = self.size + len(data)
        if self._buffer is not None:
            self._buffer[self.size : end] = data
        else:
            # The caller may change its buffer as soon as this returns.
            self._pieces.append(bytes(data))
        self.size = end
        if self._md5 is not None:
            self._md5.update(data)
        if self._sums is not None:
            self._sums.update(data)

    def may_block(self, size_bytes: int) -> bool:
        return self.file is not None or self.size + size_bytes > self._size_max

    def become_file(self) -> None:
        """Go on as a file. Raises ``NoSpace``, OSError."""
        file = self._make_file()
        try:
            file.write(self.body)
        except BaseException:
            file.discard()
            raise
        self._pieces, self._buffer = [], None
        self.file = file

    @property
    def body(self) -> bytes | memoryview:
        """The bytes in memory."""
        if self._buffer is not None:
            return self._buffer[: self.size]
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def release(self) -> None:
        """Give the memory of a body back that was stored: nothing uses it any more."""
        self._pieces = []
        buffer, self._buffer = self._buffer, None
        if buffer is not None:
            _buffers.release(buffer)

    @property
    def etag(self) -> str:
        if self.file is not None:
            return self.file.etag
        return self._etag if self._md5 is None else self._md5.hexdigest()

    def accept_etag(self, etag: str, sums: str) -> bool:
        if self.file is not None:
            return self.file.accept_etag(etag, sums)
        assert self._sums is not None
        if self._sums.digest() != sums:
            return False
        self._etag = etag
        return True

    def discard(self) -> None:
        # A thread may still use the buffer.
        self._pieces, self._buffer, self.size = [], None, 0
        file, self.file = self.file, None
        if file is not None:
            file.discard()

    def __repr__(self) -> str:
        return f"<PackedDraft {self.size} bytes>"
