"""Measures the metadata limit of objects where a cluster is made.

Objects keep their metadata in extended attributes, and filesystems differ in the room that they give them:
XFS 64 KiB for each, ext4 about 4 KB for all of a file. What ``/info`` promises must fit, so the limits of a
new cluster are lowered to what was measured. The promise is about ASCII: a byte outside of it takes four in
the stored form, and what does not fit then is refused with 400.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from swift.base.errors import ConfigError
from swift.base.limits import Limits
from swift.http import fields
from swift.http.headers import title_case
from swift.store.metadata import (
    CHECKSUM_ATTRIBUTE,
    METADATA_ATTRIBUTE,
    PIECE_BYTES,
    Metadata,
    encode_metadata,
)

_UNSUPPORTED = frozenset((errno.EOPNOTSUPP, errno.ENOTSUP))
#: Room kept for a Content-Type, and for what filters store with an object, bytes each.
HEADER_BYTES = 255
#: Metadata items are this long on average when a client uses all of what it may, bytes.
ITEM_BYTES = 50
_ETAG = "0" * 32
_NUMBER = "0" * 10
_EC_METADATA: Metadata = {
    title_case(fields.SYSMETA_EC_ETAG): _ETAG,
    title_case(fields.SYSMETA_EC_CONTENT_LENGTH): _NUMBER,
    title_case(fields.SYSMETA_EC_FRAG_INDEX): "00",
    title_case(fields.SYSMETA_EC_SCHEME): "liberasurecode_rs_vand 10+10",
    title_case(fields.SYSMETA_EC_SEGMENT_SIZE): _NUMBER,
}


def measure_attribute_room(directory: Path) -> int:
    """Return the number of bytes of pickled metadata that a file below ``directory`` can carry, at most
    ``PIECE_BYTES``.

    Raises ``ConfigError`` where files carry no user attributes, and OSError.
    """
    if not _can_store_attribute(directory, 1):
        return 0
    low, high = 1, PIECE_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        if _can_store_attribute(directory, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _can_store_attribute(directory: Path, size_bytes: int) -> bool:
    with tempfile.NamedTemporaryFile(dir=directory) as probe:
        try:
            os.setxattr(probe.fileno(), METADATA_ATTRIBUTE, b"0" * size_bytes)
            os.setxattr(probe.fileno(), CHECKSUM_ATTRIBUTE, _ETAG.encode())
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                raise ConfigError(
                    f"the filesystem of {directory} does not take user extended attributes "
                    f"({error.strerror}); choose a data directory on XFS, btrfs or "
                    "ext4 with blocks of 4 KB, or run as root with --xfs"
                )
            if error.errno in (errno.ENOSPC, errno.E2BIG, errno.ERANGE):
                return False
            raise
    return True


def fitting_limits(room_bytes: int, *, coded: bool, limits: Limits | None = None) -> dict[str, int]:
    """Return the ``[swift-constraints]`` with which the largest allowed object fits; none where all
    defaults do.

    ``coded`` says that there is an erasure coded policy, whose archives carry more. Raises ``ConfigError``
    when not even an object without metadata of its own fits.
    """
    limits = limits or Limits()
    spare = room_bytes - len(encode_metadata(_largest_metadata(limits, coded=coded)))
    item = _item_overhead()
    if spare >= limits.max_meta_overall_size + limits.max_meta_count * item:
        return {}
    count = min(limits.max_meta_count, spare // (item + ITEM_BYTES))
    if count < 1:
        raise ConfigError(
            f"files here carry {room_bytes} bytes of metadata, too few for objects with long names; "
            "choose a data directory on XFS, btrfs or ext4 with blocks of 4 KB, or run as root with --xfs"
        )
    overall = min(limits.max_meta_overall_size, spare - count * item)
    return {
        "max_meta_name_length": min(limits.max_meta_name_length, overall),
        "max_meta_value_length": min(limits.max_meta_value_length, overall),
        "max_meta_count": count,
        "max_meta_overall_size": overall,
        # A request may have as many headers as before: the limit of items is part of that limit.
        "extra_header_count": limits.extra_header_count + limits.max_meta_count - count,
    }


def _largest_metadata(limits: Limits, *, coded: bool) -> Metadata:
    """Return an object's system metadata with every value at its maximum length."""
    names = limits.max_account_name_length + limits.max_container_name_length + limits.max_object_name_length
    return {
        "X-Timestamp": "0000000000.00000_0000000000000000",
        "Content-Type": "0" * HEADER_BYTES,
        "Content-Length": _NUMBER,
        "ETag": _ETAG,
        "X-Delete-At": _NUMBER,
        title_case(fields.OBJECT_SYSMETA): "0" * HEADER_BYTES,
        **(_EC_METADATA if coded else {}),
        "name": "0" * (names + len("///")),
    }


def _item_overhead() -> int:
    """Return the bytes of an item besides the characters that clients count: its prefix and the pickle's
    frame.
    """
    without: Metadata = {"name": "//"}
    items: Metadata = {f"X-Object-Meta-{number:02d}": "00" for number in range(90)}
    added = len(encode_metadata({**without, **items})) - len(encode_metadata(without))
    return -(-added // len(items)) - len("0000")
