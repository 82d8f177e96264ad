"""The session of an S3 request: its caller, the caller's rights, and requests to the rest of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import drained, make_subrequest, open_response
from swift.gateway.writing import NOT_STORED, WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.acl import remove_referrer_rules
from swift.http.authdetails import AuthDetails
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap, with_prefix
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.runtime.wsgi import Handle
from swift.s3.core.claim import Claim
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.names import bucket_of_container
from swift.s3.core.privileged import SWIFT_SOURCE, PrivilegedRequests
from swift.s3.core.settings import S3Settings

# --- the session --------------------------------------------------------------------------------------
# Every sub-request names the access key where the account belongs and carries the claim; the
# authentication filter checks it and puts the account there. With ``s3_acl`` the caller is identified
# once; requests that the ACLs allow are then sent with the rights of the ACLs only.

_USER_ID_MAX = 128


AuthorizeCallback = Callable[[Request], Response | None]


def _belongs_to_bucket(container: str | None, bucket: str) -> bool:
    """Return True if a container is the bucket, its segments container, or its hidden versions container."""
    if container is None:
        return True
    name = container.rpartition(RESERVED)[2]
    return bucket in (name, bucket_of_container(name))


class AclScope(Enum):
    """The part of a container's ACL that counts for the caller."""

    ALL = "all"
    #: Grants to the public do not count.
    NOT_PUBLIC = "not public"
    #: No ACL counts: only the account's own users have rights.
    OWN = "own"


class KnownAccounts:
    """Access key → account, learned from valid signatures; proves nothing.

    It lets bucket settings be read before a signature is validated. The cache shares it with other workers
    and with unsigned preflight requests.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, str] = {}

    def find(self, request: Request, access_key: str) -> str:
        """Return the account of an access key; empty if unknown."""
        name = self._accounts.get(access_key)
        if name is None:
            cache = request.env.get(environkeys.CACHE)
            found = None if cache is None else cache.get(_CACHE_PREFIX + access_key)
            name = found if isinstance(found, str) else ""
            if name:
                self._remember(access_key, name)
        return name

    def learn(self, request: Request, access_key: str, name: str) -> None:
        """Store the account of an access key whose signature was valid."""
        if self._accounts.get(access_key) == name:
            return
        self._remember(access_key, name)
        cache = request.env.get(environkeys.CACHE)
        if cache is not None:
            cache.set(_CACHE_PREFIX + access_key, name, ttl_s=_CACHE_TTL_S)

    def _remember(self, access_key: str, name: str) -> None:
        if len(self._accounts) >= _ACCOUNTS_MAX:
            self._accounts.clear()
        self._accounts[access_key] = name


_CACHE_PREFIX, _CACHE_TTL_S, _ACCOUNTS_MAX = "s3account/", 86400, 10_000


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """The caller of a request as the authentication filter reported it."""

    access_key: str = ""
    #: The caller's own account; empty for anonymous callers.
    account: str = ""
    #: The filter's authorization callback; None for anonymous callers.
    authorize: AuthorizeCallback | None = None


#: In the query of a request for an object from before versioning.
_NULL_VERSION = "version-id=null"
#: The caller of a request without a signature.
ANONYMOUS = CallerIdentity()


class Authenticator:
    """Learns the caller's identity from the authentication filter, once per S3 request.

    The first sub-request that carries the claim reveals it, so a plain request needs no extra one.
    Otherwise an OPTIONS request that reaches no server does.
    """

    def __init__(
        self, forward: Handle, request: Request, claim: Claim, known_accounts: KnownAccounts | None = None
    ) -> None:
        self.forward = forward
        self.claim = claim
        self.known_accounts = known_accounts or KnownAccounts()
        self._request = request
        self._identity = None if claim.access_key else ANONYMOUS
        self._details: AuthDetails = {
            "access_key": claim.access_key,
            "signature": claim.signature,
            "string_to_sign": claim.string_to_sign,
            "alternative_strings_to_sign": claim.alternative_strings_to_sign,
            "check_signature": claim.verify,
        }

    @property
    def identity(self) -> CallerIdentity | None:
        """The caller; None until its signature was validated."""
        return self._identity

    def add_claim(self, sub: Request) -> None:
        """Make the authentication filter validate the signature of a sub-request."""
        env = sub.env
        env.pop(environkeys.AUTHORIZE_OVERRIDE, None)
        if self._identity is None:
            env.pop(environkeys.REMOTE_USER, None)
        env[environkeys.S3_AUTH_DETAILS] = self._details

    def identify(self, make_request: Callable[[str, str], Request]) -> CallerIdentity:
        """Return the caller, whatever its rights; raise ``S3Error``.

        ``make_request(method, account)`` returns the request that reveals it.
        """
        if self._identity is not None:
            return self._identity
        sub = make_request("OPTIONS", self.claim.access_key)
        sub.headers.pop("origin", None)
        self.add_claim(sub)
        status = drained(self.forward(sub)).status
        self.learn_identity(sub)
        if self._identity is None:
            # After a 5xx the filter could not validate the signature.
            raise error_for_status(status) if status >= 500 else self.denial_error(sub, 401)
        return self._identity

    def learn_identity(self, sub: Request) -> None:
        """Learn the identity from a sub-request to the caller's own account that passed the filter."""
        entity, env = sub.entity, sub.env
        if self._identity is not None or not env.get(environkeys.REMOTE_USER) or entity is None:
            return
        key = self.claim.access_key
        self._identity = CallerIdentity(key, entity.path.account, env.get(environkeys.AUTHORIZE))
        self.known_accounts.learn(self._request, key, entity.path.account)
        user_id = key if len(key) <= _USER_ID_MAX else key[: _USER_ID_MAX - 3] + "..."
        self._request.env[environkeys.ACCESS_LOGGING] = {"user_id": user_id}
        self._request.env[environkeys.REMOTE_USER] = env[environkeys.REMOTE_USER]
        call = self._request.env.setdefault(environkeys.S3_CALL, {})
        call["account"] = entity.path.account
        call["user"] = (env.get(environkeys.ACCESS_LOGGING) or {}).get("user_id")

    def denial_error(self, sub: Request, status: int) -> S3Error:
        """Return the error for a sub-request that was answered 401 or 403."""
        if status == 401 and self.claim.access_key and not sub.env.get(environkeys.REMOTE_USER):
            return S3Error("SignatureDoesNotMatch", details=self.claim.error_details, reason="signature")
        return S3Error("AccessDenied")


@dataclass(frozen=True, slots=True)
class Session:
    """Requests to one account on behalf of one S3 request, with the rights of its caller.

    The account is the caller's own, or the one that the request names. Sessions are immutable: other rights
    make another session. All sessions of a request share an authenticator.
    """

    request: Request
    settings: S3Settings
    authenticator: Authenticator
    #: The account that the request names; empty for the caller's own.
    path_account: str = ""
    #: The part of Swift's ACLs that counts.
    acl_scope: AclScope = AclScope.ALL
    #: The bucket for which policies and ACLs of S3 have decided: requests for it and for the containers that
    #: belong to it have all rights. Empty if they did not decide.
    trusted_bucket: str = ""

    @classmethod
    def for_claim(
        cls,
        forward: Handle,
        request: Request,
        claim: Claim,
        settings: S3Settings,
        known_accounts: KnownAccounts | None = None,
        named_account: str = "",
    ) -> Session:
        """Return a session for a claim whose signature is not validated yet."""
        return cls(request, settings, Authenticator(forward, request, claim, known_accounts), named_account)

    @property
    def named_account(self) -> str:
        """The account that the request, or for anonymous callers the configuration, names."""
        return self.path_account or (self.settings.anonymous_account if self.is_anonymous else "")

    @property
    def claim(self) -> Claim:
        """The signature as received."""
        return self.authenticator.claim

    @property
    def own_account(self) -> str:
        """The caller's own account; empty for anonymous callers and before the signature is validated."""
        identity = self.authenticator.identity
        return "" if identity is None else identity.account

    @property
    def account(self) -> str:
        """The name of the account; empty if it is the caller's own and not known yet."""
        return self.named_account or self.own_account

    @property
    def is_anonymous(self) -> bool:
        """True if the request has no signature."""
        return not self.claim.access_key

    @property
    def names_account(self) -> bool:
        """True if the request names an account, which may be another than the caller's."""
        return bool(self.named_account)

    @property
    def user_id(self) -> str:
        """The caller's access key, which documents name as owner."""
        return self.claim.access_key

    def for_form_signer(self, claim: Claim) -> Session:
        """Return the session of the signer of a form."""
        port = self.authenticator
        other = Authenticator(port.forward, self.request, claim, port.known_accounts)
        return Session(self.request, self.settings, other, self.path_account)

    def with_acl_scope(self, acl_scope: AclScope, *, trusted_bucket: str = "") -> Session:
        """Return the session with other rights."""
        return replace(self, acl_scope=acl_scope, trusted_bucket=trusted_bucket)

    def is_trusted_in(self, container: str) -> bool:
        """Return True if S3 policies or ACLs allowed the request in the bucket of a container."""
        return bool(self.trusted_bucket) and _belongs_to_bucket(container, self.trusted_bucket)

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
        """Return a request for the account, or for a container or object of it."""
        is_trusted = self.is_trusted_in(bucket)
        is_decided = is_trusted or self.acl_scope is not AclScope.ALL
        own = self.account if is_decided else self.named_account or self.claim.access_key
        sub = self._make_request(method, own, bucket, key, headers=headers, body=body, query=query)
        if isinstance(body, bytes) and method in ("PUT", "POST"):
            sub.headers["content-length"] = str(len(body))
        if _NULL_VERSION in query:
            sub.headers[fields.BACKEND_FIND_ARCHIVED_NULL] = "true"
        env = sub.env
        if is_trusted:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = self._authorize_trusted
        elif self.acl_scope is not AclScope.ALL:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = self._authorize_restricted
        elif not self.is_anonymous:
            self.authenticator.add_claim(sub)
        return sub

    def _make_request(
        self,
        method: str,
        *names: str,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Request:
        sub = make_subrequest(
            self.request, method, "/v1", headers=headers, body=body, query=query, source=SWIFT_SOURCE
        )
        own, *rest = filter(None, names)
        sub.set_entity(Entity("v1", EntityPath(own, *rest)))
        if not self.settings.force_swift_request_proxy_log:
            sub.env[environkeys.ACCESS_LOG_MADE] = True
        sub.remote_addr = self.request.remote_addr
        return sub

    def send(self, sub: Request) -> Response:
        """Return the response; the caller sends or releases its body. Raise ``S3Error`` for 401 and 403."""
        port = self.authenticator
        try:
            response = forward_write(port.forward, sub)
        except WriteNotStored:
            raise S3Error("ServiceUnavailable", NOT_STORED)
        if not self.named_account:
            port.learn_identity(sub)
        if response.status in (401, 403):
            drained(response)
            raise port.denial_error(sub, response.status)
        return response

    @contextmanager
    def open_response(
        self,
        method: str,
        bucket: str = "",
        key: str = "",
        *,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        query: str = "",
    ) -> Iterator[Response]:
        """Send a request and yield its response for the time of a block; raise like ``send``."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        with open_response(self.send, sub) as response:
            yield response

    def head(
        self, bucket: str = "", key: str = "", *, headers: HeaderMap | None = None, query: str = ""
    ) -> Response:
        """Return the response to a HEAD request; raise like ``send``."""
        return drained(self.send(self.subrequest("HEAD", bucket, key, headers=headers, query=query)))

    def bucket_headers(self, bucket: str) -> HeaderMap:
        """Return the headers of a bucket; raise ``S3Error`` if it does not exist."""
        head = self.head(bucket)
        if not head.is_success:
            raise error_for_status(head.status, missing="NoSuchBucket")
        return head.headers

    def delete_object(self, bucket: str, key: str, headers: HeaderMap | None = None) -> None:
        """Delete an object if it exists; raise ``S3Error``."""
        with self.open_response("DELETE", bucket, key, headers=headers) as response:
            if not response.is_success and response.status != 404:
                raise error_for_status(response.status)

    def require_success(
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
        """Return the response without its body; raise ``S3Error`` unless it is a success."""
        sub = self.subrequest(method, bucket, key, headers=headers, body=body, query=query)
        response = drained(self.send(sub))
        if not response.is_success:
            raise error_for_status(response.status, missing=missing, conflict=conflict)
        return response

    # the caller

    def identify(self) -> CallerIdentity:
        """Return the caller, whatever its rights; raise ``S3Error`` for a bad signature."""
        return self.authenticator.identify(self._make_request)

    def _authorize_trusted(self, request: Request) -> Response | None:
        """Authorize a request for which S3 policies and ACLs have decided about the trusted bucket.

        Outside of that bucket, such as for the target of a link, the caller needs rights of its own.
        """
        entity = request.entity
        if (
            entity is not None
            and entity.path.account == self.account
            and _belongs_to_bucket(entity.path.container, self.trusted_bucket)
        ):
            if entity.path.container is not None and entity.path.obj is None:
                # The proxy shows ACLs to owners, and takes them from owners, only.
                request.env[environkeys.OWNER] = True
            return None
        return self._authorize_restricted(request)

    def _authorize_restricted(self, request: Request) -> Response | None:
        """Authorize a request for which only a part of a container's ACL counts."""
        identity = self.authenticator.identity
        if identity is None or identity.authorize is None:
            return error_response(403)
        if self.acl_scope is not AclScope.ALL:
            request.acl = (
                remove_referrer_rules(request.acl) if self.acl_scope is AclScope.NOT_PUBLIC else None
            )
        return identity.authorize(request)

    # cached information

    def bucket_info(self, bucket: str) -> ContainerInfo:
        """Return the cached information about a bucket; raise ``S3Error`` if it does not exist."""
        self.identify()
        info = container_info(self.request, self.authenticator.forward, self.account, bucket)
        if not info.exists:
            raise error_for_status(info.status if info.status >= 500 else 404, missing="NoSuchBucket")
        return info

    def bucket_sysmeta(self, bucket: str) -> Mapping[str, str]:
        """Return the system metadata of a bucket; empty if it does not exist; raise ``S3Error``.

        The signature may not be validated yet: do not reveal the result before.
        """
        port = self.authenticator
        name = self.account or port.known_accounts.find(self.request, self.claim.access_key)
        if not name:
            name = self.identify().account
        info = container_info(self.request, port.forward, name, bucket)
        if info.status >= 500:
            # The bucket's policy is unknown.
            raise S3Error("ServiceUnavailable")
        return info.sysmeta

    def has_bucket(self, bucket: str) -> bool:
        """Return True if a bucket exists according to the caches."""
        info = container_info(self.request, self.authenticator.forward, self.account, bucket)
        return info.exists or info.status >= 500

    @property
    def privileged(self) -> PrivilegedRequests:
        """Requests to internal accounts and containers with all rights."""
        return PrivilegedRequests(self.authenticator.forward, self.request)


def with_trusted_bucket(session: Session, bucket: str) -> Session:
    """Return the session with all rights in one bucket."""
    return session.with_acl_scope(session.acl_scope, trusted_bucket=bucket)


def owner_sysmeta(session: Session, bucket: str) -> dict[str, str]:
    """Return the system metadata of a bucket; raise ``S3Error`` unless the caller owns it."""
    sub = session.subrequest("HEAD", bucket)
    head = drained(session.send(sub))
    if not head.is_success:
        raise error_for_status(head.status, missing="NoSuchBucket")
    if not session.is_trusted_in(bucket) and not sub.env.get(environkeys.OWNER):
        raise S3Error("AccessDenied")
    return sysmeta_of(head.headers)


def sysmeta_of(headers: HeaderMap) -> dict[str, str]:
    """Return the system metadata in a container's headers, names without their prefix."""
    size = len(fields.CONTAINER_SYSMETA)
    return {name[size:]: value for name, value in with_prefix(headers, fields.CONTAINER_SYSMETA).items()}
