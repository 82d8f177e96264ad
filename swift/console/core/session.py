"""Sessions of the console: a token of the Swift API in a cookie. The proxies remember nothing about them."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Generic, TypeVar

from swift.console.core.web import read_cookie
from swift.gateway.subrequest import Forward, open_response
from swift.http.request import Request
from swift.http.response import Response

#: With this prefix browsers take the cookie from this very host, over TLS or from the loopback interface.
COOKIE = "__Host-swift-console"
#: Seconds for which the facts of a session are used without reading them again.
FRESH_S = 5.0
_KEPT_MAX = 1000
_TOKEN_CHARACTERS_MAX = 3900
_ANSWER_BYTES_MAX = 1 << 20
V = TypeVar("V")


@dataclass(frozen=True)
class Session:
    """A person who has logged in."""

    token: str = field(repr=False)
    #: ``TENANT:NAME``, or ``TENANT:role/ROLE/SESSION``.
    name: str
    tenant: str
    account: str
    is_operator: bool
    #: True for those who may do all in the account of their tenant.
    is_owner: bool
    #: Unix time.
    ends: float

    @property
    def digest(self) -> str:
        """A name of the session that is no secret."""
        return sha256(self.token.encode()).hexdigest()

    @property
    def csrf_token(self) -> str:
        """The value that requests of the console's own pages carry."""
        digest = hmac.digest(self.token.encode(), b"swift console: a request that changes", "sha256")
        return urlsafe_b64encode(digest).decode("ascii").rstrip("=")

    def is_csrf_token(self, text: str) -> bool:
        """Return True for the value; compares in constant time."""
        return hmac.compare_digest(self.csrf_token.encode(), text.encode("utf-8", "surrogatepass"))


class RecentValues(Generic[V]):
    """Values by session for some seconds, of the most recent sessions only."""

    def __init__(self, life_s: float, now: Callable[[], float] = time.monotonic, size_max: int = _KEPT_MAX):
        self._life_s = life_s
        self._now = now
        self._size_max = size_max
        self._kept: OrderedDict[str, tuple[V, float]] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return a value that is not too old."""
        found = self._kept.get(key)
        return found[0] if found is not None and found[1] > self._now() else None

    def put(self, key: str, value: V) -> None:
        """Keep a value."""
        self._kept[key] = value, self._now() + self._life_s
        self._kept.move_to_end(key)
        while len(self._kept) > self._size_max:
            self._kept.popitem(last=False)

    def forget(self, key: str) -> None:
        """Drop a value."""
        self._kept.pop(key, None)


class Sessions:
    """Reads the sessions of requests."""

    def __init__(self, forward: Forward):
        """``forward`` leads to the filter ``swiftauth``."""
        self._forward = forward
        self._kept: RecentValues[Session] = RecentValues(FRESH_S)

    def find(self, request: Request) -> Session | None:
        """Return the session of a request's cookie; None without a valid one."""
        token = read_cookie(request, COOKIE)
        return None if token is None else self.of_token(token, request)

    def of_token(self, token: str, request: Request) -> Session | None:
        """Return the session of a token; None if it is not valid. Raises ``SessionUnknown``."""
        if len(token) > _TOKEN_CHARACTERS_MAX or not token.isascii() or not token.isprintable():
            return None
        digest = sha256(token.encode()).hexdigest()
        known = self._kept.get(digest)
        if known is not None and known.ends > time.time():
            return known
        headers = {"host": request.headers.get("host", ""), "x-auth-token": token}
        sub = Request("GET", "/auth/caller", headers, scheme=request.scheme)
        sub.remote_addr = request.remote_addr
        with open_response(self._forward, sub) as response:
            data = response.read_body(_ANSWER_BYTES_MAX)
        if response.status in (401, 403, 404):
            self._kept.forget(digest)
            return None
        if response.status != 200:
            raise SessionUnknown(response)
        facts = json.loads(data)
        session = Session(
            token,
            str(facts["name"]),
            str(facts["tenant"]),
            str(facts["account"]),
            is_operator=facts["operator"] is True,
            is_owner=facts["owner"] is True,
            ends=float(facts["ends"]),
        )
        self._kept.put(digest, session)
        return session

    def end(self, session: Session) -> None:
        """Forget a session that has ended, here; its token is refused everywhere."""
        self._kept.forget(session.digest)


class SessionUnknown(Exception):
    """The cluster cannot tell whose a session is; it has the response."""

    def __init__(self, response: Response):
        super().__init__(f"status {response.status}")
        self.status = response.status


def session_cookie(token: str) -> str:
    """Return the ``Set-Cookie`` header of a session; an empty token removes it."""
    end = "" if token else "; Max-Age=0"
    return f"{COOKIE}={token}; Path=/; HttpOnly; Secure; SameSite=Strict{end}"
