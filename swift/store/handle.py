"""Handles: the access of other packages to an engine.

All calls of an engine block. A ``StoreHandle`` makes each call where it may: on the event loop while the
device is quick, else in a thread, by the ``effort`` that the interface declares. A function of several steps
runs as one ``call``, with the engine itself; one that changes an object runs as one ``change``, with the
object's edit. Nothing else outside of ``store`` gets an engine (``test/house/test_handles.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import Concatenate, Generic, ParamSpec, TypeVar, Unpack, cast

from swift.base.calls import Attempt, Run, T, Ts, never
from swift.green import DeadlineExceeded, Killed
from swift.http.body import FileBody
from swift.policy.policy import Policy
from swift.store.api import (
    Capabilities,
    Draft,
    Edit,
    Location,
    Maintenance,
    ObjectKey,
    ObjectState,
    ObjectStore,
    PendingUpdates,
    ReadOptions,
    StoredObject,
)
from swift.store.calls import Effort

E = TypeVar("E")
P = ParamSpec("P")
R = TypeVar("R")
#: Pieces of a body: bytes, or a range of the open file.
B = TypeVar("B", bound=bytes | FileBody)

#: Hashes of objects that one call lists.
LISTED_PER_CALL = 100


class Handle(Generic[E]):
    """The methods of an interface, each bound at its first use to where its calls run."""

    def __init__(self, target: E, run_of: Callable[[Effort], Run]):
        self._target = target
        self._run_of = run_of


class _Bound:
    """A method of a handle; the instance's own attribute takes its place."""

    def __init__(self, declared: Callable[..., object]):
        self._name = declared.__name__
        self._effort: Effort = vars(declared)["effort"]
        code = declared.__code__
        self._has_options = bool(code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS)

    def __get__(self, handle: Handle[E], _owner: type) -> Callable[..., object]:
        run, target = handle._run_of(self._effort), getattr(handle._target, self._name)
        bound = _with_options(run, target) if self._has_options else partial(run, target)
        vars(handle)[self._name] = bound
        return bound


def _with_options(run: Run, method: Callable[..., R]) -> Callable[..., R]:
    def call(*args: object, **options: object) -> R:
        return run(partial(method, *args, **options))

    return call


def method(declared: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[Handle[E], P], R]:
    """Declare a method of the interface as one of its handle."""
    return cast(Callable[Concatenate[Handle[E], P], R], _Bound(declared))


class MaintenanceHandle(Handle[Maintenance]):
    """Maintenance operations on one device, see ``Maintenance``."""

    find = method(Maintenance.find)
    audit = method(Maintenance.audit)
    reading_order = method(Maintenance.reading_order)
    quarantine = method(Maintenance.quarantine)
    purge = method(Maintenance.purge)
    purge_all = method(Maintenance.purge_all)
    remove_lone_metadata = method(Maintenance.remove_lone_metadata)
    change_token = method(Maintenance.change_token)
    idle_s = method(Maintenance.idle_s)
    confirm = method(Maintenance.confirm)
    make_durable = method(Maintenance.make_durable)
    prepare = method(Maintenance.prepare)
    remove_partition = method(Maintenance.remove_partition)


class UpdatesHandle(Handle[PendingUpdates]):
    """Container updates kept for later, see ``PendingUpdates``."""

    save = method(PendingUpdates.save)
    groups = method(PendingUpdates.groups)
    objects = method(PendingUpdates.objects)
    unknown_policies = method(PendingUpdates.unknown_policies)
    load = method(PendingUpdates.load)
    rewrite = method(PendingUpdates.rewrite)
    remove = method(PendingUpdates.remove)
    quarantine = method(PendingUpdates.quarantine)


class StoreHandle(Handle[ObjectStore]):
    """The engine of a policy on one device, see ``ObjectStore``.

    Raises ``DeviceUnavailable`` before anything is set up for a device.
    """

    relink = method(ObjectStore.relink)
    hashes = method(ObjectStore.hashes)
    invalidate = method(ObjectStore.invalidate)
    partitions = method(ObjectStore.partitions)

    def __init__(self, engine: ObjectStore, device: str, purpose: Effort | None = None):
        """With a ``purpose`` all calls run where those of that effort do."""
        self.device = device
        self._engine = engine
        #: By the value of an effort, because hashing a member of an enumeration is a call.
        self._runs = {effort.value: engine.run(device, purpose or effort) for effort in Effort}
        self._look, self._long = self._runs[Effort.LOOK.value], self._runs[Effort.LONG.value]
        self._change = self._runs[Effort.CHANGE.value]
        #: A daemon's calls all run in its threads.
        self._attempt: Attempt = never if purpose else engine.attempt(device)
        self._purposes: dict[Effort, StoreHandle] = {}
        super().__init__(engine, lambda effort: self._runs[effort.value])

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    @cached_property
    def maintenance(self) -> MaintenanceHandle:
        return MaintenanceHandle(self._engine.maintenance, self._run_of)

    @cached_property
    def updates(self) -> UpdatesHandle:
        return UpdatesHandle(self._engine.updates, self._run_of)

    def for_purpose(self, effort: Effort) -> StoreHandle:
        """Return a handle for a daemon: all its calls run in the threads of this effort."""
        handle = self._purposes.get(effort)
        if handle is None:
            handle = self._purposes[effort] = StoreHandle(self._engine, self.device, effort)
        return handle

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        """Return the state of an object."""
        state = self._attempt(self._engine.try_stat, key, options)
        return self._look(self._engine.stat, key, options) if state is None else state

    def open(self, key: ObjectKey, options: ReadOptions) -> OpenObject:
        """Open an object for reading."""
        stored = self._attempt(self._engine.try_open, key, options)
        if stored is None:
            stored = self._look(self._engine.open, key, options)
        return OpenObject(stored, self._long)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> OpenDraft:
        """Begin a new body."""
        draft = self._attempt(partial(self._engine.try_draft, key, size, etag_follows=etag_follows))
        if draft is None:
            draft = self._look(partial(self._engine.draft, key, size, etag_follows=etag_follows))
        return OpenDraft(draft, self._long)

    def change(
        self,
        key: ObjectKey,
        options: ReadOptions,
        work: Callable[[Edit], R],
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
        size_bytes: int = 0,
    ) -> R:
        """Return what ``work`` returns, which is called with the locked object; it must not keep the edit.

        ``size_bytes`` is that of a body for which it takes a draft from the edit; see ``ObjectStore.edit``.
        """
        begin = partial(self._engine.try_edit, key, options, create=create, size_bytes=size_bytes)
        edit = self._attempt(partial(begin, next_part_power=next_part_power))
        if edit is not None:
            with edit:
                return work(edit)
        enter = partial(self._engine.edit, key, options, create=create, is_new=is_new)
        return self._change(_changed, partial(enter, next_part_power=next_part_power), work)

    def inventory(
        self, partition: str, policy: Policy, suffixes: Sequence[str] | None = None
    ) -> Iterator[list[str]]:
        """Yield the hashes in a partition, some in each list; see ``ObjectStore``."""
        run = self._run_of(Effort.SSYNC)
        names = run(self._engine.inventory, self.device, partition, policy, suffixes)
        while some := run(_next_batch, names):
            yield some

    def locations_in(self, part: str, policies: Sequence[Policy]) -> Iterator[list[Location]]:
        """Yield the objects in a part of the device, some in each list; see ``Maintenance``."""
        run = self._run_of(Effort.AUDIT)
        found = run(self._engine.maintenance.locations_in, self.device, part, policies)
        while some := run(_next_batch, found):
            yield some

    @contextmanager
    def replication_lock(
        self, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> Iterator[None]:
        """Hold a partition; see ``ObjectStore``. A thread waits for it, so ``timeout_s`` is short."""
        lock = self._engine.replication_lock(self.device, partition, policy, timeout_s, incoming=incoming)
        self._run_of(Effort.SSYNC)(lock.__enter__)
        try:
            yield
        finally:
            # Letting go waits for nothing.
            lock.__exit__(None, None, None)

    def call(self, effort: Effort, work: Callable[[ObjectStore, Unpack[Ts]], T], *args: *Ts) -> T:
        """Run a function of several steps as one call; its first argument is the engine.

        It must not keep the engine, nor anything of it that blocks.
        """
        return self._runs[effort.value](work, self._engine, *args)

    def __repr__(self) -> str:
        return f"StoreHandle({self._engine!r}, {self.device!r})"


def _changed(begin: Callable[[], Edit], work: Callable[[Edit], R]) -> R:
    with begin() as edit:
        return work(edit)


def _next_batch(items: Iterator[R]) -> list[R]:
    return list(islice(items, LISTED_PER_CALL))


class OpenObject:
    """A ``StoredObject`` whose reads run where long calls of its device do; close it."""

    __slots__ = ("state", "_stored", "_run")

    def __init__(self, stored: StoredObject, run: Run):
        self.state: ObjectState = stored.state
        self._stored = stored
        self._run = run

    def prepare(self, *, keep_cache: bool, check_md5: bool = True) -> None:
        """Say before reading how it is to be read; see ``StoredObject``."""
        self._stored.keep_cache = keep_cache
        self._stored.check_md5 = check_md5

    def read_small(self, size_max: int) -> bytes:
        """Read a small body, verified, and close the object; raises ``CorruptBody``.

        A body of at most ``size_max`` bytes that is in memory is read at once.
        """
        try:
            data = self._stored.read_cached(size_max)
            if data is None:
                data = self._run(self._read)
        except (DeadlineExceeded, Killed):
            # A thread still reads; the object is closed when nothing refers to it any more.
            raise
        except BaseException:
            self._stored.close()
            raise
        self._stored.close()
        return data

    def _read(self) -> bytes:
        return b"".join(self._stored.blocks(0, self.state.size))

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        return _EachStep(self._stored.blocks(start, stop), self._run)

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        return _EachStep(self._stored.pieces(start, stop), self._run)

    def transformed(self, arrange: Callable[[StoredObject], Iterator[bytes]]) -> Iterator[bytes]:
        """Return ``arrange`` applied to the body; it runs where the body is read."""
        return _EachStep(arrange(self._stored), self._run)

    def close(self) -> None:
        """See ``StoredObject``; it waits for nothing."""
        self._stored.close()

    def __repr__(self) -> str:
        return f"OpenObject({self._stored!r})"


class _EachStep(Generic[B], Iterator[B]):
    """An iterator each of whose steps is a call."""

    __slots__ = ("_pieces", "_run")

    def __init__(self, pieces: Iterator[B], run: Run):
        self._pieces = pieces
        self._run = run

    def __next__(self) -> B:
        # StopIteration does not pass every kind of call.
        piece: B | None = self._run(next, self._pieces, None)
        if piece is None:
            raise StopIteration
        return piece


class OpenDraft:
    """A ``Draft`` that is written where long calls of its device run, unless it is in memory."""

    __slots__ = ("raw", "_run")

    def __init__(self, raw: Draft, run: Run):
        #: For functions that run as one call.
        self.raw = raw
        self._run = run

    @property
    def etag(self) -> str:
        return self.raw.etag

    @property
    def may_block(self) -> bool:
        """True if publishing it may wait for a disk."""
        return self.raw.may_block(0)

    def write(self, data: bytes | memoryview) -> None:
        if self.raw.may_block(len(data)):
            self._run(self.raw.write, data)
        else:
            self.raw.write(data)

    def accept_etag(self, etag: str, sums: str) -> bool:
        return self.raw.accept_etag(etag, sums)

    def discard(self) -> None:
        self.raw.discard()

    def __repr__(self) -> str:
        return f"OpenDraft({self.raw!r})"
