"""Documents that a bucket keeps in its system metadata: packed, and in several headers when one is too short.

All headers are written at once, so that no reader finds pieces of two documents. Pure.
"""

from __future__ import annotations

import json
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


# --- pieces ------------------------------------------------------------
# Documents in the metadata of a bucket's container: compressed, in pieces that fit into headers. Pure.
#
# ``x-container-sysmeta-s3api-<what>-0`` to ``-7`` are together base64 of zlib of JSON. Every change
# sets all of them, so that nothing of a longer document stays.


PIECE_BYTES, PIECES = 4000, 8
#: What a document may be at most when it is not compressed: as much as a request brings.
TEXT_BYTES_MAX = 4 << 20


class DocumentPieces:
    """Where documents of one kind lie."""

    def __init__(self, what: str):
        self.header = f"{fields.SYSMETA_S3_BUCKET}{what}-"
        self._key = self.header.removeprefix(fields.CONTAINER_SYSMETA)
        #: A container's system metadata has this name when there is a document.
        self.first = f"{self._key}0"

    def stored(self, document: object) -> HeaderMap:
        """The headers that keep a document, None for none; raises ``S3Error`` for more than has room."""
        text = ""
        if document is not None:
            raw = json.dumps(document, separators=(",", ":")).encode()
            text = b64encode(zlib.compress(raw, 9)).decode("ascii")
        pieces = [text[at : at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES)]
        if len(pieces) > PIECES:
            raise S3Error("InvalidRequest", "This takes more room than the metadata of a bucket has.")
        pieces += [""] * (PIECES - len(pieces))
        return {f"{self.header}{number}": piece for number, piece in enumerate(pieces)}

    def text_in(self, sysmeta: Mapping[str, str]) -> str:
        """What lies in a container's system metadata (names without their prefix); empty for nothing."""
        first = sysmeta.get(self.first)
        if not first:
            return ""
        return first + "".join(sysmeta.get(f"{self._key}{number}", "") for number in range(1, PIECES))

    def text_of(self, headers: HeaderMap) -> str:
        """The same from what a HEAD of the container answers."""
        size = len(fields.CONTAINER_SYSMETA)
        return self.text_in(
            {name[size:]: text for name, text in headers.items() if name.startswith(self.header)}
        )


def document_of(text: str) -> object:
    """The document of a text; None of what is broken, which is safer than half of it."""
    try:
        loaded: object = json.loads(zlib.decompressobj().decompress(b64decode(text), TEXT_BYTES_MAX))
    except (ValueError, zlib.error, RecursionError):
        return None
    return loaded
