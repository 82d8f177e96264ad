"""When a request was signed, and whether that is recent enough (spec: middleware.md §22.1)."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from functools import lru_cache
from time import gmtime, strftime

from swift.s3.errors import S3Error

_stamp = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII).fullmatch
_NO_DATE = "AWS authentication requires a valid Date or x-amz-date header"


def no_date() -> S3Error:
    """The answer to a request without a date that can be read."""
    return S3Error("AccessDenied", _NO_DATE, reason="invalid_date")


def _seconds(stamp: str) -> int | None:
    match = _stamp(stamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    if year < 1970 or second > 60:
        return None
    try:
        # A leap second counts as the first one after it.
        moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return calendar.timegm(moment.timetuple()) + second


#: Unix second of ``20260102T030405Z``; None for anything else.
stamp_seconds = lru_cache(256)(_seconds)


def date_seconds(text: str) -> int | None:
    """Unix second of a date as mail and HTTP write it, or as ISO does; None when it is neither."""
    found = stamp_seconds(text)
    if found is not None:
        return found
    try:
        parsed = parsedate_tz(text)
        return None if parsed is None or parsed[0] < 1970 else int(mktime_tz(parsed))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def iso_seconds(text: str) -> int | None:
    """Unix second of ``2026-01-02T03:04:05.000Z``; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def iso_time(seconds: float) -> str:
    """``2026-01-02T03:04:05Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def stamp_of(headers: Mapping[str, str]) -> tuple[str, int]:
    """The date of a request as version 4 writes it, and its Unix second; raises ``S3Error``."""
    text = headers.get("x-amz-date") or headers.get("date") or ""
    seconds = date_seconds(text)
    if seconds is None:
        raise no_date()
    if stamp_seconds(text) is not None:
        return text, seconds
    return strftime("%Y%m%dT%H%M%SZ", gmtime(seconds)), seconds


def check_skew(seconds: int, now: float, skew_s: int) -> None:
    """Raise ``S3Error`` when a clock differs by more."""
    if abs(now - seconds) > skew_s:
        raise S3Error("RequestTimeTooSkewed", reason="date_skew")
