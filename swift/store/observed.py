"""How long devices take: a wrapper that counts the seconds of every call of an engine by device.

A device that grows slow before it fails shows here first, beside those that hold the same kind of objects.
Calls that raise are left out: a device that does not exist must not become a series of numbers. Named by
``store_wrappers = observed``; the page is ``doc/howto/monitoring.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from swift.policy.policy import Policy
from swift.store.api import Edit, ObjectKey, ObjectStore, Viewpoint
from swift.store.layered import ForwardingEdit, ForwardingStore
from swift.store.registry import EngineParts
from swift.telemetry.metrics import Registry

P = ParamSpec("P")
R = TypeVar("R")

NAME = "swift_store_seconds"
HELP = "Time that a device took for a call of its object engine."


def _counted(
    method: Callable[Concatenate[ForwardingStore, P], R],
) -> Callable[Concatenate[ForwardingStore, P], R]:
    """Make a call of the wrapped engine one that is counted; its first argument tells the device."""

    def call(store: ForwardingStore, /, *args: P.args, **options: P.kwargs) -> R:
        began = time.monotonic()
        result = method(store, *args, **options)
        assert isinstance(store, ObservedStore)
        store.count(method.__name__, str(getattr(args[0], "device", args[0])), began)
        return result

    return call


class ObservedStore(ForwardingStore):
    """Counts ``look``, ``open``, ``change`` (from the lock of an object to its release) and ``hashes``."""

    def __init__(self, inner: ObjectStore, metrics: Registry):
        super().__init__(inner)
        self._metrics = metrics

    def count(self, call: str, device: str, began: float) -> None:
        """A call that began then (monotonic seconds) has ended."""
        seconds = time.monotonic() - began
        self._metrics.histogram(NAME, HELP, call=call, device=device).observe(seconds)

    look = _counted(ForwardingStore.look)
    open = _counted(ForwardingStore.open)
    hashes = _counted(ForwardingStore.hashes)

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
