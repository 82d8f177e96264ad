"""The public APIs as the console uses them: sub-requests with the credentials of a session and no others."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Mapping
from hashlib import md5
from typing import TypedDict, Unpack
from urllib.parse import quote

from lxml import etree

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.console.core.session import RecentValues, Session
from swift.console.core.web import BadForm
from swift.console.core.xml import parse_xml
from swift.gateway.subrequest import Forward, open_response
from swift.http import environkeys
from swift.http.body import BodyError, RequestBody
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


class ApiError(SwiftError):
    """An API refused a request, or could not carry it out."""

    def __init__(self, status: int, reason: str, transaction: str):
        """``reason`` is the sentence of the response; empty if it has none."""
        super().__init__(reason or str(status))
        self.status = status
        self.reason = reason
        self.transaction = transaction


class Content(TypedDict, total=False):
    """The content of a request, and the statuses besides 2xx that its caller handles, as keywords."""

    query: Mapping[str, str] | None
    headers: HeaderMap | None
    body: RequestBody | bytes
    also: Collection[int]
    #: An account other than the session's, for the Swift API.
    account: str


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

    def stream(
        self, method: str, container: str = "", name: str = "", **content: Unpack[Content]
    ) -> Response:
        """Return the response to a request for an account, a container or an object, its body not read.

        It is to become the response to the browser. Raises ``BadForm`` for the name of a bucket that would
        address something else.
        """
        sub = self._swift_request(method, container, name, content)
        found = self._forward(sub)
        if self._is_expected(found, content):
            return found
        raise self._error(self._read(lambda _request: found, sub))

    def read(self, method: str, container: str = "", name: str = "", **content: Unpack[Content]) -> Response:
        """Return the response with its whole body, as ``stream``."""
        return self._send(self._swift_request(method, container, name, content), content)

    def _swift_request(self, method: str, container: str, name: str, content: Content) -> Request:
        _require_bucket(method, container, name)
        parts = ("v1", content.get("account") or self.account, container, name)
        path = "".join(f"/{quote(part)}" for part in parts if part)
        sent: HeaderMap = dict(content.get("headers") or {})
        if self._session is not None:
            sent["x-auth-token"] = self._session.token
        query = quote_query(content.get("query") or {})
        return self._request(method, path, query, sent, content.get("body", b""))

    def listing(self, container: str = "", **query: str) -> list[JsonObject]:
        """Return a page of the containers of the account, or of the names of a container."""
        found = self.read("GET", container, query={"format": "json", **query}, also=(204,))
        rows: list[JsonObject] = json.loads(found.read_body() or b"[]")
        return rows

    # S3

    def s3(self, method: str, bucket: str = "", key: str = "", **content: Unpack[Content]) -> Response:
        """Return the response to a signed request with its whole body; see ``stream``."""
        _require_bucket(method, bucket, key)
        path, query = s3_path(bucket, key), content.get("query") or {}
        body = content.get("body", b"")
        sent: HeaderMap = dict(content.get("headers") or {})
        if isinstance(body, bytes) and body:
            sent.setdefault("content-md5", b64encode(md5(body, usedforsecurity=False).digest()).decode())
        signed = {name: value for name, value in sent.items() if name.startswith("x-amz-")}
        sent.update(self.signer().sign_headers(method, self.host, path, query, more=signed))
        return self._send(self._request(method, path, quote_query(query), sent, body), content)

    def s3_document(self, bucket: str, key: str = "", **query: str) -> bytes | None:
        """Return a document that a GET of a subresource has; None if there is none (404)."""
        found = self.s3("GET", bucket, key, query=query, also=(404,))
        return None if found.status == 404 else found.read_body()

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
        self._send(self._request("DELETE", "/auth/token", "", self._token_headers(), b""), {"also": (401,)})

    def _post(self, path: str, value: JsonObject | None) -> JsonObject:
        body = b"" if value is None else json.dumps(value).encode("ascii")
        found = self._send(self._request("POST", path, "", self._token_headers(), body), {})
        result: JsonObject = json.loads(found.read_body())
        return result

    def _token_headers(self) -> HeaderMap:
        assert self._session is not None, "pages that use it need a session"
        return {"x-auth-token": self._session.token}

    # all

    def anonymous(self, method: str, path: str, headers: HeaderMap | None = None) -> Response:
        """Return the response to a request of no session with its whole body, whatever its status."""
        return self._read(self._forward, self._request(method, path, "", dict(headers or {}), b""))

    def _request(
        self, method: str, path: str, query: str, headers: HeaderMap, body: RequestBody | bytes
    ) -> Request:
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
        return sub

    def _send(self, sub: Request, content: Content) -> Response:
        """Return the response with its whole body; raise ``ApiError`` for an unexpected status."""
        found = self._read(self._forward, sub)
        if self._is_expected(found, content):
            return found
        raise self._error(found)

    def _read(self, forward: Forward, sub: Request) -> Response:
        """Return a response with its whole body; its end is reported, so that it is logged."""
        with open_response(forward, sub) as response:
            try:
                response.read_body(RESPONSE_BYTES_MAX)
            except (BodyError, ValueError):
                # It broke off, or no page can be made of it.
                raise ApiError(502, "", self._transaction)
        return response

    @staticmethod
    def _is_expected(response: Response, content: Content) -> bool:
        return response.is_success or response.status in content.get("also", ())

    def _error(self, response: Response) -> ApiError:
        reason = _reason(response.headers.get("content-type", ""), response.read_body())
        return ApiError(response.status, reason, self._transaction)

    @property
    def _transaction(self) -> str:
        return str(self._visit.env.get(environkeys.TRANS_ID, ""))


_PASSED_KEYS = (environkeys.TRANS_ID, environkeys.BASE_LABELS)
#: Temporary access keys by session.
SessionSigners = RecentValues[Signer]


def _require_bucket(method: str, bucket: str, name: str) -> None:
    """Raise ``BadForm`` for a bucket's name with a slash, and for none where one is needed."""
    if "/" in bucket or (not bucket and (name or method not in ("GET", "HEAD"))):
        raise BadForm("form.bucket")


def s3_path(bucket: str, key: str) -> str:
    """Return the quoted path of an S3 request."""
    path = f"/{quote(bucket, safe='-_.~')}" if bucket else "/"
    return f"{path}/{quote(key, safe='-_.~/')}" if key else path


def _reason(content_type: str, body: bytes) -> str:
    """Return the sentence of an error: S3's Message, an identity operation's error; "" for any other."""
    if "xml" in content_type:
        try:
            return str(parse_xml(body).findtext("Message") or "")
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
