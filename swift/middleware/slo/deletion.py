"""DELETE of a manifest together with its segments (spec: middleware.md §5.3).

Synchronous: the filter deletes every object with a request of its own and the client's rights, the manifest
last. It continues when the client disconnects, because a large object without some segments is unusable.

Asynchronous: the segments are entered into the queue of the object expirer, and only the manifest is deleted
at once.

A filter that removes unused segments by itself may request that the manifest is deleted first
(``SLO_MANIFEST_FIRST``): then an interrupted deletion leaves no unreadable object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.truth import is_true
from swift.cluster.expiry import ASYNC_DELETE_TYPE, EXPIRING_ACCOUNT, deletion_task, queue_container
from swift.gateway.info import reachable_container_info
from swift.gateway.subrequest import (
    ReportedChange,
    make_subrequest,
    open_response,
    preauthorise,
    report_change,
)
from swift.http import environkeys, fields
from swift.http.body import BodyError, IterableBody
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import Problem, render_report, status_line
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.middleware.authorization import require_access
from swift.middleware.heartbeat import Heartbeat, requires_final_status
from swift.middleware.segments import content_location_path, make_segment_request, version_query
from swift.middleware.slo.download import is_manifest
from swift.middleware.slo.manifest import MANIFEST_BYTES_MAX, BadManifest, Part, parse_stored
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SUBREQUEST_SOURCE
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log

#: Names that one deletion may buffer, as a multiple of ``max_manifest_segments``.
BUFFERED_NAMES_FACTOR = 10
_CANNOT_LOAD_ERROR = "Unable to load SLO manifest or segment."
_NOT_A_MANIFEST_ERROR = "Not an SLO manifest"
#: The name of the operation in the audit log.
_PART_OF = "multipart-manifest=delete"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


class _ManifestUnreadable(Exception):
    """A manifest that cannot be read: the status of the response and the text for the report."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(slots=True)
class _DeletionResult:
    """Result of deleting a large object."""

    status: str = "200 OK"
    deleted: int = 0
    not_found: int = 0
    problems: list[Problem] = field(default_factory=list)

    def render(self, report_format: ListingFormat) -> bytes:
        """Return the report."""
        values: dict[str, str | int] = {
            "Response Status": self.status,
            "Response Body": "",
            "Number Deleted": self.deleted,
            "Number Not Found": self.not_found,
        }
        return render_report(report_format, "delete", values, self.problems)


class ManifestDeletion:
    """Deletes manifests with their segments."""

    def __init__(self, forward: Handle, settings: SloSettings, hasher: PathHasher, log: Log):
        self._forward = forward
        self._settings = settings
        self._hasher = hasher
        self._log = log

    def delete(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the response to ``multipart-manifest=delete``; raises ``HTTPError``."""
        # An invalid timestamp must be refused before any segment is deleted.
        request_timestamp(request.headers)
        if self._settings.allow_async_delete and is_true(request.params.get("async")):
            return self._delete_later(request, version, path)
        report_format = accepted_format(request.headers.get("accept"))
        if report_format is None:
            refused = _DeletionResult(status_line(406)).render(ListingFormat.PLAIN)
            return Response(406 if requires_final_status(request) else 200, {"content-type": HTML}, refused)

        result = _DeletionResult()

        def work() -> bytes:
            self._delete_now(request, version, path, result)
            return result.render(report_format)

        def failed(error: Exception) -> bytes:
            self._log.exception(
                "unexpected error while deleting a static large object",
                error,
                txid=request.env.get(environkeys.TRANS_ID),
            )
            result.status = status_line(500)
            return _DeletionResult(result.status).render(report_format)

        interval_s = self._settings.yield_frequency
        body = Heartbeat(work, failed, interval_s=interval_s)
        headers = {"content-type": report_format.value}
        if requires_final_status(request):
            report = body.start(None) or b""
            headers["content-length"] = str(len(report))
            return Response(int(result.status[:3]), headers, report)
        # The status line is sent early only when the work takes longer than a heartbeat interval.
        early_report = body.start(interval_s)
        return Response(200, headers, body if early_report is None else IterableBody([early_report]))

    # synchronous

    def _delete_now(self, request: Request, version: str, path: EntityPath, result: _DeletionResult) -> None:
        try:
            names = list(self._list_objects(request, version, path))
        except _ManifestUnreadable as error:
            if error.status == 404:
                result.not_found = 1
                return
            result.status = status_line(400)
            result.problems.append((quote(f"/{path.container}/{path.obj}", safe="/~"), error.text))
            return
        except HTTPError as error:
            result.status = status_line(error.response.status)
            result.problems.append((quote(f"/{path.container}/{path.obj}", safe="/~"), str(error)))
            return
        *segments, manifest = names
        if request.env.get(environkeys.SLO_MANIFEST_FIRST):
            self._delete_object(request, version, manifest, result, version_query(request))
            if result.problems:
                result.status = status_line(400)
                return
        concurrency = self._settings.delete_concurrency or self._settings.concurrency
        green.bounded_map(
            lambda target: self._delete_object(request, version, target, result), segments, concurrency
        )
        if not request.env.get(environkeys.SLO_MANIFEST_FIRST):
            self._delete_object(request, version, manifest, result, version_query(request))
        if result.problems:
            server_only = all(status.startswith("5") for _name, status in result.problems)
            result.status = status_line(502 if server_only and not result.deleted else 400)

    def _list_objects(self, request: Request, version: str, path: EntityPath) -> Iterator[EntityPath]:
        """Return each object once: segments before the manifests that name them, ``path`` last."""
        max_names = BUFFERED_NAMES_FACTOR * self._settings.max_manifest_segments
        # In reverse order: a manifest before its segments.
        found = {path: True}
        pending = [(path, False)]
        while pending:
            manifest, may_be_missing = pending.pop()
            try:
                query = version_query(request) if manifest == path else ""
                parts, manifest_path = self._read_parts(request, version, manifest, query)
            except _ManifestUnreadable as error:
                if may_be_missing and error.status in (400, 404):
                    # No longer a manifest, or missing: it is deleted like any segment.
                    continue
                raise
            for part in parts:
                if not part.name:
                    continue
                target = part.path(manifest_path.account)
                if target in found:
                    continue
                if len(found) > max_names:
                    raise _ManifestUnreadable(400, "Too many buffered slo segments to delete.")
                found[target] = True
                if part.is_manifest:
                    pending.append((target, True))
        return iter(reversed(found))

    def _read_parts(
        self, request: Request, version: str, path: EntityPath, query: str
    ) -> tuple[list[Part], EntityPath]:
        """Return the parts and the path of a manifest, after symlinks; raises ``_ManifestUnreadable``."""
        query = f"multipart-manifest=get&{query}" if query else "multipart-manifest=get"
        sub = make_segment_request(request, version, "GET", path, query, SUBREQUEST_SOURCE)
        with open_response(self._forward, sub) as response:
            if response.status == 404:
                raise _ManifestUnreadable(404, "SLO manifest not found")
            if response.status == 401:
                raise _ManifestUnreadable(401, status_line(401))
            if not response.is_success:
                raise _ManifestUnreadable(response.status, _CANNOT_LOAD_ERROR)
            if not is_manifest(response):
                raise _ManifestUnreadable(400, _NOT_A_MANIFEST_ERROR)
            try:
                parts = parse_stored(response.read_body(MANIFEST_BYTES_MAX))
                return parts, content_location_path(response.headers, path)
            except (BadManifest, BodyError, ValueError):
                raise _ManifestUnreadable(503, _CANNOT_LOAD_ERROR)

    def _delete_object(
        self, request: Request, version: str, target: EntityPath, result: _DeletionResult, query: str = ""
    ) -> None:
        sub = make_segment_request(request, version, "DELETE", target, query, SUBREQUEST_SOURCE)
        with open_response(self._forward, sub) as response:
            status = response.status
        change = ReportedChange("DELETE", f"/{version}{target.quoted}", status, _PART_OF, sub.env)
        report_change(request, change)
        if 200 <= status <= 299:
            result.deleted += 1
        elif status == 404:
            result.not_found += 1
        else:
            name = quote(f"/{target.container}/{target.obj}", safe="/~")
            result.problems.append((name, status_line(status)))

    # asynchronous

    def _delete_later(self, request: Request, version: str, path: EntityPath) -> Response:
        try:
            parts, manifest_path = self._read_parts(request, version, path, version_query(request))
        except _ManifestUnreadable as error:
            return error_response(error.status, None if error.status == 401 else error.text)
        targets = list(dict.fromkeys(part.path(manifest_path.account) for part in parts if part.name))
        containers = list(dict.fromkeys(str(target.container) for target in targets))
        if len(containers) > 1:
            named = ", ".join(f'"{name}"' for name in containers)
            raise HTTPError(400, f"All segments must be in one container. Found segments in {named}")
        if any(part.is_manifest for part in parts):
            raise HTTPError(400, "No segments may be large objects.")
        # ACLs are of containers, policies of names.
        has_policies = environkeys.IDENTITY in request.env
        for each in dict.fromkeys(one if has_policies else one.parent for one in (path, *targets)):
            self._authorize_deletion(request, each)
        request.set_query(version_query(request))
        if not request.env.get(environkeys.SLO_MANIFEST_FIRST):
            if targets:
                self._enqueue_deletions(request, path, targets)
            return self._forward(request)
        response = self._forward(request)
        if response.is_success and targets:
            try:
                self._enqueue_deletions(request, path, targets)
            except HTTPError as error:
                self._log.error(f"cannot delete the segments of {path}, which was deleted: {error}")
        return response

    def _authorize_deletion(self, request: Request, path: EntityPath) -> None:
        """Raise ``HTTPError`` when the caller may not delete an object, or those of a container."""
        info = reachable_container_info(request, self._forward, path.account, str(path.container))
        probe = make_subrequest(request, "DELETE", f"/v1{path._replace(obj=path.obj or 'x').quoted}")
        probe.headers.update({n: v for n, v in request.headers.items() if n in ("x-auth-token", "referer")})
        require_access(probe, info.write_acl)

    def _enqueue_deletions(self, request: Request, path: EntityPath, targets: Sequence[EntityPath]) -> None:
        """Add objects to the expirer's queue for deletion now; raises ``HTTPError`` 503."""
        stamp = request_timestamp(request.headers)
        when = int(stamp.seconds)
        rows = [
            {
                "name": deletion_task(target, stamp),
                "created_at": stamp.internal,
                "size": 0,
                "content_type": ASYNC_DELETE_TYPE,
                "etag": _EMPTY_MD5,
                "deleted": 0,
                "storage_policy_index": 0,
            }
            for target in targets
        ]
        queue = EntityPath(EXPIRING_ACCOUNT, queue_container(self._hasher, path, when))
        status = self._request_queue(request, "UPDATE", queue, json.dumps(rows).encode())
        if status == 404 and self._request_queue(request, "PUT", queue, b"") in (201, 202):
            status = self._request_queue(request, "UPDATE", queue, json.dumps(rows).encode())
        if not 200 <= status <= 299:
            raise HTTPError(503)
        for target in targets:
            change = ReportedChange("DELETE", f"/v1{target.quoted}", 202, _PART_OF, request.env)
            report_change(request, change)

    def _request_queue(self, request: Request, method: str, queue: EntityPath, body: bytes) -> int:
        headers = {
            fields.BACKEND_STORAGE_POLICY_INDEX: "0",
            fields.BACKEND_ALLOW_PRIVATE_METHODS: "True",
            "content-length": str(len(body)),
        }
        sub = make_subrequest(
            request, method, f"/v1{queue.quoted}", headers=headers, body=body, source=SUBREQUEST_SOURCE
        )
        with open_response(self._forward, preauthorise(sub)) as response:
            return response.status
