"""Authentication and authorization by the records of the cluster (doc/howto/users.md)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from swift.base.clock import SystemClock
from swift.base.documents import JsonObject
from swift.base.entity import Entity, EntityPath
from swift.base.errors import ConfigError
from swift.cluster.outbound import Outbound, StorageEndpoints
from swift.cluster.rings import Rings
from swift.compose import Services
from swift.gateway.documents import Conflict, StoreUnavailable
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import Forward, make_privileged_request, open_response
from swift.http import environkeys, fields
from swift.http.acl import normalize_acl
from swift.http.authdetails import AuthDetails
from swift.http.body import BodyError, read_up_to
from swift.http.headers import wire_value
from swift.http.queryapi import is_query_request
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.http.storedtags import decode_tags
from swift.identity.admin.base import IdentityExists, InUse, NoSuchIdentity
from swift.identity.bucketrules import DamagedPolicy, ReadPolicy, read_bucket_policy, restricts_public
from swift.identity.clusterkeys import read_key_file
from swift.identity.directory import Caller
from swift.identity.names import InvalidIdentity
from swift.identity.oidc.login import PREFIX as OIDC_PREFIX
from swift.identity.oidc.verifier import TokenVerifiers
from swift.identity.operations import Forbidden
from swift.identity.policy.document import BucketPolicy
from swift.identity.policy.evaluate import PolicyRequest, PolicyVerdict, combine_verdicts, evaluate_policy
from swift.identity.policy.principals import Principal
from swift.identity.policy.resources import SwiftResource, resource_of
from swift.identity.policy.swiftrequests import (
    ARCHIVE_ACTION,
    DELETE_TAGS,
    SwiftContext,
    archive_of,
    level_of,
    swift_access,
)
from swift.identity.records import DamagedRecord
from swift.identity.rights import AccessRequest, Rights
from swift.identity.tokens import Ticket, new_id
from swift.identity.turns import TooManyLogins, network_of
from swift.middleware.authorization import (
    match_prefix,
    normalise_prefixes,
    respond_to_identity_question,
    unauthorized_response,
)
from swift.middleware.filter import App, FilterDeclaration
from swift.middleware.formpost.filter import FORMPOST_USER
from swift.middleware.groupauth import GroupAuthorization, RefusalEvents, required_groups
from swift.middleware.swiftauth.local import KEY_FILE
from swift.middleware.swiftauth.people import People
from swift.middleware.swiftauth.query import QueryError, RequestContext
from swift.middleware.swiftauth.queryapi import QueryApi
from swift.middleware.swiftauth.service import IdentityService, make_service
from swift.middleware.swiftauth.settings import SwiftauthSettings
from swift.middleware.swiftauth.webidentity import WebIdentities
from swift.middleware.tempurl.filter import TEMPURL_USER
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_UNAUTHORIZED = Event("swiftauth.{prefix}.unauthorized", "Requests answered with 401.")
_FORBIDDEN = Event("swiftauth.{prefix}.forbidden", "Requests answered with 403.")
_DENIED = Event("swiftauth.{prefix}.token_denied", "Requests for a token with wrong keys.")
_SLOWED = Event("swiftauth.{prefix}.slowed", "Log-ins refused because too many failed before or wait.")
_ERRORS = Event("swiftauth.{prefix}.errors", "Requests refused because records cannot be read.")

#: First letters of its tokens after the reseller prefix; others are of other filters.
TOKEN_MARK = "sat"
RETRY_AFTER_S = 2
OPERATION_BYTES_MAX = 256 << 10
_JSON = "application/json"


class Swiftauth(GroupAuthorization):
    """Identifies users of the cluster's records and authorizes their requests."""

    def __init__(
        self,
        app: App,
        settings: SwiftauthSettings,
        make_service: Callable[[Forward], tuple[IdentityService, People]],
        required_groups: dict[str, str],
        telemetry: Telemetry,
        now: Callable[[], float] = time.time,
    ):
        """``make_service`` gets what reads and writes the records: the rest of the pipeline."""
        prefixes = normalise_prefixes(settings.reseller_prefix)
        events = RefusalEvents(_UNAUTHORIZED, _FORBIDDEN)
        super().__init__(app, prefixes, required_groups, telemetry.statsd, events)
        self._settings = settings
        self._service, self._people = make_service(self.forward)
        self._directory = self._service.directory
        self._query_api = QueryApi(self._service, now)
        self._auth_path = f"/{settings.auth_prefix.strip('/') or 'auth'}/"
        self._token_start = prefixes[0] + TOKEN_MARK
        self._log = telemetry.log
        self._now = now

    # every request

    def handle(self, request: Request) -> Response:
        """Identify the caller and install the authorization callback."""
        if self._settings.allow_overrides and request.env.get(environkeys.AUTHORIZE_OVERRIDE):
            if request.env.get(environkeys.REMOTE_USER) in (TEMPURL_USER, FORMPOST_USER):
                request.env[environkeys.AUTHORIZE] = partial(
                    self._authorise_signed, request.env[environkeys.AUTHORIZE]
                )
            return self.forward(request)
        try:
            return self._identify(request)
        except StoreUnavailable as error:
            return self._unavailable_response(request, str(error))
        except DamagedRecord as error:
            self._log.error(f"a request is refused: {error}", txid=request.env.get(environkeys.TRANS_ID))
            self._count(_FORBIDDEN)
            return error_response(403)
        except ConfigError as error:
            # A package that only this request needs is missing.
            return self._unavailable_response(request, str(error))

    def _identify(self, request: Request) -> Response:
        details = request.env.get(environkeys.S3_AUTH_DETAILS)
        if details is not None:
            return self._identify_s3(request, details)
        if is_query_request(request):
            return self._query_api.serve(request, None, "")
        if request.raw_path.startswith(f"{OIDC_PREFIX}/"):
            return self._people.serve(request, self.token_response)
        if request.lossy_path.startswith(self._auth_path):
            return self._serve_auth_path(request)
        token = request.headers.get("x-auth-token") or request.headers.get("x-storage-token")
        if token and token.startswith(self._token_start):
            holder = self._token_holder(token)
            if holder is None:
                self._count(_UNAUTHORIZED)
                return unauthorized_response(request)
            caller = holder.caller
            service = request.headers.get("x-service-token")
            service_holder = self._token_holder(service) if service else None
            groups = [caller.groups, *self._service_groups(service_holder)]
            return self._forward_identified(request, caller, ",".join(groups))
        if token and not self._settings.pass_unknown and token.startswith(self._prefixes[0]):
            self._count(_UNAUTHORIZED)
            return unauthorized_response(request)
        return self._forward_anonymous(request)

    def _forward_identified(self, request: Request, caller: Caller, groups: str) -> Response:
        env = request.env
        env[environkeys.REMOTE_USER] = groups
        env[environkeys.IDENTITY] = caller.rights
        env[environkeys.AUTHORIZE] = self.authorise
        env[environkeys.CLEAN_ACL] = normalize_acl
        env[environkeys.ACCESS_LOGGING] = {"user_id": caller.name}
        # Other authentication filters in the pipeline do not know the caller.
        env[environkeys.AUTHORIZE_OVERRIDE] = True
        if caller.is_operator:
            env[environkeys.RESELLER_REQUEST] = True
        return respond_to_identity_question(request) or self._forward_with_account_acl(request)

    def _service_groups(self, holder: _Holder | None) -> list[str]:
        """Return the groups of a service that accounts require.

        With others of its groups any user would get its rights without its denials and limits.
        """
        if holder is None or holder.caller.rights.boundaries:
            return []
        required = set(self._required_groups.values())
        return [group for group in holder.caller.groups.split(",") if group in required]

    def _token_holder(self, token: str) -> _Holder | None:
        """Return the content and the caller of a token; None if it is not valid."""
        if not token.startswith(self._token_start):
            return None
        ticket = self._directory.tickets.read_token(token[len(self._token_start) :], self._now())
        caller = None if ticket is None else self._directory.caller_of_ticket(ticket)
        return None if ticket is None or caller is None else _Holder(ticket, caller)

    # S3

    def _identify_s3(self, request: Request, details: AuthDetails) -> Response:
        """Identify the signer of an S3 request, whose path gets the signer's account."""
        access_key = details["access_key"]
        known = self._directory.find_key(access_key, details.get("session_token", ""))
        caller = None
        if known is not None and details["check_signature"](known.secret):
            caller = known.find_caller()
        if request.method == "POST" and is_query_request(request):
            return self._query_api.serve(request, caller, access_key)
        if caller is None:
            if known is None and self._settings.pass_unknown:
                return self.forward(request)
            self._count(_UNAUTHORIZED)
            return unauthorized_response(request, wire_value(access_key.partition(":")[0]))
        self._directory.note_use(access_key, request.remote_addr)
        entity = request.entity
        if entity is not None and entity.path.account == access_key:
            request.set_entity(Entity(entity.version, entity.path._replace(account=caller.account)))
        return self._forward_identified(request, caller, caller.groups)

    # authorization

    def authorise(self, request: Request) -> Response | None:
        """Return None for an allowed request, else the denial (the contract of ``swift.authorize``)."""
        entity = request.entity
        if entity is None:
            return error_response(404)
        path = entity.path
        account, container, _obj = path
        rights: Rights | None = request.env.get(environkeys.IDENTITY)
        if match_prefix(account, self._prefixes) is None and (rights is None or not rights.is_operator):
            return self._denial(request)
        if (
            container is None
            and request.method in ("PUT", "DELETE")
            and (not rights or not rights.is_operator)
        ):
            # With tempauth as well only operators create and delete accounts.
            return self._denial(request)
        verdict, is_owner = self._verdict(request, rights, path)
        if verdict is PolicyVerdict.DENY:
            return self._denial(request)
        if verdict is PolicyVerdict.SILENT:
            return super().authorise(request)
        problem = self._check_account_acl(request, container)
        if problem is None and is_owner:
            request.env[environkeys.OWNER] = True
        return problem

    def _verdict(self, request: Request, rights: Rights | None, path: EntityPath) -> _Verdict:
        """Return the verdict of all policies on a request; raise ``HTTPError`` if they cannot be read."""
        if request.method == "OPTIONS" or (rights is None and request.env.get(environkeys.REMOTE_USER)):
            return _SILENT
        resource = resource_of(path)
        found = self._bucket_policy(request, path.account, resource.bucket) if resource.bucket else None
        policy = None if found is None else found.policy
        if policy is None and (rights is None or not rights.has_policies):
            verdict = PolicyVerdict.SILENT if rights is None else rights.verdict_in(path.account)
            return _Verdict(verdict, is_owner=verdict is PolicyVerdict.ALLOW)
        needed = swift_access(request.method, level_of(path), request.params, request.headers)
        context = SwiftContext(request, path, partial(self._read_tags, request, path))
        access = AccessRequest(needed.actions, path.account, context, resource.bucket, resource.key)
        is_public = found is not None and found.is_public
        if rights is None:
            assert policy is not None, "callers without rights are done without one"
            verdict = _decide_anonymous(access, policy)
            is_foreign = True
        else:
            verdict = rights.decide(access, policy).verdict
            is_foreign = rights.account != path.account
        if is_public and is_foreign and self._restricts_public(request, path.account, resource):
            return _Verdict(PolicyVerdict.DENY)
        if rights is None or verdict is not PolicyVerdict.ALLOW:
            return _Verdict(verdict)
        if not self._may_lose_tags(request, rights, access, policy, context):
            return _Verdict(PolicyVerdict.DENY)
        if not self._may_use_archive(request, rights, access):
            return _Verdict(PolicyVerdict.DENY)
        if not needed.owner_action:
            return _Verdict(verdict, is_owner=True)
        access = replace(access, actions=(needed.owner_action,))
        return _Verdict(verdict, is_owner=rights.decide(access, policy).is_allowed)

    def _authorise_signed(self, authorise: Authorize, request: Request) -> Response | None:
        """Return the denial of a request with a key of Swift, which has no caller.

        The key allows what it signs, unless the policy of the bucket denies it to all callers.
        """
        denial = authorise(request)
        if denial is not None or request.entity is None or request.entity.path.container is None:
            return denial
        path = request.entity.path
        resource = resource_of(path)
        found = self._bucket_policy(request, path.account, resource.bucket)
        if found is None:
            return None
        actions = swift_access(request.method, level_of(path), request.params, request.headers).actions
        context = SwiftContext(request, path, partial(self._read_tags, request, path))
        access = AccessRequest(actions, path.account, context, resource.bucket, resource.key)
        is_denied = _decide_anonymous(access, found.policy) is PolicyVerdict.DENY
        return error_response(403) if is_denied else None

    def _may_lose_tags(
        self,
        request: Request,
        rights: Rights,
        access: AccessRequest,
        policy: BucketPolicy | None,
        context: SwiftContext,
    ) -> bool:
        """Return False if a POST would remove tags of an object, on which policies may depend."""
        if request.method != "POST" or not access.key:
            return True
        removal = replace(access, actions=(DELETE_TAGS,))
        return rights.decide(removal, policy).is_allowed or not context.tags

    def _may_use_archive(self, request: Request, rights: Rights, access: AccessRequest) -> bool:
        """Return False if a request names a container of versions that its caller may not use so.

        Versions are written to it and read from it with all rights.
        """
        archive = "" if access.key else archive_of(request.headers)
        if not archive:
            return True
        found = self._bucket_policy(request, access.account, archive)
        use = replace(access, actions=(ARCHIVE_ACTION,), bucket=archive)
        return rights.decide(use, None if found is None else found.policy).is_allowed

    def _bucket_policy(self, request: Request, account: str, bucket: str) -> ReadPolicy | None:
        try:
            return read_bucket_policy(self._bucket_info(request, account, bucket).sysmeta, bucket)
        except DamagedPolicy as error:
            self._log.error(str(error), txid=request.env.get(environkeys.TRANS_ID))
            raise HTTPError(503)

    def _restricts_public(self, request: Request, account: str, resource: SwiftResource) -> bool:
        return restricts_public(self._bucket_info(request, account, resource.bucket).sysmeta)

    def _bucket_info(self, request: Request, account: str, bucket: str) -> ContainerInfo:
        info = container_info(request, self.forward, account, bucket)
        if info.status >= 500:
            # The policy is unknown.
            raise HTTPError(503)
        return info

    def _read_tags(self, request: Request, path: EntityPath) -> Mapping[str, str]:
        """Return the tags of the object that a request names, because a policy needs them."""
        version = request.params.get("version-id")
        query = f"version-id={quote(version, safe='')}" if version else ""
        sub = make_privileged_request(request, "HEAD", Entity("v1", path), AUTH_SOURCE, query=query)
        with open_response(self.forward, sub) as response:
            if response.status >= 500:
                raise HTTPError(503)
            return decode_tags(response.headers.get(fields.TRANSIENT_S3_TAGGING))

    # the authentication path

    def _serve_auth_path(self, request: Request) -> Response:
        path = request.lossy_path[len(self._auth_path) :]
        served = _SERVED_WITH_TOKEN.get(path)
        if served is not None:
            method, serve = served
            if request.method != method:
                return error_response(405)
            holder = self._token_holder(request.headers.get("x-auth-token", ""))
            if holder is None:
                return unauthorized_response(request)
            request.env[environkeys.ACCESS_LOGGING] = {"user_id": holder.caller.name}
            return serve(self, request, holder)
        if request.method != "GET":
            return error_response(405)
        version, _, rest = path.partition("/")
        tenant, _, action = rest.partition("/")
        if version in ("v1.0", "auth"):
            tenant = ""
        elif version != "v1" or not tenant or action != "auth":
            return error_response(404 if not version else 400)
        return self._log_in(request, tenant)

    def _log_in(self, request: Request, tenant: str) -> Response:
        """Return a token for a user and its password, or for an access key and its secret key."""
        headers = request.headers
        name = _header_text(headers.get("x-auth-user") or headers.get("x-storage-user") or "")
        secret = _header_text(headers.get("x-auth-key") or headers.get("x-storage-pass") or "")
        if tenant and ":" not in name:
            name = f"{tenant}:{name}"
        request.env[environkeys.ACCESS_LOGGING] = {"user_id": wire_value(name[:128])}
        try:
            ticket = self._ticket(name, secret, request.remote_addr)
        except TooManyLogins as error:
            self._count(_SLOWED)
            return error_response(429, headers={"retry-after": str(int(error.retry_after_s) + 1)})
        caller = None if ticket is None else self._directory.caller_of_ticket(ticket)
        if ticket is None or caller is None or (tenant and caller.tenant != tenant):
            if self._settings.pass_unknown and not self._is_known(name):
                return self.forward(request)
            self._count(_DENIED)
            return unauthorized_response(request, wire_value(tenant or name.partition(":")[0]))
        return self.token_response(request, ticket, caller)

    def _ticket(self, name: str, secret: str, address: str) -> Ticket | None:
        now = self._now()
        ends = now + self._settings.token_life
        network = network_of(address)
        if self._directory.is_key(name):
            self._service.brake.require_allowed(name, network)
            known = self._directory.find_key(name, "")
            if known is not None and known.is_secret(secret):
                self._service.brake.report(name, network, right=True)
                self._directory.note_use(name, address)
                return Ticket(known.user, now, ends, new_id(), parent=name)
            if ":" not in name:
                self._service.brake.report(name, network, right=False)
                return None
            # A user of this name has a password beside the key.
        if self._settings.pass_unknown and not self._is_known(name):
            return None
        user = self._service.login(name, secret, network)
        return None if user is None else Ticket(user.name, now, ends, new_id())

    def _is_known(self, name: str) -> bool:
        return self._directory.is_key(name) or self._service.find_user(name) is not None

    def token_response(self, request: Request, ticket: Ticket, caller: Caller) -> Response:
        """Return the response with a new token."""
        token = self._token_start + self._directory.tickets.make_token(ticket)
        headers = {
            "x-auth-token": token,
            "x-storage-token": token,
            "x-auth-token-expires": str(int(ticket.ends - self._now())),
            "x-storage-url": self._storage_url(request, caller.account),
            "content-type": HTML,
            "cache-control": "no-store",
        }
        return Response(200, headers)

    def _storage_url(self, request: Request, account: str) -> str:
        scheme = self._settings.storage_url_scheme
        if scheme == "default":
            scheme = request.scheme
        return f"{scheme}://{request.headers.get('host', 'localhost')}/v1/{quote(account)}"

    # with a token

    def _revoke_token(self, _request: Request, holder: _Holder) -> Response:
        """Revoke the token."""
        self._service.revoke(holder.ticket)
        return Response(204)

    def _describe_caller(self, _request: Request, holder: _Holder) -> Response:
        """Tell the sender of a token, as JSON, whose it is and when it ends."""
        caller = holder.caller
        members = {
            "name": caller.name,
            "tenant": caller.tenant,
            "account": caller.account,
            # A key with limits may be in other hands than the operator's.
            "operator": caller.is_operator and not caller.rights.boundaries,
            "owner": caller.rights.verdict_in(caller.account) is PolicyVerdict.ALLOW,
            "ends": holder.ticket.ends,
        }
        return _json_response(200, members)

    def _give_session_keys(self, request: Request, holder: _Holder) -> Response:
        """Return the temporary S3 keys of a token, as members of a JSON object."""
        try:
            keys = self._query_api.sts.session_keys(*holder, RequestContext(request))
        except QueryError as error:
            return _json_response(error.status, {"error": str(error)})
        return _json_response(200, keys)

    def _serve_operation(self, request: Request, holder: _Holder) -> Response:
        """Respond to an operation on identities: a JSON object with its name and parameters."""
        try:
            tree = _read_json(request)
            params = tree.get("parameters", {})
            if not isinstance(params, dict) or tree.keys() - {"operation", "parameters"}:
                raise InvalidIdentity("parameters", "must be an object, beside operation only")
            name = str(tree.get("operation", ""))
            result = self._service.operations.call(name, params, holder.caller, RequestContext(request))
        except Forbidden as error:
            return _json_response(403, {"error": str(error)})
        except Conflict as error:
            return _json_response(409, {"error": str(error)})
        except DamagedRecord as error:
            return _json_response(500, {"error": str(error)})
        except InvalidIdentity as error:
            status = STATUS_OF_ERROR.get(type(error), 400)
            return _json_response(status, {"error": str(error), "field": error.field})
        except TooManyLogins as error:
            return error_response(429, headers={"retry-after": str(int(error.retry_after_s) + 1)})
        return _json_response(200, result)

    def _unavailable_response(self, request: Request, reason: str) -> Response:
        self._count(_ERRORS)
        self._log.error(f"a request is refused: {reason}", txid=request.env.get(environkeys.TRANS_ID))
        return error_response(503, headers={"retry-after": str(RETRY_AFTER_S)})


class _Holder(NamedTuple):
    """The content of a valid token, and the caller that holds it."""

    ticket: Ticket
    caller: Caller


#: Path below ``/auth/`` → its method, and the function that serves the holder of a token.
_SERVED_WITH_TOKEN: dict[str, tuple[str, Callable[[Swiftauth, Request, _Holder], Response]]] = {
    "caller": ("GET", Swiftauth._describe_caller),
    "identity": ("POST", Swiftauth._serve_operation),
    "session-keys": ("POST", Swiftauth._give_session_keys),
    "token": ("DELETE", Swiftauth._revoke_token),
}


class _Verdict(NamedTuple):
    """The verdict on a request, and whether it may use the headers of owners."""

    verdict: PolicyVerdict
    is_owner: bool = False


_SILENT = _Verdict(PolicyVerdict.SILENT)
AUTH_SOURCE = "SA"
#: The callback of ``environkeys.AUTHORIZE``.
Authorize = Callable[[Request], Response | None]


def _decide_anonymous(access: AccessRequest, policy: BucketPolicy) -> PolicyVerdict:
    """Return the verdict of a bucket's policy on a caller without a name."""
    return combine_verdicts(
        evaluate_policy(
            policy,
            PolicyRequest(
                *(_NOBODY, action, access.bucket, access.key, access.context),
                account=access.account,
                is_own=False,
            ),
        ).verdict
        for action in access.actions
    )


_NOBODY = Principal()
#: Errors that are not 400.
STATUS_OF_ERROR = {NoSuchIdentity: 404, IdentityExists: 409, InUse: 409}


def _header_text(value: str) -> str:
    """Return a header's UTF-8 bytes as text."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")


def _read_json(request: Request) -> JsonObject:
    try:
        body = read_up_to(request.body, OPERATION_BYTES_MAX + 1)
        if len(body) > OPERATION_BYTES_MAX:
            raise InvalidIdentity("body", f"exceeds {OPERATION_BYTES_MAX} bytes")
        tree = json.loads(body)
    except (BodyError, ValueError, RecursionError):
        raise InvalidIdentity("body", "is no JSON")
    if not isinstance(tree, dict):
        raise InvalidIdentity("body", "must be a JSON object")
    return tree


def _json_response(status: int, value: JsonObject) -> Response:
    headers = {"content-type": _JSON, "cache-control": "no-store"}
    return Response(status, headers, json.dumps(value).encode("ascii"))


def _make_filter(app: App, settings: SwiftauthSettings, services: Services) -> Swiftauth:
    """Return the filter of a configuration section."""
    telemetry = services.telemetry()
    keys = read_key_file(settings.key_file or os.path.join(services.swift_dir, KEY_FILE))
    prefixes = normalise_prefixes(settings.reseller_prefix)

    def make_verifiers() -> TokenVerifiers:
        rings = Rings(services.swift_dir, services.cluster.policies)
        return TokenVerifiers(Outbound(StorageEndpoints(rings)), SystemClock())

    def make(forward: Forward) -> tuple[IdentityService, People]:
        service = make_service(
            forward,
            keys,
            lambda cache, known: WebIdentities(cache, known, make_verifiers),
            prefix=prefixes[0],
            stale_s=settings.stale_seconds,
            outage_s=settings.outage_seconds,
            log=telemetry.log,
        )
        return service, People(service, SystemClock(), public_url=settings.public_url)

    return Swiftauth(app, settings, make, required_groups(services.conf, prefixes), telemetry)


FILTER = FilterDeclaration(
    "swiftauth",
    SwiftauthSettings,
    _make_filter,
    position=155,
    info=lambda _settings: {"account_acls": True},
    left_of={"tempauth": "tempauth refuses tokens that it does not know"},
)
