"""What all who may hold rows of a split container say of some names (decision 0017).

While a container is split, and whenever its shards are, rows wander: a server takes one away only when a
majority of the next container's servers has it, and goes on naming that container among its shards. So of a
row that a majority of any container has, each majority of the same container's servers either still holds it
or names where it went. A round therefore asks the root, then every shard that was named, also those that have
gone, and asks a container once more when one that was asked later names it. Tombstones come along, so that a
row which was left behind somewhere does not bring back what was deleted.

All of this is decided here without I/O; ``proxy.surepages`` asks the servers. Not covered: a row that moves
twice while one round lasts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import InvalidTimestamp, decode_timestamps
from swift.base.truth import is_true
from swift.proxy.surelisting import Merged, name_of

#: How often one round asks a container.
_VISITS_MAX = 2
_PLAIN_TIME = 16


class Told(NamedTuple):
    """One server's answer: rows up to ``end`` (empty: all of them), and the shards that it knows."""

    rows: list[JsonObject]
    end: str
    ranges: list[ShardRange]


def told_of(document: bytes) -> Told:
    """The answer in a document of ``container.held``; raises ``InvalidValue``."""
    try:
        value = json.loads(document)
        ranges = [ShardRange.from_mapping(item) for item in value["ranges"]]
        return Told(list(value["rows"]), str(value["end"]), ranges)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidValue(f"not what a container server holds: {error}")


#: Asks the servers of a container (``account/container``) for a page: the parameters of a listing, how many
#: rows, and whether servers need not have it. Raises ``HTTPError`` 503 for too few answers.
AskHeld = Callable[[str, Mapping[str, str], int, bool], Sequence[Told]]


def held_page(ask: AskHeld, root: str, params: Mapping[str, str], wanted: int) -> Merged:
    """The next ``wanted`` or more names of a listing, as far as everybody's answers reach."""
    return _Round(ask, root, params, wanted).run()


class _Round:
    """One page; ``_end`` is the name up to which it is complete, empty for all names."""

    def __init__(self, ask: AskHeld, root: str, params: Mapping[str, str], wanted: int):
        self._ask = ask
        self._root = root
        self._params = params
        self._wanted = wanted
        self._reverse = is_true(params.get("reverse"))
        self._end = ""
        #: By visit; what a container had when it was first asked may be elsewhere when it is asked again.
        self._told: list[Sequence[Told]] = []
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
        return merge_held(self._told, end, reverse=self._reverse)

    def _visit(self, name: str) -> None:
        self._turn += 1
        self._asked_at[name] = self._turn
        self._visits[name] = self._visits.get(name, 0) + 1
        told = self._ask(name, self._params, self._wanted, name not in self._settled)
        self._told.append(told)
        for answer in told:
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
        """Whether all its names are below a common prefix that is looked into anyway."""
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
    """Whether names that begin with ``prefix`` can lie in a shard."""
    return (not space.upper or space.upper >= prefix) and (
        space.lower < prefix or space.lower.startswith(prefix)
    )


# --- what they say together -------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """One row of one server: of which visit, from when (of the data), and what."""

    visit: int
    time: str
    row: JsonObject

    @property
    def is_tombstone(self) -> bool:
        return bool(self.row.get("deleted"))


def merge_held(told: Sequence[Sequence[Told]], end: str, *, reverse: bool) -> Merged:
    """The names up to ``end``, each with whether it certainly belongs into a listing; ``told`` by visit.

    It does when all servers of one container hold a row that is newer than every tombstone; it certainly does
    not when all of one hold a tombstone that is newer than every row. Common prefixes never are certain.
    """
    seen: dict[tuple[str, bool], list[_Seen]] = {}
    answers = [len(each) for each in told]
    for number, each in enumerate(told):
        for answer in each:
            for row in answer.rows:
                key = name_of(row), "subdir" in row
                if end and (key[0] < end if reverse else key[0] > end):
                    continue
                seen.setdefault(key, []).append(_Seen(number, _time_of(row), row))
    rows = []
    for key in sorted(seen, reverse=reverse):
        verdict = _judge(seen[key], answers)
        if verdict is not None:
            rows.append(verdict)
    return Merged(rows, end)


def _judge(seen: Sequence[_Seen], answers: Sequence[int]) -> tuple[JsonObject, bool] | None:
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
    """Whether all who answered in one visit are among these."""
    return any(visits.count(number) >= answers[number] for number in set(visits))


def _time_of(row: JsonObject) -> str:
    """When the data was written, as text that sorts by time; of a common prefix nothing."""
    text = str(row.get("created_at", ""))
    if not text or len(text) == _PLAIN_TIME:
        return text
    try:
        return decode_timestamps(text)[0].internal
    except InvalidTimestamp:
        return ""
