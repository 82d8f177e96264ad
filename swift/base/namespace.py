"""Namespaces: which names belong to a shard (spec: account-container.md §19.1).

A namespace holds the names ``lower < name <= upper``; an empty bound means that there is none. Values
are immutable; bounds compare as UTF-8 bytes, which for text without surrogates is code point order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swift.base.errors import InvalidValue


class Namespace(NamedTuple):
    """A named part of the names of a container; ``name`` is ``account/container`` of the shard."""

    name: str
    lower: str = ""
    upper: str = ""

    @property
    def account(self) -> str:
        """The account of the shard container."""
        return self.name.partition("/")[0]

    @property
    def container(self) -> str:
        """The shard container."""
        return self.name.partition("/")[2]

    def includes(self, name: str) -> bool:
        """Return True if an object name belongs here."""
        return self.lower < name and (not self.upper or name <= self.upper)

    def overlaps(self, lower: str, upper: str) -> bool:
        """Return True if any name can lie both here and in ``lower < name <= upper``."""
        return (not upper or self.lower < upper) and (not self.upper or lower < self.upper)

    @property
    def is_whole(self) -> bool:
        """True if every name belongs here."""
        return not self.lower and not self.upper

    def as_dict(self) -> dict[str, str]:
        """Return the JSON form of the namespace format (§12)."""
        return {"name": self.name, "lower": self.lower, "upper": self.upper}


def upper_key(upper: str) -> tuple[bool, str]:
    """Return a sort key of upper bounds: no bound is the greatest."""
    return (not upper, upper)


def check_bounds(lower: Any, upper: Any) -> tuple[str, str]:
    """Return bounds from outside; raise ``InvalidValue`` unless they are text with lower < upper."""
    if not isinstance(lower, str) or not isinstance(upper, str):
        raise InvalidValue("lower and upper must be text")
    if upper and lower >= upper:
        raise InvalidValue(f"lower ({lower!r}) must be less than upper ({upper!r})")
    return lower, upper
