"""The public APIs as the console uses them: sub-requests with the credentials of a session and no others."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5
from urllib.parse import quote

from lxml import etree

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.console.core.session import RecentValues, Session
from swift.console.core.web import BadForm
from swift.gateway.subrequest import Forward, open_response
from swift.http import environkeys
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.wire.sigv4 import Signer, quote_query

#: Bytes of a response that a page is made of.
RESPONSE_BYTES_MAX = 32 << 20
#: Headers of the browser's request that its sub-requests have as well.
_PASSED_HEADERS = (
    *("host", "user-agent", "x-forwarded-for", "x-cluster-client-ip", "x-forwarded-proto"),
    "accept-language",
)
_SUCCESS = range(200, 300)


class ApiError(SwiftError):
    """An API refused a request, or could not carry it out."""

    def __init__(self, status: int, reason: str, transaction: str):
        """``reason`` is the sentence of the response; empty if it has none."""
        super().__init__(reason or str(status))
        self.status = status
        self.reason = reason
        self.transaction = transaction


class Api:
    """Sends requests of one visit; methods raise ``ApiError`` for other statuses than 2xx and ``also``."""

    def __init__(
        self, forward: Forward, visit: Request, session: Session | None, signers: SessionSigners, region: str
    ):
        self._forward = forward
        self._visit = visit
        self._session = session
        self._signers = signers
        self._region = region

    @property
    def account(self) -> str:
        """The account of the session's tenant."""
        assert self._session is not None, "pages that use it need a session"
        return self._session.account

    @property
    def host(self) -> str:
        """The address by which the browser reaches the cluster."""
        return self._visit.headers.get("host", "localhost")

    # Swift's API

    def send(
        self,
        method: str,
        container: str = "",
        name: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        account: str = "",
        also: Collection[int] = (),
    ) -> Response:
        """Return the response to a request for an account, a container or an object, its body not read.

        The caller releases it (``open_response`` does; see ``read``). Raises ``BadForm`` for a name that
        would address something else: a bucket's with a slash, and none for a change.
        """
        if "/" in container or (not container and method not in ("GET", "HEAD")):
            raise BadForm("the name of the bucket is missing, or has a slash")
        path = f"/v1/{quote(account or self.account)}"
        if container:
            path += f"/{quote(container)}"
        if name:
            path += f"/{quote(name)}"
        sent: HeaderMap = dict(headers or {})
        if self._session is not None:
            sent["x-auth-token"] = self._session.token
        return self._checked(self._request(method, path, quote_query(query or {}), sent, body), also)

    def read(
        self,
        method: str,
        container: str = "",
        name: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        account: str = "",
        also: Collection[int] = (),
    ) -> Response:
        """Return the response with its whole body, as ``send``."""
        found = self.send(
            method,
            container,
            name,
            query=query,
            headers=headers,
            body=body,
            account=account,
            also=also,
        )
        found.read_body(RESPONSE_BYTES_MAX)
        return found

    def listing(self, container: str = "", *, account: str = "", **query: str) -> list[JsonObject]:
        """Return a page of the containers of the account, or of the names of a container."""
        found = self.read("GET", container, query={"format": "json", **query}, account=account, also=(204,))
        rows: list[JsonObject] = json.loads(found.read_body(RESPONSE_BYTES_MAX) or b"[]")
        return rows

    # S3

    def s3(
        self,
        method: str,
        bucket: str = "",
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        also: Collection[int] = (),
    ) -> Response:
        """Return the response to a signed request, its body not read; see ``send``."""
        path, asked = s3_path(bucket, key), dict(query or {})
        sent: HeaderMap = dict(headers or {})
        if isinstance(body, bytes) and body:
            sent.setdefault("content-md5", b64encode(md5(body, usedforsecurity=False).digest()).decode())
        signed = {name: value for name, value in sent.items() if name.startswith("x-amz-")}
        sent.update(self.signer().sign_headers(method, self.host, path, asked, more=signed))
        return self._checked(self._request(method, path, quote_query(asked), sent, body), also)

    def s3_document(self, bucket: str, key: str = "", **query: str) -> bytes | None:
        """Return a document that a GET of a subresource has; None if there is none (404)."""
        found = self.s3("GET", bucket, key, query=query, also=(404,))
        data = found.read_body(RESPONSE_BYTES_MAX)
        return None if found.status == 404 else data

    def presign(self, method: str, bucket: str, key: str, life_s: int, **query: str) -> str:
        """Return a URL that may be used without other credentials until its end, or the session's."""
        path = self.signer().presign(method, self.host, s3_path(bucket, key), query, life_s)
        return f"{self._visit.scheme}://{self.host}{path}"

    def signer(self) -> Signer:
        """Return temporary access keys of the session."""
        assert self._session is not None, "pages that use it need a session"
        found = self._signers.get(self._session.digest)
        if found is None:
            made = self._post("/auth/session-keys", None)
            found = Signer(
                str(made["AccessKeyId"]),
                str(made["SecretAccessKey"]),
                self._region,
                str(made["SessionToken"]),
            )
            self._signers.put(self._session.digest, found)
        return found

    # identities

    def identity(self, operation: str, **parameters: object) -> JsonObject:
        """Return the result of an operation on identities; see ``doc/howto/users.md``."""
        return self._post("/auth/identity", {"operation": operation, "parameters": parameters})

    def revoke_token(self) -> None:
        """End the session on every proxy."""
        assert self._session is not None, "pages that use it need a session"
        sent: HeaderMap = {"x-auth-token": self._session.token}
        self._checked(self._request("DELETE", "/auth/token", "", sent, b""), (401,))

    def _post(self, path: str, value: JsonObject | None) -> JsonObject:
        assert self._session is not None, "pages that use it need a session"
        sent: HeaderMap = {"x-auth-token": self._session.token}
        body = b"" if value is None else json.dumps(value).encode("ascii")
        found = self._checked(self._request("POST", path, "", sent, body), ())
        result: JsonObject = json.loads(found.read_body(RESPONSE_BYTES_MAX))
        return result

    # all

    def anonymous(
        self, method: str, path: str, headers: HeaderMap | None = None, query: str = ""
    ) -> Response:
        """Return the response to a request of no session, whatever its status."""
        found = self._request(method, path, query, dict(headers or {}), b"")
        found.read_body(RESPONSE_BYTES_MAX)
        return found

    @contextmanager
    def opened(self, response: Response) -> Iterator[Response]:
        """Release a response of ``send`` or ``s3`` at the end of the block."""
        with open_response(lambda _request: response, self._visit) as found:
            yield found

    def _request(
        self, method: str, path: str, query: str, headers: HeaderMap, body: RequestBody | bytes
    ) -> Response:
        visit = self._visit
        passed = {name: visit.headers[name] for name in _PASSED_HEADERS if name in visit.headers}
        if isinstance(body, bytes) and (body or method in ("PUT", "POST")):
            headers["content-length"] = str(len(body))
        env = {key: visit.env[key] for key in _PASSED_KEYS if key in visit.env}
        sub = Request(
            method,
            path,
            {**passed, **headers},
            body,
            query=query,
            env=env,
            remote_addr=visit.remote_addr,
            scheme=visit.scheme,
        )
        sub.remote_port = visit.remote_port
        return self._forward(sub)

    def _checked(self, response: Response, also: Collection[int]) -> Response:
        if response.status in _SUCCESS or response.status in also:
            return response
        transaction = str(self._visit.env.get(environkeys.TRANS_ID, ""))
        try:
            data = response.read_body(RESPONSE_BYTES_MAX)
        except ValueError:
            data = b""
        raise ApiError(response.status, _reason(response.headers.get("content-type", ""), data), transaction)


_PASSED_KEYS = (environkeys.TRANS_ID, environkeys.BASE_LABELS)
#: Temporary access keys by session.
SessionSigners = RecentValues[Signer]


def s3_path(bucket: str, key: str) -> str:
    """Return the quoted path of an S3 request."""
    path = f"/{quote(bucket, safe='-_.~')}" if bucket else "/"
    return f"{path}/{quote(key, safe='-_.~/')}" if key else path


def _reason(content_type: str, body: bytes) -> str:
    """Return the sentence of an error: S3's Message, an identity operation's error; "" for any other."""
    if "xml" in content_type:
        try:
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            return str(etree.fromstring(body, parser).findtext("Message") or "")
        except (etree.XMLSyntaxError, ValueError):
            return ""
    if "json" in content_type:
        try:
            tree = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        if isinstance(tree, dict) and isinstance(tree.get("error"), str):
            field = tree.get("field")
            return f"{field}: {tree['error']}" if field and isinstance(field, str) else str(tree["error"])
    return ""
