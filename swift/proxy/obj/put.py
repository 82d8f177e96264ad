"""Writing an object, whatever its policy (spec: proxy.md §11, §13).

A small body for replicas is read first and then sent to every primary together with its head, one round trip
a node; so is one to which a filter adds footers, which then are known and go as headers. Any other upload
streams in step: nodes are opened with ``Expect: 100-continue``, the coder of the policy sends each its part,
a failing node is dropped, and below a quorum the upload ends with 503. Archives, and whatever must not
replace what others wrote, go in two rounds: nodes have everything, and promised the object to nobody else,
before any is told to store it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import md5

from swift.base.etag import unquote_etag
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse
from swift.http import environkeys
from swift.http.body import BadFraming, BodyTimeout, BytesBody, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Change, Controller
from swift.proxy.obj.agreement import Agreement
from swift.proxy.obj.coder import Coder, is_small
from swift.proxy.obj.conditional import UNFIT, Decision, check_early, check_promising, is_conditional
from swift.proxy.obj.copies import CopyCoder
from swift.proxy.obj.documents import Documents, as_headers, footers_of, hold_body, read_exactly
from swift.proxy.obj.ec.upload import ArchiveCoder
from swift.proxy.obj.orphans import orphans_of, row_headers, row_of_put, tell_containers
from swift.proxy.obj.phases import confirm
from swift.proxy.obj.retries import TryAgain, with_own_stamp, with_retries
from swift.proxy.obj.sinks import Opening, Sink, final_answers, open_sinks
from swift.proxy.obj.target import ObjectTarget
from swift.proxy.results import put_response, refused_early, with_clock_refusal
from swift.proxy.stronglisting import tell_majority


@dataclass(slots=True)
class Outcome:
    """What came of sending an object to its nodes."""

    attempts: Sequence[HeaderMap]
    answers: Sequence[BackendResponse] = ()
    #: The answer when nodes refused it before they took the body.
    refused: Response | None = None
    #: Bytes of the object, its MD5 (empty where only nodes know it), and what filters added.
    size: int = 0
    etag: str = ""
    footers: HeaderMap | None = field(default=None)
    #: The MD5 of what the client sent, where the proxy knows it and it may be asked for.
    received_etag: str = ""


class Uploader:
    """Sends objects to their nodes."""

    def __init__(self, controller: Controller, archives: ArchiveCoder, agreement: Agreement):
        self._controller = controller
        self._context: ProxyContext = controller.context
        self._backends: Backends = controller.backends
        self._copies = CopyCoder(self._context)
        self._archives = archives
        self._agreement = agreement

    def put(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Response:
        """Store the request's body; the client's response."""
        try:
            if is_conditional(request.headers):
                outcome = self._put_conditional(request, target, attempts)
            elif is_small(request, self._context) and not target.policy.is_ec:
                outcome = self._put_small(request, target, attempts)
            else:
                outcome = self._put_stream(request, target, attempts)
        except ClientDisconnected:
            self._count("client_disconnects")
            return error_response(499)
        except BodyTimeout:
            self._count("client_timeouts")
            return error_response(408)
        except BadFraming:
            return error_response(400)
        if outcome.refused is not None:
            return outcome.refused
        return self._conclude(request, target, outcome)

    def _count(self, what: str) -> None:
        self._context.telemetry.statsd.increment(f"object.{what}")

    def _conclude(self, request: Request, target: ObjectTarget, outcome: Outcome) -> Response:
        answers = outcome.answers
        if not outcome.etag:
            etags = {unquote_etag(a.headers.get("etag", "")) for a in answers if a.status // 100 == 2}
            if len(etags) > 1:
                self._context.telemetry.log.error(
                    f"object servers returned {len(etags)} mismatched etags",
                    txid=request.env.get(environkeys.TRANS_ID),
                )
                return error_response(500)
        response = put_response(answers, len(outcome.attempts), target.quorum)
        response.headers["last-modified"] = request.timestamp.http_date
        if response.status == 202 and outcome.received_etag:
            # See gateway.writing.
            response.headers["etag"] = outcome.received_etag
        if response.status != 201:
            return response
        if outcome.etag:
            response.headers["etag"] = outcome.etag
        orphans = orphans_of(outcome.attempts, answers)
        if not orphans and not target.is_strongly_listed:
            return response
        row = row_of_put(request, outcome.size, response.headers.get("etag", ""), outcome.footers)
        stored = [answer for answer in answers if answer.status // 100 == 2]
        headers = row_headers(self._context, request, target, row)
        if target.is_strongly_listed and not tell_majority(
            self._context, target.path, target.shard, stored, "PUT", headers
        ):
            return error_response(503)
        if orphans:
            tell_containers(self._context, request, target, orphans, "PUT", row)
        return response

    def _coder(self, target: ObjectTarget) -> Coder:
        return self._archives if target.policy.is_ec else self._copies

    def _nodes(self, target: ObjectTarget) -> NodeIterator:
        planner = self._context.planner(target.policy.index)
        return planner.for_put(target.view, target.part)

    def _no_room(self, opening: Opening, sinks: Sequence[Sink], need: int) -> Response | None:
        """507, where that is wanted, for an upload that lacks nothing but room."""
        settings = self._context.planner(opening.target.policy.index).settings
        if settings.answer_insufficient_storage and len(sinks) < need <= len(sinks) + len(opening.full):
            return error_response(507, "There is not enough room for this object.\n", content_type=TEXT)
        return None

    # a body in memory

    def _put_small(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Outcome:
        footers: HeaderMap | None = None
        if environkeys.UPDATE_FOOTERS in request.env:
            body = hold_body(request)
            footers = as_headers(request.headers, footers_of(request), self._context.limits)
            if footers is None:
                return self._put_stream(request, target, attempts)
            for headers in attempts:
                headers.update(footers)
        else:
            body = read_exactly(request)
        change = Change(
            "PUT",
            target.path,
            target.view,
            target.part,
            attempts,
            body,
            target.quorum,
            lambda: self._nodes(target),
        )
        answers, _need = self._controller.write_answers(request, change)
        is_late = any(answer.status == 409 for answer in answers)
        received = md5(body, usedforsecurity=False).hexdigest() if is_late else ""
        return Outcome(attempts, answers, None, len(body), "", footers, received)

    # a streamed body

    def _put_stream(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Outcome:
        coder, need = self._coder(target), target.quorum
        documents = coder.documents(request, is_conditional=False)
        coder.frame(attempts, target, documents, request.body.length)
        restamper = self._context.restamper(request)
        opening = Opening(self._backends, target, self._nodes(target), documents)
        sinks, early = open_sinks(opening, attempts, need)
        try:
            while restamper.restamp(attempts, early):
                for sink in sinks:
                    sink.abandon()
                opening = Opening(self._backends, target, self._nodes(target), documents)
                sinks, early = open_sinks(opening, attempts, need)
            refused = refused_early(request, early) or self._no_room(opening, sinks, need)
            if refused is None and len(sinks) < need and opening.nodes.clock_ahead_s:
                return Outcome(attempts, with_clock_refusal([], need, opening.nodes))
            if refused is None and len(sinks) < need and not target.policy.is_ec:
                return Outcome(attempts, early)
            if refused is not None:
                return Outcome(attempts, refused=refused)
            upload = coder.start(request, target, documents, sinks, need)
            upload.send()
            grace_s = self._context.settings.post_quorum_timeout
            if documents is not None and documents.commit:
                answers = confirm(sinks, documents, need=need, grace_s=grace_s)
            else:
                answers = final_answers(sinks, need, grace_s)
            received = upload.etag or upload.received_etag
            answers = [*early, *answers]
            return Outcome(attempts, answers, None, upload.size, upload.etag, upload.footers, received)
        finally:
            for sink in sinks:
                sink.abandon()

    # under conditions

    def _put_conditional(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Outcome:
        body = hold_body(request) if is_small(request, self._context) else None

        def once(stamped: list[HeaderMap]) -> Outcome:
            if body is not None:
                request.body = BytesBody(body)
            return self._put_promised(request, target, stamped, body)

        def agree(stamped: Sequence[HeaderMap]) -> None:
            self._agreement.reach(target, request.timestamp, stamped, lambda: self._nodes(target))

        def may_repeat(reason: TryAgain) -> bool:
            return body is not None or reason.is_early

        if target.policy.is_ec:
            attempts = with_own_stamp(request, attempts)
        check = self._context.check_ahead
        return with_retries(request, attempts, once, agree, may_repeat=may_repeat, check_ahead=check)

    def _put_promised(
        self, request: Request, target: ObjectTarget, attempts: list[HeaderMap], body: bytes | None
    ) -> Outcome:
        """Like ``_put_stream``, to nodes that promise the object to one writer; a small body is ``body``."""
        coder, settings = self._coder(target), self._context.settings
        documents = coder.documents(request, is_conditional=True)
        assert documents is not None, "two rounds have documents"
        coder.frame(attempts, target, documents, request.body.length)
        stage, footers = b"", None
        if body is not None and not target.policy.is_ec:
            footers = footers_of(request)
            stage = documents.whole(body, footers)
        opening = Opening(
            self._backends,
            target,
            self._nodes(target),
            documents,
            stage=stage,
            may_be_sent=self._backends.is_promising,
        )
        sinks, early = open_sinks(opening, attempts, target.quorum)
        try:
            check_promising(request.headers, sinks, may_be_weak=settings.weak_if_none_match)
            refused = sum(answer.status in UNFIT for answer in early)
            need = target.quorum if target.policy.is_ec else max(1, target.majority - refused)
            check_early(early, sinks, target.majority, need)
            no_room = self._no_room(opening, sinks, need)
            if no_room is not None:
                return Outcome(attempts, refused=no_room)
            if len(sinks) < need and not target.policy.is_ec:
                return Outcome(attempts, early)
            outcome = Outcome(attempts, (), None, len(body or b""), "", footers)
            if stage:
                for sink in sinks:
                    if not sink.is_sent:
                        sink.finish(stage)
            else:
                upload = coder.start(request, target, documents, sinks, need)
                upload.send()
                outcome.size, outcome.etag, outcome.footers = upload.size, upload.etag, upload.footers
            outcome.answers = self._decide(request, target, sinks, documents, early)
            return outcome
        finally:
            for sink in sinks:
                sink.abandon()

    def _decide(
        self,
        request: Request,
        target: ObjectTarget,
        sinks: Sequence[Sink],
        documents: Documents,
        early: Sequence[BackendResponse],
    ) -> list[BackendResponse]:
        decision = Decision(
            target,
            sinks,
            documents,
            writer=request.timestamp,
            early=early,
            need=target.quorum,
            grace_s=self._context.settings.post_quorum_timeout,
        )
        others = [answer for answer in early if answer.status not in UNFIT]
        return [*others, *decision.carry_out()]
