"""Shards of a split container in the form that proxies share in memcached (spec: proxy.md §14).

``Bounds`` are a list of lower bounds and names: each shard ends where the next one begins. A container has
two lists: the shards that take its rows, and the shards that its listing is merged from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from swift.base.entity import EntityPath
from swift.base.namespace import Namespace

#: The name of a shard's lower bound, and of its account and container.
Bounds = list[list[str]]


def updating_key(path: EntityPath) -> str:
    """Return the cache key of the shards that take a container's rows."""
    return f"shard-updating-v2/{path.account}/{path.container}"


def listing_key(path: EntityPath) -> str:
    """Return the cache key of the shards that list a container."""
    return f"shard-listing-v2/{path.account}/{path.container}"


def bounds_of(namespaces: Sequence[Namespace]) -> Bounds:
    """Return the cached form of namespaces that are in order; overlapping later ones are left out."""
    bounds: Bounds = []
    end: str | None = None
    for space in namespaces:
        if end is None or (end and space.lower >= end):
            bounds.append([space.lower, space.name])
            end = space.upper
    return bounds


def namespaces_from(bounds: Bounds) -> list[Namespace]:
    """Return the namespaces of bounds, in order."""
    uppers = [*(lower for lower, _name in bounds[1:]), ""]
    return [Namespace(name, lower, upper) for (lower, name), upper in zip(bounds, uppers, strict=True)]


def sorted_by_lower(namespaces: Sequence[Namespace]) -> list[Namespace]:
    """Return the namespaces by their lower bounds, ascending."""
    return sorted(namespaces, key=lambda space: space.lower)


def is_complete(namespaces: Sequence[Namespace]) -> bool:
    """Return True if namespaces in order cover every name exactly once, so that bounds describe them."""
    if not namespaces or namespaces[0].lower or namespaces[-1].upper:
        return False
    return all(a.upper and a.upper == b.lower for a, b in zip(namespaces, namespaces[1:], strict=False))


def validated_bounds(value: object) -> Bounds | None:
    """Return bounds from the cache if they are well-formed and in order, else None; others write to the
    cache too.
    """
    if not isinstance(value, list) or not value:
        return None
    before: str | None = None
    for item in value:
        if not (isinstance(item, list) and len(item) == 2 and all(isinstance(text, str) for text in item)):
            return None
        lower, name = item
        if not all(name.partition("/")) or (before is not None and lower <= before):
            return None
        before = lower
    return value


def find_shard(bounds: Bounds, name: str) -> EntityPath | None:
    """Return the shard that holds an object name."""
    place = bisect_left([lower for lower, _shard in bounds], name)
    if not place:
        return None
    account, _, container = bounds[place - 1][1].partition("/")
    return EntityPath(account, container)
