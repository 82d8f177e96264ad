"""The classes ``small-data`` and ``data``: bodies in the logs of the SSD.

A small body hangs on the entry of its directory and is read when the object is opened, so that its file
is not touched. Pieces of larger bodies are read beside the open file. What is kept was verified when it
was read from the disk, carries a CRC-32, and belongs to the MD5 of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swift.http.body import FileBody
from swift.store.api import LIVE, ObjectState, StoredObject
from swift.store.layered import ForwardingObject
from swift.store.lmdbindex import IndexFailed
from swift.store.tier.entries import Entries, ReadStart, device_of
from swift.store.tier.entry import FileFacts, Snapshot
from swift.store.tier.extents import ExtentLog, owner_of
from swift.store.tier.policy import DATA, SMALL_DATA, ClassRules
from swift.store.tier.tier import CacheTier

#: Larger bodies are kept in pieces of so many bytes.
PIECE_BYTES = 1 << 20
_FILES = {SMALL_DATA: "small.log", DATA: "data.log"}


class BodyCache:
    """The logs of a tier. No call raises because of the tier; what fails counts as not there."""

    def __init__(self, tier: CacheTier):
        self._tier = tier

    def _log(self, of: str, rules: ClassRules) -> ExtentLog:
        key = of, rules.bytes_max
        logs = self._tier.logs
        log = logs.get(key)
        if log is None:
            for old in [each for each in logs if each[0] == of]:
                logs.pop(old).close()
            log = logs[key] = self._tier.dependencies.open_log(
                f"{self._tier.settings.path}/{_FILES[of]}", rules.bytes_max
            )
        return log

    def serves(self, of: str) -> bool:
        """Return True if reads of a class are answered."""
        rules = self._tier.rules_of(of)
        return rules is not None and rules.means.serves and rules.bytes_max > 0

    def is_small(self, state: ObjectState) -> bool:
        """Return True if a body is one of those that are kept whole."""
        return state.kind == LIVE and 0 < state.size <= self._tier.settings.small_data_max

    # --- small bodies --------------------------------------------------------------------------------

    def small(self, path: bytes, snapshot: Snapshot, state: ObjectState) -> bytes | None:
        """Return the body of an object, None when it is not here."""
        rules = self._tier.rules_of(SMALL_DATA)
        if rules is None or not rules.means.serves or not self.is_small(state):
            return None
        data = None
        if snapshot.body is not None and snapshot.body.length == state.size:
            try:
                data = self._log(SMALL_DATA, rules).read(snapshot.body, owner_of(state.etag or ""))
            except OSError as error:
                self._tier.failed(str(error))
        self._tier.count(SMALL_DATA, device_of(path), "misses" if data is None else "hits")
        return data

    def write_small(self, entries: Entries, snapshot: Snapshot, etag: str, data: bytes) -> Snapshot | None:
        """Write a small body; its entry with the place of it. None when it was not written."""
        rules = self._tier.rules_of(SMALL_DATA)
        try:
            position = None if rules is None else entries.allocate(SMALL_DATA, len(data))
            if position is None or rules is None:
                return None
            return snapshot._replace(body=self._log(SMALL_DATA, rules).write(position, owner_of(etag), data))
        except (IndexFailed, OSError) as error:
            self._tier.failed(str(error))
            return None

    def cache_small(self, path: bytes, start: ReadStart, snapshot: Snapshot, etag: str, data: bytes) -> None:
        """Keep a verified body of an entry that was true since ``start``."""
        try:
            entries = self._tier.entries()
        except OSError:
            return
        if entries is None:
            return
        placed = self.write_small(entries, snapshot, etag, data)
        if placed is not None:
            self._tier.keep(entries, path, start, placed, of=SMALL_DATA)

    # --- pieces of larger ones -----------------------------------------------------------------------

    def piece(self, path: bytes, key: bytes, owner: int) -> bytes | None:
        """Return a piece of a body, None when it is not here."""
        rules, data = self._tier.rules_of(DATA), None
        try:
            entries = self._tier.entries()
            if rules is None or entries is None:
                return None
            extent = entries.find_piece(path, key)
            if extent is not None:
                data = self._log(DATA, rules).read(extent, owner)
        except (IndexFailed, OSError) as error:
            self._tier.failed(str(error))
        self._tier.count(DATA, device_of(path), "misses" if data is None else "hits")
        return data

    def cache_piece(self, path: bytes, key: bytes, owner: int, start: ReadStart, data: bytes) -> None:
        """Keep a verified piece of a body that was so since ``start``."""
        rules = self._tier.rules_of(DATA)
        try:
            entries = self._tier.entries()
            position = None if entries is None else entries.allocate(DATA, len(data))
            if position is None or rules is None or entries is None:
                return
            extent = self._log(DATA, rules).write(position, owner, data)
            kept = entries.cache_piece(path, key, start, extent)
            self._tier.count(DATA, device_of(path), "kept" if kept else "rejected")
        except (IndexFailed, OSError) as error:
            self._tier.failed(str(error))


class SmallObject:
    """``StoredObject`` whose body came from the tier; no file is open."""

    def __init__(self, state: ObjectState, body: bytes):
        self.state = state
        self.keep_cache = self.check_md5 = True
        self._body = body

    def read_cached(self, size_max: int) -> bytes | None:
        """See ``StoredObject``; it was verified when it was read from the SSD."""
        return self._body if len(self._body) <= size_max else None

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        if start < stop:
            yield self._body if stop - start == len(self._body) else self._body[start:stop]

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        return iter(self.blocks(start, stop))

    def close(self) -> None:
        """Nothing is held."""


class CachingObject(ForwardingObject):
    """A small object from the disk: its body is kept once it was read to its end and found right."""

    def __init__(self, inner: StoredObject, keep: Callable[[bytes], None]):
        super().__init__(inner)
        self._keep = keep

    def read_cached(self, size_max: int) -> bytes | None:
        data = self.inner.read_cached(size_max)
        if data is not None and self.inner.check_md5:
            self._keep(data)
        return data

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        if (start, stop) != (0, self.state.size) or not self.inner.check_md5:
            yield from self.inner.blocks(start, stop)
            return
        pieces = []
        for piece in self.inner.blocks(start, stop):
            pieces.append(piece)
            if sum(map(len, pieces)) == self.state.size:
                self._keep(b"".join(pieces))
            yield piece

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        return iter(self.blocks(start, stop))


class PiecedObject(ForwardingObject):
    """A larger object: pieces come from the tier or the disk; those that can be verified are kept."""

    def __init__(
        self,
        inner: StoredObject,
        bodies: BodyCache,
        path: bytes,
        facts: FileFacts,
        keep: Callable[[bytes, int, bytes], None],
        is_verifiable: Callable[[], bool],
    ):
        super().__init__(inner)
        self._bodies, self._path, self._keep = bodies, path, keep
        self._file = f"{facts.name}/{facts.inode:x}/".encode()
        self._is_verifiable = is_verifiable

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        size, etag = self.state.size, self.state.etag or ""
        for number in range(start // PIECE_BYTES, -(-stop // PIECE_BYTES)):
            begin = number * PIECE_BYTES
            end = min(begin + PIECE_BYTES, size)
            first, last = max(start, begin), min(stop, end)
            key, owner = self._file + b"%08x" % number, owner_of(etag, number)
            data = self._bodies.piece(self._path, key, owner)
            if data is None or len(data) != end - begin:
                if not self._is_verifiable():
                    yield from self.inner.blocks(first, stop)
                    return
                data = b"".join(self.inner.blocks(begin, end))
                self._keep(key, owner, data)
            yield data if (first, last) == (begin, end) else data[first - begin : last - begin]

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        return iter(self.blocks(start, stop))
