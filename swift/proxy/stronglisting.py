"""Strong listings: listings that show every acknowledged write (decision 0017).

A write in such a container is acknowledged when a majority of the container's primaries has its row
(``ensure_row_majority``): it is the object's own, or the shard that takes its rows. A listing requests
its rows from all primaries and needs a majority of them, so at least one of those knows of every acknowledged
write. Rows on which all responses agree are listed; about a name that only some have the object's own nodes
are asked. ``merge`` decides without I/O which rows are uncertain; a common prefix always is, because two
replicas may mean different names by it.

While a container is split, and whenever its shards are, rows move: a server removes one only when a majority
of the next container's servers has it, and goes on naming that container among its shards. So of a row that a
majority of any container has, each majority of the same container's servers either still holds it or names
its next container. ``held_page`` therefore requests the rows that servers hold from the root, then from every
shard that was named, also those that have gone, and once more from a container that a later one names.
Tombstones come along, so that a row that was left behind somewhere does not bring back what was deleted. Not
covered: a row that moves twice during one round.
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
from swift.gateway.subrequest import Forward, asked, make_subrequest, preauthorise
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import ProxyContext
from swift.ring.device import Node

#: The key of a container's own metadata that asks for strong listings of it.
META_KEY = "strong-listing"
SOURCE = "SL"
_PARAMETERS = ("marker", "end_marker", "prefix", "delimiter", "path", "reverse")
#: Names in doubt that are asked about at the same time.
_HEADS_MAX = 8


def is_wanted(setting: str, mark: str | None) -> bool:
    """Return True if a container is listed so, by the option ``strong_listing`` and its own metadata."""
    return setting == "all" or (setting == "marked" and is_true(mark))


Page = Sequence[JsonObject]


class Merged(NamedTuple):
    """The merged pages of several replicas."""

    #: In the order of the listing, each with whether it certainly belongs there.
    rows: list[tuple[JsonObject, bool]]
    #: Where all of them are known up to; empty at the end of the listing.
    marker: str


#: The next rows of a listing by its parameters, at least so many if there are. Raises ``HTTPError`` 503.
NextPage = Callable[[Mapping[str, str], int], Merged]


def name_of(row: JsonObject) -> str:
    """Return the name of a row in the order of a listing."""
    return str(row["subdir"] if "subdir" in row else row["name"])


def merge(pages: Sequence[Page], limit: int, *, reverse: bool = False) -> Merged:
    """Pages of up to ``limit`` rows put together, as far as all reach; of a name the newest row counts."""
    ends = [name_of(page[-1]) for page in pages if len(page) >= limit]
    end = (max(ends) if reverse else min(ends)) if ends else ""
    found: dict[tuple[str, bool], JsonObject] = {}
    seen: dict[tuple[str, bool], int] = {}
    for page in pages:
        for row in page:
            key = name_of(row), "subdir" in row
            if end and (key[0] < end if reverse else key[0] > end):
                continue
            seen[key] = seen.get(key, 0) + 1
            if key not in found or _modified(row) > _modified(found[key]):
                found[key] = row
    keys = sorted(found, reverse=reverse)
    return Merged([(found[key], not key[1] and seen[key] == len(pages)) for key in keys], end)


def _modified(row: JsonObject) -> str:
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
        """The rows; raises ``HTTPError`` 503 when no server can tell."""
        return self._collect(next_page, self._params, self._limit)

    def _collect(self, next_page: NextPage, params: Mapping[str, str], limit: int) -> list[JsonObject]:
        params, rows = dict(params), list[JsonObject]()
        while len(rows) < limit:
            merged = next_page(params, limit - len(rows))
            rows += self._certain(next_page, merged, params)
            if not merged.marker or merged.marker == params.get("marker"):
                break
            params["marker"] = merged.marker
        return rows[:limit]

    def _certain(self, next_page: NextPage, merged: Merged, params: Mapping[str, str]) -> list[JsonObject]:
        def is_there(row: JsonObject) -> bool:
            if "subdir" in row:
                return self._has_some(next_page, row, params)
            return self._has(str(row["name"]))

        doubtful = [row for row, is_sure in merged.rows if not is_sure]
        found = green.bounded_map(is_there, doubtful, _HEADS_MAX)
        gone = {id(row) for row, is_found in zip(doubtful, found, strict=True) if not is_found}
        return [row for row, _ in merged.rows if id(row) not in gone]

    def _has_some(self, next_page: NextPage, row: JsonObject, params: Mapping[str, str]) -> bool:
        """Return True if anything is below a common prefix."""
        below = {name: text for name, text in params.items() if name not in ("delimiter", "path")}
        return bool(self._collect(next_page, {**below, "prefix": str(row["subdir"])}, 1))

    def _has(self, name: str) -> bool:
        """Return True if the object's nodes have something newest of a name; raises ``HTTPError`` 503."""
        path = quote_path(f"/{self._path.account}/{self._path.container}/{name}")
        headers = {"x-newest": "true", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        sub = make_subrequest(self._request, "HEAD", f"/v1{path}", headers=headers, source=SOURCE)
        with asked(self._forward, preauthorise(sub)) as response:
            if response.is_success:
                return True
            if response.status == 404:
                return False
        raise HTTPError(503)


# --- rows that the servers of a split container hold -----------------------------------------------------


#: How often one round asks a container.
_VISITS_MAX = 2
_PLAIN_TIME = 16


class HeldRows(NamedTuple):
    """One server's answer: rows up to ``end`` (empty: all of them), and the shards that it knows."""

    rows: list[JsonObject]
    end: str
    ranges: list[ShardRange]


def parse_held(document: bytes) -> HeldRows:
    """The answer in a document of ``container.held``; raises ``InvalidValue``."""
    try:
        value = json.loads(document)
        ranges = [ShardRange.from_mapping(item) for item in value["ranges"]]
        return HeldRows(list(value["rows"]), str(value["end"]), ranges)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidValue(f"not what a container server holds: {error}")


#: Asks the servers of a container (``account/container``) for a page: the parameters of a listing, how many
#: rows, and whether servers need not have it. Raises ``HTTPError`` 503 for too few answers.
RequestHeld = Callable[[str, Mapping[str, str], int, bool], Sequence[HeldRows]]


def held_page(ask: RequestHeld, root: str, params: Mapping[str, str], wanted: int) -> Merged:
    """The next ``wanted`` or more names of a listing, as far as all responses reach."""
    return _Round(ask, root, params, wanted).run()


class _Round:
    """One page; ``_end`` is the name up to which it is complete, empty for all names."""

    def __init__(self, ask: RequestHeld, root: str, params: Mapping[str, str], wanted: int):
        self._ask = ask
        self._root = root
        self._params = params
        self._wanted = wanted
        self._reverse = is_true(params.get("reverse"))
        self._end = ""
        #: By visit; what a container had when it was first asked may be elsewhere when it is asked again.
        self._held: list[Sequence[HeldRows]] = []
        self._shards: dict[str, Namespace] = {}
        #: Containers that all their servers should have: no shards that are new or have gone.
        self._settled: set[str] = {root}
        self._names: set[str] = set()
        self._directories: set[str] = set()
        self._turn = 0
        self._asked_at: dict[str, int] = {}
        self._named_at: dict[str, int] = {}
        self._visits: dict[str, int] = {}

    def run(self) -> Merged:
        self._visit(self._root)
        while (name := self._next_shard() or self._next_stale()) is not None:
            self._visit(name)
        end = next((each for each in self._directories if self._end.startswith(each)), self._end)
        return merge_held(self._held, end, reverse=self._reverse)

    def _visit(self, name: str) -> None:
        self._turn += 1
        self._asked_at[name] = self._turn
        self._visits[name] = self._visits.get(name, 0) + 1
        held = self._ask(name, self._params, self._wanted, name not in self._settled)
        self._held.append(held)
        for answer in held:
            if answer.end and (not self._end or self._is_behind(self._end, answer.end)):
                self._end = answer.end
            for item in answer.ranges:
                self._learn(item)
            for row in answer.rows:
                if not row.get("deleted"):
                    self._names.add(name_of(row))
                if "subdir" in row:
                    self._directories.add(str(row["subdir"]))

    def _learn(self, item: ShardRange) -> None:
        self._named_at[item.name] = self._turn
        if item.state >= State.ACTIVE and not item.deleted:
            self._settled.add(item.name)
        known = self._shards.get(item.name)
        lower, upper = item.lower, item.upper
        if known is not None:
            # Of two opinions the wider: a shard that takes a neighbour in grows.
            lower = min(lower, known.lower)
            upper = max(upper, known.upper) if upper and known.upper else ""
        self._shards[item.name] = Namespace(item.name, lower, upper)

    # --- who is next ----------------------------------------------------------------------------------

    def _next_shard(self) -> str | None:
        """The nearest shard that was not asked yet; None when the page is complete without it."""
        waiting = [space for space in self._shards.values() if self._is_waiting(space)]
        if not waiting:
            return None
        if self._reverse:
            space = max(waiting, key=lambda each: (not each.upper, each.upper))
        else:
            space = min(waiting, key=lambda each: each.lower)
        edge = self._edge(space)
        if edge and sum(not self._is_behind(name, edge) for name in self._names) >= self._wanted:
            self._end = edge
            return None
        return space.name

    def _edge(self, space: Namespace) -> str:
        """All names up to this one come before those of the shard; empty when there are none."""
        if self._reverse:
            return f"{space.upper}\0" if space.upper else ""
        return space.lower

    def _is_waiting(self, space: Namespace) -> bool:
        if space.name in self._asked_at:
            return False
        low, high = self._params.get("marker", ""), self._params.get("end_marker", "")
        if self._reverse:
            low, high = max(high, self._end), low
        elif self._end and (not high or self._end < high):
            high = f"{self._end}\0"
        if (space.upper and space.upper < low) or (high and space.lower >= high):
            return False
        return _may_have(space, _prefix_of(self._params)) and not self._is_hidden(space)

    def _is_hidden(self, space: Namespace) -> bool:
        """Return True if all its names are below a common prefix that is looked into anyway."""
        return any(
            space.lower.startswith(each) and space.upper.startswith(each) for each in self._directories
        )

    def _next_stale(self) -> str | None:
        """A container that may have got rows since it was asked, from one that was asked later."""
        for name, turn in self._asked_at.items():
            if self._named_at.get(name, 0) > turn and self._visits[name] < _VISITS_MAX:
                return name
        return None

    def _is_behind(self, name: str, end: str) -> bool:
        return name < end if self._reverse else name > end


def _prefix_of(params: Mapping[str, str]) -> str:
    path = params.get("path")
    if path is None:
        return params.get("prefix", "")
    return f"{path.rstrip('/')}/" if path else ""


def _may_have(space: Namespace, prefix: str) -> bool:
    """Return True if names that begin with ``prefix`` can lie in a shard."""
    return (not space.upper or space.upper >= prefix) and (
        space.lower < prefix or space.lower.startswith(prefix)
    )


# --- what they say together ------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """One row of one server: of which visit, from when (of the data), and what."""

    visit: int
    time: str
    row: JsonObject

    @property
    def is_tombstone(self) -> bool:
        return bool(self.row.get("deleted"))


def merge_held(held: Sequence[Sequence[HeldRows]], end: str, *, reverse: bool) -> Merged:
    """The names up to ``end``, each with whether it certainly belongs into a listing; ``told`` by visit.

    It does when all servers of one container hold a row that is newer than every tombstone; it certainly does
    not when all of one hold a tombstone that is newer than every row. Common prefixes never are certain.
    """
    seen: dict[tuple[str, bool], list[_Seen]] = {}
    answers = [len(each) for each in held]
    for number, each in enumerate(held):
        for answer in each:
            for row in answer.rows:
                key = name_of(row), "subdir" in row
                if end and (key[0] < end if reverse else key[0] > end):
                    continue
                seen.setdefault(key, []).append(_Seen(number, _time_of(row), row))
    rows = []
    for key in sorted(seen, reverse=reverse):
        verdict = _verdict(seen[key], answers)
        if verdict is not None:
            rows.append(verdict)
    return Merged(rows, end)


def _verdict(seen: Sequence[_Seen], answers: Sequence[int]) -> tuple[JsonObject, bool] | None:
    """The newest row of a name and whether it is certain; None when it certainly is not to be listed."""
    live = [each for each in seen if not each.is_tombstone]
    if not live:
        return None
    newest = max(live, key=lambda each: (each.time, str(each.row.get("last_modified", ""))))
    row = {name: value for name, value in newest.row.items() if name != "created_at"}
    if "subdir" in row:
        return row, False
    ended = max((each.time for each in seen if each.is_tombstone), default="")
    if ended < newest.time:
        return row, _all_of_one([each.visit for each in live if each.time > ended], answers)
    gone = [each.visit for each in seen if each.is_tombstone and each.time >= newest.time]
    return None if _all_of_one(gone, answers) else (row, False)


def _all_of_one(visits: Sequence[int], answers: Sequence[int]) -> bool:
    """Return True if all who answered in one visit are among these."""
    return any(visits.count(number) >= answers[number] for number in set(visits))


def _time_of(row: JsonObject) -> str:
    """Return when the data was written, as text that sorts by time; of a common prefix nothing."""
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


class HeldRowsUnknown(Exception):
    """Too many servers of a split container do not say all that they hold: they are the peer's."""


class StrongPages:
    """Pages of one container for one request."""

    def __init__(self, context: ProxyContext, backends: Backends, request: Request, path: EntityPath):
        self._context = context
        self._backends = backends
        self._path = path
        self._sent = backend_headers(context, request, transfer=True)

    def of_replicas(self, params: Mapping[str, str], wanted: int) -> Merged:
        """A page of a container that was never split; raises ``SplitContainer`` and ``HTTPError`` 503."""
        sent = {**self._sent, fields.BACKEND_RECORD_TYPE: _OBJECT, fields.BACKEND_SHARDS_KNOWN: "true"}
        count, responses = self._ask(self._path, sent, _query(params, wanted))
        answers = [answer for answer in responses if answer.status in (200, 204)]
        if any(_knows_shards(answer) for answer in answers):
            raise SplitContainer
        if len(answers) < majority(count):
            raise HTTPError(503)
        pages = [json.loads(answer.body or b"[]") for answer in answers]
        return merge(pages, wanted, reverse=is_true(params.get("reverse")))

    def of_all_holders(self, policy_index: str, params: Mapping[str, str], wanted: int) -> Merged:
        """A page of one that is or was split; raises ``HeldRowsUnknown`` and ``HTTPError`` 503."""
        sent = {
            **self._sent,
            fields.BACKEND_RECORD_TYPE: _HELD,
            fields.BACKEND_STORAGE_POLICY_INDEX: policy_index,
            fields.BACKEND_OVERRIDE_DELETED: "true",
        }
        root = f"{self._path.account}/{self._path.container}"
        return held_page(partial(self._request_holders, sent), root, params, wanted)

    def _request_holders(
        self, sent: HeaderMap, name: str, params: Mapping[str, str], wanted: int, may_lack: bool
    ) -> list[HeldRows]:
        account, _, container = name.partition("/")
        count, answers = self._ask(EntityPath(account, container), sent, _query(params, wanted))
        held, is_peer = [], False
        for answer in answers:
            if answer.status == 404 and may_lack:
                held.append(HeldRows([], "", []))
            elif answer.headers.get(fields.BACKEND_RECORD_TYPE) == _HELD and answer.status == 200:
                try:
                    held.append(parse_held(answer.body))
                except InvalidValue:
                    continue
            elif answer.status in (200, 204):
                is_peer = True
        if len(held) >= majority(count):
            return held
        if is_peer:
            raise HeldRowsUnknown
        raise HTTPError(503)

    def _ask(self, path: EntityPath, sent: HeaderMap, query: str) -> tuple[int, list[BackendResponse]]:
        """Return the number of primaries of a container, and the responses of those that respond."""
        view = self._context.rings.container.view()
        part = view.partition_of(self._context.hasher.digest(path.account, path.container))
        nodes = view.primaries(part)
        requests = [self._backends.make_request(node, part, "GET", path, sent, query) for node in nodes]
        answers = green.gather([partial(self._backends.request, request) for request in requests])
        return len(nodes), [answer for answer in answers if answer is not None]


def _knows_shards(answer: BackendResponse) -> bool:
    state = answer.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED)
    return state != UNSHARDED or is_true(answer.headers.get(fields.BACKEND_SHARDS_KNOWN))


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

    Object servers of ours say which container servers took the row (``X-Backend-Container-Told``); the others
    are sent it with ``headers`` here. ``shard`` takes the rows of a split container.
    """
    lists = [response.headers.get(fields.BACKEND_CONTAINER_TOLD, "") for response in responses]
    told = {key for keys in lists for key in keys.split(",")}
    own = EntityPath(path.account, path.container)
    first = shard or own
    if _is_known(context, path, first, told, op, headers):
        return True
    # A listing requests the rows of the container's own servers too, which move the row to its shard.
    return first != own and _is_known(context, path, own, frozenset(), op, headers)


def _is_known(
    context: ProxyContext,
    path: EntityPath,
    container: EntityPath,
    told: Set[str],
    op: str,
    headers: HeaderMap,
) -> bool:
    """Return True if a majority of a container's primaries has the row, after sending it to the others."""
    view = context.rings.container.view()
    part = view.partition_of(context.hasher.digest(container.account, container.container))
    nodes = view.primaries(part)
    missing = [node for node in nodes if node.key not in told]
    known, need = len(nodes) - len(missing), majority(len(nodes))
    if known >= need:
        return True
    row = EntityPath(container.account, container.container, path.obj).quoted
    known += sum(green.gather([partial(_send_row, context, n, part, op, row, headers) for n in missing]))
    if known < need:
        context.telemetry.log.error(
            f"ERROR the row of {path} is known to {known} of {len(nodes)} servers of {container} only",
            txid=headers["x-trans-id"],
        )
    return known >= need


def _send_row(context: ProxyContext, node: Node, part: int, op: str, row: str, headers: HeaderMap) -> bool:
    try:
        response = context.direct.request(node, op, node_path(node.device, part, row), headers)
    except TransportError:
        return False
    return response.is_success
