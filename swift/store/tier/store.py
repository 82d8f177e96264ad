"""The filesystem engine with a tier around it: reads ask the tier first, changes tell it beforehand.

The tier is the innermost wrapper, because it has to know every change of the disk: it is told of them by
the engine itself (``store.changes``), whoever asked for them. What it cannot answer, the engine does.
"""

from __future__ import annotations

from collections.abc import Iterable

from swift.policy.policy import Policy
from swift.store.api import ObjectKey, ObjectState, StoredObject, Upkeep, Viewpoint
from swift.store.core import EngineCore
from swift.store.engine import FileStore
from swift.store.errors import Damaged, FilesChanged
from swift.store.layered import ForwardingStore, ForwardingUpkeep
from swift.store.layout import is_suffix, partition_dir
from swift.store.place import Place
from swift.store.tier.directory import Where, state_in
from swift.store.tier.entry import Snapshot
from swift.store.tier.tier import Tier


class TierChanges:
    """``Changes`` that tell a tier."""

    def __init__(self, tier: Tier):
        self._tier = tier

    def change(self, device_path: str, directory: str) -> Change:
        """See ``Changes``."""
        kind = directory[len(device_path) + 1 :].partition("/")[0]
        return Change(self._tier, Where(device_path, directory, self._tier.fragments.get(kind)))


class Change:
    """One change of the disk."""

    __slots__ = ("_tier", "_where", "_begun")

    def __init__(self, tier: Tier, where: Where):
        self._tier = tier
        self._where = where

    def __enter__(self) -> Change:
        self._begun = self._tier.begin(self._where.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._tier.end(self._begun, self._where, is_done=kind is None)


class TierStore(ForwardingStore):
    """``FileStore`` of one policy with a tier."""

    def __init__(self, inner: FileStore, tier: Tier, policy: Policy):
        super().__init__(inner)
        self.files = inner
        self.tier = tier
        self._fragments = None if policy.ec is None else policy.ec.fragments
        attach(inner.core, tier)
        if self._fragments is not None:
            tier.fragments[f"objects-{policy.index}" if policy.index else "objects"] = self._fragments

    @property
    def core(self) -> EngineCore:
        """What the engine's parts share."""
        return self.files.core

    @property
    def upkeep(self) -> Upkeep:
        """See ``ObjectStore``."""
        return ForwardingUpkeep(self.files.upkeep)

    # --- reading -------------------------------------------------------------------------------------

    def look(self, key: ObjectKey, view: Viewpoint) -> ObjectState:
        """See ``ObjectStore``."""
        place = self.core.place(key)
        snapshot = self._known(place)
        if snapshot is not None:
            try:
                return state_in(snapshot, key, view)[0]
            except Damaged:
                self._drop(place)
        return self.files.look(key, view)

    def open(self, key: ObjectKey, view: Viewpoint) -> StoredObject:
        """See ``ObjectStore``."""
        place = self.core.place(key)
        snapshot = self._known(place)
        if snapshot is not None:
            try:
                state, choice = state_in(snapshot, key, view)
                loaded = self.tier.reader.open(self._where(place), snapshot, choice, state)
                if loaded is not None:
                    return self.files.opened(place, loaded)
            except (Damaged, OSError):
                pass
            self._drop(place)
        return self.files.open(key, view)

    def _where(self, place: Place) -> Where:
        return Where(place.device, place.directory, self._fragments)

    def _known(self, place: Place) -> Snapshot | None:
        """The directory from the tier, or from the disk in the form that the tier keeps."""
        where = self._where(place)
        found = self.tier.find(where)
        if found is not None:
            return found
        try:
            return self.tier.take(where)
        except (Damaged, FilesChanged, OSError):
            # The engine knows what to do about it.
            return None

    def _drop(self, place: Place) -> None:
        self.tier.forget(place.device, [place.directory])

    # --- what others changed ------------------------------------------------------------------------

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``: others have written here, so what is known of it is dropped."""
        names = [suffix for suffix in suffixes if is_suffix(suffix)]
        device_path = self.core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        self.files.invalidate(device, partition, policy, names)
        self.tier.forget(device_path, [f"{path}/{suffix}" for suffix in names])


def attach(core: EngineCore, tier: Tier) -> None:
    """Have an engine tell a tier of its changes; whoever changes objects without a ``TierStore`` needs it."""
    core.changes = TierChanges(tier)
