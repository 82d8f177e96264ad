"""What the S3 API keeps in accounts and containers that no caller may name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from enum import Enum
from functools import partial
from typing import NoReturn
from urllib.parse import quote

from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.internal_client import InternalClient
from swift.gateway.subrequest import asked, drained, make_subrequest, preauthorise
from swift.gateway.writing import NOT_STORED, WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.acl import without_referrers
from swift.http.authdetails import AuthDetails
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap, with_prefix
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.runtime.wsgi import Handle
from swift.s3.auth.claim import Claim
from swift.s3.errors import S3Error, refusal
from swift.s3.names import bucket_of
from swift.s3.settings import S3Settings

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


# --- account ------------------------------------------------------------
# The caller's Swift account, asked through the rest of the pipeline (spec: middleware.md §22.2).
#
# Every sub-request names the access key where the account belongs and carries the claim; the
# authentication filter checks it and puts the account there. With ``s3_acl`` the caller is identified
# once, and then what the ACLs allow is asked for with no rights but theirs.


_USER_ID_MAX = 128


Authorise = Callable[[Request], Response | None]


def _belongs(container: str | None, bucket: str) -> bool:
    """Return True if a container is a bucket, holds its parts, or is one that filters hide for it."""
    if container is None:
        return True
    name = container.rpartition(RESERVED)[2]
    return bucket in (name, bucket_of(name))


class Rights(Enum):
    """What of a container's ACL counts for the caller."""

    ALL = "all"
    #: Nothing that is said to everybody.
    NOT_PUBLIC = "not public"
    #: Nothing: only the account's own may do anything.
    OWN = "own"


class KnownAccounts:
    """Access key → account, learned from requests whose signatures were good; it proves nothing.

    What a bucket is set to can be looked up with it before a signature is checked. The cache lets workers,
    and questions of browsers that carry no signature, know what another request has taught.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def find(self, request: Request, access_key: str) -> str:
        """The account of a key; empty when nobody has seen it."""
        name = self._names.get(access_key)
        if name is None:
            cache = request.env.get(environkeys.CACHE)
            found = None if cache is None else cache.get(_CACHED + access_key)
            name = found if isinstance(found, str) else ""
            if name:
                self._keep(access_key, name)
        return name

    def learn(self, request: Request, access_key: str, name: str) -> None:
        """Keep what a good signature taught."""
        if self._names.get(access_key) == name:
            return
        self._keep(access_key, name)
        cache = request.env.get(environkeys.CACHE)
        if cache is not None:
            cache.set(_CACHED + access_key, name, ttl_s=_CACHED_S)

    def _keep(self, access_key: str, name: str) -> None:
        if len(self._names) >= _KNOWN_MAX:
            self._names.clear()
        self._names[access_key] = name


_CACHED, _CACHED_S, _KNOWN_MAX = "s3account/", 86400, 10_000


class Session:
    """Asks for containers and objects of one account, for one S3 request.

    It is the caller's own, or ``named``, the one that the request names. A claim without an access key is an
    anonymous caller's.
    """

    def __init__(
        self,
        forward: Handle,
        request: Request,
        claim: Claim,
        settings: S3Settings,
        known: KnownAccounts | None = None,
        named: str = "",
    ):
        self._forward = forward
        self._request = request
        self.claim = claim
        self._settings = settings
        self._known = known or KnownAccounts()
        self._of_path = named
        if not named and not claim.access_key:
            named = settings.anonymous_account
        self._named = named
        self._details: AuthDetails = {
            "access_key": claim.access_key,
            "signature": claim.signature,
            "string_to_sign": claim.string_to_sign,
            "alternative_strings_to_sign": claim.alternatives,
            "check_signature": claim.check,
        }
        #: The account's name; of the caller's own once somebody knew the caller.
        self.name = named
        #: The caller's own account, once somebody knew the caller.
        self.home = ""
        #: The bucket for which policies and ACLs of S3 have decided: requests for it and the containers
        #: that belong to it have all rights. Empty if they did not.
        self.trusted_bucket = ""
        #: What of Swift's ACLs counts.
        self.rights = Rights.ALL
        self._authorise: Authorise | None = None

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody signed the request."""
        return not self.claim.access_key

    @property
    def is_foreign(self) -> bool:
        """Whether the request names an account, which may be another than the caller's."""
        return bool(self._named)

    @property
    def owner(self) -> str:
        """How documents name the caller."""
        return self.claim.access_key

    def signed(self, claim: Claim) -> Session:
        """The account of whoever signed a form, to which nobody else may belong."""
        return Session(self._forward, self._request, claim, self._settings, self._known, self._of_path)

    def with_rights(self, rights: Rights, *, trusted_bucket: str = "") -> Session:
        """The same with other rights, for a part of the request; the caller must be known."""
        other = copy(self)
        other.rights, other.trusted_bucket = rights, trusted_bucket
        return other

    def is_trusted_in(self, container: str) -> bool:
        """Return True if policies or ACLs allowed the request in the bucket that a container belongs to."""
        return bool(self.trusted_bucket) and _belongs(container, self.trusted_bucket)

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
        is_trusted = self.is_trusted_in(bucket)
        is_decided = is_trusted or self.rights is not Rights.ALL
        own = self.name if is_decided else self._named or self.claim.access_key
        sub = self._made(method, own, bucket, key, headers=headers, body=body, query=query)
        if isinstance(body, bytes) and method in ("PUT", "POST"):
            sub.headers["content-length"] = str(len(body))
        env = sub.env
        if is_trusted:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = partial(self._allowed, self.trusted_bucket)
        elif self.rights is not Rights.ALL:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = self._restricted
        elif not self.is_anonymous:
            self._claim(sub)
        return sub

    def _claim(self, sub: Request) -> None:
        """Have the filter of authentication check the signature, whatever the request was authorised for."""
        env = sub.env
        env.pop(environkeys.AUTHORIZE_OVERRIDE, None)
        if not self.home:
            env.pop(environkeys.REMOTE_USER, None)
        env[environkeys.S3_AUTH_DETAILS] = self._details

    def _made(
        self,
        method: str,
        *names: str,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Request:
        sub = make_subrequest(
            self._request, method, "/v1", headers=headers, body=body, query=query, source=SOURCE
        )
        own, *rest = filter(None, names)
        sub.name(Entity("v1", EntityPath(own, *rest)))
        if not self._settings.force_swift_request_proxy_log:
            sub.env[environkeys.ACCESS_LOG_MADE] = True
        sub.remote_addr = self._request.remote_addr
        return sub

    def open(self, sub: Request) -> Response:
        """The answer, whose body the caller sends or releases; raises ``S3Error`` when it may not be had."""
        try:
            response = forward_write(self._forward, sub)
        except WriteNotStored:
            raise S3Error("ServiceUnavailable", NOT_STORED)
        if not self.home and not self.is_anonymous and not self._named:
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
        if self.home or self.is_anonymous:
            return
        # Nobody but the filter that knows the caller has to do anything for this one.
        sub = self._made("OPTIONS", self.claim.access_key)
        sub.headers.pop("origin", None)
        self._claim(sub)
        status = drained(self._forward(sub)).status
        self._learn(sub)
        if not self.home:
            if status >= 500:
                # Whoever could tell does not answer.
                raise refusal(status)
            self._refuse(sub, 401)

    def _learn(self, sub: Request) -> None:
        """Take from a request to the caller's own account whose that is."""
        entity, env = sub.entity, sub.env
        if not env.get(environkeys.REMOTE_USER) or entity is None:
            return
        key = self.claim.access_key
        self.home = entity.path.account
        self.name = self._named or self.home
        self._known.learn(self._request, key, self.home)
        self._authorise = env.get(environkeys.AUTHORIZE)
        shown = key if len(key) <= _USER_ID_MAX else key[: _USER_ID_MAX - 3] + "..."
        self._request.env[environkeys.ACCESS_LOGGING] = {"user_id": shown}
        self._request.env[environkeys.REMOTE_USER] = env[environkeys.REMOTE_USER]

    def _allowed(self, bucket: str, request: Request) -> Response | None:
        """The authorisation callback where policies and ACLs of S3 have decided about a bucket.

        What lies elsewhere, as the target of a link may, the caller needs rights of its own for.
        """
        entity = request.entity
        if (
            entity is not None
            and entity.path.account == self.name
            and _belongs(entity.path.container, bucket)
        ):
            if entity.path.container is not None and entity.path.obj is None:
                # The proxy shows ACLs to owners, and takes them from owners, only.
                request.env[environkeys.OWNER] = True
            return None
        return self._restricted(request)

    def _restricted(self, request: Request) -> Response | None:
        """The authorisation callback where not everything of a container's ACL counts."""
        if self._authorise is None:
            return error_response(403)
        if self.rights is not Rights.ALL:
            request.acl = without_referrers(request.acl) if self.rights is Rights.NOT_PUBLIC else None
        return self._authorise(request)

    def _refuse(self, sub: Request, status: int) -> NoReturn:
        if status == 401 and not self.is_anonymous and not sub.env.get(environkeys.REMOTE_USER):
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

    def settings_of(self, bucket: str) -> Mapping[str, str]:
        """The system metadata of a bucket, empty when it is not there; raises ``S3Error``.

        The caller may not be known yet: nothing of it may be told before.
        """
        name = self.name or self._known.find(self._request, self.claim.access_key)
        if not name:
            self.identify()
            name = self.name
        info = container_info(self._request, self._forward, name, bucket)
        if info.status >= 500:
            # Nobody knows what the bucket forbids.
            raise S3Error("ServiceUnavailable")
        return info.sysmeta

    def has_bucket(self, bucket: str) -> bool:
        """Whether a bucket is there, as far as the caches know."""
        info = container_info(self._request, self._forward, self.name, bucket)
        return info.exists or info.status >= 500

    def path(self, bucket: str | None = None, key: str | None = None) -> EntityPath:
        """Where something is, once the caller is known."""
        return EntityPath(self.name, bucket, key)

    @property
    def hidden(self) -> Hidden:
        """What the API keeps beside what the caller may name."""
        return Hidden(self._forward, self._request)


def trusted(account: Session, bucket: str) -> Session:
    """The same with all rights in one bucket."""
    return account.with_rights(account.rights, trusted_bucket=bucket)


def owned_sysmeta(account: Session, bucket: str) -> dict[str, str]:
    """The system metadata of a bucket that the caller owns; raises ``S3Error``."""
    sub = account.subrequest("HEAD", bucket)
    head = drained(account.open(sub))
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    if not account.is_trusted_in(bucket) and not sub.env.get(environkeys.OWNER):
        raise S3Error("AccessDenied")
    size = len(fields.CONTAINER_SYSMETA)
    stored = with_prefix(head.headers, fields.CONTAINER_SYSMETA)
    return {name[size:]: value for name, value in stored.items()}
