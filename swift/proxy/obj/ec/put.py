"""Writing an erasure coded object (spec: proxy.md §13).

The body is cut into segments; each gives every node one fragment. While one segment is on its way to the
nodes, the next one is coded and hashed in a thread and the one after it arrives. When the last fragment was
sent every node gets its footers, says that its archive is on disk, and only when a quorum did so is it told
to make the archive count. Until then nothing of the upload can be read, and an upload that breaks off leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from swift.cluster.fanout import Answer
from swift.http import fields
from swift.http.body import BadFraming, BodyTimeout, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.proxy.controller import Controller
from swift.proxy.obj.conditional import Decision, check_promising, is_conditional, refused_everywhere
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.ec.scheme import ETAG, Scheme, Schemes
from swift.proxy.obj.ec.upload import ArchiveUpload
from swift.proxy.obj.orphans import orphans_of, row_of_put, tell_containers
from swift.proxy.obj.phases import confirm
from swift.proxy.obj.sinks import open_all
from swift.proxy.obj.staged import StagedSink, assign_indexes, open_sink
from swift.proxy.obj.target import ObjectTarget
from swift.proxy.results import put_response, refused_early


class ArchiveUploader:
    """Sends one object to the nodes of its archives."""

    def __init__(self, controller: Controller, schemes: Schemes):
        self._context = controller.context
        self._backends = controller.backends
        self._schemes = schemes

    def put(self, request: Request, target: ObjectTarget, attempts: list[HeaderMap]) -> Response:
        """Store the request's body; the client's response."""
        scheme = self._schemes.of(target.policy)
        try:
            return self._put(request, target, attempts, scheme)
        except ClientDisconnected:
            self._count("client_disconnects")
            return error_response(499)
        except BodyTimeout:
            self._count("client_timeouts")
            return error_response(408)
        except BadFraming:
            return error_response(400)

    def _count(self, what: str) -> None:
        self._context.telemetry.statsd.increment(f"object.{what}")

    def _put(
        self, request: Request, target: ObjectTarget, attempts: list[HeaderMap], scheme: Scheme
    ) -> Response:
        documents = Documents(commit=True, reserve=is_conditional(request.headers))
        length = request.body.length
        framing = documents.headers(None if length is None else scheme.archive_length(length))
        for headers in attempts:
            headers.pop("etag", None)
            if documents.reserve:
                also = headers.get(fields.BACKEND_ETAG_IS_AT)
                headers[fields.BACKEND_ETAG_IS_AT] = f"{also},{ETAG.title()}" if also else ETAG.title()
            headers.update(framing)
        nodes = self._context.planner(target.policy.index).for_put(target.view, target.part)
        opener = partial(open_sink, self._backends, nodes, target, documents)
        opened = open_all(opener, attempts, nodes, target.quorum)
        sinks = [sink for sink in opened if isinstance(sink, StagedSink)]
        early = [answer for answer in opened if isinstance(answer, Answer)]
        upload = ArchiveUpload(request, scheme, documents, sinks, target.quorum, self._schemes.threads)
        try:
            if documents.reserve:
                check_promising(request.headers, sinks)
                refused_everywhere(early, 1)
            else:
                refused = refused_early(request, early)
                if refused is not None:
                    return refused
            upload.check()
            assign_indexes(sinks, scheme.ec.fragments, scheme.ec.duplication)
            settings = self._context.settings
            upload.send(settings.client_chunk_size, self._context.limits.max_file_size)
            answers = self._confirm(request, target, documents, sinks, early)
        finally:
            for sink in sinks:
                sink.abandon()
        return self._conclude(request, target, attempts, answers, upload)

    def _confirm(
        self,
        request: Request,
        target: ObjectTarget,
        documents: Documents,
        sinks: Sequence[StagedSink],
        early: Sequence[Answer],
    ) -> list[Answer]:
        grace_s = self._context.settings.post_quorum_timeout
        if not documents.reserve:
            return confirm(sinks, documents, need=target.quorum, grace_s=grace_s)
        decision = Decision(
            self._backends, target, sinks, documents, writer=request.timestamp, early=early, grace_s=grace_s
        )
        return decision.carry_out()

    def _conclude(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: list[HeaderMap],
        answers: list[Answer],
        upload: ArchiveUpload,
    ) -> Response:
        response = put_response(answers, len(attempts), target.quorum)
        if response.status != 201:
            return response
        encoder = upload.encoder
        response.headers["etag"] = encoder.etag
        response.headers["last-modified"] = request.timestamp.http_date
        row = row_of_put(request, encoder.size, encoder.etag, upload.footers)
        tell_containers(self._context, request, target, orphans_of(attempts, answers), "PUT", row)
        return response
