"""The names of an object's files: parsing and printing (spec: object-disk.md §3).

A name says when its content was written (a timestamp), what it is (the extension), for ``.meta`` files
when the content type was set, and for fragment archives which fragment it is and whether it is durable.
Only names are looked at here; which of them win is ``store.chooser``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import InvalidTimestamp, Timestamp, decode_timestamps

DATA = ".data"
META = ".meta"
TOMBSTONE = ".ts"
DURABLE = ".durable"

#: Says of a name whether it is replicated data in exactly the printed form, without an offset.
is_plain_data = re.compile(r"[0-9]{10}\.[0-9]{5}\.data\Z").match
_RSYNC_TEMPORARY = re.compile(r"^\..*\.([a-zA-Z0-9_]){6}$")


class UnexpectedName(InvalidValue):
    """A file in a hash directory that no version of this format writes; ignored, never deleted."""


class FileName(NamedTuple):
    """A parsed file name."""

    name: str
    timestamp: Timestamp
    extension: str
    #: When the content type in a ``.meta`` was set; None when it has none.
    ctype_timestamp: Timestamp | None = None
    #: Fragment archive index of an erasure coded ``.data``.
    fragment: int | None = None
    durable: bool = False

    def __repr__(self) -> str:
        return f"FileName({self.name!r})"


def parse_name(name: str, fragments: int | None = None) -> FileName:
    """Parse the name of a file; ``fragments`` is k+m of an erasure coded policy, else None.

    Raises ``UnexpectedName``.
    """
    dot = name.rfind(".")
    stem, extension = (name[:dot], name[dot:]) if dot > 0 else (name, "")
    try:
        if extension == META:
            written, ctype, _ = decode_timestamps(stem, explicit=True)
            return FileName(name, written, extension, ctype)
        if extension == DATA and fragments is not None:
            return _parse_fragment(name, stem, fragments)
        return FileName(name, Timestamp(stem), extension)
    except (InvalidTimestamp, ValueError):
        raise UnexpectedName(f"unexpected file {name!r}")


def _parse_fragment(name: str, stem: str, fragments: int) -> FileName:
    parts = stem.split("#", 2)
    if len(parts) < 2 or not (parts[1].isascii() and parts[1].isdigit()):
        raise UnexpectedName(f"no fragment index in {name!r}")
    index = int(parts[1])
    if index >= fragments:
        raise UnexpectedName(f"fragment index of {name!r} is not below {fragments}")
    durable = len(parts) == 3 and parts[2] == "d"
    return FileName(name, Timestamp(parts[0]), DATA, None, index, durable)


def is_rsync_temporary(name: str) -> bool:
    """Whether rsync (or our own replacing of a name) left this partial file."""
    return _RSYNC_TEMPORARY.match(name) is not None


def data_name(timestamp: Timestamp, fragment: int | None = None, *, durable: bool = False) -> str:
    """The name of an object body or of a fragment archive."""
    if fragment is None:
        return f"{timestamp.internal}{DATA}"
    return f"{timestamp.internal}#{fragment}{'#d' if durable else ''}{DATA}"


def tombstone_name(timestamp: Timestamp) -> str:
    """The name of a tombstone."""
    return f"{timestamp.internal}{TOMBSTONE}"


def meta_name(timestamp: Timestamp, ctype_timestamp: Timestamp | None = None) -> str:
    """The name of a ``.meta``; with a content type the time of that is packed behind the short form."""
    if ctype_timestamp is None:
        return f"{timestamp.internal}{META}"
    delta = ctype_timestamp.raw - timestamp.raw
    return f"{timestamp.short}{'-' if delta < 0 else '+'}{abs(delta):x}{META}"
