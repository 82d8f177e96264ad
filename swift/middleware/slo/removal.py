"""DELETE of a manifest together with its segments (spec: middleware.md §5.3).

At once: every object is deleted with a request of its own, as the client; the manifest last. That goes on for
a client that has gone: a large object without some of its segments is of no use to anyone. Later: the
segments are entered into the queue of the object expirer, and only the manifest is deleted at once. A filter
that finds segments without a manifest by itself may ask for the manifest to be deleted first
(``SLO_MANIFEST_FIRST``): then a deletion that breaks off leaves no object that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.truth import is_true
from swift.cluster.expiry import ASYNC_DELETE_TYPE, EXPIRING_ACCOUNT, deletion_task, queue_container
from swift.gateway.info import container_info
from swift.gateway.subrequest import make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError, Pieces
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import Problem, render_report, status_line
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.http.validate import time_of
from swift.middleware.heartbeat import Heartbeat, wants_true_status
from swift.middleware.segments import home_of, segment_request, version_query
from swift.middleware.slo.download import is_manifest
from swift.middleware.slo.manifest import MANIFEST_BYTES_MAX, BadManifest, Part, parse_stored
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SOURCE
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log

#: So many times ``max_manifest_segments`` names may wait to be deleted.
WAITING_FACTOR = 10
_CANNOT_LOAD = "Unable to load SLO manifest or segment."
_NOT_A_MANIFEST = "Not an SLO manifest"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


class _Unreadable(Exception):
    """A manifest that cannot be read: the status of its answer and what a report says of it."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(slots=True)
class _Outcome:
    """Result of deleting a large object."""

    status: str = "200 OK"
    deleted: int = 0
    not_found: int = 0
    problems: list[Problem] = field(default_factory=list)

    def render(self, shape: ListingFormat) -> bytes:
        """Return the report."""
        values: dict[str, str | int] = {
            "Response Status": self.status,
            "Response Body": "",
            "Number Deleted": self.deleted,
            "Number Not Found": self.not_found,
        }
        return render_report(shape, "delete", values, self.problems)


class Removal:
    """Deletes manifests with their segments."""

    def __init__(self, forward: Handle, settings: SloSettings, hasher: PathHasher, log: Log):
        self._forward = forward
        self._settings = settings
        self._hasher = hasher
        self._log = log

    def delete(self, request: Request, version: str, path: EntityPath) -> Response:
        """Return the answer to ``multipart-manifest=delete``; raises ``HTTPError``."""
        # Else the manifest would be refused when its segments are gone.
        time_of(request.headers)
        if self._settings.allow_async_delete and is_true(request.params.get("async")):
            return self._later(request, version, path)
        shape = accepted_format(request.headers.get("accept"))
        if shape is None:
            refused = _Outcome(status_line(406)).render(ListingFormat.PLAIN)
            return Response(406 if wants_true_status(request) else 200, {"content-type": HTML}, refused)

        outcome = _Outcome()

        def work() -> bytes:
            self._now(request, version, path, outcome)
            return outcome.render(shape)

        def failed(error: Exception) -> bytes:
            self._log.exception(
                "unexpected error while deleting a static large object",
                error,
                txid=request.env.get(environkeys.TRANS_ID),
            )
            outcome.status = status_line(500)
            return _Outcome(outcome.status).render(shape)

        interval_s = self._settings.yield_frequency
        body = Heartbeat(work, failed, interval_s=interval_s)
        headers = {"content-type": shape.value}
        if wants_true_status(request):
            report = body.begin(None) or b""
            headers["content-length"] = str(len(report))
            return Response(int(outcome.status[:3]), headers, report)
        # The status line promises nothing, but goes out before the work has ended only when it must.
        done = body.begin(interval_s)
        return Response(200, headers, body if done is None else Pieces([done]))

    # at once

    def _now(self, request: Request, version: str, path: EntityPath, outcome: _Outcome) -> None:
        try:
            names = list(self._everything(request, version, path))
        except _Unreadable as error:
            if error.status == 404:
                outcome.not_found = 1
                return
            outcome.status = status_line(400)
            outcome.problems.append((quote(f"/{path.container}/{path.obj}", safe="/~"), error.text))
            return
        except HTTPError as error:
            outcome.status = status_line(error.response.status)
            outcome.problems.append((quote(f"/{path.container}/{path.obj}", safe="/~"), str(error)))
            return
        *segments, manifest = names
        if request.env.get(environkeys.SLO_MANIFEST_FIRST):
            self._remove(request, version, manifest, outcome, version_query(request))
            if outcome.problems:
                outcome.status = status_line(400)
                return
        concurrency = self._settings.delete_concurrency or self._settings.concurrency
        green.bounded_map(
            lambda target: self._remove(request, version, target, outcome), segments, concurrency
        )
        if not request.env.get(environkeys.SLO_MANIFEST_FIRST):
            self._remove(request, version, manifest, outcome, version_query(request))
        if outcome.problems:
            server_only = all(what.startswith("5") for _name, what in outcome.problems)
            outcome.status = status_line(502 if server_only and not outcome.deleted else 400)

    def _everything(self, request: Request, version: str, path: EntityPath) -> Iterator[EntityPath]:
        """Each object once: segments before the manifests that name them, ``path`` last."""
        most = WAITING_FACTOR * self._settings.max_manifest_segments
        # In reverse: a manifest, then what it names.
        seen = {path: True}
        waiting = [(path, False)]
        while waiting:
            manifest, may_lack = waiting.pop()
            try:
                query = version_query(request) if manifest == path else ""
                parts, home = self._parts(request, version, manifest, query)
            except _Unreadable as error:
                if may_lack and error.status in (400, 404):
                    # It is no longer a manifest, or gone: whatever is there goes like any segment.
                    continue
                raise
            for part in parts:
                if not part.name:
                    continue
                target = part.path(home.account)
                if target in seen:
                    continue
                if len(seen) > most:
                    raise _Unreadable(400, "Too many buffered slo segments to delete.")
                seen[target] = True
                if part.is_manifest:
                    waiting.append((target, True))
        return iter(reversed(seen))

    def _parts(
        self, request: Request, version: str, path: EntityPath, query: str
    ) -> tuple[list[Part], EntityPath]:
        """Return the parts of a manifest, and its path when ``path`` is a link; raises ``_Unreadable``."""
        query = f"multipart-manifest=get&{query}" if query else "multipart-manifest=get"
        sub = segment_request(request, version, "GET", path, query, SOURCE)
        with open_response(self._forward, sub) as response:
            if response.status == 404:
                raise _Unreadable(404, "SLO manifest not found")
            if response.status == 401:
                raise _Unreadable(401, status_line(401))
            if not response.is_success:
                raise _Unreadable(response.status, _CANNOT_LOAD)
            if not is_manifest(response):
                raise _Unreadable(400, _NOT_A_MANIFEST)
            try:
                parts = parse_stored(response.read_body(MANIFEST_BYTES_MAX))
                return parts, home_of(response.headers, path)
            except (BadManifest, BodyError, ValueError):
                raise _Unreadable(503, _CANNOT_LOAD)

    def _remove(
        self, request: Request, version: str, target: EntityPath, outcome: _Outcome, query: str = ""
    ) -> None:
        sub = segment_request(request, version, "DELETE", target, query, SOURCE)
        with open_response(self._forward, sub) as response:
            status = response.status
        if 200 <= status <= 299:
            outcome.deleted += 1
        elif status == 404:
            outcome.not_found += 1
        else:
            name = quote(f"/{target.container}/{target.obj}", safe="/~")
            outcome.problems.append((name, status_line(status)))

    # later

    def _later(self, request: Request, version: str, path: EntityPath) -> Response:
        try:
            parts, home = self._parts(request, version, path, version_query(request))
        except _Unreadable as error:
            return error_response(error.status, None if error.status == 401 else error.text)
        targets = list(dict.fromkeys(part.path(home.account) for part in parts if part.name))
        containers = list(dict.fromkeys(str(target.container) for target in targets))
        if len(containers) > 1:
            named = ", ".join(f'"{name}"' for name in containers)
            raise HTTPError(400, f"All segments must be in one container. Found segments in {named}")
        if any(part.is_manifest for part in parts):
            raise HTTPError(400, "No segments may be large objects.")
        for parent in dict.fromkeys((path.parent, *(target.parent for target in targets))):
            self._check_may_write(request, parent.account, str(parent.container))
        request.set_query(version_query(request))
        if not request.env.get(environkeys.SLO_MANIFEST_FIRST):
            if targets:
                self._enqueue(request, path, targets)
            return self._forward(request)
        response = self._forward(request)
        if response.is_success and targets:
            try:
                self._enqueue(request, path, targets)
            except HTTPError as error:
                self._log.error(f"cannot delete the segments of {path}, which was deleted: {error}")
        return response

    def _check_may_write(self, request: Request, account: str, container: str) -> None:
        """Raise what the caller gets when a container's objects are not theirs to delete."""
        info = container_info(request, self._forward, account, container)
        if info.status >= 500:
            raise HTTPError(503)
        authorise: Callable[[Request], Response | None] | None = request.env.get(environkeys.AUTHORIZE)
        if authorise is None:
            return
        probe = make_subrequest(request, "DELETE", f"/v1{EntityPath(account, container, 'x').quoted}")
        probe.headers.update({n: v for n, v in request.headers.items() if n in ("x-auth-token", "referer")})
        probe.acl = info.write_acl
        denied = authorise(probe)
        if denied is not None:
            raise HTTPError.of(denied)

    def _enqueue(self, request: Request, path: EntityPath, targets: Sequence[EntityPath]) -> None:
        """Have the expirer delete these objects now; raises ``HTTPError`` 503."""
        stamp = time_of(request.headers)
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
        status = self._internal(request, "UPDATE", queue, json.dumps(rows).encode())
        if status == 404 and self._internal(request, "PUT", queue, b"") in (201, 202):
            status = self._internal(request, "UPDATE", queue, json.dumps(rows).encode())
        if not 200 <= status <= 299:
            raise HTTPError(503)

    def _internal(self, request: Request, method: str, queue: EntityPath, body: bytes) -> int:
        headers = {
            fields.BACKEND_STORAGE_POLICY_INDEX: "0",
            fields.BACKEND_ALLOW_PRIVATE_METHODS: "True",
            "content-length": str(len(body)),
        }
        sub = make_subrequest(
            request, method, f"/v1{queue.quoted}", headers=headers, body=body, source=SOURCE
        )
        with open_response(self._forward, preauthorise(sub)) as response:
            return response.status
