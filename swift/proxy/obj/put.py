"""Writing a replicated object (spec: proxy.md §11).

A small body is read first and then sent to every primary together with its head, one round trip a node.
A larger one, and one to which a filter adds footers at its end, streams in step: nodes are opened with
``Expect: 100-continue``, every piece goes to all of them, a failing node is dropped, and below a quorum the
upload ends with 503. One that must not replace anything (``If-None-Match: *``) goes in two phases: nodes have
it, and a majority of the primaries promised the object to nobody else, before any stores it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.base.etag import unquote_etag
from swift.cluster.fanout import Answer
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import TransportError
from swift.http import fields
from swift.http.body import BadFraming, BodyTimeout, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Controller
from swift.proxy.obj.conditional import Decision, check_promising, is_conditional, refused_everywhere
from swift.proxy.obj.documents import Documents, footers_of, wants_footers
from swift.proxy.obj.orphans import orphans_of, row_of_put, tell_containers
from swift.proxy.obj.sinks import PIECE_BYTES, Pump, Sink, open_all, stream_headers
from swift.proxy.obj.staged import StagedSink, open_sink, spread
from swift.proxy.obj.target import ObjectTarget
from swift.proxy.results import put_response, refused_early
from swift.ring.device import Node


@dataclass(slots=True)
class Outcome:
    """What came of sending an object to its nodes."""

    #: How many nodes must have stored it.
    need: int
    #: Bytes of its body.
    size: int = 0
    #: What nodes answered instead of taking the body.
    early: Sequence[Answer] = ()
    answers: Sequence[Answer] = ()


class Uploader:
    """Sends one object to its replicas."""

    def __init__(self, controller: Controller):
        self._controller = controller
        self._context: ProxyContext = controller.context
        self._backends: Backends = controller.backends
        self._pump = Pump(self._backends, self._context.limits.max_file_size)

    def put(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Response:
        """Store the request's body; the client's response."""
        length = request.body.length
        try:
            documents = Documents() if wants_footers(request) else None
            small = length is not None and length <= self._context.settings.client_chunk_size
            if is_conditional(request.headers):
                documents = Documents(commit=True, reserve=True)
                outcome = self._put_promised(request, target, attempts, documents)
            elif small and documents is None:
                outcome = self._put_small(request, target, attempts)
            else:
                framing = stream_headers(length) if documents is None else documents.headers(length)
                attempts = [{**headers, **framing} for headers in attempts]
                outcome = self._put_stream(request, target, attempts, documents)
        except ClientDisconnected:
            self._count("client_disconnects")
            return error_response(499)
        except BodyTimeout:
            self._count("client_timeouts")
            return error_response(408)
        except BadFraming:
            return error_response(400)
        response = self._conclude(request, outcome, len(attempts))
        if response.status == 201:
            orphans = orphans_of(attempts, outcome.answers)
            footers = documents.footers if documents is not None else None
            row = row_of_put(request, outcome.size, response.headers.get("etag", ""), footers)
            tell_containers(self._context, request, target, orphans, "PUT", row)
        return response

    def _count(self, what: str) -> None:
        self._context.telemetry.statsd.increment(f"object.{what}")

    def _conclude(self, request: Request, outcome: Outcome, count: int) -> Response:
        refused = refused_early(request, outcome.early)
        if refused is not None:
            return refused
        answers = [*outcome.early, *outcome.answers]
        etags = {unquote_etag(a.headers.get("etag", "")) for a in answers if a.status // 100 == 2}
        if len(etags) > 1:
            self._context.telemetry.log.error(
                f"object servers returned {len(etags)} mismatched etags",
                txid=request.env.get(fields.TRANS_ID),
            )
            return error_response(500)
        response = put_response(answers, count, outcome.need)
        response.headers["last-modified"] = request.timestamp.http_date
        return response

    # a body in memory

    def _put_small(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Outcome:
        body = _read_exactly(request)
        answers, need = self._controller.write_answers(
            target.view,
            target.part,
            "PUT",
            target.path,
            attempts,
            nodes=self._nodes(target),
            body=body,
            quorum=target.quorum,
            request=request,
        )
        return Outcome(need, len(body), answers=answers)

    def _nodes(self, target: ObjectTarget) -> NodeIterator:
        planner = self._context.planner(target.policy.index)
        return planner.for_put(target.view, target.part)

    # a streamed body

    def _put_stream(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: list[HeaderMap],
        documents: Documents | None,
    ) -> Outcome:
        outcome = Outcome(target.quorum)
        nodes = self._nodes(target)
        opened = open_all(partial(self._open, nodes, target, documents), attempts, nodes, outcome.need)
        sinks = [sink for sink in opened if isinstance(sink, Sink)]
        outcome.early = [answer for answer in opened if isinstance(answer, Answer)]
        try:
            if refused_early(request, outcome.early) is None and len(sinks) >= outcome.need:
                outcome.size = self._send_body(request, sinks, outcome.need, documents)
                outcome.answers = self._collect(sinks, outcome.need)
            return outcome
        finally:
            for sink in sinks:
                sink.abandon()

    # a body in two phases

    def _put_promised(
        self, request: Request, target: ObjectTarget, attempts: list[HeaderMap], documents: Documents
    ) -> Outcome:
        """Like ``_put_stream``, to nodes that promise the object to one writer."""
        outcome = Outcome(target.quorum)
        framing = documents.headers(request.body.length)
        for headers in attempts:
            headers.update(framing)
        nodes = self._nodes(target)
        opener = partial(open_sink, self._backends, nodes, target, documents)
        opened = open_all(opener, attempts, nodes, outcome.need)
        sinks = [sink for sink in opened if isinstance(sink, StagedSink)]
        outcome.early = [answer for answer in opened if isinstance(answer, Answer)]
        try:
            check_promising(request.headers, sinks)
            refused_everywhere(outcome.early, target.majority)
            if len(sinks) + sum(answer.status == 412 for answer in outcome.early) < target.majority:
                return outcome
            outcome.size = self._send_documents(request, sinks, documents)
            decision = Decision(
                self._backends,
                target,
                sinks,
                documents,
                writer=request.timestamp,
                early=outcome.early,
                grace_s=self._context.settings.post_quorum_timeout,
            )
            outcome.early = [answer for answer in outcome.early if answer.status != 412]
            outcome.answers = decision.carry_out()
            return outcome
        finally:
            for sink in sinks:
                sink.abandon()

    def _send_documents(self, request: Request, sinks: Sequence[StagedSink], documents: Documents) -> int:
        """Move the body and its footers to all sinks; the body's size. Raises like ``Pump.move``."""
        size, size_max = 0, self._context.limits.max_file_size
        spread(sinks, documents.opening)
        while piece := request.body.read(PIECE_BYTES):
            size += len(piece)
            if size > size_max:
                raise HTTPError(413, "Your request is too large.", content_type=TEXT)
            spread(sinks, piece)
        documents.footers = footers_of(request)
        closing = documents.closing(documents.footers)
        for sink in sinks:
            sink.finish(closing)
        return size

    def _open(
        self, nodes: Iterator[Node], target: ObjectTarget, documents: Documents | None, headers: HeaderMap
    ) -> Sink | Answer | None:
        """A node that is ready for the body, or its early final answer."""
        headers["expect"] = "100-continue"
        for node in nodes:
            exchange = self._backends.open(node, target.part, "PUT", target.path, headers)
            if exchange is None:
                continue
            try:
                early = exchange.wait_continue()
            except TransportError as error:
                self._backends.failed(node, error, headers)
                continue
            if early is None:
                if documents is None or documents.understood(exchange.continue_headers):
                    return Sink(node, exchange, headers)
                exchange.abort()
                self._backends.failed(node, "the node takes no footers", headers)
                continue
            self._backends.judge(node, early.status)
            exchange.abort()
            if early.status < 500:
                return Answer(early.status, early.reason, early.headers, node=node, attempt=headers)
        return None

    def _send_body(self, request: Request, sinks: list[Sink], need: int, documents: Documents | None) -> int:
        """Move the body, and footers if there are any, to all sinks; the body's size."""
        pump = self._pump
        if documents is not None:
            pump.send(documents.opening, sinks, need)
        size, trailers = pump.move(request.body, sinks, need)
        if documents is not None:
            documents.footers = footers_of(request)
            pump.send(documents.closing(documents.footers), sinks, need)
        for sink in sinks:
            sink.finish(trailers, self._backends)
        return size

    def _collect(self, sinks: list[Sink], need: int) -> list[Answer]:
        box = green.Mailbox()
        waiting = 0

        def wait_for(sink: Sink) -> None:
            answer = None
            try:
                answer = sink.answer(self._backends)
            finally:
                box.put(answer)

        for sink in sinks:
            if sink.alive:
                waiting += 1
                sink.awaited = True
                green.spawn_detached(wait_for, sink)
        answers: list[Answer] = []
        deadline = None
        while waiting:
            try:
                answer = box.get(deadline)
            except green.DeadlineExceeded:
                break
            waiting -= 1
            if answer is None:
                continue
            answers.append(answer)
            agreeing = sum(1 for a in answers if a.status // 100 == answer.status // 100)
            if deadline is None and agreeing >= need:
                deadline = time.monotonic() + self._context.settings.post_quorum_timeout
        return answers


def _read_exactly(request: Request) -> bytes:
    """The whole announced body; raises ``ClientDisconnected`` when it is shorter."""
    body = request.body
    wanted = body.length or 0
    if not wanted:
        return b""
    data = body.read(wanted)
    if len(data) == wanted:
        return data
    pieces, left = [data], wanted - len(data)
    while left:
        piece = body.read(left)
        if not piece:
            raise ClientDisconnected("the body is shorter than announced")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
