"""The versions of one object: made, listed, brought back (spec: middleware.md §9.1).

All of it runs with rights of its own: a user who may write to the object's container may create versions, and
the caller was asked about that before. Bytes stream from one object to the other; manifests and links are
moved as the objects they are.
"""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import quote

from swift.base.entity import Entity, EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.subrequest import make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.http.transform import as_request_body
from swift.http.validate import request_timestamp
from swift.runtime.wsgi import Handle

SOURCE = "VW"
#: The type of what says that an object was deleted.
MARKER_TYPE = "application/x-deleted;swift_versions_deleted=1"
#: The object as it is stored, whatever it stands for.
_AS_STORED = "multipart-manifest=get"
#: Versions of an object that are looked at: the newest, and what it may stand before.
_LOOKED_AT = 2
_OF_ANSWER = frozenset(
    (
        *("accept-ranges", "connection", "content-length", "content-location", "content-range", "date"),
        *("etag", "last-modified", "transfer-encoding", "vary", "x-timestamp", "x-trans-id"),
        "x-openstack-request-id",
    )
)


class FormerVersion(NamedTuple):
    """One former object, or the mark of a deletion."""

    name: str
    is_marker: bool


class Archive:
    """The versions of the object that a request is for, in the container ``home``."""

    #: Names the filter in the access lines of its requests.
    _source = SOURCE

    def __init__(self, forward: Handle, request: Request, entity: Entity, home: str):
        self._forward = forward
        self._request = request
        self._object = entity.path
        self._version = entity.version
        self._home = EntityPath(entity.path.account, home)

    @property
    def _prefix(self) -> str:
        name = str(self._object.obj)
        return f"{len(name.encode('utf-8', 'surrogateescape')):03x}{name}/"

    def _named(self, timestamp: Timestamp) -> EntityPath:
        return self._home._replace(obj=self._prefix + timestamp.internal)

    def _is_kept(self, source: Response) -> bool:
        """Return True if the present object is only a link to a version that is kept already."""
        return False

    def _ask(
        self,
        method: str,
        path: EntityPath,
        query: str = "",
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
    ) -> Request:
        sub = make_subrequest(
            self._request,
            method,
            Entity(self._version, path).raw_path,
            query=query,
            headers=headers,
            body=body,
            source=self._source,
        )
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        return preauthorise(sub)

    def keep(self) -> None:
        """Keep the present object, if there is one, as a version; raises ``HTTPError`` 412 or 503."""
        source = self._forward(self._ask("GET", self._object, _AS_STORED, {"x-newest": "true"}))
        with as_request_body(source) as body:
            if source.status == 404:
                return
            if not source.is_success:
                raise HTTPError(503)
            if self._is_kept(source):
                return
            try:
                stamp = Timestamp(source.headers.get("x-timestamp"))
            except InvalidTimestamp:
                raise HTTPError(503)
            _check_stored(self._put(self._named(stamp), source, body))

    def mark_deleted(self) -> None:
        """Keep the mark of a deletion; raises ``HTTPError`` 400, 412 or 503."""
        stamp = request_timestamp(self._request.headers)
        headers = {"content-type": MARKER_TYPE, "content-length": "0"}
        sub = self._ask("PUT", self._named(stamp), headers=headers)
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        with open_response(self._forward, sub) as response:
            _check_stored(response.status)

    def newest(self) -> list[FormerVersion]:
        """Return the newest versions, the newest first; raises ``HTTPError`` with the listing's status."""
        query = f"format=json&reverse=on&limit={_LOOKED_AT}&prefix={quote(self._prefix, safe='')}"
        with open_response(self._forward, self._ask("GET", self._home, query)) as response:
            if response.status == 404:
                return []
            if not response.is_success:
                raise HTTPError(503)
            rows = json.loads(response.read_body() or b"[]")
        return [
            FormerVersion(row["name"], row["content_type"].startswith("application/x-deleted"))
            for row in rows
            if "name" in row
        ]

    def restore(self, version: FormerVersion) -> bool:
        """Make a version the object again and remove it from the versions; False when it is gone.

        Raises ``HTTPError`` 503.
        """
        path = self._home._replace(obj=version.name)
        source = self._forward(self._ask("GET", path, _AS_STORED, {"x-newest": "true"}))
        with as_request_body(source) as body:
            if source.status == 404:
                return False
            # 202: a newer object is there, and the version stays one.
            if not source.is_success or self._put(self._object, source, body) != 201:
                raise HTTPError(503)
        self.remove(version)
        return True

    def remove(self, version: FormerVersion) -> None:
        """Forget a version; raises ``HTTPError`` 503."""
        with open_response(
            self._forward, self._ask("DELETE", self._home._replace(obj=version.name))
        ) as response:
            status = response.status
        if not 200 <= status <= 299 and status != 404:
            raise HTTPError(503)

    def exists(self) -> bool:
        """Return True if there is an object now; raises ``HTTPError`` 503."""
        sub = self._ask("HEAD", self._object, _AS_STORED, {"x-newest": "true"})
        with open_response(self._forward, sub) as response:
            if response.status >= 500:
                raise HTTPError(503)
            return response.is_success

    def _put(self, path: EntityPath, source: Response, body: RequestBody) -> int:
        """Store what was read under another name; the status."""
        headers = {
            name: value
            for name, value in source.headers.items()
            if name not in _OF_ANSWER and not name.startswith((fields.BACKEND, fields.SYSMETA_EC))
        }
        headers["etag"] = unquote_etag(source.headers.get("etag", ""))
        size = headers.get(fields.SYSMETA_SLO_SIZE)
        if size and "x-static-large-object" in headers:
            headers["content-type"] = f"{headers.get('content-type', '')};swift_bytes={size}"
        if body.length is None:
            headers["transfer-encoding"] = "chunked"
        else:
            headers["content-length"] = str(body.length)
        sub = self._ask("PUT", path, headers=headers, body=body)
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        with open_response(self._forward, sub) as response:
            return response.status


def _check_stored(status: int) -> None:
    """Raise 412 when the versions' container refuses, 503 when its state is unknown."""
    if 200 <= status <= 299:
        return
    raise HTTPError(412 if 400 <= status < 500 else 503)
