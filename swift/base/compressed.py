"""Documents as text that fits into headers: compressed, in base64. Pure."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode


def pack(document: bytes) -> str:
    """Return a document as text; empty for an empty one."""
    return b64encode(zlib.compress(document, 9)).decode("ascii") if document else ""


def unpack(text: str, bytes_max: int) -> bytes:
    """Return the document of a text; raise ``ValueError`` if it is damaged or larger than ``bytes_max``."""
    if not text:
        return b""
    unpacker = zlib.decompressobj()
    try:
        document = unpacker.decompress(b64decode(text), bytes_max)
    except zlib.error as error:
        raise ValueError(str(error))
    if not unpacker.eof:
        raise ValueError("incomplete or too large")
    return document
