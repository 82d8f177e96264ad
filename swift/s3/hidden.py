"""What the S3 API keeps in accounts and containers that no caller may name."""

from __future__ import annotations

import json
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.gateway.subrequest import asked, drained, make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.s3.errors import S3Error, refusal

SOURCE = "S3"


class Hidden:
    """Asks with all rights, for one S3 request; nothing of it is in the access log."""

    def __init__(self, forward: Handle, request: Request):
        self._forward = forward
        self._request = request

    def note(
        self,
        method: str,
        path: EntityPath,
        headers: HeaderMap | None = None,
        *,
        accept: tuple[int, ...] = (),
    ) -> None:
        """Change something of our own that no caller may name; raises ``S3Error`` when that fails."""
        sub = make_subrequest(self._request, method, "/v1" + path.quoted, headers=headers, source=SOURCE)
        sub.headers.update({"content-length": "0", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"})
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        response = drained(self._forward(preauthorise(sub)))
        if not response.is_success and response.status not in accept:
            raise S3Error("AccessDenied" if response.status == 403 else "ServiceUnavailable")

    def client(self) -> InternalClient:
        """Return a client for what daemons and requests do alike."""
        parent = self._request

        def forward(request: Request) -> Response:
            for name in (environkeys.CACHE, environkeys.TRANS_ID):
                if name in parent.env:
                    request.env[name] = parent.env[name]
            request.env[environkeys.ACCESS_LOG_MADE] = True
            return self._forward(preauthorise(request))

        return InternalClient(forward, SOURCE, tries=1)

    def names(self, container: EntityPath, *, prefix: str, limit: int) -> list[str]:
        """Some names of a container, none when it is not there or cannot be listed."""
        query = f"format=json&limit={limit}&prefix={quote(prefix, safe='')}"
        sub = make_subrequest(self._request, "GET", "/v1" + container.quoted, query=query, source=SOURCE)
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with asked(self._forward, preauthorise(sub)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        return [str(row["name"]) for row in rows]

    def containers(self, account: EntityPath, *, query: str) -> list[str]:
        """Return a page of an account's containers; raises ``S3Error``."""
        sub = make_subrequest(self._request, "GET", "/v1" + account.quoted, query=query, source=SOURCE)
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with asked(self._forward, preauthorise(sub)) as response:
            if not response.is_success:
                raise refusal(response.status, missing="AccessDenied")
            rows = json.loads(response.read_body())
        return [str(row["name"]) for row in rows if "name" in row]

    def keep(self, path: EntityPath, content: bytes) -> None:
        """Store something of our own, in a container that is made if need be; raises ``S3Error``."""
        status = self._stored(path, content)
        if status == 404:
            self.note("PUT", path._replace(obj=None))
            status = self._stored(path, content)
        if not 200 <= status <= 299:
            raise S3Error("ServiceUnavailable")

    def _stored(self, path: EntityPath, content: bytes) -> int:
        headers = {"content-length": str(len(content)), "content-type": "application/json"}
        sub = make_subrequest(
            self._request, "PUT", "/v1" + path.quoted, headers=headers, body=content, source=SOURCE
        )
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status
