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
from swift.http import environkeys
from swift.http.authdetails import AuthDetails
from swift.http.headers import HeaderMap, wire_value
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.authorization import normalise_prefixes, unauthorized_response
from swift.middleware.filter import App, FilterDeclaration
from swift.middleware.groupauth import GroupAuthorization, RefusalEvents, required_groups
from swift.middleware.tempauth.fernet import make_fernet_tokens
from swift.middleware.tempauth.users import (
    TempauthSettings,
    User,
    format_groups,
    parse_access_keys,
    parse_users,
)
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_UNAUTHORIZED = Event("tempauth.{prefix}.unauthorized", "Requests answered with 401.")
_FORBIDDEN = Event("tempauth.{prefix}.forbidden", "Requests answered with 403.")
_DENIED = Event("tempauth.{prefix}.token_denied", "Requests for a token with wrong keys.")
_ERRORS = Event("tempauth.{prefix}.errors", "Errors of the filter.")

#: Retry-After while no cache server responds: the client reconnects each second.
RETRY_AFTER_S = 1


class Tempauth(GroupAuthorization):
    """Issues tokens for configured users and authorizes their requests."""

    def __init__(
        self,
        app: App,
        settings: TempauthSettings,
        users: dict[tuple[str, str], User],
        conf: Conf,
        telemetry: Telemetry,
    ):
        prefixes = normalise_prefixes(settings.reseller_prefix)
        events = RefusalEvents(_UNAUTHORIZED, _FORBIDDEN)
        super().__init__(app, prefixes, required_groups(conf, prefixes), telemetry.statsd, events)
        self._settings = settings
        self._users = users
        self._access_keys = parse_access_keys(conf, users)
        self._fernet = make_fernet_tokens(conf, settings.active_fernet_key_id, life_s=settings.token_life)
        path = settings.auth_prefix.strip("/")
        self._auth_path = f"/{path or 'auth'}/"
        self._log = telemetry.log
        #: Configured user → its group string.
        self._cached_groups: dict[tuple[str, str], str] = {}

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
                self._count(_UNAUTHORIZED)
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
            self._count(_UNAUTHORIZED)
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
        self._count(_ERRORS)
        self._log.error(str(error), txid=request.env.get(environkeys.TRANS_ID))
        return error_response(503, headers={"retry-after": str(RETRY_AFTER_S)})

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
            self._count(_DENIED)
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
