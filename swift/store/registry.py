"""Registry of object engines by policy; third parties plug in here.

A policy's ``diskfile_module`` names an entry point of the group ``swift.diskfile``, e.g.
``egg:mypackage#my_engine``. The entry point is a callable that takes ``EngineParts`` and a ``Policy`` and
returns an ``ObjectStore``. Without a name, the filesystem engine of this project is used.

Around every engine come the wrappers that ``store_wrappers`` names, entry points of the group
``swift.store_wrapper``: callables that take the engine to wrap, ``EngineParts`` and the ``Policy``. They
override what they are about in the ``Forwarding`` classes of ``store.layered``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from swift import DISTRIBUTION
from swift.base.checksum import CHUNK_BYTES
from swift.base.clock import Clock
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.platform.devices import Devices, ReserveRule, SpaceGuard
from swift.platform.disk import Disk
from swift.platform.syncing import SharedSyncs, SingleSyncs, Syncs
from swift.policy.policy import Policy
from swift.store.api import Capabilities, ObjectStore
from swift.store.calls import InlinePools, Pools
from swift.store.chooser import ReclaimRules
from swift.store.core import EngineCore, EngineRules
from swift.store.engine import FileStore
from swift.store.handle import StoreHandle
from swift.store.packed.engine import PackedStore
from swift.store.packed.opening import IndexOpening
from swift.store.packed.settings import PackedSettings
from swift.store.packed.space import SpaceHandle
from swift.store.packed.writer import PackedRules
from swift.telemetry.metrics import Registry

ENTRY_POINT_GROUP = "swift.diskfile"
WRAPPER_GROUP = "swift.store_wrapper"


@dataclass(frozen=True)
class EngineParts:
    """Dependencies of every engine."""

    devices: Devices
    hasher: PathHasher
    clock: Clock
    disk: Disk = field(default_factory=Disk)
    reserve: ReserveRule | None = None
    preallocate: bool = True
    reclaim_age_s: float = 604800.0
    commit_window_s: float = 60.0
    sync_every_bytes: int = 512 << 20
    #: See ``SharedSyncs``; 0: every change is synced by itself.
    shared_sync_dirty_limit: int = 0
    read_bytes: int = CHUNK_BYTES
    #: Nodes that may replicate into a device at the same time; 0: any number.
    replications_per_device: int = 1
    notice: Callable[[str], None] = lambda _text: None
    #: The numbers of this process.
    metrics: Registry = field(default_factory=Registry)
    #: Pools for blocking calls; engines that wait for no disk need none.
    pools: Pools = field(default_factory=InlinePools)
    #: Options of the packed engine.
    packed: PackedSettings = field(default_factory=PackedSettings)
    #: Made around the filesystem engine before all other wrappers, because it has to see every change.
    tier: TierFactory | None = None
    #: Names of the wrappers around every engine, the outermost first.
    wrappers: tuple[str, ...] = ()


EngineFactory = Callable[[EngineParts, Policy], ObjectStore]
#: Makes the cache tier of a policy around the filesystem engine.
TierFactory = Callable[[FileStore, Policy], ObjectStore]
WrapperFactory = Callable[[ObjectStore, EngineParts, Policy], ObjectStore]


def file_store(parts: EngineParts, _policy: Policy | None = None) -> FileStore:
    """Return the filesystem engine."""
    new_syncs: Callable[[Disk], Syncs] = SingleSyncs
    if parts.shared_sync_dirty_limit and parts.disk.tells_failures:
        new_syncs = partial(
            SharedSyncs, dirty_limit=parts.shared_sync_dirty_limit, monotonic=parts.clock.monotonic
        )
    return FileStore(_core(parts, new_syncs))


def packed_store(parts: EngineParts, _policy: Policy | None = None) -> PackedStore:
    """Return the packed engine."""
    settings = parts.packed
    return PackedStore(
        _core(parts, SingleSyncs),
        open_index=IndexOpening(settings, parts.disk),
        rules=PackedRules(settings.object_bytes_max, settings.volume_bytes),
    )


def _core(parts: EngineParts, new_syncs: Callable[[Disk], Syncs]) -> EngineCore:
    return EngineCore(
        parts.disk,
        parts.devices,
        hasher=parts.hasher,
        clock=parts.clock,
        space=SpaceGuard(parts.disk, parts.reserve, enabled=parts.preallocate),
        rules=EngineRules(
            reclaim=ReclaimRules(parts.reclaim_age_s, parts.commit_window_s),
            sync_every_bytes=parts.sync_every_bytes,
            read_bytes=parts.read_bytes,
            replications_per_device=parts.replications_per_device,
        ),
        new_syncs=new_syncs,
        notice=parts.notice,
        pools=parts.pools,
    )


#: The engines of this project by name, each shared by its policies. The first are the names of the peer's.
_BUILT_IN: dict[str, EngineFactory] = {
    "": file_store,
    "egg:swift#replication.fs": file_store,
    "egg:swift#erasure_coding.fs": file_store,
    "egg:swift#replication.packed": packed_store,
    "egg:swift#erasure_coding.packed": packed_store,
}


def load_factory(name: str) -> EngineFactory:
    """Return the factory behind ``egg:package#name`` or a bare entry point name; raises ``ConfigError``."""
    built_in = _BUILT_IN.get(name)
    if built_in is not None:
        return built_in
    factory: EngineFactory = _load(ENTRY_POINT_GROUP, name, "swift.conf: diskfile_module", _BUILT_IN)
    return factory


def load_wrapper(name: str) -> WrapperFactory:
    """Return the wrapper factory of a name written like an engine's; raises ``ConfigError``."""
    factory: WrapperFactory = _load(WRAPPER_GROUP, name, "store_wrappers")
    return factory


def _load(group: str, name: str, option: str, built_in: Iterable[str] = ()) -> Any:
    package, _, wanted = name.removeprefix("egg:").rpartition("#")
    # Configurations call this distribution by the name of its package.
    package = DISTRIBUTION if package == "swift" else package
    known = dict.fromkeys(each for each in built_in if each)
    for point in entry_points(group=group):
        if point.name == wanted and (not package or (point.dist and point.dist.name == package)):
            return point.load()
        provider = point.dist.name if point.dist else ""
        known[f"egg:{'swift' if provider == DISTRIBUTION else provider}#{point.name}"] = None
    there_are = f"installed are {', '.join(known)}" if known else "no package that has one is installed"
    raise ConfigError(f"{option} {name!r} is not an entry point of group {group}; {there_are}")


def is_packed(policy: Policy) -> bool:
    """Return True if a policy has the packed engine; raises ``ConfigError``."""
    return load_factory(policy.diskfile_module) is packed_store


class StoreRegistry:
    """The engine of each policy with its wrappers, made at first use; each built-in engine is shared."""

    def __init__(self, parts: EngineParts, wrappers: Sequence[WrapperFactory] | None = None):
        """``wrappers`` stand in for those that ``parts`` names. Raises ``ConfigError``."""
        self._parts = parts
        self._wrappers = [load_wrapper(name) for name in parts.wrappers] if wrappers is None else wrappers
        self._by_index: dict[int, ObjectStore] = {}
        self._handles: dict[tuple[int, str], StoreHandle] = {}
        self._files: FileStore | None = None
        self._packed: PackedStore | None = None

    def at(self, policy: Policy, device: str) -> StoreHandle:
        """Return the handle of a policy's engine on a device.

        Raises ``ConfigError``, and ``DeviceUnavailable`` for a device that was never there.
        """
        handle = self._handles.get((policy.index, device))
        if handle is None:
            handle = StoreHandle(self.engine(policy), device)
            self._handles[policy.index, device] = handle
        return handle

    def capabilities(self, policy: Policy) -> Capabilities:
        """Return what a policy's engine can do; raises ``ConfigError``."""
        return self.engine(policy).capabilities

    def engine(self, policy: Policy) -> ObjectStore:
        """Return the engine of a policy itself, whose calls block; raises ``ConfigError``."""
        store = self._by_index.get(policy.index)
        if store is None:
            store = self._made(policy)
            for wrap in reversed(self._wrappers):
                store = wrap(store, self._parts, policy)
            self._by_index[policy.index] = store
        return store

    def _made(self, policy: Policy) -> ObjectStore:
        factory, tier = load_factory(policy.diskfile_module), self._parts.tier
        if factory is packed_store:
            return self._packed_engine()
        if factory is not file_store:
            return factory(self._parts, policy)
        if self._files is None:
            self._files = file_store(self._parts)
        return self._files if tier is None else tier(self._files, policy)

    def _packed_engine(self) -> PackedStore:
        if self._packed is None:
            self._packed = packed_store(self._parts)
        return self._packed

    def space(self, device: str) -> SpaceHandle:
        """Return the space of a device of the packed engine.

        Raises ``DeviceUnavailable`` for a device that was never there.
        """
        store = self._packed_engine()
        return SpaceHandle(store.space, partial(store.run, device))

    def close(self) -> None:
        """Close what the engines hold open."""
        for store in (*self._by_index.values(), *filter(None, (self._packed,))):
            store.close()

    def __repr__(self) -> str:
        return f"StoreRegistry({sorted(self._by_index)})"
