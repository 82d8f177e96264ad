"""Errors of object engines; the object server translates them to statuses."""

from __future__ import annotations

from swift.base.errors import SwiftError
from swift.base.timestamp import Timestamp


class StoreError(SwiftError):
    """An object engine cannot do what was asked."""


class HashCollision(StoreError):
    """The files belong to an object of another name (403)."""


class FilesChanged(StoreError):
    """Files kept changing while they were being opened (503)."""


class Damaged(StoreError):
    """Files contradict themselves; the engine quarantines them.

    With ``is_misplaced`` they are sound but of a name that does not belong into this hash directory.
    """

    def __init__(self, reason: str, *, is_misplaced: bool = False):
        super().__init__(reason)
        self.is_misplaced = is_misplaced


class MisplacedLeft(StoreError):
    """Something misplaced was left where it is, because the hash path settings may be what is wrong."""


class CorruptBody(StoreError):
    """Stored bytes do not match their checksum; the object was quarantined."""


class BadFragmentIndex(StoreError):
    """A fragment archive without a usable index."""


class AlreadyReserved(StoreError):
    """The object is promised to another writer; ``writer`` is the timestamp of its write, zero if unknown.

    With ``is_over`` that writer vanished at an unknown point, and only a newer writer may follow it.
    """

    def __init__(self, writer: Timestamp, *, is_over: bool = False):
        super().__init__(f"reserved by {writer.internal}")
        self.writer = writer
        self.is_over = is_over
