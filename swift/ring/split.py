"""While the partitions of a ring are being split: what nodes do, and where they keep an object.

Proxies and nodes do not see a new ring at the same moment, so requests for one object come by its old
partition and by its new one. A node answers all of them from one place, which its own ring names: the old
partition until the increase, the new one from then on. Until the increase everything is linked into the new
partition too; after it, what is left in the old one is gathered from there. spec: ring.md §8
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from swift.ring.errors import PartPowerError

_HASH_BITS = 32


class SplitPhase(Enum):
    """Action of nodes on object files while a ring is in this state."""

    STEADY = "steady"
    RELINK = "relink"
    CLEANUP = "cleanup"


def phase(part_power: int, next_part_power: int | None) -> SplitPhase:
    """Return the phase of a ring. Raises PartPowerError for a next_part_power that no step produces."""
    if next_part_power is None:
        return SplitPhase.STEADY
    if next_part_power == part_power + 1:
        return SplitPhase.RELINK
    if next_part_power == part_power:
        return SplitPhase.CLEANUP
    raise PartPowerError(f"next_part_power {next_part_power} does not follow part_power {part_power}")


class Home(NamedTuple):
    """The place of one object on a node whose ring is between two part powers."""

    partition: str
    #: The partition that it had before the increase, where something of it may be left.
    before: str | None
    #: The power under which changes are linked as well.
    next_part_power: int | None


def home_of(partition: str, name_hash: str, part_power: int, next_part_power: int) -> Home | None:
    """Return the home of an object that is asked for by ``partition``; None when that is not one of its
    own. Pure.

    Raises PartPowerError for a ``next_part_power`` that no step produces.
    """
    value, asked = int(name_hash[:8], 16), int(partition)
    here = value >> (_HASH_BITS - part_power)
    if phase(part_power, next_part_power) is SplitPhase.RELINK:
        is_own = asked in (here, value >> (_HASH_BITS - next_part_power))
        return Home(str(here), None, next_part_power) if is_own else None
    before = value >> (_HASH_BITS - part_power + 1)
    # After an increase that was cancelled, partitions of the larger power are what is to be cleaned up.
    after = value >> max(_HASH_BITS - part_power - 1, 0)
    if asked not in (here, before, after):
        return None
    return Home(str(here), None if before == here else str(before), None)
