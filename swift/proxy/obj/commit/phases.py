"""The end of an upload in two phases: the nodes' reports, and the commands to them (spec: proxy.md §13).

Each node has a green thread once its data was sent. The thread waits until the node has everything, reports
that, and passes commands on until the last one. A node that is late still commits, and nothing waits for it.
``Phases`` is for uploads that only must not be half-stored. ``Reservations`` is for those that must not
replace other writers' versions. It commits when a strict majority of the primaries reserved the object, gives
up when one node reports that the condition fails, and steps back for a moment when an older writer has some
of the reservations. Of writers that share them the oldest keeps its own, so one always gets on. ``decide``,
which is pure, returns the next step.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from swift import green
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.collect import ResultQueue, Until, collect
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.commit.targets import UploadTarget
from swift.wire import reservation

#: Writers that share the reservations step back for so long at first, seconds, and at most.
PAUSE_S = 0.004
PAUSE_MAX_S = 0.25
#: A conditional change is tried for so long, seconds.
RETRY_TIMEOUT_S = 10.0
#: A condition does not hold, what is to be changed is not there, or it is locked.
REFUSALS = (412, 404, 403)


class UploadVerdict(Enum):
    """The next step of an upload."""

    WAIT = "wait"
    COMMIT = "commit"
    #: Younger writers have needed reservations: request those again.
    INSIST = "insist"
    #: An older or unknown writer has some: release ours.
    STEP_BACK = "step back"
    #: The condition does not hold.
    REFUSED = "refused"
    #: A majority responded, but the newest version among the responses is on fewer nodes than that.
    DISAGREE = "disagree"
    #: A node knows a version that is newer than ours.
    OUTDATED = "outdated"
    #: Too few nodes are left.
    LOST = "lost"


class VoteKind(Enum):
    """The state of the object at one node."""

    RESERVED = "held"
    #: Reserved for a younger writer, or to an older or unknown one.
    YOUNGER = "younger"
    OLDER = "older"
    WAITING = "waiting"
    REFUSED = "refused"
    NEWER = "newer"


class Vote(NamedTuple):
    """One node's vote; a handoff's reservation counts for durability only."""

    kind: VoteKind
    is_primary: bool = True
    #: The version for which it evaluated the condition, or will; None for nodes of the peer.
    predecessor: Timestamp | None = None


def decide(votes: Sequence[Vote], majority: int, need: int) -> UploadVerdict:
    """Return the verdict when ``majority`` primaries and ``need`` nodes in all must hold the object.

    Only a version that a majority of the primaries has is known to be the object's. A version on fewer nodes
    may be left from a failed write, or be missing on nodes that were unavailable. So the newest version of
    any node decides, once a majority has it.
    """
    if any(vote.kind is VoteKind.REFUSED and vote.predecessor is None for vote in votes):
        return UploadVerdict.REFUSED
    if any(vote.kind is VoteKind.NEWER for vote in votes):
        # Our version could not be read, or would vanish when the newer version is replicated.
        return UploadVerdict.OUTDATED
    judged = [v for v in votes if v.kind in (VoteKind.RESERVED, VoteKind.REFUSED)]
    known = [v for v in judged if v.is_primary]
    # A version that a handoff lacks proves nothing; one that it has was written while primaries were down.
    versions = [
        v.predecessor for v in judged if v.predecessor is not None and (v.predecessor or v.is_primary)
    ]
    newest = max(versions, default=None)
    agreeing = [v for v in known if v.predecessor in (newest, None)]
    refused = sum(v.kind is VoteKind.REFUSED for v in agreeing)
    held = sum(v.kind is VoteKind.RESERVED for v in votes)
    waiting = [v for v in votes if v.kind is VoteKind.WAITING]
    if newest is not None and any(v.predecessor is not None and v.predecessor > newest for v in waiting):
        return UploadVerdict.WAIT
    if len(agreeing) >= majority and (refused or held >= need):
        return UploadVerdict.REFUSED if refused else UploadVerdict.COMMIT
    if _may_still_pass(agreeing, held, waiting, majority, 0 if refused else need):
        return UploadVerdict.WAIT
    busy = [v for v in votes if v.kind in (VoteKind.YOUNGER, VoteKind.OLDER)]
    if busy and _may_still_pass(agreeing, held, [*waiting, *busy], majority, 0 if refused else need):
        yields = any(v.kind is VoteKind.OLDER for v in busy)
        return UploadVerdict.STEP_BACK if yields else UploadVerdict.INSIST
    return UploadVerdict.DISAGREE if len(agreeing) < majority <= len(known) else UploadVerdict.LOST


def _may_still_pass(
    agreeing: Sequence[Vote], held: int, outstanding: Sequence[Vote], majority: int, need: int
) -> bool:
    """Return True if a verdict is possible when all ``outstanding`` votes are favourable."""
    primaries = sum(vote.is_primary for vote in outstanding)
    return len(agreeing) + primaries >= majority and held + len(outstanding) >= need and bool(outstanding)


#: Statuses about the change itself: it is too large, has metadata without room, or is malformed.
_FINAL_REJECTIONS = frozenset((400, 411, 413, 414, 415, 422))


def _is_refused_with(target: UploadTarget, status: int) -> bool:
    """Return True if a node refuses the object with this status."""
    return target.refusal is not None and target.refusal.status == status


def _refusal_vote(response: BackendResponse) -> Vote | None:
    """Return the vote of a final response that came instead of waiting for the confirmation."""
    primary = response.node is not None and response.node.index is not None
    if response.status in REFUSALS:
        return Vote(VoteKind.REFUSED, primary, reservation.parse_predecessor(response.headers))
    if response.status == 409 and newer_version_of(response) is not None:
        return Vote(VoteKind.NEWER, primary)
    return None


def newer_version_of(response: BackendResponse) -> Timestamp | None:
    """Return the newer version, or newer writer, for which a node responded 409; None when it does not
    say.
    """
    try:
        return Timestamp(response.headers[fields.BACKEND_TIMESTAMP])
    except (KeyError, InvalidTimestamp):
        return None


def newest_known(responses: Sequence[BackendResponse]) -> Timestamp:
    """Return the newest version for which one of the responses is 409; there must be one."""
    versions = [newer_version_of(response) for response in responses if response.status == 409]
    return max(version for version in versions if version is not None)


class Phases:
    """The green threads of an upload, one per node, and their reports."""

    def __init__(self, targets: Sequence[UploadTarget], framing: MultipartFraming):
        self._framing = framing
        self._reports: green.Queue[UploadTarget] = green.Queue()
        #: Targets whose green thread waits for the node's next report.
        self._waiting = set(targets)
        self._commands: dict[UploadTarget, green.Queue[str | None]] = {
            target: green.Queue() for target in targets
        }
        #: Targets that were not sent their last command yet.
        self._undecided = list(targets)
        #: Targets that were told to commit.
        self._committed: set[UploadTarget] = set()
        #: Their final responses.
        self._finals: ResultQueue[BackendResponse | None] = ResultQueue()
        self.responses: list[BackendResponse] = []
        for target in targets:
            target.awaited = True
            green.spawn_detached(self._run_target, target, self._commands[target])

    def _run_target(self, target: UploadTarget, commands: green.Queue[str | None]) -> None:
        response: BackendResponse | None = None
        try:
            target.await_stored()
            self._reports.put(target)
            while target.alive:
                command = commands.get()
                if command is None:
                    target.release(self._framing.command(reservation.RELEASE))
                    break
                if command == reservation.COMMIT:
                    target.finish(self._framing.confirmation)
                    response = target.final_response() if target.alive else None
                    break
                target.finish(self._framing.command(command))
                if target.alive:
                    target.await_stored()
                self._reports.put(target)
        finally:
            target.awaited = response is not None
            target.abandon()
            self._finish_target(target, response)

    def _finish_target(self, target: UploadTarget, response: BackendResponse | None) -> None:
        """End the waits for a target whose green thread is done."""
        if target in self._undecided:
            self._undecided.remove(target)
        elif target in self._committed:
            self._finals.put(response)
        self._reports.put(target)

    def _await_report(self) -> None:
        """Wait for the next report."""
        self._waiting.discard(self._reports.get())

    def _send_command(self, targets: Sequence[UploadTarget], command: str) -> None:
        """Send a command that the nodes respond to."""
        for target in targets:
            self._waiting.add(target)
            self._commands[target].put(command)

    @property
    def refusals(self) -> list[BackendResponse]:
        """The final responses that came instead of waiting for the confirmation."""
        return [target.refusal for target in self._commands if target.refusal is not None]

    # deciding

    def await_stored(self, need: int) -> bool:
        """Wait until ``need`` nodes have everything; return False when they cannot."""
        while (
            ready := sum(s.is_stored or _is_refused_with(s, 409) for s in self._commands)
        ) < need and self._waiting:
            self._await_report()
        return ready >= need

    def abort(self) -> None:
        """Discard the upload; after ``commit`` only what was not committed."""
        left, self._undecided = self._undecided, []
        for target in left:
            self._commands[target].put(None)

    def commit(self, targets: Sequence[UploadTarget] | None = None) -> None:
        """Tell nodes to commit: ``targets``, or all that are not committing yet."""
        committing = [target for target in self._undecided if targets is None or target in targets]
        self._undecided = [target for target in self._undecided if target not in committing]
        self._committed.update(committing)
        self._finals.waiting += len(committing)
        for target in committing:
            self._commands[target].put(reservation.COMMIT)

    def _stored_count(self) -> int:
        """Return the number of nodes that have stored the object, or something newer."""
        return sum(a.status // 100 == 2 or a.status == 409 for a in (*self.responses, *self.refusals))

    def await_final_responses(self, need: int, grace_s: float) -> None:
        """Wait until ``need`` committing nodes have responded, and ``grace_s`` longer for the rest."""
        enough = Until(lambda: self._stored_count() >= need)
        for response in collect(self._finals, enough, grace_s=grace_s):
            if response is not None:
                self.responses.append(response)


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
        #: When each node was last sent a request, monotonic: its reservation is not older.
        self._requested_s = dict.fromkeys(targets, time.monotonic())
        super().__init__(targets, framing)

    def await_verdict(self, majority: int, need: int) -> UploadVerdict:
        """Collect reservations until there is a verdict: COMMIT, REFUSED, DISAGREE, OUTDATED or LOST.

        Of two writers that request the same nodes at once at most one commits: both need a majority of
        reservations at one time, and a reservation is released only when its object is stored.
        """
        give_up = time.monotonic() + RETRY_TIMEOUT_S
        pause_s = PAUSE_S
        while True:
            while (verdict := decide(self.votes(), majority, need)) is UploadVerdict.WAIT:
                self._await_report()
            if verdict is UploadVerdict.COMMIT and self._are_stale():
                verdict = UploadVerdict.STEP_BACK
            if verdict not in (UploadVerdict.STEP_BACK, UploadVerdict.INSIST):
                return verdict
            if time.monotonic() >= give_up:
                return UploadVerdict.LOST
            self._request_again(pause_s * (0.5 + random.random()), release=verdict is UploadVerdict.STEP_BACK)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _are_stale(self) -> bool:
        """Return True if a reservation may have expired and passed to another writer."""
        oldest_s = min(self._requested_s[target] for target in self._reserved_targets())
        return time.monotonic() - oldest_s >= reservation.LEASE_S

    def _reserved_targets(self) -> list[UploadTarget]:
        return [
            target
            for target in self._undecided
            if target.alive and target.is_reserved and target not in self._waiting
        ]

    def votes(self) -> list[Vote]:
        """Return the present votes of all nodes, including those that refused the body."""
        found = [_refusal_vote(response) for response in self._early]
        for target in self._commands:
            primary = target.node.index is not None
            if target in self._waiting:
                found.append(Vote(VoteKind.WAITING, primary, target.predecessor))
            elif target.refusal is not None:
                found.append(_refusal_vote(target.refusal))
            elif target.alive and target.is_reserved:
                found.append(Vote(VoteKind.RESERVED, primary, target.predecessor))
            elif target.alive:
                found.append(
                    Vote(VoteKind.OLDER if target.reserved_for <= self._writer else VoteKind.YOUNGER, primary)
                )
        return [vote for vote in found if vote is not None]

    def _request_again(self, pause_s: float, *, release: bool) -> None:
        """Request the missing reservations again; with ``release``, release the held ones before."""
        responded = [s for s in self._undecided if s.alive and s.can_reserve and s not in self._waiting]
        if release:
            held = [target for target in responded if target.is_reserved]
            self._send_command(held, reservation.RELEASE)
            while self._waiting.intersection(held):
                self._await_report()
        green.sleep(pause_s)
        again = [target for target in responded if target.alive and (release or not target.is_reserved)]
        self._requested_s.update(dict.fromkeys(again, time.monotonic()))
        self._send_command(again, reservation.RESERVE)

    def commit_reserved(self, majority: int, need: int, grace_s: float) -> bool:
        """Commit on nodes that reserved the object; on the others once ``need`` nodes have stored it.

        From then on the change cannot be refused. Return False if in the end fewer than ``need`` nodes, or
        less than a ``majority`` of the primaries, have it: later requests might miss it.
        """
        self.commit(self._reserved_targets())
        self.await_final_responses(need, 0.0)
        if self._stored_count() < need:
            self.abort()
        else:
            self.commit()
        self.await_final_responses(need, grace_s)
        stored = [a.node for a in self.responses if a.status // 100 == 2 and a.node is not None]
        return len(stored) >= need and sum(node.index is not None for node in stored) >= majority

    def is_rejected_by(self, need: int) -> bool:
        """Return True if no node has stored the object and ``need`` nodes rejected it for the same reason.

        The next attempt would be rejected as well, unlike after a timeout or an error of a device.
        """
        statuses = {response.status for response in self.responses}
        return len(self.responses) >= need and len(statuses) == 1 and statuses <= _FINAL_REJECTIONS

    def _stored_count(self) -> int:
        """Return the number of nodes that have stored the object; a node that has something newer does not
        count.
        """
        return sum(a.status // 100 == 2 for a in self.responses)


def confirm(
    targets: Sequence[UploadTarget], framing: MultipartFraming, *, need: int, grace_s: float
) -> list[BackendResponse]:
    """Commit an upload whose data is on its way to ``targets``; return the nodes' responses.

    ``need`` nodes must have it before any is told to commit.
    """
    phases = Phases([target for target in targets if target.alive], framing)
    try:
        if phases.await_stored(need):
            phases.commit()
            phases.await_final_responses(need, grace_s)
    finally:
        phases.abort()
    return phases.responses + phases.refusals
