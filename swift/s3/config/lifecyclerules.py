"""Lifecycle rules: which objects they match, and when an action is due. Pure.

As in AWS, every action is due at midnight UTC: a number of days after an event ends at the first midnight
that is not earlier. No action becomes due between two midnights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

DAY_S = 86400
#: Smaller objects do not move unless a rule has sizes: their manifest costs as much as they do.
TRANSITION_BYTES_MIN = 128 << 10


class Transition(NamedTuple):
    """A storage class to which objects move a number of days after an event, or at a midnight."""

    storage_class: str
    days: int | None = None
    date: int | None = None
    #: The number of newest noncurrent versions that do not move.
    newer_versions: int = 0

    def due_s(self, moment_s: float, day_s: int = DAY_S) -> int:
        """Return the Unix second at which it is due for an object whose event was at ``moment_s``."""
        if self.date is not None:
            return self.date
        return midnight_after_days(moment_s, self.days or 0, day_s)


@dataclass(frozen=True, slots=True)
class LifecycleRule:
    """One rule; None and empty tuples mean no condition or action."""

    id: str
    is_enabled: bool = True
    prefix: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    #: Exclusive limits of an object's size.
    size_greater_than: int | None = None
    size_less_than: int | None = None
    #: The element of the filter: ``prefix`` (the old form), ``filter`` or ``and``; ``none`` if empty.
    filter_form: str = "prefix"
    #: An object expires after this many days, or at a midnight (Unix time).
    days: int | None = None
    date: int | None = None
    #: A delete marker expires if there are no versions below it.
    expires_delete_markers: bool = False
    #: A noncurrent version expires after this many days, but this many newer ones are kept.
    noncurrent_days: int | None = None
    newer_versions: int = 0
    #: A multipart upload is aborted after this many days.
    abort_days: int | None = None
    #: Transitions of current and of noncurrent versions to other storage classes.
    transitions: tuple[Transition, ...] = ()
    noncurrent_transitions: tuple[Transition, ...] = ()
    #: Seconds of a day; fewer in tests of clients.
    day_s: int = DAY_S

    def matches(self, key: str, size: int) -> bool:
        """Return True if the rule applies to an object of this key and size, not regarding its tags."""
        return (
            self.is_enabled
            and key.startswith(self.prefix)
            and (self.size_greater_than is None or size > self.size_greater_than)
            and (self.size_less_than is None or size < self.size_less_than)
        )

    def allows_transition_of_size(self, size: int) -> bool:
        """Return True if objects of this size move: small ones only if the rule has sizes itself."""
        return (
            size >= TRANSITION_BYTES_MIN
            or self.size_greater_than is not None
            or self.size_less_than is not None
        )

    def matches_tags(self, tags: Mapping[str, str]) -> bool:
        """Return True if an object's tags include all tags of the rule."""
        return all(tags.get(key) == value for key, value in self.tags)

    def expiry_s(self, modified_s: float) -> int | None:
        """Return the Unix second at which an object expires; None if the rule does not expire objects."""
        if self.date is not None:
            return self.date
        return None if self.days is None else midnight_after_days(modified_s, self.days, self.day_s)

    @property
    def affects_objects(self) -> bool:
        """True if the rule is about objects, versions or delete markers, not only about uploads."""
        actions = (self.days, self.date, self.noncurrent_days)
        moves = self.transitions or self.noncurrent_transitions
        return self.expires_delete_markers or bool(moves) or any(action is not None for action in actions)


class Expiry(NamedTuple):
    """The expiry of an object, and the id of the rule that expires it."""

    at_s: int
    rule: str


def midnight_after_days(moment_s: float, days: int, day_s: int = DAY_S) -> int:
    """Return the first midnight that is at least this many days after a moment."""
    return -int(-(moment_s + days * day_s) // day_s) * day_s


def find_expiry(
    rules: Iterable[LifecycleRule], key: str, size: int, modified_s: float, tags: Mapping[str, str]
) -> Expiry | None:
    """Return the first expiry of an object's current version, None if no rule expires it."""
    found: Expiry | None = None
    for rule in rules:
        if not rule.matches(key, size) or not rule.matches_tags(tags):
            continue
        at_s = rule.expiry_s(modified_s)
        if at_s is not None and (found is None or at_s < found.at_s):
            found = Expiry(at_s, rule.id)
    return found


def may_be_expired(
    rules: Iterable[LifecycleRule], key: str, size: int, modified_s: float, now_s: float
) -> bool:
    """Return True if an object may have expired; for some rules its tags decide."""
    return any(
        (at_s := rule.expiry_s(modified_s)) is not None and at_s <= now_s
        for rule in rules
        if rule.matches(key, size)
    )


def is_delete_marker_expired(
    rules: Iterable[LifecycleRule], key: str, modified_s: float, now_s: float
) -> bool:
    """Return True if a delete marker without versions below it has expired."""
    for rule in rules:
        if rule.tags or not rule.matches(key, 0):
            continue
        at_s = rule.expiry_s(modified_s)
        if rule.expires_delete_markers or (at_s is not None and at_s <= now_s):
            return True
    return False


def expired_noncurrent_rules(
    rules: Iterable[LifecycleRule], key: str, size: int, *, since_s: float, newer: int, now_s: float
) -> list[LifecycleRule]:
    """Return the rules by which a version has expired that is noncurrent since ``since_s``.

    ``newer`` is the number of newer noncurrent versions. The caller checks tags.
    """
    return [
        rule
        for rule in rules
        if rule.noncurrent_days is not None
        and rule.matches(key, size)
        and newer >= rule.newer_versions
        and midnight_after_days(since_s, rule.noncurrent_days, rule.day_s) <= now_s
    ]


def due_storage_class(
    rules: Iterable[LifecycleRule],
    key: str,
    size: int,
    modified_s: float,
    now_s: float,
    current_class: str,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Return the storage class to which an object must move, empty if it stays in ``current_class``.

    The last due transition counts. An object stored in a class without a transition stays there;
    ``current_class`` is empty for the bucket's. Without ``tags`` the caller checks them.
    """
    moves = [
        (move.due_s(modified_s, rule.day_s), move.storage_class)
        for rule in rules
        if rule.matches(key, size)
        and rule.allows_transition_of_size(size)
        and (tags is None or rule.matches_tags(tags))
        for move in rule.transitions
    ]
    return _last_due_class(moves, now_s, current_class)


def due_noncurrent_storage_class(
    rules: Iterable[LifecycleRule],
    key: str,
    size: int,
    since_s: float,
    now_s: float,
    current_class: str,
    *,
    newer: int,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Return the same for a version that is noncurrent since ``since_s``.

    ``newer`` is the number of newer noncurrent versions.
    """
    moves = [
        (move.due_s(since_s, rule.day_s), move.storage_class)
        for rule in rules
        if rule.matches(key, size)
        and rule.allows_transition_of_size(size)
        and (tags is None or rule.matches_tags(tags))
        for move in rule.noncurrent_transitions
        if newer >= move.newer_versions
    ]
    return _last_due_class(moves, now_s, current_class)


def _last_due_class(moves: Iterable[tuple[int, str]], now_s: float, current_class: str) -> str:
    due = sorted((at_s, target) for at_s, target in moves if at_s <= now_s)
    if (
        not due
        or due[-1][1] == current_class
        or (current_class and current_class not in (target for _, target in due))
    ):
        return ""
    return due[-1][1]


def is_upload_expired(rules: Sequence[LifecycleRule], key: str, begun_s: float, now_s: float) -> bool:
    """Return True if a multipart upload must be aborted."""
    return any(
        rule.abort_days is not None
        and rule.is_enabled
        and key.startswith(rule.prefix)
        and midnight_after_days(begun_s, rule.abort_days, rule.day_s) <= now_s
        for rule in rules
    )
