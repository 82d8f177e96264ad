"""Erasure coding of one segment: a face over PyECLib with our errors (spec: replication.md §4).

``Codec`` turns a segment into k + m fragments and any k of them back. The library is loaded when the first
codec is made, so that a machine without it runs replicated policies; what is missing is said in one
sentence. PyECLib holds the interpreter's lock while it computes, so a thread gains nothing here: threads
pay for the checksums around it (``ec.archive``). A codec may be used by any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from swift.base.errors import SwiftError
from swift.ec.fragment import BadFragment, check_fragment

#: Code for new policies: the fastest one that survives any combination of losses.
DEFAULT_EC_TYPE = "isa_l_rs_cauchy"


class CodecError(SwiftError):
    """An erasure code cannot be used as asked."""


class CodecUnavailable(CodecError):
    """The library, or the code in it, is not installed on this machine."""


class NotEnoughFragments(CodecError):
    """These fragments do not give the segment back."""


def _library() -> Any:
    try:
        from pyeclib import ec_iface
    except Exception as error:
        # Besides a missing module: shared libraries that do not load, whatever the loader calls it.
        raise CodecUnavailable(f"erasure coding needs PyECLib and liberasurecode, which do not load: {error}")
    return ec_iface


def available_types() -> tuple[str, ...]:
    """Return the codes that work on this machine, the recommended one first; empty without the library."""
    try:
        return by_preference(map(str, _library().VALID_EC_TYPES))
    except CodecUnavailable:
        return ()


def by_preference(names: Iterable[str]) -> tuple[str, ...]:
    """Return codes with the recommended one first, and those last that do not survive any combination."""
    return tuple(sorted(names, key=lambda name: (name != DEFAULT_EC_TYPE, name.startswith("flat_xor"), name)))


class Codec:
    """k + m fragments of a segment and back.

    Raises ``CodecUnavailable`` when the code is not on this machine, ``CodecError`` when there is none of
    this name or it refuses k and m.
    """

    def __init__(self, ec_type: str, data: int, parity: int):
        library = _library()
        self.ec_type = ec_type
        self.data = data
        self.parity = parity
        self._error = library.ECDriverError
        try:
            self._driver = library.ECDriver(ec_type=ec_type, k=data, m=parity)
        except (library.ECBackendNotSupported, library.ECBackendInstanceNotAvailable):
            known = ", ".join(available_types())
            if ec_type not in library.ALL_EC_TYPES:
                raise CodecError(f"there is no ec_type {ec_type!r}; available are {known}")
            raise CodecUnavailable(
                f"ec_type {ec_type!r} is not installed on this machine; available are {known}"
            )
        except (library.ECDriverError, ValueError) as error:
            raise CodecError(f"{ec_type} cannot do {data}+{parity}: {str(error).partition('.')[0]}")
        self._lengths: dict[int, int] = {}

    @property
    def fragments(self) -> int:
        """k + m."""
        return self.data + self.parity

    @property
    def scheme(self) -> str:
        """The text of X-Object-Sysmeta-Ec-Scheme."""
        return f"{self.ec_type} {self.data}+{self.parity}"

    def fragment_length(self, segment_length: int) -> int:
        """Bytes of each fragment, its header included, of a segment of so many bytes; 0 of none."""
        if segment_length <= 0:
            return 0
        length = self._lengths.get(segment_length)
        if length is None:
            length = int(self._driver.get_segment_info(segment_length, segment_length)["fragment_size"])
            if len(self._lengths) < 1024:
                self._lengths[segment_length] = length
        return length

    def encode(self, segment: bytes) -> list[bytes]:
        """Return the k + m fragments of a segment that is not empty."""
        fragments: list[bytes] = self._driver.encode(segment)
        return fragments

    def decode(self, fragments: Sequence[bytes]) -> bytes:
        """Return the segment from k or more whole, distinct fragments; raises ``NotEnoughFragments``."""
        self._check(fragments)
        try:
            segment: bytes = self._driver.decode(list(fragments))
        except self._error as error:
            raise NotEnoughFragments(f"{self.scheme}: {error}")
        return segment

    def reconstruct(self, fragments: Sequence[bytes], index: int) -> bytes:
        """Fragment ``index`` of the segment that the others belong to; raises ``NotEnoughFragments``."""
        self._check(fragments)
        try:
            rebuilt: bytes = self._driver.reconstruct(list(fragments), [index])[0]
        except self._error as error:
            raise NotEnoughFragments(f"{self.scheme}: {error}")
        return rebuilt

    def is_valid(self, fragment: bytes) -> bool:
        """Return True if the library accepts this fragment's header, checksum and all."""
        try:
            check_fragment(fragment)
            self._driver.get_metadata(fragment, True)
        except (BadFragment, self._error):
            return False
        return True

    def _check(self, fragments: Sequence[bytes]) -> None:
        try:
            headers = [check_fragment(fragment) for fragment in fragments]
        except BadFragment as error:
            raise NotEnoughFragments(str(error))
        if len({header.index for header in headers}) < self.data:
            raise NotEnoughFragments(f"{self.scheme} needs {self.data} distinct fragments")
        if len({(header.segment_length, header.payload_size) for header in headers}) != 1:
            raise NotEnoughFragments("the fragments belong to different segments")

    def __repr__(self) -> str:
        return f"<Codec {self.scheme}>"
