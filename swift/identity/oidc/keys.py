"""The discovery document and the keys of a provider, fetched once for all requests that need them.

Keys are fresh as long as the provider's ``Cache-Control`` allows, within bounds. While the provider is away,
the keys of the last success serve until ``STALE_S_MAX`` has passed. A token with an unknown key has them
fetched again, at most once in ``REFRESH_INTERVAL_S``. A fetch runs in a green thread of its own: requests
that need its result wait for it, and other requests go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from swift import green
from swift.base.clock import Clock
from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.fetch import Fetch, ProviderResponse
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.tokens import SigningKey, Token, import_keys, parse_json

#: Seconds for which fetched keys are used without another request: a key that the provider removes is
#: refused after that time at the latest.
FRESH_S_MIN, FRESH_S_DEFAULT, FRESH_S_MAX = 60.0, 600.0, 3600.0
#: Seconds after their fetch for which keys are used while the provider is away.
STALE_S_MAX = 6 * 3600.0
#: Seconds between two fetches for the sake of tokens with unknown keys.
REFRESH_INTERVAL_S = 60.0
#: Seconds between two attempts while the provider is away.
RETRY_S = 15.0
#: Seconds for which a request waits for the provider.
WAIT_S = 12.0


@dataclass(frozen=True)
class Published:
    """The result of a fetch."""

    document: JsonObject = field(repr=False)
    keys: list[SigningKey]
    fetched_at: float
    fresh_s: float

    def text(self, name: str) -> str:
        """Return a text of the discovery document, "" if there is none."""
        value = self.document.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return a list of texts of the discovery document, which may be empty."""
        value = self.document.get(name)
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


class PublishedKeys:
    """The discovery document and the keys of one provider."""

    def __init__(self, provider: Provider, fetch: Fetch, clock: Clock, *, wait_s: float = WAIT_S):
        self._provider = provider
        self._fetch = fetch
        self._clock = clock
        self._wait_s = wait_s
        self._published: Published | None = None
        #: The reason for which the last fetch failed, "" if it did not.
        self._failure = ""
        self._tried_at = -math.inf
        #: Set when the fetch under way has ended.
        self._ended: green.Event | None = None

    def current(self) -> Published:
        """Return what the provider publishes; raises ``OidcError`` with the cause ``UNAVAILABLE``."""
        published = self._published
        if published is not None and self._age(published) < published.fresh_s:
            return published
        # While the provider is away, only the first request with stale keys waits for it.
        self._refresh(RETRY_S, waits=not (self._failure and self._is_usable(published)))
        published = self._published
        if published is None or not self._is_usable(published):
            raise self._unavailable()
        return published

    def keys_of(self, token: Token) -> list[SigningKey]:
        """Return the keys that may have signed a token, at least one; raises ``OidcError``."""
        found = _fitting(self.current(), token)
        if not found and token.kid is not None:
            self._refresh(REFRESH_INTERVAL_S)
            found = _fitting(self.current(), token)
            if not found and self._failure:
                raise self._unavailable()
        if not found:
            raise OidcError("the token's key is not one of the provider's")
        if token.kid is None and len(found) > 1:
            raise OidcError("the token does not name its key, and the provider has several")
        return found

    def _is_usable(self, published: Published | None) -> bool:
        return published is not None and self._age(published) < STALE_S_MAX

    def _age(self, published: Published) -> float:
        return self._clock.monotonic() - published.fetched_at

    def _unavailable(self) -> OidcError:
        return OidcError(self._failure or "the provider does not respond in time", OidcCause.UNAVAILABLE)

    def _refresh(self, interval_s: float, *, waits: bool = True) -> None:
        """Wait for the fetch under way, or for a new one if the last began at least ``interval_s`` ago."""
        if self._ended is None:
            now = self._clock.monotonic()
            if now - self._tried_at < interval_s:
                return
            self._tried_at = now
            self._ended = green.Event()
            green.spawn_detached(self._update, self._ended)
        if waits:
            self._ended.wait(self._wait_s)

    def _update(self, ended: green.Event) -> None:
        # Not the caller's green thread, which ends when its client goes away.
        try:
            self._published = self._fetch_all()
            self._failure = ""
        except OidcError as error:
            self._failure = str(error)
        finally:
            self._ended = None
            ended.set()

    def _fetch_all(self) -> Published:
        discovery = self._get(f"{self._provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            document = parse_json(discovery.body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise self._broken("its discovery document is no JSON object")
        if document.get("issuer") != self._provider.issuer:
            raise self._broken("its discovery document has another issuer")
        try:
            url = self._provider.check_endpoint(document.get("jwks_uri")).geturl()
        except InvalidValue as error:
            raise self._broken(f"jwks_uri {error}")
        response = self._get(url)
        keys = import_keys(response.body)
        return Published(document, keys, self._clock.monotonic(), _fresh_s(response))

    def _get(self, url: str) -> ProviderResponse:
        response = self._fetch(url)
        if response.status != 200:
            raise self._broken(f"status {response.status}")
        return response

    def _broken(self, reason: str) -> OidcError:
        return OidcError(f"provider {self._provider.name}: {reason}", OidcCause.UNAVAILABLE)


def _fitting(published: Published, token: Token) -> list[SigningKey]:
    return [key for key in published.keys if key.fits(token)]


def _fresh_s(response: ProviderResponse) -> float:
    """Return the seconds for which a response is fresh (RFC 9111), within our bounds."""
    fresh_s = FRESH_S_DEFAULT
    for directive in response.headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.strip().partition("=")
        value = value.strip('"')
        if name in ("no-store", "no-cache"):
            return FRESH_S_MIN
        if name == "max-age" and is_digits(value):
            age = response.headers.get("age", "")
            fresh_s = float(value[:9]) - (float(age[:9]) if is_digits(age) else 0.0)
    return min(max(fresh_s, FRESH_S_MIN), FRESH_S_MAX)
