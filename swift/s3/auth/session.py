"""The session of an S3 request: the caller, its rights, and requests to the rest of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from urllib.parse import quote

from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.internal_client import InternalClient
from swift.gateway.subrequest import drained, make_subrequest, open_response, preauthorise
from swift.gateway.writing import NOT_STORED, WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.acl import remove_referrer_rules
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
        """Return some names of a container, none when it is not there or cannot be listed."""
        query = f"format=json&limit={limit}&prefix={quote(prefix, safe='')}"
        sub = make_subrequest(self._request, "GET", "/v1" + container.quoted, query=query, source=SOURCE)
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with open_response(self._forward, preauthorise(sub)) as response:
            rows = json.loads(response.read_body()) if response.status == 200 else []
        return [str(row["name"]) for row in rows]

    def containers(self, account: EntityPath, *, query: str) -> list[str]:
        """Return a page of an account's containers; raises ``S3Error``."""
        sub = make_subrequest(self._request, "GET", "/v1" + account.quoted, query=query, source=SOURCE)
        sub.headers.pop("origin", None)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        with open_response(self._forward, preauthorise(sub)) as response:
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


# --- the session --------------------------------------------------------------------------------------
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
    """The part of a container's ACL that counts for the caller."""

    ALL = "all"
    #: Not part of any public document.
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
        """Return the account of a key; empty when unknown."""
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


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """The caller of a request, as the authentication filter knows it."""

    access_key: str = ""
    #: The caller's own account; empty for anonymous callers.
    account: str = ""
    #: The filter's authorization callback; None for anonymous callers.
    authorize: Authorise | None = None


#: The caller of a request without a signature.
ANONYMOUS = CallerIdentity()


class Authenticator:
    """The authentication port of one request: the filter right of ``s3api`` that knows the secrets.

    It learns the identity once: from the first request that carries the claim, so that a plain request needs
    none of its own, or from an OPTIONS request that no server answers.
    """

    def __init__(
        self, forward: Handle, request: Request, claim: Claim, known: KnownAccounts | None = None
    ) -> None:
        self.forward = forward
        self.claim = claim
        self.known = known or KnownAccounts()
        self._request = request
        self._identity = None if claim.access_key else ANONYMOUS
        self._details: AuthDetails = {
            "access_key": claim.access_key,
            "signature": claim.signature,
            "string_to_sign": claim.string_to_sign,
            "alternative_strings_to_sign": claim.alternatives,
            "check_signature": claim.check,
        }

    @property
    def identity(self) -> CallerIdentity | None:
        """The caller; None until its signature was found good."""
        return self._identity

    def add_claim(self, sub: Request) -> None:
        """Have the filter check the signature, whatever the request was authorised for."""
        env = sub.env
        env.pop(environkeys.AUTHORIZE_OVERRIDE, None)
        if self._identity is None:
            env.pop(environkeys.REMOTE_USER, None)
        env[environkeys.S3_AUTH_DETAILS] = self._details

    def identify(self, make: Callable[[str, str], Request]) -> CallerIdentity:
        """Return the caller, whatever it may do; raise ``S3Error``.

        ``make(method, account)`` makes the request that asks for it.
        """
        if self._identity is not None:
            return self._identity
        sub = make("OPTIONS", self.claim.access_key)
        sub.headers.pop("origin", None)
        self.add_claim(sub)
        status = drained(self.forward(sub)).status
        self.note_answered(sub)
        if self._identity is None:
            # After a 5xx the filter could not say whose the signature is.
            raise refusal(status) if status >= 500 else self.refusal(sub, 401)
        return self._identity

    def note_answered(self, sub: Request) -> None:
        """Take the identity from a request to the caller's own account that passed the filter."""
        entity, env = sub.entity, sub.env
        if self._identity is not None or not env.get(environkeys.REMOTE_USER) or entity is None:
            return
        key = self.claim.access_key
        self._identity = CallerIdentity(key, entity.path.account, env.get(environkeys.AUTHORIZE))
        self.known.learn(self._request, key, entity.path.account)
        shown = key if len(key) <= _USER_ID_MAX else key[: _USER_ID_MAX - 3] + "..."
        self._request.env[environkeys.ACCESS_LOGGING] = {"user_id": shown}
        self._request.env[environkeys.REMOTE_USER] = env[environkeys.REMOTE_USER]

    def refusal(self, sub: Request, status: int) -> S3Error:
        """Return the error for a request that was answered 401 or 403."""
        if status == 401 and self.claim.access_key and not sub.env.get(environkeys.REMOTE_USER):
            return S3Error("SignatureDoesNotMatch", details=self.claim.details, reason="signature")
        return S3Error("AccessDenied")


@dataclass(frozen=True, slots=True)
class Session:
    """Requests for containers and objects of one account, for one S3 request, with the rights of its caller.

    The account is the caller's own, or the one that the request names. Immutable: other rights make another
    session, and the caller is known by the authenticator that sessions of a request share.
    """

    request: Request
    settings: S3Settings
    authenticator: Authenticator
    #: The account that the request names; empty for the caller's own.
    of_path: str = ""
    #: The part of Swift's ACLs that counts.
    rights: Rights = Rights.ALL
    #: The bucket for which policies and ACLs of S3 have decided: requests for it and for the containers that
    #: belong to it have all rights. Empty if they did not decide.
    trusted_bucket: str = ""

    @classmethod
    def begin(
        cls,
        forward: Handle,
        request: Request,
        claim: Claim,
        settings: S3Settings,
        known: KnownAccounts | None = None,
        named: str = "",
    ) -> Session:
        """Return a session for a claim, whose signature is not checked yet."""
        return cls(request, settings, Authenticator(forward, request, claim, known), named)

    @property
    def named(self) -> str:
        """The account that the request, or for anonymous callers the configuration, names."""
        return self.of_path or (self.settings.anonymous_account if self.is_anonymous else "")

    @property
    def claim(self) -> Claim:
        """The signature as it came."""
        return self.authenticator.claim

    @property
    def own_account(self) -> str:
        """The caller's own account; empty while its signature is not checked, and for anonymous callers."""
        identity = self.authenticator.identity
        return "" if identity is None else identity.account

    @property
    def account(self) -> str:
        """The name of the account; empty while it is the caller's own and that is not known."""
        return self.named or self.own_account

    @property
    def is_anonymous(self) -> bool:
        """True if the request has no signature."""
        return not self.claim.access_key

    @property
    def is_foreign(self) -> bool:
        """True if the request names an account, which may be another than the caller's."""
        return bool(self.named)

    @property
    def owner(self) -> str:
        """The caller's name in documents."""
        return self.claim.access_key

    def signed(self, claim: Claim) -> Session:
        """Return the session of the signer of a form."""
        port = self.authenticator
        other = Authenticator(port.forward, self.request, claim, port.known)
        return Session(self.request, self.settings, other, self.of_path)

    def with_rights(self, rights: Rights, *, trusted_bucket: str = "") -> Session:
        """Return the session with other rights."""
        return replace(self, rights=rights, trusted_bucket=trusted_bucket)

    def is_trusted_in(self, container: str) -> bool:
        """Return True if policies or ACLs allowed the request in the bucket that a container belongs to."""
        return bool(self.trusted_bucket) and _belongs(container, self.trusted_bucket)

    # requests

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
        """Return a request for the account, a container or an object of it."""
        is_trusted = self.is_trusted_in(bucket)
        is_decided = is_trusted or self.rights is not Rights.ALL
        own = self.account if is_decided else self.named or self.claim.access_key
        sub = self._made(method, own, bucket, key, headers=headers, body=body, query=query)
        if isinstance(body, bytes) and method in ("PUT", "POST"):
            sub.headers["content-length"] = str(len(body))
        env = sub.env
        if is_trusted:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = self._allowed
        elif self.rights is not Rights.ALL:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = self._restricted
        elif not self.is_anonymous:
            self.authenticator.add_claim(sub)
        return sub

    def _made(
        self,
        method: str,
        *names: str,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Request:
        sub = make_subrequest(
            self.request, method, "/v1", headers=headers, body=body, query=query, source=SOURCE
        )
        own, *rest = filter(None, names)
        sub.set_entity(Entity("v1", EntityPath(own, *rest)))
        if not self.settings.force_swift_request_proxy_log:
            sub.env[environkeys.ACCESS_LOG_MADE] = True
        sub.remote_addr = self.request.remote_addr
        return sub

    def open(self, sub: Request) -> Response:
        """Return the response, whose body the caller sends or releases; raise ``S3Error`` for 401 and 403."""
        port = self.authenticator
        try:
            response = forward_write(port.forward, sub)
        except WriteNotStored:
            raise S3Error("ServiceUnavailable", NOT_STORED)
        if not self.named:
            port.note_answered(sub)
        if response.status in (401, 403):
            drained(response)
            raise port.refusal(sub, response.status)
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
        """Return the answer for the time of a block; raises like ``open``."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        with open_response(self.open, sub) as response:
            yield response

    def head(
        self, bucket: str = "", key: str = "", *, headers: HeaderMap | None = None, query: str = ""
    ) -> Response:
        """Return the head of an answer; raises like ``open``."""
        return drained(self.open(self.subrequest("HEAD", bucket, key, headers=headers, query=query)))

    def bucket_headers(self, bucket: str) -> HeaderMap:
        """Return the headers of a HEAD of a bucket; raise ``S3Error`` if it does not exist."""
        head = self.head(bucket)
        if not head.is_success:
            raise refusal(head.status, missing="NoSuchBucket")
        return head.headers

    def remove(self, bucket: str, key: str, headers: HeaderMap | None = None) -> None:
        """Delete an object if it exists; raise ``S3Error``."""
        with self.ask("DELETE", bucket, key, headers=headers) as response:
            if not response.is_success and response.status != 404:
                raise refusal(response.status)

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
        """Return the head of an answer that must be a success; raise ``S3Error``."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        response = drained(self.open(sub))
        if not response.is_success:
            raise refusal(response.status, missing=missing, conflict=conflict)
        return response

    # the caller

    def identify(self) -> CallerIdentity:
        """Return the caller, whatever it may do; raise ``S3Error`` for a bad signature."""
        return self.authenticator.identify(self._made)

    def _allowed(self, request: Request) -> Response | None:
        """Authorize a request where policies and ACLs of S3 have decided about the trusted bucket.

        For anything elsewhere, as the target of a link may be, the caller needs rights of its own.
        """
        entity = request.entity
        if (
            entity is not None
            and entity.path.account == self.account
            and _belongs(entity.path.container, self.trusted_bucket)
        ):
            if entity.path.container is not None and entity.path.obj is None:
                # The proxy shows ACLs to owners, and takes them from owners, only.
                request.env[environkeys.OWNER] = True
            return None
        return self._restricted(request)

    def _restricted(self, request: Request) -> Response | None:
        """Authorize a request where only a part of a container's ACL counts."""
        identity = self.authenticator.identity
        if identity is None or identity.authorize is None:
            return error_response(403)
        if self.rights is not Rights.ALL:
            request.acl = remove_referrer_rules(request.acl) if self.rights is Rights.NOT_PUBLIC else None
        return identity.authorize(request)

    # what the caches know

    def bucket_info(self, bucket: str) -> ContainerInfo:
        """Return the cached facts of a bucket; raise ``S3Error`` if it does not exist."""
        self.identify()
        info = container_info(self.request, self.authenticator.forward, self.account, bucket)
        if not info.exists:
            raise refusal(info.status if info.status >= 500 else 404, missing="NoSuchBucket")
        return info

    def settings_of(self, bucket: str) -> Mapping[str, str]:
        """Return the system metadata of a bucket, empty when it is not there; raise ``S3Error``.

        The caller may not be known yet: nothing of it may be told before.
        """
        port = self.authenticator
        name = self.account or port.known.find(self.request, self.claim.access_key)
        if not name:
            name = self.identify().account
        info = container_info(self.request, port.forward, name, bucket)
        if info.status >= 500:
            # The bucket's policy is unknown.
            raise S3Error("ServiceUnavailable")
        return info.sysmeta

    def has_bucket(self, bucket: str) -> bool:
        """Return True if a bucket is there, as far as the caches know."""
        info = container_info(self.request, self.authenticator.forward, self.account, bucket)
        return info.exists or info.status >= 500

    @property
    def hidden(self) -> Hidden:
        """Access to the API's own accounts and containers."""
        return Hidden(self.authenticator.forward, self.request)


def trusted(session: Session, bucket: str) -> Session:
    """Return the session with all rights in one bucket."""
    return session.with_rights(session.rights, trusted_bucket=bucket)


def owned_sysmeta(session: Session, bucket: str) -> dict[str, str]:
    """Return the system metadata of a bucket that the caller owns; raise ``S3Error``."""
    sub = session.subrequest("HEAD", bucket)
    head = drained(session.open(sub))
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    if not session.is_trusted_in(bucket) and not sub.env.get(environkeys.OWNER):
        raise S3Error("AccessDenied")
    return sysmeta_of(head.headers)


def sysmeta_of(headers: HeaderMap) -> dict[str, str]:
    """Return the system metadata of a container's HEAD, names without their prefix."""
    size = len(fields.CONTAINER_SYSMETA)
    return {name[size:]: value for name, value in with_prefix(headers, fields.CONTAINER_SYSMETA).items()}
