"""Requests with all rights on behalf of one S3 request."""

from __future__ import annotations

import json
from typing import Unpack
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.gateway.subrequest import RequestContent, drained, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.names import REGISTRY, registry_path

SWIFT_SOURCE = "S3"


class PrivilegedRequests:
    """Requests with all rights on behalf of one S3 request, without lines in the access log."""

    def __init__(self, forward: Handle, request: Request):
        self._forward = forward
        self._request = request

    def _subrequest(self, method: str, path: EntityPath, **content: Unpack[RequestContent]) -> Request:
        sub = make_subrequest(self._request, method, "/v1" + path.quoted, source=SWIFT_SOURCE, **content)
        sub.headers.setdefault("content-length", str(sub.body.length))
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return preauthorise(sub)

    def send_change(
        self, method: str, path: EntityPath, headers: HeaderMap | None = None, *, accept: tuple[int, ...] = ()
    ) -> None:
        """Send a change of internal accounts and containers; raise ``S3Error`` if it fails."""
        sent = {**(headers or {}), fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        response = drained(self._forward(self._subrequest(method, path, headers=sent)))
        if not response.is_success and response.status not in accept:
            raise S3Error("AccessDenied" if response.status == 403 else "ServiceUnavailable")

    def register_bucket(self, account: str, bucket: str) -> None:
        """Register a bucket for the lifecycle daemon; raise ``S3Error`` if it fails."""
        self.send_change("PUT", REGISTRY)
        self.send_change("PUT", registry_path(account, bucket))

    def internal_client(self) -> InternalClient:
        """Return a client for code that requests and daemons share."""
        parent = self._request

        def forward(request: Request) -> Response:
            for name in (environkeys.CACHE, environkeys.TRANS_ID):
                if name in parent.env:
                    request.env[name] = parent.env[name]
            request.env[environkeys.ACCESS_LOG_MADE] = True
            return self._forward(preauthorise(request))

        return InternalClient(forward, SWIFT_SOURCE, tries=1, must_decrypt=True)

    def list_names(self, container: EntityPath, *, prefix: str, limit: int) -> list[str]:
        """Return up to ``limit`` names of a container; none if it cannot be listed."""
        query = f"format=json&limit={limit}&prefix={quote(prefix, safe='')}"
        with open_response(self._forward, self._subrequest("GET", container, query=query)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        return [str(row["name"]) for row in rows]

    def list_containers(self, account: EntityPath, *, query: str) -> list[str]:
        """Return a page of an account's containers; raise ``S3Error``."""
        with open_response(self._forward, self._subrequest("GET", account, query=query)) as response:
            if not response.is_success:
                raise error_for_status(response.status, missing="AccessDenied")
            rows = json.loads(response.read_body())
        return [str(row["name"]) for row in rows if "name" in row]

    def store(self, path: EntityPath, content: bytes) -> None:
        """Store an internal object and create its container if necessary; raise ``S3Error``."""
        status = self._put(path, content)
        if status == 404:
            self.send_change("PUT", path._replace(obj=None))
            status = self._put(path, content)
        if not 200 <= status <= 299:
            raise S3Error("ServiceUnavailable")

    def _put(self, path: EntityPath, content: bytes) -> int:
        sub = self._subrequest("PUT", path, headers={"content-type": "application/json"}, body=content)
        return drained(self._forward(sub)).status
