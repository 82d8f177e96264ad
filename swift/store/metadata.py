"""Object metadata: a dictionary pickled into extended attributes (spec: object-disk.md §4, §5).

In memory metadata is ``dict[str, str]``: names as stored (``X-Object-Meta-Foo``, ``ETag``, ``name``), values
as Latin-1 views of the wire bytes, except ``name``, which is text. On disk it is a protocol 2 pickle of
bytes, because that is how every reader tells Python 3 content from Python 2's. Unreadable metadata is
``BadMetadata``: the caller quarantines.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from hashlib import md5
from typing import Any

from swift.base.pickles import PickleRefused, restricted_loads
from swift.platform.disk import Disk
from swift.platform.xattrs import read_attribute, read_rest, write_attribute, write_pieces
from swift.store.errors import Damaged

Metadata = dict[str, str]

METADATA_ATTRIBUTE = "user.swift.metadata"
CHECKSUM_ATTRIBUTE = "user.swift.metadata_checksum"
_PYTHON3_MARK = b"_codecs\nencode"
_MARK_WITHIN = 32
#: How our pickles go on after a text, and after the first one; where texts begin behind that.
_AFTER_TEXT = b"h\x03\x86q"
_AFTER_FIRST = b"q\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05h\x01X"
_FIRST_TEXT = len(b"\x80\x02}q\x00(c_codecs\nencode\nq\x01X") + 4
_NEXT_TEXT = len(b"\x07Rq\x08h\x01X") + 4
#: Objects that are read again and again need not be unpickled each time.
DECODED_MAX = 1024
#: Sets of names whose pickles are known but for their values.
FRAMES_MAX = 128


class BadMetadata(Damaged):
    """Metadata is missing, fails its checksum or does not unpickle."""


def encode_metadata(metadata: Metadata) -> bytes:
    """The protocol 2 pickle of ``metadata`` in UTF-8, keys in their order."""
    frames = _frames(tuple(metadata))
    parts: list[bytes] = []
    for frame, value in zip(frames, metadata.values(), strict=False):
        if len(value) < 2:
            # Python has one object for all bytes of such a value, and pickle writes an object once.
            return _pickled(metadata)
        text = value.encode() if value.isascii() else _utf8(value).decode("latin-1").encode()
        parts += (frame, len(text).to_bytes(4, "little"), text)
    if not parts:
        return _pickled(metadata)
    parts.append(frames[-1])
    return b"".join(parts)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _pickled(metadata: Metadata) -> bytes:
    return pickle.dumps({_utf8(key): _utf8(value) for key, value in metadata.items()}, 2)


@lru_cache(maxsize=FRAMES_MAX)
def _frames(names: tuple[str, ...]) -> tuple[bytes, ...]:
    """What pickle writes before the length of each value, and after the last value; none for odd names.

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


def decode_metadata(blob: bytes) -> Metadata:
    """Unpickle what a Python 3 or a Python 2 server stored; raises ``BadMetadata``."""
    return dict(_decoded(blob))


@lru_cache(maxsize=DECODED_MAX)
def _decoded(blob: bytes) -> Metadata:
    metadata = _guessed(blob)
    # A guess that leads back to the very same bytes is right, and a quarter of the work of unpickling.
    return metadata if metadata and encode_metadata(metadata) == blob else _unpickled(blob)


def _guessed(blob: bytes) -> Metadata:
    """The texts between what our pickles have around them; anything for other pickles."""
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
        raise BadMetadata("no metadata")
    checksum = read_attribute(disk, file, CHECKSUM_ATTRIBUTE)
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() == checksum:
        return blob, True
    # Old releases stored much smaller pieces, so only the checksum tells that the first was all.
    blob = read_rest(disk, file, METADATA_ATTRIBUTE, blob)
    if checksum is not None and md5(blob, usedforsecurity=False).hexdigest().encode() != checksum:
        raise BadMetadata("metadata checksum mismatch")
    return blob, checksum is not None
