"""Log-ins under way: a signed cookie of the browser, and the values that are derived from it."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field

from swift.base.clock import Clock
from swift.identity.oidc.tokens import decode_base64url, encode_base64url

#: Seconds from the beginning of a log-in to its end.
LIFETIME_S = 600
KEY_BYTES_MIN = 32
#: Log-ins that a browser may have under way at once; their cookies must fit into one header.
_SLOTS = 4
_COOKIE = "swift-oidc"
_COOKIE_CHARACTERS_MAX = 4096
#: Ended log-ins that are remembered; the provider refuses a second use of the code of others.
ENDED_MAX = 10000


@dataclass(frozen=True)
class Attempt:
    """The content of a cookie."""

    provider: str
    return_to: str
    secret: str = field(repr=False)
    #: Unix seconds.
    expires_at: int


class Attempts:
    """Begins log-ins, and finds those that the cookie of a browser continues."""

    def __init__(self, key: bytes, clock: Clock, *, ended_max: int = ENDED_MAX):
        if len(key) < KEY_BYTES_MIN:
            raise ValueError(f"a key of at least {KEY_BYTES_MIN} bytes is needed")
        self._key = key
        self._clock = clock
        self._ended_max = ended_max
        #: The secrets of log-ins that have ended, in the order of their end → when they expire.
        self._ended: dict[str, int] = {}

    def begin(self, provider: str, return_to: str) -> Attempt:
        """Return a new log-in."""
        return Attempt(provider, return_to, secrets.token_urlsafe(32), int(self._clock.time()) + LIFETIME_S)

    def state(self, attempt: Attempt) -> str:
        """Return the parameter ``state``, which a callback must have."""
        return self._derive("state", attempt.secret)

    def nonce(self, attempt: Attempt) -> str:
        """Return the nonce, which the ID token must have."""
        return self._derive("nonce", attempt.secret)

    def code_verifier(self, attempt: Attempt) -> str:
        """Return the code verifier of PKCE, of 43 characters."""
        return self._derive("code verifier", attempt.secret)

    def sign(self, attempt: Attempt) -> str:
        """Return the value of the cookie."""
        members = [attempt.provider, attempt.return_to, attempt.secret, attempt.expires_at]
        text = encode_base64url(json.dumps(members).encode())
        return f"{text}.{self._derive('cookie', text)}"

    def read(self, cookie: str, *, provider: str, state: str) -> Attempt | None:
        """Return the log-in of a cookie if it is that of a provider and a state, and has not expired."""
        text, _, signature = cookie.partition(".")
        if not _are_equal(signature, self._derive("cookie", text)):
            return None
        attempt = Attempt(*json.loads(decode_base64url(text)))
        if attempt.provider != provider or attempt.expires_at <= self._clock.time():
            return None
        return attempt if _are_equal(state, self.state(attempt)) else None

    def use(self, attempt: Attempt) -> bool:
        """End a log-in; return False if it has ended before in this process."""
        if attempt.secret in self._ended:
            return False
        if len(self._ended) >= self._ended_max:
            now = self._clock.time()
            self._ended = {secret: end for secret, end in self._ended.items() if end > now}
        if len(self._ended) >= self._ended_max:
            del self._ended[next(iter(self._ended))]
        self._ended[attempt.secret] = attempt.expires_at
        return True

    def _derive(self, purpose: str, text: str) -> str:
        message = f"swift OIDC log-in: {purpose}\0{text}".encode("utf-8", "surrogatepass")
        return encode_base64url(hmac.new(self._key, message, hashlib.sha256).digest())


def cookie_header(state: str, value: str, lifetime_s: int, redirect_uri: str) -> str:
    """Return a ``Set-Cookie`` header; a lifetime of 0 removes the cookie."""
    secure = "; Secure" if redirect_uri.startswith("https:") else ""
    name = _cookie_name(state, redirect_uri)
    return f"{name}={value}; Path=/; Max-Age={lifetime_s}; HttpOnly; SameSite=Lax{secure}"


def read_cookie(header: str, state: str, redirect_uri: str) -> str:
    """Return the cookie of a state from a ``Cookie`` header, "" if it is not there exactly once."""
    name = _cookie_name(state, redirect_uri)
    pairs = (part.strip().partition("=") for part in header.split(";"))
    values = [value for each, _, value in pairs if each == name]
    return values[0] if len(values) == 1 and len(values[0]) <= _COOKIE_CHARACTERS_MAX else ""


def _cookie_name(state: str, redirect_uri: str) -> str:
    # With this prefix browsers take the cookie from this very host only, and over TLS.
    prefix = "__Host-" if redirect_uri.startswith("https:") else ""
    return f"{prefix}{_COOKIE}-{ord(state[0]) % _SLOTS if state else 0}"


def _are_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
