"""Latency metrics of devices: a wrapper that measures every call of an engine.

A device that grows slow before it fails shows here first, beside those that hold the same kind of objects.
Calls that raise are left out: a device that does not exist must not become a series of numbers. Named by
``store_wrappers = observed``; the page is ``doc/howto/monitoring.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, Unpack

from swift.policy.policy import Policy
from swift.store.api import Edit, EditOptions, ObjectKey, ObjectStore, ReadOptions, TryEditOptions
from swift.store.layered import ForwardingEdit, ForwardingStore
from swift.store.registry import EngineParts
from swift.telemetry.metrics import HistogramMetric, Registry

_SECONDS = HistogramMetric(
    "swift_store_seconds", "Time that a device took for a call of its object engine.", ("call", "device")
)

P = ParamSpec("P")
R = TypeVar("R")


def _counted(
    method: Callable[Concatenate[ForwardingStore, P], R], name: str
) -> Callable[Concatenate[ForwardingStore, P], R]:
    """Return a method that measures calls of ``method`` under ``name``; its first argument has the device."""

    def call(store: ForwardingStore, /, *args: P.args, **options: P.kwargs) -> R:
        began = time.monotonic()
        result = method(store, *args, **options)
        assert isinstance(store, ObservedStore)
        if result is not None:
            store.count(name, str(getattr(args[0], "device", args[0])), began)
        return result

    return call


class ObservedStore(ForwardingStore):
    """Measures calls by device: ``look``, ``open``, ``hashes``, and ``change`` (from lock to release)."""

    def __init__(self, inner: ObjectStore, metrics: Registry):
        super().__init__(inner)
        self._metrics = metrics

    def count(self, call: str, device: str, began: float) -> None:
        """Record a call that began at ``began`` (monotonic seconds)."""
        seconds = time.monotonic() - began
        _SECONDS.of(self._metrics, call=call, device=device).observe(seconds)

    stat = _counted(ForwardingStore.stat, "look")
    try_stat = _counted(ForwardingStore.try_stat, "look")
    open = _counted(ForwardingStore.open, "open")
    try_open = _counted(ForwardingStore.try_open, "open")
    hashes = _counted(ForwardingStore.hashes, "hashes")

    def edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[EditOptions]) -> Edit:
        """Return an edit that is measured."""
        began = time.monotonic()
        return _ObservedEdit(super().edit(key, options, **how), self, key.device, began)

    def try_edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[TryEditOptions]) -> Edit | None:
        """Return an edit that is measured; None if memory does not suffice."""
        began = time.monotonic()
        inner = super().try_edit(key, options, **how)
        return None if inner is None else _ObservedEdit(inner, self, key.device, began)


class _ObservedEdit(ForwardingEdit):
    def __init__(self, inner: Edit, store: ObservedStore, device: str, began: float):
        super().__init__(inner)
        self._store = store
        self._device = device
        self._began = began

    def __exit__(self, *args: object) -> None:
        super().__exit__(*args)
        if args[0] is None:
            self._store.count("change", self._device, self._began)


def observe(inner: ObjectStore, parts: EngineParts, _policy: Policy) -> ObjectStore:
    """Return the entry point."""
    return ObservedStore(inner, parts.metrics)
