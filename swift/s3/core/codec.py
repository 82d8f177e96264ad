"""The codec for configurations in the system metadata of a bucket's container, in two layouts. Pure.

A configuration is compressed, encoded in base64 and cut into pieces that fit into headers. Every change
sets all headers of its layout at once, so a reader never finds pieces of two configurations.

The codec fails closed: decoding a damaged configuration raises ``DamagedConfiguration``. What the
configuration forbade is then not allowed, and what it ordered is not done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from swift.base.compressed import pack, unpack
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.core.errors import S3Error, invalid_request

T = TypeVar("T")


class DamagedConfiguration(S3Error):
    """A configuration of a bucket cannot be decoded."""

    def __init__(self, name: str):
        super().__init__("InternalError", f"The bucket's {name} configuration is damaged.")


def sysmeta_key(header: str) -> str:
    """Return the name of a container's system metadata without its prefix."""
    return header.removeprefix(fields.CONTAINER_SYSMETA)


class ConfigurationCodec:
    """Encodes and decodes the configurations of one kind."""

    def __init__(
        self, name: str, headers: Sequence[str], piece_bytes: int, bytes_max: int, too_large: S3Error
    ):
        self.name = name
        #: All headers of a configuration, in the order of its pieces.
        self.headers = tuple(headers)
        self._keys = tuple(map(sysmeta_key, headers))
        self._piece_bytes = piece_bytes
        #: Bytes of a configuration before it is compressed.
        self.bytes_max = bytes_max
        self._too_large = too_large

    def encode(self, document: bytes) -> HeaderMap:
        """Return the headers that store a configuration, or remove it if it is empty.

        Raise ``S3Error`` if it is too large.
        """
        packed = pack(document)
        size = self._piece_bytes
        if len(packed) > size * len(self.headers) or len(document) > self.bytes_max:
            raise S3Error(self._too_large.code, self._too_large.text)
        return {header: packed[n * size : (n + 1) * size] for n, header in enumerate(self.headers)}

    def encode_json(self, value: object) -> HeaderMap:
        """Return the same for a JSON value; None removes the configuration."""
        return self.encode(b"" if value is None else json.dumps(value, separators=(",", ":")).encode())

    def read_packed(self, sysmeta: Mapping[str, str]) -> str:
        """Return the packed text in a container's system metadata (names without prefix), empty for none."""
        if not sysmeta.get(self._keys[0]):
            return ""
        return "".join(sysmeta.get(key, "") for key in self._keys)

    def unpack(self, packed: str) -> bytes:
        """Return the configuration in a packed text, empty for empty text; raise ``DamagedConfiguration``."""
        try:
            return unpack(packed, self.bytes_max)
        except ValueError:
            raise self.damaged_error()

    def decode_items(self, sysmeta: Mapping[str, str], make: Callable[..., T]) -> tuple[T, ...]:
        """Return what ``make`` makes of each item of a bucket's JSON list, empty if it has none.

        Raise ``DamagedConfiguration``. Results are cached.
        """
        return _decode_items(self, self.read_packed(sysmeta), make)

    def decode(self, sysmeta: Mapping[str, str]) -> bytes:
        """Return a bucket's configuration, empty if it has none; raise ``DamagedConfiguration``."""
        return self.unpack(self.read_packed(sysmeta))

    def damaged_error(self) -> DamagedConfiguration:
        """Return the error for a configuration that cannot be decoded."""
        return DamagedConfiguration(self.name)


@lru_cache(maxsize=512)
def _decode_items(codec: ConfigurationCodec, packed: str, make: Callable[..., T]) -> tuple[T, ...]:
    document = codec.unpack(packed)
    try:
        items = json.loads(document) if document else []
        if isinstance(items, list):
            return tuple(map(make, items))
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise codec.damaged_error()


def _document_codec(name: str, header: str) -> ConfigurationCodec:
    """Return the codec of a document: ``<header>``, ``<header>-1`` … ``-4``."""
    headers = [header, *(f"{header}-{number}" for number in range(1, 5))]
    # A header fits into a line of any server, 8192 bytes with its name.
    return ConfigurationCodec(name, headers, 6000, 128 << 10, S3Error("MaxMessageLengthExceeded"))


def rules_codec(name: str) -> ConfigurationCodec:
    """Return the codec of rules in JSON: ``<prefix><name>-0`` … ``-7``."""
    headers = [f"{fields.SYSMETA_S3_BUCKET}{name}-{number}" for number in range(8)]
    text = "This takes more room than the metadata of a bucket has."
    return ConfigurationCodec(name, headers, 4000, 4 << 20, invalid_request(text))


POLICY = _document_codec("policy", fields.SYSMETA_S3_BUCKET_POLICY)
CORS = _document_codec("CORS", fields.SYSMETA_S3_BUCKET_CORS)
WEBSITE = _document_codec("website", fields.SYSMETA_S3_BUCKET_WEBSITE)
LIFECYCLE = rules_codec("lifecycle")
NOTIFICATION = rules_codec("notification")
INVENTORY = rules_codec("inventory")
