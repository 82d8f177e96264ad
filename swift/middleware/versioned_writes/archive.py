"""Archive of an object's versions: store, list and restore (spec: middleware.md §9.1).

Its requests are preauthorized: a user who may write to the object's container may create versions, and the
caller was authorized for that before. Bodies are streamed from one object to the other; manifests and
symlinks are copied as stored.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack
from urllib.parse import quote

from swift.base.entity import Entity, EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.subrequest import (
    RequestContent,
    drained,
    make_privileged_request,
    open_response,
    read_listing,
    require_success,
)
from swift.http import environkeys, fields
from swift.http.body import RequestBody, length_header
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.http.transform import as_request_body
from swift.http.validate import request_timestamp
from swift.runtime.wsgi import Handle

SUBREQUEST_SOURCE = "VW"
#: Content type of delete markers.
DELETE_MARKER_TYPE = "application/x-deleted;swift_versions_deleted=1"
#: Versions that a restore has to inspect: the newest one and its predecessor.
_NEWEST_LIMIT = 2
_RESPONSE_HEADERS = frozenset(
    (
        *("accept-ranges", "connection", "content-length", "content-location", "content-range", "date"),
        *("etag", "last-modified", "transfer-encoding", "vary", "x-timestamp", "x-trans-id"),
        "x-openstack-request-id",
    )
)


class ArchivedVersion(NamedTuple):
    """A former version of an object, or a delete marker."""

    name: str
    is_marker: bool


class VersionArchive:
    """The versions of the requested object, in ``versions_container``."""

    #: Name of the filter in the access log lines of its requests.
    _source = SUBREQUEST_SOURCE

    def __init__(
        self, forward: Handle, request: Request, entity: Entity, versions_container: str, name_bytes_max: int
    ):
        self._forward = forward
        self._name_bytes_max = name_bytes_max
        self._request = request
        self._object_path = entity.path
        self._api_version = entity.version
        self._versions_container = EntityPath(entity.path.account, versions_container)

    @property
    def _prefix(self) -> str:
        name = str(self._object_path.obj)
        return f"{len(name.encode('utf-8', 'surrogateescape')):03x}{name}/"

    def _version_path(self, timestamp: Timestamp) -> EntityPath:
        return self._versions_container._replace(obj=self._prefix + timestamp.internal)

    def _archived_headers(self, headers: HeaderMap) -> HeaderMap:
        """Return the headers of an archived object."""
        return headers

    def has_room(self) -> bool:
        """Return True if the name of the object leaves room for the names of its versions."""
        return self._fits(self._version_path(Timestamp.now()))

    def _fits(self, path: EntityPath) -> bool:
        return len(str(path.obj).encode("utf-8", "surrogateescape")) <= self._name_bytes_max

    def _is_archived(self, source: Response) -> bool:
        """Return True if the current object is a link to a version that is archived already."""
        return False

    def _make_request(self, method: str, path: EntityPath, **content: Unpack[RequestContent]) -> Request:
        entity = Entity(self._api_version, path)
        sub = make_privileged_request(self._request, method, entity, self._source, **content)
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        return sub

    def _read_request(self, method: str, path: EntityPath) -> Request:
        """Return a request for an object as it is stored: a manifest itself, not its segments."""
        return self._make_request(method, path, query="multipart-manifest=get", headers={"x-newest": "true"})

    def archive_current(self) -> None:
        """Copy the current object, if any, to the archive; raises ``HTTPError`` for the archive's refusal."""
        source = self._forward(self._read_request("GET", self._object_path))
        with as_request_body(source) as body:
            if source.status == 404:
                return
            if not source.is_success:
                raise HTTPError(503)
            if self._is_archived(source):
                return
            try:
                stamp = Timestamp(source.headers.get("x-timestamp"))
            except InvalidTimestamp:
                raise HTTPError(503)
            self._check_put(self._copy_to(self._version_path(stamp), source, body))

    def put_delete_marker(self) -> None:
        """Store a delete marker; raises ``HTTPError`` for the archive's refusal."""
        stamp = request_timestamp(self._request.headers)
        headers = {"content-type": DELETE_MARKER_TYPE, "content-length": "0"}
        sub = self._make_request("PUT", self._version_path(stamp), headers=headers)
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        self._check_put(self._forward(sub))

    def list_newest(self) -> list[ArchivedVersion]:
        """Return the newest versions, the newest first; raises ``HTTPError`` with the listing's status."""
        query = f"format=json&reverse=on&limit={_NEWEST_LIMIT}&prefix={quote(self._prefix, safe='')}"
        request = self._make_request("GET", self._versions_container, query=query)
        return [
            ArchivedVersion(row["name"], row["content_type"].startswith("application/x-deleted"))
            for row in read_listing(self._forward, request)
            if "name" in row
        ]

    def restore_version(self, version: ArchivedVersion) -> bool:
        """Copy a version back to the object and delete it from the archive; return False when it is missing.

        Raises ``HTTPError`` 503.
        """
        path = self._versions_container._replace(obj=version.name)
        source = self._forward(self._read_request("GET", path))
        with as_request_body(source) as body:
            if source.status == 404:
                return False
            # 202: a newer object exists, so the version stays in the archive.
            if not source.is_success or drained(self._copy_to(self._object_path, source, body)).status != 201:
                raise HTTPError(503)
        self.delete_version(version)
        return True

    def delete_version(self, version: ArchivedVersion) -> None:
        """Delete a version; raises ``HTTPError`` 503."""
        path = self._versions_container._replace(obj=version.name)
        require_success(self._forward, self._make_request("DELETE", path), 404)

    def current_exists(self) -> bool:
        """Return True if the current object exists; raises ``HTTPError`` 503."""
        with open_response(self._forward, self._read_request("HEAD", self._object_path)) as response:
            if response.status >= 500:
                raise HTTPError(503)
            return response.is_success

    def _copy_to(self, path: EntityPath, source: Response, body: RequestBody) -> Response:
        """Store the source's headers and body at ``path``; return the response."""
        headers = {
            name: value
            for name, value in source.headers.items()
            if name not in _RESPONSE_HEADERS and not name.startswith((fields.BACKEND, fields.SYSMETA_EC))
        }
        headers["etag"] = unquote_etag(source.headers.get("etag", ""))
        if path.container == self._versions_container.container:
            headers = self._archived_headers(headers)
        size = headers.get(fields.SYSMETA_SLO_SIZE)
        if size and "x-static-large-object" in headers:
            headers["content-type"] = f"{headers.get('content-type', '')};swift_bytes={size}"
        headers.update(length_header(body))
        sub = self._make_request("PUT", path, headers=headers, body=body)
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        return self._forward(sub)

    def _check_put(self, response: Response) -> None:
        """Raise ``HTTPError`` for a PUT that the archive refused, 503 when its result is unknown."""
        if 400 <= response.status < 500 and response.status != 404:
            raise HTTPError.of(response)
        drained(response)
        if response.status == 404:
            # There is no container for versions.
            raise HTTPError(412)
        if not response.is_success:
            raise HTTPError(503)
