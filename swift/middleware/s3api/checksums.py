"""The checksums of the API: computed while a body passes by, and put together for multipart objects.

A *composite* checksum is that of the parts' checksums one after the other; a *full-object* one is that of
all the bytes, which CRCs can have without reading them again.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1, sha256
from typing import Protocol

from swift.base.crc import CRC32, CRC32C, CRC64NVME, Polynomial
from swift.middleware.s3api.errors import S3Error
from swift.platform import fastcrc

PREFIX = "x-amz-checksum-"
COMPOSITE, FULL = "COMPOSITE", "FULL_OBJECT"


class Running(Protocol):
    """A checksum that is being computed."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take the next bytes."""

    def digest(self) -> bytes:
        """The checksum so far."""


class _Crc:
    """A CRC that is being computed."""

    __slots__ = ("_compute", "_value", "_size")

    def __init__(self, compute: Callable[[bytes | memoryview, int], int], size: int):
        self._compute = compute
        self._value = 0
        self._size = size

    def update(self, data: bytes | memoryview, /) -> None:
        """See ``Running``."""
        self._value = self._compute(data, self._value)

    def digest(self) -> bytes:
        """See ``Running``."""
        return self._value.to_bytes(self._size, "big")


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One kind of checksum, by AWS's name."""

    name: str
    size: int
    start: Callable[[], Running]
    polynomial: Polynomial | None = None

    @property
    def header(self) -> str:
        """The header that has it in base64."""
        return PREFIX + self.name.lower()

    @property
    def element(self) -> str:
        """The element that has it in documents."""
        return f"Checksum{self.name}"

    @property
    def usual_type(self) -> str:
        """What a multipart object has of it if nobody says so."""
        return FULL if self.name == "CRC64NVME" else COMPOSITE

    def check_type(self, kind: str) -> None:
        """Raise ``S3Error`` when a multipart object cannot have it so."""
        if kind not in (COMPOSITE, FULL):
            raise S3Error("InvalidRequest", f"Value for x-amz-checksum-type header is invalid: {kind}")
        if (kind == FULL and self.polynomial is None) or (kind == COMPOSITE and self.name == "CRC64NVME"):
            raise S3Error(
                "InvalidRequest",
                f"The {kind} checksum type cannot be used with the {self.name.lower()} checksum algorithm.",
            )

    def joined(self, parts: Sequence[tuple[bytes, int]], kind: str) -> str:
        """The checksum of an object as its header has it, from checksum and size of each part."""
        if kind == COMPOSITE:
            whole = self.start()
            whole.update(b"".join(digest for digest, _ in parts))
            return f"{encoded(whole.digest())}-{len(parts)}"
        assert self.polynomial is not None, "only CRCs can be put together"
        value = 0
        for digest, size in parts:
            value = self.polynomial.joined(value, int.from_bytes(digest, "big"), size)
        return encoded(value.to_bytes(self.size, "big"))


def _crc32c() -> Running:
    return _Crc(fastcrc.crc32c() or CRC32C.compute, 4)


def _crc64nvme() -> Running:
    return _Crc(fastcrc.crc64nvme() or CRC64NVME.compute, 8)


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("CRC32", 4, lambda: _Crc(zlib.crc32, 4), CRC32),
        Algorithm("CRC32C", 4, _crc32c, CRC32C),
        Algorithm("CRC64NVME", 8, _crc64nvme, CRC64NVME),
        Algorithm("SHA1", 20, lambda: sha1(usedforsecurity=False)),
        Algorithm("SHA256", 32, sha256),
    )
}
_BY_HEADER = {algorithm.header: algorithm for algorithm in ALGORITHMS.values()}


def encoded(digest: bytes) -> str:
    """A checksum as headers have it."""
    return b64encode(digest).decode("ascii")


def decoded(algorithm: Algorithm, text: str) -> bytes | None:
    """The bytes of a checksum; None when the text is none of this kind."""
    try:
        digest = b64decode(text, validate=True)
    except ValueError:
        return None
    return digest if len(digest) == algorithm.size else None


def algorithm_named(name: str) -> Algorithm:
    """By name in any case; raises ``S3Error``."""
    found = ALGORITHMS.get(name.upper())
    if found is None:
        raise S3Error(
            "InvalidRequest",
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
            "[CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        )
    return found


@dataclass(frozen=True, slots=True)
class Promise:
    """The checksum that a body is said to have.

    ``text`` is None when it comes in the trailer, and empty when nothing is said and it is only computed.
    """

    algorithm: Algorithm
    text: str | None


def promised(headers: Mapping[str, str], *, of_body: bool = True) -> Promise | None:
    """What the headers of an upload promise; raises ``S3Error``."""
    given = [name for name in headers if name.startswith(PREFIX) and name in _BY_HEADER]
    unknown = [
        n
        for n in headers
        if n.startswith(PREFIX) and n not in _BY_HEADER and not n.endswith(("-type", "-algorithm", "-mode"))
    ]
    trailer = headers.get("x-amz-trailer", "").strip().lower() if of_body else ""
    if unknown:
        raise S3Error("InvalidRequest", f"The checksum of {unknown[0]} is not supported.")
    if len(given) + bool(trailer) > 1:
        raise S3Error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    if trailer:
        if trailer not in _BY_HEADER:
            raise S3Error(
                "InvalidRequest", "The value specified in the x-amz-trailer header is not supported"
            )
        return Promise(_BY_HEADER[trailer], None)
    if given:
        algorithm, text = _BY_HEADER[given[0]], headers[given[0]].strip()
        if decoded(algorithm, text) is None:
            raise S3Error("InvalidRequest", f"Value for {given[0]} header is invalid.")
        return Promise(algorithm, text)
    if of_body and "x-amz-sdk-checksum-algorithm" in headers:
        raise S3Error(
            "InvalidRequest",
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer "
            "headers were found.",
        )
    return None
