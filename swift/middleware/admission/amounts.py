"""Amounts of each resource: the values of rules, capacity and reservations."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"": 1, "b": 1, **{f"{letter}b": 1000**n for n, letter in enumerate("kmgt", 1)}}
_UNITS |= {f"{letter}ib": 1024**n for n, letter in enumerate("kmgt", 1)}
_AMOUNT_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\Z")
#: More than any cluster moves; beyond it sums of floats lose single bytes.
_AMOUNT_MAX = 1e15


@dataclass(frozen=True, slots=True)
class Amounts:
    """Bytes a second, requests a second and streams at a time; None where no amount is set."""

    bytes: float | None = None
    requests: float | None = None
    streams: float | None = None


#: The names of the resources.
RESOURCES = ("bytes", "requests", "streams")
#: Those that are counted by the second; streams are counted at a time.
RATES = ("bytes", "requests")
NO_AMOUNTS = Amounts()


def parse_amount(value: object) -> float:
    """Return a number, or text like ``50 MB``; raises ValueError with a sentence's end."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"must be a number or a text like '50 MB', not {value!r}")
    if isinstance(value, str):
        match = _AMOUNT_PATTERN.match(value.strip().lower())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"must be a number or a text like '50 MB', not {value!r}")
        number = float(match[1]) * _UNITS[match[2]]
    else:
        number = float(value)
    if not 0 < number <= _AMOUNT_MAX:
        raise ValueError(f"must be more than 0 and at most {_AMOUNT_MAX:g}, not {value!r}")
    return number


def format_amount(amount: float, resource: str) -> str:
    """Return an amount for people."""
    if resource == "streams":
        return f"{amount:g} streams"
    if resource == "requests":
        return f"{amount:.4g} requests/s"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= size:
            return f"{amount / size:.4g} {unit}/s"
    return f"{amount:.4g} B/s"
