"""Signatures of S3 requests are checked by an identity service (spec: middleware.md §18).

The S3 filter says what was signed; the identity service says by whom, which for keystoneauth is the same as a
token. The account in the path becomes that of the project. A secret key that was asked for once is kept in
memcached, so that the service is not asked for every request, and chunks of bodies can be checked.
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
from swift.middleware.s3token.keystone import HTTPKeystone, Keystone, Unreachable
from swift.middleware.s3token.settings import S3TokenSettings, checked
from swift.middleware.s3token.tokens import IDENTITY_HEADERS, Known, known_of
from swift.telemetry.telemetry import Telemetry

_CACHED = "s3secret/"
_ERRORS = {
    "AccessDenied": (401, "Access denied"),
    "InvalidURI": (400, "Could not parse the specified URI"),
    "ServiceUnavailable": (503, "The identity service does not answer"),
}


class S3Token(Filter):
    """Says who signed an S3 request."""

    def __init__(self, app: App, settings: S3TokenSettings, keystone: Keystone, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._keystone = keystone
        self._log = telemetry.log

    def handle(self, request: Request) -> Response:
        """Identify who signed; what a client says of itself is not believed."""
        env = request.env
        if environkeys.KEYSTONE_TOKEN_INFO not in env:
            for name in IDENTITY_HEADERS:
                request.headers.pop(name, None)
        details: AuthDetails | None = env.get(environkeys.S3_AUTH_DETAILS)
        if details is None:
            return self.forward(request)
        entity = request.entity
        if entity is None:
            return self._refused(request, "InvalidURI")
        access, _, forced = details["access_key"].partition(":")
        try:
            known = self._known(request, access, details)
        except Unreachable as error:
            self._log.error(str(error), txid=env.get(environkeys.TRANS_ID))
            return self._refused(request, "ServiceUnavailable")
        if known is None:
            return self._refused(request, "AccessDenied")
        request.headers.update(known.headers)
        if entity.path.account == details["access_key"]:
            path = entity.path._replace(account=self._settings.reseller_prefix + (forced or known.project_id))
            request.name(Entity(entity.version, path))
        return self.forward(request)

    def _refused(self, request: Request, code: str) -> Response:
        if self._settings.delay_auth_decision and code != "InvalidURI":
            return self.forward(request)
        status, text = _ERRORS[code]
        inner = f"  <Code>{code}</Code>\r\n  <Message>{text}</Message>\r\n"
        body = f'<?xml version="1.0" encoding="UTF-8"?>\r\n<Error>\r\n{inner}</Error>\r\n'
        return Response(status, {"content-type": "text/xml"}, body.encode())

    # who it is

    def _known(self, request: Request, access: str, details: AuthDetails) -> Known | None:
        """Return the signer from the cache or from Keystone; raises ``Unreachable``."""
        cached = self._cached(request, access)
        if cached is not None and details["check_signature"](cached[1]):
            self._tell(request, cached[0].headers)
            return cached[0]
        document, known = None, None
        for text in (details["string_to_sign"], *details["alternative_strings_to_sign"]):
            credentials = {
                "access": access,
                "token": urlsafe_b64encode(text).decode("ascii"),
                "signature": details["signature"],
            }
            document = self._keystone.check(credentials)
            known = known_of(document) if document is not None else None
            if known is not None:
                break
        if document is None or known is None:
            return None
        request.env[environkeys.KEYSTONE_TOKEN_INFO] = document
        self._keep(request, access, known, details)
        return known

    def _tell(self, request: Request, headers: HeaderMap) -> None:
        """Set the version of a token: only tokens of version 3 have domains."""
        version = "token" if "x-user-domain-id" in headers else "access"
        request.env[environkeys.KEYSTONE_TOKEN_INFO] = {version: {}}

    def _cached(self, request: Request, access: str) -> tuple[Known, str] | None:
        """Return the cached owner of an access key and its secret."""
        cache = request.env.get(environkeys.CACHE)
        if cache is None or not self._settings.keeps_secrets:
            return None
        entry = cache.get(_CACHED + access)
        if not isinstance(entry, list) or len(entry) != 3:
            return None
        headers, tenant, secret = entry
        if not isinstance(headers, dict) or not isinstance(tenant, dict) or not isinstance(secret, str):
            return None
        project_id, name = tenant.get("id"), tenant.get("name")
        if not isinstance(project_id, str) or not all(isinstance(text, str) for text in headers.values()):
            return None
        shown = {str(key).lower(): text for key, text in headers.items()}
        return Known(shown, project_id, str(name or ""), shown.get("x-user-id", "")), secret

    def _keep(self, request: Request, access: str, known: Known, details: AuthDetails) -> None:
        """Ask for the secret key once, so that the next signatures are checked here."""
        cache = request.env.get(environkeys.CACHE)
        if cache is None or not self._settings.keeps_secrets:
            return
        try:
            secret = self._keystone.secret(known.user_id, access)
        except Unreachable as error:
            self._log.warning(f"cannot cache a secret key of Keystone: {error}")
            return
        if secret is not None and details["check_signature"](secret):
            tenant = {"id": known.project_id, "name": known.project_name}
            entry = [known.headers, tenant, secret]
            cache.set(_CACHED + access, entry, ttl_s=self._settings.secret_cache_duration)


def _make(app: App, settings: S3TokenSettings, services: Services) -> S3Token:
    """Return the filter of a configuration section."""
    settings = checked(settings)
    services.info.register("s3token", admin=True)
    return S3Token(app, settings, HTTPKeystone(settings), services.telemetry())


FILTER = FilterDeclaration(
    "s3token",
    S3TokenSettings,
    _make,
    position=150,
    sample_lines=("# stands between s3api and keystoneauth",),
    left_of={"keystoneauth": "the user would not be identified yet"},
)
