"""CRCs computed by Intel's ISA-L, which the erasure coding library brings along.

``crc32c`` and ``crc64nvme`` are functions (bytes, start) → value, or None where the library, or a function
in it, is missing: ``base.crc`` has the slow way. ``crc32`` is always there. Looked for when first asked for.
"""

from __future__ import annotations

import ctypes
import importlib.util
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

#: (the bytes, what the bytes before them gave) → what all of them give.
Crc = Callable[[bytes | memoryview, int], int]
_SONAME = "libisal.so.2"
_MASK32 = (1 << 32) - 1
#: Below this size ``zlib`` is quicker: a call through ctypes takes 2.6 us more (measured with CPython 3.11).
_ZLIB_BYTES = 3072


def _library_paths() -> Iterator[str]:
    """Yield files that may be the library: the one beside PyECLib first, which is loaded anyway."""
    spec = importlib.util.find_spec("pyeclib")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from map(str, sorted(Path(f"{folder}.libs").glob("libisal*")))
    # The loader finds it; ctypes.util.find_library would start a linker, in the midst of a request.
    yield _SONAME


@cache
def _library() -> ctypes.CDLL | None:
    for place in _library_paths():
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


@cache
def crc32() -> Crc:
    """Return CRC-32 as ``zlib`` computes it; without the library it has a sixth of the speed."""
    library = _library()
    function = getattr(library, "crc32_gzip_refl", None)
    if function is None:
        return zlib.crc32
    function.argtypes = (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64)
    function.restype = ctypes.c_uint32

    def compute(data: bytes | memoryview, start: int) -> int:
        if len(data) < _ZLIB_BYTES:
            return zlib.crc32(data, start)
        return int(function(start, _address(data), len(data)))

    return compute


@cache
def crc32c() -> Crc | None:
    """Return CRC-32C (Castagnoli), or None."""
    library = _library()
    function = getattr(library, "crc32_iscsi", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
    function.restype = ctypes.c_uint

    def compute(data: bytes | memoryview, start: int) -> int:
        return function(_address(data), len(data), start ^ _MASK32) ^ _MASK32

    return compute


@cache
def crc64nvme() -> Crc | None:
    """Return CRC-64/NVME, or None."""
    library = _library()
    function = getattr(library, "crc64_rocksoft_refl", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
    function.restype = ctypes.c_uint64

    def compute(data: bytes | memoryview, start: int) -> int:
        return int(function(start, _address(data), len(data)))

    return compute


def _address(data: bytes | memoryview) -> object:
    """Return the pointer argument for ctypes, without a copy of the bytes where possible."""
    if isinstance(data, bytes):
        return data
    if data.readonly:
        return data.tobytes()
    return ctypes.addressof(ctypes.c_char.from_buffer(data))
