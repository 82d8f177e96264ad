"""PUT of a manifest: every segment is looked at, then the manifest is stored (spec: middleware.md §5.1)."""

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
from swift.http.body import BytesBody, Pieces, RequestBody
from swift.http.conditional import parse_http_date
from swift.http.headers import HeaderMap, utf8_value
from swift.http.mediatypes import TypeGuesser
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import Problem, plain_explanation, render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.rows import with_parameters
from swift.middleware.heartbeat import Heartbeat
from swift.middleware.segments import allow_hidden, is_part_of, segment_request
from swift.middleware.slo.manifest import (
    MANIFEST_BYTES_MAX,
    MIN_SEGMENT_BYTES,
    TOO_SMALL,
    BadManifest,
    Entry,
    Inline,
    Part,
    Reference,
    inline_part,
    parse_stored,
    parse_upload,
    stored_text,
    total_bytes,
    whole_etag,
)
from swift.middleware.slo.settings import SloSettings
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log

SOURCE = "SLO"
_ROOT = "upload"
_READ_BYTES = 65536


def owns_parts(request: Request) -> bool:
    """Return True if a manifest is of hidden parts, as this filter made it."""
    return fields.SYSMETA_SLO_UPLOAD in request.headers


def _is_expanded(request: Request) -> bool:
    """Return True if a filter made a manifest of the numbers of parts: names, not the client, make it
    long.
    """
    return owns_parts(request) or fields.SYSMETA_S3_UPLOAD_ID in request.headers


class ManifestUpload:
    """Stores manifests."""

    def __init__(self, forward: Handle, settings: SloSettings, guesser: TypeGuesser, log: Log):
        self._forward = forward
        self._settings = settings
        self._guesser = guesser
        self._log = log

    def put(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the answer to a PUT; raises ``HTTPError``."""
        entries = self._entries(request, path)
        shape = accepted_format(request.headers.get("accept")) or ListingFormat.PLAIN

        def work() -> tuple[Response, list[Problem]]:
            parts, problems = self._parts(request, version, path, entries)
            hook = request.env.get(environkeys.SLO_MANIFEST_HOOK)
            if hook is not None and not problems:
                problems += hook([part.stored() for part in parts]) or []
            if problems:
                return error_response(400, plain_explanation(400), content_type=TEXT), problems
            return self._store(request, path, parts), problems

        if is_true(request.params.get("heartbeat")):
            return self._with_heartbeat(request, shape, work)
        response, problems = work()
        if problems:
            response.headers["content-type"] = shape.value
            response.body = Pieces([render_report(shape, _ROOT, {}, problems)])
        return response

    # the manifest

    def _entries(self, request: Request, path: EntityPath) -> list[Entry]:
        body = request.body
        limit = MANIFEST_BYTES_MAX if _is_expanded(request) else self._settings.max_manifest_size
        if body.length is not None and body.length > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        announced = "content-length" in request.headers or "transfer-encoding" in request.headers
        if not announced and not body.length:
            raise HTTPError(411)
        text = read_up_to(body, limit + 1)
        if len(text) > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        try:
            entries = parse_upload(text, path)
        except BadManifest as error:
            raise HTTPError(400, error.text, content_type=TEXT if error.is_plain else None)
        most = self._settings.max_manifest_segments
        if sum(isinstance(entry, Reference) for entry in entries) > most:
            raise HTTPError(413, f"Number of object-backed segments must be <= {most}")
        return entries

    # the segments

    def _parts(
        self, request: Request, version: str, path: EntityPath, entries: Sequence[Entry]
    ) -> tuple[list[Part], list[Problem]]:
        """Return the parts that the manifest's entries name and the problems found, after a HEAD of each
        object.
        """
        references = [entry for entry in entries if isinstance(entry, Reference)]
        found = self._look_at(request, version, path.account, references)
        parts, problems = [], []
        for number, entry in enumerate(entries):
            if isinstance(entry, Inline):
                parts.append(inline_part(entry))
                continue
            seen = found[entry.container, entry.obj]
            wrong = [seen] if isinstance(seen, str) else _wrong(entry, seen, number == len(entries) - 1)
            problems += [(quote(entry.name, safe="/~"), what) for what in wrong]
            if not isinstance(seen, str):
                spans = entry.ranges.resolve(seen.size) if entry.ranges else [seen.span]
                parts.append(replace(seen, span=spans[0] if spans else seen.span))
        return parts, problems

    def _look_at(
        self, request: Request, version: str, account: str, references: Sequence[Reference]
    ) -> dict[tuple[str, str], Part | str]:
        """Each distinct object once, ``concurrency`` at a time: what it is, or what is wrong."""
        names = list(dict.fromkeys((entry.container, entry.obj) for entry in references))

        def look(name: tuple[str, str]) -> Part | str:
            return self._facts(request, version, EntityPath(account, *name))

        return dict(zip(names, green.bounded_map(look, names, self._settings.concurrency), strict=True))

    def _facts(self, request: Request, version: str, target: EntityPath) -> Part | str:
        known = request.env.get(environkeys.SLO_KNOWN_HEADS, {}).get((target.container, target.obj))
        if known is not None:
            return self._part(request, version, target, known)
        sub = segment_request(request, version, "HEAD", target, "", SOURCE)
        entity = request.entity
        if owns_parts(request) and entity is not None and is_part_of(target, entity.path):
            allow_hidden(sub)
        with open_response(self._forward, sub) as response:
            headers, status = response.headers, response.status
        if not 200 <= status <= 299:
            return status_line(status)
        return self._part(request, version, target, headers)

    def _part(self, request: Request, version: str, target: EntityPath, headers: HeaderMap) -> Part | str:
        """Return the segment that the headers of a HEAD describe, or the problem with it."""
        size, etag = headers.get("content-length", ""), unquote_etag(headers.get("etag", ""))
        is_manifest = is_true(headers.get("x-static-large-object"))
        if is_manifest:
            size, etag = headers.get(fields.SYSMETA_SLO_SIZE, ""), headers.get(fields.SYSMETA_SLO_ETAG, "")
            if not is_digits(size) or not etag:
                # A manifest of before those were kept.
                size, etag = self._computed(request, version, target)
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

    def _computed(self, request: Request, version: str, target: EntityPath) -> tuple[str, str]:
        """Size and ETag of another manifest's whole; empty when it cannot be read."""
        sub = segment_request(request, version, "GET", target, "multipart-manifest=get", SOURCE)
        with open_response(self._forward, sub) as response:
            if not response.is_success:
                return "", ""
            try:
                parts = parse_stored(response.read_body())
            except ValueError:
                return "", ""
        return str(total_bytes(parts)), whole_etag(parts)

    # storing

    def _store(self, request: Request, path: EntityPath, parts: Sequence[Part]) -> Response:
        headers = request.headers
        etag, size = whole_etag(parts), total_bytes(parts)
        wanted = headers.get("etag")
        if wanted is not None and unquote_etag(wanted) != etag:
            return error_response(422)
        text = stored_text(parts)
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
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = with_parameters(override, digest, {"slo_etag": etag})
        headers.pop("transfer-encoding", None)
        headers["content-length"] = str(len(text))
        sent, request.body = request.body, BytesBody(text)
        response = self._forward(request)
        # The access log tells what the client sent.
        request.body = sent
        if response.is_success and "etag" in response.headers:
            response.headers["etag"] = f'"{etag}"'
        return response

    # answers that take long

    def _with_heartbeat(
        self, request: Request, shape: ListingFormat, work: Callable[[], tuple[Response, list[Problem]]]
    ) -> Response:
        def report() -> bytes:
            response, problems = work()
            values: dict[str, str | int] = {"Response Status": status_line(response.status)}
            if response.is_success:
                values["Etag"] = response.headers.get("etag", "")
                values["Last Modified"] = response.headers.get("last-modified", "")
                values["Response Body"] = ""
            else:
                values["Response Body"] = _explanation(response)
            response.ended(0, True)
            return render_report(shape, _ROOT, values, problems)

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
            line, text = status_line(response.status), _explanation(response)
            return render_report(shape, _ROOT, {"Response Status": line, "Response Body": text}, [])

        body = Heartbeat(report, failed, interval_s=self._settings.yield_frequency, at_once=True)
        return Response(202, {"content-type": shape.value}, body)


def _wrong(entry: Reference, seen: Part, is_last: bool) -> list[str]:
    """Return the differences between an object and its manifest entry."""
    wrong = []
    if entry.size is not None and entry.size != seen.size:
        wrong.append("Size Mismatch")
    if entry.etag is not None and entry.etag != seen.etag:
        wrong.append("Etag Mismatch")
    if entry.ranges is not None and not entry.ranges.resolve(seen.size):
        wrong.append("Unsatisfiable Range")
    elif seen.size < MIN_SEGMENT_BYTES and not is_last:
        wrong.append(TOO_SMALL.capitalize())
    return wrong


def _explanation(response: Response) -> str:
    body = response.read_body()
    if response.status == 422:
        return plain_explanation(422)
    return body.decode("utf-8", "replace")


def read_up_to(body: RequestBody, limit: int) -> bytes:
    """Return the body, up to ``limit`` bytes of it."""
    pieces, left = [], limit
    while left and (piece := body.read(min(left, _READ_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
