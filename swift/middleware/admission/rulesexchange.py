"""Rules that an operator sent to one proxy, on their way to all of them.

They go into memcached with the time at which they were sent, and into the rules file wherever a process may
write it, with that time as its modification time. The newest rules win, from the file or from memcached, so a
file that is edited later counts again on its machine. A process stores its rules again in a memcached that
has lost them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.gateway.infocache import Cache

_RULES_KEY = "admission/rules"
#: Longer rules are not taken: a value of memcached holds a megabyte.
RULES_BYTES_MAX = 256 << 10


@dataclass(frozen=True, slots=True)
class RulesUpdate:
    """The text of rules, and the time at which they were sent, Unix nanoseconds."""

    at_ns: int
    text: str

    @classmethod
    def of(cls, value: object) -> RulesUpdate | None:
        """Return the announcement in a value from memcached, or None if the value holds none."""
        if not isinstance(value, Mapping):
            return None
        at_ns, text = value.get("at_ns"), value.get("text")
        if not isinstance(at_ns, int) or not 0 < at_ns < 1 << 63 or not isinstance(text, str):
            return None
        return cls(at_ns, text) if len(text) <= RULES_BYTES_MAX else None


class RulesExchange:
    """The newest rules update that this process knows."""

    def __init__(self) -> None:
        self.newest: RulesUpdate | None = None

    def receive(self, cache: Cache) -> None:
        """Take newer rules from memcached, or restore lost ones there; raises ``MemcacheError``."""
        received, mine = RulesUpdate.of(cache.get(_RULES_KEY, None, raise_on_error=True)), self.newest
        if received is not None and (mine is None or received.at_ns > mine.at_ns):
            self.newest = received
        elif mine is not None and received != mine:
            self._publish(cache, mine)

    def publish(self, cache: Cache, made: RulesUpdate) -> None:
        """Publish rules in memcached; raises ``MemcacheError``, and ``receive`` tries again later."""
        self.newest = made
        self._publish(cache, made)

    @staticmethod
    def _publish(cache: Cache, made: RulesUpdate) -> None:
        cache.set(_RULES_KEY, {"at_ns": made.at_ns, "text": made.text}, ttl_s=0, raise_on_error=True)
