"""Rules as the metadata of a bucket's container has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from swift.base.documents import JsonObject
from swift.http.headers import HeaderMap
from swift.s3.lifecycle.rules import LifecycleRule, Transition
from swift.s3.pieces import DocumentPieces, document_of

PLACE = DocumentPieces("lifecycle")
#: Buckets whose rules are remembered.
_REMEMBERED = 256

_NAMES = {
    "id": "i",
    "is_enabled": "e",
    "prefix": "p",
    "tags": "t",
    "greater": "g",
    "less": "l",
    "form": "f",
    "days": "d",
    "date": "a",
    "ends_markers": "m",
    "noncurrent_days": "n",
    "newer_versions": "v",
    "abort_days": "u",
    "transitions": "r",
    "noncurrent_transitions": "w",
}
_USUAL = LifecycleRule("")


def stored_rules(rules: Sequence[LifecycleRule]) -> HeaderMap:
    """The headers that keep rules, and let go of others; raises ``S3Error`` for more than has room."""
    return PLACE.stored([_short(rule) for rule in rules] or None)


def _short(rule: LifecycleRule) -> JsonObject:
    return {
        short: getattr(rule, name)
        for name, short in _NAMES.items()
        if getattr(rule, name) != getattr(_USUAL, name)
    }


def rules_of(sysmeta: Mapping[str, str]) -> tuple[LifecycleRule, ...]:
    """The rules in a container's system metadata (names without their prefix); none when there are none."""
    return _parsed(PLACE.text_in(sysmeta))


def rules_of_headers(headers: HeaderMap) -> tuple[LifecycleRule, ...]:
    """The same from what a HEAD of the container answers."""
    return _parsed(PLACE.text_of(headers))


@lru_cache(maxsize=_REMEMBERED)
def _parsed(text: str) -> tuple[LifecycleRule, ...]:
    items = document_of(text) if text else None
    try:
        return tuple(_long(item) for item in items) if isinstance(items, list) else ()
    except (ValueError, TypeError, AttributeError):
        # Somebody else wrote it: no rule is safer than a wrong one.
        return ()


def _long(item: JsonObject) -> LifecycleRule:
    known = {name: item[short] for name, short in _NAMES.items() if short in item}
    known["tags"] = tuple((str(key), str(value)) for key, value in known.get("tags", ()))
    for name in ("transitions", "noncurrent_transitions"):
        known[name] = tuple(Transition(*move) for move in known.get(name, ()))
    known.setdefault("id", "")
    return LifecycleRule(**known)
