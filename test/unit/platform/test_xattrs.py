"""Values of any length are stored in pieces and read back."""

from __future__ import annotations

import errno

import pytest

from swift.platform.disk import Disk
from swift.platform.xattrs import (
    PIECE_BYTES,
    AttributesUnsupported,
    read_attribute,
    read_rest,
    write_attribute,
    write_pieces,
)


class Attributes(Disk):
    """Attributes in a dictionary, so that no filesystem limits them."""

    def __init__(self):
        self.values = {}

    def setxattr(self, _file, name, value):
        self.values[name] = value

    def getxattr(self, _file, name):
        if name not in self.values:
            raise OSError(errno.ENODATA, "none")
        return self.values[name]


class NoAttributes(Disk):
    def setxattr(self, *_args):
        raise OSError(errno.EOPNOTSUPP, "no")

    getxattr = setxattr


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_pieces_come_back_whole(size):
    disk = Attributes()
    value = bytes(i % 251 for i in range(size))
    write_pieces(disk, "f", "user.a", value)
    assert read_rest(disk, "f", "user.a", read_attribute(disk, "f", "user.a")) == value
    assert set(disk.values) == {"user.a", *(f"user.a{i}" for i in range(1, -(-size // PIECE_BYTES)))}


def test_a_missing_attribute_is_none(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"")
    assert read_attribute(Disk(), str(path), "user.none") is None
    write_attribute(Disk(), str(path), "user.some", b"v")
    assert read_attribute(Disk(), str(path), "user.some") == b"v"


def test_a_filesystem_without_attributes_is_recognised():
    with pytest.raises(AttributesUnsupported):
        write_attribute(NoAttributes(), "f", "user.a", b"")
    with pytest.raises(AttributesUnsupported):
        read_attribute(NoAttributes(), "f", "user.a")
