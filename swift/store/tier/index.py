"""The index on the SSD: one sorted map of bytes, changed by one writer at a time, read by anybody.

It is LMDB without syncs: a killed process leaves it whole, a power cut may tear it. So a file beside it
says in which run of the kernel it was last opened and whether the last user closed it; after any other
end it is thrown away, because losing it loses nothing. What it holds is the business of ``entries``.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from swift.base.errors import ConfigError

if TYPE_CHECKING:
    import lmdb

#: Address space, not room: the size is bounded by what is kept.
MAP_BYTES = 256 << 30
_FILE, _LOCK, _STATE = "index.mdb", "index.mdb-lock", "index.json"


class IndexFailed(Exception):
    """The index cannot be used now: an error of the device, or what it holds is damaged."""


class Writing(Protocol):
    """A change of the index; it happens as a whole or not at all."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set it."""

    def delete(self, key: bytes) -> bool:
        """Remove it; whether it was there."""

    def scan(self, prefix: bytes) -> Iterator[bytes]:
        """The keys that begin so, in order; nothing may be changed meanwhile."""


class Index(Protocol):
    """A map that several processes share. Every call raises ``IndexFailed`` when it cannot be used."""

    #: The same for all who have this one open; never zero.
    identity: int

    def is_in_place(self) -> bool:
        """Whether whoever opens it now gets this one. Raises OSError."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, as of the last change."""

    def keys(self, prefix: bytes, after: bytes, count: int) -> list[bytes]:
        """The next keys after ``after`` that begin so, in order; at most ``count``."""

    def writing(self) -> AbstractContextManager[Writing]:
        """Change it; an exception within the block changes nothing."""

    def close(self, *, is_last: bool) -> None:
        """Give it up; the last user leaves it so that it survives a boot."""


@dataclass
class _Shared:
    env: lmdb.Environment
    identity: int
    users: int = 0


def _identity(directory: str) -> int:
    """A number of the file of an index, 0 when there is none."""
    try:
        found = os.stat(f"{directory}/{_FILE}")
    except FileNotFoundError:
        return 0
    return zlib.crc32(b"%d %d" % (found.st_dev, found.st_ino)) | 1 << 32


#: LMDB must be opened once only by a process: by its id and the directory.
_open: dict[tuple[int, str], _Shared] = {}


def _environment(directory: str) -> lmdb.Environment:
    import lmdb

    env = lmdb.open(
        f"{directory}/{_FILE}",
        subdir=False,
        map_size=MAP_BYTES,
        sync=False,
        metasync=False,
        readahead=False,
        max_readers=1024,
        max_spare_txns=8,
    )
    env.reader_check()
    return env


class LmdbIndex:
    """The index in a directory of the SSD; for one process. Raises ``IndexFailed``, ``ConfigError``."""

    def __init__(self, directory: str, boot_id: str):
        try:
            import lmdb
        except ImportError:
            raise ConfigError("the cache tier needs the package lmdb (pip install swift[tier])")
        self._errors = (lmdb.Error, OSError)
        self._directory, self._boot_id = directory, boot_id
        self._key = os.getpid(), directory
        try:
            os.makedirs(directory, exist_ok=True)
            shared = _open.get(self._key)
            if shared is None:
                self._begin()
                env = _environment(directory)
                shared = _open[self._key] = _Shared(env, _identity(directory))
            elif shared.identity != _identity(directory):
                raise IndexFailed(f"the index in {directory} was replaced")
            shared.users += 1
            self.identity = shared.identity
            self._env: lmdb.Environment = shared.env
        except self._errors as error:
            raise IndexFailed(f"cannot open {directory}: {error}")

    def is_in_place(self) -> bool:
        """See ``Index``."""
        return self.identity == _identity(self._directory)

    def _begin(self) -> None:
        """Throw away what a power cut may have torn, and note that it is in use."""
        state = f"{self._directory}/{_STATE}"
        try:
            with open(state, "rb") as file:
                left = json.load(file)
        except (FileNotFoundError, ValueError):
            left = {}
        same_boot = bool(self._boot_id) and left.get("boot") == self._boot_id
        if not same_boot and not left.get("closed"):
            for name in (_FILE, _LOCK):
                with_name = f"{self._directory}/{name}"
                if os.path.exists(with_name):
                    os.unlink(with_name)
        if not same_boot or left.get("closed"):
            self._note(closed=False)

    def _note(self, *, closed: bool) -> None:
        path = f"{self._directory}/{_STATE}"
        with open(f"{path}.new", "w", encoding="ascii") as file:
            json.dump({"boot": self._boot_id, "closed": closed}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def get(self, key: bytes) -> bytes | None:
        """See ``Index``."""
        try:
            with self._env.begin() as txn:
                return _bytes(txn.get(key))
        except self._errors as error:
            raise IndexFailed(str(error))

    def keys(self, prefix: bytes, after: bytes, count: int) -> list[bytes]:
        """See ``Index``."""
        try:
            with self._env.begin() as txn:
                found = _LmdbWriting(txn).scan(prefix, max(prefix, after + b"\0" if after else prefix))
                return list(islice(found, count))
        except self._errors as error:
            raise IndexFailed(str(error))

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """See ``Index``."""
        try:
            with self._env.begin(write=True) as txn:
                yield _LmdbWriting(txn)
        except self._errors as error:
            raise IndexFailed(str(error))

    def close(self, *, is_last: bool) -> None:
        """See ``Index``."""
        try:
            shared = _open.get(self._key)
            if shared is None or shared.env is not self._env:
                return
            if is_last:
                self._env.sync(True)
                self._note(closed=True)
            shared.users -= 1
            if not shared.users:
                del _open[self._key]
                self._env.close()
        except self._errors as error:
            raise IndexFailed(str(error))


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    """What a transaction without views gives."""
    assert not isinstance(value, memoryview)
    return value


class _LmdbWriting:
    def __init__(self, txn: lmdb.Transaction):
        self._txn = txn

    def get(self, key: bytes) -> bytes | None:
        return _bytes(self._txn.get(key))

    def put(self, key: bytes, value: bytes) -> None:
        self._txn.put(key, value)

    def delete(self, key: bytes) -> bool:
        return bool(self._txn.delete(key))

    def scan(self, prefix: bytes, begin: bytes = b"") -> Iterator[bytes]:
        with self._txn.cursor() as cursor:
            found = cursor.set_range(begin or prefix)
            while found:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    return
                yield key
                found = cursor.next()


class MemoryIndex:
    """An index without a device, for simulations; ``fails`` is asked before each use."""

    identity = 1

    def __init__(self, kept: dict[bytes, bytes] | None = None):
        self.kept = dict(kept or {})
        self.failing = False

    def is_in_place(self) -> bool:
        """See ``Index``."""
        return True

    def _check(self) -> None:
        if self.failing:
            raise IndexFailed("the device is gone")

    def get(self, key: bytes) -> bytes | None:
        """See ``Index``."""
        self._check()
        return self.kept.get(key)

    def keys(self, prefix: bytes, after: bytes, count: int) -> list[bytes]:
        """See ``Index``."""
        self._check()
        return [key for key in sorted(self.kept) if key.startswith(prefix) and key > after][:count]

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """See ``Index``."""
        self._check()
        made = _MemoryWriting(dict(self.kept))
        yield made
        self._check()
        self.kept = made.kept

    def close(self, *, is_last: bool) -> None:
        """Nothing is held."""


class _MemoryWriting:
    def __init__(self, kept: dict[bytes, bytes]):
        self.kept = kept

    def get(self, key: bytes) -> bytes | None:
        return self.kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.kept[key] = value

    def delete(self, key: bytes) -> bool:
        return self.kept.pop(key, None) is not None

    def scan(self, prefix: bytes) -> Iterator[bytes]:
        return (key for key in sorted(self.kept) if key.startswith(prefix))
