"""Hash directories on the disk: the source of entries.

Reading one takes as many calls as the engine's own reading, in the same order. Only directories that a
reader would take without a question become entries: no damage, no unknown names, few files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from swift.platform.disk import Disk
from swift.platform.regularfiles import IrregularFile, open_regular, open_with_status
from swift.store.api import ObjectKey, ObjectState, ReadOptions
from swift.store.chooser import Choice
from swift.store.errors import Damaged, FilesChanged
from swift.store.layout import DATA, UnexpectedName, parse_name
from swift.store.metadata import decode_metadata, read_metadata_blob
from swift.store.reader import Loaded, choose_for, list_names, state_of
from swift.store.tier.entry import FILES_MAX, FileFacts, Snapshot, Stamp

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC
#: Changes of a directory within this time of each other may leave the same change time.
FRESH_NS = 1_000_000_000
_NO_HANDLE = frozenset((errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EOVERFLOW, errno.EINVAL))
_METADATA_BYTES_MAX = 0xFFFF


class HashDirectory(NamedTuple):
    """A hash directory."""

    #: Of the device.
    device: str
    directory: str
    #: Archives of an erasure coded policy; None when the policy is none.
    fragments: int | None

    @property
    def path(self) -> bytes:
        """Its name in the tier."""
        return path_of(self.device, self.directory)


def path_of(device_path: str, directory: str) -> bytes:
    """Return the name of a directory in the tier: from the name of the device on."""
    return directory[device_path.rfind("/") + 1 :].encode()


class Handles:
    """File handles of the kernel; disabled after the kernel refuses one."""

    def __init__(self, disk: Disk, *, wanted: bool = True):
        self._disk = disk
        self.wanted = wanted

    def of(self, file: int | str) -> bytes:
        """Return the handle of a file; empty when there is none or none is wanted."""
        if not self.wanted:
            return b""
        try:
            return self._disk.handle(file)
        except OSError as error:
            if error.errno in _NO_HANDLE:
                self.wanted = False
            return b""

    def open(self, hash_dir: HashDirectory, facts: FileFacts) -> int:
        """Open a file; raises OSError, ESTALE or ENOENT when it is gone."""
        if facts.handle and self.wanted:
            try:
                return self._disk.open_handle(hash_dir.device, facts.handle, _OPEN_FLAGS)
            except OSError as error:
                if error.errno not in _NO_HANDLE:
                    raise
                self.wanted = False
        return open_regular(self._disk, f"{hash_dir.directory}/{facts.name}", _OPEN_FLAGS)


def stamp_of(disk: Disk, directory: str) -> Stamp:
    """Return the stamp of a directory; zeros when it is not there. Raises OSError."""
    try:
        found = disk.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return Stamp()
    return Stamp(found.st_ino, found.st_ctime_ns)


def is_plain(names: Sequence[str], fragments: int | None) -> bool:
    """Return True if every name is one that an entry may hold."""
    if len(names) > FILES_MAX:
        return False
    try:
        for name in names:
            parse_name(name, fragments)
    except UnexpectedName:
        return False
    return True


class Reader:
    """Reads hash directories of a disk."""

    def __init__(self, disk: Disk, handles: Handles):
        self._disk = disk
        self._handles = handles

    def read(self, hash_dir: HashDirectory, epoch: int, now_ns: int) -> Snapshot | None:
        """Return a hash directory; None when it is not fit for an entry.

        Raises ``Damaged``, ``FilesChanged`` when it changes meanwhile, or OSError.
        """
        stamp = stamp_of(self._disk, hash_dir.directory)
        names = list_names(self._disk, hash_dir.directory)
        if not is_plain(names, hash_dir.fragments):
            return None
        try:
            files = tuple([self._facts(hash_dir, name) for name in names])
        except FileNotFoundError:
            raise FilesChanged(f"files of {hash_dir.directory} are changing")
        if any(len(file.blob) > _METADATA_BYTES_MAX for file in files):
            return None
        is_one_body = len(names) == 1 and names[0].endswith(DATA)
        if not is_one_body and stamp.changed_ns + FRESH_NS > now_ns:
            # Another change might leave the same time: to be believed only as long as it cannot be missed.
            stamp = Stamp()
        return Snapshot(epoch, now_ns, stamp, files)

    def _facts(self, hash_dir: HashDirectory, name: str) -> FileFacts:
        path = f"{hash_dir.directory}/{name}"
        if not name.endswith(DATA):
            return FileFacts(name, read_metadata_blob(self._disk, path)[0], 0, 0)
        try:
            fd, found = open_with_status(self._disk, path, _OPEN_FLAGS)
        except IrregularFile as error:
            raise Damaged(f"{path}: {error.strerror}")
        try:
            blob = read_metadata_blob(self._disk, fd)[0]
            return FileFacts(name, blob, found.st_size, found.st_ino, self._handles.of(fd))
        finally:
            self._disk.close(fd)

    def body(self, hash_dir: HashDirectory, facts: FileFacts) -> bytes:
        """Return a small body. Raises OSError."""
        fd = self._handles.open(hash_dir, facts)
        try:
            return self._disk.pread(fd, facts.size, 0)
        finally:
            self._disk.close(fd)

    def is_still(self, hash_dir: HashDirectory, snapshot: Snapshot) -> bool:
        """Return True if a directory is what it was: the same one, unchanged since, with the same names
        and bodies.

        False when in doubt. Raises OSError.
        """
        disk = self._disk
        if snapshot.files and not snapshot.stamp.inode:
            return False
        if snapshot.files and stamp_of(disk, hash_dir.directory) != snapshot.stamp:
            return False
        try:
            if sorted(list_names(disk, hash_dir.directory)) != sorted(snapshot.names):
                return False
            bodies = [file for file in snapshot.files if file.name.endswith(DATA)]
            found = [disk.stat(f"{hash_dir.directory}/{file.name}") for file in bodies]
        except (Damaged, FileNotFoundError):
            return False
        return all(
            (each.st_ino, each.st_size) == (file.inode, file.size)
            for each, file in zip(found, bodies, strict=True)
        )

    def difference(self, hash_dir: HashDirectory, snapshot: Snapshot) -> str:
        """Return the difference between an entry and the disk; empty if equal.

        Raises OSError.
        """
        try:
            names = list_names(self._disk, hash_dir.directory)
            if sorted(names) != sorted(snapshot.names):
                return f"names are {sorted(names)}, not {sorted(snapshot.names)}"
            for facts in snapshot.files:
                found = self._facts(hash_dir, facts.name)
                if found._replace(handle=facts.handle) != facts:
                    return f"{facts.name} is another file, or its metadata is"
        except (Damaged, FileNotFoundError) as error:
            return str(error)
        return ""

    # --- what readers take from an entry --------------------------------------------------------------

    def open(
        self, hash_dir: HashDirectory, snapshot: Snapshot, choice: Choice, state: ObjectState
    ) -> Loaded | None:
        """Return the files of an entry, opened; None when they are not there any more. Raises OSError."""
        if choice.data is None:
            return Loaded(state, choice)
        facts = snapshot.file(choice.data.name)
        path = f"{hash_dir.directory}/{facts.name}"
        try:
            fd = self._handles.open(hash_dir, facts)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESTALE, errno.ENOTDIR):
                return None
            raise
        found = self._disk.fstat(fd)
        if (found.st_ino, found.st_size) != (facts.inode, facts.size) or not found.st_nlink:
            self._disk.close(fd)
            return None
        return Loaded(state, choice, path, fd)


def state_in(snapshot: Snapshot, key: ObjectKey, options: ReadOptions) -> tuple[ObjectState, Choice]:
    """Return the state that an entry amounts to, as ``reader.load`` makes it; raises the same."""
    choice = choose_for(snapshot.names, key, options)
    data = choice.data
    size = 0 if data is None else snapshot.file(data.name).size
    state = state_of(choice, key, options, lambda file: decode_metadata(snapshot.file(file.name).blob), size)
    return state, choice
