"""Bases for wrappers of object engines: each forwards everything, a wrapper overrides what it is about.

``Forwarding*`` of nothing overridden are an engine like the wrapped one (``test/contract`` runs on them). A
wrapper around objects returns its own ``ForwardingObject`` from ``open``, one around changes its own
``ForwardingEdit`` from ``edit``. Wrappers are named by ``store_wrappers`` and composed by ``store.registry``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from swift.base.calls import Run
from swift.base.timestamp import Timestamp
from swift.http.body import FileBody
from swift.policy.policy import Policy
from swift.store.api import (
    AuditReport,
    Capabilities,
    Draft,
    Edit,
    Found,
    HandedOver,
    Location,
    ObjectKey,
    ObjectState,
    ObjectStore,
    Pace,
    PendingUpdates,
    Reservation,
    StoredObject,
    Upkeep,
    Viewpoint,
)
from swift.store.calls import Effort
from swift.store.metadata import Metadata


class ForwardingStore:
    """``ObjectStore`` that hands every call to ``inner``."""

    def __init__(self, inner: ObjectStore):
        self.inner = inner

    @property
    def capabilities(self) -> Capabilities:
        """See ``ObjectStore``; whoever changes bodies on the way has neither."""
        return self.inner.capabilities

    @property
    def upkeep(self) -> Upkeep:
        """See ``ObjectStore``."""
        return self.inner.upkeep

    @property
    def updates(self) -> PendingUpdates:
        """See ``ObjectStore``."""
        return self.inner.updates

    def run(self, device: str, effort: Effort) -> Run:
        """See ``ObjectStore``."""
        return self.inner.run(device, effort)

    def look(self, key: ObjectKey, view: Viewpoint) -> ObjectState:
        """See ``ObjectStore``."""
        return self.inner.look(key, view)

    def open(self, key: ObjectKey, view: Viewpoint) -> StoredObject:
        """See ``ObjectStore``."""
        return self.inner.open(key, view)

    def edit(
        self,
        key: ObjectKey,
        view: Viewpoint,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ) -> Edit:
        """See ``ObjectStore``."""
        return self.inner.edit(key, view, create=create, is_new=is_new, next_part_power=next_part_power)

    def gather(self, key: ObjectKey, partition: str) -> None:
        """See ``ObjectStore``."""
        self.inner.gather(key, partition)

    def reserve(self, key: ObjectKey, writer: Timestamp) -> Reservation:
        """See ``ObjectStore``."""
        return self.inner.reserve(key, writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> Draft:
        """See ``ObjectStore``."""
        return self.inner.draft(key, size, etag_follows=etag_follows)

    def hashes(
        self,
        device: str,
        partition: str,
        policy: Policy,
        *,
        recalculate: Iterable[str] = (),
        list_suffixes: bool = False,
    ) -> Mapping[str, object]:
        """See ``ObjectStore``."""
        return self.inner.hashes(
            device, partition, policy, recalculate=recalculate, list_suffixes=list_suffixes
        )

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``."""
        self.inner.invalidate(device, partition, policy, suffixes)

    def partitions(self, device: str, policy: Policy) -> list[str]:
        """See ``ObjectStore``."""
        return self.inner.partitions(device, policy)

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """See ``ObjectStore``."""
        return self.inner.inventory(device, partition, policy, suffixes)

    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> AbstractContextManager[None]:
        """See ``ObjectStore``."""
        return self.inner.replication_lock(device, partition, policy, timeout_s, incoming=incoming)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


class ForwardingObject:
    """``StoredObject`` that hands every call to ``inner``."""

    def __init__(self, inner: StoredObject):
        self.inner = inner

    @property
    def state(self) -> ObjectState:
        """See ``StoredObject``."""
        return self.inner.state

    @state.setter
    def state(self, state: ObjectState) -> None:
        self.inner.state = state

    @property
    def keep_cache(self) -> bool:
        """See ``StoredObject``."""
        return self.inner.keep_cache

    @keep_cache.setter
    def keep_cache(self, keep: bool) -> None:
        self.inner.keep_cache = keep

    @property
    def check_md5(self) -> bool:
        """See ``StoredObject``."""
        return self.inner.check_md5

    @check_md5.setter
    def check_md5(self, check: bool) -> None:
        self.inner.check_md5 = check

    def read_quickly(self, size_max: int) -> bytes | None:
        """See ``StoredObject``."""
        return self.inner.read_quickly(size_max)

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """See ``StoredObject``."""
        return self.inner.blocks(start, stop)

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """See ``StoredObject``."""
        return self.inner.pieces(start, stop)

    def close(self) -> None:
        """See ``StoredObject``."""
        self.inner.close()


class ForwardingEdit:
    """``Edit`` that hands every call to ``inner``; its drafts are the inner ones."""

    def __init__(self, inner: Edit):
        self.inner = inner

    @property
    def state(self) -> ObjectState:
        """See ``Edit``."""
        return self.inner.state

    @state.setter
    def state(self, state: ObjectState) -> None:
        self.inner.state = state

    def __enter__(self) -> Edit:
        self.inner.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.inner.__exit__(*args)

    def draft(self, size: int | None, *, etag: str = "") -> Draft:
        """See ``Edit``."""
        return self.inner.draft(size, etag=etag)

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """See ``Edit``."""
        self.inner.put(draft, timestamp, metadata, fragment=fragment)

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        self.inner.commit(timestamp, fragment)

    def withdraw(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        self.inner.withdraw(timestamp, fragment)

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """See ``Edit``."""
        self.inner.post(timestamp, ctype_timestamp, metadata)

    def delete(self, timestamp: Timestamp) -> None:
        """See ``Edit``."""
        self.inner.delete(timestamp)


class ForwardingUpkeep:
    """``Upkeep`` that hands every call to ``inner``."""

    def __init__(self, inner: Upkeep):
        self.inner = inner

    def find(self, location: Location, view: Viewpoint) -> Found:
        """See ``Upkeep``."""
        return self.inner.find(location, view)

    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        """See ``Upkeep``."""
        return self.inner.audit(location, full=full, pace=pace, temporary_age_s=temporary_age_s)

    def quarantine(self, location: Location, reason: str) -> None:
        """See ``Upkeep``."""
        self.inner.quarantine(location, reason)

    def purge(self, location: Location, handed: HandedOver) -> bool:
        """See ``Upkeep``."""
        return self.inner.purge(location, handed)

    def mark(self, device: str, partition: str, policy: Policy) -> str:
        """See ``Upkeep``."""
        return self.inner.mark(device, partition, policy)

    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        """See ``Upkeep``."""
        return self.inner.idle_s(device, partition, policy)

    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``Upkeep``."""
        self.inner.make_durable(device, partition, policy, suffixes)

    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        """See ``Upkeep``."""
        return self.inner.prepare(device, policy, before_s)

    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        """See ``Upkeep``."""
        return self.inner.remove_partition(device, partition, policy)
