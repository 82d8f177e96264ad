"""Locks of objects: what must not be removed before some moment, or while it is held (decision 0016). Pure.

A lock is metadata of its object, ``GOVERNANCE 1795228430 ON``: the mode (``-``: none), until when in Unix
seconds, and whether there is a legal hold. What a change may do to it stands in ``X-Backend-Object-Lock``.
"""

from __future__ import annotations

from typing import NamedTuple

from swift.base.digits import is_digits

GOVERNANCE, COMPLIANCE = "GOVERNANCE", "COMPLIANCE"
_NONE, _ON, _OFF = "-", "ON", "OFF"
#: Permissions of a change: none, to end the legal hold, to bypass governance, to take back what was stored a
#: moment ago and never acknowledged, and to store the same body with the same lock again.
CHECK, MAY_RELEASE, MAY_BYPASS = "check", "release", "bypass"
MAY_WITHDRAW, MAY_REWRITE = "withdraw", "rewrite"


class ObjectLock(NamedTuple):
    """Lock of an object."""

    mode: str = ""
    until_s: int = 0
    has_legal_hold: bool = False

    def __str__(self) -> str:
        return f"{self.mode or _NONE} {self.until_s} {_ON if self.has_legal_hold else _OFF}"

    def is_retained(self, moment_s: float) -> bool:
        """Return True if its time is not over."""
        return bool(self.mode) and self.until_s > moment_s

    def is_locked(self, moment_s: float) -> bool:
        """Return True if the object must stay."""
        return self.has_legal_hold or self.is_retained(moment_s)

    def allows_removal(self, authority: frozenset[str], moment_s: float) -> bool:
        """Return True if the object may be deleted or replaced."""
        if MAY_WITHDRAW in authority:
            return True
        if self.has_legal_hold:
            return False
        return not self.is_retained(moment_s) or (self.mode == GOVERNANCE and MAY_BYPASS in authority)

    def allows(self, new: ObjectLock, authority: frozenset[str], moment_s: float) -> bool:
        """Return True if ``new`` may replace this lock; a weaker one needs the permission."""
        if self.has_legal_hold and not new.has_legal_hold and MAY_RELEASE not in authority:
            return False
        if not self.is_retained(moment_s):
            return True
        lasts = new.until_s >= self.until_s and new.mode in (self.mode, COMPLIANCE)
        return lasts or (self.mode == GOVERNANCE and MAY_BYPASS in authority)


NO_LOCK = ObjectLock()


def parse_lock(text: str | None) -> ObjectLock:
    """Return the lock in an object's metadata; an invalid one counts as a legal hold."""
    if not text:
        return NO_LOCK
    words = text.split(" ")
    if (
        len(words) != 3
        or words[0] not in (_NONE, GOVERNANCE, COMPLIANCE)
        or not is_digits(words[1])
        or words[2] not in (_ON, _OFF)
    ):
        return ObjectLock(has_legal_hold=True)
    return ObjectLock("" if words[0] == _NONE else words[0], int(words[1]), words[2] == _ON)


def parse_authority(text: str | None) -> frozenset[str]:
    """Return the set of permissions in the header."""
    return frozenset((text or "").split(","))


# --- what a container gives its new objects -----------------------------------------------------------

#: A container's objects can be locked, but are not by default.
ENABLED = "on"
DAY_S = 86400
UNITS = {"Days": 1, "Years": 365}


class DefaultRetention(NamedTuple):
    """The lock of new objects: a mode, and a number of days or years."""

    mode: str
    number: int
    unit: str

    def __str__(self) -> str:
        return f"{self.mode} {self.number} {self.unit}"

    def make_lock(self, moment_s: float) -> ObjectLock:
        """Return the lock of an object that is written at ``moment_s``."""
        return ObjectLock(self.mode, int(moment_s) + self.number * UNITS[self.unit] * DAY_S)


def parse_default_retention(text: str | None) -> DefaultRetention | None:
    """Return a container's default retention; None where new objects get no lock by default."""
    words = (text or "").split(" ")
    if len(words) != 3 or words[0] not in (GOVERNANCE, COMPLIANCE) or words[2] not in UNITS:
        return None
    return DefaultRetention(words[0], int(words[1]), words[2]) if is_digits(words[1]) else None
