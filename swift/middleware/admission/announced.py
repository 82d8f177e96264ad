"""Rules that an operator gave to one proxy, on their way to all of them.

They go into memcached with the time at which they were given, and into the file of rules wherever a process
may write that, with the same time as its modification time. The newest wins, be it the file or what was told:
a file that is edited afterwards counts again where it is. A process puts what it knows into a memcached that
has lost it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.gateway.infocache import Cache

_KEY = "admission/rules"
#: Longer rules are not taken: a value of memcached holds a megabyte.
RULES_BYTES_MAX = 256 << 10


@dataclass(frozen=True, slots=True)
class Announcement:
    """The text of rules, and when they were given, in Unix nanoseconds."""

    at_ns: int
    text: str

    @classmethod
    def of(cls, value: object) -> Announcement | None:
        """Return the announcement in a value from memcached, or None if the value holds none."""
        if not isinstance(value, Mapping):
            return None
        at_ns, text = value.get("at_ns"), value.get("text")
        if not isinstance(at_ns, int) or not 0 < at_ns < 1 << 63 or not isinstance(text, str):
            return None
        return cls(at_ns, text) if len(text) <= RULES_BYTES_MAX else None


class Announcements:
    """The newest that this process knows of."""

    def __init__(self) -> None:
        self.newest: Announcement | None = None

    def receive(self, cache: Cache) -> None:
        """Learn what others were told, and bring back what was lost; raises ``MemcacheError``."""
        heard, mine = Announcement.of(cache.get(_KEY, None, raise_on_error=True)), self.newest
        if heard is not None and (mine is None or heard.at_ns > mine.at_ns):
            self.newest = heard
        elif mine is not None and heard != mine:
            self._publish(cache, mine)

    def announce(self, cache: Cache, made: Announcement) -> None:
        """Tell the others; raises ``MemcacheError``, and they are told as soon as it is back."""
        self.newest = made
        self._publish(cache, made)

    @staticmethod
    def _publish(cache: Cache, made: Announcement) -> None:
        cache.set(_KEY, {"at_ns": made.at_ns, "text": made.text}, ttl_s=0, raise_on_error=True)
