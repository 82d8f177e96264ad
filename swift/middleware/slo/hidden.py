"""Large objects whose parts belong to them (decision 0014; ours).

    PUT A/C/O?upload-id=ID&upload-part=N              a part, which ends by itself unless it is used
    PUT A/C/O?multipart-manifest=put&upload-id=ID     [{"part": 1, "etag": ..., "size_bytes": ...}, ...]
    DELETE A/C/O?upload-id=ID                         gives the upload up

The parts are the objects ``\\0O\\0ID\\0N`` of the container ``\\0segments\\0C``. Who may write to the
object's container may upload them, who may read the object reads them. When the object is overwritten or
deleted they are deleted after it: what goes wrong in between leaves parts
behind, and never a manifest without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import make_subrequest, open_response
from swift.http import environkeys, fields
from swift.http.body import BytesBody, RequestBody
from swift.http.headers import HeaderMap
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.segments import allow_hidden, parts_container
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SOURCE, ManifestUpload, read_up_to
from swift.policy.policy import Policies
from swift.runtime.wsgi import Handle

PART_MAX = 10000
_IDS = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VERSIONS = "Hidden segments are not supported in containers that keep versions."
_SYNCED = "Hidden segments are not supported in containers that are synced."
_FORM = 'Manifest must be a list of objects with "part" and, if wanted, "etag" and "size_bytes".\n'
#: What a container that keeps versions has.
_OF_VERSIONS = ("versions-location", "versions-container")


class HiddenSegments:
    """Uploads of hidden parts, and what becomes of them."""

    def __init__(self, forward: Handle, settings: SloSettings, upload: ManifestUpload, policies: Policies):
        self._forward = forward
        self._settings = settings
        self._upload = upload
        self._policies = policies

    def answer(self, request: Request, entity: Entity, below: Handle) -> Response | None:
        """Return the answer to what may be about hidden parts; None to other requests.

        ``below`` answers as if there were none.
        """
        upload_id, method = request.params.get("upload-id"), request.method
        if upload_id is not None and method in ("PUT", "DELETE"):
            return self._of_upload(request, entity, upload_id)
        if method in ("PUT", "DELETE"):
            return self._replaced(request, entity, below)
        return self._posted(request, entity, below) if method == "POST" else None

    # uploads

    def _of_upload(self, request: Request, entity: Entity, upload_id: str) -> Response:
        if not _IDS.fullmatch(upload_id):
            raise HTTPError(400, "Invalid upload-id", content_type=TEXT)
        info = self._checked(request, entity)
        former = self._owned(request, entity.path)
        if former == upload_id:
            raise HTTPError(409, "This upload was finished before.", content_type=TEXT)
        if request.method == "DELETE":
            self._remove(request, entity.path, upload_id)
            return error_response(204)
        if "upload-part" in request.params:
            return self._put_part(request, entity, info, upload_id)
        if request.params.get("multipart-manifest") != "put":
            raise HTTPError(400, "upload-id needs upload-part or multipart-manifest=put", content_type=TEXT)
        return self._finish(request, entity, upload_id, former)

    def _checked(self, request: Request, entity: Entity) -> ContainerInfo:
        """Return the container's info if the caller may upload parts there; raises ``HTTPError``."""
        path = entity.path
        info = container_info(request, self._forward, path.account, str(path.container))
        authorise: Callable[[Request], Response | None] | None = request.env.get(environkeys.AUTHORIZE)
        request.acl = info.write_acl
        denied = authorise(request) if authorise is not None else None
        if denied is not None:
            raise HTTPError.of(denied)
        if not info.exists:
            raise HTTPError(503 if info.status >= 500 else 404)
        if keeps_versions(info):
            raise HTTPError(409, _VERSIONS, content_type=TEXT)
        if info.sync_to:
            raise HTTPError(409, _SYNCED, content_type=TEXT)
        return info

    def _put_part(self, request: Request, entity: Entity, info: ContainerInfo, upload_id: str) -> Response:
        text = request.params["upload-part"]
        if not is_digits(text) or not 1 <= int(text) <= PART_MAX:
            raise HTTPError(400, f"upload-part must be a number from 1 to {PART_MAX}", content_type=TEXT)
        if "segments-container" not in info.sysmeta:
            self._make_container(request, entity.path, info)
        headers: HeaderMap = {
            name: request.headers[name]
            for name in ("etag", "content-length", "transfer-encoding", "expect")
            if name in request.headers
        }
        headers["content-type"] = "application/octet-stream"
        headers["x-delete-after"] = str(self._settings.unfinished_upload_seconds)
        path = part_path(entity.path, upload_id, int(text))
        return self._forward(self._ask(request, "PUT", path, headers=headers, body=request.body))

    def _make_container(self, request: Request, path: EntityPath, info: ContainerInfo) -> None:
        """Make the container of the parts, and have the object's one name it; raises ``HTTPError`` 503."""
        home = parts_container(str(path.container))
        policy = self._policies.get(info.policy_index)
        headers = {} if policy is None else {"x-storage-policy": policy.name}
        mark = {fields.SYSMETA_SEGMENTS_CONTAINER: quote(home, safe="", errors="surrogateescape")}
        for method, target, sent in (
            ("PUT", path._replace(container=home, obj=None), headers),
            ("POST", path._replace(obj=None), mark),
        ):
            with open_response(self._forward, self._ask(request, method, target, headers=sent)) as response:
                if not response.is_success:
                    raise HTTPError(503)

    def _finish(self, request: Request, entity: Entity, upload_id: str, former: str | None) -> Response:
        """Store the manifest of an upload; raises ``HTTPError``."""
        limit = self._settings.max_manifest_size
        text = read_up_to(request.body, limit + 1)
        if len(text) > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        request.body = BytesBody(_manifest(text, entity.path, upload_id))
        request.headers[fields.SYSMETA_SLO_UPLOAD] = upload_id
        paths = self._names(request, entity.path, upload_id)
        # First they stay, then they are needed: what fails now leaves parts behind.
        self._set_end(request, paths, {"x-remove-delete-at": "x"})
        asked_for = request.query
        request.set_query("multipart-manifest=put")
        try:
            response = self._upload.put(request, entity.version, entity.path)
        except HTTPError as error:
            response = error.response
        request.set_query(asked_for)
        if response.status != 201:
            # 202: a newer object is there, which may still need the parts of the former one.
            self._set_end(request, paths, {"x-delete-after": str(self._settings.unfinished_upload_seconds)})
            return response
        if "x-delete-at" in request.headers:
            self._set_end(request, paths, {"x-delete-at": request.headers["x-delete-at"]})
        if former is not None:
            self._remove(request, entity.path, former)
        return response

    # the object

    def _replaced(self, request: Request, entity: Entity, below: Handle) -> Response | None:
        """Return a PUT or DELETE of an object, whose hidden parts go after it."""
        former = self._owned(request, entity.path)
        if former is None:
            return None
        info = container_info(request, self._forward, entity.path.account, str(entity.path.container))
        with_parts = request.method == "DELETE" and request.params.get("multipart-manifest") == "delete"
        asked_for = request.query
        # What is answered before it is done could not be waited for.
        left_out = ("heartbeat", "multipart-manifest", "async") if with_parts else ("heartbeat",)
        request.set_query(
            "&".join(part for part in asked_for.split("&") if part.partition("=")[0] not in left_out)
        )
        response = below(request)
        request.set_query(asked_for)
        if not response.is_success or response.status == 202:
            return response
        # A version that is kept keeps its parts.
        removes = not keeps_versions(info) and self._owned(request, entity.path) != former
        count = self._remove(request, entity.path, former) if removes else 0
        return _reported(request, count + 1) if with_parts else response

    def _posted(self, request: Request, entity: Entity, below: Handle) -> Response | None:
        """Return a POST of an object, whose hidden parts end when it does."""
        former = self._owned(request, entity.path)
        if former is None:
            return None
        paths = self._names(request, entity.path, former)
        response = below(request)
        if response.is_success:
            at = request.headers.get("x-delete-at")
            self._set_end(request, paths, {"x-remove-delete-at": "x"} if at is None else {"x-delete-at": at})
        return response

    def _owned(self, request: Request, path: EntityPath) -> str | None:
        """Return the upload whose parts the present object owns; raises ``HTTPError`` 503."""
        sub = self._ask(request, "HEAD", path, headers={"x-newest": "true"})
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        with open_response(self._forward, sub) as response:
            if response.status >= 500:
                raise HTTPError(503)
            return response.headers.get(fields.SYSMETA_SLO_UPLOAD) if response.is_success else None

    def _remove(self, request: Request, path: EntityPath, upload_id: str) -> int:
        """Delete the parts of an upload, and say how many; what cannot be deleted ends by itself."""
        deleted = 0
        for part in self._names(request, path, upload_id):
            with open_response(self._forward, self._ask(request, "DELETE", part)) as response:
                gone = response.is_success or response.status == 404
            if not gone:
                self._set_end(request, [part], {"x-delete-after": "60"})
            deleted += gone
        return deleted

    def _names(self, request: Request, path: EntityPath, upload_id: str) -> list[EntityPath]:
        """Return the parts of an upload; raises ``HTTPError`` 503."""
        home = path._replace(container=parts_container(str(path.container)), obj=None)
        prefix = f"{RESERVED}{path.obj}{RESERVED}{upload_id}{RESERVED}"
        query = f"format=json&limit={PART_MAX}&prefix={quote(prefix, safe='', errors='surrogateescape')}"
        with open_response(self._forward, self._ask(request, "GET", home, query=query)) as response:
            if response.status == 404:
                return []
            if not response.is_success:
                raise HTTPError(503)
            rows = json.loads(response.read_body() or b"[]")
        return [home._replace(obj=row["name"]) for row in rows if "name" in row]

    def _set_end(self, request: Request, paths: list[EntityPath], headers: HeaderMap) -> None:
        """Say when parts end; raises ``HTTPError`` 503."""
        for path in paths:
            with open_response(
                self._forward, self._ask(request, "POST", path, headers=dict(headers))
            ) as response:
                if not response.is_success and response.status != 404:
                    raise HTTPError(503)

    def _ask(
        self,
        request: Request,
        method: str,
        path: EntityPath,
        *,
        headers: HeaderMap | None = None,
        query: str = "",
        body: RequestBody | bytes = b"",
    ) -> Request:
        """Return a request with rights of its own."""
        sub = make_subrequest(
            request, method, f"/v1{path.quoted}", headers=headers, query=query, body=body, source=SOURCE
        )
        if method in ("PUT", "POST") and not body:
            sub.headers.setdefault("content-length", "0")
        allow_hidden(sub)
        return sub

    # the container

    def delete_container(self, request: Request, path: EntityPath) -> Response:
        """Delete a container, and then the one of the parts, unless uploads were never finished there."""
        info = container_info(request, self._forward, path.account, str(path.container))
        response = self._forward(request)
        if response.is_success and "segments-container" in info.sysmeta:
            home = path._replace(container=parts_container(str(path.container)))
            with open_response(self._forward, self._ask(request, "DELETE", home)):
                # It is found again when a container of this name gets parts.
                pass
        return response


def _reported(request: Request, deleted: int) -> Response:
    """Return the answer to a deletion of a manifest with its segments."""
    shape = accepted_format(request.headers.get("accept")) or ListingFormat.PLAIN
    values: dict[str, str | int] = {
        "Response Status": status_line(200),
        "Response Body": "",
        "Number Deleted": deleted,
        "Number Not Found": 0,
    }
    return Response(200, {"content-type": shape.value}, render_report(shape, "delete", values, []))


def part_path(path: EntityPath, upload_id: str, number: int) -> EntityPath:
    """Return a part of an object."""
    name = f"{RESERVED}{path.obj}{RESERVED}{upload_id}{RESERVED}{number:05d}"
    return path._replace(container=parts_container(str(path.container)), obj=name)


def keeps_versions(info: ContainerInfo) -> bool:
    """Return True if a container's objects have, or had, versions."""
    return any(map(info.sysmeta.get, _OF_VERSIONS)) or bool(info.versions)


def _manifest(text: bytes, path: EntityPath, upload_id: str) -> bytes:
    """Return the manifest of paths that a manifest of part numbers stands for; raises ``HTTPError`` 400."""
    try:
        entries = json.loads(text)
        if not isinstance(entries, list):
            raise ValueError(entries)
        named = [{**entry, "path": _name(path, upload_id, entry.get("part"))} for entry in entries]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise HTTPError(400, _FORM, content_type=TEXT)
    for entry in named:
        del entry["part"]
    return json.dumps(named).encode()


def _name(path: EntityPath, upload_id: str, number: object) -> str:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= PART_MAX:
        raise ValueError(number)
    part = part_path(path, upload_id, number)
    return f"/{part.container}/{part.obj}"
