"""Writing an object, whatever its policy (spec: proxy.md §11, §13).

A small body for replicas is read first and then sent to every primary together with its head, one round trip
a node; so is one to which a filter adds footers, which then are known and go as headers. Any other upload
streams in step: nodes are opened with ``Expect: 100-continue``, the coder of the policy sends each its part,
a failing node is dropped, and below a quorum the upload ends with 503. Archives, and whatever must not
replace what others wrote, go in two rounds: nodes have everything, and reserved the object for no other
writer, before any is told to store it.
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
from swift.proxy.obj.commit.conditional import (
    UNFIT,
    Agreement,
    Decision,
    TryAgain,
    check_early,
    check_reserving,
    is_conditional,
    with_own_stamp,
    with_retries,
)
from swift.proxy.obj.commit.framing import MultipartFraming, as_headers, footers_of, hold_body, read_exactly
from swift.proxy.obj.commit.phases import confirm
from swift.proxy.obj.listing import row_headers, row_of_put, send_updates, unsent_updates
from swift.proxy.obj.location import ObjectLocation
from swift.proxy.obj.write.copies import Coder, CopyCoder, is_small
from swift.proxy.obj.write.ec import ArchiveCoder
from swift.proxy.obj.write.targets import Opening, UploadTarget, final_answers, open_targets
from swift.proxy.results import put_response, refused_early, with_clock_refusal
from swift.proxy.stronglisting import ensure_row_majority


@dataclass(slots=True)
class Outcome:
    """The outcome of sending an object to its nodes."""

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

    def put(self, request: Request, location: ObjectLocation, attempts: list[HeaderMap]) -> Response:
        """Store the request's body; the client's response."""
        try:
            if is_conditional(request.headers):
                outcome = self._put_conditional(request, location, attempts)
            elif is_small(request, self._context) and not location.policy.is_ec:
                outcome = self._put_small(request, location, attempts)
            else:
                outcome = self._put_stream(request, location, attempts)
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
        return self._conclude(request, location, outcome)

    def _count(self, what: str) -> None:
        self._context.telemetry.statsd.increment(f"object.{what}")

    def _conclude(self, request: Request, location: ObjectLocation, outcome: Outcome) -> Response:
        answers = outcome.answers
        if not outcome.etag:
            etags = {unquote_etag(a.headers.get("etag", "")) for a in answers if a.status // 100 == 2}
            if len(etags) > 1:
                self._context.telemetry.log.error(
                    f"object servers returned {len(etags)} mismatched etags",
                    txid=request.env.get(environkeys.TRANS_ID),
                )
                return error_response(500)
        response = put_response(answers, len(outcome.attempts), location.quorum)
        response.headers["last-modified"] = request.timestamp.http_date
        if response.status == 202 and outcome.received_etag:
            # See gateway.writing.
            response.headers["etag"] = outcome.received_etag
        if response.status != 201:
            return response
        if outcome.etag:
            response.headers["etag"] = outcome.etag
        unsent = unsent_updates(outcome.attempts, answers)
        if not unsent and not location.is_strongly_listed:
            return response
        row = row_of_put(request, outcome.size, response.headers.get("etag", ""), outcome.footers)
        stored = [answer for answer in answers if answer.status // 100 == 2]
        headers = row_headers(self._context, request, location, row)
        if location.is_strongly_listed and not ensure_row_majority(
            self._context, location.path, location.shard, stored, "PUT", headers
        ):
            return error_response(503)
        if unsent:
            send_updates(self._context, request, location, unsent, "PUT", row)
        return response

    def _coder(self, location: ObjectLocation) -> Coder:
        return self._archives if location.policy.is_ec else self._copies

    def _nodes(self, location: ObjectLocation) -> NodeIterator:
        planner = self._context.planner(location.policy.index)
        return planner.for_put(location.view, location.part)

    def _no_room(self, opening: Opening, targets: Sequence[UploadTarget], need: int) -> Response | None:
        """507, where that is wanted, for an upload that lacks nothing but room."""
        settings = self._context.planner(opening.location.policy.index).settings
        if settings.answer_insufficient_storage and len(targets) < need <= len(targets) + len(opening.full):
            return error_response(507, "There is not enough room for this object.\n", content_type=TEXT)
        return None

    # a body in memory

    def _put_small(self, request: Request, location: ObjectLocation, attempts: list[HeaderMap]) -> Outcome:
        footers: HeaderMap | None = None
        if environkeys.UPDATE_FOOTERS in request.env:
            body = hold_body(request)
            footers = as_headers(request.headers, footers_of(request), self._context.limits)
            if footers is None:
                return self._put_stream(request, location, attempts)
            for headers in attempts:
                headers.update(footers)
        else:
            body = read_exactly(request)
        change = Change(
            "PUT",
            location.path,
            location.view,
            location.part,
            attempts,
            body,
            location.quorum,
            lambda: self._nodes(location),
        )
        answers, _need = self._controller.write_answers(request, change)
        is_late = any(answer.status == 409 for answer in answers)
        received = md5(body, usedforsecurity=False).hexdigest() if is_late else ""
        return Outcome(attempts, answers, None, len(body), "", footers, received)

    # a streamed body

    def _put_stream(self, request: Request, location: ObjectLocation, attempts: list[HeaderMap]) -> Outcome:
        coder, need = self._coder(location), location.quorum
        framing = coder.framing(request, is_conditional=False)
        coder.frame(attempts, location, framing, request.body.length)
        restamper = self._context.restamper(request)
        opening = Opening(self._backends, location, self._nodes(location), framing)
        targets, early = open_targets(opening, attempts, need)
        try:
            while restamper.restamp(attempts, early):
                for target in targets:
                    target.abandon()
                opening = Opening(self._backends, location, self._nodes(location), framing)
                targets, early = open_targets(opening, attempts, need)
            refused = refused_early(request, early) or self._no_room(opening, targets, need)
            if refused is None and len(targets) < need and opening.nodes.clock_ahead_s:
                return Outcome(attempts, with_clock_refusal([], need, opening.nodes))
            if refused is None and len(targets) < need and not location.policy.is_ec:
                return Outcome(attempts, early)
            if refused is not None:
                return Outcome(attempts, refused=refused)
            upload = coder.start(request, location, framing, targets, need)
            upload.send()
            grace_s = self._context.settings.post_quorum_timeout
            if framing is not None and framing.commit:
                answers = confirm(targets, framing, need=need, grace_s=grace_s)
            else:
                answers = final_answers(targets, need, grace_s)
            received = upload.etag or upload.received_etag
            answers = [*early, *answers]
            return Outcome(attempts, answers, None, upload.size, upload.etag, upload.footers, received)
        finally:
            for target in targets:
                target.abandon()

    # under conditions

    def _put_conditional(
        self, request: Request, location: ObjectLocation, attempts: list[HeaderMap]
    ) -> Outcome:
        body = hold_body(request) if is_small(request, self._context) else None

        def once(stamped: list[HeaderMap]) -> Outcome:
            if body is not None:
                request.body = BytesBody(body)
            return self._put_reserved(request, location, stamped, body)

        def agree(stamped: Sequence[HeaderMap]) -> None:
            self._agreement.reach(location, request.timestamp, stamped, lambda: self._nodes(location))

        def may_repeat(reason: TryAgain) -> bool:
            return body is not None or reason.is_early

        if location.policy.is_ec:
            attempts = with_own_stamp(request, attempts)
        check = self._context.check_ahead
        return with_retries(request, attempts, once, agree, may_repeat=may_repeat, check_ahead=check)

    def _put_reserved(
        self, request: Request, location: ObjectLocation, attempts: list[HeaderMap], body: bytes | None
    ) -> Outcome:
        """Like ``_put_stream``, to nodes that reserve the object to one writer; a small body is ``body``."""
        coder, settings = self._coder(location), self._context.settings
        framing = coder.framing(request, is_conditional=True)
        assert framing is not None, "two rounds have framing"
        coder.frame(attempts, location, framing, request.body.length)
        stage, footers = b"", None
        if body is not None and not location.policy.is_ec:
            footers = footers_of(request)
            stage = framing.whole(body, footers)
        opening = Opening(
            self._backends,
            location,
            self._nodes(location),
            framing,
            stage=stage,
            may_be_sent=self._backends.is_reserving,
        )
        targets, early = open_targets(opening, attempts, location.quorum)
        try:
            check_reserving(request.headers, targets, may_be_weak=settings.weak_if_none_match)
            refused = sum(answer.status in UNFIT for answer in early)
            need = location.quorum if location.policy.is_ec else max(1, location.majority - refused)
            check_early(early, targets, location.majority, need)
            no_room = self._no_room(opening, targets, need)
            if no_room is not None:
                return Outcome(attempts, refused=no_room)
            if len(targets) < need and not location.policy.is_ec:
                return Outcome(attempts, early)
            outcome = Outcome(attempts, (), None, len(body or b""), "", footers)
            if stage:
                for target in targets:
                    if not target.is_sent:
                        target.finish(stage)
            else:
                upload = coder.start(request, location, framing, targets, need)
                upload.send()
                outcome.size, outcome.etag, outcome.footers = upload.size, upload.etag, upload.footers
            outcome.answers = self._decide(request, location, targets, framing, early)
            return outcome
        finally:
            for target in targets:
                target.abandon()

    def _decide(
        self,
        request: Request,
        location: ObjectLocation,
        targets: Sequence[UploadTarget],
        framing: MultipartFraming,
        early: Sequence[BackendResponse],
    ) -> list[BackendResponse]:
        decision = Decision(
            location,
            targets,
            framing,
            writer=request.timestamp,
            early=early,
            need=location.quorum,
            grace_s=self._context.settings.post_quorum_timeout,
        )
        others = [answer for answer in early if answer.status not in UNFIT]
        return [*others, *decision.carry_out()]
