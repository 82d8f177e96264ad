"""The caller's Swift account, asked through the rest of the pipeline (spec: middleware.md §22.2).

Every sub-request names the access key where the account belongs and carries the claim; the authentication
filter checks it and puts the account there. With ``s3_acl`` the caller is identified once, and then what the
ACLs allow is asked for with no rights but theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from swift.base.entity import EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import asked, drained, make_subrequest, preauthorise
from swift.http import fields
from swift.http.authdetails import AuthDetails
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.s3api.errors import S3Error, refusal
from swift.middleware.s3api.metadata import quoted_path
from swift.middleware.s3api.settings import S3Settings
from swift.middleware.s3api.signature import Claim
from swift.runtime.wsgi import Handle

SOURCE = "S3"
_USER_ID_MAX = 128


def _allow(_request: Request) -> None:
    """The authorisation callback where ACLs of S3 have decided."""


class Account:
    """Asks for containers and objects of one account, for one S3 request."""

    def __init__(self, forward: Handle, request: Request, claim: Claim, settings: S3Settings):
        self._forward = forward
        self._request = request
        self.claim = claim
        self._settings = settings
        self._details: AuthDetails = {
            "access_key": claim.access_key,
            "signature": claim.signature,
            "string_to_sign": claim.string_to_sign,
            "check_signature": claim.check,
        }
        #: The account's name, once somebody knew the caller.
        self.name = ""
        #: ACLs of S3 have decided: ask with all rights.
        self.is_trusted = False

    @property
    def owner(self) -> str:
        """How documents name the caller."""
        return self.claim.access_key

    # asking

    def subrequest(
        self,
        method: str,
        bucket: str = "",
        key: str = "",
        *,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Request:
        """A request for the account, a container or an object of it."""
        names = [self.name if self.is_trusted else self.claim.access_key, *filter(None, (bucket, key))]
        sub = make_subrequest(
            self._request,
            method,
            "/v1" + quoted_path(*names),
            headers=headers,
            body=body,
            query=query,
            source=SOURCE,
        )
        if isinstance(body, bytes) and method in ("PUT", "POST"):
            sub.headers["content-length"] = str(len(body))
        env = sub.env
        if self.is_trusted:
            env[fields.AUTHORIZE_OVERRIDE] = True
            env[fields.AUTHORIZE] = _allow
        else:
            env[fields.S3_AUTH_DETAILS] = self._details
        if not self._settings.force_swift_request_proxy_log:
            env[fields.ACCESS_LOG_MADE] = True
        sub.remote_addr = self._request.remote_addr
        return sub

    def open(self, sub: Request) -> Response:
        """The answer, whose body the caller sends or releases; raises ``S3Error`` when it may not be had."""
        response = self._forward(sub)
        if not self.name:
            self._learn(sub)
        if response.status in (401, 403):
            drained(response)
            self._refuse(sub, response.status)
        return response

    @contextmanager
    def ask(
        self,
        method: str,
        bucket: str = "",
        key: str = "",
        *,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Iterator[Response]:
        """The answer for the time of a block; raises like ``open``."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        with asked(self.open, sub) as response:
            yield response

    def head(
        self, bucket: str = "", key: str = "", *, headers: HeaderMap | None = None, query: str = ""
    ) -> Response:
        """The head of an answer; raises like ``open``."""
        return drained(self.open(self.subrequest("HEAD", bucket, key, headers=headers, query=query)))

    def done(
        self,
        method: str,
        bucket: str,
        key: str = "",
        *,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
        missing: str = "NoSuchBucket",
        conflict: str = "ServiceUnavailable",
    ) -> Response:
        """The head of an answer that must be a success; raises ``S3Error``."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        response = drained(self.open(sub))
        if not response.is_success:
            raise refusal(response.status, missing=missing, conflict=conflict)
        return response

    # who it is

    def identify(self) -> None:
        """Have the caller identified, whatever it may do; raises ``S3Error``."""
        if self.name:
            return
        sub = self.subrequest("HEAD")
        drained(self._forward(sub))
        self._learn(sub)
        if not self.name:
            self._refuse(sub, 401)

    def _learn(self, sub: Request) -> None:
        entity = sub.entity
        if not sub.env.get(fields.REMOTE_USER) or entity is None:
            return
        self.name = entity.path.account
        env = self._request.env
        key = self.claim.access_key
        shown = key if len(key) <= _USER_ID_MAX else key[: _USER_ID_MAX - 3] + "..."
        env[fields.ACCESS_LOGGING] = {"user_id": shown}
        env[fields.REMOTE_USER] = sub.env[fields.REMOTE_USER]

    def _refuse(self, sub: Request, status: int) -> NoReturn:
        if status == 401 and not sub.env.get(fields.REMOTE_USER):
            raise S3Error("SignatureDoesNotMatch", details=self.claim.details, reason="signature")
        raise S3Error("AccessDenied")

    # facts

    def bucket_info(self, bucket: str) -> ContainerInfo:
        """What the caches know of a bucket; raises ``S3Error`` when it is not there."""
        self.identify()
        info = container_info(self._request, self._forward, self.name, bucket)
        if not info.exists:
            raise refusal(info.status if info.status >= 500 else 404, missing="NoSuchBucket")
        return info

    def has_bucket(self, bucket: str) -> bool:
        """Whether a bucket is there, as far as the caches know."""
        info = container_info(self._request, self._forward, self.name, bucket)
        return info.exists or info.status >= 500

    def path(self, bucket: str, key: str | None = None) -> EntityPath:
        """Where something is, once the caller is known."""
        return EntityPath(self.name, bucket, key)

    # what is hidden from the caller

    def note(self, method: str, path: EntityPath, headers: HeaderMap | None = None) -> None:
        """Change something of our own that no caller may name; raises ``S3Error`` when that fails."""
        sub = make_subrequest(self._request, method, "/v1" + path.quoted, headers=headers, source=SOURCE)
        sub.headers.update({"content-length": "0", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"})
        sub.env[fields.ACCESS_LOG_MADE] = True
        response = drained(self._forward(preauthorise(sub)))
        if not response.is_success:
            raise S3Error("AccessDenied" if response.status == 403 else "ServiceUnavailable")

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
        sub.env[fields.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status

    def owns(self, bucket: str) -> bool:
        """Whether the caller is somebody to whom the account belongs; raises ``S3Error``."""
        sub = self.subrequest("HEAD", bucket)
        response = drained(self.open(sub))
        if not response.is_success:
            raise refusal(response.status, missing="NoSuchBucket")
        return bool(sub.env.get(fields.OWNER))
