"""Configurations in the system metadata of containers: compressed, in base64, cut to fit into headers.

Pure. What may be stored, and the errors of a service, are the service's (``s3.core.codec``).
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence

from swift.http import fields


def sysmeta_key(header: str) -> str:
    """Return the name of a container's system metadata without its prefix."""
    return header.removeprefix(fields.CONTAINER_SYSMETA)


class PackedConfiguration:
    """Reads the configurations of one kind."""

    def __init__(self, headers: Sequence[str], bytes_max: int):
        #: All headers of a configuration, in the order of its pieces.
        self.headers = tuple(headers)
        #: Bytes of a configuration before it is compressed.
        self.bytes_max = bytes_max
        self._keys = tuple(map(sysmeta_key, headers))

    def read_packed(self, sysmeta: Mapping[str, str]) -> str:
        """Return the packed text in a container's system metadata (names without prefix), empty for none."""
        if not sysmeta.get(self._keys[0]):
            return ""
        return "".join(sysmeta.get(key, "") for key in self._keys)

    def unpack(self, packed: str) -> bytes:
        """Return the configuration in a packed text, empty for empty text; raise ValueError."""
        if not packed:
            return b""
        unpacker = zlib.decompressobj()
        try:
            document = unpacker.decompress(b64decode(packed), self.bytes_max)
        except zlib.error as error:
            raise ValueError(str(error))
        if not unpacker.eof:
            raise ValueError("the configuration is cut off or too large")
        return document


def document_headers(header: str) -> list[str]:
    """Return the headers of a document: ``<header>``, ``<header>-1`` … ``-4``."""
    return [header, *(f"{header}-{number}" for number in range(1, 5))]


DOCUMENT_BYTES_MAX = 128 << 10
BUCKET_POLICY = PackedConfiguration(document_headers(fields.SYSMETA_S3_BUCKET_POLICY), DOCUMENT_BYTES_MAX)
