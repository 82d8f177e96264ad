"""Sources of a listing's rows: shards one after the other, or the servers of a container at once.

``ShardRows`` requests the listing of each shard through the pipeline, as a client would. ``StrongRows`` shows
every acknowledged write (decision 0017): such a write is acknowledged when a majority of the primaries of one
container has its row (``proxy.obj.rowupdates``). It requests the rows from all primaries and needs a majority
of them, so at least one of those knows the write. For a name that only some servers have, the object's own
nodes decide.

While a container is split, and whenever its shards are, rows move. A server removes a row only when a
majority of the next container's servers has it, and keeps that container among its shards. So a majority of a
container's servers always holds the row or names its next container. ``SplitPage`` therefore requests rows
from the root, then from every named shard, including retired ones, and once more from a container that a
later one names. Tombstones are included, so that a row that was left behind does not bring back a deleted
object. Not covered: a row that moves twice during one page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace
from swift.base.shardrange import ShardRange, State
from swift.base.truth import is_true
from swift.cluster.quorum import majority
from swift.cluster.transport import BackendResponse
from swift.gateway.subrequest import Forward, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import ProxyContext
from swift.proxy.listing.merge import (
    MergedPage,
    Page,
    ReplicaRows,
    Responses,
    all_rows,
    merge,
    nearest_end,
    parse_replica_rows,
    parse_rows,
    row_name,
)
from swift.proxy.listing.plan import AUTO, OBJECT, UNSHARDED, Finding, ListingParameters

_REPLICA_ROWS = "replica-rows"
#: Uncertain names whose objects are requested at the same time.
_HEADS_AT_ONCE = 8
#: Maximum number of requests for a container's rows by one page.
_REQUESTS_MAX = 2


def _may_contain(space: Namespace, prefix: str) -> bool:
    """Return True if names that begin with ``prefix`` can lie in a shard."""
    return (not space.upper or space.upper >= prefix) and (
        space.lower < prefix or space.lower.startswith(prefix)
    )


# --- one shard after the other -----------------------------------------------------------------------------


class ShardRows:
    """The rows of shards, which are in the order of the listing.

    With ``is_cached`` the shards come from a cache: they may have been split, merged or shrunk into their
    root since.
    """

    def __init__(
        self,
        request: Request,
        forward: Forward,
        path: EntityPath,
        params: ListingParameters,
        shards: Sequence[Namespace],
        *,
        policy_index: str,
        is_cached: bool = False,
    ):
        self._request = request
        self._forward = forward
        self._own = (path.account, str(path.container))
        self._params = params
        self._shards = iter(shards)
        self._policy_index = policy_index
        self._is_cached = is_cached
        #: The last row if it is a common prefix.
        self._subdir = ""

    def page(self, after: str, limit: int) -> Page | Finding:
        """Return the rows of the next shard that can have some."""
        for shard in self._shards:
            is_outside, is_last = self._is_outside(shard, after), self._is_last(shard)
            rows = [] if is_outside else self._request_rows(shard, after, limit)
            if isinstance(rows, Finding):
                return rows
            if rows:
                self._subdir = rows[-1].get("subdir", "")
                after = row_name(rows[-1])
            if rows or is_last:
                return Page(rows, None if is_last else after)
        return Page((), None)

    def _is_outside(self, shard: Namespace, after: str) -> bool:
        """Return True if none of its names can be in the listing."""
        if not _may_contain(shard, self._params.prefix):
            return True
        reverse = self._params.reverse
        if after and (shard.lower >= after if reverse else shard.upper and shard.upper <= after):
            return True
        edge = shard.lower if reverse else shard.upper
        return bool(self._subdir and edge.startswith(self._subdir))

    def _is_last(self, shard: Namespace) -> bool:
        """Return True if the listing ends in this shard."""
        end = self._params.end
        if not end:
            return False
        return end >= shard.lower if self._params.reverse else (not shard.upper or end <= shard.upper)

    def _request_rows(self, shard: Namespace, after: str, limit: int) -> list[JsonObject] | Finding:
        with open_response(
            self._forward, self._subrequest(shard, self._query(shard, after, limit))
        ) as response:
            headers = response.headers
            policy_index = headers.get(fields.BACKEND_RECORD_STORAGE_POLICY_INDEX, self._policy_index)
            has_moved = self._is_cached and (
                is_true(headers.get(fields.BACKEND_SHARD_RETIRED))
                or headers.get(fields.BACKEND_SHARDING_STATE) == "sharded"
            )
            if response.is_success and policy_index == self._policy_index and not has_moved:
                try:
                    return parse_rows(response.read_body())
                except (BodyError, InvalidValue):
                    pass
        if self._is_cached:
            return Finding.OUTDATED
        raise HTTPError(503)

    def _subrequest(self, shard: Namespace, query: str) -> Request:
        parent = self._request
        history: list[tuple[str, str]] = list(parent.env.get(environkeys.SHARD_LISTING_HISTORY, ()))
        history.append(self._own)
        headers: HeaderMap = {
            fields.BACKEND_RECORD_TYPE: OBJECT if (shard.account, shard.container) in history else AUTO,
            fields.BACKEND_STORAGE_POLICY_INDEX: self._policy_index,
            # The shard's account is internal; names inside it are the client's.
            fields.BACKEND_ALLOW_RESERVED_NAMES: (
                "true" if fields.BACKEND_ALLOW_RESERVED_NAMES in parent.headers else "false"
            ),
        }
        for name in ("x-newest", fields.BACKEND_USE_REPLICATION_NETWORK, fields.BACKEND_LISTING_DIRECTORIES):
            if name in parent.headers:
                headers[name] = parent.headers[name]
        path = quote_path(f"/{shard.account}/{shard.container}")
        sub = make_subrequest(parent, "GET", f"/v1{path}", headers=headers, query=query, source="SH")
        sub.env[environkeys.SHARD_LISTING_HISTORY] = history
        return preauthorise(sub)

    def _query(self, shard: Namespace, after: str, limit: int) -> str:
        low, high = shard.lower, f"{shard.upper}\x00" if shard.upper else ""
        first, behind = (high, low) if self._params.reverse else (low, high)
        if not after or (first and not first.startswith(after) and self._params.is_before(after, first)):
            after = first
        end = self._params.end if self._params.end and shard.includes(self._params.end) else behind
        return self._params.query(after, limit, end_marker=end, states="listing")


# --- all servers at once -----------------------------------------------------------------------------------


class Primaries:
    """Requests the rows of a container from all of its primaries, for one request of a client."""

    def __init__(self, context: ProxyContext, backends: Backends, request: Request, *, policy_index: str):
        self._context = context
        self._backends = backends
        self._policy_index = policy_index
        self._sent = backend_headers(context, request, transfer=True)

    def listed_rows(self, container: str, query: str, limit: int) -> Responses | Finding:
        """Return the listings of a container that was never split; raises ``HTTPError`` 503."""
        headers = {fields.BACKEND_RECORD_TYPE: OBJECT, fields.BACKEND_SHARDS_KNOWN: "true"}
        count, responses = self._request(container, headers, query)
        found = []
        for response in responses:
            if response.status not in (200, 204):
                continue
            state = response.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED)
            if state != UNSHARDED or is_true(response.headers.get(fields.BACKEND_SHARDS_KNOWN)):
                return Finding.SPLIT
            rows = parse_rows(response.body)
            found.append(ReplicaRows(rows, row_name(rows[-1]) if rows and len(rows) >= limit else ""))
        if len(found) < majority(count):
            raise HTTPError(503)
        return found

    def held_rows(self, container: str, query: str, may_lack: bool) -> Responses | Finding:
        """Return all rows that the servers hold, which need not have the container if it ``may_lack``.

        Raises ``HTTPError`` 503.
        """
        headers = {
            fields.BACKEND_RECORD_TYPE: _REPLICA_ROWS,
            fields.BACKEND_STORAGE_POLICY_INDEX: self._policy_index,
            fields.BACKEND_OVERRIDE_DELETED: "true",
        }
        count, responses = self._request(container, headers, query)
        held, is_peer = [], False
        for response in responses:
            if response.status == 404 and may_lack:
                held.append(ReplicaRows((), ""))
            elif response.headers.get(fields.BACKEND_RECORD_TYPE) == _REPLICA_ROWS and response.status == 200:
                try:
                    held.append(parse_replica_rows(response.body))
                except InvalidValue:
                    continue
            elif response.status in (200, 204):
                is_peer = True
        if len(held) >= majority(count):
            return held
        if is_peer:
            return Finding.PEER
        raise HTTPError(503)

    def _request(self, name: str, headers: HeaderMap, query: str) -> tuple[int, list[BackendResponse]]:
        """Return the number of primaries of a container, and the responses of those that respond."""
        account, _, container = name.partition("/")
        path = EntityPath(account, container)
        view = self._context.rings.container.view()
        part = view.partition_of(self._context.hasher.digest(path.account, path.container))
        nodes, sent = view.primaries(part), {**self._sent, **headers}
        requests = [self._backends.make_request(node, part, "GET", path, sent, query) for node in nodes]
        responses = green.gather([partial(self._backends.request, request) for request in requests])
        return len(nodes), [response for response in responses if response is not None]


class StrongRows:
    """The rows of a majority of servers; ``exists`` decides about objects that only some of them have."""

    def __init__(
        self,
        primaries: Primaries,
        container: str,
        params: ListingParameters,
        exists: Callable[[str], bool],
        *,
        is_split: bool,
    ):
        self._primaries = primaries
        self._container = container
        self._params = params
        self._exists = exists
        self._is_split = is_split

    def page(self, after: str, limit: int) -> Page | Finding:
        """Return the rows that exist, as far as all responses reach."""
        merged = self._merged(after, limit)
        if isinstance(merged, Finding):
            return merged
        uncertain = [row for row, is_certain in merged.rows if not is_certain]
        found = green.bounded_map(partial(self._is_there, after), uncertain, _HEADS_AT_ONCE)
        for is_there in found:
            if isinstance(is_there, Finding):
                return is_there
        gone = {id(row) for row, is_there in zip(uncertain, found, strict=True) if not is_there}
        rows = [row for row, _ in merged.rows if id(row) not in gone]
        return Page(rows, merged.end if merged.end and merged.end != after else None)

    def _merged(self, after: str, limit: int) -> MergedPage | Finding:
        if self._is_split:
            return SplitPage(self._primaries.held_rows, self._container, self._params, after, limit).run()
        found = self._primaries.listed_rows(self._container, self._params.query(after, limit), limit)
        if isinstance(found, Finding):
            return found
        reverse = self._params.reverse
        end = nearest_end(found, "", reverse=reverse)
        if all(each.rows == found[0].rows for each in found):
            # The usual case, in a fraction of the time.
            return MergedPage([(row, "subdir" not in row) for row in found[0].rows], end)
        return merge([found], end, reverse=reverse)

    def _is_there(self, after: str, row: JsonObject) -> bool | Finding:
        """Return True if an object exists, or anything below a common prefix."""
        if "subdir" not in row:
            return self._exists(str(row["name"]))
        params = self._params.below(str(row["subdir"]))
        below = StrongRows(self._primaries, self._container, params, self._exists, is_split=self._is_split)
        rows = all_rows(below, after, 1)
        return rows if isinstance(rows, Finding) else bool(rows)


def object_exists(request: Request, forward: Forward, container: EntityPath, name: str) -> bool:
    """Return True if the newest state of an object exists; raises ``HTTPError`` 503."""
    path = quote_path(f"/{container.account}/{container.container}/{name}")
    headers = {"x-newest": "true", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
    sub = make_subrequest(request, "HEAD", f"/v1{path}", headers=headers, source="SL")
    with open_response(forward, preauthorise(sub)) as response:
        if response.is_success:
            return True
        if response.status == 404:
            return False
    raise HTTPError(503)


# --- rows that move between containers ---------------------------------------------------------------------


#: Requests rows from the servers of a container (``account/container``): its name, the query, and True if
#: servers need not have it. Raises ``HTTPError`` 503 for too few responses.
RequestRows = Callable[[str, str, bool], Responses | Finding]


class SplitPage:
    """One page of a split container; ``_end`` is the name up to which it is complete, empty for all names."""

    def __init__(
        self, request_rows: RequestRows, root: str, params: ListingParameters, after: str, limit: int
    ):
        self._request_rows = request_rows
        self._root = root
        self._params = params
        self._after = after
        self._limit = limit
        self._query = params.query(after, limit)
        self._end = ""
        #: By request; rows that a container had at its first request may have moved at its second.
        self._held: list[Responses] = []
        self._shards: dict[str, Namespace] = {}
        #: Containers that all their servers should have: not shards that are new or retired.
        self._expected: set[str] = {root}
        self._names: set[str] = set()
        self._directories: set[str] = set()
        self._requested_in: dict[str, int] = {}
        self._named_in: dict[str, int] = {}
        self._request_counts: dict[str, int] = {}

    def run(self) -> MergedPage | Finding:
        name: str | None = self._root
        while name is not None:
            held = self._request_rows(name, self._query, name not in self._expected)
            if isinstance(held, Finding):
                return held
            self._add(name, held)
            name = self._next_shard() or self._next_outdated()
        end = next((each for each in self._directories if self._end.startswith(each)), self._end)
        return merge(self._held, end, reverse=self._params.reverse)

    def _add(self, name: str, held: Responses) -> None:
        self._held.append(held)
        self._requested_in[name] = len(self._held)
        self._request_counts[name] = self._request_counts.get(name, 0) + 1
        self._end = nearest_end(held, self._end, reverse=self._params.reverse)
        for response in held:
            for item in response.ranges:
                self._add_shard(item)
            for row in response.rows:
                if not row.get("deleted"):
                    self._names.add(row_name(row))
                if "subdir" in row:
                    self._directories.add(str(row["subdir"]))

    def _add_shard(self, item: ShardRange) -> None:
        self._named_in[item.name] = len(self._held)
        if item.state >= State.ACTIVE and not item.deleted:
            self._expected.add(item.name)
        known = self._shards.get(item.name)
        lower, upper = item.lower, item.upper
        if known is not None:
            # Servers may disagree; the wider bounds count, because a shard that merges a neighbour grows.
            lower = min(lower, known.lower)
            upper = max(upper, known.upper) if upper and known.upper else ""
        self._shards[item.name] = Namespace(item.name, lower, upper)

    def _next_shard(self) -> str | None:
        """Return the nearest shard that was not requested yet; None when the page is complete without it."""
        waiting = [space for space in self._shards.values() if self._is_pending(space)]
        if not waiting:
            return None
        if self._params.reverse:
            space = max(waiting, key=lambda each: (not each.upper, each.upper))
        else:
            space = min(waiting, key=lambda each: each.lower)
        edge = self._bound_before(space)
        if edge and sum(not self._params.is_before(edge, name) for name in self._names) >= self._limit:
            self._end = edge
            return None
        return space.name

    def _bound_before(self, space: Namespace) -> str:
        """Return the name before which all names come before the shard's; empty when there are none."""
        if self._params.reverse:
            return f"{space.upper}\0" if space.upper else ""
        return space.lower

    def _is_pending(self, space: Namespace) -> bool:
        if space.name in self._requested_in:
            return False
        low, high = self._after, self._params.end
        if self._params.reverse:
            low, high = max(high, self._end), low
        elif self._end and (not high or self._end < high):
            high = f"{self._end}\0"
        if (space.upper and space.upper < low) or (high and space.lower >= high):
            return False
        return _may_contain(space, self._params.prefix) and not self._is_within_prefix(space)

    def _is_within_prefix(self, space: Namespace) -> bool:
        """Return True if all its names are below a common prefix, which is checked separately."""
        return any(
            space.lower.startswith(each) and space.upper.startswith(each) for each in self._directories
        )

    def _next_outdated(self) -> str | None:
        """Return a container that may have received rows from a shard that was requested after it."""
        for name, turn in self._requested_in.items():
            if self._named_in.get(name, 0) > turn and self._request_counts[name] < _REQUESTS_MAX:
                return name
        return None
