"""Requests with all rights on behalf of one S3 request."""

from __future__ import annotations

import json
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.gateway.subrequest import drained, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.s3.core.errors import S3Error, error_for_status


class PrivilegedRequests:
    """Requests with all rights on behalf of one S3 request, without lines in the access log."""

    def __init__(self, forward: Handle, request: Request):
        self._forward = forward
        self._request = request

    def send_change(
        self,
        method: str,
        path: EntityPath,
        headers: HeaderMap | None = None,
        *,
        accept: tuple[int, ...] = (),
    ) -> None:
        """Send a change of internal accounts and containers; raise ``S3Error`` if it fails."""
        sub = make_subrequest(
            self._request, method, "/v1" + path.quoted, headers=headers, source=SWIFT_SOURCE
        )
        sub.headers.update({"content-length": "0", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"})
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        response = drained(self._forward(preauthorise(sub)))
        if not response.is_success and response.status not in accept:
            raise S3Error("AccessDenied" if response.status == 403 else "ServiceUnavailable")

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
        sub = make_subrequest(
            self._request, "GET", "/v1" + container.quoted, query=query, source=SWIFT_SOURCE
        )
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with open_response(self._forward, preauthorise(sub)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        return [str(row["name"]) for row in rows]

    def list_containers(self, account: EntityPath, *, query: str) -> list[str]:
        """Return a page of an account's containers; raise ``S3Error``."""
        sub = make_subrequest(self._request, "GET", "/v1" + account.quoted, query=query, source=SWIFT_SOURCE)
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with open_response(self._forward, preauthorise(sub)) as response:
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
        headers = {"content-length": str(len(content)), "content-type": "application/json"}
        sub = make_subrequest(
            self._request, "PUT", "/v1" + path.quoted, headers=headers, body=content, source=SWIFT_SOURCE
        )
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status


SWIFT_SOURCE = "S3"
