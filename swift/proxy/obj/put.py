"""Writing a replicated object (spec: proxy.md §11).

A small body is read first and then sent to every primary together with its head, one round trip a node.
A larger one, one that must not replace anything (``If-None-Match: *``: every node is asked before any
stores), and one to which a filter adds footers at its end, streams in step: nodes are opened with
``Expect: 100-continue``, every piece goes to all of them, a failing node is dropped, and below a quorum the
upload ends with 503.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from swift import green
from swift.base.etag import unquote_etag
from swift.cluster.fanout import Answer
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import TransportError
from swift.http.body import BadFraming, BodyTimeout, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Controller
from swift.proxy.obj.documents import Documents, footers_of, wants_footers
from swift.proxy.obj.orphans import orphans_of, row_of_put, tell_containers
from swift.proxy.obj.sinks import Pump, Sink, open_all, stream_headers
from swift.proxy.obj.target import ObjectTarget
from swift.proxy.results import best_response
from swift.ring.device import Node


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
            if small and documents is None and "if-none-match" not in request.headers:
                size = length or 0
                answers, need = self._put_small(request, target, attempts)
            else:
                framing = stream_headers(length) if documents is None else documents.headers(length)
                attempts = [{**headers, **framing} for headers in attempts]
                answers, need, size = self._put_stream(request, target, attempts, documents)
        except ClientDisconnected:
            self._count("client_disconnects")
            return error_response(499)
        except BodyTimeout:
            self._count("client_timeouts")
            return error_response(408)
        except BadFraming:
            return error_response(400)
        response = self._conclude(request, answers, len(attempts), need)
        if response.status == 201:
            orphans = orphans_of(attempts, answers)
            footers = documents.footers if documents is not None else None
            row = row_of_put(request, size, response.headers.get("etag", ""), footers)
            tell_containers(self._context, request, target, orphans, "PUT", row)
        return response

    def _count(self, what: str) -> None:
        self._context.telemetry.statsd.increment(f"object.{what}")

    def _conclude(self, request: Request, answers: Sequence[Answer], count: int, need: int) -> Response:
        statuses = [answer.status for answer in answers]
        if 412 in statuses and "if-none-match" in request.headers:
            return error_response(412)
        if 409 in statuses:
            return error_response(202)
        etags = {unquote_etag(a.headers.get("etag", "")) for a in answers if a.status // 100 == 2}
        if len(etags) > 1:
            self._context.telemetry.log.error(
                f"object servers returned {len(etags)} mismatched etags",
                txid=request.env.get("swift.trans_id"),
            )
            return error_response(500)
        response = best_response(answers, count, need)
        response.headers["last-modified"] = request.timestamp.http_date
        return response

    # a body in memory

    def _put_small(
        self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]
    ) -> tuple[Sequence[Answer], int]:
        body = _read_exactly(request)
        return self._controller.write_answers(
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
    ) -> tuple[Sequence[Answer], int, int]:
        """The answers, how many must agree, and the bytes that were sent."""
        need = target.quorum
        nodes = self._nodes(target)
        opened = open_all(partial(self._open, nodes, target, documents), attempts, nodes, need)
        sinks = [sink for sink in opened if isinstance(sink, Sink)]
        answers = [answer for answer in opened if isinstance(answer, Answer)]
        try:
            if _ends_early(request, answers) or len(sinks) < need:
                return answers, need, 0
            size = self._send_body(request, sinks, need, documents)
            answers += self._collect(sinks, need)
            return answers, need, size
        finally:
            for sink in sinks:
                sink.abandon()

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


def _ends_early(request: Request, answers: Sequence[Answer]) -> bool:
    statuses = {answer.status for answer in answers}
    return 409 in statuses or (412 in statuses and "if-none-match" in request.headers)


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
