"""Archives unpacked piece by piece: a small one that stands for a large one never fills the memory."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Any

from swift import green
from swift.http.body import CHUNK_BYTES
from swift.wire.tar import BadTar

KINDS = ("tar", "tar.gz", "tar.bz2")


class Unpacked:
    """The bytes of a tar file; ``read`` gives those of the archive as it was sent."""

    def __init__(self, read: Callable[[int], bytes], kind: str):
        self._source = read
        self._packer = _GZIP() if kind == "tar.gz" else _BZIP2() if kind == "tar.bz2" else None

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, none at the end; raises ``BadTar``."""
        if self._packer is None:
            return self._source(size)
        # What needs no input needs no wait either: others must get their turn.
        green.pause(0)
        return self._packer.read(self._source, min(size, CHUNK_BYTES))


class _Packed:
    """Base of both decompressors: concatenated streams are read as one."""

    #: What each stream begins with.
    magic = b""

    def __init__(self) -> None:
        self._rest = b""
        self._stream: Any = None
        self._ended = False

    def read(self, source: Callable[[int], bytes], size: int) -> bytes:
        """Up to ``size`` unpacked bytes."""
        while not self._ended:
            between = self._stream is not None and self._stream.eof
            if (not self._rest and self._wants_input()) or (between and len(self._rest) < len(self.magic)):
                more = source(CHUNK_BYTES)
                self._rest += more
                if not more:
                    self._ended = True
                    self._check_end()
                    return b""
                continue
            if between and not self._rest.startswith(self.magic):
                # Bytes after the last complete stream are ignored.
                self._ended = True
                return b""
            data = self._unpack(size)
            if data:
                return data
        return b""

    def _wants_input(self) -> bool:
        return True

    def _check_end(self) -> None:
        """Say what is wrong with no input at all."""

    def _unpack(self, size: int) -> bytes:
        raise BadTar("nothing unpacks this")


class _GZIP(_Packed):
    magic = b"\x1f\x8b"

    def _check_end(self) -> None:
        if self._stream is None:
            raise BadTar("not a gzip file")

    def _unpack(self, size: int) -> bytes:
        if self._stream is None or self._stream.eof:
            self._stream = zlib.decompressobj(31)
        try:
            data: bytes = self._stream.decompress(self._rest, size)
        except zlib.error:
            raise BadTar("not a gzip file")
        self._rest = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return data


class _BZIP2(_Packed):
    magic = b"BZh"

    def _wants_input(self) -> bool:
        return self._stream is None or self._stream.eof or bool(self._stream.needs_input)

    def _unpack(self, size: int) -> bytes:
        if self._stream is None or self._stream.eof:
            self._stream = bz2.BZ2Decompressor()
        try:
            data: bytes = self._stream.decompress(self._rest, size)
        except (OSError, ValueError):
            raise BadTar("invalid compressed data")
        self._rest = self._stream.unused_data if self._stream.eof else b""
        return data
