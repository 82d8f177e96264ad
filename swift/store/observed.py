"""How long devices take: a wrapper that counts the seconds of every call of an engine by device.

A device that grows slow before it fails shows here first, beside those that hold the same kind of objects.
Calls that raise are left out: a device that does not exist must not become a series of numbers. Named by
``store_wrappers = observed``; the page is ``doc/howto/monitoring.md``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from swift.policy.policy import Policy
from swift.store.api import Edit, ObjectKey, ObjectState, ObjectStore, StoredObject, Viewpoint
from swift.store.layered import ForwardingEdit, ForwardingStore
from swift.store.registry import EngineParts
from swift.telemetry.metrics import Registry

NAME = "swift_store_seconds"
HELP = "Time that a device took for a call of its object engine."


class ObservedStore(ForwardingStore):
    """Counts ``look``, ``open``, ``change`` (from the lock of an object to its release) and ``hashes``."""

    def __init__(self, inner: ObjectStore, metrics: Registry):
        super().__init__(inner)
        self._metrics = metrics

    def count(self, call: str, device: str, began: float) -> None:
        """A call that began then (monotonic seconds) has ended."""
        seconds = time.monotonic() - began
        self._metrics.histogram(NAME, HELP, call=call, device=device).observe(seconds)

    def look(self, key: ObjectKey, view: Viewpoint) -> ObjectState:
        """See ``ObjectStore``."""
        began = time.monotonic()
        state = super().look(key, view)
        self.count("look", key.device, began)
        return state

    def open(self, key: ObjectKey, view: Viewpoint) -> StoredObject:
        """See ``ObjectStore``."""
        began = time.monotonic()
        opened = super().open(key, view)
        self.count("open", key.device, began)
        return opened

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
        inner = super().edit(key, view, create=create, is_new=is_new, next_part_power=next_part_power)
        return _ObservedEdit(inner, self, key.device)

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
        began = time.monotonic()
        found = super().hashes(
            device, partition, policy, recalculate=recalculate, list_suffixes=list_suffixes
        )
        self.count("hashes", device, began)
        return found


class _ObservedEdit(ForwardingEdit):
    def __init__(self, inner: Edit, store: ObservedStore, device: str):
        super().__init__(inner)
        self._store = store
        self._device = device
        self._began = 0.0

    def __enter__(self) -> Edit:
        self._began = time.monotonic()
        return super().__enter__()

    def __exit__(self, *args: object) -> None:
        super().__exit__(*args)
        if args[0] is None:
            self._store.count("change", self._device, self._began)


def observe(inner: ObjectStore, parts: EngineParts, _policy: Policy) -> ObjectStore:
    """The entry point."""
    return ObservedStore(inner, parts.metrics)
