"""Shard ranges: the rows that say how a container is split (spec: account-container.md §19.1).

A ``ShardRange`` is immutable; ``merge`` is the one rule by which two versions of a row become one, on any
node and in any order. Which ranges a container has, and what a sharder does with them, is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace, check_bounds, upper_key
from swift.base.timestamp import Timestamp


class State(IntEnum):
    """State of a shard range, by the numbers of the database."""

    FOUND = 10
    CREATED = 20
    CLEAVED = 30
    ACTIVE = 40
    SHRINKING = 50
    SHARDING = 60
    SHARDED = 70
    SHRUNK = 80


LISTING_STATES = frozenset((State.CLEAVED, State.ACTIVE, State.SHARDING, State.SHRINKING))
UPDATING_STATES = frozenset((State.CREATED, State.CLEAVED, State.ACTIVE, State.SHARDING))
AUDITING_STATES = frozenset(State) - {State.FOUND}
#: States in which a range's own counts are part of a sharded root's totals (§19.2).
COUNTED_STATES = frozenset((State.ACTIVE, State.SHARDING, State.SHRINKING))

STATE_ALIASES = {"listing": LISTING_STATES, "updating": UPDATING_STATES, "auditing": AUDITING_STATES}

_BY_NAME = {state.name.lower(): state for state in State}


def parse_states(text: str) -> frozenset[State]:
    """Return the states of a comma separated list of names, numbers and aliases; raises ``InvalidValue``."""
    found: set[State] = set()
    for item in text.split(","):
        word = item.strip().lower()
        if word in STATE_ALIASES:
            found |= STATE_ALIASES[word]
        elif word in _BY_NAME:
            found.add(_BY_NAME[word])
        elif word.isascii() and word.isdigit() and int(word) in State._value2member_map_:
            found.add(State(int(word)))
        else:
            raise InvalidValue(f"not a shard range state: {item!r}")
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class ShardRange:
    """A row of the ``shard_range`` table; timestamps are texts of the normal (or internal) form."""

    name: str
    timestamp: str
    lower: str = ""
    upper: str = ""
    object_count: int = 0
    bytes_used: int = 0
    meta_timestamp: str = ""
    deleted: bool = False
    state: State = State.FOUND
    state_timestamp: str = ""
    epoch: str | None = None
    reported: bool = False
    tombstones: int = -1

    def __post_init__(self) -> None:
        if not self.meta_timestamp:
            object.__setattr__(self, "meta_timestamp", self.timestamp)
        if not self.state_timestamp:
            object.__setattr__(self, "state_timestamp", self.timestamp)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> ShardRange:
        """Return a range from a JSON object or a database row.

        Raises ``InvalidValue`` when a field is of the wrong type or ``name`` or ``timestamp`` is missing.
        """
        if not isinstance(values, Mapping):
            raise InvalidValue("a shard range must be an object")
        name = values.get("name")
        if not isinstance(name, str) or not all(name.partition("/")):
            raise InvalidValue("the name of a shard range must be account/container")
        timestamp = _time(values, "timestamp", None)
        lower, upper = check_bounds(values.get("lower") or "", values.get("upper") or "")
        try:
            f"{name}{lower}{upper}".encode()
        except UnicodeEncodeError:
            raise InvalidValue("a shard range has text that is not UTF-8")
        epoch = values.get("epoch")
        return cls(
            name=name,
            timestamp=timestamp,
            lower=lower,
            upper=upper,
            object_count=_count(values, "object_count", 0),
            bytes_used=_count(values, "bytes_used", 0),
            meta_timestamp=_time(values, "meta_timestamp", timestamp),
            deleted=bool(_count(values, "deleted", 0)),
            state=_state(values.get("state")),
            state_timestamp=_time(values, "state_timestamp", timestamp),
            epoch=None if epoch in (None, "") else _time(values, "epoch", None),
            reported=bool(_count(values, "reported", 0)),
            tombstones=_count(values, "tombstones", -1, lowest=-1),
        )

    @property
    def namespace(self) -> Namespace:
        """Name and bounds only."""
        return Namespace(self.name, self.lower, self.upper)

    def includes(self, name: str) -> bool:
        """Return True if an object name belongs here."""
        return self.lower < name and (not self.upper or name <= self.upper)

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The order of shard listings: upper (none is greatest), state, lower, name."""
        return (upper_key(self.upper), self.state, self.lower, self.name)

    def as_dict(self) -> dict[str, object]:
        """Return the full JSON form, in the order of §12, with ``last_modified``."""
        return {
            "name": self.name,
            "timestamp": self.timestamp,
            "lower": self.lower,
            "upper": self.upper,
            "object_count": self.object_count,
            "bytes_used": self.bytes_used,
            "meta_timestamp": self.meta_timestamp,
            "deleted": int(self.deleted),
            "state": int(self.state),
            "state_timestamp": self.state_timestamp,
            "epoch": self.epoch,
            "reported": int(self.reported),
            "tombstones": self.tombstones,
            "last_modified": Timestamp(self.timestamp).isoformat,
        }


def with_counts(item: ShardRange, objects: int, size: int, tombstones: int, now: Timestamp) -> ShardRange:
    """Return the range with these counts, dated later than those it has.

    ``merge`` keeps the counts of the row in the database when both are of one time, and a sharder finds a
    range and counts its rows with the same ``now``.
    """
    counted = Timestamp(item.meta_timestamp)
    if now.normal <= counted.normal:
        now = Timestamp(counted.seconds + 0.00001)
    return replace(
        item, object_count=objects, bytes_used=size, tombstones=tombstones, meta_timestamp=now.normal
    )


def merge(existing: ShardRange | None, new: ShardRange) -> ShardRange:
    """Return one row from two versions of it (§19.1); ``existing`` itself when nothing changes."""
    if existing is None:
        return new
    if Timestamp(existing.timestamp) < Timestamp(new.timestamp):
        return replace(new, reported=False)
    if Timestamp(existing.timestamp) > Timestamp(new.timestamp):
        return existing
    merged = replace(new, lower=existing.lower, upper=existing.upper, deleted=existing.deleted)
    if Timestamp(existing.meta_timestamp) >= Timestamp(new.meta_timestamp):
        merged = replace(
            merged,
            object_count=existing.object_count,
            bytes_used=existing.bytes_used,
            tombstones=existing.tombstones,
            meta_timestamp=existing.meta_timestamp,
        )
    ours, theirs = Timestamp(existing.state_timestamp), Timestamp(new.state_timestamp)
    if ours > theirs or (ours == theirs and existing.state >= new.state):
        merged = replace(
            merged,
            state=existing.state,
            state_timestamp=existing.state_timestamp,
            epoch=existing.epoch,
        )
    merged = replace(merged, reported=_merged_reported(existing, new, merged))
    return existing if merged == existing else merged


def _merged_reported(existing: ShardRange, new: ShardRange, merged: ShardRange) -> bool:
    """Return True if the merged counts were already reported to the root."""
    if new.reported:
        return True
    facts = _reported_facts(existing)
    is_newer = Timestamp(existing.meta_timestamp) < Timestamp(new.meta_timestamp)
    return existing.reported and _reported_facts(new if is_newer else merged) == facts


def _reported_facts(row: ShardRange) -> tuple[object, ...]:
    return (row.object_count, row.bytes_used, row.tombstones, row.state, row.epoch)


def _time(values: Mapping[str, object], key: str, default: str | None) -> str:
    value = values.get(key)
    if value in (None, ""):
        if default is None:
            raise InvalidValue(f"a shard range needs a {key}")
        return default
    if not isinstance(value, (str, int, float)):
        raise InvalidValue(f"{key} of a shard range must be a timestamp")
    return Timestamp(value).internal


def _count(values: Mapping[str, Any], key: str, default: int, *, lowest: int = 0) -> int:
    value = values.get(key)
    if value in (None, ""):
        return default
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{key} of a shard range must be a whole number")
    if not lowest <= number < 1 << 63:
        raise InvalidValue(f"{key} of a shard range must be a whole number, not {number}")
    return number


def _state(value: object) -> State:
    if value is None:
        return State.FOUND
    word = str(value)
    if word.lower() in _BY_NAME:
        return _BY_NAME[word.lower()]
    try:
        return State(int(word))
    except ValueError:
        raise InvalidValue(f"not a shard range state: {value!r}")
