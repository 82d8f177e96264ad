"""Timestamps: how writes are ordered (spec: object-disk.md §2).

A timestamp is a count of 10 µs ticks since 1970 plus an offset that orders internal rewrites of one
tick. It has three texts: *normal* (``1402464677.04188``), *internal* (``..._0000000000000001`` when an
offset exists) and *short* (``..._1``). Values are immutable, hashable and totally ordered; comparing is
comparing ``(raw, offset)``, which equals comparing internal texts.

It knows nothing of clocks except in ``Timestamp.now``.
"""

from __future__ import annotations

import time as _time
from functools import lru_cache, total_ordering
from typing import Any

from swift.base.errors import InvalidValue

RAW_MAX = 10**15 - 1
OFFSET_MAX = 16**16 - 1
TICKS_PER_SECOND = 100_000

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class InvalidTimestamp(InvalidValue):
    """A text or number is not a timestamp in the legal range."""

    def __init__(self, value: object):
        super().__init__(f"not a timestamp: {value!r}")


@lru_cache(256)
def http_date(unix_seconds: int) -> str:
    """Return the RFC 9110 IMF-fixdate of whole Unix seconds; recent results are cached."""
    t = _time.gmtime(unix_seconds)
    return (
        f"{_DAYS[t.tm_wday]}, {t.tm_mday:02d} {_MONTHS[t.tm_mon - 1]} {t.tm_year:04d} "
        f"{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d} GMT"
    )


def _ticks(value: float | str) -> int:
    """Return the ticks of a number of seconds, rounded as the text form ``%.5f`` rounds."""
    text = f"{float(value):.5f}"
    whole, _, fraction = text.partition(".")
    if whole.startswith("-") or len(whole) > 10:
        raise InvalidTimestamp(value)
    try:
        return int(whole) * TICKS_PER_SECOND + int(fraction)
    except ValueError:
        raise InvalidTimestamp(value)


@total_ordering
class Timestamp:
    """A moment in 10 µs ticks with an ordering offset.

    ``Timestamp(value)`` accepts an int, a float or a text ``float[_hexoffset]`` and raises
    ``InvalidTimestamp`` for anything else, negatives and values from 10^10 seconds on.
    """

    __slots__ = ("raw", "offset", "_normal")

    raw: int
    offset: int

    def __init__(self, value: Any, offset: int = 0):
        if isinstance(value, str) and len(value) == 16 and value[10] == "." and not offset:
            # The usual text.
            digits = value[:10] + value[11:]
            if digits.isdigit() and digits.isascii():
                self.raw = int(digits)
                self.offset = 0
                self._normal: str | None = value
                return
        try:
            if isinstance(value, str):
                seconds, _, extra = value.partition("_")
                if extra:
                    if len(extra) > 16 or not extra.isalnum():
                        raise InvalidTimestamp(value)
                    offset += int(extra, 16)
                raw = _ticks(seconds)
            elif isinstance(value, Timestamp):
                raw, offset = value.raw, value.offset + offset
            else:
                raw = _ticks(value)
        except (ValueError, TypeError, OverflowError):
            raise InvalidTimestamp(value)
        if not (0 <= raw <= RAW_MAX and 0 <= offset <= OFFSET_MAX):
            raise InvalidTimestamp(value)
        self.raw = raw
        self.offset = offset
        self._normal = None

    @classmethod
    def from_raw(cls, raw: int, offset: int = 0) -> Timestamp:
        """Return the timestamp of ``raw`` 10 µs ticks; ``InvalidTimestamp`` when out of range."""
        if not (0 <= raw <= RAW_MAX and 0 <= offset <= OFFSET_MAX):
            raise InvalidTimestamp(raw)
        self = cls.__new__(cls)
        self.raw = raw
        self.offset = offset
        self._normal = None
        return self

    @classmethod
    def now(cls) -> Timestamp:
        """Return the current system time, rounded to the tick."""
        return cls.from_raw(round(_time.time() * TICKS_PER_SECOND))

    @property
    def normal(self) -> str:
        """``1402464677.04188``, without the offset."""
        text = self._normal
        if text is None:
            whole, ticks = divmod(self.raw, TICKS_PER_SECOND)
            text = self._normal = f"{whole:010d}.{ticks:05d}"
        return text

    @property
    def internal(self) -> str:
        """The normal form, plus ``_%016x`` when there is an offset."""
        text = self._normal or self.normal
        return f"{text}_{self.offset:016x}" if self.offset else text

    @property
    def short(self) -> str:
        """The normal form, plus ``_%x`` when there is an offset."""
        return f"{self.normal}_{self.offset:x}" if self.offset else self.normal

    @property
    def seconds(self) -> float:
        """Unix seconds as a float, without the offset."""
        return self.raw / TICKS_PER_SECOND

    @property
    def ceil_seconds(self) -> int:
        """Whole Unix seconds, rounded up: what Last-Modified shows."""
        return -(-self.raw // TICKS_PER_SECOND)

    @property
    def isoformat(self) -> str:
        """ISO 8601 in UTC with exactly six decimals and no zone suffix."""
        whole, ticks = divmod(self.raw, TICKS_PER_SECOND)
        t = _time.gmtime(whole)
        return (
            f"{t.tm_year:04d}-{t.tm_mon:02d}-{t.tm_mday:02d}T"
            f"{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}.{ticks:05d}0"
        )

    @property
    def http_date(self) -> str:
        """The Last-Modified text: RFC 9110 date of ``ceil_seconds``."""
        return http_date(self.ceil_seconds)

    def above(self, steps: int) -> Timestamp:
        """Return the timestamp so many places above this one in the order; ``InvalidTimestamp`` when there
        is none.

        The offset grows; where it has no room the next tick begins.
        """
        ticks, offset = divmod(self.offset + steps, OFFSET_MAX + 1)
        return Timestamp.from_raw(self.raw + ticks, offset)

    def inverted(self) -> Timestamp:
        """Return the timestamp that sorts in the opposite order (object-disk.md §2)."""
        if self.offset:
            return Timestamp.from_raw(RAW_MAX - self.raw - 1, OFFSET_MAX + 1 - self.offset)
        return Timestamp.from_raw(RAW_MAX - self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw or self.offset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self.raw == other.raw and self.offset == other.offset

    def __lt__(self, other: Timestamp) -> bool:
        return (self.raw, self.offset) < (other.raw, other.offset)

    def __hash__(self) -> int:
        return hash((self.raw, self.offset))

    def __str__(self) -> str:
        return self.internal

    def __repr__(self) -> str:
        return f"Timestamp({self.short!r})"


ZERO = Timestamp.from_raw(0)


def encode_timestamps(
    first: Timestamp,
    second: Timestamp | None = None,
    third: Timestamp | None = None,
    *,
    explicit: bool = False,
) -> str:
    """Pack up to three times as ``t1[±hex(t2-t1)[±hex(t3-t2)]]`` (object-disk.md §2).

    Equal times are left out unless ``explicit``; a missing time ends the text.
    """
    text = first.short
    if second is None:
        return text
    deltas = [second.raw - first.raw]
    if third is not None:
        deltas.append(third.raw - second.raw)
    if not explicit and not any(deltas):
        return text
    if not explicit and len(deltas) == 2 and third == second == first:
        return text
    return text + "".join(f"{'-' if d < 0 else '+'}{abs(d):x}" for d in deltas)


def _split_packed(text: str) -> tuple[str, list[int]]:
    parts: list[str] = []
    current = ""
    for char in text:
        if char in "+-":
            parts.append(current)
            current = char
        else:
            current += char
    parts.append(current)
    return parts[0], [int(p, 16) for p in parts[1:]]


def decode_timestamps(text: str, *, explicit: bool = False) -> tuple[Timestamp, ...]:
    """Unpack three times; a missing one is its predecessor, or None when ``explicit``.

    Raises ``InvalidTimestamp`` when the text is not a packed timestamp.
    """
    if "+" not in text and "-" not in text:
        first = Timestamp(text)
        return (first, None, None) if explicit else (first, first, first)  # type: ignore[return-value]
    try:
        head, deltas = _split_packed(text)
        times: list[Any] = [Timestamp(head)]
        for delta in deltas[:2]:
            previous = times[-1]
            times.append(previous if not delta else Timestamp.from_raw(previous.raw + delta))
    except ValueError:
        raise InvalidTimestamp(text)
    while len(times) < 3:
        times.append(None if explicit else times[-1])
    return tuple(times)


def normalize_delete_at(value: Any, *, high_precision: bool = False) -> str:
    """Return X-Delete-At clamped to 0...9999999999 as ten digits (object-disk.md §2).

    Raises ``InvalidTimestamp`` when the value is not a number.
    """
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise InvalidTimestamp(value)
    seconds = min(max(0.0, seconds), 9999999999.99999)
    return f"{seconds:016.5f}" if high_precision else f"{int(seconds):010d}"
