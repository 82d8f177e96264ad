"""The name of what a request is about: account, container or object (spec: public-api.md §1, §17)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from swift.base.errors import InvalidValue

RESERVED = "\x00"
#: The versions of the object storage API.
API_VERSIONS = ("v1", "v1.0")

#: Matches text that quoting leaves alone.
_is_plain = re.compile(r"[\w.~/-]*", re.ASCII).fullmatch


class BadPath(InvalidValue):
    """A path does not have the requested segments."""


class NotUTF8(InvalidValue):
    """A path or parameter does not decode as UTF-8."""


def decode_path(raw: str) -> str:
    """Percent-decode a raw request path once to text; raises ``NotUTF8``."""
    if "%" not in raw and raw.isascii():
        return raw
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise NotUTF8("path is not UTF-8")


def is_utf8_path(raw: str) -> bool:
    """Return True if ``decode_path`` would decode a raw request path."""
    try:
        decode_path(raw)
    except NotUTF8:
        return False
    return True


def decode_path_lossily(raw: str) -> str:
    """Decode a path for comparing and showing: bytes that are not UTF-8 become surrogate escapes."""
    if "%" not in raw and raw.isascii():
        return raw
    return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8", "surrogateescape")


def normalize_path_quoting(raw: str) -> str:
    """Return a raw request path quoted in the one way of ``quote_path``, however its sender wrote it."""
    return raw if _is_plain(raw) else quote_path(decode_path_lossily(raw))


def quote_path(path: str) -> str:
    """Percent-quote decoded text for a URL, slashes kept."""
    return path if _is_plain(path) else _quote(path)


@lru_cache(maxsize=1024)
def _quote(path: str) -> str:
    return quote(path, safe="/~", errors="surrogateescape")


def split_path(raw: str, minimum: int, maximum: int, *, rest_with_last: bool = False) -> list[str | None]:
    """Split a raw (still quoted) path into decoded segments.

    It is decoded first: ``%2F`` separates like a slash, as it does for every WSGI server (PEP 3333), so that
    no two spellings of a path mean different things. One slash at the end counts for nothing unless it
    belongs to the rest. Returns ``maximum`` items, absent ones None. Raises ``BadPath`` when there are fewer
    than ``minimum`` segments, more than ``maximum`` (unless ``rest_with_last``) or an empty one, and
    ``NotUTF8``.
    """
    path = decode_path(raw)
    if not path.startswith("/"):
        raise BadPath(f"Invalid path: {raw}")
    parts: list[str | None] = [*path.split("/", maximum if rest_with_last else maximum + 1)[1:]]
    if len(parts) > minimum and parts[-1] == "":
        parts.pop()
    if not minimum <= len(parts) <= maximum or "" in parts:
        raise BadPath(f"Invalid path: {raw}")
    parts.extend([None] * (maximum - len(parts)))
    return parts


class EntityPath(NamedTuple):
    """An account, a container in it, or an object in that; names are decoded text."""

    account: str
    container: str | None = None
    obj: str | None = None

    @property
    def kind(self) -> str:
        """``account``, ``container`` or ``object``."""
        return "account" if self.container is None else "container" if self.obj is None else "object"

    @property
    def parent(self) -> EntityPath:
        """The entity that lists this one; an account has none (ValueError)."""
        if self.obj is not None:
            return EntityPath(self.account, self.container)
        if self.container is not None:
            return EntityPath(self.account)
        raise ValueError("an account has no parent")

    @property
    def quoted(self) -> str:
        """``/account[/container[/object]]`` percent-quoted."""
        return quote_path(str(self))

    def __str__(self) -> str:
        account, container, obj = self
        if obj is not None and container is not None:
            return f"/{account}/{container}/{obj}"
        return f"/{account}" if container is None else f"/{account}/{container}"


class Entity(NamedTuple):
    """Path of a client's request: ``/version/account[/container[/object]]``."""

    version: str
    path: EntityPath

    @classmethod
    def parse(cls, raw: str) -> Entity:
        """Return the entity of a raw (still quoted) path; raises ``BadPath`` and ``NotUTF8``."""
        version, account, container, obj = split_path(raw, 2, 4, rest_with_last=True)
        return cls(str(version), EntityPath(str(account), container, obj))

    @property
    def raw_path(self) -> str:
        """The path, percent-quoted."""
        return f"/{self.version}{self.path.quoted}"


def reserved_name_error(path: EntityPath, auto_create_prefix: str = ".") -> str | None:
    """Return the error of a name that misuses the NUL namespace, or None (public-api.md §17).

    A name with NUL anywhere must start with it; object and container must both be reserved or both not.
    The object rules do not hold in accounts that begin with ``auto_create_prefix``.
    """
    if RESERVED not in "".join(filter(None, path)):
        return None
    for kind, name in zip(("account", "container"), path, strict=False):
        if name and RESERVED in name and not name.startswith(RESERVED):
            return f"Invalid reserved-namespace {kind}"
    if path.obj is None or path.container is None or path.account.startswith(auto_create_prefix):
        return None
    if RESERVED in path.obj and not path.obj.startswith(RESERVED):
        return "Invalid reserved-namespace object"
    object_reserved = path.obj.startswith(RESERVED)
    container_reserved = path.container.startswith(RESERVED)
    if object_reserved and not container_reserved:
        return "Invalid reserved-namespace object in user-namespace container"
    if container_reserved and not object_reserved:
        return "Invalid user-namespace object in reserved-namespace container"
    return None
