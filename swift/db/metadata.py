"""The metadata column: header names with values and the times they were set (account-container.md §8).

``Metadata`` maps Title-Case header names to ``(value, internal timestamp)``. An empty value marks a deleted
header and is kept until it is reclaimed, so that an older value cannot come back. Merging takes the newer
of two pairs; where the times are equal the greater value wins, which makes merging independent of order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from swift.base.timestamp import InvalidTimestamp, Timestamp

Metadata = Mapping[str, tuple[str, str]]

EMPTY: Metadata = {}


@lru_cache(maxsize=512)
def parse(text: str | None) -> Metadata:
    """Return the column's content.

    Pieces that are not of the format are left out. Do not change the result.
    """
    if not text:
        return EMPTY
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return EMPTY
    if not isinstance(raw, dict):
        return EMPTY
    found = {}
    for name, pair in raw.items():
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str):
            found[name] = (pair[0], str(pair[1]))
    return found


def dump(metadata: Metadata) -> str:
    """Return the column's text."""
    return json.dumps({name: list(pair) for name, pair in metadata.items()})


def merge(existing: Metadata, new: Metadata) -> Metadata:
    """Return the newer pair of each header; ``existing`` itself when nothing changes."""
    merged: dict[str, tuple[str, str]] | None = None
    for name, pair in new.items():
        have = existing.get(name)
        if have is None or (pair[1], pair[0]) > (have[1], have[0]):
            if merged is None:
                merged = dict(existing)
            merged[name] = pair
    return existing if merged is None else merged


def user_items(metadata: Metadata, kind: str) -> Iterator[tuple[str, str]]:
    """(name without prefix, value) of the user metadata of an ``account`` or ``container``."""
    prefix = f"x-{kind}-meta-"
    for name, (value, _time) in metadata.items():
        if name.lower().startswith(prefix):
            yield name[len(prefix) :], value


def blanked(metadata: Metadata, timestamp: Timestamp, keep: frozenset[str] = frozenset()) -> Metadata:
    """Every header deleted at ``timestamp`` except the lower-case names in ``keep`` (§9)."""
    deleted = {name: ("", timestamp.internal) for name in metadata if name.lower() not in keep}
    return merge(metadata, deleted)


def reclaimed(metadata: Metadata, before: Timestamp) -> Metadata:
    """Without the deleted headers older than ``before``; the same object when there are none."""
    kept = {
        name: (value, time) for name, (value, time) in metadata.items() if value or not _older(time, before)
    }
    return metadata if len(kept) == len(metadata) else kept


def _older(time: str, before: Timestamp) -> bool:
    try:
        return Timestamp(time) < before
    except InvalidTimestamp:
        return True
