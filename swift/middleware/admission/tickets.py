"""Reservations ahead of time: tickets that are signed, and the list of what is promised.

A ticket says for which account, in which direction, from when, until when and how many bytes a second. It is
bound to the account by an HMAC over all of that and is worth nothing before it begins or after it ends. What
may be promised is decided by ``free_for``, which is pure: at no moment do reservations and guarantees
together exceed what may be promised.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256

from swift.base.errors import SwiftError

READ, WRITE = "read", "write"
DIRECTIONS = (READ, WRITE)
#: A ticket longer than this is none.
_TEXT_MAX = 2048


class BadTicket(SwiftError):
    """The text is no ticket of ours, or not for this request; ``reason`` is a word."""

    def __init__(self, reason: str):
        super().__init__(f"the ticket is {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReservedShare:
    """Bandwidth that a ticket reserves; times in Unix seconds."""

    id: str
    account: str
    direction: str
    bytes: float
    begins: float
    ends: float

    @property
    def key(self) -> str:
        """The name of its class."""
        return f"ticket:{self.id}"

    def holds(self, now: float) -> bool:
        """Return True if it is good now."""
        return self.begins <= now < self.ends

    @classmethod
    def of(cls, value: object) -> ReservedShare | None:
        """Return a reservation from a value of JSON, None when it is none."""
        if not isinstance(value, Mapping):
            return None
        texts = [value.get(name) for name in ("id", "account", "direction")]
        numbers = [value.get(name) for name in ("bytes", "begins", "ends")]
        if not all(isinstance(text, str) for text in texts) or texts[2] not in DIRECTIONS:
            return None
        if not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers):
            return None
        return cls(*(str(text) for text in texts), *(float(n) for n in numbers))  # type: ignore[arg-type]


def signed(reservation: ReservedShare, key: bytes) -> str:
    """Return the ticket of a reservation."""
    payload = json.dumps(asdict(reservation), sort_keys=True, separators=(",", ":")).encode()
    return f"{base64.urlsafe_b64encode(payload).decode()}.{_signature(payload, key)}"


def checked(ticket: str, key: bytes, *, account: str, direction: str, now: float) -> ReservedShare:
    """Return the reservation of a valid ticket; raises ``BadTicket``."""
    payload, dot, signature = ticket.partition(".")
    if not dot or len(ticket) > _TEXT_MAX or not ticket.isascii():
        raise BadTicket("malformed")
    try:
        raw = base64.urlsafe_b64decode(payload.encode())
    except (binascii.Error, ValueError):
        raise BadTicket("malformed")
    if not hmac.compare_digest(_signature(raw, key), signature):
        raise BadTicket("forged")
    reservation = ReservedShare.of(json.loads(raw))
    if reservation is None:
        raise BadTicket("malformed")
    if reservation.account != account:
        raise BadTicket("for another account")
    if reservation.direction != direction:
        raise BadTicket(f"for {reservation.direction}s only")
    if not reservation.holds(now):
        raise BadTicket("over" if now >= reservation.ends else "not good yet")
    return reservation


def _signature(payload: bytes, key: bytes) -> str:
    return hmac.new(key, b"swift admission ticket\n" + payload, sha256).hexdigest()


def free_for(
    reservations: Iterable[ReservedShare], *, promisable: float, begins: float, ends: float
) -> float:
    """Bytes a second without a reservation at any moment between two times; never below zero."""
    rivals = [r for r in reservations if r.begins < ends and begins < r.ends]
    # The sum changes only where one begins.
    moments = {begins, *(max(begins, r.begins) for r in rivals)}
    most = max(sum(r.bytes for r in rivals if r.holds(moment)) for moment in moments)
    return max(0.0, promisable - most)


def live(reservations: Iterable[ReservedShare], now: float) -> dict[str, ReservedShare]:
    """Those that are not over, by id."""
    return {r.id: r for r in reservations if r.ends > now}
