"""The filesystem engine with a tier around it: reads try the tier first, changes invalidate it beforehand.

The tier is the innermost wrapper, because it has to know every change of the disk: it is told of them by
the engine itself (``store.core``), for any caller. The engine serves what the tier cannot.

Entries of the class ``hashes`` are suffix hashes of partitions, and marks that say if they are the same. An
entry of another epoch is not compared with the disk but dropped: hashes that were computed before a boot or
while no process was watching are those that the engine itself verifies (decision 0005).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Unpack

from swift.policy.policy import Policy
from swift.store.api import (
    LIVE,
    Found,
    HashesOptions,
    Location,
    Maintenance,
    ObjectKey,
    ObjectState,
    ReadOptions,
    StoredObject,
)
from swift.store.core import EngineCore
from swift.store.engine import FileStore
from swift.store.errors import Damaged, FilesChanged
from swift.store.hashes import SuffixHash, cache_stamp
from swift.store.layered import ForwardingMaintenance, ForwardingStore
from swift.store.layout import ObjectPath, is_suffix, partition_dir
from swift.store.lmdbindex import IndexFailed
from swift.store.metadata import decode_metadata
from swift.store.reader import ANY_NAME
from swift.store.tier.bodies import BodyCache, CachingObject, PiecedObject, SmallObject
from swift.store.tier.directory import HashDirectory, path_of, state_in
from swift.store.tier.entries import Entries, Note, ReadStart, device_of
from swift.store.tier.entry import FileFacts, Hashes, Snapshot
from swift.store.tier.policy import DATA, DROP, HASHES, REFRESH, SMALL_DATA
from swift.store.tier.tier import CacheTier
from swift.store.verified import FileObject

#: In write-back: how many suffixes may be dirty on the disk before they are written there.
DEFERRED_MAX = 256


class PartitionHashes:
    """Hashes in a tier; every call answers None, and keeps nothing, where it cannot be used."""

    def __init__(self, tier: CacheTier):
        self._tier = tier

    def find(self, device_path: str, partition: bytes) -> Hashes | None:
        """Return the valid entry of a partition."""
        tier = self._tier
        try:
            entries = tier.entries()
            rules = tier.rules_of(HASHES)
            if entries is None or rules is None or not rules.means.serves:
                return None
            tier.watch(device_path)
            found = entries.find_hashes(partition)
        except IndexFailed as error:
            tier.failed(str(error))
            return None
        except OSError:
            return None
        device = device_of(partition)
        if found is not None and found.epoch != entries.shared_state.epoch(device):
            found = None
        tier.count(HASHES, device, "misses" if found is None else "hits")
        return found

    def start(self, partition: bytes) -> ReadStart | None:
        """Call it before hashes are computed that may be kept; None when they may not."""
        tier = self._tier
        rules = tier.rules_of(HASHES)
        if rules is None or not (tier.may_cache(HASHES, partition) or rules.means.on_write != DROP):
            return None
        try:
            entries = tier.entries()
            return None if entries is None else entries.start(partition)
        except OSError:
            return None

    def keep(self, partition: bytes, start: ReadStart, hashes: dict[str, SuffixHash]) -> None:
        """Keep what was computed since ``start``, unless something could not be."""
        tier = self._tier
        known = {suffix: value for suffix, value in hashes.items() if value is not None}
        try:
            entries = tier.entries()
            if entries is None or len(known) != len(hashes):
                return
            kept = entries.keep_hashes(
                partition, start, Hashes(start.epoch, tier.dependencies.now_ns(), known)
            )
            tier.count(HASHES, device_of(partition), "kept" if kept else "rejected")
        except (IndexFailed, OSError) as error:
            tier.failed(str(error))

    @property
    def defers(self) -> bool:
        """True if what is computed need not be on the disk."""
        rules = self._tier.rules_of(HASHES)
        return rules is not None and rules.means.defers and not self._tier.failure


class TierChanges:
    """``Changes`` that tell a tier."""

    def __init__(self, tier: CacheTier):
        self._tier = tier

    def change(self, device_path: str, directory: str) -> Change:
        kind = directory[len(device_path) + 1 :].partition("/")[0]
        return Change(self._tier, HashDirectory(device_path, directory, self._tier.fragments.get(kind)))


class Change:
    """One change of the disk."""

    __slots__ = ("_tier", "_hash_dir", "_begun")

    def __init__(self, tier: CacheTier, hash_dir: HashDirectory):
        self._tier = tier
        self._hash_dir = hash_dir

    def __enter__(self) -> Change:
        self._begun = self._tier.begin(self._hash_dir)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._tier.end(self._begun, self._hash_dir, is_done=kind is None)


class TierStore(ForwardingStore):
    """``FileStore`` of one policy with a tier."""

    def __init__(self, inner: FileStore, tier: CacheTier, policy: Policy):
        super().__init__(inner)
        self.files = inner
        self.tier = tier
        self._fragments = None if policy.ec is None else policy.ec.fragments
        attach(inner.core, tier)
        self._hashes = PartitionHashes(tier)
        self._bodies = BodyCache(tier)
        tier.with_body = self._with_body
        if self._fragments is not None:
            tier.fragments[f"objects-{policy.index}" if policy.index else "objects"] = self._fragments

    @property
    def core(self) -> EngineCore:
        """Shared parts of the engine."""
        return self.files.core

    @property
    def maintenance(self) -> Maintenance:
        return TierMaintenance(self)

    # --- reading -------------------------------------------------------------------------------------

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        object_path = self.core.object_path(key)
        state = self.known_state(object_path, key, options)
        return self.files.stat(key, options) if state is None else state

    def known_state(
        self, object_path: ObjectPath, key: ObjectKey, options: ReadOptions
    ) -> ObjectState | None:
        """Return the state if it can be told without the engine. Raises ``HashCollision``."""
        snapshot = self._known(object_path)
        if snapshot is not None:
            try:
                return state_in(snapshot, key, options)[0]
            except Damaged:
                self._drop(object_path)
        return None

    def open(self, key: ObjectKey, options: ReadOptions) -> StoredObject:
        object_path = self.core.object_path(key)
        start = self._start(object_path)
        snapshot = self._known(object_path)
        if snapshot is not None:
            try:
                found = self._opened(object_path, snapshot, start, key, options)
                if found is not None:
                    return found
            except (Damaged, OSError):
                pass
            self._drop(object_path)
        return self.files.open(key, options)

    def _start(self, object_path: ObjectPath) -> ReadStart | None:
        """Return the state that must not change until the body is cached; None if it is not cached."""
        if not (self._bodies.serves(SMALL_DATA) or self._bodies.serves(DATA)):
            return None
        try:
            entries = self.tier.entries()
        except OSError:
            return None
        return None if entries is None else entries.start(self._hash_dir(object_path).path)

    def _opened(
        self,
        object_path: ObjectPath,
        snapshot: Snapshot,
        start: ReadStart | None,
        key: ObjectKey,
        options: ReadOptions,
    ) -> StoredObject | None:
        """Return an object from its entry; None when its file is gone."""
        hash_dir = self._hash_dir(object_path)
        state, choice = state_in(snapshot, key, options)
        # With several bodies, as archives may be, it would have to be told whose it is.
        facts = None if start is None or state.kind != LIVE else snapshot.only_body
        if facts is not None:
            body = self._bodies.small(hash_dir.path, snapshot, state)
            if body is not None:
                return SmallObject(state, body)
        loaded = self.tier.reader.open(hash_dir, snapshot, choice, state)
        if loaded is None:
            return None
        opened = self.files.opened(object_path, loaded)
        if facts is None or start is None:
            return opened
        return self._keeping(opened, hash_dir.path, snapshot, facts, start)

    def _keeping(
        self, opened: FileObject, path: bytes, snapshot: Snapshot, facts: FileFacts, start: ReadStart
    ) -> StoredObject:
        """Return an object whose body is kept when it is read, if it is to be."""
        tier, bodies, state = self.tier, self._bodies, opened.state
        etag = state.etag or ""
        if bodies.is_small(state):
            if not bodies.serves(SMALL_DATA) or not tier.may_cache(SMALL_DATA, path):
                return opened
            return CachingObject(opened, lambda data: bodies.cache_small(path, start, snapshot, etag, data))
        if not bodies.serves(DATA) or not state.size:
            return opened
        may_cache = tier.may_cache(DATA, path)

        def keep(key: bytes, owner: int, data: bytes) -> None:
            if may_cache:
                bodies.cache_piece(path, key, owner, start, data)

        return PiecedObject(opened, bodies, path, facts, keep, opened.has_sums)

    def _with_body(
        self, hash_dir: HashDirectory, entries: Entries, note: Note, snapshot: Snapshot
    ) -> Snapshot:
        """Return the entry that a write leaves, with its body if the mode of small bodies wants that."""
        rules = self.tier.rules_of(SMALL_DATA)
        facts = snapshot.only_body
        if rules is None or facts is None:
            return snapshot
        wanted = rules.means.on_write
        if wanted == DROP or (wanted != REFRESH and not note.had_body):
            return snapshot
        if not 0 < facts.size <= self.tier.settings.small_data_max:
            return snapshot
        data = self.tier.reader.body(hash_dir, facts)
        etag = decode_metadata(facts.blob).get("ETag", "")
        if md5(data, usedforsecurity=False).hexdigest() != etag:
            return snapshot
        return self._bodies.write_small(entries, snapshot, etag, data) or snapshot

    def _hash_dir(self, object_path: ObjectPath) -> HashDirectory:
        return HashDirectory(object_path.device, object_path.directory, self._fragments)

    def _known(self, object_path: ObjectPath) -> Snapshot | None:
        """Return the directory from the tier, or from the disk in the form that the tier keeps."""
        hash_dir = self._hash_dir(object_path)
        found = self.tier.find(hash_dir)
        if found is not None:
            return found
        try:
            return self.tier.take(hash_dir)
        except (Damaged, FilesChanged, OSError):
            # The engine knows what to do about it.
            return None

    def _drop(self, object_path: ObjectPath) -> None:
        self.tier.forget(object_path.device, [object_path.directory])

    # --- partitions ----------------------------------------------------------------------------------

    def hashes(
        self, device: str, partition: str, policy: Policy, **how: Unpack[HashesOptions]
    ) -> Mapping[str, object]:
        """See ``ObjectStore``. A request to recalculate suffixes bypasses the cached hashes."""
        device_path = self.core.devices.path(device)
        directory = partition_dir(device_path, policy, partition)
        path = path_of(device_path, directory)
        wanted = [*filter(is_suffix, how.get("recalculate", ()))]
        list_suffixes = how.get("list_suffixes", False)
        if wanted:
            self.tier.forget(device_path, [f"{directory}/{suffix}" for suffix in wanted])
        known = None if wanted else self._hashes.find(device_path, path)
        if known is not None and not list_suffixes and cache_stamp(self.core.disk, directory):
            return known.hashes
        start = self._hashes.start(path)
        if start is not None and self._hashes.defers and not wanted and not list_suffixes:
            try:
                result = self.files.hasher(device, partition, policy).get_deferred(DEFERRED_MAX)
            except NotADirectoryError:
                result = self.files.hashes(device, partition, policy)
        else:
            result = self.files.hashes(
                device, partition, policy, recalculate=wanted, list_suffixes=list_suffixes
            )
        # What was true and still is stays as it is: its mark tells others that nothing has happened.
        if start is not None and (known is None or known.hashes != result):
            self._hashes.keep(path, start, result)
        return result

    def known_change_token(self, device: str, partition: str, policy: Policy) -> str:
        """Return another text whenever the hashes are others; empty when the tier does not know them."""
        found = self._known_hashes(device, partition, policy)
        if found is None:
            return ""
        directory = partition_dir(self.core.devices.path(device), policy, partition)
        stamp = cache_stamp(self.core.disk, directory)
        return f"tier-{found.epoch:x}-{found.made_ns:x}/{stamp}" if stamp else ""

    def known_idle_s(self, device: str, partition: str, policy: Policy) -> float | None:
        """For how long nothing has changed for sure; None when the tier does not know the hashes."""
        found, now_ns = self._known_hashes(device, partition, policy), self.tier.dependencies.now_ns()
        # A clock that was set back says nothing.
        return None if found is None or found.made_ns > now_ns else (now_ns - found.made_ns) / 1e9

    def _known_hashes(self, device: str, partition: str, policy: Policy) -> Hashes | None:
        device_path = self.core.devices.path(device)
        path = path_of(device_path, partition_dir(device_path, policy, partition))
        return self._hashes.find(device_path, path)

    # --- what others changed ------------------------------------------------------------------------

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``: others have written here, so what is known of it is dropped."""
        names = [suffix for suffix in suffixes if is_suffix(suffix)]
        device_path = self.core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        self.files.invalidate(device, partition, policy, names)
        self.tier.forget(device_path, [f"{path}/{suffix}" for suffix in names])


class TierMaintenance(ForwardingMaintenance):
    """Maintenance operations; stats of objects and partitions cost no seek."""

    def __init__(self, store: TierStore):
        super().__init__(store.files.maintenance)
        self._store = store

    def find(self, location: Location, options: ReadOptions) -> Found:
        store = self._store
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        state = store.known_state(store.core.object_path(key), key, options)
        if state is not None:
            try:
                return store.files.maintenance.found(location, state)
            except Damaged:
                # The engine finds the same on the disk and quarantines it.
                pass
        return super().find(location, options)

    def change_token(self, device: str, partition: str, policy: Policy) -> str:
        return self._store.known_change_token(device, partition, policy) or super().change_token(
            device, partition, policy
        )

    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        known_s = self._store.known_idle_s(device, partition, policy)
        return super().idle_s(device, partition, policy) if known_s is None else known_s


def attach(core: EngineCore, tier: CacheTier) -> None:
    """Make an engine invalidate a tier on changes; needed by users without a ``TierStore``."""
    core.changes = TierChanges(tier)
