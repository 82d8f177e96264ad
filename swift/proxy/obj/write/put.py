"""Writing an object, whatever its policy (spec: proxy.md §11, §13).

A small body for replicas is read first and then sent to every primary together with its head, one round trip
a node. If a filter adds footers to it, they are known then and sent as headers. Any other upload streams in
step. Nodes are opened with ``Expect: 100-continue``, and the coder of the policy sends each its part. A
failing node is dropped, and below a quorum the upload ends with 503. Archives and conditional uploads have
two rounds: nodes have everything, and have reserved the object for this writer, before any is told to commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import md5

from swift.base.etag import unquote_etag
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse
from swift.http import environkeys, fields
from swift.http.body import BadFraming, BodyTimeout, BytesBody, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Change, write_to_nodes
from swift.proxy.obj.commit.conditional import (
    EARLY_REFUSALS,
    ReplicaRepair,
    RetryableFailure,
    check_early,
    check_reserving,
    commit_conditionally,
    is_conditional,
    with_retries,
    with_unique_timestamp,
)
from swift.proxy.obj.commit.framing import (
    buffer_body,
    footers_as_headers,
    footers_of,
    is_small,
    read_exactly,
)
from swift.proxy.obj.commit.phases import confirm
from swift.proxy.obj.commit.targets import TargetOpener, UploadTarget, final_responses, open_targets
from swift.proxy.obj.location import WriteLocation
from swift.proxy.obj.rowupdates import ensure_row_majority, row_of_put, send_updates, unsent_updates
from swift.proxy.obj.write.copies import CopyCoder
from swift.proxy.obj.write.ec import ArchiveCoder
from swift.proxy.results import early_refusal, put_response, with_clock_refusal
from swift.telemetry.events import Event

_ABORTED = Event("object.{reason}", "Uploads that ended early: `client_disconnects`, `client_timeouts`.")


@dataclass(slots=True)
class UploadOutcome:
    """The outcome of sending an object to its nodes."""

    attempts: Sequence[HeaderMap]
    responses: Sequence[BackendResponse] = ()
    #: The client's response when nodes refused the upload before its body.
    refused: Response | None = None
    #: Bytes of the object, its MD5 (empty where only nodes know it), and what filters added.
    size: int = 0
    etag: str = ""
    footers: HeaderMap | None = field(default=None)
    #: The MD5 of the client's body, where the proxy knows it and may need it.
    received_etag: str = ""


class Uploader:
    """Sends objects to their nodes."""

    def __init__(
        self, context: ProxyContext, backends: Backends, archives: ArchiveCoder, repair: ReplicaRepair
    ):
        self._context = context
        self._backends = backends
        self._small_max = context.settings.client_chunk_size
        self._copies = CopyCoder(context)
        self._archives = archives
        self._repair = repair

    def put(self, request: Request, location: WriteLocation, attempts: list[HeaderMap]) -> Response:
        """Store the request's body and return the client's response."""
        try:
            if is_conditional(request.headers):
                outcome = self._put_conditional(request, location, attempts)
            elif is_small(request, self._small_max) and not location.policy.is_ec:
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
        return self._build_response(request, location, outcome)

    def _count(self, reason: str) -> None:
        _ABORTED.count(self._context.telemetry.statsd, reason=reason)

    def _build_response(self, request: Request, location: WriteLocation, outcome: UploadOutcome) -> Response:
        responses = outcome.responses
        if not outcome.etag:
            etags = {unquote_etag(a.headers.get("etag", "")) for a in responses if a.status // 100 == 2}
            if len(etags) > 1:
                self._context.telemetry.log.error(
                    f"object servers returned {len(etags)} mismatched etags",
                    txid=request.env.get(environkeys.TRANS_ID),
                )
                return error_response(500)
        response = put_response(responses, len(outcome.attempts), location.quorum)
        response.headers["last-modified"] = request.timestamp.http_date
        response.headers[fields.BACKEND_TIMESTAMP] = request.timestamp.internal
        if response.status == 202 and outcome.received_etag:
            # See gateway.writing.
            response.headers["etag"] = outcome.received_etag
        if response.status != 201:
            return response
        if outcome.etag:
            response.headers["etag"] = outcome.etag
        unsent = unsent_updates(outcome.attempts, responses)
        if not unsent and not location.is_strongly_listed:
            return response
        row = row_of_put(request, outcome.size, response.headers.get("etag", ""), outcome.footers)
        stored = [found for found in responses if found.status // 100 == 2]
        if location.is_strongly_listed and not ensure_row_majority(
            self._context, request, location, stored, "PUT", row
        ):
            return error_response(503)
        if unsent:
            send_updates(self._context, request, location, unsent, "PUT", row)
        return response

    def _coder(self, location: WriteLocation) -> CopyCoder | ArchiveCoder:
        return self._archives if location.policy.is_ec else self._copies

    def _nodes(self, location: WriteLocation) -> NodeIterator:
        planner = self._context.planner(location.policy.index)
        return planner.for_put(location.view, location.part)

    def _insufficient_storage(
        self, opening: TargetOpener, targets: Sequence[UploadTarget], need: int
    ) -> Response | None:
        """Return 507, if configured, for an upload that fails only for lack of space."""
        settings = self._context.planner(opening.location.policy.index).settings
        if settings.answer_insufficient_storage and len(targets) < need <= len(targets) + len(
            opening.full_nodes
        ):
            return error_response(507, "There is not enough room for this object.\n", content_type=TEXT)
        return None

    # a body in memory

    def _put_small(
        self, request: Request, location: WriteLocation, attempts: list[HeaderMap]
    ) -> UploadOutcome:
        footers: HeaderMap | None = None
        if environkeys.UPDATE_FOOTERS in request.env:
            body = buffer_body(request)
            footers = footers_as_headers(request.headers, footers_of(request), self._context.limits)
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
        responses, _need = write_to_nodes(self._context, self._backends, request, change)
        is_late = any(response.status == 409 for response in responses)
        received = md5(body, usedforsecurity=False).hexdigest() if is_late else ""
        return UploadOutcome(attempts, responses, None, len(body), "", footers, received)

    # a streamed body

    def _put_stream(
        self, request: Request, location: WriteLocation, attempts: list[HeaderMap]
    ) -> UploadOutcome:
        coder, need = self._coder(location), location.quorum
        framing = coder.framing(request, is_conditional=False)
        coder.frame(attempts, location, framing, request.body.length)
        restamper = self._context.restamper(request)
        opening = TargetOpener(self._backends, location, self._nodes(location), framing)
        targets, early = open_targets(opening, attempts, need)
        try:
            while restamper.restamp(attempts, early):
                for target in targets:
                    target.abandon()
                opening = TargetOpener(self._backends, location, self._nodes(location), framing)
                targets, early = open_targets(opening, attempts, need)
            refused = early_refusal(request, early) or self._insufficient_storage(opening, targets, need)
            if refused is None and len(targets) < need and opening.nodes.clock_ahead_s:
                return UploadOutcome(attempts, with_clock_refusal([], need, opening.nodes))
            if refused is None and len(targets) < need and not location.policy.is_ec:
                return UploadOutcome(attempts, early)
            if refused is not None:
                return UploadOutcome(attempts, refused=refused)
            upload = coder.start(request, location, framing, targets, need)
            upload.send()
            grace_s = self._context.settings.post_quorum_timeout
            if framing is not None and framing.commit:
                responses = confirm(targets, framing, need=need, grace_s=grace_s)
            else:
                responses = final_responses(targets, need, grace_s)
            received = upload.etag or upload.received_etag
            responses = [*early, *responses]
            return UploadOutcome(
                attempts, responses, None, upload.size, upload.etag, upload.footers, received
            )
        finally:
            for target in targets:
                target.abandon()

    # under conditions

    def _put_conditional(
        self, request: Request, location: WriteLocation, attempts: list[HeaderMap]
    ) -> UploadOutcome:
        body = buffer_body(request) if is_small(request, self._small_max) else None

        def try_once(stamped: list[HeaderMap]) -> UploadOutcome:
            if body is not None:
                request.body = BytesBody(body)
            return self._put_reserved(request, location, stamped, body)

        def agree(stamped: Sequence[HeaderMap]) -> None:
            self._repair.repair(location, request.timestamp, stamped, lambda: self._nodes(location))

        def may_repeat(reason: RetryableFailure) -> bool:
            return body is not None or reason.is_early

        if location.policy.is_ec:
            attempts = with_unique_timestamp(request, attempts)
        check = self._context.check_ahead
        return with_retries(request, attempts, try_once, agree, may_repeat=may_repeat, check_ahead=check)

    def _put_reserved(
        self, request: Request, location: WriteLocation, attempts: list[HeaderMap], body: bytes | None
    ) -> UploadOutcome:
        """Upload like ``_put_stream``, to nodes that reserve the object; a small body is ``body``."""
        coder, settings = self._coder(location), self._context.settings
        framing = coder.framing(request, is_conditional=True)
        assert framing is not None, "two rounds have framing"
        coder.frame(attempts, location, framing, request.body.length)
        stage, footers = b"", None
        if body is not None and not location.policy.is_ec:
            footers = footers_of(request)
            stage = framing.whole(body, footers)
        opening = TargetOpener(
            self._backends,
            location,
            self._nodes(location),
            framing,
            stage=stage,
            may_send_stage=self._backends.is_reserving,
        )
        targets, early = open_targets(opening, attempts, location.quorum)
        try:
            check_reserving(request.headers, targets, may_be_weak=settings.weak_if_none_match)
            refused = sum(response.status in EARLY_REFUSALS for response in early)
            need = location.quorum if location.policy.is_ec else max(1, location.majority - refused)
            check_early(early, targets, location.majority, need)
            no_room = self._insufficient_storage(opening, targets, need)
            if no_room is not None:
                return UploadOutcome(attempts, refused=no_room)
            if len(targets) < need and not location.policy.is_ec:
                return UploadOutcome(attempts, early)
            outcome = UploadOutcome(attempts, (), None, len(body or b""), "", footers)
            if stage:
                for target in targets:
                    if not target.is_sent:
                        target.finish(stage)
            else:
                upload = coder.start(request, location, framing, targets, need)
                upload.send()
                outcome.size, outcome.etag, outcome.footers = upload.size, upload.etag, upload.footers
            others = [response for response in early if response.status not in EARLY_REFUSALS]
            outcome.responses = others + commit_conditionally(
                location,
                targets,
                framing,
                writer=request.timestamp,
                early=early,
                need=location.quorum,
                grace_s=settings.post_quorum_timeout,
            )
            return outcome
        finally:
            for target in targets:
                target.abandon()
