"""Containers that are split into shards (spec: proxy.md §14).

``updating_shard`` finds the shard that takes an object's row. ``ShardedListing`` merges the listings of
shards so that a client sees one container. The shards are requested from the root with a pre-authorized
sub-request, and cached in memcached (``proxy.shardbounds``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace, check_bounds
from swift.base.truth import is_true
from swift.gateway.info import cached_container, container_key, delete_cached_info
from swift.gateway.subrequest import Forward, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.listing import as_json, as_text
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.proxy.shardbounds import (
    bounds_of,
    find_shard,
    is_complete,
    listing_key,
    namespaces_from,
    sorted_by_lower,
    updating_key,
    validated_bounds,
)

SHARD, AUTO, OBJECT = "shard", "auto", "object"
_PARAMETERS = ("limit", "marker", "end_marker", "prefix", "delimiter", "path", "reverse")
#: States of a root in which rows go to shards.
SPLIT_STATES = frozenset(("sharding", "sharded"))
SOURCE = "SH"


# --- the shard of a row --------------------------------------------------------------------------------


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
        fields.BACKEND_RECORD_TYPE: SHARD,
        fields.BACKEND_RECORD_SHARD_FORMAT: "namespace",
        fields.BACKEND_ALLOW_RESERVED_NAMES: "true",
    }
    sub = make_subrequest(
        request,
        "GET",
        "/v1" + quote_path(f"/{path.account}/{path.container}"),
        headers=headers,
        query=f"format=json&{query}",
        source=SOURCE,
    )
    with open_response(forward, preauthorise(sub)) as response:
        if response.status != 200 or response.headers.get(fields.BACKEND_RECORD_TYPE) != SHARD:
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


# --- listings ---------------------------------------------------------------------------------------------


def _is_listing(request: Request) -> bool:
    return request.method == "GET" and request.headers.get(fields.BACKEND_RECORD_TYPE, AUTO).lower() == AUTO


def prepare_listing(request: Request, query: str) -> str:
    """Set headers that let a split root respond with its shards; return the query to send.

    A request that sets another record type is left alone.
    """
    if not _is_listing(request):
        return query
    request.headers[fields.BACKEND_RECORD_TYPE] = AUTO
    request.headers[fields.BACKEND_RECORD_SHARD_FORMAT] = "namespace"
    request.headers[fields.BACKEND_INCLUDE_DELETED] = "false"
    if request.env.get(environkeys.CACHE) is not None:
        # All shards, whatever part the client lists: they are cached for other requests.
        request.headers[fields.BACKEND_OVERRIDE_NAME_FILTER] = "sharded"
    return f"{query}&states=listing"


def cached_shards(
    request: Request, path: EntityPath, limit_max: int, *, recheck_s: float, skip_pct: float
) -> list[Namespace] | None:
    """Return the cached shards of a container; None if they are unknown or the root must validate the
    request.
    """
    cache = request.env.get(environkeys.CACHE)
    if cache is None or not recheck_s or not _is_listing(request):
        return None
    limit = request.params.get("limit") or "0"
    is_odd = not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) <= limit_max)
    if is_odd or is_true(request.headers.get("x-newest")) or (skip_pct and random.random() * 100 < skip_pct):
        return None
    record = cached_container(request, path.account, str(path.container))
    if record is None or record.get("sharding_state") != "sharded":
        return None
    bounds = validated_bounds(cache.get(listing_key(path)))
    return None if bounds is None else namespaces_from(bounds)


def cache_shards(
    request: Request, path: EntityPath, root: Response, namespaces: Sequence[Namespace], *, recheck_s: float
) -> None:
    """Cache the shards of a root's response if it lists all and the container is fully sharded."""
    cache = request.env.get(environkeys.CACHE)
    is_all = root.headers.get(fields.BACKEND_OVERRIDE_NAME_FILTER) == "true"
    if cache is None or not recheck_s or not is_all:
        return
    ordered = sorted_by_lower(namespaces)
    if any((space.account, space.container) == (path.account, path.container) for space in ordered):
        # The root still holds some of the names itself.
        return
    if root.headers.get(fields.BACKEND_SHARDING_STATE) == "sharded" and is_complete(ordered):
        cache.set(listing_key(path), bounds_of(ordered), ttl_s=recheck_s)


def listing_response(request: Request, headers: HeaderMap, rows: Sequence[JsonObject]) -> Response:
    """Return a merged listing in the format that the filter in front expects."""
    headers = dict(headers)
    if environkeys.LISTING_TEXT in request.env:
        headers["content-type"], body = "text/plain; charset=utf-8", as_text(rows)
    else:
        headers["content-type"], body = "application/json; charset=utf-8", as_json(rows)
    headers["content-length"] = str(len(body))
    return Response(200 if body else 204, headers, body)


def is_split(request: Request, response: Response) -> bool:
    """Return True if a response lists the shards that have the rows."""
    return (
        response.status in (200, 204)
        and request.headers.get(fields.BACKEND_RECORD_TYPE, "").lower() == AUTO
        and response.headers.get(fields.BACKEND_RECORD_TYPE) == SHARD
    )


class OutdatedShards(Exception):
    """A cached shard's names are in other shards now."""


class ShardedListing:
    """One listing of a split container.

    With ``is_cached`` the shards come from a cache: they may have been split, merged or shrunk into their
    root since.
    """

    def __init__(
        self,
        request: Request,
        forward: Forward,
        path: EntityPath,
        limit_max: int,
        *,
        is_cached: bool = False,
    ):
        self._request = request
        self._is_cached = is_cached
        self._forward = forward
        self._own = (path.account, str(path.container))
        self._params = {name: request.param_utf8(name) for name in _PARAMETERS}
        self._reverse = is_true(self._params.get("reverse"))
        self._limit = limit_max
        limit = self._params.get("limit") or ""
        if limit.isascii() and limit.isdigit():
            self._limit = min(int(limit), limit_max)
        self._rows: list[JsonObject] = []

    def build(self, root: Response, namespaces: Sequence[Namespace]) -> Response:
        """Return the root's response with the rows of its shards; raises ``HTTPError`` 503 and
        ``OutdatedShards``.
        """
        policy = root.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0")
        ordered = sorted_by_lower(namespaces)
        if is_complete(ordered):
            namespaces = ordered[::-1] if self._reverse else ordered
        for space in namespaces:
            if len(self._rows) >= self._limit:
                break
            if not self._is_outside(space):
                self._rows += self._request_rows(space, policy)
            if self._is_last(space):
                break
        return self._build_response(root)

    def _build_response(self, root: Response) -> Response:
        headers = dict(root.headers)
        for name in (fields.BACKEND_RECORD_SHARD_FORMAT, fields.BACKEND_OVERRIDE_NAME_FILTER):
            headers.pop(name, None)
        headers[fields.BACKEND_RECORD_TYPE] = OBJECT
        limits = ("marker", "end_marker", "prefix", "delimiter", "path")
        if len(self._rows) < self._limit and not any(self._params.get(name) for name in limits):
            headers["x-container-object-count"] = str(len(self._rows))
            headers["x-container-bytes-used"] = str(sum(row.get("bytes", 0) for row in self._rows))
        return listing_response(self._request, headers, self._rows)

    # --- one shard ------------------------------------------------------------------------------------

    def _is_outside(self, space: Namespace) -> bool:
        """Return True if none of its names can be in the listing."""
        prefix = self._params.get("prefix") or ""
        path = self._params.get("path")
        if path is not None:
            prefix = f"{path.rstrip('/')}/" if path else ""
        if prefix and ((space.upper and space.upper < prefix) or _is_behind(space.lower, prefix)):
            return True
        marker = self._params.get("marker") or ""
        if marker and (space.lower >= marker if self._reverse else space.upper and space.upper <= marker):
            return True
        subdir = self._rows[-1].get("subdir") if self._rows else None
        edge = space.lower if self._reverse else space.upper
        return bool(subdir and edge.startswith(subdir))

    def _request_rows(self, space: Namespace, policy: str) -> list[JsonObject]:
        history: list[tuple[str, str]] = list(self._request.env.get(environkeys.SHARD_LISTING_HISTORY, ()))
        history.append(self._own)
        shard = (space.account, space.container)
        headers: HeaderMap = {
            fields.BACKEND_RECORD_TYPE: OBJECT if shard in history else AUTO,
            fields.BACKEND_STORAGE_POLICY_INDEX: policy,
            fields.BACKEND_ALLOW_RESERVED_NAMES: "true",
        }
        for name in ("x-newest", fields.BACKEND_USE_REPLICATION_NETWORK, fields.BACKEND_LISTING_DIRECTORIES):
            if name in self._request.headers:
                headers[name] = self._request.headers[name]
        sub = make_subrequest(
            self._request,
            "GET",
            "/v1" + quote_path(f"/{space.account}/{space.container}"),
            headers=headers,
            query=self._query(space),
            source=SOURCE,
        )
        sub.env[environkeys.SHARD_LISTING_HISTORY] = history
        if fields.BACKEND_ALLOW_RESERVED_NAMES not in self._request.headers:
            # The shard's account is internal; names inside it are the client's.
            sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "false"
        with open_response(self._forward, preauthorise(sub)) as response:
            if self._is_cached and _has_moved(response.headers):
                raise OutdatedShards()
            shard_policy = response.headers.get(fields.BACKEND_RECORD_STORAGE_POLICY_INDEX, policy)
            if not response.is_success or shard_policy != policy:
                raise HTTPError(503)
            try:
                return _rows_of(response.read_body() or b"[]")
            except (BodyError, InvalidValue):
                raise HTTPError(503)

    def _query(self, space: Namespace) -> str:
        low, high = space.lower, f"{space.upper}\x00" if space.upper else ""
        end = self._params.get("end_marker") or ""
        marker = self._params.get("marker") or ""
        if self._rows:
            last = self._rows[-1]
            marker = str(last.get("name") or last["subdir"])
        first, behind = (high, low) if self._reverse else (low, high)
        if not marker or (first and not first.startswith(marker) and self._is_before(marker, first)):
            marker = first
        if not end or not space.includes(end):
            end = behind
        params = {
            **self._params,
            "format": "json",
            "limit": str(self._limit - len(self._rows)),
            "marker": marker,
            "end_marker": end,
            "states": "listing",
        }
        pairs = ((name, text) for name, text in params.items() if text is not None)
        return "&".join(f"{quote(n.encode(), safe='')}={quote(t.encode(), safe='')}" for n, t in pairs)

    def _is_before(self, name: str, other: str) -> bool:
        return name > other if self._reverse else name < other

    def _is_last(self, space: Namespace) -> bool:
        """Return True if the listing ends in this shard."""
        end = self._params.get("end_marker") or ""
        if not end:
            return False
        return end >= space.lower if self._reverse else (not space.upper or end <= space.upper)


def _rows_of(body: bytes) -> list[JsonObject]:
    """Parse the rows of a shard's listing; raises ``InvalidValue``."""
    try:
        rows = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not a listing: {error}")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and ("name" in row or "subdir" in row) for row in rows
    ):
        raise InvalidValue("not a listing of names")
    return rows


def _has_moved(headers: HeaderMap) -> bool:
    """Return True if a shard's response says that its rows have moved."""
    is_retired = is_true(headers.get(fields.BACKEND_SHARD_RETIRED))
    return is_retired or headers.get(fields.BACKEND_SHARDING_STATE) == "sharded"


def _is_behind(lower: str, prefix: str) -> bool:
    """Return True if all names above a bound come after those of a prefix."""
    return lower > prefix and not lower.startswith(prefix)


#: Requests the root again, for JSON.
RequestAgain = Callable[[], Response]


def sharded_listing_response(
    request: Request,
    forward: Forward,
    path: EntityPath,
    limit_max: int,
    root: Response,
    request_again: RequestAgain,
    *,
    recheck_s: float,
) -> Response:
    """Return the client's listing of a split container; raises ``HTTPError`` 503."""
    if environkeys.LISTING_TEXT in request.env:
        root.discard()
        root = request_again()
        if not is_split(request, root):
            return _unsplit_listing(request, root)
    try:
        body = root.read_body()
        namespaces = parse_namespaces(body) if body else []
    except (BodyError, InvalidValue):
        raise HTTPError(503)
    cache_shards(request, path, root, namespaces, recheck_s=recheck_s)
    return ShardedListing(request, forward, path, limit_max).build(root, namespaces)


def _unsplit_listing(request: Request, root: Response) -> Response:
    """Return the listing of a replica that is not split yet, unlike the replica of the first request.

    Raises ``HTTPError`` 503.
    """
    try:
        if root.status not in (200, 204) or root.headers.get(fields.BACKEND_RECORD_TYPE, OBJECT) != OBJECT:
            raise HTTPError(503)
        rows = _rows_of(root.read_body() or b"[]")
    except (BodyError, InvalidValue):
        raise HTTPError(503)
    finally:
        root.discard()
    return listing_response(request, root.headers, rows)


def cached_listing_response(
    request: Request,
    forward: Forward,
    path: EntityPath,
    limit_max: int,
    root: Response,
    namespaces: Sequence[Namespace],
) -> Response | None:
    """Return the listing from cached shards; None when one has gone or its names moved.

    The cached records of the container are deleted then, so that writers request its shards again too.
    """
    try:
        return ShardedListing(request, forward, path, limit_max, is_cached=True).build(root, namespaces)
    except (HTTPError, OutdatedShards):
        delete_cached_info(request, listing_key(path))
        delete_cached_info(request, updating_key(path))
        delete_cached_info(request, container_key(path.account, str(path.container)))
        return None
