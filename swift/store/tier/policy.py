"""Admission and eviction policy of the tier: pure decisions.

A class is a kind of I/O. Each has a mode, which says what reads and writes mean to it, a share of the size
and an admission. ``MODES`` is the whole of what modes mean.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

METADATA, HASHES, SMALL_DATA, DATA = "metadata", "hashes", "small-data", "data"
CLASSES = (METADATA, HASHES, SMALL_DATA, DATA)
#: Classes in the index; the others are in logs of extents.
INDEXED = (METADATA, HASHES)

ALWAYS, SECOND_TOUCH = "always", "second-touch"

REFRESH, REFRESH_IF_KNOWN, DROP = "refresh", "refresh-if-known", "drop"


class Mode(NamedTuple):
    """Behaviour of a mode.

    In every mode, a write invalidates the entry before it changes the disk. A write drops what was known
    before it changes the disk, whatever the mode.
    """

    #: True if reads are answered from the tier.
    serves: bool
    #: True if what a read had to take from the disk is kept.
    fills: bool
    #: Parts that are kept once a write is durable on the disk.
    on_write: str
    #: True if a write may be on the disk later only.
    defers: bool = False


MODES: Mapping[str, Mode] = {
    "write-through": Mode(serves=True, fills=True, on_write=REFRESH),
    "write-around": Mode(serves=True, fills=True, on_write=REFRESH_IF_KNOWN),
    "write-invalidate": Mode(serves=True, fills=True, on_write=DROP),
    "write-back": Mode(serves=True, fills=True, on_write=REFRESH, defers=True),
    "write-only": Mode(serves=True, fills=False, on_write=REFRESH),
    "pass-through": Mode(serves=False, fills=False, on_write=DROP),
}
PASS_THROUGH = "pass-through"
#: Classes whose lost writes would break an acknowledgement; lost hashes only cost work.
DEFERRABLE = frozenset((HASHES,))


class Refused(ValueError):
    """A rule that cannot be; the text says why."""


def check_mode(of: str, mode: str) -> None:
    """Raise ``Refused`` unless a class may have a mode."""
    if mode not in MODES:
        raise Refused(f"{mode!r} is not a mode; there are {', '.join(MODES)}")
    if MODES[mode].defers and of not in DEFERRABLE:
        raise Refused(
            f"{mode} is refused for {of}: what it acknowledges would be lost with the SSD; "
            "only hashes can be computed anew"
        )


@dataclass(frozen=True, slots=True)
class ClassRules:
    """Rules of one class."""

    mode: str
    #: The lowest number stays longest.
    priority: int
    bytes_max: int
    admission: str = ALWAYS

    @property
    def means(self) -> Mode:
        """The mode's meaning."""
        return MODES[self.mode]


#: Of every class that is on.
Rules = Mapping[str, ClassRules]


def next_evicted(used: Mapping[str, int], rules: Rules) -> str | None:
    """Return the class of the index that has to give up its oldest entry now; None when all fits.

    The indexed classes share one room. While it is too full, the class of the least priority that has
    anything gives; a class that is off gives first.
    """
    room = sum(rules[name].bytes_max for name in INDEXED if name in rules)
    if sum(used.get(name, 0) for name in INDEXED) <= room:
        return None
    having = [name for name in INDEXED if used.get(name, 0) > 0]
    return max(having, key=lambda name: _is_evictable(name, rules), default=None)


def _is_evictable(name: str, rules: Rules) -> tuple[bool, int]:
    return (True, 0) if name not in rules else (False, rules[name].priority)


class RequestedKeys:
    """Keys that were requested once, to recognize the second request.

    Local to one process. One process's memory.
    """

    def __init__(self, kept_max: int = 65536):
        self._kept_max = kept_max
        self._seen: OrderedDict[int, None] = OrderedDict()

    def is_second(self, key: bytes) -> bool:
        """Return True if ``key`` was asked about lately; now it was."""
        number = hash(key)
        if self._seen.pop(number, 0) is None:
            return True
        self._seen[number] = None
        if len(self._seen) > self._kept_max:
            self._seen.popitem(last=False)
        return False


class WriteBudget:
    """Bytes that may still be written today; without a limit, any number."""

    def __init__(self, bytes_a_day: int):
        self.bytes_a_day = bytes_a_day

    def allows(self, written_today: int, more: int) -> bool:
        """Return True if ``more`` bytes may be written."""
        return not self.bytes_a_day or written_today + more <= self.bytes_a_day
