"""Takes archives and lists, works on them, and keeps the client waiting politely (spec: middleware.md §7).

The work is done in a green thread of its own, so that a space can be sent now and then, however long one
object takes. The answer is 200 from the beginning; how it went is in its body. With ``heartbeat=off`` the
status line waits for the end and is that of the report (decision 0023). The work ends with its client: names
that are left can be sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from swift import green
from swift.compose import Services
from swift.config.kinds import COUNT, integer, number
from swift.config.schema import Settings, option
from swift.http import environkeys
from swift.http.body import IterableBody
from swift.http.listing import DECLARATION
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.bulk.delete import DeleteLimits, Deletion
from swift.middleware.bulk.extract import Extraction, ExtractLimits
from swift.middleware.bulk.report import BulkReport
from swift.middleware.bulk.unpack import KINDS
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.heartbeat import wants_true_status
from swift.telemetry.telemetry import Telemetry


@dataclass(frozen=True)
class BulkSettings(Settings):
    """``[filter:bulk]``."""

    max_containers_per_extraction: int = option(10000, "Containers that an archive may make.", kind=COUNT)
    max_failed_extractions: int = option(1000, "Failures that end an extraction.", kind=integer(1))
    max_deletes_per_request: int = option(10000, "Names that a list may have.", kind=COUNT)
    max_failed_deletes: int = option(1000, "Failures that end a deletion.", kind=integer(1))
    yield_frequency: float = option(10.0, "Seconds between signs of life.", kind=number(0.01))
    delete_concurrency: int = option(2, "Deletions at the same time.", kind=integer(1, 1000))
    delete_container_retry_count: int = option(
        0, "Number of times to retry the deletion of a container that is not yet empty.", kind=integer(0, 20)
    )


class Bulk(Filter):
    """Extracts archives and deletes lists."""

    def __init__(self, app: App, settings: BulkSettings, name_bytes: int, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._name_bytes = name_bytes
        self._log = telemetry.log

    def handle(self, request: Request) -> Response:
        """Do what a query asks for; everything else is not this filter's business."""
        if not request.query or request.entity is None:
            return self.forward(request)
        settings = self._settings
        kind = request.params.get("extract-archive")
        if kind is not None and request.method == "PUT":
            kind = kind.lower().strip(".")
            if kind not in KINDS:
                return error_response(400, "Unsupported archive format")
            limits = ExtractLimits(settings.max_containers_per_extraction, settings.max_failed_extractions)
            extraction = Extraction(request, self.forward, kind, limits)
            return self._answer(request, extraction.report, extraction.run)
        if "bulk-delete" in request.params and request.method in ("POST", "DELETE"):
            deletion = Deletion(
                request,
                self.forward,
                DeleteLimits(
                    names=settings.max_deletes_per_request,
                    failures=settings.max_failed_deletes,
                    concurrency=settings.delete_concurrency,
                    retries=settings.delete_container_retry_count,
                    name_bytes=self._name_bytes,
                ),
            )
            content_type = request.headers.get("content-type")
            if content_type and not content_type.startswith("text/plain"):
                deletion.report.fail(406)
            return self._answer(request, deletion.report, deletion.run)
        return self.forward(request)

    def _answer(self, request: Request, report: BulkReport, run: Callable[[], BulkReport]) -> Response:
        shape = accepted_format(request.headers.get("accept"))
        if shape is None:
            report.fail(406)
            status = 406 if wants_true_status(request) else 200
            return Response(
                status, {"content-type": HTML}, IterableBody([report.render(ListingFormat.PLAIN)])
            )
        if not report.status and "content-length" not in request.headers and request.body.length is not None:
            report.fail(411)
        headers = {"content-type": shape.value}
        is_true_status = wants_true_status(request)
        if report.status:
            status = report.code if is_true_status else 200
            return Response(status, headers, IterableBody([report.render(shape)]))
        work = _Work(report, run, self._settings.yield_frequency, self._failed(request))
        if is_true_status:
            work.wait()
            return Response(report.code, headers, IterableBody([report.render(shape)]))
        if work.is_done():
            return Response(200, headers, IterableBody([report.render(shape)]))
        return Response(200, headers, IterableBody(work.pieces(shape), on_close=work.end))

    def _failed(self, request: Request) -> Callable[[Exception], None]:
        what, txid = f"Error: {request.method} {request.path_qs}", request.env.get(environkeys.TRANS_ID)
        return lambda error: self._log.exception(what, error, txid=txid)


class _Work:
    """A run in a green thread of its own; ``failed`` is told of a programming error in it."""

    def __init__(
        self,
        report: BulkReport,
        run: Callable[[], BulkReport],
        interval_s: float,
        failed: Callable[[Exception], None],
    ):
        self._report = report
        self._interval_s = interval_s
        self._failed = failed
        self._done = green.Event()
        self._task = green.spawn(self._do, run)

    def _do(self, run: Callable[[], BulkReport]) -> None:
        try:
            run()
        except Exception as error:
            # The client has its 200 already.
            self._failed(error)
            self._report.fail(500)
        self._done.set()

    def is_done(self) -> bool:
        """Wait for the end, but no longer than until the next sign of life is due."""
        return self._done.wait(self._interval_s)

    def wait(self) -> None:
        """Wait for the end."""
        while not self.is_done():
            pass

    def pieces(self, shape: ListingFormat) -> Iterator[bytes]:
        """Signs of life, then the report."""
        yield DECLARATION.encode() if shape.is_xml else b" "
        while not self.is_done():
            yield b" "
        yield b"\r\n\r\n" + self._report.render(shape)

    def end(self) -> None:
        """Stop working for a client that went away."""
        self._task.kill()


def _make(app: App, settings: BulkSettings, services: Services) -> Bulk:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    info = services.info
    info.register(
        "bulk_upload",
        {
            "max_containers_per_extraction": settings.max_containers_per_extraction,
            "max_failed_extractions": settings.max_failed_extractions,
        },
    )
    info.register(
        "bulk_delete",
        {
            "max_deletes_per_request": settings.max_deletes_per_request,
            "max_failed_deletes": settings.max_failed_deletes,
        },
    )
    limits = services.cluster.config.limits
    # A slash on each side, and every character may have four bytes.
    name_bytes = 4 * (limits.max_container_name_length + limits.max_object_name_length) + 2
    return Bulk(app, settings, name_bytes, services.telemetry())


FILTER = FilterDeclaration(
    "bulk",
    BulkSettings,
    _make,
    position=90,
    default=True,
    left_of={
        "tempauth": "its requests would keep the rights of one",
        "keystoneauth": "its requests would keep the rights of one",
        "encryption": "it would read and write what is encrypted",
    },
)
