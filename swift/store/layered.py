"""Bases for wrappers of object engines: each forwards everything, a wrapper overrides what it is about.

``Forwarding*`` of nothing overridden are an engine like the wrapped one (``test/contract`` runs on them). A
wrapper around objects returns its own ``ForwardingObject`` from ``open``, one around changes its own
``ForwardingEdit`` from ``edit``. Wrappers are named by ``store_wrappers`` and composed by ``store.registry``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from swift.store.api import (
    Capabilities,
    Edit,
    EngineDefaults,
    Maintenance,
    ObjectState,
    ObjectStore,
    PendingUpdates,
    StoredObject,
)

E = TypeVar("E")
P = ParamSpec("P")
R = TypeVar("R")


class Forwarding(Generic[E]):
    """Hands every call to ``inner``."""

    def __init__(self, inner: E):
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


def _forward(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[Forwarding[E], P], R]:
    """Make a method of an interface one that calls the inner engine's."""
    name = method.__name__

    def call(wrapper: Forwarding[E], /, *args: P.args, **options: P.kwargs) -> R:
        inner: Callable[P, R] = getattr(wrapper.inner, name)
        return inner(*args, **options)

    call.__name__, call.__doc__ = name, method.__doc__
    return call


class ForwardingStore(Forwarding[ObjectStore]):
    """``ObjectStore`` that hands every call to ``inner``."""

    @property
    def capabilities(self) -> Capabilities:
        """Optional features; a wrapper that changes bodies has none."""
        return self.inner.capabilities

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance operations for daemons."""
        return self.inner.maintenance

    @property
    def updates(self) -> PendingUpdates:
        """Pending container updates."""
        return self.inner.updates

    def __init_subclass__(cls) -> None:
        """Let memory answer only calls that the wrapper passes on as they are, unless it says otherwise."""
        for verb in ("stat", "open", "edit", "draft"):
            if verb in vars(cls) and f"try_{verb}" not in vars(cls):
                setattr(cls, f"try_{verb}", getattr(EngineDefaults, f"try_{verb}"))

    run = _forward(ObjectStore.run)
    attempt = _forward(ObjectStore.attempt)
    close = _forward(ObjectStore.close)
    try_stat = _forward(ObjectStore.try_stat)
    try_open = _forward(ObjectStore.try_open)
    try_edit = _forward(ObjectStore.try_edit)
    try_draft = _forward(ObjectStore.try_draft)
    stat = _forward(ObjectStore.stat)
    open = _forward(ObjectStore.open)
    edit = _forward(ObjectStore.edit)
    relink = _forward(ObjectStore.relink)
    reserve = _forward(ObjectStore.reserve)
    draft = _forward(ObjectStore.draft)
    hashes = _forward(ObjectStore.hashes)
    invalidate = _forward(ObjectStore.invalidate)
    partitions = _forward(ObjectStore.partitions)
    inventory = _forward(ObjectStore.inventory)
    replication_lock = _forward(ObjectStore.replication_lock)


def _attribute(name: str) -> Any:
    """Return an attribute that is the inner one's."""

    def get(wrapper: Forwarding[object]) -> object:
        return getattr(wrapper.inner, name)

    def set_(wrapper: Forwarding[object], value: object) -> None:
        setattr(wrapper.inner, name, value)

    return property(get, set_)


class ForwardingObject(Forwarding[StoredObject]):
    """``StoredObject`` that hands every call to ``inner``."""

    state: ObjectState = _attribute("state")
    keep_cache: bool = _attribute("keep_cache")
    check_md5: bool = _attribute("check_md5")

    read_cached = _forward(StoredObject.read_cached)
    blocks = _forward(StoredObject.blocks)
    pieces = _forward(StoredObject.pieces)
    close = _forward(StoredObject.close)


class ForwardingEdit(Forwarding[Edit]):
    """``Edit`` that hands every call to ``inner``; its drafts are the inner ones."""

    state: ObjectState = _attribute("state")

    def __enter__(self) -> Edit:
        self.inner.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.inner.__exit__(*args)

    draft = _forward(Edit.draft)
    put = _forward(Edit.put)
    commit = _forward(Edit.commit)
    abort = _forward(Edit.abort)
    post = _forward(Edit.post)
    delete = _forward(Edit.delete)


class ForwardingMaintenance(Forwarding[Maintenance]):
    """``Maintenance`` that hands every call to ``inner``."""

    find = _forward(Maintenance.find)
    audit = _forward(Maintenance.audit)
    reading_order = _forward(Maintenance.reading_order)
    locations_in = _forward(Maintenance.locations_in)
    quarantine = _forward(Maintenance.quarantine)
    purge = _forward(Maintenance.purge)
    purge_all = _forward(Maintenance.purge_all)
    remove_lone_metadata = _forward(Maintenance.remove_lone_metadata)
    change_token = _forward(Maintenance.change_token)
    idle_s = _forward(Maintenance.idle_s)
    confirm = _forward(Maintenance.confirm)
    make_durable = _forward(Maintenance.make_durable)
    prepare = _forward(Maintenance.prepare)
    remove_partition = _forward(Maintenance.remove_partition)
