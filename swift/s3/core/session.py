"""The session of an S3 request: its caller, the caller's rights, and requests to the rest of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import NamedTuple, Unpack

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED, Entity, EntityPath
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import RequestContent, drained, make_subrequest, open_response
from swift.gateway.writing import NOT_STORED, WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.acl import remove_referrer_rules
from swift.http.authdetails import AuthDetails
from swift.http.headers import HeaderMap, with_prefix
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.identity.policy.resources import SwiftResource, bucket_of_container, resource_of
from swift.identity.rights import Rights
from swift.runtime.wsgi import Handle
from swift.s3.core.claim import Claim
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.privileged import SWIFT_SOURCE, PrivilegedRequests
from swift.s3.core.settings import S3Settings

# --- the session --------------------------------------------------------------------------------------
# The caller is identified once, before the request is routed (``auth.caller``). Every later sub-request has
# its identity and is authorized by the callback of the authentication filter, or with the rights that S3
# policies and ACLs gave. The claim goes along for filters that know no ``swift.authorize_override``.

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


class CallerIdentity(NamedTuple):
    """The caller of a request as the authentication filter reported it."""

    #: The caller's own account; empty for anonymous callers.
    account: str
    #: The filter's authorization callback; None for anonymous callers.
    authorize: AuthorizeCallback | None
    #: Entries for the environment of requests that its callback authorizes.
    environ: Mapping[str, object]
    #: The caller's rights by policies; None if the filter knows none.
    rights: Rights | None = None

    @property
    def name(self) -> str:
        """The name of the user, or the ARN of the role; empty for callers without rights by policies."""
        return "" if self.rights is None else self.rights.principal.user or self.rights.principal.role


#: The caller of a request without a signature, or with one that is not validated yet.
ANONYMOUS = CallerIdentity("", None, {})
#: In place of a bucket: the account itself.
WHOLE_ACCOUNT = "/"
#: In the query of a request for an object from before versioning.
_NULL_VERSION = "version-id=null"


class Session(NamedTuple):
    """Requests to one account on behalf of one S3 request, with the rights of its caller.

    The account is the caller's own, or the one that the request names. Sessions are immutable: other rights
    make another session.
    """

    request: Request
    settings: S3Settings
    forward: Handle
    #: The signature as received.
    claim: Claim
    #: The claim for the authentication filter, shared by all sessions of a request.
    auth_details: AuthDetails
    identity: CallerIdentity = ANONYMOUS
    #: The account that the request names; empty for the caller's own.
    path_account: str = ""
    #: The part of Swift's ACLs that counts.
    acl_scope: AclScope = AclScope.ALL
    #: The bucket for which policies and ACLs of S3 have decided: requests for it and for the containers that
    #: belong to it have all rights. Empty if they did not decide.
    trusted_bucket: str = ""
    #: The bucket about which the caller's policies are silent: only ACLs count in it.
    silent_bucket: str = ""

    @classmethod
    def for_claim(
        cls, forward: Handle, request: Request, claim: Claim, settings: S3Settings, path_account: str = ""
    ) -> Session:
        """Return a session for a claim whose signature is not validated yet."""
        details: AuthDetails = {
            "access_key": claim.access_key,
            "signature": claim.signature,
            "string_to_sign": claim.string_to_sign,
            "alternative_strings_to_sign": claim.alternative_strings_to_sign,
            "check_signature": claim.verify,
            "session_token": claim.session_token,
        }
        return cls(request, settings, forward, claim, details, path_account=path_account)

    @property
    def named_account(self) -> str:
        """The account that the request, or for anonymous callers the configuration, names."""
        return self.path_account or (self.settings.anonymous_account if self.is_anonymous else "")

    @property
    def own_account(self) -> str:
        """The caller's own account; empty for anonymous callers and before the signature is validated."""
        return self.identity.account

    @property
    def account(self) -> str:
        """The name of the account; empty if it is the caller's own and not known yet."""
        return self.path_account or self.identity.account or self.named_account

    @property
    def is_anonymous(self) -> bool:
        """True if the request has no signature."""
        return not self.claim.access_key

    @property
    def user_id(self) -> str:
        """The caller's access key, or the user that has it, which documents name as owner."""
        return self.claim.access_key if self.identity.rights is None else self.identity.name

    def with_identity(self, identity: CallerIdentity) -> Session:
        """Return the session of an identified caller."""
        return self._replace(identity=identity)

    def with_acl_scope(self, acl_scope: AclScope, *, trusted_bucket: str = "") -> Session:
        """Return the session with other rights."""
        if acl_scope is self.acl_scope and trusted_bucket == self.trusted_bucket:
            return self
        return self._replace(acl_scope=acl_scope, trusted_bucket=trusted_bucket)

    def is_trusted_in(self, container: str) -> bool:
        """Return True if S3 policies or ACLs allowed the request in the bucket of a container."""
        return bool(self.trusted_bucket) and _belongs_to_bucket(container, self.trusted_bucket)

    # requests

    def subrequest(
        self, method: str, bucket: str = "", key: str = "", **content: Unpack[RequestContent]
    ) -> Request:
        """Return a request for the account, or for a container or object of it."""
        body = content.get("body", b"")
        sub = make_subrequest(self.request, method, "/v1", source=SWIFT_SOURCE, **content)
        path = EntityPath(self.account or self.claim.access_key, bucket or None, key or None)
        sub.set_entity(Entity("v1", path))
        sub.remote_addr = self.request.remote_addr
        if isinstance(body, bytes) and method in ("PUT", "POST"):
            sub.headers["content-length"] = str(len(body))
        if _NULL_VERSION in content.get("query", ""):
            sub.headers[fields.BACKEND_FIND_ARCHIVED_NULL] = "true"
        env = sub.env
        if not self.settings.force_swift_request_proxy_log:
            env[environkeys.ACCESS_LOG_MADE] = True
        if not self.is_anonymous:
            env[environkeys.S3_AUTH_DETAILS] = self.auth_details
        authorize = self._authorize_callback(bucket, key)
        if authorize is not None:
            env[environkeys.AUTHORIZE_OVERRIDE] = True
            env[environkeys.AUTHORIZE] = authorize
        if authorize == self.identity.authorize or self.identity.rights is not None:
            env.update(self.identity.environ)
        return sub

    def _authorize_callback(self, bucket: str, key: str) -> AuthorizeCallback | None:
        """Return the callback for a request; None if the authentication filter sets its own."""
        if self.is_trusted_in(bucket) or (not bucket and self.trusted_bucket == WHOLE_ACCOUNT):
            authorize = self._authorize_trusted
        elif self.acl_scope is AclScope.ALL and not self.silent_bucket:
            return self.identity.authorize
        else:
            authorize = self._authorize_restricted
        if self.identity.rights is None:
            return authorize
        return partial(authorize, decided=resource_of(EntityPath(self.account, bucket, key)))

    def send(self, sub: Request) -> Response:
        """Return the response; the caller sends or releases its body. Raise ``S3Error`` for 401 and 403."""
        try:
            response = forward_write(self.forward, sub)
        except WriteNotStored:
            raise S3Error("ServiceUnavailable", NOT_STORED)
        if response.status in (401, 403):
            drained(response)
            raise S3Error("AccessDenied")
        return response

    @contextmanager
    def open_response(
        self, method: str, bucket: str = "", key: str = "", **content: Unpack[RequestContent]
    ) -> Iterator[Response]:
        """Send a request and yield its response for the time of a block; raise like ``send``."""
        with open_response(self.send, self.subrequest(method, bucket, key, **content)) as response:
            yield response

    def read_rows(
        self, bucket: str = "", key: str = "", **content: Unpack[RequestContent]
    ) -> tuple[Response, list[JsonObject]]:
        """Return the response to a GET, and the JSON list in it, empty without one; raise like ``send``."""
        with self.open_response("GET", bucket, key, **content) as response:
            return response, json.loads(response.read_body()) if response.status == 200 else []

    def read_manifest(self, bucket: str, key: str, query: str = "") -> tuple[Response, list[JsonObject]]:
        """Return the response for a large object's manifest, and its entries; ``query`` selects a version."""
        return self.read_rows(bucket, key, query=f"{query}&multipart-manifest=get".lstrip("&"))

    def head(self, bucket: str = "", key: str = "", **content: Unpack[RequestContent]) -> Response:
        """Return the response to a HEAD request; raise like ``send``."""
        return drained(self.send(self.subrequest("HEAD", bucket, key, **content)))

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

    def require_success(self, method: str, bucket: str, **content: Unpack[RequestContent]) -> Response:
        """Return the response without its body; raise ``S3Error`` unless it is a success."""
        response = drained(self.send(self.subrequest(method, bucket, **content)))
        if not response.is_success:
            raise error_for_status(response.status, missing="NoSuchBucket")
        return response

    # authorization callbacks

    def _authorize_trusted(self, request: Request, decided: SwiftResource | None = None) -> Response | None:
        """Authorize a request for which S3 policies and ACLs have decided about the trusted bucket.

        Outside of that bucket, such as for the target of a link, the caller needs rights of its own.
        ``decided``: also for other objects of it, because policies differ from object to object.
        """
        if self._is_decided(request, self.trusted_bucket, decided):
            path = request.entity.path if request.entity is not None else None
            if path is not None and path.container is not None and path.obj is None:
                # The proxy shows ACLs to owners, and takes them from owners, only.
                request.env[environkeys.OWNER] = True
            return None
        return self._authorize_restricted(request, decided)

    def _authorize_restricted(
        self, request: Request, decided: SwiftResource | None = None
    ) -> Response | None:
        """Authorize a request for which only a part of a container's ACL counts, or no policy."""
        identity = self.identity
        if identity.authorize is None:
            return error_response(403)
        if identity.rights is not None:
            is_silent = bool(self.silent_bucket) and self._is_decided(request, self.silent_bucket, decided)
            request.env[environkeys.IDENTITY] = None if is_silent else identity.rights
        if self.acl_scope is not AclScope.ALL:
            request.acl = (
                remove_referrer_rules(request.acl) if self.acl_scope is AclScope.NOT_PUBLIC else None
            )
        return identity.authorize(request)

    def _is_decided(self, request: Request, bucket: str, decided: SwiftResource | None) -> bool:
        """Return True if a request is for what S3 decided about in a bucket.

        It may be made by a filter, such as for a part of the object or for the target of a link.
        """
        entity = request.entity
        return (
            entity is not None
            and entity.path.account == self.account
            and _belongs_to_bucket(entity.path.container, bucket)
            and (decided is None or resource_of(entity.path) == decided)
        )

    # cached information

    def bucket_info(self, bucket: str) -> ContainerInfo:
        """Return the cached information about a bucket; raise ``S3Error`` if it does not exist."""
        info = container_info(self.request, self.forward, self.account, bucket)
        if not info.exists:
            raise error_for_status(info.status if info.status >= 500 else 404, missing="NoSuchBucket")
        return info

    def bucket_sysmeta(self, bucket: str) -> Mapping[str, str]:
        """Return the system metadata of a bucket; empty if it does not exist; raise ``S3Error``."""
        info = container_info(self.request, self.forward, self.account, bucket)
        if info.status >= 500:
            # The bucket's policy is unknown.
            raise S3Error("ServiceUnavailable")
        return info.sysmeta

    def has_bucket(self, bucket: str) -> bool:
        """Return True if a bucket exists according to the caches."""
        info = container_info(self.request, self.forward, self.account, bucket)
        return info.exists or info.status >= 500

    @property
    def privileged(self) -> PrivilegedRequests:
        """Requests to internal accounts and containers with all rights."""
        return PrivilegedRequests(self.forward, self.request)


def with_trusted_bucket(session: Session, bucket: str) -> Session:
    """Return the session with all rights in one bucket."""
    return session.with_acl_scope(session.acl_scope, trusted_bucket=bucket)


def with_silent_bucket(session: Session, bucket: str) -> Session:
    """Return the session of a caller whose policies are silent about a bucket."""
    return session._replace(silent_bucket=bucket)


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
