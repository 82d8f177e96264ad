"""Checksums of the API: computed while a body is read, and combined for multipart objects.

A *composite* checksum is computed over the parts' checksums. A *full-object* one covers all bytes; CRCs of
the parts can be combined to it without reading the bytes again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5, sha1, sha256, sha512
from typing import Protocol

import xxhash

from swift.base.crc import CRC32, CRC32C, CRC64NVME, Polynomial
from swift.platform import fastcrc
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.xml import Text

CHECKSUM_HEADER_PREFIX = "x-amz-checksum-"
COMPOSITE, FULL_OBJECT = "COMPOSITE", "FULL_OBJECT"


class RunningChecksum(Protocol):
    """A checksum in computation."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add the next bytes."""

    def digest(self) -> bytes:
        """Return the checksum so far."""


class _Crc:
    """A CRC in computation."""

    __slots__ = ("_compute", "_value", "_size")

    def __init__(self, compute: Callable[[bytes | memoryview, int], int], size: int):
        self._compute = compute
        self._value = 0
        self._size = size

    def update(self, data: bytes | memoryview, /) -> None:
        """Add bytes to the checksum."""
        self._value = self._compute(data, self._value)

    def digest(self) -> bytes:
        """Return the checksum so far, the most significant byte first."""
        return self._value.to_bytes(self._size, "big")


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A checksum algorithm, by AWS's name."""

    name: str
    size: int
    start: Callable[[], RunningChecksum]
    polynomial: Polynomial | None = None

    @property
    def header(self) -> str:
        """The header for its base64 value."""
        return CHECKSUM_HEADER_PREFIX + self.name.lower()

    @property
    def element(self) -> str:
        """The XML element for its base64 value."""
        return f"Checksum{self.name}"

    @property
    def default_type(self) -> str:
        """The type of a multipart object's checksum if the client names none."""
        return FULL_OBJECT if self.name == "CRC64NVME" else COMPOSITE

    def validate_type(self, checksum_type: str) -> None:
        """Raise ``S3Error`` if a multipart object cannot have this type of checksum."""
        validate_checksum_type(checksum_type)
        if (checksum_type == FULL_OBJECT and self.polynomial is None) or (
            checksum_type == COMPOSITE and self.name == "CRC64NVME"
        ):
            raise invalid_request(
                f"The {checksum_type} checksum type cannot be used with the "
                f"{self.name.lower()} checksum algorithm."
            )

    def combine_parts(self, parts: Sequence[tuple[bytes, int]], checksum_type: str) -> str:
        """Return the checksum of an object as in its header, from checksum and size of each part."""
        if checksum_type == COMPOSITE:
            whole = self.start()
            whole.update(b"".join(digest for digest, _ in parts))
            return f"{encode_checksum(whole.digest())}-{len(parts)}"
        assert self.polynomial is not None, "only CRCs can be put together"
        value = 0
        for digest, size in parts:
            value = self.polynomial.combine(value, int.from_bytes(digest, "big"), size)
        return encode_checksum(value.to_bytes(self.size, "big"))


def _crc32c() -> RunningChecksum:
    return _Crc(fastcrc.crc32c() or CRC32C.compute, 4)


def _crc64nvme() -> RunningChecksum:
    return _Crc(fastcrc.crc64nvme() or CRC64NVME.compute, 8)


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("CRC32", 4, lambda: _Crc(fastcrc.crc32(), 4), CRC32),
        Algorithm("CRC32C", 4, _crc32c, CRC32C),
        Algorithm("CRC64NVME", 8, _crc64nvme, CRC64NVME),
        Algorithm("SHA1", 20, lambda: sha1(usedforsecurity=False)),
        Algorithm("SHA256", 32, sha256),
        Algorithm("SHA512", 64, sha512),
        Algorithm("MD5", 16, lambda: md5(usedforsecurity=False)),
        Algorithm("XXHASH64", 8, xxhash.xxh64),
        Algorithm("XXHASH3", 8, xxhash.xxh3_64),
        Algorithm("XXHASH128", 16, xxhash.xxh3_128),
    )
}
CHECKSUM_ELEMENTS = tuple(Text(algorithm.element) for algorithm in ALGORITHMS.values())
_ALGORITHM_OF_HEADER = {algorithm.header: algorithm for algorithm in ALGORITHMS.values()}


def default_algorithm() -> Algorithm | None:
    """Return the algorithm for bodies without a checksum, as AWS does; None if it would be slow."""
    return ALGORITHMS["CRC64NVME"] if fastcrc.crc64nvme() is not None else None


def validate_checksum_type(checksum_type: str) -> None:
    """Raise ``S3Error`` for an invalid type of a multipart object's checksum."""
    if checksum_type.upper() not in (COMPOSITE, FULL_OBJECT):
        raise invalid_request("Value for x-amz-checksum-type header is invalid.")


_SINGLE_CHECKSUM_TEXT = "Expecting a single x-amz-checksum- header"


def multiple_checksums_error() -> S3Error:
    """Return the error for a request with more than one checksum."""
    return invalid_request(f"{_SINGLE_CHECKSUM_TEXT}. Multiple checksum Types are not allowed.")


def encode_checksum(digest: bytes) -> str:
    """Return a checksum in base64."""
    return b64encode(digest).decode("ascii")


def decode_checksum(algorithm: Algorithm, text: str) -> bytes | None:
    """Return the bytes of a base64 checksum; None if it is invalid for the algorithm."""
    try:
        digest = b64decode(text, validate=True)
    except ValueError:
        return None
    is_canonical = b64encode(digest).decode("ascii") == text
    return digest if is_canonical and len(digest) == algorithm.size else None


def find_algorithm(name: str) -> Algorithm:
    """Return an algorithm by its name in any case; raise ``S3Error``."""
    found = ALGORITHMS.get(name.upper())
    if found is None:
        raise invalid_request(
            "Checksum algorithm provided is unsupported. Please try again with any of the "
            f"valid types: [{', '.join(sorted(ALGORITHMS))}]"
        )
    return found


@dataclass(frozen=True, slots=True)
class DeclaredChecksum:
    """The checksum that a request declares for its body.

    ``text`` is None if it follows in the trailer, and empty if it is only computed.
    """

    algorithm: Algorithm
    text: str | None


def parse_checksum_trailer(headers: Mapping[str, str]) -> str:
    """Return the checksum header that ``x-amz-trailer`` announces, empty for none; raise ``S3Error``."""
    text = headers.get("x-amz-trailer", "")
    if not text.strip():
        return ""
    names = [name.strip() for name in text.split(",")]
    if len(names) > 1 and not names[-1]:
        names.pop()
    if any(name not in _ALGORITHM_OF_HEADER for name in names):
        raise invalid_request("The value specified in the x-amz-trailer header is not supported")
    if len(names) > 1:
        raise multiple_checksums_error()
    return names[0]


def parse_declared_checksum(headers: Mapping[str, str], *, of_body: bool = True) -> DeclaredChecksum | None:
    """Return the checksum that an upload's headers declare, None for none; raise ``S3Error``."""
    names = [name for name in headers if name.startswith(CHECKSUM_HEADER_PREFIX)]
    given = [name for name in names if name in _ALGORITHM_OF_HEADER]
    unknown = [
        name
        for name in names
        if name not in _ALGORITHM_OF_HEADER and not name.endswith(("-type", "-algorithm"))
    ]
    trailer = parse_checksum_trailer(headers) if of_body else ""
    if unknown:
        raise invalid_request("The algorithm type you specified in x-amz-checksum- header is invalid.")
    if len(given) > 1:
        raise multiple_checksums_error()
    if given and trailer:
        raise invalid_request(_SINGLE_CHECKSUM_TEXT)
    if trailer:
        _validate_algorithm_name(headers, _ALGORITHM_OF_HEADER[trailer])
        return DeclaredChecksum(_ALGORITHM_OF_HEADER[trailer], None)
    if given:
        algorithm, text = _ALGORITHM_OF_HEADER[given[0]], headers[given[0]].strip()
        if decode_checksum(algorithm, text) is None:
            raise invalid_request(f"Value for {given[0]} header is invalid.")
        _validate_algorithm_name(headers, algorithm)
        return DeclaredChecksum(algorithm, text)
    if of_body and "x-amz-sdk-checksum-algorithm" in headers:
        raise invalid_request(
            "x-amz-sdk-checksum-algorithm specified, but no corresponding "
            "x-amz-checksum-* or x-amz-trailer headers were found."
        )
    return None


def _validate_algorithm_name(headers: Mapping[str, str], algorithm: Algorithm) -> None:
    """Raise ``S3Error`` if the SDK header names another algorithm than the checksum has."""
    named = headers.get("x-amz-sdk-checksum-algorithm", "")
    if named and named.upper() != algorithm.name:
        raise invalid_request("Value for x-amz-sdk-checksum-algorithm header is invalid.")
