"""Rules for writing, invalidating and trusting entries; see decision 0015.

A writer, before it changes the disk: notes that it is at it (``busy``), drops what is known, and touches
the stripe, in one change of the index. Afterwards it takes its note away and touches the stripe again. A
reader that found nothing remembers stripe and epoch, reads the disk, and keeps what it found only when
both are the same and no change is pending. So an entry is never older than the disk, even after kills:

* a reader that read before the change sees another stripe or the note;
* a killed writer leaves its note; the next process removes it and caches nothing this time;
* a writer that cannot write the index renews the epoch of the device, in memory, and nothing is kept for
  a while.

Keys: the kind, then the path of a directory below the devices, ``sda/objects/7/abc/d41d8…``.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from swift.platform.sharedstate import TOKEN_BYTES, SharedState
from swift.store.lmdbindex import Index, IndexFailed, Writing
from swift.store.tier.entry import (
    Extent,
    Hashes,
    Snapshot,
    decode,
    decode_hashes,
    encode,
    encode_hashes,
    has_body,
)
from swift.store.tier.extents import place_after, room_for
from swift.store.tier.policy import DATA, HASHES, METADATA, SMALL_DATA, Rules, WriteBudget, next_evicted

ENTRY, HASHED, CHUNK, BUSY, AGE, TOTALS = b"e", b"h", b"c", b"b", b"a", b"t"
_KIND_OF = {METADATA: ENTRY, HASHES: HASHED, DATA: CHUNK}
_CLASS_BYTE = {METADATA: b"m", HASHES: b"h", DATA: b"d", SMALL_DATA: b"s"}
#: Parts of the path of a partition, a suffix and a hash directory.
PARTITION, OBJECT = 3, 5
_NOTE_BYTES = TOKEN_BYTES + 8
_TOTALS = struct.Struct("<QQQQIQ")
#: Bytes that LMDB writes for one change besides the value: the path of pages to it, twice.
COMMIT_BYTES = 16384
#: A record of age and what LMDB keeps beside a value.
RECORD_BYTES = 96
_EVICTIONS_MAX = 64
_KEYS_AT_ONCE = 512
#: No honest figure is as large.
_TOO_MUCH = 1 << 62
_EXTENT = struct.Struct("<QQ")
#: For so long nothing is kept after a change could not be noted.
PAUSE_NS = 60_000_000_000
_MADE_AT = 14
_DAY_S = 86400


class ReadStart(NamedTuple):
    """State before the disk was read."""

    epoch: int
    stripe: int


class Note(NamedTuple):
    """A change that is under way."""

    path: bytes
    token: bytes
    #: True if it stands in the index; else the epoch was renewed.
    is_kept: bool
    #: True if something was known before, and whether its body was.
    was_known: bool = False
    had_body: bool = False


class Totals(NamedTuple):
    """Totals of the index."""

    metadata: int = 0
    hashes: int = 0
    #: Position of the next body, in the logs of small bodies and of pieces.
    small_head: int = 0
    data_head: int = 0
    #: Days since 1970 and bytes written on that day.
    day: int = 0
    written: int = 0


class IndexChange:
    """A change of the index, with what it says of itself, which is read and written once."""

    __slots__ = ("get", "put", "delete", "scan", "totals", "_before")

    def __init__(self, txn: Writing):
        self.get, self.put, self.delete, self.scan = txn.get, txn.put, txn.delete, txn.scan
        self._before = self.totals = _totals_in(txn.get(TOTALS))

    def save(self) -> None:
        """Write down what the index says of itself."""
        if self.totals is not self._before:
            self.put(TOTALS, _TOTALS.pack(*self.totals))


def _totals_in(value: bytes | None) -> Totals:
    if value is None or len(value) != _TOTALS.size:
        return Totals()
    found = Totals(*_TOTALS.unpack(value))
    return found if max(found) < _TOO_MUCH else Totals()


def partition_of(path: bytes) -> bytes:
    """Return the partition that a path is in."""
    return b"/".join(path.split(b"/", PARTITION)[:PARTITION])


def device_of(path: bytes) -> str:
    """Return the device that a path is on."""
    return path.split(b"/", 1)[0].decode()


def invalidate(shared_state: SharedState, path: bytes) -> None:
    """Invalidate all entries of a device for all processes: a change could not be recorded."""
    shared_state.pause(time.monotonic_ns() + PAUSE_NS)
    shared_state.renew(device_of(path))
    shared_state.touch(partition_of(path))


def _write_notes(txn: IndexChange, key: bytes, notes: list[bytes]) -> None:
    if notes:
        txn.put(key, b"".join(notes))
    else:
        txn.delete(key)


class Entries:
    """The index of one process, by the rules above. Calls raise ``IndexFailed`` unless they say otherwise."""

    def __init__(
        self,
        index: Index,
        shared_state: SharedState,
        token: bytes,
        is_alive: Callable[[bytes], bool],
        *,
        now_ns: Callable[[], int] = time.time_ns,
    ):
        self.index = index
        self.shared_state = shared_state
        self.rules: Rules = {}
        self.wear = WriteBudget(0)
        self._token, self._is_alive = token, is_alive
        self._now_ns = now_ns
        self._count = 0
        #: Why a change could not be noted, of the last one that could not.
        self.error = ""

    # --- reading -------------------------------------------------------------------------------------

    def find(self, path: bytes) -> Snapshot | None:
        """Return the entry of a hash directory; callers compare the epoch."""
        value = self.index.get(ENTRY + path)
        return None if value is None else decode(value)

    def find_hashes(self, partition: bytes) -> Hashes | None:
        """Return the entry of a partition; callers compare the epoch."""
        value = self.index.get(HASHED + partition)
        return None if value is None else decode_hashes(value)

    def start(self, path: bytes) -> ReadStart:
        """Call it before reading the disk; what was read is kept only as long as nothing else happens."""
        return ReadStart(
            self.shared_state.epoch(device_of(path)), self.shared_state.stripe(partition_of(path))
        )

    @property
    def is_current(self) -> bool:
        """True if the others use the same index."""
        return self.shared_state.index == self.index.identity

    # --- changes of the disk -------------------------------------------------------------------------

    def begin(self, path: bytes) -> Note:
        """Return a directory is about to change.

        Never raises: where the index fails, the epoch is renewed.
        """
        self._count += 1
        token = self._token + self._count.to_bytes(8, "big")
        try:
            with self._change_index() as txn:
                known = txn.get(ENTRY + path)
                self._drop(txn, path)
                txn.put(BUSY + path, (txn.get(BUSY + path) or b"") + token)
                self._count_written(txn, COMMIT_BYTES)
                self.shared_state.touch(partition_of(path))
            if not self.is_current:
                raise IndexFailed("others use another index")
            return Note(path, token, True, known is not None, has_body(known))
        except IndexFailed as error:
            self.error = str(error)
            self._invalidate(path)
            return Note(path, token, False)

    def end(self, note: Note, fresh: Callable[[], Snapshot | None] | None = None) -> bool:
        """End a pending change; return False if the index failed. ``fresh`` reads the new entry."""
        if not note.is_kept:
            self._invalidate(note.path)
            return False
        try:
            snapshot, start = None, self.start(note.path)
            if fresh is not None:
                snapshot = fresh()
            with self._change_index() as txn:
                self._remove_pending(txn, note)
                if snapshot is not None and self._may_keep(txn, note.path, start):
                    self._put(txn, METADATA, note.path, snapshot.made_ns, snapshot=snapshot)
                else:
                    self._drop(txn, note.path)
                    self._count_written(txn, COMMIT_BYTES)
                self.shared_state.touch(partition_of(note.path))
            return True
        except IndexFailed as error:
            self.error = str(error)
            self._invalidate(note.path)
            return False

    def _remove_pending(self, txn: IndexChange, note: Note) -> None:
        key = BUSY + note.path
        _write_notes(txn, key, [each for each in _notes(txn.get(key)) if each != note.token])

    def _invalidate(self, path: bytes) -> None:
        invalidate(self.shared_state, path)

    def forget(self, path: bytes) -> None:
        """Drop what is known of a directory and all below it; never raises."""
        self.end(self.begin(path))

    def _drop(self, txn: IndexChange, path: bytes) -> None:
        parts = path.count(b"/") + 1
        self._delete(txn, HASHES, partition_of(path))
        if parts == OBJECT:
            self._delete(txn, METADATA, path)
        else:
            self._drop_below(txn, METADATA, path)
        if txn.totals.data_head:
            self._drop_below(txn, DATA, path)

    def _drop_below(self, txn: IndexChange, of: str, path: bytes) -> None:
        for key in list(txn.scan(_KIND_OF[of] + path + b"/")):
            self._delete(txn, of, key[1:])

    # --- keeping -------------------------------------------------------------------------------------

    def keep(self, path: bytes, start: ReadStart, snapshot: Snapshot) -> bool:
        """Keep what was read since ``start``; whether it was kept."""
        return self._keep(METADATA, path, start, snapshot.made_ns, snapshot=snapshot)

    def keep_hashes(self, partition: bytes, start: ReadStart, entry: Hashes) -> bool:
        """Keep the hashes of a partition, computed since ``start``; whether they were kept."""
        return self._keep(HASHES, partition, start, entry.made_ns, value=encode_hashes(entry))

    def _keep(
        self,
        of: str,
        path: bytes,
        start: ReadStart,
        made_ns: int,
        *,
        snapshot: Snapshot | None = None,
        value: bytes = b"",
    ) -> bool:
        with self._change_index() as txn:
            if not self._may_keep(txn, path, start, below=of == HASHES):
                return False
            return self._put(txn, of, path, made_ns, snapshot=snapshot, value=value)

    def _may_keep(self, txn: IndexChange, path: bytes, start: ReadStart, *, below: bool = False) -> bool:
        shared_state, partition = self.shared_state, partition_of(path)
        if shared_state.is_paused(time.monotonic_ns()) or not self.is_current:
            return False
        if start != ReadStart(shared_state.epoch(device_of(path)), shared_state.stripe(partition)):
            return False
        parts = path.split(b"/")
        places = [b"/".join(parts[:count]) for count in range(PARTITION, len(parts) + 1)]
        keys = [BUSY + place for place in places]
        if below:
            keys += txn.scan(BUSY + partition + b"/")
        busy = [key for key in keys if self._is_busy(txn, key)]
        return not busy

    def _is_busy(self, txn: IndexChange, key: bytes) -> bool:
        notes = _notes(txn.get(key))
        if not notes:
            return False
        living = [note for note in notes if self._is_alive(note[:TOKEN_BYTES])]
        if len(living) < len(notes):
            # A killed writer may have changed the disk after it was read: this time nothing is kept.
            self.shared_state.touch(partition_of(key[1:]))
            _write_notes(txn, key, living)
        return True

    def _put(
        self,
        txn: IndexChange,
        of: str,
        path: bytes,
        made_ns: int,
        *,
        snapshot: Snapshot | None = None,
        value: bytes = b"",
    ) -> bool:
        if of not in self.rules:
            return False
        self._delete(txn, of, path)
        while txn.get(_age_key(of, made_ns)) is not None:
            made_ns += 1
        if snapshot is not None:
            value = encode(snapshot._replace(made_ns=made_ns))
        weight = COMMIT_BYTES + len(value)
        if not self.wear.allows(self._written(txn.totals), weight):
            return False
        key = _KIND_OF[of] + path
        txn.put(key, value)
        txn.put(_age_key(of, made_ns), path)
        self._account(txn, of, _room(key, value))
        self._count_written(txn, weight)
        self._make_room(txn)
        return True

    def _make_room(self, txn: IndexChange) -> None:
        for _ in range(_EVICTIONS_MAX):
            totals = txn.totals
            victim = next_evicted({METADATA: totals.metadata, HASHES: totals.hashes}, self.rules)
            if victim is None:
                return
            oldest = next(txn.scan(AGE + _CLASS_BYTE[victim]), None)
            if oldest is None:
                return
            path = txn.get(oldest) or b""
            if not self._delete(txn, victim, path):
                txn.delete(oldest)

    # --- bodies --------------------------------------------------------------------------------------

    def allocate(self, of: str, length: int) -> int | None:
        """Return the position of a piece in the log of a class; None when nothing may be written."""
        rules = self.rules.get(of)
        if rules is None or room_for(length) > rules.bytes_max:
            return None
        with self._change_index() as txn:
            totals = txn.totals
            if not self.wear.allows(self._written(totals), length + COMMIT_BYTES):
                return None
            is_small = of == SMALL_DATA
            head = totals.small_head if is_small else totals.data_head
            position = place_after(head, length, rules.bytes_max)
            end = position + room_for(length)
            txn.totals = totals._replace(small_head=end) if is_small else totals._replace(data_head=end)
            self._count_written(txn, length + COMMIT_BYTES)
            if not is_small:
                self._drop_overwritten(txn, end - rules.bytes_max)
        return position

    def _drop_overwritten(self, txn: IndexChange, before: int) -> None:
        """Forget the pieces that the log has written over."""
        gone = []
        for key in txn.scan(AGE + _CLASS_BYTE[DATA]):
            if int.from_bytes(key[2:], "big") >= before:
                break
            gone.append(key)
        for key in gone:
            txn.delete(txn.get(key) or b"")
            txn.delete(key)

    def find_piece(self, path: bytes, piece: bytes) -> Extent | None:
        """Return the extent of a piece of an object's body."""
        value = self.index.get(CHUNK + path + b"/" + piece)
        return None if value is None or len(value) != _EXTENT.size else Extent(*_EXTENT.unpack(value))

    def cache_piece(self, path: bytes, piece: bytes, start: ReadStart, extent: Extent) -> bool:
        """Keep where a piece is, of a body that was so since ``start``; whether it was kept."""
        with self._change_index() as txn:
            if not self._may_keep(txn, path, start) or DATA not in self.rules:
                return False
            key = CHUNK + path + b"/" + piece
            txn.put(key, _EXTENT.pack(*extent))
            txn.put(_age_key(DATA, extent.position), key)
        return True

    def _delete(self, txn: IndexChange, of: str, path: bytes) -> bool:
        key = _KIND_OF[of] + path
        value = txn.get(key)
        if value is None:
            return False
        txn.delete(key)
        if of != DATA and len(value) >= _MADE_AT + 8:
            txn.delete(_age_key(of, int.from_bytes(value[_MADE_AT : _MADE_AT + 8], "little")))
            self._account(txn, of, -_room(key, value))
        return True

    def paths(self, prefix: str = "") -> Iterator[bytes]:
        """Yield the hash directories that are known, in order; those that come meanwhile may be missed."""
        begin = ENTRY + prefix.encode()
        after = b""
        while keys := self.index.keys(begin, after, _KEYS_AT_ONCE):
            yield from (key[1:] for key in keys)
            after = keys[-1]

    def flush(self, device: str) -> int:
        """Drop everything about a device; how much that was."""
        self.shared_state.renew(device)
        dropped = 0
        for of, kind in _KIND_OF.items():
            begin = kind + device.encode() + b"/"
            while keys := self.index.keys(begin, b"", _KEYS_AT_ONCE):
                with self._change_index() as txn:
                    dropped += sum(self._delete(txn, of, key[1:]) for key in keys)
        return dropped

    # --- figures -------------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """Return the figures of the index."""
        return _totals_in(self.index.get(TOTALS))

    @contextmanager
    def _change_index(self) -> Iterator[IndexChange]:
        with self.index.writing() as writing:
            txn = IndexChange(writing)
            yield txn
            txn.save()

    def _account(self, txn: IndexChange, of: str, change: int) -> None:
        totals = txn.totals
        if of == HASHES:
            txn.totals = totals._replace(hashes=max(0, totals.hashes + change))
        else:
            txn.totals = totals._replace(metadata=max(0, totals.metadata + change))

    def _written(self, totals: Totals) -> int:
        return totals.written if totals.day == self._today() else 0

    def written_today(self) -> int:
        """Bytes written to the SSD since midnight (UTC), by estimate."""
        return self._written(self.totals())

    def _today(self) -> int:
        return self._now_ns() // 1_000_000_000 // _DAY_S

    def _count_written(self, txn: IndexChange, more: int) -> None:
        totals = txn.totals
        txn.totals = totals._replace(day=self._today(), written=self._written(totals) + more)


def _room(key: bytes, value: bytes) -> int:
    """Bytes of the file that an entry takes, as pages are about half full."""
    return 2 * (len(key) + len(value) + RECORD_BYTES)


def _notes(value: bytes | None) -> list[bytes]:
    value = value or b""
    return [value[at : at + _NOTE_BYTES] for at in range(0, len(value), _NOTE_BYTES)]


def _age_key(of: str, made_ns: int) -> bytes:
    return AGE + _CLASS_BYTE[of] + made_ns.to_bytes(8, "big")
