"""Pickles from disk or the network, read without being able to run anything.

The formats of the spec contain pickles (object metadata, suffix hashes, pending rows, builders). Each
reader names the few globals its format needs; every other one is refused before it is looked up.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from swift.base.errors import InvalidValue


class PickleRefused(InvalidValue):
    """The data is not a pickle or names a global that its format does not contain."""


class HeaderDict(dict[str, str]):
    """Stands in for the peer's pickled header dict: names are kept as stored."""


def _codecs_encode(text: str, encoding: str = "latin1") -> bytes:
    """Return the only codec call that protocol 2 byte strings need."""
    if encoding not in ("latin1", "latin-1", "utf8", "utf-8"):
        raise PickleRefused(f"pickle needs codec {encoding!r}")
    return text.encode(encoding)


def _empty_bytes(*args: object) -> bytes:
    return bytes(*args) if not args or isinstance(args[0], (bytes, list, tuple)) else b""


def _reconstructor(cls: type, base: type, state: Any) -> object:
    """``copyreg._reconstructor`` limited to dictionaries."""
    if base is not dict or cls not in (dict, HeaderDict):
        raise PickleRefused("pickle reconstructs an unexpected class")
    return cls(state)


#: Replacements for the globals that our formats may name; both spellings of Python 2 and 3.
_SAFE: dict[tuple[str, str], Callable[..., object]] = {
    ("_codecs", "encode"): _codecs_encode,
    ("copyreg", "_reconstructor"): _reconstructor,
    ("copy_reg", "_reconstructor"): _reconstructor,
    ("builtins", "dict"): dict,
    ("__builtin__", "dict"): dict,
    ("builtins", "bytes"): _empty_bytes,
    ("__builtin__", "bytes"): _empty_bytes,
    ("swift.common.header_key_dict", "HeaderKeyDict"): HeaderDict,
}

#: Globals that pickles of metadata, suffix hashes and pending updates may name.
STANDARD_GLOBALS = frozenset(_SAFE)


class _Restricted(pickle.Unpickler):
    def __init__(
        self,
        file: io.BytesIO,
        allowed: frozenset[tuple[str, str]],
        extra: Mapping[tuple[str, str], object],
        encoding: str,
    ):
        super().__init__(file, encoding=encoding)
        self._allowed = allowed
        self._extra = extra

    def find_class(self, module: str, name: str) -> Any:
        key = (module, name)
        if key in self._extra:
            return self._extra[key]
        if key in self._allowed and key in _SAFE:
            return _SAFE[key]
        raise PickleRefused(f"pickle names {module}.{name}, which its format does not contain")


def restricted_loads(
    data: bytes,
    allowed: frozenset[tuple[str, str]] = STANDARD_GLOBALS,
    *,
    extra: Mapping[tuple[str, str], object] | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Unpickle ``data``; only globals in ``allowed`` (with safe stand-ins) or ``extra`` are resolved.

    ``encoding`` is for Python 2 byte strings (``"bytes"`` keeps them). Raises ``PickleRefused`` for
    anything that does not load.
    """
    try:
        return _Restricted(io.BytesIO(data), allowed, extra or {}, encoding).load()
    except PickleRefused:
        raise
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        EOFError,
        AttributeError,
        ImportError,
        MemoryError,
        OverflowError,
        RecursionError,
    ) as error:
        raise PickleRefused(f"not a readable pickle: {error or type(error).__name__}")
