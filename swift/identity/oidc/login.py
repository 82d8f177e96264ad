"""Log-in of people: the authorization code flow with PKCE (OpenID Connect Core 3.1, RFC 7636, RFC 9700).

A log-in begins and ends at a server that keeps nothing between both: the browser has a signed cookie for some
minutes. The state, the nonce and the PKCE verifier are derived from the cookie's random value by the server's
key, so that neither the browser nor the URL has them in advance. A callback without the cookie of its state
is refused, which excludes log-ins that another browser began.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qsl, quote_plus, urlencode

from swift.base.clock import Clock
from swift.base.errors import InvalidValue
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.identity.oidc.attempts import (
    LIFETIME_S,
    Attempt,
    Attempts,
    cookie_header,
    read_cookie,
)
from swift.identity.oidc.errors import OidcCause, OidcError, inert
from swift.identity.oidc.provider import Provider, check_url, is_provider_name
from swift.identity.oidc.tokens import encode_base64url, parse_json
from swift.identity.oidc.verifier import Claims, TokenVerifier

PREFIX = "/auth/oidc"
_PARAMETERS_MAX = 20
_CODE_CHARACTERS_MAX = 4096
_RETURN_CHARACTERS_MAX = 512
#: Addresses at which a command waits for the end of a log-in (RFC 8252, 7.3).
_LOOPBACK = ("127.0.0.1", "::1")
_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True)
class LoginResult:
    """A person who has logged in."""

    provider: Provider
    claims: Claims
    groups: tuple[str, ...]
    roles: tuple[str, ...]
    #: A path of ours, or a URL of the loopback interface. Any page may have begun the log-in: nothing secret
    #: goes to such a URL unless the person has confirmed that a command waits there.
    return_to: str
    #: Headers of the response that the caller makes; they end the log-in in the browser.
    headers: HeaderMap


class OidcSession(NamedTuple):
    """The result of a log-in that leads to the console (``environkeys.OIDC_SESSION``)."""

    #: The token of the Swift API.
    token: str
    return_to: str


class _Refused(OidcError):
    """A request of a browser is refused with a status."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


class PeopleLogin:
    """Both ends of a log-in, for any number of providers."""

    def __init__(
        self,
        find: Callable[[str], TokenVerifier | None],
        key: bytes,
        clock: Clock,
        *,
        log: Callable[[str], None],
        public_url: str = "",
    ):
        """Take the look-up of a provider by its name and the key that signs cookies, of 32 bytes or more.

        ``public_url`` is that of the cluster, for providers without a redirect URI of their own. Refusals are
        passed to ``log``.
        """
        self._find = find
        self._attempts = Attempts(key, clock)
        self._log = log
        self._public_url = public_url.rstrip("/")

    def begin(self, request: Request) -> Response:
        """Return the redirect to the provider, for ``GET /auth/oidc/<provider>/login?return_to=…``."""
        try:
            return self._begin(request)
        except OidcError as error:
            return self._refuse(request, error, {})

    def finish(self, request: Request) -> LoginResult | Response:
        """Return the person who logged in, for ``GET /auth/oidc/<provider>/callback``; else an error page."""
        headers: HeaderMap = {}
        try:
            return self._finish(request, headers)
        except OidcError as error:
            return self._refuse(request, error, headers)

    def _begin(self, request: Request) -> Response:
        verifier = self._verifier(request, "login")
        provider = verifier.provider
        return_to = _parameters(request).get("return_to", "/")
        try:
            check_return_to(return_to)
        except InvalidValue as error:
            raise _Refused(400, f"return_to: {error}")
        redirect_uri = self._redirect_uri(provider)
        endpoint = _endpoint(verifier, "authorization_endpoint")
        methods = verifier.published.current().texts("code_challenge_methods_supported")
        if methods and "S256" not in methods:
            raise OidcError(
                f"provider {provider.name} does not support PKCE with S256", OidcCause.UNAVAILABLE
            )
        attempt = self._attempts.begin(provider.name, return_to)
        digest = hashlib.sha256(self._attempts.code_verifier(attempt).encode()).digest()
        state = self._attempts.state(attempt)
        query = urlencode(
            {
                "response_type": "code",
                "client_id": provider.client_id,
                "redirect_uri": redirect_uri,
                "scope": " ".join(provider.scopes),
                "state": state,
                "nonce": self._attempts.nonce(attempt),
                "code_challenge": encode_base64url(digest),
                "code_challenge_method": "S256",
            }
        )
        location = f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
        cookie = cookie_header(state, self._attempts.sign(attempt), LIFETIME_S, redirect_uri)
        return Response(303, {**_HEADERS, "location": location, "set-cookie": cookie})

    def _finish(self, request: Request, headers: HeaderMap) -> LoginResult:
        """Return the result; ``headers`` gets what ends the log-in in the browser."""
        verifier = self._verifier(request, "callback")
        provider = verifier.provider
        parameters = _parameters(request)
        state = parameters.get("state", "")
        redirect_uri = self._redirect_uri(provider)
        cookie = read_cookie(request.headers.get("cookie", ""), state, redirect_uri)
        attempt = self._attempts.read(cookie, provider=provider.name, state=state)
        if attempt is None:
            raise _Refused(400, "the log-in was not begun in this browser, or it took too long; begin again")
        headers["set-cookie"] = cookie_header(state, "", 0, redirect_uri)
        if not self._attempts.use(attempt):
            raise _Refused(400, "the log-in has ended already; begin again")
        _check_sender(verifier, parameters)
        if "error" in parameters:
            reason = f"{parameters['error']}: {parameters.get('error_description', '')}".rstrip(": ")
            raise _Refused(403, f"the provider refused the log-in: {reason}")
        code = parameters.get("code", "")
        if not code or len(code) > _CODE_CHARACTERS_MAX:
            raise _Refused(400, "the provider's response has no code")
        token = self._redeem(verifier, attempt, code, redirect_uri)
        claims = verifier.verify(token, nonce=self._attempts.nonce(attempt), audience=provider.client_id)
        kept = {name: _HEADERS[name] for name in ("cache-control", "referrer-policy")}
        return LoginResult(
            provider, claims, claims.groups, claims.roles, attempt.return_to, {**kept, **headers}
        )

    def _redeem(self, verifier: TokenVerifier, attempt: Attempt, code: str, redirect_uri: str) -> str:
        """Return the ID token that the provider gives for a code."""
        provider = verifier.provider
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": self._attempts.code_verifier(attempt),
        }
        authorization = ""
        methods = verifier.published.current().texts("token_endpoint_auth_methods_supported")
        if provider.client_secret and (not methods or "client_secret_basic" in methods):
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = provider.client_id
            if provider.client_secret:
                form["client_secret"] = provider.client_secret
        response = verifier.fetch(_endpoint(verifier, "token_endpoint"), form, authorization=authorization)
        try:
            document = parse_json(response.body)
        except ValueError:
            document = None
        members = document if isinstance(document, dict) else {}
        if 400 <= response.status <= 499:
            raise OidcError(f"the provider refused the code: {members.get('error', response.status)}")
        token = members.get("id_token")
        if response.status != 200 or not isinstance(token, str):
            reason = f"its response to the code has status {response.status} and no ID token"
            raise OidcError(f"provider {provider.name}: {reason}", OidcCause.UNAVAILABLE)
        return token

    def _verifier(self, request: Request, action: str) -> TokenVerifier:
        name = request.raw_path.removeprefix(f"{PREFIX}/").removesuffix(f"/{action}")
        is_one = request.raw_path == f"{PREFIX}/{name}/{action}" and is_provider_name(name)
        verifier = self._find(name) if is_one else None
        if verifier is None:
            raise _Refused(404, "there is no such provider")
        if request.method != "GET":
            raise _Refused(405, "a log-in is a GET request")
        return verifier

    def _redirect_uri(self, provider: Provider) -> str:
        if not provider.redirect_uri and not self._public_url:
            reason = "has no redirect URI, and the cluster no public URL"
            raise OidcError(f"provider {provider.name} {reason}", OidcCause.UNAVAILABLE)
        return provider.redirect_uri or f"{self._public_url}{PREFIX}/{provider.name}/callback"

    def _refuse(self, request: Request, error: OidcError, headers: HeaderMap) -> Response:
        self._log(f"OIDC log-in refused at {inert(request.raw_path)}: {error}")
        status = error.status if isinstance(error, _Refused) else 503 if error.is_unavailable else 403
        page = f"<html><h1>Log-in refused</h1><p>{escape(str(error))}</p></html>"
        allow = {"allow": "GET"} if status == 405 else {}
        return error_response(status, page, {**_HEADERS, **headers, **allow})


def check_return_to(url: str) -> None:
    """Check where a log-in may lead: to a path of ours, or to a port of the loopback interface.

    Raises ``InvalidValue`` with the reason.
    """
    if len(url) > _RETURN_CHARACTERS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidValue(
            f"must have at most {_RETURN_CHARACTERS_MAX} printable ASCII characters and no space"
        )
    if url.startswith("/") and not url.startswith("//") and "\\" not in url:
        return
    try:
        parts = check_url(url)
        is_command = parts.scheme == "http" and parts.hostname in _LOOPBACK and parts.port
    except (InvalidValue, ValueError):
        is_command = None
    if not is_command:
        raise InvalidValue("must be a path, or http://127.0.0.1:PORT/ of a command")


def _parameters(request: Request) -> dict[str, str]:
    """Return the query's parameters, each once."""
    try:
        pairs = parse_qsl(
            request.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX, errors="strict"
        )
    except ValueError:
        raise _Refused(400, "the query is invalid")
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise _Refused(400, "the query has a parameter twice")
    return parameters


def _check_sender(verifier: TokenVerifier, parameters: dict[str, str]) -> None:
    """Check which provider a callback comes from (RFC 9207)."""
    issuer = parameters.get("iss")
    published = verifier.published.current().document
    if issuer is None and published.get("authorization_response_iss_parameter_supported") is not True:
        return
    if issuer != verifier.provider.issuer:
        raise _Refused(400, "the response comes from another provider")


def _endpoint(verifier: TokenVerifier, name: str) -> str:
    """Return a URL of the discovery document; raises ``OidcError``."""
    provider = verifier.provider
    try:
        return provider.check_endpoint(verifier.published.current().text(name)).geturl()
    except InvalidValue as error:
        raise OidcError(f"provider {provider.name}: {name} {error}", OidcCause.UNAVAILABLE)
