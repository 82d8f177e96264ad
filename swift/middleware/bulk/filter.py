"""Bulk extraction and bulk deletion, which keep the connection alive meanwhile (spec: middleware.md §7).

The work runs in a green thread of its own, so that a space can be sent at intervals however long one object
takes. The status line is 200 from the start; the body contains the result. With ``heartbeat=off`` the status
line waits for the end and is that of the report (decision 0023). The work stops when the client disconnects:
a client can send the remaining names again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.compose import Services
from swift.config.kinds import COUNT, integer, number
from swift.config.schema import Settings, option
from swift.http import environkeys
from swift.http.body import IterableBody
from swift.http.listing import DECLARATION
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.bulk.delete import BulkDeletion, DeleteLimits
from swift.middleware.bulk.extract import ArchiveExtraction, ExtractLimits
from swift.middleware.bulk.report import BulkReport
from swift.middleware.bulk.unpack import ARCHIVE_FORMATS
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.heartbeat import SPACE, Heartbeat, requires_final_status
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
    """Extracts archives and deletes lists of names."""

    def __init__(self, app: App, settings: BulkSettings, name_bytes_max: int, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._name_bytes_max = name_bytes_max
        self._log = telemetry.log

    def handle(self, request: Request) -> Response:
        """Extract or delete if the query asks for it; forward all other requests."""
        if not request.query or request.entity is None:
            return self.forward(request)
        settings = self._settings
        archive_format = request.params.get("extract-archive")
        if archive_format is not None and request.method == "PUT":
            archive_format = archive_format.lower().strip(".")
            if archive_format not in ARCHIVE_FORMATS:
                return error_response(400, "Unsupported archive format")
            limits = ExtractLimits(settings.max_containers_per_extraction, settings.max_failed_extractions)
            extraction = ArchiveExtraction(request, self.forward, archive_format, limits)
            return self._run_and_respond(request, extraction.report, extraction.run)
        if "bulk-delete" in request.params and request.method in ("POST", "DELETE"):
            deletion = BulkDeletion(
                request,
                self.forward,
                DeleteLimits(
                    names_max=settings.max_deletes_per_request,
                    failures_max=settings.max_failed_deletes,
                    concurrency=settings.delete_concurrency,
                    retries=settings.delete_container_retry_count,
                    name_bytes_max=self._name_bytes_max,
                ),
            )
            content_type = request.headers.get("content-type")
            if content_type and not content_type.startswith("text/plain"):
                deletion.report.fail(406)
            return self._run_and_respond(request, deletion.report, deletion.run)
        return self.forward(request)

    def _run_and_respond(
        self, request: Request, report: BulkReport, run: Callable[[], BulkReport]
    ) -> Response:
        report_format = accepted_format(request.headers.get("accept"))
        if report_format is None:
            report.fail(406)
            status = 406 if requires_final_status(request) else 200
            return Response(
                status, {"content-type": HTML}, IterableBody([report.render(ListingFormat.PLAIN)])
            )
        if not report.status and "content-length" not in request.headers and request.body.length is not None:
            report.fail(411)
        headers = {"content-type": report_format.value}
        waits_for_status = requires_final_status(request)
        if report.status:
            status = report.status_code if waits_for_status else 200
            return Response(status, headers, IterableBody([report.render(report_format)]))

        def work() -> bytes:
            return run().render(report_format)

        def failed(error: Exception) -> bytes:
            message = f"Error: {request.method} {request.path_qs}"
            self._log.exception(message, error, txid=request.env.get(environkeys.TRANS_ID))
            report.fail(500)
            return report.render(report_format)

        interval_s = self._settings.yield_frequency
        first = DECLARATION.encode() if report_format.is_xml else SPACE
        body = Heartbeat(work, failed, interval_s=interval_s, first=first, is_cancelled=True)
        content = body.start(None if waits_for_status else interval_s)
        if content is None:
            return Response(200, headers, body)
        status = report.status_code if waits_for_status else 200
        return Response(status, headers, IterableBody([content]))


def _make_filter(app: App, settings: BulkSettings, services: Services) -> Bulk:
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
    name_bytes_max = 4 * (limits.max_container_name_length + limits.max_object_name_length) + 2
    return Bulk(app, settings, name_bytes_max, services.telemetry())


FILTER = FilterDeclaration(
    "bulk",
    BulkSettings,
    _make_filter,
    position=90,
    default=True,
    left_of={
        "tempauth": "tempauth authorizes each of its requests",
        "swiftauth": "swiftauth authorizes each of its requests",
        "keystoneauth": "keystoneauth authorizes each of its requests",
        "encryption": "its own requests must pass through encryption",
    },
)
