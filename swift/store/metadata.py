"""Object metadata: a dictionary pickled into extended attributes (spec: object-disk.md §4, §5).

In memory metadata is ``dict[str, str]``: names as stored (``X-Object-Meta-Foo``, ``ETag``, ``name``), values
as Latin-1 views of the wire bytes, except ``name``, which is text. On disk it is a protocol 2 pickle of
bytes, because that is how every reader tells Python 3 content from Python 2's. Unreadable metadata is
``BadMetadata``: the caller quarantines.

**Attributes.** ``name``, ``name1``, ``name2`` ... hold pieces of at most 64 KiB; readers concatenate until
the next attribute is missing. Filesystems give attributes little room: ext4 about 4 KB for all of a file,
XFS 64 KiB for each. ``AttributesTooLarge`` is told apart from a full device: one is the fault of the
request, the other of the machine.

**Pickles** are spliced without pickling. Objects of one kind have the same names, and then their pickles
differ in the lengths and texts of the values only. So pickle is asked once for each set of names; the
*frames* between the values are kept, and later pickles are frames with other values between. The bytes are
those that pickle writes; where they would not be, pickle writes them:

* a value of fewer than two bytes, because Python has one object for all of them and pickle writes it once;
* names outside ASCII, and no names at all.

Reading goes the other way: cut a pickle at its frames, guess the texts, and believe the guess only when it
leads back to the very same bytes.
"""

from __future__ import annotations

import errno
import pickle
from functools import lru_cache
from hashlib import md5
from typing import Any

from swift.base.errors import SwiftError
from swift.base.pickles import PickleRefused, restricted_loads
from swift.platform.disk import Attributes, Disk
from swift.store.errors import Damaged

PIECE_BYTES = 65536
_MISSING = frozenset((errno.ENODATA, errno.ENOENT))
#: Error numbers of filesystems when the attributes of a file do not fit.
_TOO_LARGE = frozenset((errno.E2BIG, errno.ERANGE))
#: With less than this left for files it is the device that is full, whatever the attribute. A filesystem may
#: need so much for an attribute of any size, because it reserves for the worst case.
ROOM_BYTES = 4 << 20


class AttributesUnsupported(OSError):
    """The filesystem keeps no user attributes."""


class AttributesTooLarge(SwiftError):
    """The attributes do not fit into those of one file; the device has space."""


def read_attribute(disk: Disk, file: int | str, name: str) -> bytes | None:
    """One attribute, None when it is missing. Raises OSError."""
    try:
        return disk.getxattr(file, name)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise AttributesUnsupported(error.errno, "no user extended attributes here")
        raise


def check_is_missing(disk: Disk, file: int | str, name: str) -> None:
    """Make sure that a file lacks an attribute which could not be read. Raises OSError if it has it.

    ENODATA means a missing attribute, but XFS also answers it for a medium error.
    """
    if name in disk.listxattr(file):
        raise OSError(errno.EIO, f"attribute {name} is there but cannot be read")


def write_attribute(disk: Disk, file: int | str, name: str, value: bytes) -> None:
    """Set one attribute. Raises ``AttributesTooLarge``, ``AttributesUnsupported`` or OSError."""
    try:
        disk.setxattr(file, name, value)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise AttributesUnsupported(error.errno, "no user extended attributes here")
        if error.errno in _TOO_LARGE or (error.errno == errno.ENOSPC and _has_room(disk, file)):
            raise AttributesTooLarge(f"no room for {len(value)} bytes in attribute {name}")
        raise


def _has_room(disk: Disk, file: int | str) -> bool:
    """Return True if other files could still be written to the filesystem of ``file``."""
    stats = disk.statvfs(file)
    if stats.f_files and not stats.f_favail:
        return False
    return stats.f_frsize * stats.f_bavail >= ROOM_BYTES


def read_rest(disk: Disk, file: int | str, name: str, first: bytes) -> bytes:
    """Return ``first`` and the pieces ``name1``, ``name2`` ... that follow it. Raises OSError."""
    pieces = [first]
    while (piece := read_attribute(disk, file, f"{name}{len(pieces)}")) is not None:
        pieces.append(piece)
    check_is_missing(disk, file, f"{name}{len(pieces)}")
    return b"".join(pieces)


def pieces_of(name: str, value: bytes) -> Attributes:
    """Return the attributes ``name``, ``name1`` ... that hold a value of any length."""
    rest = enumerate(range(PIECE_BYTES, len(value), PIECE_BYTES), 1)
    more = ((f"{name}{number}", value[start : start + PIECE_BYTES]) for number, start in rest)
    return (name, value[:PIECE_BYTES]), *more


#: Names as stored to values: texts, or views of bytes that are not UTF-8.
Texts = dict[str, str]

#: Opcodes of our pickles after a text, and after the first one, and the offset of the next text.
_AFTER_TEXT = b"h\x03\x86q"
_AFTER_FIRST = b"q\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05h\x01X"
_FIRST_TEXT = len(b"\x80\x02}q\x00(c_codecs\nencode\nq\x01X") + 4
_NEXT_TEXT = len(b"\x07Rq\x08h\x01X") + 4
#: Sets of names whose frames are kept.
FRAMES_MAX = 128


def encode_metadata(texts: Texts) -> bytes:
    """Return the protocol 2 pickle of ``texts`` as UTF-8, names in their order."""
    frames = _frames(tuple(texts))
    parts: list[bytes] = []
    for frame, value in zip(frames, texts.values(), strict=False):
        if len(value) < 2:
            # Python has one object for all bytes of such a value, and pickle writes an object once.
            return _pickled(texts)
        text = value.encode() if value.isascii() else _utf8(value).decode("latin-1").encode()
        parts += (frame, len(text).to_bytes(4, "little"), text)
    if not parts:
        return _pickled(texts)
    parts.append(frames[-1])
    return b"".join(parts)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _pickled(texts: Texts) -> bytes:
    return pickle.dumps({_utf8(key): _utf8(value) for key, value in texts.items()}, 2)


@lru_cache(maxsize=FRAMES_MAX)
def _frames(names: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return the pickle bytes before the length of each value, and after the last; none for odd names.

    Only lengths and texts differ between objects that have the same names, so pickle is asked once.
    """
    if not all(map(str.isascii, names)):
        return ()
    # Longer than any name and therefore found in no other place.
    fill = "=" * (1 + max(map(len, names), default=0))
    marks = [f"{fill}{number}=" for number in range(len(names))]
    rest = _pickled(dict(zip(names, marks, strict=True)))
    frames = []
    for mark in marks:
        frame, _, rest = rest.partition(len(mark).to_bytes(4, "little") + mark.encode())
        frames.append(frame)
    return (*frames, rest)


def guess_metadata(blob: bytes) -> Texts | None:
    """Return the metadata that ``encode_metadata`` made ``blob`` of; None for any other bytes."""
    texts = _between_frames(blob)
    # A guess that leads back to the very same bytes is right, and far less work than unpickling.
    return texts if texts and encode_metadata(texts) == blob else None


def _between_frames(blob: bytes) -> Texts:
    """Return the texts between what our pickles have around them; anything for other pickles."""
    first, *others = blob.split(_AFTER_TEXT)
    name, _, value = first.partition(_AFTER_FIRST)
    texts = [name[_FIRST_TEXT:], value[4:-2]]
    texts += [piece[_NEXT_TEXT:-2] for piece in others[:-1]]
    try:
        words = [_text_of(text) for text in texts]
    except UnicodeError:
        return {}
    return dict(zip(words[::2], words[1::2], strict=False))


def _text_of(pickled: bytes) -> str:
    text = pickled.decode()
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "surrogateescape")


Metadata = dict[str, str]

METADATA_ATTRIBUTE = "user.swift.metadata"
CHECKSUM_ATTRIBUTE = "user.swift.metadata_checksum"
_PYTHON3_MARK = b"_codecs\nencode"
_MARK_WITHIN = 32
#: Objects that are read again and again need not be unpickled each time.
DECODED_MAX = 1024


class BadMetadata(Damaged):
    """Metadata is missing, fails its checksum or does not unpickle."""


def decode_metadata(blob: bytes) -> Metadata:
    """Unpickle what a Python 3 or a Python 2 server stored; raises ``BadMetadata``."""
    return dict(_decoded(blob))


@lru_cache(maxsize=DECODED_MAX)
def _decoded(blob: bytes) -> Metadata:
    return guess_metadata(blob) or _unpickled(blob)


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


def metadata_attributes(blob: bytes) -> Attributes:
    """Return the attributes that store a pickle of metadata and its checksum."""
    digest = md5(blob, usedforsecurity=False).hexdigest().encode()
    return *pieces_of(METADATA_ATTRIBUTE, blob), (CHECKSUM_ATTRIBUTE, digest)


def write_metadata(disk: Disk, file: int | str, metadata: Metadata) -> None:
    """Store metadata and its checksum with a file. Raises ``AttributesTooLarge`` or OSError."""
    write_metadata_blob(disk, file, encode_metadata(metadata))


def write_metadata_blob(disk: Disk, file: int | str, blob: bytes) -> None:
    """Store a pickle of metadata and its checksum with a file; raises like ``write_metadata``."""
    for name, value in metadata_attributes(blob):
        write_attribute(disk, file, name, value)


def read_metadata(disk: Disk, file: int | str) -> Metadata:
    """Return the metadata of a file. Raises ``BadMetadata`` or OSError."""
    return decode_metadata(read_metadata_blob(disk, file)[0])


def read_metadata_blob(disk: Disk, file: int | str) -> tuple[bytes, bool]:
    """Return the checked pickle, and whether a checksum was there. Raises ``BadMetadata`` or OSError."""
    blob = read_attribute(disk, file, METADATA_ATTRIBUTE)
    if blob is None:
        check_is_missing(disk, file, METADATA_ATTRIBUTE)
        raise BadMetadata("no metadata")
    return check_metadata_blob(disk, file, blob, read_attribute(disk, file, CHECKSUM_ATTRIBUTE))


def check_metadata_blob(
    disk: Disk, file: int | str, blob: bytes, checksum: bytes | None
) -> tuple[bytes, bool]:
    """Return what ``read_metadata_blob`` does, of the first piece and the checksum. Raises like it."""
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() == checksum:
        return blob, True
    # Old releases stored much smaller pieces, so only the checksum tells that the first was all.
    blob = read_rest(disk, file, METADATA_ATTRIBUTE, blob)
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() != checksum:
        raise BadMetadata("metadata checksum mismatch")
    return blob, checksum is not None
