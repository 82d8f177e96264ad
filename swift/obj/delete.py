"""DELETE: a table of what happens in which state (spec: object-server.md §8).

``decide_delete`` is pure and runs while the object is held; the table names the answer and whether a
tombstone is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from swift.base.timestamp import Timestamp
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.obj.request import Check, Guard, check_removal, guard_of, next_part_power_of
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, Edit, ObjectKey, ObjectState, ReadOptions
from swift.store.handle import StoreHandle


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """A DELETE that may be tried; ``if_delete_at`` is X-If-Delete-At."""

    timestamp: Timestamp
    if_delete_at: float | None
    next_part_power: int | None
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class DeleteVerdict:
    """The status, whether a tombstone is written, and an early exit's text (no headers then)."""

    status: int
    tombstone: bool = False
    text: str | None = None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Outcome of a DELETE, with the object's state before."""

    verdict: DeleteVerdict
    before: ObjectState


#: (state, request is newer) → verdict of a DELETE without X-If-Delete-At.
PLAIN_TABLE = {
    (ABSENT, True): DeleteVerdict(404, tombstone=True),
    (LIVE, True): DeleteVerdict(204, tombstone=True),
    (LIVE, False): DeleteVerdict(409),
    (EXPIRED, True): DeleteVerdict(404, tombstone=True),
    (EXPIRED, False): DeleteVerdict(404),
    (DELETED, True): DeleteVerdict(404, tombstone=True),
    (DELETED, False): DeleteVerdict(404),
}
#: Files that were quarantined by this very request were an object, which is gone now.
_PUT_AWAY = DeleteVerdict(204, tombstone=True)
_MISMATCH = DeleteVerdict(412, text="X-If-Delete-At and X-Delete-At do not match", bare=True)


def parse_delete(request: Request) -> DeletePlan:
    """Check everything that needs no disk; raises ``HTTPError`` 400."""
    timestamp = request.timestamp
    guard = guard_of(request.headers, timestamp)
    return DeletePlan(timestamp, _if_delete_at(request), next_part_power_of(request), guard)


def _if_delete_at(request: Request) -> float | None:
    """Seconds, which the expirer writes as a timestamp; raises ``HTTPError`` 400."""
    text = request.headers.get("x-if-delete-at")
    if text is None:
        return None
    try:
        plain = len(text) <= 30 and text.isascii() and "_" not in text
        seconds = float(text) if plain else math.nan
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise HTTPError(400, "Bad X-If-Delete-At header value")
    return seconds


def decide_delete(state: ObjectState, plan: DeletePlan) -> DeleteVerdict:
    """Look the verdict up; with X-If-Delete-At the expirer must have meant this very object."""
    newer = state.write_timestamp < plan.timestamp
    wanted = plan.if_delete_at
    if state.quarantine_reason and state.kind == ABSENT:
        # There was an object; which one can no longer be compared.
        return _PUT_AWAY if wanted is None else DeleteVerdict(503, bare=True)
    if wanted is None:
        return PLAIN_TABLE[state.kind, newer or state.kind == ABSENT]
    if state.kind == ABSENT:
        return DeleteVerdict(404, bare=True)
    if not newer:
        return DeleteVerdict(409, bare=True)
    have = state.delete_at if state.kind in (LIVE, EXPIRED) else 0
    if wanted != have:
        return _MISMATCH
    return DeleteVerdict(404 if state.kind == DELETED else 204, tombstone=True)


def apply_delete(plan: DeletePlan, edit: Edit, check_state: Check | None = None) -> DeleteResult:
    """Decide and write while the object is held; ``check_state`` may object by raising."""
    if check_state is not None:
        check_state(edit.state)
    verdict = decide_delete(edit.state, plan)
    if verdict.tombstone:
        check_removal(edit.state, plan.guard)
        edit.delete(plan.timestamp)
    return DeleteResult(verdict, edit.state)


def store_delete(store: StoreHandle, key: ObjectKey, options: ReadOptions, plan: DeletePlan) -> DeleteResult:
    """Decide and write in one call; raises ``HTTPError`` and what engines raise."""
    work = partial(apply_delete, plan)
    return store.change(key, options, work, create=True, next_part_power=plan.next_part_power)
