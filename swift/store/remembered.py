"""Hash directories that are known from recent reads: what a read on the event loop is answered from.

Reading an object takes a list of its directory and attributes of its files. Both may wait for a device, which
the event loop must never do. This process therefore keeps what threads read, and believes it while directory
and file are still what they were: by inode, times and size, which the kernel has in memory
(``Disk.open_cached``). Nothing is kept of a directory that changed less than ``SETTLED_S`` ago: within one
tick of the kernel's clock it could change again and have the same times.

Only what is read again is kept, so that a pass over all objects costs nothing.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from swift.platform.disk import Disk
from swift.platform.regularfiles import SAFE_FLAGS
from swift.store.api import LIVE, ObjectKey, ReadOptions
from swift.store.errors import Damaged
from swift.store.layout import FileName
from swift.store.metadata import Metadata
from swift.store.reader import Loaded, choose_for, state_of

#: A directory is kept once it did not change for so long, seconds.
SETTLED_S = 2.0
#: Directories that one engine keeps, and that it has seen once.
KEPT_MAX = 4096
SEEN_MAX = 16384
#: Directories with more bytes of metadata are not kept.
METADATA_BYTES_MAX = 8192

#: Device, inode, size and the times of content and inode, nanoseconds.
_Identity = tuple[int, int, int, int, int]


def _identity_of(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class _Directory(NamedTuple):
    identity: _Identity
    names: Sequence[str]
    #: Name of a file → its metadata.
    metadata: dict[str, Metadata]
    #: Name of the data file, and what it was.
    data: str
    data_identity: _Identity


class KnownDirectories:
    """The directories that one engine keeps; for any number of threads and one event loop."""

    def __init__(self, disk: Disk):
        self._disk = disk
        self._kept: OrderedDict[str, _Directory] = OrderedDict()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    # --- on the event loop ---------------------------------------------------------------------------

    def load(self, directory: str, key: ObjectKey, options: ReadOptions, *, open_data: bool) -> Loaded | None:
        """Return what ``reader.load`` would, without waiting for a device; None if that is not possible."""
        known = self._kept.get(directory)
        if known is None or (fd := self._open_data(directory, known)) is None:
            return None
        try:
            choice = choose_for(known.names, key, options)
            if choice.data is None or choice.data.name != known.data:
                return None
            metadata, size = known.metadata, known.data_identity[2]

            def read(file: FileName) -> Metadata:
                return dict(metadata[file.name])

            try:
                state = state_of(choice, key, options, read, size)
            except (KeyError, Damaged):
                return None
            kept, fd = fd if open_data else None, None if open_data else fd
            return Loaded(state, choice, f"{directory}/{known.data}", kept)
        finally:
            if fd is not None:
                self._disk.close(fd)

    def _open_data(self, directory: str, known: _Directory) -> int | None:
        """Return the open data file if nothing has changed and a thread had it open before."""
        disk = self._disk
        above = disk.open_cached(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        if above is None:
            return None
        fd = None
        try:
            is_same = _identity_of(disk.fstat(above)) == known.identity
            if is_same:
                fd = disk.open_cached(known.data, os.O_RDONLY | SAFE_FLAGS, dir_fd=above)
                is_same = fd is None or _identity_of(disk.fstat(fd)) == known.data_identity
            if not is_same:
                self._forget(directory)
                if fd is not None:
                    disk.close(fd)
                return None
            return fd
        finally:
            disk.close(above)

    def _forget(self, directory: str) -> None:
        with self._lock:
            self._kept.pop(directory, None)

    # --- in threads ----------------------------------------------------------------------------------

    def watch(self, directory: str) -> Observation | None:
        """Begin to read a directory; return what notes it, None if it is read for the first time.

        Raises OSError when the device fails.
        """
        with self._lock:
            if directory in self._seen:
                self._seen.move_to_end(directory)
            else:
                self._seen[directory] = None
                if len(self._seen) > SEEN_MAX:
                    self._seen.popitem(last=False)
                return None
        try:
            status = self._disk.stat(directory, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        if self._disk.now_ns() - changed_ns < SETTLED_S * 1e9:
            return None
        return Observation(self, directory, _identity_of(status))

    def keep(self, directory: str, known: _Directory) -> None:
        """Keep a directory; the one read longest ago goes."""
        with self._lock:
            self._kept[directory] = known
            self._kept.move_to_end(directory)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)

    def __repr__(self) -> str:
        return f"<KnownDirectories {len(self._kept)}>"


class Observation:
    """One read of a directory, from its beginning on."""

    def __init__(self, directories: KnownDirectories, directory: str, identity: _Identity):
        self._directories = directories
        self._directory = directory
        self._identity = identity
        #: Name of a file → its metadata, as read.
        self.metadata: dict[str, Metadata] = {}

    def end(self, names: Sequence[str], loaded: Loaded) -> None:
        """Keep what was found."""
        data, status = loaded.choice.data, loaded.status
        if loaded.state.kind != LIVE or data is None or status is None:
            return
        texts = (text for each in self.metadata.values() for item in each.items() for text in item)
        if sum(map(len, texts)) > METADATA_BYTES_MAX:
            return
        known = _Directory(self._identity, tuple(names), self.metadata, data.name, _identity_of(status))
        self._directories.keep(self._directory, known)
