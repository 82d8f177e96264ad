"""The shards of a split container: requested from its root, and cached in memcached (spec: proxy.md §14).

``Bounds`` are the cached form, which proxies share: a list of lower bounds and names; each shard ends where
the next one begins. A container has two lists: the shards that take its rows, and the shards that its listing
is merged from.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections.abc import Sequence
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace, check_bounds
from swift.base.truth import is_true
from swift.gateway.info import delete_cached_info
from swift.gateway.subrequest import Forward, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.request import Request

#: States of a root in which rows go to shards.
SPLIT_STATES = frozenset(("sharding", "sharded"))

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


def in_listing_order(namespaces: Sequence[Namespace], *, reverse: bool) -> Sequence[Namespace]:
    """Return the shards in the order of a listing, or as they are if they do not cover every name once."""
    ordered = sorted_by_lower(namespaces)
    return (ordered[::-1] if reverse else ordered) if is_complete(ordered) else namespaces


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


# --- requested from the root ------------------------------------------------------------------------------


def updating_shard(
    request: Request, forward: Forward, path: EntityPath, *, recheck_s: float, skip_pct: float = 0.0
) -> EntityPath | None:
    """Return the shard of a split container that takes an object's row; None if the root takes it."""
    name, key = str(path.obj), updating_key(path)
    cache = request.env.get(environkeys.CACHE)
    if cache is None or not recheck_s:
        found = _request_shards(
            request, forward, path, f"states=updating&includes={quote(name.encode(), safe='')}"
        )
        return find_shard(bounds_of(found or ()), name)
    infocache = request.env.setdefault(environkeys.INFOCACHE, {})
    bounds = infocache.get(key)
    if bounds is None and not (skip_pct and random.random() * 100 < skip_pct):
        bounds = validated_bounds(cache.get(key))
    if bounds is None:
        found = _request_shards(request, forward, path, "states=updating")
        if not found:
            return None
        bounds = bounds_of(found)
        cache.set(key, bounds, ttl_s=recheck_s)
    infocache[key] = bounds
    return find_shard(bounds, name)


def _request_shards(
    request: Request, forward: Forward, path: EntityPath, query: str
) -> list[Namespace] | None:
    headers = {
        fields.BACKEND_RECORD_TYPE: "shard",
        fields.BACKEND_RECORD_SHARD_FORMAT: "namespace",
        fields.BACKEND_ALLOW_RESERVED_NAMES: "true",
    }
    sub = make_subrequest(
        request,
        "GET",
        "/v1" + quote_path(f"/{path.account}/{path.container}"),
        headers=headers,
        query=f"format=json&{query}",
        source="SH",
    )
    with open_response(forward, preauthorise(sub)) as response:
        if response.status != 200 or response.headers.get(fields.BACKEND_RECORD_TYPE) != "shard":
            return None
        try:
            return parse_namespaces(response.read_body())
        except (BodyError, InvalidValue):
            return None


def parse_namespaces(body: bytes) -> list[Namespace]:
    """Parse a listing of shards; raises ``InvalidValue``."""
    try:
        rows: list[JsonObject] = json.loads(body)
        found = []
        for row in rows:
            lower, upper = check_bounds(row["lower"], row["upper"])
            name = str(row["name"])
            if not all(name.partition("/")):
                raise InvalidValue(f"{name!r} names no container")
            found.append(Namespace(name, lower, upper))
        return found
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidValue(f"not a list of shards: {error}")


# --- cached for listings ----------------------------------------------------------------------------------


def cached_shards(
    request: Request, path: EntityPath, limit_max: int, *, recheck_s: float, skip_pct: float
) -> list[Namespace] | None:
    """Return the cached shards of a sharded container for a listing; None if they are unknown.

    Also None if the root must validate the request.
    """
    cache = request.env.get(environkeys.CACHE)
    if cache is None or not recheck_s:
        return None
    limit = request.params.get("limit") or "0"
    is_odd = not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) <= limit_max)
    if is_odd or is_true(request.headers.get("x-newest")) or (skip_pct and random.random() * 100 < skip_pct):
        return None
    bounds = validated_bounds(cache.get(listing_key(path)))
    return None if bounds is None else namespaces_from(bounds)


def cache_shards(
    request: Request,
    path: EntityPath,
    headers: HeaderMap,
    namespaces: Sequence[Namespace],
    *,
    recheck_s: float,
) -> None:
    """Cache the shards of a root's response if it lists all and the container is fully sharded.

    ``headers`` are those of the response.
    """
    cache = request.env.get(environkeys.CACHE)
    is_all = headers.get(fields.BACKEND_OVERRIDE_NAME_FILTER) == "true"
    if cache is None or not recheck_s or not is_all:
        return
    ordered = sorted_by_lower(namespaces)
    if any((space.account, space.container) == (path.account, path.container) for space in ordered):
        # The root still holds some of the names itself.
        return
    if headers.get(fields.BACKEND_SHARDING_STATE) == "sharded" and is_complete(ordered):
        cache.set(listing_key(path), bounds_of(ordered), ttl_s=recheck_s)


def forget_shards(request: Request, path: EntityPath) -> None:
    """Delete the cached shards of a container, those of its listings and those that take its rows."""
    delete_cached_info(request, listing_key(path))
    delete_cached_info(request, updating_key(path))
