"""Why a change with conditions is tried again, and how often (decision 0011)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.restamp import restamped

T = TypeVar("T")
#: A change is tried so often, and so long, seconds.
TRIES = 4
PATIENCE_S = 10.0


class TryAgain(SwiftError):
    """Nodes did not carry out a change, but may do so next time."""

    def __init__(self, reason: str, *, is_early: bool):
        super().__init__(reason)
        #: It was known before anything of the body was read.
        self.is_early = is_early


class Outdated(TryAgain):
    """Some node knows a version that is newer than the one that was to be written.

    Clocks of proxies differ; a later try with a newer timestamp may do.
    """

    def __init__(self, newer: Timestamp, *, is_early: bool):
        super().__init__(f"a node knows {newer.internal}", is_early=is_early)
        self.newer = newer


class Disputed(TryAgain):
    """Nodes judge by different versions, so what the condition says nobody knows.

    A later try may do, when they agree (``agreement``).
    """

    def __init__(self, *, is_early: bool):
        super().__init__("nodes know different versions", is_early=is_early)


class Lost(TryAgain):
    """Nodes went away before any was told to commit; others may stand in for them."""

    def __init__(self) -> None:
        super().__init__("too few nodes are left", is_early=False)


def with_retries(
    request: Request,
    attempts: Sequence[HeaderMap],
    carry_out: Callable[[list[HeaderMap]], T],
    agree: Callable[[Sequence[HeaderMap]], None],
    *,
    may_repeat: Callable[[TryAgain], bool],
    check_ahead: Callable[[Timestamp], None],
) -> T:
    """What comes of copies of ``attempts``; of later tries with newer timestamps, each its own.

    What an earlier try left a node may remove late, and must not take for that of a later one. Between two
    tries nodes that judge by different versions are made to ``agree``, for the good of those who come later
    when this change cannot be repeated. No try begins when all together took ``PATIENCE_S``. ``check_ahead``
    raises for a version that is too far ahead of the clock to be superseded. Raises ``HTTPError`` 503 when
    that does not help, and what ``agree`` raises.
    """
    give_up = time.monotonic() + PATIENCE_S
    for _ in range(TRIES):
        try:
            return carry_out([dict(headers) for headers in attempts])
        except TryAgain as reason:
            failed = reason
        attempts = _restamped(request, attempts, failed, check_ahead)
        if isinstance(failed, Disputed):
            try:
                agree(attempts)
            except Outdated as outdated:
                attempts = _restamped(request, attempts, outdated, check_ahead)
        if not may_repeat(failed) or time.monotonic() >= give_up:
            break
    raise HTTPError(503)


def with_own_stamp(request: Request, attempts: Sequence[HeaderMap]) -> list[HeaderMap]:
    """The attempts in the same tick of the clock, with an offset that no other writer has.

    An archive is on disk before its writer is decided upon, under a name that its timestamp makes: writers
    who began in one tick would replace, and at last remove, each other's.
    """
    stamp = request.timestamp
    return _stamped(request, attempts, stamp.raw, stamp.offset + random.randrange(1, 1 << 32))


def _restamped(
    request: Request,
    attempts: Sequence[HeaderMap],
    reason: TryAgain,
    check_ahead: Callable[[Timestamp], None],
) -> list[HeaderMap]:
    """The attempts just after what nodes know, and after themselves; ``HTTPError`` 503 at the end of time."""
    known = max(reason.newer, request.timestamp) if isinstance(reason, Outdated) else request.timestamp
    check_ahead(known)
    # Its own among all who were told of the same version; the clock is hardly left behind by it.
    return _stamped(request, attempts, known.raw + 1, random.randrange(1, 1 << 32))


def _stamped(request: Request, attempts: Sequence[HeaderMap], raw: int, offset: int) -> list[HeaderMap]:
    try:
        return restamped(request, attempts, Timestamp.from_raw(raw, offset))
    except InvalidTimestamp:
        raise HTTPError(503)
