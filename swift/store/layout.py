"""Names of files and directories on a device, computed purely (spec: object-disk.md §1, §2).

The partition is the one the request names, never recomputed, so that handoffs use the same one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import InvalidTimestamp, Timestamp, decode_timestamps
from swift.policy.policy import Policy, with_policy_suffix
from swift.store.api import ObjectKey

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
    """Return True if rsync (or our own replacing of a name) left this partial file."""
    return _RSYNC_TEMPORARY.match(name) is not None


def data_name(timestamp: Timestamp, fragment: int | None = None, *, durable: bool = False) -> str:
    """Return the name of an object body or of a fragment archive."""
    if fragment is None:
        return f"{timestamp.internal}{DATA}"
    return f"{timestamp.internal}#{fragment}{'#d' if durable else ''}{DATA}"


def tombstone_name(timestamp: Timestamp) -> str:
    """Return the name of a tombstone."""
    return f"{timestamp.internal}{TOMBSTONE}"


def meta_name(timestamp: Timestamp, ctype_timestamp: Timestamp | None = None) -> str:
    """Return the name of a ``.meta``.

    With a content type the time of that is packed behind the short form.
    """
    if ctype_timestamp is None:
        return f"{timestamp.internal}{META}"
    delta = ctype_timestamp.raw - timestamp.raw
    return f"{timestamp.short}{'-' if delta < 0 else '+'}{abs(delta):x}{META}"


SUFFIX_DIGITS = 3


def objects_dir(device_path: str, policy: Policy) -> str:
    """``objects[-N]``: all partitions of a policy."""
    return f"{device_path}/{with_policy_suffix('objects', policy.index)}"


def partition_dir(device_path: str, policy: Policy, partition: str) -> str:
    """One partition."""
    return f"{objects_dir(device_path, policy)}/{partition}"


def suffix_of(object_hash: str) -> str:
    """Return the last three hex digits, which name the suffix directory."""
    return object_hash[-SUFFIX_DIGITS:]


def is_suffix(name: str) -> bool:
    """Return True if a name in a partition is a suffix directory: three lower-case hex digits."""
    return len(name) == SUFFIX_DIGITS and not name.strip("0123456789abcdef")


def temporary_dir(device_path: str, policy: Policy) -> str:
    """``tmp[-N]``: files that do not have their final name yet."""
    return f"{device_path}/{with_policy_suffix('tmp', policy.index)}"


def async_dir(device_path: str, policy: Policy) -> str:
    """``async_pending[-N]``: container updates to be delivered later."""
    return f"{device_path}/{with_policy_suffix('async_pending', policy.index)}"


def quarantine_kind(policy: Policy) -> str:
    """Return the directory below ``quarantined`` that takes damaged hash directories: ``objects[-N]``."""
    return with_policy_suffix("objects", policy.index)


class ObjectPath:
    """The device, partition, suffix and hash directory of an object; nothing is touched."""

    __slots__ = ("key", "device", "partition", "suffix", "directory")

    def __init__(self, key: ObjectKey, device_path: str):
        self.key = key
        self.device = device_path
        self.partition = partition_dir(device_path, key.policy, key.partition)
        self.suffix = f"{self.partition}/{suffix_of(key.hash)}"
        self.directory = f"{self.suffix}/{key.hash}"
