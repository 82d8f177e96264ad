"""The checksums of the API: computed while a body passes by, and put together for multipart objects.

A *composite* checksum is that of the parts' checksums one after the other; a *full-object* one is that of
all the bytes, which CRCs can have without reading them again.
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
from swift.s3.errors import S3Error

PREFIX = "x-amz-checksum-"
COMPOSITE, FULL = "COMPOSITE", "FULL_OBJECT"


class RunningChecksum(Protocol):
    """A checksum that is being computed."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take the next bytes."""

    def digest(self) -> bytes:
        """Return the checksum so far."""


class _Crc:
    """A CRC that is being computed."""

    __slots__ = ("_compute", "_value", "_size")

    def __init__(self, compute: Callable[[bytes | memoryview, int], int], size: int):
        self._compute = compute
        self._value = 0
        self._size = size

    def update(self, data: bytes | memoryview, /) -> None:
        """See ``RunningChecksum``."""
        self._value = self._compute(data, self._value)

    def digest(self) -> bytes:
        """See ``RunningChecksum``."""
        return self._value.to_bytes(self._size, "big")


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One kind of checksum, by AWS's name."""

    name: str
    size: int
    start: Callable[[], RunningChecksum]
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
        """The type of a multipart object's checksum if the client names none."""
        return FULL if self.name == "CRC64NVME" else COMPOSITE

    def check_type(self, kind: str) -> None:
        """Raise ``S3Error`` when a multipart object cannot have it so."""
        check_kind(kind)
        if (kind == FULL and self.polynomial is None) or (kind == COMPOSITE and self.name == "CRC64NVME"):
            raise S3Error(
                "InvalidRequest",
                f"The {kind} checksum type cannot be used with the {self.name.lower()} checksum algorithm.",
            )

    def combine(self, parts: Sequence[tuple[bytes, int]], kind: str) -> str:
        """Return the checksum of an object as its header has it, from checksum and size of each part."""
        if kind == COMPOSITE:
            whole = self.start()
            whole.update(b"".join(digest for digest, _ in parts))
            return f"{encoded(whole.digest())}-{len(parts)}"
        assert self.polynomial is not None, "only CRCs can be put together"
        value = 0
        for digest, size in parts:
            value = self.polynomial.combine(value, int.from_bytes(digest, "big"), size)
        return encoded(value.to_bytes(self.size, "big"))


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
_BY_HEADER = {algorithm.header: algorithm for algorithm in ALGORITHMS.values()}


def usual_algorithm() -> Algorithm | None:
    """Return the algorithm for bodies without a checksum, as AWS does; None where it is slow."""
    return ALGORITHMS["CRC64NVME"] if fastcrc.crc64nvme() is not None else None


def check_kind(kind: str) -> None:
    """Raise ``S3Error`` for what is no kind of a multipart object's checksum."""
    if kind.upper() not in (COMPOSITE, FULL):
        raise S3Error("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")


_SINGLE = "Expecting a single x-amz-checksum- header"


def several_checksums() -> S3Error:
    """Return the answer to a request with more than one."""
    return S3Error("InvalidRequest", f"{_SINGLE}. Multiple checksum Types are not allowed.")


def encoded(digest: bytes) -> str:
    """Return a checksum as headers have it."""
    return b64encode(digest).decode("ascii")


def decoded(algorithm: Algorithm, text: str) -> bytes | None:
    """Return the bytes of a checksum; None when the text is none of this kind."""
    try:
        digest = b64decode(text, validate=True)
    except ValueError:
        return None
    return digest if len(digest) == algorithm.size else None


def algorithm_named(name: str) -> Algorithm:
    """Return an algorithm by its name in any case; raise ``S3Error``."""
    found = ALGORITHMS.get(name.upper())
    if found is None:
        raise S3Error(
            "InvalidRequest",
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
            f"[{', '.join(sorted(ALGORITHMS))}]",
        )
    return found


@dataclass(frozen=True, slots=True)
class StatedChecksum:
    """The checksum that a body is said to have.

    ``text`` is None when it comes in the trailer, and empty when nothing is said and it is only computed.
    """

    algorithm: Algorithm
    text: str | None


def announced_trailer(headers: Mapping[str, str]) -> str:
    """Return the checksum header that ``x-amz-trailer`` announces, empty for none; raise ``S3Error``."""
    names = [name.strip() for name in headers.get("x-amz-trailer", "").split(",")]
    if len(names) > 1 and not names[-1]:
        names.pop()
    if names == [""] and "," not in headers.get("x-amz-trailer", ""):
        return ""
    if any(name not in _BY_HEADER for name in names):
        raise S3Error("InvalidRequest", "The value specified in the x-amz-trailer header is not supported")
    if len(names) > 1:
        raise several_checksums()
    return names[0]


def stated_checksum(headers: Mapping[str, str], *, of_body: bool = True) -> StatedChecksum | None:
    """Return the checksum that the headers of an upload state; raise ``S3Error``."""
    given = [name for name in headers if name.startswith(PREFIX) and name in _BY_HEADER]
    unknown = [
        n
        for n in headers
        if n.startswith(PREFIX) and n not in _BY_HEADER and not n.endswith(("-type", "-algorithm"))
    ]
    trailer = announced_trailer(headers) if of_body else ""
    if unknown:
        raise S3Error(
            "InvalidRequest", "The algorithm type you specified in x-amz-checksum- header is invalid."
        )
    if len(given) > 1:
        raise several_checksums()
    if given and trailer:
        raise S3Error("InvalidRequest", _SINGLE)
    if trailer:
        _validate_algorithm_name(headers, _BY_HEADER[trailer])
        return StatedChecksum(_BY_HEADER[trailer], None)
    if given:
        algorithm, text = _BY_HEADER[given[0]], headers[given[0]].strip()
        if decoded(algorithm, text) is None:
            raise S3Error("InvalidRequest", f"Value for {given[0]} header is invalid.")
        _validate_algorithm_name(headers, algorithm)
        return StatedChecksum(algorithm, text)
    if of_body and "x-amz-sdk-checksum-algorithm" in headers:
        raise S3Error(
            "InvalidRequest",
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer "
            "headers were found.",
        )
    return None


def _validate_algorithm_name(headers: Mapping[str, str], algorithm: Algorithm) -> None:
    """Raise ``S3Error`` when an SDK names another kind than it brings."""
    named = headers.get("x-amz-sdk-checksum-algorithm", "")
    if named and named.upper() != algorithm.name:
        raise S3Error("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
