"""Tables of a TOML inventory, read key by key; every error names the file, the table and the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from swift.base.errors import ConfigError

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_EMPTY: Mapping[str, object] = {}
T = TypeVar("T")


class InventoryError(ConfigError):
    """The inventory cannot be used; the text is one line that names file, table and key."""


class Table:
    """One table of a TOML file. ``end`` refuses the keys that were not read."""

    def __init__(self, source: str, title: str, values: Mapping[str, object]):
        """``source`` is the file's name, ``title`` the table's as errors have it, e.g. ``[cluster]``."""
        self._source = source
        self._title = title
        self._values = values
        self._read: set[str] = set()

    @property
    def title(self) -> str:
        """The name of the table."""
        return self._title

    def error(self, key: str, reason: str) -> InventoryError:
        """Return the error of a key."""
        return InventoryError(f"{self._source}: {self._title}: {key} {reason}")

    def has(self, key: str) -> bool:
        """Return True if the table has a key."""
        return key in self._values

    def _value(self, key: str) -> object:
        self._read.add(key)
        return self._values.get(key)

    def _get(self, key: str, default: T | None, form: str, is_valid: Callable[[object], bool]) -> T:
        value = self._value(key)
        if value is None:
            if default is None:
                raise self.error(key, f"is missing: {form}")
            return default
        if not is_valid(value):
            raise self.error(key, f"must be {form}, not {value!r}")
        return cast(T, value)

    def text(self, key: str, default: str | None = None, *, pattern: str = ".+", form: str = "a text") -> str:
        """Return a text that matches ``pattern``; required if there is no default."""
        return self._get(key, default, form, lambda value: _is_text(value, pattern))

    def integer(self, key: str, default: int | None = None, *, least: int = 0, most: int = 2**31) -> int:
        """Return a whole number of a range; required if there is no default."""
        form = f"a whole number from {least} to {most}" if most < 2**31 else f"a whole number >= {least}"
        return self._get(key, default, form, lambda value: type(value) is int and least <= value <= most)

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float:
        """Return a finite number of at least ``least``; required if there is no default."""

        def is_valid(value: object) -> bool:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            return least <= value < float("inf")

        return float(self._get(key, default, f"a number >= {least:g}", is_valid))

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        return self._get(key, default, "true or false", lambda value: isinstance(value, bool))

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Return one of several texts."""
        return self._get(key, default, f"one of {', '.join(choices)}", lambda value: value in choices)

    def texts(self, key: str, default: Sequence[str] = (), *, pattern: str = ".+") -> tuple[str, ...]:
        """Return a list of texts that match ``pattern``."""
        value = self._value(key)
        if value is None:
            return tuple(default)
        if not isinstance(value, list):
            raise self.error(key, f"must be a list of texts, not {value!r}")
        for item in value:
            if not _is_text(item, pattern):
                raise self.error(key, f"must be a list of texts; it has {item!r}")
        return tuple(value)

    def scalar(self, key: str) -> str:
        """Return a text, a number or a truth value as configuration files write it."""
        value = self._value(key)
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, str | int | float) or _UNPRINTABLE.search(str(value)):
            raise self.error(key, f"must be one line of text, a number, true or false, not {value!r}")
        return str(value)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all keys."""
        yield from self._values

    def table(self, key: str, title: str = "") -> Table:
        """Return a table in this one; an empty one if it is missing."""
        value = self._get(key, _EMPTY, "a table", lambda value: isinstance(value, dict))
        return Table(self._source, title or f"[{key}]", value)

    def tables(self, key: str, title: str) -> list[Table]:
        """Return the tables of a list, e.g. ``[[host]]``; ``title`` gets the number or the name of each."""
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"must be a list of tables ({title})")
        found = []
        for number, item in enumerate(value, 1):
            name = item.get("name", item.get("device"))
            label = f"{number} ({name})" if isinstance(name, str) and name.isprintable() else str(number)
            found.append(Table(self._source, f"{title} {label}", item))
        return found

    def end(self) -> None:
        """Refuse keys that were not read."""
        for key in self._values:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                raise self.error(key, f"is not known here; known keys: {known}")


def _is_text(value: object, pattern: str) -> bool:
    return (
        isinstance(value, str) and not _UNPRINTABLE.search(value) and re.fullmatch(pattern, value) is not None
    )
