"""Volumes of a device: append-only files of records (doc/formats/packed.md, "Volumes").

Each process appends to a volume of its own, whose lock it holds, so no two wait for each other.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress

from swift.base.errors import LockTimeout, NoSpace
from swift.platform.devices import NO_SPACE_ERRORS
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.locks import lock_descriptor
from swift.platform.syncing import sync_directory
from swift.store.errors import Damaged
from swift.store.packed.entry import VOLUME_NUMBERS
from swift.store.packed.lost import Lost
from swift.store.packed.record import (
    ALIGNMENT,
    HEADER_BYTES,
    NONCE_BYTES,
    BadRecord,
    Header,
    Position,
    batch_unit_at,
    bytes_before_body,
    check_metadata,
    header_bytes,
    is_body_sound,
    may_begin,
    padded,
    parse_header,
)

#: Magic, nonce, number, checksum of what is before it.
_VOLUME = struct.Struct("<8s8sII")
_MAGIC = b"SWPACKV1"
#: Attribute of the file of a volume: a copy of its header, for the day on which that cannot be read.
HEADER_ATTRIBUTE = "user.swift.volume"
FIRST_UNIT = 1
_IDENTITY = "identity"
IDENTITY_BYTES = 16
_NAME = re.compile(r"[0-9]{8}\.volume")
_FLAGS = os.O_RDWR | os.O_CLOEXEC
#: Volumes that a process keeps open for reading.
OPEN_MAX = 256
#: Bytes of a read while a volume is scanned.
SCAN_BYTES = 4 << 20
#: Errors of a range that cannot be read, while the rest may be.
UNREADABLE_ERRORS = (errno.EIO, errno.ENODATA)
#: A bad sector takes so much with it, bytes.
_BLOCK = 4096
ZEROS = memoryview(bytes(1 << 20))


def volume_name(number: int) -> str:
    """Return the name of the file of a volume."""
    return f"{number:08d}.volume"


class OpenVolume:
    """A volume that is open; closed when its last user lets go of it."""

    __slots__ = ("fd", "nonce", "number", "damage", "_disk")

    def __init__(self, disk: Disk, number: int, fd: int, nonce: bytes, damage: str = ""):
        self.number = number
        self.fd = fd
        self.nonce = nonce
        #: Fault of the header; the records are read nevertheless, but nothing may be appended.
        self.damage = damage
        self._disk = disk

    def __del__(self) -> None:
        self._disk.close(self.fd)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes; raises OSError."""
        data = self._disk.pread(self.fd, length, offset)
        while len(data) < length:
            more = self._disk.pread(self.fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def __repr__(self) -> str:
        return f"<OpenVolume {self.number}>"


class StoredRecord:
    """A record read from a volume: its header, metadata, and as much of the body as was read with it."""

    __slots__ = ("header", "metadata", "volume", "_body", "_offset")

    def __init__(self, volume: OpenVolume, offset: int, data: bytes):
        """Take the bytes at ``offset``; read what lacks of metadata. Raises ``BadRecord``, OSError."""
        needed = header_bytes(data)
        if len(data) < needed:
            data += volume.read(offset + len(data), needed - len(data))
        self.header: Header = parse_header(data, volume.nonce)
        prefix = self.header.prefix_bytes
        if len(data) < prefix:
            data += volume.read(offset + len(data), prefix - len(data))
        self.metadata = check_metadata(self.header, data[prefix - self.header.metadata_bytes : prefix])
        self.volume = volume
        self._body = data[prefix : prefix + self.header.body_bytes]
        self._offset = offset

    @property
    def position(self) -> Position:
        """Position of the record."""
        return Position(self.volume.number, self._offset // ALIGNMENT)

    @property
    def has_body(self) -> bool:
        """True if the whole body is in memory."""
        return len(self._body) == self.header.body_bytes

    def body(self) -> bytes:
        """Return the whole body, checked; raises ``BadRecord``, OSError."""
        header, body = self.header, self._body
        if len(body) < header.body_bytes:
            body = self._body = self.raw_body()
        if not is_body_sound(header, body):
            raise BadRecord("the checksum of the body is wrong")
        return body

    def raw_body(self) -> bytes:
        """Return the bytes of the body as they are; raises OSError."""
        at = self._offset + self.header.prefix_bytes
        return self.volume.read(at, self.header.body_bytes)

    def __repr__(self) -> str:
        return f"<StoredRecord {self.header.kind.name} at {self._offset} of {self.volume!r}>"


class Volumes:
    """The volumes in a directory of a device, as this process reads them."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        device_path: str,
        notice: Callable[[str], None] = lambda _text: None,
    ):
        self.directory = directory
        self._notice = notice
        self._disk = disk
        self._device_path = device_path
        self._open: OrderedDict[int, OpenVolume] = OrderedDict()
        self._mutex = threading.Lock()

    def numbers(self) -> list[int]:
        """Return the numbers of all volumes in ascending order; raises OSError."""
        try:
            names = self._disk.listdir(self.directory)
        except FileNotFoundError:
            return []
        # An entry has no room for a greater number, so a file of such a name is none.
        found = (int(name[:8]) for name in names if _NAME.fullmatch(name))
        return sorted(number for number in found if number < VOLUME_NUMBERS)

    def identity(self) -> bytes:
        """Return what only these volumes have, made at first use: an index elsewhere may be of others.

        The caller holds the lock of opening. Raises OSError.
        """
        path = f"{self.directory}/{_IDENTITY}"
        with suppress(FileNotFoundError):
            fd = self._disk.open(path, _FLAGS)
            try:
                found = self._disk.pread(fd, IDENTITY_BYTES, 0)
            finally:
                self._disk.close(fd)
            if len(found) == IDENTITY_BYTES:
                return found
        made = os.urandom(IDENTITY_BYTES)
        fd = self._disk.open(f"{path}.new", _FLAGS | os.O_CREAT, 0o600)
        try:
            write_at(self._disk, fd, made, 0)
            self._disk.fsync(fd)
        finally:
            self._disk.close(fd)
        self._disk.rename(f"{path}.new", path)
        self._sync_names()
        return made

    def path(self, number: int) -> str:
        """Return the path of a volume."""
        return f"{self.directory}/{volume_name(number)}"

    def open(self, number: int) -> OpenVolume:
        """Return a volume for reading. Raises FileNotFoundError, ``Damaged`` or OSError."""
        volume = self._opened(number)
        if volume is not None:
            return volume
        volume = self.open_anew(number)
        if volume.damage:
            self._notice(volume.damage)
        with self._mutex:
            self._open[number] = volume
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
        return volume

    def _opened(self, number: int) -> OpenVolume | None:
        with self._mutex:
            volume = self._open.get(number)
            if volume is not None:
                self._open.move_to_end(number)
            return volume

    def open_anew(self, number: int) -> OpenVolume:
        """Return a volume with a descriptor of its own; raises like ``open``."""
        fd = self._open_file(number)
        try:
            if not stat.S_ISREG(self._disk.fstat(fd).st_mode):
                raise Damaged(f"{self.path(number)} is no regular file")
            nonce, damage = self._identify(fd, number)
        except BaseException:
            self._disk.close(fd)
            raise
        return OpenVolume(self._disk, number, fd, nonce, damage)

    def _identify(self, fd: int, number: int) -> tuple[bytes, str]:
        """Return the nonce of a volume, and what is wrong with its header; raises ``Damaged``, OSError."""
        path = self.path(number)
        failure: OSError | None = None
        try:
            found = _parse_volume(self._disk.pread(fd, _VOLUME.size, 0))
        except OSError as error:
            found, failure = None, only_unreadable(error)
        problem = ""
        if found is None:
            problem = f"the header of {path} " + (f"cannot be read: {failure}" if failure else "is damaged")
            with suppress(OSError):
                found = _parse_volume(self._disk.getxattr(fd, HEADER_ATTRIBUTE))
        if found is None:
            with suppress(OSError):
                nonce = _nonce_of_first(self._disk.pread(fd, _BLOCK, FIRST_UNIT * ALIGNMENT))
                found = None if nonce is None else (nonce, number)
        if found is None:
            # An error of the device proves nothing.
            raise failure or Damaged(f"{problem}, and no copy of it is left")
        if found[1] != number:
            raise Damaged(f"{path} is no volume of number {number}")
        if not problem:
            return found[0], ""
        return found[0], (
            f"{problem}; its records are read: run swift-object-volumes compact --volume {number}, after a "
            "restart of the object services if a process appends to it"
        )

    def is_file(self, number: int) -> bool:
        """Return True unless something else has the name of a volume. Raises FileNotFoundError, OSError."""
        return stat.S_ISREG(self._disk.stat(self.path(number), follow_symlinks=False).st_mode)

    def is_blank(self, number: int) -> bool:
        """Return True if nothing but zeros follows the header: a power cut ended its creation.

        Raises FileNotFoundError, OSError.
        """
        fd = self._disk.open(self.path(number), _FLAGS)
        try:
            at = ALIGNMENT
            while piece := self._disk.pread(fd, len(ZEROS), at):
                if any(piece):
                    return False
                at += len(piece)
        except OSError as error:
            only_unreadable(error)
            return False
        finally:
            self._disk.close(fd)
        return True

    def size(self, number: int) -> int:
        """Return the size of the file of a volume, bytes. Raises FileNotFoundError, OSError."""
        return self._disk.stat(self.path(number)).st_size

    def _open_file(self, number: int) -> int:
        path = self.path(number)
        try:
            return self._disk.open(path, _FLAGS | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in (errno.EISDIR, errno.ELOOP):
                raise Damaged(f"{path} is no regular file")
            if error.errno != errno.EROFS:
                raise
            # A file system with errors can be read.
            return self._disk.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def forget(self, number: int) -> None:
        """Close a volume that was removed."""
        with self._mutex:
            self._open.pop(number, None)

    def forget_removed(self) -> None:
        """Close the volumes that other processes removed, so that their space is free."""
        with self._mutex:
            held = list(self._open.items())
        for number, volume in held:
            if not self._disk.fstat(volume.fd).st_nlink:
                self.forget(number)

    def read(self, position: Position, length: int) -> StoredRecord:
        """Return the record at a position; ``length`` bytes are read at once.

        Raises ``BadRecord`` when none is there, FileNotFoundError without the volume, OSError.
        """
        volume = self.open(position.volume)
        offset = position.unit * ALIGNMENT
        return StoredRecord(volume, offset, volume.read(offset, max(length, HEADER_BYTES)))

    def try_read(self, position: Position, length: int) -> StoredRecord | None:
        """Return the record at a position if it is in memory; else None. Raises ``BadRecord``, OSError."""
        volume = self._opened(position.volume)
        if volume is None:
            return None
        offset = position.unit * ALIGNMENT
        data = self._disk.read_cached(volume.fd, max(length, HEADER_BYTES), offset)
        if data is None or len(data) < bytes_before_body(data):
            return None
        return StoredRecord(volume, offset, data)

    def create(self, *, above: int = 0) -> OpenVolume:
        """Return a new, locked volume, durable in its directory. Raises ``NoSpace`` and OSError.

        Its number is greater than those of all that are there, and than ``above``.
        """
        make_directories(self._disk, self.directory, below=self._device_path)
        number = max(self.numbers(), default=0)
        number = max(number, above) + 1
        while True:
            if number >= VOLUME_NUMBERS:
                raise NoSpace(f"no number is left for a new volume in {self.directory}")
            try:
                fd = self._disk.open(self.path(number), _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
                break
            except FileExistsError:
                number += 1
            except OSError as error:
                raise _as_no_space(error)
        try:
            # Before another process can see a volume and find it unlocked.
            lock_descriptor(self._disk, fd, self.path(number), 0.0)
            nonce = os.urandom(NONCE_BYTES)
            head = _VOLUME.pack(_MAGIC, nonce, number, 0)[:-4]
            header = head + struct.pack("<I", zlib.crc32(head))
            write_at(self._disk, fd, header, 0)
            self._disk.setxattr(fd, HEADER_ATTRIBUTE, header)
            self._disk.fsync(fd)
            self._sync_names()
        except BaseException as error:
            self._disk.close(fd)
            with suppress(OSError):
                self._disk.unlink(self.path(number))
            if isinstance(error, OSError):
                raise _as_no_space(error)
            raise
        return OpenVolume(self._disk, number, fd, nonce)

    def _sync_names(self) -> None:
        """Make the names of volumes durable: a process that was killed may have made some without."""
        for directory in (self.directory, self._device_path):
            sync_directory(self._disk, directory)

    def take(self, number: int) -> OpenVolume | None:
        """Return a volume to append to, like ``lock``, durable in its directory; raises OSError."""
        volume = self.lock(number)
        if volume is None or volume.damage:
            return None
        self._sync_names()
        return volume

    def lock(self, number: int) -> OpenVolume | None:
        """Return a volume with its lock, or None if another process holds it, it is damaged or gone."""
        try:
            volume = self.open_anew(number)
            lock_descriptor(self._disk, volume.fd, self.path(number), 0.0)
        except (FileNotFoundError, LockTimeout, Damaged):
            return None
        return volume if self._disk.fstat(volume.fd).st_nlink else None

    def scan(
        self, volume: OpenVolume, start_unit: int, lost: Callable[[Lost], None] | None = None
    ) -> Iterator[tuple[Position, Header]]:
        """Yield the sound headers of a volume from a unit on, with their positions; raises OSError.

        What is no record, or a torn one, is passed over and told to ``lost`` when a record follows it. With
        ``lost``, so is what cannot be read. Bodies are not checked.
        """
        size = self._disk.fstat(volume.fd).st_size
        offset = max(start_unit, FIRST_UNIT) * ALIGNMENT
        begin, window, sound = 0, b"", offset
        while offset + HEADER_BYTES <= size:
            if offset < begin or offset + HEADER_BYTES > begin + len(window):
                begin, length = offset, min(SCAN_BYTES, size - offset)
                # Reading in order alone asks for little at a time.
                self._disk.prefetch(volume.fd, offset, length)
                window, is_cut = self._read_window(volume, offset, length, lost)
                if len(window) < HEADER_BYTES:
                    if not is_cut:
                        return
                    offset = (offset + len(window)) // _BLOCK * _BLOCK + _BLOCK
                    continue
            at = offset - begin
            if not may_begin(window, at, volume.nonce):
                offset = begin + _next_candidate(window, at, volume.nonce)
                continue
            header = self._header_at(volume, offset, window, at, lost)
            if header is None:
                if lost is not None:
                    lost(Lost(offset, offset + ALIGNMENT, False, batch_unit_at(window, at)))
                offset += ALIGNMENT
                continue
            if sound < offset and lost is not None:
                lost(Lost(sound, offset, False))
            yield Position(volume.number, offset // ALIGNMENT), header
            offset += padded(header.total_bytes)
            sound = offset

    def _read_window(
        self, volume: OpenVolume, offset: int, length: int, lost: Callable[[Lost], None] | None
    ) -> tuple[bytes, bool]:
        """Return bytes from an offset on; True if they end at a block that cannot be read."""
        while True:
            try:
                return volume.read(offset, length), False
            except OSError as error:
                if lost is None:
                    raise
                only_unreadable(error)
                if length > _BLOCK * 16:
                    length //= 2
                    continue
            break
        pieces, at = b"", offset
        while at < offset + length:
            end = at // _BLOCK * _BLOCK + _BLOCK
            try:
                pieces += volume.read(at, end - at)
            except OSError as error:
                only_unreadable(error)
                lost(Lost(at, end, True))
                return pieces, True
            at = end
        return pieces, False

    def _header_at(
        self, volume: OpenVolume, offset: int, window: bytes, at: int, lost: Callable[[Lost], None] | None
    ) -> Header | None:
        try:
            data: bytes | memoryview = memoryview(window)[at:]
            needed = header_bytes(data)
            if len(data) < needed:
                data = volume.read(offset, needed)
            return parse_header(data, volume.nonce)
        except (BadRecord, ValueError):
            return None
        except OSError as error:
            if lost is None:
                raise
            only_unreadable(error)
            lost(Lost(offset, offset + needed, True))
            return None

    def close(self) -> None:
        """Close all volumes."""
        with self._mutex:
            self._open.clear()

    def __repr__(self) -> str:
        return f"Volumes({self.directory!r})"


def _next_candidate(window: bytes, at: int, nonce: bytes) -> int:
    """Return the next offset in ``window`` at which a record may begin; the last unit's if none does."""
    last = len(window) // ALIGNMENT * ALIGNMENT
    found = at
    while True:
        found = window.find(b"SwR1" + nonce, found + 1)
        if found < 0:
            # A record may begin in the last bytes and go on behind them.
            return max(last - ALIGNMENT * 2, at + ALIGNMENT)
        if found % ALIGNMENT == 0:
            return found


def only_unreadable(error: OSError) -> OSError:
    """Return an error of bytes that the device cannot read; raise any other one."""
    if error.errno not in UNREADABLE_ERRORS:
        raise error
    return error


def _parse_volume(header: bytes) -> tuple[bytes, int] | None:
    """Return the nonce and the number that the header of a volume tells; None if it is damaged."""
    if len(header) != _VOLUME.size:
        return None
    magic, nonce, number, checksum = _VOLUME.unpack(header)
    is_right = magic == _MAGIC and zlib.crc32(header[:-4]) == checksum
    return (bytes(nonce), int(number)) if is_right else None


def _nonce_of_first(data: bytes) -> bytes | None:
    """Return the nonce of the first record of a volume: no body before it can pretend to be one."""
    nonce = data[4 : 4 + NONCE_BYTES]
    try:
        return nonce if parse_header(data, nonce).batch_unit == FIRST_UNIT else None
    except (BadRecord, ValueError):
        return None


def _as_no_space(error: OSError) -> Exception:
    return NoSpace(str(error)) if error.errno in NO_SPACE_ERRORS else error


def write_at(disk: Disk, fd: int, data: bytes | memoryview, offset: int) -> None:
    """Write every byte at an offset; raises OSError."""
    view = memoryview(data)
    while view:
        written = disk.pwrite(fd, view, offset)
        if not written:
            raise OSError(errno.EIO, "nothing was written")
        offset += written
        view = view[written:]
