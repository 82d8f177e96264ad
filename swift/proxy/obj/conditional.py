"""Changes with conditions: one decision for all replicas of an object (decision 0011).

``If-None-Match: *`` creates, ``If-Match`` changes a known version. Nodes are asked to promise the object
(``Promises``); a majority of the primaries must have promised it for the same version. Where they know
different versions, they are first made to agree on the newest (``agreement``).

PUT goes this way in ``proxy.obj.put``. POST and DELETE (``Changer``) have no body and are asked for by a verb
of their own, ``RESERVE``: a node of another make answers 405 to it, and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swift.base.timestamp import Timestamp
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.obj.agreement import Agreement
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.ec.scheme import judge_by_object_etag
from swift.proxy.obj.phases import REFUSALS, Promises, UploadVerdict, newer_version_of, newest_known
from swift.proxy.obj.retries import Disputed, Lost, Outdated, with_retries
from swift.proxy.obj.sinks import Opening, Sink, open_sinks
from swift.proxy.obj.target import ObjectTarget
from swift.wire import reservation

#: With these a node refuses what is there already: its condition does not hold, or it is locked.
UNFIT = (412, 403)


def is_conditional(headers: HeaderMap) -> bool:
    """Whether a change asks for what was there before, or whether that is locked."""
    return "if-none-match" in headers or _is_strict(headers)


def _is_strict(headers: HeaderMap) -> bool:
    """Whether only nodes that promise the object can keep the conditions."""
    return not headers.keys().isdisjoint((*reservation.ABOUT_VERSION, fields.BACKEND_OBJECT_LOCK))


def check_promising(headers: HeaderMap, sinks: Sequence[Sink], *, may_be_weak: bool) -> None:
    """501 for conditions that nodes cannot keep; ``may_be_weak`` lets those of the peer judge ``*`` alone."""
    if all(sink.promises for sink in sinks) or (may_be_weak and not _is_strict(headers)):
        return
    raise cannot_be_kept()


def cannot_be_kept() -> HTTPError:
    """The answer where a node promises nothing."""
    return HTTPError(501, "Conditional changes need object servers that know them")


def is_of_primary(answer: BackendResponse) -> bool:
    """Whether a node answered that should have the object; what others lack proves nothing."""
    return answer.node is not None and answer.node.index is not None


def check_early(early: Sequence[BackendResponse], sinks: Sequence[Sink], majority: int, need: int) -> None:
    """Raise what is known before the body is read: ``HTTPError`` 412 or 403, ``Outdated`` or ``Disputed``.

    A node of the peer does not say by which version it judges, and decides alone, as it does for its own
    proxy. Of ours a majority of the primaries must judge by the same one, and nobody may know a newer one.
    """
    refused = [answer for answer in early if answer.status in UNFIT and is_of_primary(answer)]
    versions = [reservation.predecessor_of(answer.headers) for answer in refused]
    status = min((answer.status for answer in refused), default=412)
    if None in versions:
        raise HTTPError(status)
    if any(answer.status == 409 and newer_version_of(answer) is not None for answer in early):
        raise Outdated(newest_known(early), is_early=True)
    if not versions:
        return
    taken = [sink.predecessor for sink in sinks if sink.node.index is not None]
    newest = max(version for version in (*versions, *taken) if version is not None)
    if versions.count(newest) >= majority:
        raise HTTPError(status)
    if len(sinks) < need or versions.count(newest) + taken.count(newest) < majority:
        raise Disputed(is_early=True)


class Decision:
    """The end of one conditional change, whose data, if any, is on its way to ``sinks``."""

    def __init__(
        self,
        target: ObjectTarget,
        sinks: Sequence[Sink],
        documents: Documents,
        *,
        writer: Timestamp,
        early: Sequence[BackendResponse],
        need: int,
        grace_s: float,
    ):
        self._target = target
        self._sinks = sinks
        self._early = early
        self._need = need
        self._grace_s = grace_s
        alive = [sink for sink in sinks if sink.alive]
        self._promises = Promises(alive, documents, writer, early)

    def carry_out(self) -> list[BackendResponse]:
        """Commit when enough nodes promise the object; what they answer.

        Raises ``HTTPError`` 412 when the condition does not hold, 404 when there is nothing to change, 503
        when nobody knows whether it was carried out; ``Outdated``, ``Disputed`` and ``Lost`` when it was not.
        """
        promises = self._promises
        try:
            verdict = promises.agree(self._target.majority, self._need)
            if verdict is UploadVerdict.OUTDATED:
                raise Outdated(newest_known([*self._early, *promises.refusals]), is_early=False)
            if verdict is UploadVerdict.DISAGREE:
                raise Disputed(is_early=False)
            if verdict is UploadVerdict.REFUSED:
                raise HTTPError(self._refusal())
            if verdict is not UploadVerdict.COMMIT:
                raise Lost()
            if not promises.conclude(self._target.majority, self._need, self._grace_s):
                raise HTTPError(503)
        finally:
            promises.drop()
        return promises.answers + promises.refusals

    def _refusal(self) -> int:
        """The status with which a node refuses that knows the newest version, or that is of another make."""
        statuses = {
            reservation.predecessor_of(answer.headers): answer.status
            for answer in (*self._early, *self._promises.refusals)
            if answer.status in REFUSALS
        }
        if None in statuses:
            return statuses[None]
        return statuses[max(version for version in statuses if version is not None)]


class Changer:
    """POST and DELETE with conditions."""

    def __init__(self, context: ProxyContext, backends: Backends, agreement: Agreement):
        self._context = context
        self._backends = backends
        self._agreement = agreement

    def change(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
        need: int,
    ) -> tuple[list[HeaderMap], list[BackendResponse]]:
        """Have the request's method carried out by ``need`` nodes at least: the attempts, and their answers.

        Raises ``HTTPError`` as ``Decision.carry_out``, and 501 where nodes cannot keep a promise.
        """
        return with_retries(
            request,
            attempts,
            lambda stamped: (stamped, self._once(request, target, stamped, nodes(), need)),
            lambda stamped: self._agreement.reach(target, request.timestamp, stamped, nodes),
            may_repeat=lambda _reason: True,
            check_ahead=self._context.check_ahead,
        )

    def _once(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: list[HeaderMap],
        nodes: NodeIterator,
        need: int,
    ) -> list[BackendResponse]:
        documents = Documents(commit=True, reserve=True, has_object=False)
        for headers in attempts:
            headers.update(documents.headers(None))
            headers[fields.BACKEND_RESERVED_METHOD] = request.method
            if target.policy.is_ec:
                judge_by_object_etag(headers)
        opening = Opening(self._backends, target, nodes, documents, method="RESERVE", stage=documents.opening)
        sinks, early = open_sinks(opening, attempts, need)
        try:
            if any(answer.status == 405 for answer in early) or not all(sink.promises for sink in sinks):
                raise cannot_be_kept()
            decision = Decision(
                target,
                sinks,
                documents,
                writer=request.timestamp,
                early=early,
                need=need,
                grace_s=self._context.settings.post_quorum_timeout,
            )
            return decision.carry_out()
        finally:
            for sink in sinks:
                sink.abandon()
