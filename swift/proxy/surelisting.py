"""Strong listings: what several replicas of a container say, put together until nothing is in doubt.

A write in such a container is acknowledged when a majority of the container's primaries has its row
(``proxy.obj.surerows``). A listing asks all primaries and needs a majority of them, so at least one of those
knows of every acknowledged write. What all that answer agree upon is shown; about a name that only some have
the object's own nodes are asked. ``merge`` decides without I/O what is in doubt; a common prefix always is,
because two replicas may mean different names by it. Who is asked, and what of shards, is not known here
(``proxy.surepages``, decision 0017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.truth import is_true
from swift.gateway.subrequest import Forward, asked, make_subrequest, preauthorise
from swift.http import fields
from swift.http.request import Request
from swift.http.response import HTTPError

#: The key of a container's own metadata that asks for strong listings of it.
META_KEY = "strong-listing"
SOURCE = "SL"
_PARAMETERS = ("marker", "end_marker", "prefix", "delimiter", "path", "reverse")
#: Names in doubt that are asked about at the same time.
_ASKERS = 8


def is_wanted(setting: str, mark: str | None) -> bool:
    """Whether a container is listed so, by the option ``strong_listing`` and its own metadata."""
    return setting == "all" or (setting == "marked" and is_true(mark))


Page = Sequence[JsonObject]


class Merged(NamedTuple):
    """What pages of replicas say together."""

    #: In the order of the listing, each with whether it certainly belongs there.
    rows: list[tuple[JsonObject, bool]]
    #: Where all of them are known up to; empty at the end of the listing.
    marker: str


#: The next rows of a listing by its parameters, at least so many if there are. Raises ``HTTPError`` 503.
NextPage = Callable[[Mapping[str, str], int], Merged]


def name_of(row: JsonObject) -> str:
    """What a row stands for in the order of a listing."""
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
            if key not in found or _time_of(row) > _time_of(found[key]):
                found[key] = row
    keys = sorted(found, reverse=reverse)
    return Merged([(found[key], not key[1] and seen[key] == len(pages)) for key in keys], end)


def _time_of(row: JsonObject) -> str:
    return str(row.get("last_modified", ""))


class SureListing:
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
        """The rows; raises ``HTTPError`` 503 when nobody can tell."""
        return self._collect(next_page, self._params, self._limit)

    def _collect(self, next_page: NextPage, params: Mapping[str, str], limit: int) -> list[JsonObject]:
        params, rows = dict(params), list[JsonObject]()
        while len(rows) < limit:
            merged = next_page(params, limit - len(rows))
            rows += self._without_doubt(next_page, merged, params)
            if not merged.marker or merged.marker == params.get("marker"):
                break
            params["marker"] = merged.marker
        return rows[:limit]

    def _without_doubt(
        self, next_page: NextPage, merged: Merged, params: Mapping[str, str]
    ) -> list[JsonObject]:
        def is_there(row: JsonObject) -> bool:
            if "subdir" in row:
                return self._has_some(next_page, row, params)
            return self._has(str(row["name"]))

        doubtful = [row for row, is_sure in merged.rows if not is_sure]
        found = green.bounded_map(is_there, doubtful, _ASKERS)
        gone = {id(row) for row, is_found in zip(doubtful, found, strict=True) if not is_found}
        return [row for row, _ in merged.rows if id(row) not in gone]

    def _has_some(self, next_page: NextPage, row: JsonObject, params: Mapping[str, str]) -> bool:
        """Whether anything is below a common prefix."""
        below = {name: text for name, text in params.items() if name not in ("delimiter", "path")}
        return bool(self._collect(next_page, {**below, "prefix": str(row["subdir"])}, 1))

    def _has(self, name: str) -> bool:
        """Whether the object's nodes have something newest of a name; raises ``HTTPError`` 503."""
        path = quote_path(f"/{self._path.account}/{self._path.container}/{name}")
        headers = {"x-newest": "true", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        sub = make_subrequest(self._request, "HEAD", f"/v1{path}", headers=headers, source=SOURCE)
        with asked(self._forward, preauthorise(sub)) as response:
            if response.is_success:
                return True
            if response.status == 404:
                return False
        raise HTTPError(503)
