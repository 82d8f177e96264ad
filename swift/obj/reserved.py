"""A conditional change: reserved, released, and finally applied or discarded.

See ``wire.reservation`` for the conversation. Nothing of it can be read before ``commit``. A fragment
archive is on disk before its node promises anything, because a committed object needs the archives of
other nodes as well; a replicated object is only a draft until then; a POST or DELETE is only its head.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from swift.base.timestamp import ZERO, Timestamp
from swift.http import fields
from swift.http.response import HTTPError
from swift.obj.delete import DeletePlan, DeleteResult, apply_delete, decide_delete
from swift.obj.post import PostPlan, PostResult, apply_post
from swift.obj.put import PutPlan, PutResult, check, publish_draft
from swift.obj.request import Conditions, check_change, check_removal
from swift.store.api import ObjectKey, ObjectState, ObjectStore, ReadOptions, Reservation
from swift.store.calls import Effort
from swift.store.errors import AlreadyReserved
from swift.store.handle import OpenDraft, StoreHandle

R = TypeVar("R")


class ReservedChange(ABC, Generic[R]):
    """Base of reserved changes; call one method at a time."""

    effort = Effort.SHORT

    def __init__(self, store: StoreHandle, key: ObjectKey, options: ReadOptions, timestamp: Timestamp):
        self._store = store
        self._key = key
        self._options = options
        self._timestamp = timestamp
        #: The version that the condition was judged by.
        self.predecessor = ZERO
        self._reservation: Reservation | None = None

    def reserve(self) -> Timestamp | None:
        """Reserve the object for this change; the other writer that has it, None when it is reserved now.

        Raises ``HTTPError`` when the object must not be changed, and what engines raise.
        """
        return self._store.call(self.effort, self._reserve)

    def _reserve(self, engine: ObjectStore) -> Timestamp | None:
        self._release(engine)
        try:
            self._reservation = engine.reserve(self._key, self._timestamp)
        except AlreadyReserved as error:
            if error.is_over:
                raise superseded(error.writer)
            return error.writer
        try:
            # Only now: the earlier holder of the reservation has stored its change.
            state = engine.stat(self._key, self._options)
            self._check(state)
        except BaseException:
            self._release(engine)
            raise
        self.predecessor = state.write_timestamp
        self._prepare(engine)
        return None

    def release(self) -> None:
        """Give the object back, keep the change."""
        self._store.call(self.effort, self._release)

    def _release(self, _engine: ObjectStore) -> None:
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            reservation.release()

    def commit(self) -> R:
        """Carry it out. Raises ``HTTPError`` (503 when the promise ran out) and what engines raise.

        Without a promise too: the writer has those of enough other nodes, or all nodes have stored it.
        """
        return self._store.call(self.effort, self._commit)

    def _commit(self, engine: ObjectStore) -> R:
        if self._reservation is not None and not self._reservation.holds():
            raise HTTPError(503)
        newest = engine.stat(self._key, self._options).write_timestamp
        if newest >= self._timestamp:
            # Of a writer that asked for no promise; that ours is superseded says more than that there is one.
            raise superseded(newest)
        result = self._apply(engine)
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            reservation.complete()
        return result

    def forget(self) -> None:
        """Leave nothing of what was not committed; again does nothing."""
        self._store.call(self.effort, self._forget)

    def _forget(self, engine: ObjectStore) -> None:
        # The writer knows of the reservation and disconnected: its state on other nodes is unknown.
        reservation, self._reservation = self._reservation, None
        try:
            self._discard(engine, may_be_needed=reservation is not None)
        finally:
            if reservation is not None:
                reservation.abandon()

    @abstractmethod
    def _check(self, state: ObjectState) -> None:
        """Raise ``HTTPError`` when the object, as it is, must not be changed."""

    def _prepare(self, engine: ObjectStore) -> None:
        """Do what must be done before the object is promised; again does nothing."""

    @abstractmethod
    def _apply(self, engine: ObjectStore) -> R:
        """Apply the change durably."""

    def _discard(self, engine: ObjectStore, *, may_be_needed: bool) -> None:
        """Forget what ``_prepare`` did, unless it may be a part of what was committed on other nodes."""


def superseded(newer: Timestamp) -> HTTPError:
    """409 that says which version is newer."""
    return HTTPError(409, headers={fields.BACKEND_TIMESTAMP: newer.internal})


class ReservedPut(ReservedChange[PutResult]):
    """A PUT whose body has arrived."""

    effort = Effort.LONG

    def __init__(
        self, store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: PutPlan, draft: OpenDraft
    ):
        super().__init__(store, key, options, plan.timestamp)
        self._plan = plan
        self._draft = draft
        self._etag = draft.etag
        #: The result of storing an archive that is not durable yet.
        self._stored: PutResult | None = None

    def _check(self, state: ObjectState) -> None:
        check(state, self._plan, self._etag)

    def _prepare(self, engine: ObjectStore) -> None:
        if self._key.policy.ec is not None and self._stored is None:
            self._stored = publish_draft(
                engine, self._key, self._options, self._plan, self._draft, commit=False
            )

    def _apply(self, engine: ObjectStore) -> PutResult:
        if self._stored is None:
            return publish_draft(engine, self._key, self._options, self._plan, self._draft)
        fragment = self._plan.fragment(self._key)
        if fragment is not None and not self._plan.no_commit:
            power = self._plan.next_part_power
            with engine.edit(self._key, self._options, create=True, next_part_power=power) as edit:
                check(edit.state, self._plan, self._plan.etag or "")
                edit.commit(self._timestamp, fragment)
        result, self._stored = self._stored, None
        return result

    def _discard(self, engine: ObjectStore, *, may_be_needed: bool) -> None:
        self._draft.discard()
        stored, self._stored = self._stored, None
        fragment = self._plan.fragment(self._key)
        if stored is not None and fragment is not None and not may_be_needed:
            with engine.edit(self._key, self._options, create=False) as edit:
                edit.abort(self._plan.timestamp, fragment)


class ReservedLook(ReservedChange[None]):
    """A reservation without a change: it keeps other writers from judging by this version."""

    def _check(self, state: ObjectState) -> None:
        """Accept any state."""

    def _apply(self, engine: ObjectStore) -> None:
        """Do nothing."""


P = TypeVar("P", PostPlan, DeletePlan)


class _ReservedPlan(ReservedChange[R], Generic[R, P]):
    """A change of the expected version by a plan."""

    def __init__(
        self, store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: P, conditions: Conditions
    ):
        super().__init__(store, key, options, plan.timestamp)
        self._plan: P = plan
        self._conditions = conditions


class ReservedPost(_ReservedPlan[PostResult, PostPlan]):
    """A POST to the expected version."""

    def _check(self, state: ObjectState) -> None:
        if state.exists:
            check_change(state, self._plan.copied, self._plan.guard)
        self._conditions.demand(state)
        if state.timestamp >= self._timestamp:
            raise superseded(state.timestamp)

    def _apply(self, engine: ObjectStore) -> PostResult:
        power = self._plan.next_part_power
        with engine.edit(self._key, self._options, create=False, next_part_power=power) as edit:
            return apply_post(self._key, self._plan, edit, self._check)


class ReservedDelete(_ReservedPlan[DeleteResult, DeletePlan]):
    """A DELETE of the expected version."""

    def _check(self, state: ObjectState) -> None:
        check_removal(state, self._plan.guard)
        self._conditions.demand(state)
        verdict = decide_delete(state, self._plan)
        if verdict.status == 409:
            raise superseded(state.write_timestamp)
        if verdict.status != 204:
            # No visible object; only unconditional deletes write a tombstone.
            raise self._conditions.refused(state, verdict.status)

    def _apply(self, engine: ObjectStore) -> DeleteResult:
        power = self._plan.next_part_power
        with engine.edit(self._key, self._options, create=True, next_part_power=power) as edit:
            return apply_delete(self._plan, edit, self._check)
