"""Large objects that own their hidden parts (decision 0014; ours).

    PUT A/C/O?upload-id=ID&upload-part=N              a part, which expires unless a manifest uses it
    PUT A/C/O?multipart-manifest=put&upload-id=ID     [{"part": 1, "etag": ..., "size_bytes": ...}, ...]
    DELETE A/C/O?upload-id=ID                         aborts the upload

The parts are the objects ``\\0O\\0ID\\0N`` of the container ``\\0segments\\0C``. Uploading them requires
write access to the object's container, reading them requires read access to the object. When the object is
overwritten or deleted its parts are deleted afterwards. A failure in between leaves unused parts, and never a
manifest without its parts.
"""

from __future__ import annotations

import json
import re
from typing import Unpack
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info, reachable_container_info
from swift.gateway.subrequest import (
    RequestContent,
    make_privileged_request,
    open_response,
    read_listing,
    require_success,
)
from swift.http import environkeys, fields
from swift.http.body import BytesBody, read_up_to
from swift.http.headers import HeaderMap
from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import render_report, status_line
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.authorization import require_access
from swift.middleware.segments import hidden_parts_container
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import SUBREQUEST_SOURCE, ManifestUpload
from swift.policy.policy import Policies
from swift.runtime.wsgi import Handle

PART_MAX = 10000
_UPLOAD_ID_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VERSIONED_ERROR = "Hidden segments are not supported in containers that keep versions."
_SYNCED_ERROR = "Hidden segments are not supported in containers that are synced."
_FORMAT_ERROR = 'Manifest must be a list of objects with "part" and, if wanted, "etag" and "size_bytes".\n'
#: System metadata of containers that keep versions.
_VERSIONING_SYSMETA = ("versions-location", "versions-container")


class HiddenSegments:
    """Uploads, replacement and deletion of hidden parts."""

    def __init__(self, forward: Handle, settings: SloSettings, upload: ManifestUpload, policies: Policies):
        self._forward = forward
        self._settings = settings
        self._upload = upload
        self._policies = policies

    def handle(self, request: Request, entity: Entity, next_handler: Handle) -> Response | None:
        """Return the response to a request that concerns hidden parts; None for other requests.

        ``next_handler`` handles the request without regard to hidden parts.
        """
        upload_id, method = request.params.get("upload-id"), request.method
        if upload_id is not None and method in ("PUT", "DELETE"):
            return self._handle_upload(request, entity, upload_id)
        if method in ("PUT", "DELETE"):
            return self._replace_object(request, entity, next_handler)
        return self._post_object(request, entity, next_handler) if method == "POST" else None

    # uploads

    def _handle_upload(self, request: Request, entity: Entity, upload_id: str) -> Response:
        if not _UPLOAD_ID_PATTERN.fullmatch(upload_id):
            raise HTTPError(400, "Invalid upload-id", content_type=TEXT)
        info = self._authorize_upload(request, entity)
        former_upload_id = self._current_upload_id(request, entity.path)
        if former_upload_id == upload_id:
            raise HTTPError(409, "This upload was finished before.", content_type=TEXT)
        if request.method == "DELETE":
            self._delete_parts(request, entity.path, upload_id)
            return error_response(204)
        if "upload-part" in request.params:
            return self._put_part(request, entity, info, upload_id)
        if request.params.get("multipart-manifest") != "put":
            raise HTTPError(400, "upload-id needs upload-part or multipart-manifest=put", content_type=TEXT)
        return self._complete_upload(request, entity, upload_id, former_upload_id)

    def _authorize_upload(self, request: Request, entity: Entity) -> ContainerInfo:
        """Return the container's info if the caller may upload parts there; raises ``HTTPError``."""
        path = entity.path
        info = container_info(request, self._forward, path.account, str(path.container))
        require_access(request, info.write_acl)
        if not info.exists:
            raise HTTPError(503 if info.status >= 500 else 404)
        if has_object_versions(info):
            raise HTTPError(409, _VERSIONED_ERROR, content_type=TEXT)
        if info.sync_to:
            raise HTTPError(409, _SYNCED_ERROR, content_type=TEXT)
        return info

    def _put_part(self, request: Request, entity: Entity, info: ContainerInfo, upload_id: str) -> Response:
        text = request.params["upload-part"]
        if not is_digits(text) or not 1 <= int(text) <= PART_MAX:
            raise HTTPError(400, f"upload-part must be a number from 1 to {PART_MAX}", content_type=TEXT)
        if "segments-container" not in info.sysmeta:
            self._create_parts_container(request, entity.path, info)
        headers: HeaderMap = {
            name: request.headers[name]
            for name in ("etag", "content-length", "transfer-encoding", "expect")
            if name in request.headers
        }
        headers["content-type"] = "application/octet-stream"
        headers["x-delete-after"] = str(self._settings.unfinished_upload_seconds)
        path = part_path(entity.path, upload_id, int(text))
        return self._forward(self._make_request(request, "PUT", path, headers=headers, body=request.body))

    def _create_parts_container(self, request: Request, path: EntityPath, info: ContainerInfo) -> None:
        """Create the parts container, record it in the object's container; raises ``HTTPError``."""
        parts_container = hidden_parts_container(str(path.container))
        policy = self._policies.get(info.policy_index)
        headers = {} if policy is None else {"x-storage-policy": policy.name}
        sysmeta = {
            fields.SYSMETA_SEGMENTS_CONTAINER: quote(parts_container, safe="", errors="surrogateescape")
        }
        for method, target, sent in (
            ("PUT", path._replace(container=parts_container, obj=None), headers),
            ("POST", path._replace(obj=None), sysmeta),
        ):
            require_success(self._forward, self._make_request(request, method, target, headers=sent))

    def _complete_upload(
        self, request: Request, entity: Entity, upload_id: str, former_upload_id: str | None
    ) -> Response:
        """Store the manifest of an upload; raises ``HTTPError``."""
        limit = self._settings.max_manifest_size
        text = read_up_to(request.body, limit + 1)
        if len(text) > limit:
            raise HTTPError(413, f"Manifest File > {limit} bytes")
        request.body = BytesBody(_expand_manifest(text, entity.path, upload_id))
        request.headers[fields.SYSMETA_SLO_UPLOAD] = upload_id
        paths = self._list_parts(request, entity.path, upload_id)
        # The parts must not expire once a manifest needs them; a failure after this leaves unused parts.
        self._set_expiry(request, paths, {"x-remove-delete-at": "x"})
        original_query = request.query
        request.set_query("multipart-manifest=put")
        try:
            response = self._upload.put(request, entity.version, entity.path)
        except HTTPError as error:
            response = error.response
        request.set_query(original_query)
        if response.status != 201:
            # 202: a newer object exists, which may still need the former parts.
            self._set_expiry(
                request, paths, {"x-delete-after": str(self._settings.unfinished_upload_seconds)}
            )
            return response
        if "x-delete-at" in request.headers:
            self._set_expiry(request, paths, {"x-delete-at": request.headers["x-delete-at"]})
        if former_upload_id is not None:
            self._delete_parts(request, entity.path, former_upload_id)
        return response

    # the object

    def _replace_object(self, request: Request, entity: Entity, next_handler: Handle) -> Response | None:
        """Forward a PUT or DELETE of an object, then delete its hidden parts; None when it has none."""
        former_upload_id = self._current_upload_id(request, entity.path)
        if former_upload_id is None:
            return None
        info = container_info(request, self._forward, entity.path.account, str(entity.path.container))
        with_parts = request.method == "DELETE" and request.params.get("multipart-manifest") == "delete"
        original_query = request.query
        # The parts may be deleted only after a final response, so no heartbeat and no asynchronous work.
        removed_parameters = ("heartbeat", "multipart-manifest", "async") if with_parts else ("heartbeat",)
        request.set_query(
            "&".join(
                part for part in original_query.split("&") if part.partition("=")[0] not in removed_parameters
            )
        )
        response = next_handler(request)
        request.set_query(original_query)
        if not response.is_success or response.status == 202:
            return response
        # A retained version needs its parts.
        removes = (
            not has_object_versions(info)
            and self._current_upload_id(request, entity.path) != former_upload_id
        )
        count = self._delete_parts(request, entity.path, former_upload_id) if removes else 0
        return _deletion_report(request, count + 1) if with_parts else response

    def _post_object(self, request: Request, entity: Entity, next_handler: Handle) -> Response | None:
        """Forward a POST of an object and let its hidden parts expire with it; None when it has none."""
        upload_id = self._current_upload_id(request, entity.path)
        if upload_id is None:
            return None
        paths = self._list_parts(request, entity.path, upload_id)
        response = next_handler(request)
        if response.is_success:
            delete_at = request.headers.get("x-delete-at")
            self._set_expiry(
                request,
                paths,
                {"x-remove-delete-at": "x"} if delete_at is None else {"x-delete-at": delete_at},
            )
        return response

    def _current_upload_id(self, request: Request, path: EntityPath) -> str | None:
        """Return the id of the upload whose parts the current object owns; raises ``HTTPError`` 503."""
        sub = self._make_request(request, "HEAD", path, headers={"x-newest": "true"})
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        with open_response(self._forward, sub) as response:
            if response.status >= 500:
                raise HTTPError(503)
            return response.headers.get(fields.SYSMETA_SLO_UPLOAD) if response.is_success else None

    def _delete_parts(self, request: Request, path: EntityPath, upload_id: str) -> int:
        """Delete the parts of an upload and return their number; parts that cannot be deleted expire soon."""
        deleted = 0
        for part in self._list_parts(request, path, upload_id):
            with open_response(self._forward, self._make_request(request, "DELETE", part)) as response:
                is_deleted = response.is_success or response.status == 404
            if not is_deleted:
                self._set_expiry(request, [part], {"x-delete-after": "60"})
            deleted += is_deleted
        return deleted

    def _list_parts(self, request: Request, path: EntityPath, upload_id: str) -> list[EntityPath]:
        """Return the paths of the parts of an upload; raises ``HTTPError`` 503."""
        container_path = path._replace(container=hidden_parts_container(str(path.container)), obj=None)
        prefix = f"{RESERVED}{path.obj}{RESERVED}{upload_id}{RESERVED}"
        query = f"format=json&limit={PART_MAX}&prefix={quote(prefix, safe='', errors='surrogateescape')}"
        rows = read_listing(self._forward, self._make_request(request, "GET", container_path, query=query))
        return [container_path._replace(obj=row["name"]) for row in rows if "name" in row]

    def _set_expiry(self, request: Request, paths: list[EntityPath], headers: HeaderMap) -> None:
        """Set the expiry headers of parts; raises ``HTTPError`` 503."""
        for path in paths:
            sub = self._make_request(request, "POST", path, headers=dict(headers))
            require_success(self._forward, sub, 404)

    def _make_request(
        self, request: Request, method: str, path: EntityPath, **content: Unpack[RequestContent]
    ) -> Request:
        """Return a preauthorized sub-request."""
        sub = make_privileged_request(request, method, Entity("v1", path), SUBREQUEST_SOURCE, **content)
        if method in ("PUT", "POST") and not content.get("body"):
            sub.headers.setdefault("content-length", "0")
        return sub

    # the container

    def delete_container(self, request: Request, path: EntityPath) -> Response:
        """Delete a container, then the container of its parts unless it holds parts of unfinished uploads."""
        info = reachable_container_info(request, self._forward, path.account, str(path.container))
        response = self._forward(request)
        if response.is_success and "segments-container" in info.sysmeta:
            parts_path = path._replace(container=hidden_parts_container(str(path.container)))
            with open_response(self._forward, self._make_request(request, "DELETE", parts_path)):
                # A later container of this name uses it again.
                pass
        return response


def _deletion_report(request: Request, deleted: int) -> Response:
    """Return the response to a deletion of a manifest with its segments."""
    report_format = accepted_format(request.headers.get("accept")) or ListingFormat.PLAIN
    values: dict[str, str | int] = {
        "Response Status": status_line(200),
        "Response Body": "",
        "Number Deleted": deleted,
        "Number Not Found": 0,
    }
    return Response(
        200, {"content-type": report_format.value}, render_report(report_format, "delete", values, [])
    )


def part_path(path: EntityPath, upload_id: str, number: int) -> EntityPath:
    """Return the path of a part of an object."""
    name = f"{RESERVED}{path.obj}{RESERVED}{upload_id}{RESERVED}{number:05d}"
    return path._replace(container=hidden_parts_container(str(path.container)), obj=name)


def has_object_versions(info: ContainerInfo) -> bool:
    """Return True if a container's objects have, or had, versions."""
    return any(map(info.sysmeta.get, _VERSIONING_SYSMETA)) or bool(info.versions)


def _expand_manifest(text: bytes, path: EntityPath, upload_id: str) -> bytes:
    """Return the manifest of paths that replaces a manifest of part numbers; raises ``HTTPError`` 400."""
    try:
        entries = json.loads(text)
        if not isinstance(entries, list):
            raise ValueError(entries)
        expanded = [{**entry, "path": _part_name(path, upload_id, entry.get("part"))} for entry in entries]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise HTTPError(400, _FORMAT_ERROR, content_type=TEXT)
    for entry in expanded:
        del entry["part"]
    return json.dumps(expanded).encode()


def _part_name(path: EntityPath, upload_id: str, number: object) -> str:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= PART_MAX:
        raise ValueError(number)
    part = part_path(path, upload_id, number)
    return f"/{part.container}/{part.obj}"
