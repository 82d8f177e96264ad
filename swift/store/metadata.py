"""Object metadata: a dictionary pickled into extended attributes (spec: object-disk.md §4, §5).

In memory metadata is ``dict[str, str]``: names as stored (``X-Object-Meta-Foo``, ``ETag``, ``name``), values
as Latin-1 views of the wire bytes, except ``name``, which is text. On disk it is a protocol 2 pickle of
bytes, because that is how every reader tells Python 3 content from Python 2's. Unreadable metadata is
``BadMetadata``: the caller quarantines.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import md5
from typing import Any

from swift.base.pickles import PickleRefused, restricted_loads
from swift.platform.disk import Disk
from swift.platform.xattrs import check_is_missing, read_attribute, read_rest, write_attribute, write_pieces
from swift.store import spliced
from swift.store.errors import Damaged

Metadata = dict[str, str]

METADATA_ATTRIBUTE = "user.swift.metadata"
CHECKSUM_ATTRIBUTE = "user.swift.metadata_checksum"
_PYTHON3_MARK = b"_codecs\nencode"
_MARK_WITHIN = 32
#: Objects that are read again and again need not be unpickled each time.
DECODED_MAX = 1024


class BadMetadata(Damaged):
    """Metadata is missing, fails its checksum or does not unpickle."""


#: The protocol 2 pickle of metadata in UTF-8, keys in their order.
encode_metadata = spliced.encode


def decode_metadata(blob: bytes) -> Metadata:
    """Unpickle what a Python 3 or a Python 2 server stored; raises ``BadMetadata``."""
    return dict(_decoded(blob))


@lru_cache(maxsize=DECODED_MAX)
def _decoded(blob: bytes) -> Metadata:
    return spliced.guess(blob) or _unpickled(blob)


def _unpickled(blob: bytes) -> Metadata:
    python3 = _PYTHON3_MARK in blob[:_MARK_WITHIN]
    try:
        loaded = restricted_loads(blob, encoding="utf-8" if python3 else "bytes")
        if python3:
            return {
                (key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")): (
                    value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
                )
                for key, value in loaded.items()
            }
        return _from_python2(loaded)
    except (PickleRefused, AttributeError, TypeError, ValueError) as error:
        raise BadMetadata(f"metadata does not load: {error}")


def _from_python2(loaded: dict[Any, Any]) -> Metadata:
    metadata = {}
    for raw_key, raw_value in loaded.items():
        key = raw_key if isinstance(raw_key, str) else raw_key.decode("latin-1")
        if isinstance(raw_value, bytes):
            name = key == "name"
            raw_value = raw_value.decode("utf-8", "surrogateescape") if name else raw_value.decode("latin-1")
        metadata[key] = str(raw_value)
    return metadata


def write_metadata(disk: Disk, file: int | str, metadata: Metadata) -> None:
    """Store metadata and its checksum with a file. Raises ``AttributesTooLarge`` or OSError."""
    blob = encode_metadata(metadata)
    write_pieces(disk, file, METADATA_ATTRIBUTE, blob)
    digest = md5(blob, usedforsecurity=False).hexdigest()
    write_attribute(disk, file, CHECKSUM_ATTRIBUTE, digest.encode())


def read_metadata(disk: Disk, file: int | str) -> Metadata:
    """The metadata of a file. Raises ``BadMetadata`` or OSError."""
    return decode_metadata(read_metadata_blob(disk, file)[0])


def read_metadata_blob(disk: Disk, file: int | str) -> tuple[bytes, bool]:
    """The checked pickle, and whether a checksum was there. Raises ``BadMetadata`` or OSError."""
    blob = read_attribute(disk, file, METADATA_ATTRIBUTE)
    if blob is None:
        check_is_missing(disk, file, METADATA_ATTRIBUTE)
        raise BadMetadata("no metadata")
    checksum = read_attribute(disk, file, CHECKSUM_ATTRIBUTE)
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() == checksum:
        return blob, True
    # Old releases stored much smaller pieces, so only the checksum tells that the first was all.
    blob = read_rest(disk, file, METADATA_ATTRIBUTE, blob)
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() != checksum:
        raise BadMetadata("metadata checksum mismatch")
    return blob, checksum is not None
