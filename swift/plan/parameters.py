"""Parses the parameters of a simulation: ``name=number`` words of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.plan.assumptions import parse_number
from swift.plan.errors import PlanError

_RANGE = ".."


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that may be given: between ``low`` and ``high``; what it is, and its default."""

    default: float
    low: float
    high: float
    doc: str


def parse_parameters(words: Sequence[str], known: Mapping[str, Parameter], where: str) -> dict[str, float]:
    """Return all numbers by name, with defaults for the others; raises ``PlanError``."""
    found = {name: given.default for name, given in known.items()}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or name not in known:
            raise PlanError(f"{where} {word}: write NAME=NUMBER; names are {', '.join(sorted(known))}")
        found[name] = _number(text, known[name], f"{where} {name}")
    return found


def _number(text: str, given: Parameter, where: str) -> float:
    try:
        number = float(parse_number(float(text), where, given.low))
    except ValueError:
        raise PlanError(f"{where}: {text!r} is not a number")
    if number > given.high:
        raise PlanError(f"{where}: at most {given.high:g}, not {text}")
    return number


def parse_counts(text: str, where: str, most: int) -> tuple[int, ...]:
    """Parse ``1..8`` or ``1,2,4`` as numbers from 1 to ``most``; raises ``PlanError``."""
    first, separator, last = text.partition(_RANGE)
    words = text.split(",") if not separator else [first, last]
    if not all(word.isascii() and word.isdecimal() and len(word) < 6 for word in words):
        raise PlanError(f"{where}: write 1..8 or 1,2,4, not {text!r}")
    numbers = [int(word) for word in words]
    if separator:
        numbers = list(range(numbers[0], numbers[1] + 1))
    if not numbers or min(numbers) < 1 or max(numbers) > most:
        raise PlanError(f"{where}: from 1 to {most}, not {text!r}")
    return tuple(dict.fromkeys(numbers))
