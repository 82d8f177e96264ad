"""An engine without files, for tests, simulations and embedded clusters.

It keeps what the filesystem engine would have in a hash directory as a dictionary of names, so the same
choosers, merging, reclaiming and hashing decide; only the doing differs. Nothing survives the process.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from itertools import groupby

from swift.base.checksum import ChunkSums, chunk_size_for
from swift.base.clock import Clock
from swift.base.entity import EntityPath
from swift.base.errors import DeviceUnavailable, LockTimeout, NoSpace
from swift.base.hashing import PathHasher
from swift.base.timestamp import ZERO, Timestamp
from swift.green import pause
from swift.http.body import FileBody
from swift.policy.policy import Policy
from swift.store.api import (
    LIVE,
    AsyncUpdate,
    AuditReport,
    Capabilities,
    Draft,
    EngineDefaults,
    Found,
    Location,
    ObjectKey,
    ObjectState,
    Pace,
    PendingUpdate,
    ReadOptions,
    SyncedVersion,
    UpdateRef,
)
from swift.store.calls import Effort, Run, run_inline
from swift.store.chooser import ReclaimRules, choose, files_to_remove
from swift.store.errors import AlreadyReserved, BadFragmentIndex, CorruptBody, Damaged
from swift.store.hashes import SuffixFeeds, SuffixHash
from swift.store.layout import DATA, META, data_name, meta_name, parse_name, suffix_of, tombstone_name
from swift.store.maintenance import FragmentWalk, archive_walk
from swift.store.metadata import Metadata
from swift.store.reader import ANY_NAME, choose_for, state_of
from swift.wire.reservation import LEASE_S

BLOCK_BYTES = 1 << 20
_LOCK_PAUSE_S = 0.01


@dataclass(slots=True)
class MemoryFile:
    """The content of one file of the filesystem engine."""

    metadata: Metadata
    body: bytes
    mtime: float


Directory = dict[str, MemoryFile]
Where = tuple[str, int, str, str]


class MemoryStore(EngineDefaults):
    """``ObjectStore`` in dictionaries; ``capacity_bytes`` bounds each device, None does not."""

    def __init__(
        self,
        devices: Iterable[str],
        *,
        hasher: PathHasher,
        clock: Clock,
        rules: ReclaimRules | None = None,
        capacity_bytes: int | None = None,
    ):
        self.available = set(devices)
        self.clock = clock
        self.rules = rules or ReclaimRules()
        self.capacity_bytes = capacity_bytes
        self.quarantined: list[tuple[Where, str]] = []
        self.hasher = hasher
        self.updates = MemoryUpdates(hasher, self.check_device)
        self._directories: dict[Where, Directory] = {}
        self._reserved: dict[Where, MemoryReservation] = {}
        self._abandoned: dict[Where, Timestamp] = {}
        self._replicating: set[str] = set()
        self._lock = threading.RLock()

    def _where(self, key: ObjectKey) -> Where:
        self.check_device(key.device)
        return key.device, key.policy.index, key.partition, key.hash

    def check_device(self, device: str) -> None:
        """Raise ``DeviceUnavailable`` for a device that is not there."""
        if device not in self.available:
            raise DeviceUnavailable(device)

    def _load(self, key: ObjectKey, options: ReadOptions) -> tuple[ObjectState, bytes]:
        where = self._where(key)
        with self._lock:
            try:
                return self._state(where, key, options)
            except Damaged as error:
                self.quarantine(where, str(error))
                state, body = self._state(where, key, options)
                state.quarantine_reason = str(error)
                return state, body

    def _state(self, where: Where, key: ObjectKey, options: ReadOptions) -> tuple[ObjectState, bytes]:
        directory = self._directories.get(where, {})
        choice = choose_for(list(directory), key, options)
        body = b"" if choice.data is None else directory[choice.data.name].body
        state = state_of(choice, key, options, lambda file: dict(directory[file.name].metadata), len(body))
        return state, body

    def quarantine(self, where: Where, reason: str) -> None:
        """Move an object to the quarantine."""
        with self._lock:
            if self._directories.pop(where, None) is not None:
                self.quarantined.append((where, reason))

    def files(self, key: ObjectKey) -> Directory:
        """Return the stored names of an object, which tests may inspect or change."""
        return self._directories.setdefault(self._where(key), {})

    def _free_bytes(self, device: str) -> int | None:
        """Return the free bytes of a device; None when unlimited."""
        if self.capacity_bytes is None:
            return None
        used = sum(
            len(file.body)
            for where, directory in self._directories.items()
            if where[0] == device
            for file in directory.values()
        )
        return self.capacity_bytes - used

    @property
    def capabilities(self) -> Capabilities:
        """See ``ObjectStore``."""
        return Capabilities(rsyncable=False, sendfile=False, changes_together=3)

    def run(self, device: str, effort: Effort) -> Run:
        """See ``ObjectStore``: no call blocks here."""
        self.check_device(device)
        return run_inline

    @property
    def maintenance(self) -> MemoryMaintenance:
        """See ``ObjectStore``."""
        return MemoryMaintenance(self)

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        """See ``ObjectStore``."""
        return self._load(key, options)[0]

    def open(self, key: ObjectKey, options: ReadOptions) -> MemoryObject:
        """See ``ObjectStore``."""
        state, body = self._load(key, options)
        where = self._where(key)
        return MemoryObject(state, body, lambda reason: self.quarantine(where, reason))

    def edit(
        self,
        key: ObjectKey,
        options: ReadOptions,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ) -> MemoryEdit:
        """See ``ObjectStore``."""
        self._where(key)
        return MemoryEdit(self, key, options, next_part_power)

    def relink(self, key: ObjectKey, partition: str) -> None:
        """See ``ObjectStore``."""
        with self._lock:
            left = self._directories.get(self._where(key._replace(partition=partition)))
            if left:
                directory = self.files(key)
                directory.update({name: file for name, file in left.items() if name not in directory})
                self._clean_up(directory, key.policy)

    def reserve(self, key: ObjectKey, writer: Timestamp) -> MemoryReservation:
        """See ``ObjectStore``."""
        where = self._where(key)
        with self._lock:
            holder = self._reserved.get(where)
            if holder is not None:
                raise AlreadyReserved(holder.writer)
            last = self._abandoned.get(where, ZERO)
            if last >= writer:
                raise AlreadyReserved(last, is_over=True)

            def forget(vanished: Timestamp | None = None) -> None:
                with self._lock:
                    self._reserved.pop(where, None)
                    self._abandoned[where] = last if vanished is None else vanished

            made = self._reserved[where] = MemoryReservation(self.clock, writer, forget)
            return made

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> MemoryDraft:
        """See ``ObjectStore``."""
        self._where(key)
        free = self._free_bytes(key.device)
        if free is not None and (size or 0) > free:
            raise NoSpace(f"{free} bytes free")
        return MemoryDraft(free, chunk_size_for(size) if etag_follows else None)

    def hashes(
        self,
        device: str,
        partition: str,
        policy: Policy,
        *,
        recalculate: Iterable[str] = (),
        list_suffixes: bool = False,
    ) -> Mapping[str, SuffixHash]:
        """See ``ObjectStore``; nothing is cached, so everything is always current."""
        self.check_device(device)
        feeds: dict[str, SuffixFeeds] = {}
        with self._lock:
            for object_hash in self.inventory(device, partition, policy):
                directory = self._directories[device, policy.index, partition, object_hash]
                self._clean_up(directory, policy)
                if directory:
                    feed = feeds.setdefault(suffix_of(object_hash), SuffixFeeds())
                    feed.add(choose(directory, policy.ec), is_ec=policy.is_ec)
        return {suffix: feed.result(is_ec=policy.is_ec) for suffix, feed in feeds.items()}

    def _clean_up(self, directory: Directory, policy: Policy) -> None:
        """Remove what the rules of reclaiming allow."""
        choice = choose(directory, policy.ec)
        for file in files_to_remove(
            choice, self.rules, self.clock.time(), lambda name: directory[name].mtime
        ):
            directory.pop(file.name, None)

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``; nothing is cached here."""
        self.check_device(device)

    def partitions(self, device: str, policy: Policy) -> list[str]:
        """See ``ObjectStore``."""
        self.check_device(device)
        return list({w[2] for w in list(self._directories) if w[:2] == (device, policy.index)})

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """See ``ObjectStore``."""
        self.check_device(device)
        prefix = (device, policy.index, partition)
        found = [w[3] for w, directory in self._directories.items() if w[:3] == prefix and directory]
        if suffixes is not None:
            wanted = set(suffixes)
            found = [name for name in found if suffix_of(name) in wanted]
        return iter(sorted(found, key=lambda name: (suffix_of(name), name)))

    @contextmanager
    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> Iterator[None]:
        """See ``ObjectStore``; a device has one replication slot."""
        self.check_device(device)
        wanted = {f"{device}/{policy.index}/{partition}"} | ({device} if incoming else set())
        deadline = time.monotonic() + timeout_s
        while self._replicating & wanted:
            if time.monotonic() >= deadline:
                raise LockTimeout(f"{device}/{partition}", timeout_s)
            pause(_LOCK_PAUSE_S)
        self._replicating |= wanted
        try:
            yield
        finally:
            self._replicating -= wanted

    def __repr__(self) -> str:
        return f"MemoryStore({sorted(self.available)}, {len(self._directories)} objects)"


class MemoryReservation:
    """``Reservation`` of the in-memory engine."""

    def __init__(self, clock: Clock, writer: Timestamp, forget: Callable[..., object]):
        self.writer = writer
        self._clock = clock
        self._forget: Callable[..., object] | None = forget
        self._until_s = clock.monotonic() + LEASE_S

    def holds(self) -> bool:
        """See ``Reservation``."""
        return self._forget is not None and self._clock.monotonic() < self._until_s

    def release(self) -> None:
        """See ``Reservation``."""
        forget, self._forget = self._forget, None
        if forget is not None:
            forget()

    def complete(self) -> None:
        """See ``Reservation``."""
        forget, self._forget = self._forget, None
        if forget is not None:
            forget(ZERO)

    def abandon(self) -> None:
        """See ``Reservation``."""
        forget, self._forget = self._forget, None
        if forget is not None:
            forget(self.writer)


class MemoryObject:
    """``StoredObject`` of bytes."""

    def __init__(self, state: ObjectState, body: bytes, quarantine: Callable[[str], None]) -> None:
        self.state = state
        self.keep_cache = self.check_md5 = True
        self._body = body
        self._quarantine = quarantine

    def _verify(self) -> None:
        digest = md5(self._body, usedforsecurity=False).hexdigest()
        if digest != self.state.metadata.get("ETag"):
            reason = f"MD5 of the body is {digest}"
            self._quarantine(reason)
            raise CorruptBody(reason)

    def read_cached(self, size_max: int) -> bytes | None:
        """See ``StoredObject``."""
        if len(self._body) > size_max:
            return None
        self._verify()
        return self._body

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """See ``StoredObject``."""
        self._verify()
        for begin in range(start, stop, BLOCK_BYTES):
            yield self._body[begin : min(stop, begin + BLOCK_BYTES)]

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """See ``StoredObject``."""
        return iter(self.blocks(start, stop))

    def close(self) -> None:
        """Do nothing: no resources are held."""


class MemoryDraft:
    """``Draft`` in memory."""

    def __init__(self, room: int | None, sums_chunk: int | None) -> None:
        self.size = 0
        self._room = room
        self._pieces: list[bytes] = []
        #: The chunk of the sender's sums, None when the MD5 is computed here.
        self._sums_chunk = sums_chunk
        self._etag = ""

    def may_block(self, size_bytes: int) -> bool:
        """See ``Draft``."""
        return False

    def write(self, data: bytes | memoryview) -> None:
        """See ``Draft``."""
        self.size += len(data)
        if self._room is not None and self.size > self._room:
            raise NoSpace(f"{self._room} bytes free")
        self._pieces.append(bytes(data))

    @property
    def body(self) -> bytes:
        """Return all bytes written so far."""
        return b"".join(self._pieces)

    @property
    def etag(self) -> str:
        """See ``Draft``."""
        if self._sums_chunk is not None:
            return self._etag
        return md5(self.body, usedforsecurity=False).hexdigest()

    def accept_etag(self, etag: str, sums: str) -> bool:
        """See ``Draft``."""
        assert self._sums_chunk is not None
        mine = ChunkSums(self._sums_chunk)
        mine.update(self.body)
        if mine.digest() != sums:
            return False
        self._etag = etag
        return True

    def discard(self) -> None:
        """See ``Draft``."""
        self._pieces = []


class MemoryEdit:
    """``Edit`` under the store's only lock."""

    def __init__(self, store: MemoryStore, key: ObjectKey, options: ReadOptions, next_part_power: int | None):
        self.state = ObjectState()
        self._store = store
        self._key = key
        self._options = options
        self._next_power = next_part_power

    def __enter__(self) -> MemoryEdit:
        self._store._lock.acquire()
        try:
            self.state = self._store.stat(self._key, self._options)
        except BaseException:
            self._store._lock.release()
            raise
        return self

    def __exit__(self, *_args: object) -> None:
        self._store._lock.release()

    def draft(self, size: int | None, *, etag: str = "") -> MemoryDraft:
        """See ``Edit``."""
        return self._store.draft(self._key, size)

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """See ``Edit``."""
        assert isinstance(draft, MemoryDraft)
        ec = self._key.policy.ec
        if ec is not None and (fragment is None or not 0 <= fragment < ec.fragments):
            raise BadFragmentIndex(f"fragment index {fragment} is not below {ec.fragments}")
        name = data_name(timestamp, fragment if ec is not None else None)
        self._add(name, metadata, draft.body, clean=ec is None)

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        old = data_name(timestamp, fragment)
        file = self._store.files(self._key).get(old)
        if file is None and not self._is_superseded(timestamp):
            raise FileNotFoundError(old)
        for key in self._keys():
            directory = self._store.files(key)
            directory.pop(old, None)
            if file is not None:
                directory[data_name(timestamp, fragment, durable=True)] = file
            self._store._clean_up(directory, key.policy)

    def abort(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        self._store.files(self._key).pop(data_name(timestamp, fragment), None)

    def _is_superseded(self, timestamp: Timestamp) -> bool:
        choice = choose(self._store.files(self._key), self._key.policy.ec)
        if choice.tombstone is not None and choice.tombstone.timestamp > timestamp:
            return True
        return choice.durable_timestamp is not None and choice.durable_timestamp >= timestamp

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """See ``Edit``."""
        self._add(meta_name(timestamp, ctype_timestamp), metadata, b"")

    def delete(self, timestamp: Timestamp) -> None:
        """See ``Edit``."""
        path = self._key.path
        name = f"/{path.account}/{path.container}/{path.obj}"
        self._add(tombstone_name(timestamp), {"X-Timestamp": timestamp.internal, "name": name}, b"")

    def _add(self, name: str, metadata: Metadata, body: bytes, *, clean: bool = True) -> None:
        for key in self._keys():
            directory = self._store.files(key)
            directory[name] = MemoryFile(dict(metadata), body, self._store.clock.time())
            if clean:
                self._store._clean_up(directory, key.policy)

    def _keys(self) -> list[ObjectKey]:
        """Return the keys under which the object is changed."""
        keys = [self._key]
        if self._next_power is not None:
            target = str(int(self._key.hash[:8], 16) >> (32 - self._next_power))
            if target != self._key.partition:
                keys.append(self._key._replace(partition=target))
        return keys


class MemoryMaintenance:
    """``Maintenance`` in memory."""

    def __init__(self, store: MemoryStore):
        self._store = store

    def find(self, location: Location, options: ReadOptions) -> Found:
        """See ``Maintenance``."""
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        while True:
            state = self._store.stat(key, options)
            name = state.metadata.get("name")
            if name is None:
                return Found(None, state)
            root, *parts = name.split("/", 3)
            if not root and len(parts) == 3 and self._store.hasher.hexdigest(*parts) == location.hash:
                return Found(key._replace(path=EntityPath(*parts)), state)
            self.quarantine(location, f"{name!r} does not belong into {location.hash}")

    def _where(self, location: Location) -> Where:
        return location.device, location.policy.index, location.partition, location.hash

    def quarantine(self, location: Location, reason: str) -> None:
        """See ``Maintenance``."""
        self._store.quarantine(self._where(location), reason)

    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        """See ``Maintenance``; there are no partial files here."""
        before = len(self._store.quarantined)
        options = ReadOptions(self._store.clock.time(), open_expired=True)
        found = self.find(location, options)
        read = 0
        if found.key is not None and found.state.kind == LIVE:
            try:
                walk = archive_walk(location.policy, found.state)
                if full:
                    read = self._read_all(self._store.open(found.key, options), walk, pace)
            except Damaged as error:
                self.quarantine(location, str(error))
            except CorruptBody:
                # It is quarantined already, which the report below tells.
                pass
        if len(self._store.quarantined) > before:
            return AuditReport(Found(None, ObjectState()), self._store.quarantined[-1][1])
        return AuditReport(found, None, read)

    def _read_all(self, stored: MemoryObject, walk: FragmentWalk | None, pace: Pace) -> int:
        read = 0
        for piece in stored.blocks(0, stored.state.size):
            if walk is not None:
                walk.feed(piece)
            read += len(piece)
            pace(len(piece))
        if walk is not None:
            walk.finish()
        return read

    def reading_order(self, device: str, policy: Policy) -> list[str]:
        """See ``Maintenance``: the order of partitions."""
        return []

    def locations_in(self, device: str, part: str, policies: Sequence[Policy]) -> Iterator[Location]:
        """See ``Maintenance``."""
        return iter(())

    def purge_all(self, purges):
        """See ``Maintenance``."""
        for location, synced in purges:
            self.purge(location, synced)

    def purge(self, location: Location, synced: SyncedVersion) -> bool:
        """See ``Maintenance``."""
        with self._store._lock:
            directory = self._store._directories.get(self._where(location), {})
            at, index = synced.timestamp, synced.fragment
            window_s = self._store.rules.commit_window_s
            wanted = {tombstone_name(at), data_name(at, index)}
            if index is not None:
                wanted.add(data_name(at, index, durable=True))
                file = directory.get(data_name(at, index))
                if not synced.durable and file and file.mtime >= self._store.clock.time() - window_s:
                    wanted.remove(data_name(at, index))
            gone = wanted & directory.keys()
            if gone and not any(name.endswith(DATA) for name in directory.keys() - gone):
                metas = {name for name in directory if name.endswith(META)}
                newest = max((parse_name(name).timestamp for name in metas), default=at)
                if tombstone_name(at) in gone:
                    gone |= metas
                elif newest > (synced.meta_timestamp or at):
                    gone = set()
                elif not synced.keeps_metadata:
                    gone |= metas
            for name in gone:
                del directory[name]
            if not directory:
                self._store._directories.pop(self._where(location), None)
            return not directory

    def remove_lone_metadata(self, locations):
        """See ``Maintenance``."""
        with self._store._lock:
            for location in locations:
                if all(
                    name.endswith(META) for name in self._store._directories.get(self._where(location), {})
                ):
                    self._store._directories.pop(self._where(location), None)

    def change_token(self, device: str, partition: str, policy: Policy) -> str:
        """See ``Maintenance``; there is no token, because hashing costs nothing here."""
        self._store.check_device(device)
        return ""

    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        """See ``Maintenance``; a partition is always idle, because hashing costs nothing here."""
        self._store.check_device(device)
        return math.inf

    def confirm(self, device: str, partitions: Sequence[str], policy: Policy) -> None:
        """See ``Maintenance``; nothing is ever lost here."""
        self._store.check_device(device)

    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``Maintenance``; nothing survives a power cut here anyhow."""
        self._store.check_device(device)

    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        """See ``Maintenance``."""
        self._store.check_device(device)
        return []

    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        """See ``Maintenance``; empty partitions do not exist here."""
        return not any(self._store.inventory(device, partition, policy))


# The container updates that the engine without files keeps.


class MemoryUpdates:
    """``PendingUpdates`` in memory; there is one group, and nothing can be damaged."""

    def __init__(self, hasher: PathHasher, check_device: Callable[[str], None]):
        self._hasher = hasher
        self._check_device = check_device
        self._kept: dict[UpdateRef, PendingUpdate] = {}

    def save(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        """See ``PendingUpdates``."""
        self._check_device(device)
        name = f"{self._hasher.hexdigest(*update.path)}-{timestamp.internal}"
        ref = UpdateRef(device, policy, name)
        self._kept[ref] = PendingUpdate(ref, timestamp, update)

    def groups(self, device: str, policy: Policy) -> list[str]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        return ["all"] if any(ref[:2] == (device, policy) for ref in self._kept) else []

    def objects(self, device: str, policy: Policy, group: str) -> tuple[list[list[UpdateRef]], list[str]]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        found = sorted((ref for ref in self._kept if ref[:2] == (device, policy)), reverse=True, key=_name)
        return [list(refs) for _, refs in groupby(found, key=lambda ref: ref.name.partition("-")[0])], []

    def unknown_policies(self, device: str, policies: Iterable[Policy]) -> list[str]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        known = set(policies)
        kept = {ref.policy for ref in self._kept if ref.device == device}
        return sorted(policy.name for policy in kept if policy not in known)

    def load(self, ref: UpdateRef) -> PendingUpdate | None:
        """See ``PendingUpdates``."""
        self._check_device(ref.device)
        return self._kept.get(ref)

    def rewrite(self, pending: PendingUpdate) -> None:
        """See ``PendingUpdates``."""
        self._check_device(pending.ref.device)
        self._kept[pending.ref] = pending

    def remove(self, ref: UpdateRef) -> bool:
        """See ``PendingUpdates``."""
        self._check_device(ref.device)
        return self._kept.pop(ref, None) is not None

    def quarantine(self, ref: UpdateRef, reason: str = "") -> str | None:
        """See ``PendingUpdates``."""
        return str(ref) if self.remove(ref) else None


def _name(ref: UpdateRef) -> str:
    return ref.name
