"""Documents that a bucket keeps in its system metadata: packed, and in several headers when one is too short.

All headers are written at once, so that no reader finds pieces of two documents. Pure.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping

from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.errors import S3Error

#: A header must fit into a line of every server's, 8192 bytes with its name.
_PIECE_BYTES = 6000
_PIECES = 5
#: Bytes of a document; nothing larger was ever packed.
KEPT_BYTES_MAX = 128 << 10


def _names(name: str) -> list[str]:
    return [name, *(f"{name}-{number}" for number in range(1, _PIECES))]


def kept_headers(name: str, document: bytes) -> HeaderMap:
    """The headers that keep a document, or forget an empty one; raises ``S3Error`` when it is too large."""
    packed = b64encode(zlib.compress(document, 9)).decode("ascii") if document else ""
    if len(packed) > _PIECE_BYTES * _PIECES or len(document) > KEPT_BYTES_MAX:
        raise S3Error("MaxMessageLengthExceeded")
    pieces = [
        packed[start : start + _PIECE_BYTES] for start in range(0, _PIECES * _PIECE_BYTES, _PIECE_BYTES)
    ]
    return dict(zip(_names(name), pieces, strict=True))


def kept_document(sysmeta: Mapping[str, str], name: str) -> bytes:
    """The document that a bucket's system metadata keeps, its names without their prefix; empty if none."""
    start = name.removeprefix(fields.CONTAINER_SYSMETA)
    packed = sysmeta.get(start)
    if not packed:
        return b""
    packed += "".join(sysmeta.get(more, "") for more in _names(start)[1:])
    try:
        unpack = zlib.decompressobj()
        document = unpack.decompress(b64decode(packed), KEPT_BYTES_MAX)
        if not unpack.eof:
            raise ValueError("the end is missing")
    except (ValueError, zlib.error):
        # Somebody else wrote it, or it is damaged: what it forbade must not be allowed now.
        raise S3Error("InternalError")
    return document
