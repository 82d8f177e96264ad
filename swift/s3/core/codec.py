"""The codec for configurations in the system metadata of a bucket's container, in two layouts. Pure.

A configuration is compressed, encoded in base64 and cut into pieces that fit into headers. Every change
sets all headers of its layout at once, so a reader never finds pieces of two configurations.

The codec fails closed: decoding a damaged configuration raises ``DamagedConfiguration``. What the
configuration forbade is then not allowed, and what it ordered is not done.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from swift.base.memo import SizedCache
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.packedconfig import DOCUMENT_BYTES_MAX, PackedConfiguration, document_headers
from swift.s3.core.errors import S3Error, invalid_request

T = TypeVar("T")


class DamagedConfiguration(S3Error):
    """A configuration of a bucket cannot be decoded."""

    def __init__(self, name: str):
        super().__init__("InternalError", f"The bucket's {name} configuration is damaged.")


class ConfigurationCodec(PackedConfiguration):
    """Encodes and decodes the configurations of one kind."""

    def __init__(
        self, name: str, headers: Sequence[str], piece_bytes: int, bytes_max: int, too_large: S3Error
    ):
        super().__init__(headers, bytes_max)
        self.name = name
        self._piece_bytes = piece_bytes
        self._too_large = too_large

    def encode(self, document: bytes) -> HeaderMap:
        """Return the headers that store a configuration, or remove it if it is empty.

        Raise ``S3Error`` if it is too large.
        """
        packed = b64encode(zlib.compress(document, 9)).decode("ascii") if document else ""
        size = self._piece_bytes
        if len(packed) > size * len(self.headers) or len(document) > self.bytes_max:
            raise S3Error(self._too_large.code, self._too_large.text)
        return {header: packed[n * size : (n + 1) * size] for n, header in enumerate(self.headers)}

    def encode_json(self, value: object) -> HeaderMap:
        """Return the same for a JSON value; None removes the configuration."""
        return self.encode(b"" if value is None else json.dumps(value, separators=(",", ":")).encode())

    def unpack(self, packed: str) -> bytes:
        """Return the configuration in a packed text, empty for empty text; raise ``DamagedConfiguration``."""
        try:
            return super().unpack(packed)
        except ValueError:
            raise self.damaged_error()

    def decode_items(self, sysmeta: Mapping[str, str], make: Callable[..., T]) -> tuple[T, ...]:
        """Return what ``make`` makes of each item of a bucket's JSON list, empty if it has none.

        Raise ``DamagedConfiguration``. Results are cached.
        """
        packed = self.read_packed(sysmeta)
        known = _ITEMS.get((self.name, packed, make))
        if known is not None:
            return cast(tuple[T, ...], known)
        document = self.unpack(packed)
        try:
            items = json.loads(document) if document else []
            if isinstance(items, list):
                found = tuple(map(make, items))
                _ITEMS.keep((self.name, packed, make), found, len(packed) + len(document))
                return found
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise self.damaged_error()

    def decode(self, sysmeta: Mapping[str, str]) -> bytes:
        """Return a bucket's configuration, empty if it has none; raise ``DamagedConfiguration``."""
        return self.unpack(self.read_packed(sysmeta))

    def damaged_error(self) -> DamagedConfiguration:
        """Return the error for a configuration that cannot be decoded."""
        return DamagedConfiguration(self.name)


#: Items that were decoded lately, within bytes of text; in memory they take some ten times as much.
_ITEMS: SizedCache[tuple[str, str, Callable[..., object]], tuple[object, ...]] = SizedCache(8 << 20)


def _document_codec(name: str, header: str) -> ConfigurationCodec:
    """Return the codec of a document."""
    # A header fits into a line of any server, 8192 bytes with its name.
    too_large = S3Error("MaxMessageLengthExceeded")
    return ConfigurationCodec(name, document_headers(header), 6000, DOCUMENT_BYTES_MAX, too_large)


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
