"""Passwords: argon2id hashes (RFC 9106), verified in threads, and log-ins that are slowed after failures."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol, Unpack

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHash, VerificationError

from swift import green
from swift.base.calls import T, Ts
from swift.identity.names import InvalidIdentity
from swift.identity.turns import TooManyLogins, Turns

PASSWORD_MIN, PASSWORD_MAX = 8, 1024
#: Cost of a hash: OWASP's smallest for argon2id, since a proxy verifies many.
_TIME_COST, _MEMORY_KIB, _LANES = 2, 19 << 10, 1
#: Hashes that a worker computes at once; each takes its memory.
_THREADS = 2
#: Log-ins that wait for a thread; more are refused.
WAITING_MAX = 64
#: Seconds for which a password that was right is known without computing its hash.
KNOWN_S = 300.0
_KNOWN_MAX = 10_000


def validate_password(password: str, *, may_be_short: bool = False) -> str:
    """Return a password; raise ``InvalidIdentity`` without showing it."""
    least = 1 if may_be_short else PASSWORD_MIN
    if not least <= len(password) <= PASSWORD_MAX:
        raise InvalidIdentity("password", f"must have {least} to {PASSWORD_MAX} characters")
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in password):
        raise InvalidIdentity("password", "must have no control characters or halves of characters")
    return password


class Run(Protocol):
    """Calls a function in a thread."""

    def __call__(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Return the function's result."""


class Passwords:
    """Makes and verifies hashes."""

    def __init__(self, run: Run | None = None, monotonic: Callable[[], float] = time.monotonic):
        self._hasher = PasswordHasher(_TIME_COST, _MEMORY_KIB, _LANES)
        self._run: Run = run or green.ThreadPool(_THREADS, "passwords").call
        self._monotonic = monotonic
        self._turns = Turns(_THREADS, WAITING_MAX)
        self._secret = secrets.token_bytes(32)
        #: Hash and password under a key of this worker → when it was right.
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._nobody = self._hasher.hash(secrets.token_urlsafe(16))

    def make_hash(self, password: str, *, may_be_short: bool = False) -> str:
        """Return the hash of a new password in PHC's format; raise ``InvalidIdentity``."""
        valid = validate_password(password, may_be_short=may_be_short)
        return self._call("", self._hash, valid)

    def is_right(
        self,
        hashed: str,
        password: str,
        require_allowed: Callable[[], None] = lambda: None,
        *,
        network: str = "",
    ) -> bool:
        """Return True if a password has a hash. Without a hash it takes as long, and is wrong.

        ``require_allowed`` is called in the thread, before the hash is computed. The networks of clients take
        turns. Raises what ``require_allowed`` raises, and ``TooManyLogins`` if too many wait.
        """
        if len(password) > PASSWORD_MAX:
            password, hashed = "", ""
        mark = hmac.digest(self._secret, f"{hashed}\0{password}".encode("utf-8", "surrogatepass"), sha256)
        known_at = self._known.get(mark)
        if known_at is not None and self._monotonic() - known_at < KNOWN_S:
            return True
        found = self._call(network, self._verify, hashed or self._nobody, password, require_allowed)
        right = found and bool(hashed)
        if right:
            self._known.pop(mark, None)
            if len(self._known) >= _KNOWN_MAX:
                self._known.popitem(last=False)
            self._known[mark] = self._monotonic()
        return right

    def _hash(self, password: str) -> str:
        return self._hasher.hash(password)

    def _verify(self, hashed: str, password: str, require_allowed: Callable[[], None]) -> bool:
        require_allowed()
        try:
            return self._hasher.verify(hashed, password.encode("utf-8", "surrogatepass"))
        except (VerificationError, InvalidHash):
            return False

    def _call(self, network: str, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        with self._turns.turn(network):
            return self._run(function, *args)


# --- slowing ------------------------------------------------------------------------------------------

#: Failures without a pause, the first pause and the longest one.
FREE_FAILURES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 5, 1.0, 300.0
_COUNTED_MAX = 50_000


class LoginBrake:
    """Slows log-ins of one user from one network after failures. Others are not slowed."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic):
        self._monotonic = monotonic
        #: (user, network) → failures in a row, when the next log-in is allowed.
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def require_allowed(self, user: str, network: str) -> None:
        """Raise ``TooManyLogins`` while the user has to wait."""
        found = self._failures.get((user, network))
        left_s = 0.0 if found is None else found[1] - self._monotonic()
        if left_s > 0:
            raise TooManyLogins(left_s)

    def report(self, user: str, network: str, *, right: bool) -> None:
        """Count a log-in; a right one forgets the wrong ones before."""
        key = user, network
        count = self._failures.pop(key, (0, 0.0))[0]
        if right:
            return
        count += 1
        over = min(count - FREE_FAILURES, 32)
        pause_s = min(FIRST_PAUSE_S * 2**over, LONGEST_PAUSE_S) if over >= 0 else 0.0
        if len(self._failures) >= _COUNTED_MAX:
            self._failures.popitem(last=False)
        self._failures[key] = count, self._monotonic() + pause_s
