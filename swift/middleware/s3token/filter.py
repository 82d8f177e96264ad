"""Validation of S3 signatures by an identity service (spec: middleware.md §18).

The S3 filter provides the signed string; the identity service returns the signer, which keystoneauth treats
like a token. The account in the path becomes that of the project. The filter reads each secret key once and
caches it in memcached. Later signatures and chunks of bodies then need no request to the service.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from swift.base.entity import Entity
from swift.compose import Services
from swift.http import environkeys
from swift.http.authdetails import AuthDetails
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.s3token.keystone import HTTPKeystone, Keystone, KeystoneUnavailable
from swift.middleware.s3token.settings import S3TokenSettings, validate_settings
from swift.middleware.s3token.tokens import IDENTITY_HEADERS, SignerIdentity, parse_identity
from swift.telemetry.telemetry import Telemetry

_CACHE_KEY_PREFIX = "s3secret/"
_S3_ERRORS = {
    "AccessDenied": (401, "Access denied"),
    "InvalidURI": (400, "Could not parse the specified URI"),
    "ServiceUnavailable": (503, "The identity service does not answer"),
}


class S3Token(Filter):
    """Identifies the signer of an S3 request."""

    def __init__(self, app: App, settings: S3TokenSettings, keystone: Keystone, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._keystone = keystone
        self._log = telemetry.log

    def handle(self, request: Request) -> Response:
        """Set the identity headers of the signer; remove identity headers that the client sent."""
        env = request.env
        if environkeys.KEYSTONE_TOKEN_INFO not in env:
            for name in IDENTITY_HEADERS:
                request.headers.pop(name, None)
        details: AuthDetails | None = env.get(environkeys.S3_AUTH_DETAILS)
        if details is None:
            return self.forward(request)
        entity = request.entity
        if entity is None:
            return self._error_response(request, "InvalidURI")
        access_key, _, project_override = details["access_key"].partition(":")
        try:
            identity = self._identify(request, access_key, details)
        except KeystoneUnavailable as error:
            self._log.error(str(error), txid=env.get(environkeys.TRANS_ID))
            return self._error_response(request, "ServiceUnavailable")
        if identity is None:
            return self._error_response(request, "AccessDenied")
        details["signer"] = identity
        request.headers.update(identity.headers)
        if entity.path.account == details["access_key"]:
            path = entity.path._replace(
                account=self._settings.reseller_prefix + (project_override or identity.project_id)
            )
            request.set_entity(Entity(entity.version, path))
        return self.forward(request)

    def _error_response(self, request: Request, code: str) -> Response:
        if self._settings.delay_auth_decision and code != "InvalidURI":
            return self.forward(request)
        status, text = _S3_ERRORS[code]
        inner = f"  <Code>{code}</Code>\r\n  <Message>{text}</Message>\r\n"
        body = f'<?xml version="1.0" encoding="UTF-8"?>\r\n<Error>\r\n{inner}</Error>\r\n'
        return Response(status, {"content-type": "text/xml"}, body.encode())

    # identification

    def _identify(self, request: Request, access_key: str, details: AuthDetails) -> SignerIdentity | None:
        """Return the signer from the cache or from Keystone; raises ``KeystoneUnavailable``.

        Later requests on behalf of the same S3 request find the signer in ``details``.
        """
        known = details.get("signer")
        if isinstance(known, SignerIdentity):
            self._set_token_version(request, known.headers)
            return known
        cached = self._read_cache(request, access_key)
        if cached is not None and details["check_signature"](cached[1]):
            self._set_token_version(request, cached[0].headers)
            return cached[0]
        document, identity = None, None
        for text in (details["string_to_sign"], *details["alternative_strings_to_sign"]):
            credentials = {
                "access": access_key,
                "token": urlsafe_b64encode(text).decode("ascii"),
                "signature": details["signature"],
            }
            document = self._keystone.validate_signature(credentials)
            identity = parse_identity(document) if document is not None else None
            if identity is not None:
                break
        if document is None or identity is None:
            return None
        request.env[environkeys.KEYSTONE_TOKEN_INFO] = document
        self._cache_secret(request, access_key, identity, details)
        return identity

    def _set_token_version(self, request: Request, headers: HeaderMap) -> None:
        """Set the version of the token: only tokens of version 3 have domains."""
        version = "token" if "x-user-domain-id" in headers else "access"
        request.env[environkeys.KEYSTONE_TOKEN_INFO] = {version: {}}

    def _read_cache(self, request: Request, access_key: str) -> tuple[SignerIdentity, str] | None:
        """Return the cached identity of an access key and its secret key."""
        cache = request.env.get(environkeys.CACHE)
        if cache is None or not self._settings.caches_secrets:
            return None
        entry = cache.get(_CACHE_KEY_PREFIX + access_key)
        if not isinstance(entry, list) or len(entry) != 3:
            return None
        headers, tenant, secret = entry
        if not isinstance(headers, dict) or not isinstance(tenant, dict) or not isinstance(secret, str):
            return None
        project_id, name = tenant.get("id"), tenant.get("name")
        if not isinstance(project_id, str) or not all(isinstance(text, str) for text in headers.values()):
            return None
        lower_headers = {str(key).lower(): text for key, text in headers.items()}
        return SignerIdentity(
            lower_headers, project_id, str(name or ""), lower_headers.get("x-user-id", "")
        ), secret

    def _cache_secret(
        self, request: Request, access_key: str, identity: SignerIdentity, details: AuthDetails
    ) -> None:
        """Read and cache the secret key, so that this filter validates later signatures."""
        cache = request.env.get(environkeys.CACHE)
        if cache is None or not self._settings.caches_secrets:
            return
        try:
            secret = self._keystone.get_secret_key(identity.user_id, access_key)
        except KeystoneUnavailable as error:
            self._log.warning(f"cannot cache a secret key of Keystone: {error}")
            return
        if secret is not None and details["check_signature"](secret):
            tenant = {"id": identity.project_id, "name": identity.project_name}
            entry = [identity.headers, tenant, secret]
            cache.set(_CACHE_KEY_PREFIX + access_key, entry, ttl_s=self._settings.secret_cache_duration)


def _make_filter(app: App, settings: S3TokenSettings, services: Services) -> S3Token:
    """Return the filter of a configuration section."""
    settings = validate_settings(settings)
    services.info.register("s3token", admin=True)
    return S3Token(app, settings, HTTPKeystone(settings), services.telemetry())


FILTER = FilterDeclaration(
    "s3token",
    S3TokenSettings,
    _make_filter,
    position=150,
    sample_lines=("# stands between s3api and keystoneauth",),
    left_of={"keystoneauth": "s3token identifies the user"},
)
