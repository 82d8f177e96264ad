"""A conditional PUT whose body is here: reserved, given back, and at last stored or forgotten.

See ``wire.reservation`` for the conversation. Nothing of it can be read before ``commit``. A fragment
archive is on disk before its node promises anything, because a committed object needs the archives of
other nodes as well; a replicated object is only a draft until then.
"""

from __future__ import annotations

from swift.base.timestamp import ZERO, Timestamp
from swift.http import fields
from swift.http.response import HTTPError
from swift.obj.put import PutPlan, PutResult, check, commit_archive, store_draft
from swift.store.api import Draft, ObjectKey, ObjectStore, Reservation, Viewpoint
from swift.store.errors import AlreadyReserved


class ReservedPut:
    """All methods block; one at a time."""

    def __init__(self, store: ObjectStore, key: ObjectKey, view: Viewpoint, plan: PutPlan, draft: Draft):
        self._store = store
        self._key = key
        self._view = view
        self._plan = plan
        self._draft = draft
        self._etag = draft.etag
        #: The version that the condition was judged by.
        self.predecessor = ZERO
        self._reservation: Reservation | None = None
        #: The result of storing an archive that is not durable yet.
        self._stored: PutResult | None = None

    def reserve(self) -> Timestamp | None:
        """Reserve the object for this PUT; the other writer that has it, None when it is reserved now.

        Raises ``HTTPError`` when the object must not be replaced, and what engines raise.
        """
        self.release()
        try:
            self._reservation = self._store.reserve(self._key, self._plan.timestamp)
        except AlreadyReserved as error:
            if error.is_over:
                raise HTTPError(409, headers={fields.BACKEND_TIMESTAMP: error.writer.internal})
            return error.writer
        try:
            # Only now: whoever held it before has stored what it wanted.
            state = self._store.look(self._key, self._view)
            check(state, self._plan, self._etag)
        except BaseException:
            self.release()
            raise
        self.predecessor = state.write_timestamp
        if self._key.policy.ec is not None and self._stored is None:
            self._stored = store_draft(
                self._store, self._key, self._view, self._plan, self._draft, commit=False
            )
        return None

    def release(self) -> None:
        """Give the object back, keep the body."""
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            reservation.release()

    def commit(self) -> PutResult:
        """Store it for good. Raises ``HTTPError`` (503 when the promise ran out) and what engines raise.

        Without a promise too: the writer has those of enough other nodes, or all nodes have stored it.
        """
        if self._reservation is not None and not self._reservation.holds():
            raise HTTPError(503)
        newest = self._store.look(self._key, self._view).write_timestamp
        if newest >= self._plan.timestamp:
            # Of a writer that asked for no promise; that ours is superseded says more than that there is one.
            raise HTTPError(409, headers={fields.BACKEND_TIMESTAMP: newest.internal})
        if self._stored is None:
            result = store_draft(self._store, self._key, self._view, self._plan, self._draft)
        else:
            commit_archive(self._store, self._key, self._view, self._plan, judge=True)
            result, self._stored = self._stored, None
        self.release()
        return result

    def forget(self) -> None:
        """Leave nothing of what was not committed; again does nothing."""
        self._draft.discard()
        stored, self._stored = self._stored, None
        fragment = self._plan.fragment(self._key)
        try:
            if stored is not None and fragment is not None:
                with self._store.edit(self._key, self._view, create=False) as edit:
                    edit.withdraw(self._plan.timestamp, fragment)
        finally:
            # The writer was told of the promise and went away: what it did elsewhere, nobody knows here.
            reservation, self._reservation = self._reservation, None
            if reservation is not None:
                reservation.abandon()
