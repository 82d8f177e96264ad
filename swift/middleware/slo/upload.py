"""PUT of a manifest: checks every segment, then stores the manifest (spec: middleware.md §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import md5
from urllib.parse import quote

from swift import green
from swift.base.digits import is_digits
from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.ranges import Span
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.gateway.subrequest import open_response
from swift.http import environkeys, fields
from swift.http.body import BytesBody, IterableBody, read_up_to
from swift.http.conditional import parse_http_date
from swift.http.etagparameters import add_etag_parameters
from swift.http.headers import HeaderMap, utf8_value
from swift.http.mediatypes import TypeGuesser
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import Problem, plain_explanation, render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.heartbeat import Heartbeat
from swift.middleware.segments import allow_hidden_parts, is_hidden_part, make_segment_request
from swift.middleware.slo.manifest import (
    MANIFEST_BYTES_MAX,
    MIN_SEGMENT_BYTES,
    SEGMENT_TOO_SMALL,
    BadManifest,
    Entry,
    InlineData,
    Part,
    SegmentReference,
    make_inline_part,
    manifest_etag,
    parse_stored,
    parse_upload,
    render_stored,
    total_bytes,
)
from swift.middleware.slo.settings import SloSettings
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log

SUBREQUEST_SOURCE = "SLO"
_REPORT_ROOT = "upload"


def has_hidden_parts(request: Request) -> bool:
    """Return True if the manifest is of hidden parts, as ``hidden_segments`` writes it."""
    return fields.SYSMETA_SLO_UPLOAD in request.headers


def _is_built_by_filter(request: Request) -> bool:
    """Return True if a filter built the manifest from part numbers.

    Then the names that the filter adds, not the client, make it long.
    """
    return has_hidden_parts(request) or fields.SYSMETA_S3_UPLOAD_ID in request.headers


class ManifestUpload:
    """Validates and stores manifests."""

    def __init__(self, forward: Handle, settings: SloSettings, guesser: TypeGuesser, log: Log):
        self._forward = forward
        self._settings = settings
        self._guesser = guesser
        self._log = log

    def put(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the response to a PUT; raises ``HTTPError``."""
        entries = self._read_entries(request, path)
        report_format = accepted_format(request.headers.get("accept")) or ListingFormat.PLAIN

        def work() -> tuple[Response, list[Problem]]:
            parts, problems = self._resolve_parts(request, version, path, entries)
            hook = request.env.get(environkeys.SLO_MANIFEST_HOOK)
            if hook is not None and not problems:
                problems += hook([part.to_stored() for part in parts]) or []
            if problems:
                return error_response(400, plain_explanation(400), content_type=TEXT), problems
            return self._store_manifest(request, path, parts), problems

        if is_true(request.params.get("heartbeat")):
            return self._put_with_heartbeat(request, report_format, work)
        response, problems = work()
        if problems:
            response.headers["content-type"] = report_format.value
            response.body = IterableBody([render_report(report_format, _REPORT_ROOT, {}, problems)])
        return response

    # the manifest

    def _read_entries(self, request: Request, path: EntityPath) -> list[Entry]:
        body = request.body
        limit = MANIFEST_BYTES_MAX if _is_built_by_filter(request) else self._settings.max_manifest_size
        if body.length is not None and body.length > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        has_length = "content-length" in request.headers or "transfer-encoding" in request.headers
        if not has_length and not body.length:
            raise HTTPError(411)
        text = read_up_to(body, limit + 1)
        if len(text) > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        try:
            entries = parse_upload(text, path)
        except BadManifest as error:
            raise HTTPError(400, error.text, content_type=TEXT if error.is_plain else None)
        max_segments = self._settings.max_manifest_segments
        if sum(isinstance(entry, SegmentReference) for entry in entries) > max_segments:
            raise HTTPError(413, f"Number of object-backed segments must be <= {max_segments}")
        return entries

    # the segments

    def _resolve_parts(
        self, request: Request, version: str, path: EntityPath, entries: Sequence[Entry]
    ) -> tuple[list[Part], list[Problem]]:
        """Return the parts that the entries name and the problems found, after a HEAD of each object."""
        references = [entry for entry in entries if isinstance(entry, SegmentReference)]
        found = self._head_segments(request, version, path.account, references)
        parts, problems = [], []
        for number, entry in enumerate(entries):
            if isinstance(entry, InlineData):
                parts.append(make_inline_part(entry))
                continue
            segment = found[entry.container, entry.obj]
            mismatches = (
                [segment]
                if isinstance(segment, str)
                else _find_mismatches(entry, segment, number == len(entries) - 1)
            )
            problems += [(quote(entry.name, safe="/~"), mismatch) for mismatch in mismatches]
            if not isinstance(segment, str):
                spans = entry.ranges.resolve(segment.size) if entry.ranges else [segment.span]
                parts.append(replace(segment, span=spans[0] if spans else segment.span))
        return parts, problems

    def _head_segments(
        self, request: Request, version: str, account: str, references: Sequence[SegmentReference]
    ) -> dict[tuple[str, str], Part | str]:
        """Return, for each object, its part or the problem with it; ``concurrency`` at a time."""
        names = list(dict.fromkeys((entry.container, entry.obj) for entry in references))

        def head(name: tuple[str, str]) -> Part | str:
            return self._head_segment(request, version, EntityPath(account, *name))

        return dict(zip(names, green.bounded_map(head, names, self._settings.concurrency), strict=True))

    def _head_segment(self, request: Request, version: str, target: EntityPath) -> Part | str:
        known_headers = request.env.get(environkeys.SLO_KNOWN_HEADS, {}).get((target.container, target.obj))
        if known_headers is not None:
            return self._make_part(request, version, target, known_headers)
        sub = make_segment_request(request, version, "HEAD", target, "", SUBREQUEST_SOURCE)
        entity = request.entity
        if has_hidden_parts(request) and entity is not None and is_hidden_part(target, entity.path):
            allow_hidden_parts(sub)
        with open_response(self._forward, sub) as response:
            headers, status = response.headers, response.status
        if not 200 <= status <= 299:
            return status_line(status)
        return self._make_part(request, version, target, headers)

    def _make_part(
        self, request: Request, version: str, target: EntityPath, headers: HeaderMap
    ) -> Part | str:
        """Return the segment that the headers of a HEAD describe, or the problem with it."""
        size, etag = headers.get("content-length", ""), unquote_etag(headers.get("etag", ""))
        is_manifest = is_true(headers.get("x-static-large-object"))
        if is_manifest:
            size, etag = headers.get(fields.SYSMETA_SLO_SIZE, ""), headers.get(fields.SYSMETA_SLO_ETAG, "")
            if not is_digits(size) or not etag:
                # An old manifest has no stored size and ETag.
                size, etag = self._compute_size_and_etag(request, version, target)
        if not is_digits(size):
            return status_line(503)
        modified = parse_http_date(headers.get("last-modified", "")) or 0
        return Part(
            f"/{target.container}/{target.obj}",
            Span(0, int(size)),
            int(size),
            etag,
            utf8_value(headers.get("content-type", "")).partition(";")[0].strip(),
            Timestamp(modified).isoformat,
            is_manifest,
        )

    def _compute_size_and_etag(self, request: Request, version: str, target: EntityPath) -> tuple[str, str]:
        """Return size and ETag of another manifest's large object; empty when it cannot be read."""
        sub = make_segment_request(
            request, version, "GET", target, "multipart-manifest=get", SUBREQUEST_SOURCE
        )
        with open_response(self._forward, sub) as response:
            if not response.is_success:
                return "", ""
            try:
                parts = parse_stored(response.read_body())
            except ValueError:
                return "", ""
        return str(total_bytes(parts)), manifest_etag(parts)

    # storing

    def _store_manifest(self, request: Request, path: EntityPath, parts: Sequence[Part]) -> Response:
        headers = request.headers
        etag, size = manifest_etag(parts), total_bytes(parts)
        requested_etag = headers.get("etag")
        if requested_etag is not None and unquote_etag(requested_etag) != etag:
            return error_response(422)
        text = render_stored(parts)
        digest = md5(text, usedforsecurity=False).hexdigest()
        if is_true(headers.pop("x-detect-content-type", None)) or not headers.get("content-type"):
            headers["content-type"] = self._guesser.guess(str(path.obj))
        headers["content-type"] = f"{headers['content-type']};swift_bytes={size}"
        request.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        headers["etag"] = digest
        headers["x-static-large-object"] = "True"
        headers[fields.SYSMETA_SLO_ETAG] = etag
        headers[fields.SYSMETA_SLO_SIZE] = str(size)
        override = headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, "")
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = add_etag_parameters(
            override, digest, {"slo_etag": etag}
        )
        headers.pop("transfer-encoding", None)
        headers["content-length"] = str(len(text))
        client_body, request.body = request.body, BytesBody(text)
        response = self._forward(request)
        # The access log counts the body that the client sent.
        request.body = client_body
        if response.is_success and "etag" in response.headers:
            response.headers["etag"] = f'"{etag}"'
        return response

    # long uploads

    def _put_with_heartbeat(
        self,
        request: Request,
        report_format: ListingFormat,
        work: Callable[[], tuple[Response, list[Problem]]],
    ) -> Response:
        def report() -> bytes:
            response, problems = work()
            values: dict[str, str | int] = {"Response Status": status_line(response.status)}
            if response.is_success:
                values["Etag"] = response.headers.get("etag", "")
                values["Last Modified"] = response.headers.get("last-modified", "")
                values["Response Body"] = ""
            else:
                values["Response Body"] = _error_text(response)
            response.report_end(0, True)
            return render_report(report_format, _REPORT_ROOT, values, problems)

        def failed(error: Exception) -> bytes:
            if isinstance(error, HTTPError):
                response = error.response
            else:
                self._log.exception(
                    "unexpected error while storing a static large object",
                    error,
                    txid=request.env.get(environkeys.TRANS_ID),
                )
                response = error_response(500)
            line, text = status_line(response.status), _error_text(response)
            return render_report(
                report_format, _REPORT_ROOT, {"Response Status": line, "Response Body": text}, []
            )

        body = Heartbeat(report, failed, interval_s=self._settings.yield_frequency, immediate=True)
        return Response(202, {"content-type": report_format.value}, body)


def _find_mismatches(entry: SegmentReference, segment: Part, is_last: bool) -> list[str]:
    """Return the differences between an object and its manifest entry."""
    mismatches = []
    if entry.size is not None and entry.size != segment.size:
        mismatches.append("Size Mismatch")
    if entry.etag is not None and entry.etag != segment.etag:
        mismatches.append("Etag Mismatch")
    if entry.ranges is not None and not entry.ranges.resolve(segment.size):
        mismatches.append("Unsatisfiable Range")
    elif segment.size < MIN_SEGMENT_BYTES and not is_last:
        mismatches.append(SEGMENT_TOO_SMALL.capitalize())
    return mismatches


def _error_text(response: Response) -> str:
    body = response.read_body()
    if response.status == 422:
        return plain_explanation(422)
    return body.decode("utf-8", "replace")
