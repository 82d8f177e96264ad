"""Decompression of archives piece by piece: a small archive of a large file never fills the memory."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Any

from swift import green
from swift.http.body import CHUNK_BYTES
from swift.wire.tar import BadTar

ARCHIVE_FORMATS = ("tar", "tar.gz", "tar.bz2")


class DecompressedReader:
    """The bytes of a tar file; ``read`` returns the bytes of the archive as sent."""

    def __init__(self, read: Callable[[int], bytes], archive_format: str):
        self._source = read
        self._decompressor = (
            _GzipDecompressor()
            if archive_format == "tar.gz"
            else _Bzip2Decompressor()
            if archive_format == "tar.bz2"
            else None
        )

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end; raises ``BadTar``."""
        if self._decompressor is None:
            return self._source(size)
        # Decompression without new input never waits, so yield to other green threads.
        green.pause(0)
        return self._decompressor.read(self._source, min(size, CHUNK_BYTES))


class _Decompressor:
    """Base of both decompressors; reads concatenated streams as one."""

    #: Magic number at the start of each stream.
    magic = b""

    def __init__(self) -> None:
        self._buffered_input = b""
        self._stream: Any = None
        self._ended = False

    def read(self, source: Callable[[int], bytes], size: int) -> bytes:
        """Return up to ``size`` decompressed bytes."""
        while not self._ended:
            is_between_streams = self._stream is not None and self._stream.eof
            if (not self._buffered_input and self._wants_input()) or (
                is_between_streams and len(self._buffered_input) < len(self.magic)
            ):
                more = source(CHUNK_BYTES)
                self._buffered_input += more
                if not more:
                    self._ended = True
                    self._check_end()
                    return b""
                continue
            if is_between_streams and not self._buffered_input.startswith(self.magic):
                # Bytes after the last complete stream are ignored.
                self._ended = True
                return b""
            data = self._decompress(size)
            if data:
                return data
        return b""

    def _wants_input(self) -> bool:
        return True

    def _check_end(self) -> None:
        """Raise ``BadTar`` when the input was empty."""

    def _decompress(self, size: int) -> bytes:
        raise BadTar("nothing unpacks this")


class _GzipDecompressor(_Decompressor):
    magic = b"\x1f\x8b"

    def _check_end(self) -> None:
        if self._stream is None:
            raise BadTar("not a gzip file")

    def _decompress(self, size: int) -> bytes:
        if self._stream is None or self._stream.eof:
            self._stream = zlib.decompressobj(31)
        try:
            data: bytes = self._stream.decompress(self._buffered_input, size)
        except zlib.error:
            raise BadTar("not a gzip file")
        self._buffered_input = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return data


class _Bzip2Decompressor(_Decompressor):
    magic = b"BZh"

    def _wants_input(self) -> bool:
        return self._stream is None or self._stream.eof or bool(self._stream.needs_input)

    def _decompress(self, size: int) -> bytes:
        if self._stream is None or self._stream.eof:
            self._stream = bz2.BZ2Decompressor()
        try:
            data: bytes = self._stream.decompress(self._buffered_input, size)
        except (OSError, ValueError):
            raise BadTar("invalid compressed data")
        self._buffered_input = self._stream.unused_data if self._stream.eof else b""
        return data
