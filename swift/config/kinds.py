"""The kinds of option values: text from a file to a Python value and back for the samples.

A kind refuses bad text with a sentence; the schema adds which option and file it was.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from swift.base.nearest import nearest
from swift.base.truth import FALSE_WORDS, TRUE_WORDS

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Kind:
    """A named parser and printer of option values."""

    name: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str

    def __repr__(self) -> str:
        return f"Kind({self.name})"


@dataclass(frozen=True, slots=True)
class Reserve:
    """Free space to keep: a number of bytes, or a percentage of the filesystem."""

    value: float
    is_percent: bool

    def bytes_of(self, total_bytes: int) -> int:
        """Return the reserve in bytes on a filesystem of ``total_bytes``."""
        return int(total_bytes * self.value / 100) if self.is_percent else int(self.value)

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.is_percent else f"{int(self.value)}"


def _bounded(convert: Callable[[str], Any], low: float | None, high: float | None, noun: str) -> Any:
    def parse(text: str) -> Any:
        try:
            value = convert(text.strip())
        except (ValueError, OverflowError):
            raise ValueError(f"must be {noun}, not {text!r}")
        if value != value:
            raise ValueError(f"must be {noun}, not {text!r}")
        if (low is not None and value < low) or (high is not None and value > high):
            span = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
            raise ValueError(f"must be {noun} {span}, not {text!r}")
        return value

    return parse


def integer(low: int | None = None, high: int | None = None) -> Kind:
    """Return a whole number within bounds."""
    return Kind("integer", _bounded(int, low, high, "a whole number"))


def number(low: float | None = None, high: float | None = None) -> Kind:
    """Return a decimal number within bounds."""
    return Kind("number", _bounded(float, low, high, "a number"), lambda v: f"{v:g}")


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _parse_reserve(text: str) -> Reserve:
    text = text.strip()
    percent = text.endswith("%")
    try:
        value = float(text.rstrip("%")) if percent else int(text)
    except ValueError:
        raise ValueError(f"must be bytes or a percentage like 1%, not {text!r}")
    if not value >= 0 or (percent and value > 100):
        raise ValueError(f"must not be negative or over 100%, not {text!r}")
    return Reserve(value, percent)


def _parse_auto_count(text: str) -> int:
    if text.strip().lower() == "auto":
        return os.cpu_count() or 1
    return int(_bounded(int, 0, None, "auto or a whole number")(text))


def choice(*words: str) -> Kind:
    """One of several words, in any case."""
    return Kind("choice", lambda text: _known_word(text, words).lower())


def keyword(*words: str) -> Kind:
    """One of several words in any case, which stays as it is written; also none."""
    return Kind("choice", lambda text: _known_word(text, words) if text.strip() else "")


def _known_word(text: str, words: tuple[str, ...]) -> str:
    """Return a word that is known in any case; raises ValueError that names the nearest."""
    word = text.strip()
    if word.lower() not in words:
        known = ", ".join(filter(None, words))
        raise ValueError(f"must be one of {known}, not {text!r}{nearest(word.lower(), words)}")
    return word


def _parse_truth(text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE_WORDS or word in FALSE_WORDS:
        return word in TRUE_WORDS
    raise ValueError(f"must be true or false, not {text!r}{nearest(word, sorted(TRUE_WORDS | FALSE_WORDS))}")


TEXT_KIND = Kind("text", str.strip)
TRUTH = Kind("boolean", _parse_truth, lambda v: "true" if v else "false")
INTEGER = integer()
COUNT = integer(0)
PORT = integer(0, 65535)
NUMBER = number()
SECONDS = number(0)
LIST = Kind("list", _parse_list, ", ".join)


def _parse_networks(text: str) -> tuple[IPNetwork, ...]:
    try:
        return tuple(map(ipaddress.ip_network, _parse_list(text)))
    except ValueError as error:
        raise ValueError(f"must be addresses and networks such as 10.1.0.0/16, not {text!r} ({error})")


def is_in_networks(address: str, networks: Iterable[IPNetwork]) -> bool:
    """Return True if a text is an address of one of some networks.

    An IPv4 address may be in the form that sockets for both protocols have, ``::ffff:10.0.0.7``.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return any(ip in network for network in networks)


def _parse_absolute_path(text: str) -> str:
    path = text.strip()
    if path and not os.path.isabs(path):
        raise ValueError(
            f"must be an absolute path, since processes start in different directories, not {text!r}"
        )
    return path


#: A directory that several processes use; empty where the option allows it.
ABSOLUTE_PATH = Kind("absolute path", _parse_absolute_path)
NETWORKS = Kind("networks", _parse_networks, lambda networks: ", ".join(map(str, networks)))
WORDS = Kind("words", lambda text: tuple(text.split()), " ".join)
RESERVE = Kind("bytes or percent", _parse_reserve)
AUTO_COUNT = Kind("auto or count", _parse_auto_count)
