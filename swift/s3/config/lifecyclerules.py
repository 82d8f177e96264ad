"""The rules of a lifecycle: which objects they are about, and when something is due. Pure.

Everything is due at a midnight (UTC), as with AWS: so many days after a moment are counted to the first
midnight that is not before. Nothing new is due between two midnights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

DAY_S = 86400
#: Smaller objects stay where they are, if a rule says nothing else of sizes: a manifest costs as much.
TRANSITION_BYTES_MIN = 128 << 10


class Transition(NamedTuple):
    """Storage class to which an object moves a number of days after an event, or at a midnight (Unix
    time).
    """

    kind: str
    days: int | None = None
    date: int | None = None
    #: Of versions that are not current: so many stay as they are.
    newer: int = 0

    def due(self, moment_s: float) -> int:
        """Return the time at which it is due for an object that began at a moment."""
        return self.date if self.date is not None else days_after(moment_s, self.days or 0)


@dataclass(frozen=True, slots=True)
class LifecycleRule:
    """One rule; what is None, or an empty tuple, is not asked for."""

    id: str
    is_enabled: bool = True
    prefix: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    #: Sizes of which an object is greater, and less.
    greater: int | None = None
    less: int | None = None
    #: How the filter was written: ``prefix`` (the old way), ``filter`` or ``and``; ``none`` when empty.
    form: str = "prefix"
    #: An object ends after so many days, or at a midnight (Unix time).
    days: int | None = None
    date: int | None = None
    #: A delete marker ends when there are no versions below it.
    ends_markers: bool = False
    #: A version that is not current any more ends after so many days, but so many are kept.
    noncurrent_days: int | None = None
    newer_versions: int = 0
    #: A multipart upload is aborted after so many days.
    abort_days: int | None = None
    #: An object, and a version that is not current any more, gets another storage class.
    transitions: tuple[Transition, ...] = ()
    noncurrent_transitions: tuple[Transition, ...] = ()

    def is_about(self, key: str, size: int) -> bool:
        """Return True if an object of this name and size is meant; its tags may say otherwise."""
        return (
            self.is_enabled
            and key.startswith(self.prefix)
            and (self.greater is None or size > self.greater)
            and (self.less is None or size < self.less)
        )

    def may_move(self, size: int) -> bool:
        """Return True if an object of this size is worth it; the rule may say that itself."""
        return size >= TRANSITION_BYTES_MIN or self.greater is not None or self.less is not None

    def has_tags(self, tags: Mapping[str, str]) -> bool:
        """Return True if an object with these tags has all that the rule asks for."""
        return all(tags.get(key) == value for key, value in self.tags)

    def expiry(self, modified_s: float) -> int | None:
        """Return the end of an object of this age; None if the rule does not end objects."""
        if self.date is not None:
            return self.date
        return None if self.days is None else days_after(modified_s, self.days)

    @property
    def is_about_objects(self) -> bool:
        """True if it is about objects, versions or delete markers, not only about uploads."""
        actions = (self.days, self.date, self.noncurrent_days)
        moves = self.transitions or self.noncurrent_transitions
        return self.ends_markers or bool(moves) or any(action is not None for action in actions)


class Expiry(NamedTuple):
    """The end of an object, and the rule that ends it."""

    at_s: int
    rule: str


def days_after(moment_s: float, days: int) -> int:
    """Return the first midnight that is so many days after a moment at least."""
    return -int(-(moment_s + days * DAY_S) // DAY_S) * DAY_S


def expiry_of(
    rules: Iterable[LifecycleRule], key: str, size: int, modified_s: float, tags: Mapping[str, str]
) -> Expiry | None:
    """Return the first expiry of the current version of an object, None if no rule ends it."""
    found: Expiry | None = None
    for rule in rules:
        if not rule.is_about(key, size) or not rule.has_tags(tags):
            continue
        at_s = rule.expiry(modified_s)
        if at_s is not None and (found is None or at_s < found.at_s):
            found = Expiry(at_s, rule.id)
    return found


def may_be_due(rules: Iterable[LifecycleRule], key: str, size: int, modified_s: float, now_s: float) -> bool:
    """Return True if an object may have ended; for some rules its tags must be looked at."""
    return any(
        (at_s := rule.expiry(modified_s)) is not None and at_s <= now_s
        for rule in rules
        if rule.is_about(key, size)
    )


def is_marker_due(rules: Iterable[LifecycleRule], key: str, modified_s: float, now_s: float) -> bool:
    """Return True if a delete marker that is all there is of an object has ended."""
    for rule in rules:
        if rule.tags or not rule.is_about(key, 0):
            continue
        at_s = rule.expiry(modified_s)
        if rule.ends_markers or (at_s is not None and at_s <= now_s):
            return True
    return False


def noncurrent_rules(
    rules: Iterable[LifecycleRule], key: str, size: int, *, since_s: float, newer: int, now_s: float
) -> list[LifecycleRule]:
    """Return the rules by which a version has ended that is not current since a moment.

    ``newer`` is how many versions that are not current either are newer. Tags remain to be looked at.
    """
    return [
        rule
        for rule in rules
        if rule.noncurrent_days is not None
        and rule.is_about(key, size)
        and newer >= rule.newer_versions
        and days_after(since_s, rule.noncurrent_days) <= now_s
    ]


def class_by(
    rules: Iterable[LifecycleRule],
    key: str,
    size: int,
    modified_s: float,
    now_s: float,
    kind: str,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Return the storage class that is due for an object, empty if it stays in ``kind``.

    That of the last transition that was due counts. An object that was put into a class without a transition
    stays there; ``kind`` is empty for the bucket's. Without ``tags`` they remain to be looked at.
    """
    moves = [
        (move.due(modified_s), move.kind)
        for rule in rules
        if rule.is_about(key, size) and rule.may_move(size) and (tags is None or rule.has_tags(tags))
        for move in rule.transitions
    ]
    return _last(moves, now_s, kind)


def noncurrent_class_by(
    rules: Iterable[LifecycleRule],
    key: str,
    size: int,
    since_s: float,
    now_s: float,
    kind: str,
    *,
    newer: int,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Return the same for a version that is not current since a moment.

    So many versions like it are newer.
    """
    moves = [
        (move.due(since_s), move.kind)
        for rule in rules
        if rule.is_about(key, size) and rule.may_move(size) and (tags is None or rule.has_tags(tags))
        for move in rule.noncurrent_transitions
        if newer >= move.newer
    ]
    return _last(moves, now_s, kind)


def _last(moves: Iterable[tuple[int, str]], now_s: float, kind: str) -> str:
    due = sorted((at_s, target) for at_s, target in moves if at_s <= now_s)
    if not due or due[-1][1] == kind or (kind and kind not in (target for _, target in due)):
        return ""
    return due[-1][1]


def is_upload_due(rules: Sequence[LifecycleRule], key: str, begun_s: float, now_s: float) -> bool:
    """Return True if a multipart upload is to be aborted."""
    return any(
        rule.abort_days is not None
        and rule.is_enabled
        and key.startswith(rule.prefix)
        and days_after(begun_s, rule.abort_days) <= now_s
        for rule in rules
    )
