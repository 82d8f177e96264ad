"""Reservations ahead of time: signed tickets and the computation of free bandwidth.

A ticket says for which account, in which direction, from when, until when and how many bytes a second. It is
bound to the account by an HMAC over all of that and is worth nothing before it begins or after it ends. What
may be promised is decided by ``unreserved_bandwidth``, which is pure: at no moment do reservations and
guarantees together exceed what may be promised.
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
    """The text is no valid ticket for this request; ``reason`` is a short phrase."""

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

    def is_active(self, now: float) -> bool:
        """Return True between its beginning and its end."""
        return self.begins <= now < self.ends

    @classmethod
    def of(cls, value: object) -> ReservedShare | None:
        """Return the reservation in a JSON value, or None if the value holds none."""
        if not isinstance(value, Mapping):
            return None
        texts = [value.get(name) for name in ("id", "account", "direction")]
        numbers = [value.get(name) for name in ("bytes", "begins", "ends")]
        if not all(isinstance(text, str) for text in texts) or texts[2] not in DIRECTIONS:
            return None
        if not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers):
            return None
        return cls(*(str(text) for text in texts), *(float(n) for n in numbers))  # type: ignore[arg-type]


def sign_ticket(reservation: ReservedShare, key: bytes) -> str:
    """Return the ticket of a reservation."""
    payload = json.dumps(asdict(reservation), sort_keys=True, separators=(",", ":")).encode()
    return f"{base64.urlsafe_b64encode(payload).decode()}.{_signature(payload, key)}"


def verify_ticket(ticket: str, key: bytes, *, account: str, direction: str, now: float) -> ReservedShare:
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
    if not reservation.is_active(now):
        raise BadTicket("over" if now >= reservation.ends else "not good yet")
    return reservation


def _signature(payload: bytes, key: bytes) -> str:
    return hmac.new(key, b"swift admission ticket\n" + payload, sha256).hexdigest()


def unreserved_bandwidth(
    reservations: Iterable[ReservedShare], *, promisable: float, begins: float, ends: float
) -> float:
    """Return the bytes a second that are free at every moment between two times; never below zero."""
    overlapping = [r for r in reservations if r.begins < ends and begins < r.ends]
    # The sum changes only where one begins.
    moments = {begins, *(max(begins, r.begins) for r in overlapping)}
    most = max(sum(r.bytes for r in overlapping if r.is_active(moment)) for moment in moments)
    return max(0.0, promisable - most)


def unexpired(reservations: Iterable[ReservedShare], now: float) -> dict[str, ReservedShare]:
    """Return the reservations that are not over, by id."""
    return {r.id: r for r in reservations if r.ends > now}
