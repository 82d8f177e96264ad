"""Authentication by tokens and authorization by ACLs (spec: middleware.md §1.1, §1.2)."""

from __future__ import annotations

import hmac
import time
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from swift.base.entity import Entity
from swift.base.errors import ConfigError
from swift.cluster.memcache import MemcacheError
from swift.compose import Services
from swift.config.schema import Conf
from swift.gateway.info import account_info
from swift.http import environkeys, fields
from swift.http.acl import (
    account_acl_error,
    format_account_acl,
    normalize_acl,
    parse_account_acl,
    parse_acl,
    parse_stored_account_acl,
)
from swift.http.authdetails import AuthDetails
from swift.http.headers import HeaderMap, utf8_value, wire_value
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.authorization import (
    has_valid_sync_key,
    is_request_referrer_allowed,
    match_prefix,
    normalise_prefixes,
    respond_to_identity_question,
    unauthorized_response,
)
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.tempauth.fernet import make_fernet_tokens
from swift.middleware.tempauth.users import (
    RESELLER_ADMIN,
    RESELLER_READER,
    TempauthSettings,
    User,
    format_groups,
    parse_access_keys,
    parse_users,
    required_groups,
)
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_UNAUTHORIZED = Event("tempauth.{prefix}.unauthorized", "Requests answered with 401.")
_FORBIDDEN = Event("tempauth.{prefix}.forbidden", "Requests answered with 403.")
_DENIED = Event("tempauth.{prefix}.token_denied", "Requests for a token with wrong keys.")
_ERRORS = Event("tempauth.{prefix}.errors", "Errors of the filter.")

ACL_HEADER = "x-account-access-control"


#: Retry-After while no cache server responds: the client reconnects each second.
RETRY_AFTER_S = 1


class Tempauth(Filter):
    """Issues tokens for configured users and authorizes their requests."""

    def __init__(
        self,
        app: App,
        settings: TempauthSettings,
        users: dict[tuple[str, str], User],
        conf: Conf,
        telemetry: Telemetry,
    ):
        super().__init__(app)
        self._settings = settings
        self._users = users
        self._access_keys = parse_access_keys(conf, users)
        self._prefixes = normalise_prefixes(settings.reseller_prefix)
        self._required_groups = required_groups(conf, self._prefixes)
        self._fernet = make_fernet_tokens(conf, settings.active_fernet_key_id, life_s=settings.token_life)
        path = settings.auth_prefix.strip("/")
        self._auth_path = f"/{path or 'auth'}/"
        self._log = telemetry.log
        self._statsd = telemetry.statsd
        #: Configured user → its group string.
        self._cached_groups: dict[tuple[str, str], str] = {}
        self._metric_prefix = self._prefixes[0] or "NONE"

    # every request

    def handle(self, request: Request) -> Response:
        """Identify the caller and install the authorisation callback."""
        env = request.env
        if self._settings.allow_overrides and env.get(environkeys.AUTHORIZE_OVERRIDE):
            return self.forward(request)
        details = env.get(environkeys.S3_AUTH_DETAILS)
        if details is not None:
            return self._authenticate_s3(request, details)
        if request.lossy_path.startswith(self._auth_path):
            return self._handle_token_request(request)
        token = request.headers.get("x-auth-token") or request.headers.get("x-storage-token")
        if token and token.startswith(self._prefixes[0]):
            try:
                groups = self._groups_of_token(request, token)
                service = request.headers.get("x-service-token")
                service_groups = (
                    self._groups_of_token(request, service) if service and groups is not None else None
                )
            except MemcacheError as error:
                return self._cache_error_response(request, error)
            if groups is None:
                _UNAUTHORIZED.count(self._statsd, prefix=self._metric_prefix)
                return (
                    unauthorized_response(request) if self._prefixes[0] else self._forward_anonymous(request)
                )
            return self._set_identity(request, f"{groups},{service_groups}" if service_groups else groups)
        return self._forward_anonymous(request)

    def _authenticate_s3(self, request: Request, details: AuthDetails) -> Response:
        """Authenticate an S3 request: its access key is a user, and its path gets the user's account."""
        access_key = details["access_key"]
        key = self._access_keys.get(access_key)
        if key is None or not details["check_signature"](key.secret):
            _UNAUTHORIZED.count(self._statsd, prefix=self._metric_prefix)
            return unauthorized_response(request, wire_value(access_key.partition(":")[0]))
        user = key.user
        entity = request.entity
        if entity is not None and entity.path.account == access_key:
            request.set_entity(Entity(entity.version, entity.path._replace(account=self._account_name(user))))
        return self._set_identity(request, self._groups_of_user(user))

    def _groups_of_user(self, user: User) -> str:
        """Return the cached result of ``_format_user_groups``."""
        name = user.account, user.name
        groups = self._cached_groups.get(name)
        if groups is None:
            groups = self._cached_groups[name] = self._format_user_groups(user)
        return groups

    def _account_name(self, user: User) -> str:
        """Return the account in a user's storage URL."""
        if user.storage_url:
            return unquote(user.storage_url.rsplit("/", 1)[-1])
        return self._prefixes[0] + user.account

    def _set_identity(self, request: Request, groups: str) -> Response:
        env = request.env
        names = groups.split(",")
        env[environkeys.REMOTE_USER] = groups
        env[environkeys.AUTHORIZE] = self.authorise
        env[environkeys.CLEAN_ACL] = normalize_acl
        if len(names) > 1:
            env[environkeys.ACCESS_LOGGING] = {"user_id": names[1]}
        if RESELLER_ADMIN in names:
            env[environkeys.RESELLER_REQUEST] = True
        return respond_to_identity_question(request) or self._forward_with_account_acl(request)

    def _forward_anonymous(self, request: Request) -> Response:
        env = request.env
        account = _request_account(request)
        if account is not None and match_prefix(account, self._prefixes) is not None:
            env[environkeys.AUTHORIZE] = self.authorise
            env[environkeys.CLEAN_ACL] = normalize_acl
        elif environkeys.AUTHORIZE not in env:
            env[environkeys.AUTHORIZE] = self._denial
        return self._forward_with_account_acl(request)

    def _forward_with_account_acl(self, request: Request) -> Response:
        """Forward the request; convert the account ACL of the response from system metadata to a header."""
        response = self.forward(request)
        stored = response.headers.pop(fields.SYSMETA_ACCOUNT_ACL, None)
        if stored and request.env.get(environkeys.OWNER):
            parsed = parse_account_acl(stored)
            if parsed:
                response.headers[ACL_HEADER] = format_account_acl(parsed)
        return response

    def _groups_of_token(self, request: Request, token: str) -> str | None:
        prefix = self._prefixes[0]
        if self._fernet is not None and token.startswith(prefix):
            sealed = self._fernet.read_token(token[len(prefix) :])
            if sealed is not None:
                return sealed
        cache = request.env.get(environkeys.CACHE)
        if cache is None and self._fernet is not None:
            return None
        if cache is None:
            raise ConfigError("tempauth needs the cache filter before it in the pipeline")
        entry = _parse_cached_token(cache.get(f"{prefix}/token/{token}", raise_on_error=True))
        return entry[1] if entry is not None and entry[0] > time.time() else None

    def _cache_error_response(self, request: Request, error: MemcacheError) -> Response:
        """Return 503 when no cache server responds: the token may be valid."""
        _ERRORS.count(self._statsd, prefix=self._metric_prefix)
        self._log.error(str(error), txid=request.env.get(environkeys.TRANS_ID))
        return error_response(503, headers={"retry-after": str(RETRY_AFTER_S)})

    # authorisation

    def authorise(self, request: Request) -> Response | None:
        """Return None for an allowed request, else the denial (the contract of ``swift.authorize``)."""
        entity = request.entity
        if entity is None:
            return error_response(404)
        account, container, obj = entity.path
        prefix = match_prefix(account, self._prefixes)
        if prefix is None:
            return self._denial(request)
        problem = self._check_account_acl(request, container)
        if problem is not None:
            return problem
        groups = [group for group in (request.env.get(environkeys.REMOTE_USER) or "").split(",") if group]
        if self._is_owner(request, groups, account, prefix, container):
            request.env[environkeys.OWNER] = True
            return None
        is_dot_account = account[len(prefix) :].startswith(".")
        if RESELLER_READER in groups and not is_dot_account and request.method in ("GET", "HEAD"):
            return None
        if self._is_allowed_by_acl(request, groups, obj):
            return None
        if self._is_allowed_by_account_acl(request, groups, account, container):
            return None
        return self._denial(request)

    def _is_owner(
        self, request: Request, groups: list[str], account: str, prefix: str, container: str | None
    ) -> bool:
        name = account[len(prefix) :]
        if RESELLER_ADMIN in groups and name and not name.startswith("."):
            return True
        if account not in groups or (container is None and request.method in ("PUT", "DELETE")):
            return False
        required = self._required_groups.get(prefix)
        return not required or required in groups

    def _is_allowed_by_acl(self, request: Request, groups: list[str], obj: str | None) -> bool:
        if has_valid_sync_key(request) or request.method == "OPTIONS":
            return True
        referrers, acl_groups = parse_acl(utf8_value(request.acl or ""))
        if is_request_referrer_allowed(request, referrers) and (obj or ".rlistings" in acl_groups):
            return True
        return any(group in acl_groups for group in groups)

    def _is_allowed_by_account_acl(
        self, request: Request, groups: list[str], account: str, container: str | None
    ) -> bool:
        acls = self._account_acls(request, account)
        if not acls:
            return False
        # Stored lists are Latin-1 views of the header's bytes.
        user_groups = {wire_value(group) for group in groups}
        if user_groups & set(acls.get("admin", ())):
            request.env[environkeys.OWNER] = True
            return True
        reading = request.method in ("GET", "HEAD")
        if user_groups & set(acls.get("read-write", ())) and (container or reading):
            return True
        return bool(user_groups & set(acls.get("read-only", ()))) and reading

    def _account_acls(self, request: Request, account: str) -> dict[str, list[str]]:
        info = account_info(request, self.forward, account)
        return parse_stored_account_acl(info.sysmeta.get("core-access-control"))

    def _check_account_acl(self, request: Request, container: str | None) -> Response | None:
        """Validate a new account ACL and convert it to system metadata."""
        value = request.headers.get(ACL_HEADER)
        if value is None or container is not None or request.method not in ("PUT", "POST"):
            return None
        problem = account_acl_error(value)
        if problem is not None:
            text = f"X-Account-Access-Control invalid: {problem}\n\nInput: {value}\n"
            return error_response(
                400, text.encode("latin-1", "replace"), content_type="text/plain; charset=UTF-8"
            )
        request.headers[fields.SYSMETA_ACCOUNT_ACL] = format_account_acl(parse_account_acl(value) or {})
        return None

    def _denial(self, request: Request) -> Response:
        if request.env.get(environkeys.REMOTE_USER):
            _FORBIDDEN.count(self._statsd, prefix=self._metric_prefix)
            return error_response(403)
        _UNAUTHORIZED.count(self._statsd, prefix=self._metric_prefix)
        return unauthorized_response(request)

    # tokens

    def _handle_token_request(self, request: Request) -> Response:
        if request.method != "GET":
            return error_response(405)
        version, _, rest = request.lossy_path[len(self._auth_path) :].partition("/")
        owner, _, action = rest.partition("/")
        if not version:
            return error_response(404)
        if version in ("v1.0", "auth"):
            owner = ""
            account, name, key = _read_credentials(request.headers)
        elif version == "v1" and owner and action == "auth":
            account, name, key = _read_account_credentials(owner, request.headers)
        else:
            return error_response(400)
        if account and name:
            # The access line names the user of failed attempts too.
            request.env[environkeys.ACCESS_LOGGING] = {"user_id": f"{account}:{name}"}
        user = self._users.get((account or "", name or ""))
        if user is None or not hmac.compare_digest(
            user.key.encode("utf-8"), (key or "").encode("latin-1", "replace")
        ):
            _DENIED.count(self._statsd, prefix=self._metric_prefix)
            return unauthorized_response(request, self._failure_realm(request, owner, account))
        try:
            return self._token_response(request, user)
        except MemcacheError as error:
            return self._cache_error_response(request, error)

    @staticmethod
    def _failure_realm(request: Request, owner: str, account: str | None) -> str:
        """Return the realm of a failed authentication: the account as the client sent it."""
        if owner or not account:
            return wire_value(owner) or "unknown"
        headers = request.headers
        return (headers.get("x-auth-user") or headers.get("x-storage-user") or "").partition(":")[0]

    def _token_response(self, request: Request, user: User) -> Response:
        cache = request.env.get(environkeys.CACHE)
        if self._fernet is not None and self._fernet.can_create_tokens:
            token = self._prefixes[0] + self._fernet.create_token(self._format_user_groups(user))
            life = self._settings.token_life
        elif cache is None:
            return error_response(500, "tempauth needs the cache filter before it in the pipeline")
        else:
            token, life = self._cached_token(cache, user)
        headers = {
            "x-auth-token": token,
            "x-storage-token": token,
            "x-auth-token-expires": str(life),
            "x-storage-url": self._storage_url(request, user),
            "content-type": HTML,
        }
        return Response(200, headers)

    def _cached_token(self, cache: Any, user: User) -> tuple[str, int]:
        """Return a token in memcached and its remaining seconds; a valid one of the user is reused."""
        prefix = self._prefixes[0]
        user_key = f"{prefix}/user/{user.account}:{user.name}"
        groups = self._format_user_groups(user)
        now = time.time()
        token, expires = cache.get(user_key, raise_on_error=True), 0.0
        if isinstance(token, str) and token:
            entry = _parse_cached_token(cache.get(f"{prefix}/token/{token}", raise_on_error=True))
            has_same_groups = entry is not None and sorted(entry[1].split(",")) == sorted(groups.split(","))
            if entry is not None and has_same_groups and entry[0] > now:
                expires = entry[0]
        if not expires:
            token, expires = f"{prefix}tk{uuid4().hex}", now + self._settings.token_life
            life_s = self._settings.token_life
            cache.set(f"{prefix}/token/{token}", [expires, groups], ttl_s=life_s, raise_on_error=True)
            cache.set(user_key, token, ttl_s=life_s, raise_on_error=True)
        return token, int(expires - now)

    def _format_user_groups(self, user: User) -> str:
        user_with_url = (
            user
            if user.storage_url
            else User(
                user.account, user.name, user.key, user.groups, f"$HOST/v1/{self._prefixes[0]}{user.account}"
            )
        )
        return format_groups(user_with_url, self._prefixes)

    def _storage_url(self, request: Request, user: User) -> str:
        scheme = self._settings.storage_url_scheme
        if scheme == "default":
            scheme = request.scheme
        host = f"{scheme}://{request.headers.get('host', 'localhost')}"
        url = user.storage_url or f"$HOST/v1/{quote(self._prefixes[0] + user.account)}"
        return url.replace("$HOST", host)


def _parse_cached_token(value: object) -> tuple[float, str] | None:
    """Return (Unix second of expiry, groups) of a cached token; None for any other value."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    expires, groups = value
    if isinstance(expires, bool) or not isinstance(expires, int | float) or not isinstance(groups, str):
        return None
    return expires, groups


def _request_account(request: Request) -> str | None:
    entity = request.entity
    return None if entity is None else entity.path.account


def _header_text(value: str) -> str:
    """Return a header's UTF-8 bytes as text; a percent sign is literal, as in a password."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")


def _read_credentials(headers: HeaderMap) -> tuple[str | None, str | None, str | None]:
    user = headers.get("x-auth-user") or headers.get("x-storage-user") or ""
    account, separator, name = _header_text(user).partition(":")
    key = headers.get("x-auth-key") or headers.get("x-storage-pass")
    return (account, name, key) if separator else (None, None, key)


def _read_account_credentials(account: str, headers: HeaderMap) -> tuple[str | None, str | None, str | None]:
    name = headers.get("x-storage-user")
    if not name:
        owner, separator, name = headers.get("x-auth-user", "").partition(":")
        if not separator or _header_text(owner) != account:
            return account, None, None
    return account, _header_text(name), headers.get("x-storage-pass") or headers.get("x-auth-key")


def _make_filter(app: App, settings: TempauthSettings, services: Services) -> Tempauth:
    """Return the filter of a configuration section."""
    return Tempauth(app, settings, parse_users(services.conf), services.conf, services.telemetry())


FILTER = FilterDeclaration(
    "tempauth",
    TempauthSettings,
    _make_filter,
    position=160,
    default=True,
    info=lambda _settings: {"account_acls": True},
    sample_lines=(
        "# fernet_key_<id> = <32 bytes in URL-safe base64>",
        "# user_<account>_<user> = <key> [group] [group] [...] [storage_url]",
        "# s3_key_<access key> = <account>:<user> <secret key>",
        "# user_test_tester = <a key of your own> .admin",
    ),
)
