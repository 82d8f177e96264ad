"""Values of any length are stored in pieces and read back."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from swift.platform.disk import Disk
from swift.store.metadata import (
    PIECE_BYTES,
    AttributesTooLarge,
    AttributesUnsupported,
    check_is_missing,
    pieces_of,
    read_attribute,
    read_rest,
    write_attribute,
)
from test.support.disks import CrampedDisk


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

    def listxattr(self, _file):
        return list(self.values)


class NoAttributes(Disk):
    def setxattr(self, *_args):
        raise OSError(errno.EOPNOTSUPP, "no")

    getxattr = setxattr


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_pieces_come_back_whole(size):
    disk = Attributes()
    value = bytes(i % 251 for i in range(size))
    disk.values.update(pieces_of("user.a", value))
    assert read_rest(disk, "f", "user.a", read_attribute(disk, "f", "user.a")) == value
    assert set(disk.values) == {"user.a", *(f"user.a{i}" for i in range(1, -(-size // PIECE_BYTES)))}


def test_an_attribute_that_is_there_but_cannot_be_read_is_not_missing():
    disk = Attributes()
    disk.values.update(pieces_of("user.a", bytes(PIECE_BYTES + 1)))

    class Medium(Attributes):
        def getxattr(self, file, name):
            raise OSError(errno.ENODATA, "medium error")

    sick = Medium()
    sick.values = disk.values
    with pytest.raises(OSError, match="cannot be read"):
        read_rest(sick, "f", "user.a", b"first")
    with pytest.raises(OSError, match="cannot be read"):
        check_is_missing(sick, "f", "user.a")
    check_is_missing(sick, "f", "user.b")


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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.E2BIG, errno.ERANGE], ids=errno.errorcode.get)
def test_a_value_that_does_not_fit_is_told_apart_from_a_full_device(tmp_path, code):
    path = tmp_path / "f"
    path.write_bytes(b"")
    with pytest.raises(AttributesTooLarge):
        write_attribute(CrampedDisk(10, code), str(path), "user.a", b"x" * 11)


@pytest.mark.parametrize(
    ("code", "is_full"), [(errno.ENOSPC, True), (errno.EDQUOT, False), (errno.EIO, False)]
)
def test_a_device_without_room_stays_the_error_that_it_is(tmp_path, code, is_full):
    path = tmp_path / "f"
    path.write_bytes(b"")
    with pytest.raises(OSError) as caught:
        write_attribute(CrampedDisk(10, code, is_full=is_full), str(path), "user.a", b"x" * 11)
    assert caught.value.errno == code


def test_a_device_without_inodes_is_full(tmp_path):
    class NoInodes(CrampedDisk):
        def statvfs(self, file):
            real = super().statvfs(file)
            room = real.f_frsize, real.f_bavail
            return SimpleNamespace(f_frsize=room[0], f_bavail=room[1], f_files=100, f_favail=0)

    path = tmp_path / "f"
    path.write_bytes(b"")
    with pytest.raises(OSError):
        write_attribute(NoInodes(10), str(path), "user.a", b"x" * 11)
