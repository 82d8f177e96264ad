"""The end of an upload in two phases: what nodes report, and what they are told (spec: proxy.md §13).

Each node has a green thread of its own once its data was sent: it waits until the node has everything, says
so, and passes orders on until the last one. A node that is late so still commits, and nothing waits
for it. ``Phases`` is for uploads that only must not be half-stored. ``Reservations`` decides about those that
must not replace what others wrote: it commits when a strict majority of the primaries reserved the object,
gives up when one says that there is an object, and steps back for a moment when an older writer has some of
the reservations; of writers that share them the oldest keeps what it has, so one always gets on. ``judge``,
which is pure, decides what to do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from swift import green
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.collect import Arrivals, Until, collect
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.write.targets import UploadTarget
from swift.wire import reservation

#: Writers that share the reservations step back for so long at first, seconds, and at most.
PAUSE_S = 0.004
PAUSE_MAX_S = 0.25
#: A conditional change is tried for so long, seconds.
PATIENCE_S = 10.0
#: A condition does not hold, what is to be changed is not there, or it is locked.
REFUSALS = (412, 404, 403)


class UploadVerdict(Enum):
    """The next step of an upload."""

    WAIT = "wait"
    COMMIT = "commit"
    #: Younger writers have reservations that are needed: ask again for those.
    INSIST = "insist"
    #: An older or unknown writer has some: let it have all.
    STEP_BACK = "step back"
    #: The condition does not hold.
    REFUSED = "refused"
    #: A majority answered, but the newest version among the answers is on fewer nodes than that.
    DISAGREE = "disagree"
    #: A node knows a version that is newer than ours.
    OUTDATED = "outdated"
    #: Too few nodes are left.
    LOST = "lost"


class VoteKind(Enum):
    """The state of the object at one node."""

    HELD = "held"
    #: Reserved for a younger writer, or to an older or unknown one.
    YOUNGER = "younger"
    OLDER = "older"
    WAITING = "waiting"
    REFUSED = "refused"
    NEWER = "newer"


class Vote(NamedTuple):
    """One node's word; a handoff's reservation counts for durability only."""

    kind: VoteKind
    is_primary: bool = True
    #: The version by which it judged the condition, or will; None when it does not say, as nodes of the peer.
    predecessor: Timestamp | None = None


def judge(votes: Sequence[Vote], majority: int, need: int) -> UploadVerdict:
    """Return the verdict when ``majority`` primaries and ``need`` nodes in all must hold the object.

    Only what a majority of the primaries has is known to be the object's version: what fewer have may be the
    rest of a write that failed, or be missing on those that were away. So the newest version that any node
    knows decides, once a majority has it.
    """
    if any(vote.kind is VoteKind.REFUSED and vote.predecessor is None for vote in votes):
        return UploadVerdict.REFUSED
    if any(vote.kind is VoteKind.NEWER for vote in votes):
        # What we would store could not be seen, or would vanish when that version spreads.
        return UploadVerdict.OUTDATED
    judged = [v for v in votes if v.kind in (VoteKind.HELD, VoteKind.REFUSED)]
    known = [v for v in judged if v.is_primary]
    # What a handoff lacks proves nothing; what it has, it got because primaries were away.
    versions = [
        v.predecessor for v in judged if v.predecessor is not None and (v.predecessor or v.is_primary)
    ]
    newest = max(versions, default=None)
    agreeing = [v for v in known if v.predecessor in (newest, None)]
    refused = sum(v.kind is VoteKind.REFUSED for v in agreeing)
    held = sum(v.kind is VoteKind.HELD for v in votes)
    waiting = [v for v in votes if v.kind is VoteKind.WAITING]
    if newest is not None and any(v.predecessor is not None and v.predecessor > newest for v in waiting):
        return UploadVerdict.WAIT
    if len(agreeing) >= majority and (refused or held >= need):
        return UploadVerdict.REFUSED if refused else UploadVerdict.COMMIT
    if _within_reach(agreeing, held, waiting, majority, 0 if refused else need):
        return UploadVerdict.WAIT
    busy = [v for v in votes if v.kind in (VoteKind.YOUNGER, VoteKind.OLDER)]
    if busy and _within_reach(agreeing, held, [*waiting, *busy], majority, 0 if refused else need):
        yields = any(v.kind is VoteKind.OLDER for v in busy)
        return UploadVerdict.STEP_BACK if yields else UploadVerdict.INSIST
    return UploadVerdict.DISAGREE if len(agreeing) < majority <= len(known) else UploadVerdict.LOST


def _within_reach(
    agreeing: Sequence[Vote], held: int, open_: Sequence[Vote], majority: int, need: int
) -> bool:
    """Return True if there could be a verdict if the ``open_`` ones said what we hope."""
    primaries = sum(vote.is_primary for vote in open_)
    return len(agreeing) + primaries >= majority and held + len(open_) >= need and bool(open_)


def _says(target: UploadTarget, status: int) -> bool:
    """Return True if a node refuses the object with this status."""
    return target.refusal is not None and target.refusal.status == status


def _refusal_of(answer: BackendResponse) -> Vote | None:
    """Return the vote of a final response that came instead of waiting for the confirmation."""
    primary = answer.node is not None and answer.node.index is not None
    if answer.status in REFUSALS:
        return Vote(VoteKind.REFUSED, primary, reservation.predecessor_of(answer.headers))
    if answer.status == 409 and newer_version_of(answer) is not None:
        return Vote(VoteKind.NEWER, primary)
    return None


def newer_version_of(answer: BackendResponse) -> Timestamp | None:
    """The newer version, or newer writer, for which a node answered 409; None when it does not say."""
    try:
        return Timestamp(answer.headers[fields.BACKEND_TIMESTAMP])
    except (KeyError, InvalidTimestamp):
        return None


def newest_known(answers: Sequence[BackendResponse]) -> Timestamp:
    """The newest version for which one of the answers is 409; there must be one."""
    versions = [newer_version_of(answer) for answer in answers if answer.status == 409]
    return max(version for version in versions if version is not None)


class Phases:
    """One green thread a node, and what they report."""

    def __init__(self, targets: Sequence[UploadTarget], framing: MultipartFraming):
        self._framing = framing
        self._reports: green.Queue[UploadTarget] = green.Queue()
        #: Targets whose green thread waits for the node's next word.
        self._waiting = set(targets)
        self._orders: dict[UploadTarget, green.Queue[str | None]] = {
            target: green.Queue() for target in targets
        }
        #: Targets whose last order was not given yet.
        self._open = list(targets)
        #: Targets that were told to commit.
        self._committed: set[UploadTarget] = set()
        #: Their final answers.
        self._finals: Arrivals[BackendResponse | None] = Arrivals()
        self.answers: list[BackendResponse] = []
        for target in targets:
            target.awaited = True
            green.spawn_detached(self._follow, target, self._orders[target])

    def _follow(self, target: UploadTarget, orders: green.Queue[str | None]) -> None:
        answer: BackendResponse | None = None
        try:
            target.await_stored()
            self._reports.put(target)
            while target.alive:
                order = orders.get()
                if order is None:
                    target.give_back(self._framing.order(reservation.RELEASE))
                    break
                if order == reservation.COMMIT:
                    target.finish(self._framing.confirmation)
                    answer = target.answer() if target.alive else None
                    break
                target.finish(self._framing.order(order))
                if target.alive:
                    target.await_stored()
                self._reports.put(target)
        finally:
            target.awaited = answer is not None
            target.abandon()
            self._end(target, answer)

    def _end(self, target: UploadTarget, answer: BackendResponse | None) -> None:
        """The green thread of a target is done, which ends the waits for it."""
        if target in self._open:
            self._open.remove(target)
        elif target in self._committed:
            self._finals.put(answer)
        self._reports.put(target)

    def _await_report(self) -> None:
        """Wait for the next report."""
        self._waiting.discard(self._reports.get())

    def _send_order(self, targets: Sequence[UploadTarget], order: str) -> None:
        """An order that the nodes answer."""
        for target in targets:
            self._waiting.add(target)
            self._orders[target].put(order)

    @property
    def refusals(self) -> list[BackendResponse]:
        """The final responses that came instead of waiting for the confirmation."""
        return [target.refusal for target in self._orders if target.refusal is not None]

    # deciding

    def await_stored(self, need: int) -> bool:
        """Wait until ``need`` nodes have everything; False when they cannot."""
        while (ready := sum(s.stored or _says(s, 409) for s in self._orders)) < need and self._waiting:
            self._await_report()
        return ready >= need

    def drop(self) -> None:
        """Nothing of the upload is to stay; after ``commit`` only what was not committed."""
        left, self._open = self._open, []
        for target in left:
            self._orders[target].put(None)

    def commit(self, targets: Sequence[UploadTarget] | None = None) -> None:
        """Tell nodes to store for good, all that were not committing yet when ``targets`` is None."""
        committing = [target for target in self._open if targets is None or target in targets]
        self._open = [target for target in self._open if target not in committing]
        self._committed.update(committing)
        self._finals.waiting += len(committing)
        for target in committing:
            self._orders[target].put(reservation.COMMIT)

    def _stored_count(self) -> int:
        """Nodes that have the object for good, or something newer."""
        return sum(a.status // 100 == 2 or a.status == 409 for a in (*self.answers, *self.refusals))

    def await_answers(self, need: int, grace_s: float) -> None:
        """Wait for those that were told until ``need`` nodes are settled, and a moment for the rest."""
        enough = Until(lambda: self._stored_count() >= need)
        for answer in collect(self._finals, enough, grace_s=grace_s):
            if answer is not None:
                self.answers.append(answer)


class Reservations(Phases):
    """``Phases`` of an upload that must not replace what others wrote."""

    def __init__(
        self,
        targets: Sequence[UploadTarget],
        framing: MultipartFraming,
        writer: Timestamp,
        early: Sequence[BackendResponse] = (),
    ):
        self._writer = writer
        self._early = early
        #: When each node was asked last, monotonic: its reservation is not older.
        self._asked_s = dict.fromkeys(targets, time.monotonic())
        super().__init__(targets, framing)

    def agree(self, majority: int, need: int) -> UploadVerdict:
        """Collect reservations until there is a verdict: COMMIT, REFUSED, DISAGREE, OUTDATED or LOST.

        Of two writers that ask the same nodes at once at most one is told to commit: both need a
        majority of reservations at one time, and a reservation is given back only when its object is stored.
        """
        give_up = time.monotonic() + PATIENCE_S
        pause_s = PAUSE_S
        while True:
            while (verdict := judge(self.votes(), majority, need)) is UploadVerdict.WAIT:
                self._await_report()
            if verdict is UploadVerdict.COMMIT and self._are_stale():
                verdict = UploadVerdict.STEP_BACK
            if verdict not in (UploadVerdict.STEP_BACK, UploadVerdict.INSIST):
                return verdict
            if time.monotonic() >= give_up:
                return UploadVerdict.LOST
            self._ask_again(pause_s * (0.5 + random.random()), release=verdict is UploadVerdict.STEP_BACK)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _are_stale(self) -> bool:
        """Return True if a node may have given its reservation to another writer by now."""
        oldest_s = min(self._asked_s[target] for target in self._held())
        return time.monotonic() - oldest_s >= reservation.LEASE_S

    def _held(self) -> list[UploadTarget]:
        return [
            target for target in self._open if target.alive and target.held and target not in self._waiting
        ]

    def votes(self) -> list[Vote]:
        """Return the votes of all nodes now, those included that refused the body."""
        found = [_refusal_of(answer) for answer in self._early]
        for target in self._orders:
            primary = target.node.index is not None
            if target in self._waiting:
                found.append(Vote(VoteKind.WAITING, primary, target.predecessor))
            elif target.refusal is not None:
                found.append(_refusal_of(target.refusal))
            elif target.alive and target.held:
                found.append(Vote(VoteKind.HELD, primary, target.predecessor))
            elif target.alive:
                found.append(
                    Vote(VoteKind.OLDER if target.holder <= self._writer else VoteKind.YOUNGER, primary)
                )
        return [vote for vote in found if vote is not None]

    def _ask_again(self, pause_s: float, *, release: bool) -> None:
        """Let others have the reservations that we hold, or keep them, and ask for the missing ones."""
        heard = [s for s in self._open if s.alive and s.reserves and s not in self._waiting]
        if release:
            held = [target for target in heard if target.held]
            self._send_order(held, reservation.RELEASE)
            while self._waiting.intersection(held):
                self._await_report()
        green.sleep(pause_s)
        again = [target for target in heard if target.alive and (release or not target.held)]
        self._asked_s.update(dict.fromkeys(again, time.monotonic()))
        self._send_order(again, reservation.RESERVE)

    def conclude(self, majority: int, need: int, grace_s: float) -> bool:
        """Commit where the object is held; elsewhere once ``need`` nodes have it for good.

        What is stored then cannot be refused any more. False when in the end
        fewer than ``need`` nodes, or than a ``majority`` of the primaries, have it: those who ask next might
        not hear of it.
        """
        self.commit(self._held())
        self.await_answers(need, 0.0)
        if self._stored_count() < need:
            self.drop()
        else:
            self.commit()
        self.await_answers(need, grace_s)
        stored = [a.node for a in self.answers if a.status // 100 == 2 and a.node is not None]
        return len(stored) >= need and sum(node.index is not None for node in stored) >= majority

    def _stored_count(self) -> int:
        """Nodes that have it for good: one that knows of something newer may just have heard of it."""
        return sum(a.status // 100 == 2 for a in self.answers)


def confirm(
    targets: Sequence[UploadTarget], framing: MultipartFraming, *, need: int, grace_s: float
) -> list[BackendResponse]:
    """Store an upload for good whose data is on its way to ``targets``; what the nodes answer to it.

    ``need`` nodes must have it before any is told to commit.
    """
    phases = Phases([target for target in targets if target.alive], framing)
    try:
        if phases.await_stored(need):
            phases.commit()
            phases.await_answers(need, grace_s)
    finally:
        phases.drop()
    return phases.answers + phases.refusals
