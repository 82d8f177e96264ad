"""Strong listings: listings that show every acknowledged write (decision 0017).

A write in such a container is acknowledged when a majority of the container's primaries has its row
(``ensure_row_majority``). The container is the object's own, or the shard that takes its rows. A listing
requests its rows from all primaries and needs a majority of them, so at least one of those knows every
acknowledged write. Rows on which all responses agree are listed. For a name that only some servers have, the
object's own nodes decide. ``merge`` decides without I/O which rows are uncertain. A common prefix always is,
because two replicas may derive it from different names.

While a container is split, and whenever its shards are, rows move. A server removes a row only when a
majority of the next container's servers has it, and keeps that container among its shards. So a majority of a
container's servers always holds the row or names its next container. ``sharded_page`` therefore requests rows
from the root, then from every named shard, including retired ones, and once more from a container that a
later one names. Tombstones are included, so that a row that was left behind does not bring back a deleted
object. Not covered: a row that moves twice during one page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import InvalidTimestamp, decode_timestamps
from swift.base.truth import is_true
from swift.cluster.direct import node_path
from swift.cluster.quorum import majority
from swift.cluster.transport import BackendResponse, TransportError
from swift.gateway.subrequest import Forward, make_subrequest, open_response, preauthorise
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import ProxyContext
from swift.ring.device import Node

#: The container metadata key that enables strong listings.
META_KEY = "strong-listing"
SOURCE = "SL"
_PARAMETERS = ("marker", "end_marker", "prefix", "delimiter", "path", "reverse")
#: Uncertain names whose objects are requested at the same time.
_HEADS_AT_ONCE = 8


def is_wanted(setting: str, mark: str | None) -> bool:
    """Return True if a container is listed so, by the option ``strong_listing`` and its own metadata."""
    return setting == "all" or (setting == "marked" and is_true(mark))


Page = Sequence[JsonObject]


class MergedPage(NamedTuple):
    """The merged pages of several replicas."""

    #: In the order of the listing, each with True if it certainly belongs there.
    rows: list[tuple[JsonObject, bool]]
    #: The name up to which all rows are known; empty at the end of the listing.
    marker: str


#: The next rows of a listing by its parameters, at least so many if there are. Raises ``HTTPError`` 503.
NextPage = Callable[[Mapping[str, str], int], MergedPage]


def row_name(row: JsonObject) -> str:
    """Return the name of a row in the order of a listing."""
    return str(row["subdir"] if "subdir" in row else row["name"])


def merge(pages: Sequence[Page], limit: int, *, reverse: bool = False) -> MergedPage:
    """Merge pages of up to ``limit`` rows, as far as all reach; the newest row of a name counts."""
    ends = [row_name(page[-1]) for page in pages if len(page) >= limit]
    end = (max(ends) if reverse else min(ends)) if ends else ""
    found: dict[tuple[str, bool], JsonObject] = {}
    seen: dict[tuple[str, bool], int] = {}
    for page in pages:
        for row in page:
            key = row_name(row), "subdir" in row
            if end and (key[0] < end if reverse else key[0] > end):
                continue
            seen[key] = seen.get(key, 0) + 1
            if key not in found or _last_modified(row) > _last_modified(found[key]):
                found[key] = row
    keys = sorted(found, reverse=reverse)
    return MergedPage([(found[key], not key[1] and seen[key] == len(pages)) for key in keys], end)


def _last_modified(row: JsonObject) -> str:
    return str(row.get("last_modified", ""))


class StrongListing:
    """One listing of a container for a client."""

    def __init__(self, request: Request, forward: Forward, path: EntityPath, limit_max: int):
        self._request = request
        self._forward = forward
        self._path = path
        self._params: dict[str, str] = {}
        for name in _PARAMETERS:
            text = request.param_utf8(name)
            if text is not None:
                self._params[name] = text
        self._limit = limit_max
        limit = request.params.get("limit") or ""
        if limit.isascii() and limit.isdigit():
            self._limit = min(int(limit), limit_max)

    def rows(self, next_page: NextPage) -> list[JsonObject]:
        """Return the rows; raises ``HTTPError`` 503 when too few servers respond."""
        return self._collect(next_page, self._params, self._limit)

    def _collect(self, next_page: NextPage, params: Mapping[str, str], limit: int) -> list[JsonObject]:
        params, rows = dict(params), list[JsonObject]()
        while len(rows) < limit:
            merged = next_page(params, limit - len(rows))
            rows += self._existing_rows(next_page, merged, params)
            if not merged.marker or merged.marker == params.get("marker"):
                break
            params["marker"] = merged.marker
        return rows[:limit]

    def _existing_rows(
        self, next_page: NextPage, merged: MergedPage, params: Mapping[str, str]
    ) -> list[JsonObject]:
        def is_there(row: JsonObject) -> bool:
            if "subdir" in row:
                return self._prefix_exists(next_page, row, params)
            return self._object_exists(str(row["name"]))

        doubtful = [row for row, is_sure in merged.rows if not is_sure]
        found = green.bounded_map(is_there, doubtful, _HEADS_AT_ONCE)
        gone = {id(row) for row, is_found in zip(doubtful, found, strict=True) if not is_found}
        return [row for row, _ in merged.rows if id(row) not in gone]

    def _prefix_exists(self, next_page: NextPage, row: JsonObject, params: Mapping[str, str]) -> bool:
        """Return True if anything is below a common prefix."""
        below = {name: text for name, text in params.items() if name not in ("delimiter", "path")}
        return bool(self._collect(next_page, {**below, "prefix": str(row["subdir"])}, 1))

    def _object_exists(self, name: str) -> bool:
        """Return True if the newest state of an object exists; raises ``HTTPError`` 503."""
        path = quote_path(f"/{self._path.account}/{self._path.container}/{name}")
        headers = {"x-newest": "true", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        sub = make_subrequest(self._request, "HEAD", f"/v1{path}", headers=headers, source=SOURCE)
        with open_response(self._forward, preauthorise(sub)) as response:
            if response.is_success:
                return True
            if response.status == 404:
                return False
        raise HTTPError(503)


# --- rows that the servers of a split container hold -----------------------------------------------------


#: Maximum number of requests for a container's rows by one page.
_REQUESTS_MAX = 2
_PLAIN_TIME = 16


class ReplicaRows(NamedTuple):
    """One server's response: rows up to ``end`` (empty: all of them), and the shards that it knows."""

    rows: list[JsonObject]
    end: str
    ranges: list[ShardRange]


def parse_replica_rows(document: bytes) -> ReplicaRows:
    """Parse a server's response with the rows it holds; raises ``InvalidValue``."""
    try:
        value = json.loads(document)
        ranges = [ShardRange.from_mapping(item) for item in value["ranges"]]
        return ReplicaRows(list(value["rows"]), str(value["end"]), ranges)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidValue(f"not what a container server holds: {error}")


#: Requests a page from the servers of a container (``account/container``): the parameters of a listing, how
#: many rows, and True if servers need not have it. Raises ``HTTPError`` 503 for too few responses.
RequestRows = Callable[[str, Mapping[str, str], int, bool], Sequence[ReplicaRows]]


def sharded_page(request_rows: RequestRows, root: str, params: Mapping[str, str], wanted: int) -> MergedPage:
    """Return the next ``wanted`` or more names of a listing, as far as all responses reach."""
    return _ShardedPage(request_rows, root, params, wanted).run()


class _ShardedPage:
    """One page; ``_end`` is the name up to which it is complete, empty for all names."""

    def __init__(self, request_rows: RequestRows, root: str, params: Mapping[str, str], wanted: int):
        self._request_rows = request_rows
        self._root = root
        self._params = params
        self._wanted = wanted
        self._reverse = is_true(params.get("reverse"))
        self._end = ""
        #: By request; rows that a container had at its first request may have moved at its second.
        self._held: list[Sequence[ReplicaRows]] = []
        self._shards: dict[str, Namespace] = {}
        #: Containers that all their servers should have: not shards that are new or retired.
        self._expected: set[str] = {root}
        self._names: set[str] = set()
        self._directories: set[str] = set()
        self._number = 0
        self._requested_in: dict[str, int] = {}
        self._named_in: dict[str, int] = {}
        self._request_counts: dict[str, int] = {}

    def run(self) -> MergedPage:
        self._process_container(self._root)
        while (name := self._next_shard() or self._next_outdated()) is not None:
            self._process_container(name)
        end = next((each for each in self._directories if self._end.startswith(each)), self._end)
        return merge_replica_rows(self._held, end, reverse=self._reverse)

    def _process_container(self, name: str) -> None:
        self._number += 1
        self._requested_in[name] = self._number
        self._request_counts[name] = self._request_counts.get(name, 0) + 1
        held = self._request_rows(name, self._params, self._wanted, name not in self._expected)
        self._held.append(held)
        for response in held:
            if response.end and (not self._end or self._is_behind(self._end, response.end)):
                self._end = response.end
            for item in response.ranges:
                self._add_shard(item)
            for row in response.rows:
                if not row.get("deleted"):
                    self._names.add(row_name(row))
                if "subdir" in row:
                    self._directories.add(str(row["subdir"]))

    def _add_shard(self, item: ShardRange) -> None:
        self._named_in[item.name] = self._number
        if item.state >= State.ACTIVE and not item.deleted:
            self._expected.add(item.name)
        known = self._shards.get(item.name)
        lower, upper = item.lower, item.upper
        if known is not None:
            # Servers may disagree; the wider bounds count, because a shard that merges a neighbour grows.
            lower = min(lower, known.lower)
            upper = max(upper, known.upper) if upper and known.upper else ""
        self._shards[item.name] = Namespace(item.name, lower, upper)

    # --- the next container ---------------------------------------------------------------------------------

    def _next_shard(self) -> str | None:
        """Return the nearest shard that was not requested yet; None when the page is complete without it."""
        waiting = [space for space in self._shards.values() if self._is_pending(space)]
        if not waiting:
            return None
        if self._reverse:
            space = max(waiting, key=lambda each: (not each.upper, each.upper))
        else:
            space = min(waiting, key=lambda each: each.lower)
        edge = self._bound_before(space)
        if edge and sum(not self._is_behind(name, edge) for name in self._names) >= self._wanted:
            self._end = edge
            return None
        return space.name

    def _bound_before(self, space: Namespace) -> str:
        """Return the name before which all names come before the shard's; empty when there are none."""
        if self._reverse:
            return f"{space.upper}\0" if space.upper else ""
        return space.lower

    def _is_pending(self, space: Namespace) -> bool:
        if space.name in self._requested_in:
            return False
        low, high = self._params.get("marker", ""), self._params.get("end_marker", "")
        if self._reverse:
            low, high = max(high, self._end), low
        elif self._end and (not high or self._end < high):
            high = f"{self._end}\0"
        if (space.upper and space.upper < low) or (high and space.lower >= high):
            return False
        return _may_contain(space, _listing_prefix(self._params)) and not self._is_within_prefix(space)

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

    def _is_behind(self, name: str, end: str) -> bool:
        return name < end if self._reverse else name > end


def _listing_prefix(params: Mapping[str, str]) -> str:
    path = params.get("path")
    if path is None:
        return params.get("prefix", "")
    return f"{path.rstrip('/')}/" if path else ""


def _may_contain(space: Namespace, prefix: str) -> bool:
    """Return True if names that begin with ``prefix`` can lie in a shard."""
    return (not space.upper or space.upper >= prefix) and (
        space.lower < prefix or space.lower.startswith(prefix)
    )


# --- merging the servers' rows ------------------------------------------------------------------------------


class _SeenRow(NamedTuple):
    """One row of one server: the number of its request, the time of its data, and the row."""

    visit: int
    time: str
    row: JsonObject

    @property
    def is_tombstone(self) -> bool:
        return bool(self.row.get("deleted"))


def merge_replica_rows(held: Sequence[Sequence[ReplicaRows]], end: str, *, reverse: bool) -> MergedPage:
    """Merge the names up to ``end``, each with True if it certainly belongs into the listing.

    A name certainly belongs when all servers of one container hold a row that is newer than every tombstone.
    It certainly does not when all of one hold a tombstone that is newer than every row. Common prefixes are
    never certain.
    """
    seen: dict[tuple[str, bool], list[_SeenRow]] = {}
    responses = [len(each) for each in held]
    for number, each in enumerate(held):
        for response in each:
            for row in response.rows:
                key = row_name(row), "subdir" in row
                if end and (key[0] < end if reverse else key[0] > end):
                    continue
                seen.setdefault(key, []).append(_SeenRow(number, _data_time(row), row))
    rows = []
    for key in sorted(seen, reverse=reverse):
        verdict = _decide_row(seen[key], responses)
        if verdict is not None:
            rows.append(verdict)
    return MergedPage(rows, end)


def _decide_row(seen: Sequence[_SeenRow], responses: Sequence[int]) -> tuple[JsonObject, bool] | None:
    """Return the newest row of a name and True if it is certain; None if the name certainly is deleted."""
    live = [each for each in seen if not each.is_tombstone]
    if not live:
        return None
    newest = max(live, key=lambda each: (each.time, str(each.row.get("last_modified", ""))))
    row = {name: value for name, value in newest.row.items() if name != "created_at"}
    if "subdir" in row:
        return row, False
    ended = max((each.time for each in seen if each.is_tombstone), default="")
    if ended < newest.time:
        return row, _is_unanimous([each.visit for each in live if each.time > ended], responses)
    gone = [each.visit for each in seen if each.is_tombstone and each.time >= newest.time]
    return None if _is_unanimous(gone, responses) else (row, False)


def _is_unanimous(visits: Sequence[int], responses: Sequence[int]) -> bool:
    """Return True if all servers that responded to one request are among these."""
    return any(visits.count(number) >= responses[number] for number in set(visits))


def _data_time(row: JsonObject) -> str:
    """Return when the data was written, as text that sorts by time; empty for a common prefix."""
    text = str(row.get("created_at", ""))
    if not text or len(text) == _PLAIN_TIME:
        return text
    try:
        return decode_timestamps(text)[0].internal
    except InvalidTimestamp:
        return ""


# --- pages of listings -----------------------------------------------------------------------------------


UNSHARDED = "unsharded"
_OBJECT, _HELD = "object", "held"


class SplitContainer(Exception):
    """Some of the container's rows are, or were, in shards, so that its own are not all."""


class ReplicaRowsUnsupported(Exception):
    """Too many servers of a split container are the peer's, which do not report all rows they hold."""


class StrongPages:
    """Pages of one container for one request."""

    def __init__(self, context: ProxyContext, backends: Backends, request: Request, path: EntityPath):
        self._context = context
        self._backends = backends
        self._path = path
        self._sent = backend_headers(context, request, transfer=True)

    def page_of_replicas(self, params: Mapping[str, str], wanted: int) -> MergedPage:
        """Return a page of a container that was never split; raises ``SplitContainer`` and ``HTTPError``
        503.
        """
        sent = {**self._sent, fields.BACKEND_RECORD_TYPE: _OBJECT, fields.BACKEND_SHARDS_KNOWN: "true"}
        count, responses = self._request_primaries(self._path, sent, _query(params, wanted))
        successes = [response for response in responses if response.status in (200, 204)]
        if any(_knows_shards(response) for response in successes):
            raise SplitContainer
        if len(successes) < majority(count):
            raise HTTPError(503)
        pages = [json.loads(response.body or b"[]") for response in successes]
        return merge(pages, wanted, reverse=is_true(params.get("reverse")))

    def page_of_shards(self, policy_index: str, params: Mapping[str, str], wanted: int) -> MergedPage:
        """Return a page of a container that is or was split."""
        sent = {
            **self._sent,
            fields.BACKEND_RECORD_TYPE: _HELD,
            fields.BACKEND_STORAGE_POLICY_INDEX: policy_index,
            fields.BACKEND_OVERRIDE_DELETED: "true",
        }
        root = f"{self._path.account}/{self._path.container}"
        return sharded_page(partial(self._request_replica_rows, sent), root, params, wanted)

    def _request_replica_rows(
        self, sent: HeaderMap, name: str, params: Mapping[str, str], wanted: int, may_lack: bool
    ) -> list[ReplicaRows]:
        account, _, container = name.partition("/")
        count, responses = self._request_primaries(
            EntityPath(account, container), sent, _query(params, wanted)
        )
        held, is_peer = [], False
        for response in responses:
            if response.status == 404 and may_lack:
                held.append(ReplicaRows([], "", []))
            elif response.headers.get(fields.BACKEND_RECORD_TYPE) == _HELD and response.status == 200:
                try:
                    held.append(parse_replica_rows(response.body))
                except InvalidValue:
                    continue
            elif response.status in (200, 204):
                is_peer = True
        if len(held) >= majority(count):
            return held
        if is_peer:
            raise ReplicaRowsUnsupported
        raise HTTPError(503)

    def _request_primaries(
        self, path: EntityPath, sent: HeaderMap, query: str
    ) -> tuple[int, list[BackendResponse]]:
        """Return the number of primaries of a container, and the responses of those that respond."""
        view = self._context.rings.container.view()
        part = view.partition_of(self._context.hasher.digest(path.account, path.container))
        nodes = view.primaries(part)
        requests = [self._backends.make_request(node, part, "GET", path, sent, query) for node in nodes]
        responses = green.gather([partial(self._backends.request, request) for request in requests])
        return len(nodes), [response for response in responses if response is not None]


def _knows_shards(response: BackendResponse) -> bool:
    state = response.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED)
    return state != UNSHARDED or is_true(response.headers.get(fields.BACKEND_SHARDS_KNOWN))


def _query(params: Mapping[str, str], limit: int) -> str:
    pairs = {**params, "format": "json", "limit": str(limit)}.items()
    return "&".join(f"{name}={quote(text.encode(), safe='')}" for name, text in pairs)


# --- rows of writes --------------------------------------------------------------------------------------


def ensure_row_majority(
    context: ProxyContext,
    path: EntityPath,
    shard: EntityPath | None,
    responses: Sequence[BackendResponse],
    op: str,
    headers: HeaderMap,
) -> bool:
    """Return True if a majority of the primaries of one container has ``op`` (PUT or DELETE) of a row.

    Our object servers report which container servers took the row (``X-Backend-Container-Told``); the others
    get it from here, with ``headers``. ``shard`` takes the rows of a split container.
    """
    lists = [response.headers.get(fields.BACKEND_CONTAINER_TOLD, "") for response in responses]
    reported = {key for keys in lists for key in keys.split(",")}
    own = EntityPath(path.account, path.container)
    first = shard or own
    if _ensure_majority_of(context, path, first, reported, op, headers):
        return True
    # A listing requests the rows of the container's own servers too, which move the row to its shard.
    return first != own and _ensure_majority_of(context, path, own, frozenset(), op, headers)


def _ensure_majority_of(
    context: ProxyContext,
    path: EntityPath,
    container: EntityPath,
    reported: Set[str],
    op: str,
    headers: HeaderMap,
) -> bool:
    """Return True if a majority of a container's primaries has the row, after sending it to the others."""
    view = context.rings.container.view()
    part = view.partition_of(context.hasher.digest(container.account, container.container))
    nodes = view.primaries(part)
    missing = [node for node in nodes if node.key not in reported]
    known, need = len(nodes) - len(missing), majority(len(nodes))
    if known >= need:
        return True
    row = EntityPath(container.account, container.container, path.obj).quoted
    known += sum(green.gather([partial(_send_row, context, n, part, op, row, headers) for n in missing]))
    if known < need:
        context.telemetry.log.error(
            f"ERROR only {known} of {len(nodes)} servers of {container} have the row of {path}",
            txid=headers["x-trans-id"],
        )
    return known >= need


def _send_row(context: ProxyContext, node: Node, part: int, op: str, row: str, headers: HeaderMap) -> bool:
    try:
        response = context.direct.request(node, op, node_path(node.device, part, row), headers)
    except TransportError:
        return False
    return response.is_success
