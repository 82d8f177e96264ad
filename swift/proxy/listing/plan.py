"""The plan of a container's listing: which rows the client gets, decided without I/O.

``decide`` is called before the root is requested, after its response came, and again after each ``Finding``
of a source. ``test/unit/proxy/listing/test_plan.py`` prints its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from urllib.parse import quote

from swift.base.entity import NotUTF8
from swift.base.truth import is_true
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, TEXT, HTTPError

#: Types of the records of a container server's response; ``AUTO`` lets a split root list its shards.
OBJECT, SHARD, AUTO = "object", "shard", "auto"
UNSHARDED = "unsharded"


# --- what is known -----------------------------------------------------------------------------------------


class Finding(Enum):
    """A fact that a source of rows found instead of rows."""

    OUTDATED = "a cached shard has no longer the rows of its names"
    SPLIT = "a replica knows shards"
    PEER = "too many servers do not report all rows that they hold"


class ListingRequest(NamedTuple):
    """The part of a client's request that the plan depends on."""

    is_get: bool
    #: The response may come from shards.
    takes_shards: bool
    #: The filter in front expects text instead of JSON.
    is_text: bool
    #: The account is one of the cluster's own, e.g. of shards.
    is_internal: bool


class ListingInfo(NamedTuple):
    """Facts about the container: from caches before the root is requested, then from the root."""

    #: Its shards are cached and can be used for this request.
    has_cached_shards: bool = False
    is_denied: bool = False
    is_strong: bool = False


class Root(NamedTuple):
    """The root's response."""

    status: int
    record_type: str = OBJECT
    state: str = UNSHARDED
    #: It was requested again as JSON although the client gets text.
    is_second: bool = False
    findings: frozenset[Finding] = frozenset()

    @property
    def is_listing(self) -> bool:
        """True if it lists rows or shards."""
        return self.status in (200, 204)


# --- the plan ----------------------------------------------------------------------------------------------


class ShardsFrom(Enum):
    """The source of the bounds of shards."""

    CACHE = "the cache"
    ROOT = "the root's response"
    SECOND = "the root, requested again as JSON"
    PRIMARIES = "the first primary that knows them"


@dataclass(frozen=True, slots=True)
class Rows:
    """The root's own rows: request the root, or relay its response."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The rows of shards."""

    bounds: ShardsFrom


@dataclass(frozen=True, slots=True)
class Strong:
    """The rows of a majority of the servers: of the container's, or of its shards' too."""

    is_split: bool


@dataclass(frozen=True, slots=True)
class Deny:
    """No listing: the auth filter's denial, or 503 if there is none."""


ListingPlan = Rows | Shards | Strong | Deny


def decide(request: ListingRequest, info: ListingInfo, root: Root | None) -> ListingPlan:
    """Return the next step towards the response; ``root`` is None before the root is requested."""
    if root is None:
        if not info.has_cached_shards or info.is_strong:
            return Rows()
        return Deny() if info.is_denied else Shards(ShardsFrom.CACHE)
    if info.is_denied:
        return Deny()
    lists_shards = request.takes_shards and root.is_listing and root.record_type == SHARD
    lists_rows = root.is_listing and root.record_type == OBJECT
    if info.is_strong and request.is_get and not request.is_internal and (lists_shards or lists_rows):
        if Finding.PEER not in root.findings:
            return Strong(root.state != UNSHARDED or Finding.SPLIT in root.findings)
        if lists_rows and root.state == UNSHARDED:
            return Shards(ShardsFrom.PRIMARIES)
    if lists_shards:
        return Shards(ShardsFrom.SECOND if request.is_text and not root.is_second else ShardsFrom.ROOT)
    if root.is_second and not lists_rows:
        return Deny()
    return Rows()


# --- requests as values ------------------------------------------------------------------------------------


_ACCOUNT_PARAMETERS = ("prefix", "marker", "end_marker", "delimiter", "limit", "reverse")
_CONTAINER_PARAMETERS = (*_ACCOUNT_PARAMETERS, "path")


def listing_request(request: Request, *, is_internal: bool) -> ListingRequest:
    """Return the facts of a client's GET or HEAD; one that sets a record type gets no shards."""
    is_get = request.method == "GET"
    takes_shards = is_get and request.headers.get(fields.BACKEND_RECORD_TYPE, AUTO).lower() == AUTO
    return ListingRequest(is_get, takes_shards, environkeys.LISTING_TEXT in request.env, is_internal)


def root_of(status: int, headers: HeaderMap, *, is_second: bool = False) -> Root:
    """Return the facts of a root's response."""
    record_type = headers.get(fields.BACKEND_RECORD_TYPE, OBJECT)
    return Root(status, record_type, headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED), is_second)


def listing_query(request: Request, kind: str, *, text: bool = True) -> str:
    """Return the client's parameters for a backend, as JSON unless a filter in front chose another format.

    Without ``text`` it is JSON where that filter chose text. Raises ``HTTPError`` 400 for parameters of a
    listing of this ``kind`` (``account`` or ``container``) that are not UTF-8 (public-api.md §7.3); a HEAD
    lists nothing.
    """
    if not request.query:
        return "format=json"
    lists = request.method == "GET"
    is_account = kind == "account"
    try:
        for name in (_ACCOUNT_PARAMETERS if is_account else _CONTAINER_PARAMETERS) if lists else ():
            request.param_utf8(name)
    except NotUTF8 as error:
        raise HTTPError(400, str(error), content_type=HTML if is_account else TEXT)
    params = dict(request.params)
    if is_account:
        # Account listings ignore ``path``.
        params.pop("path", None)
    if lists and environkeys.LISTING_TEXT in request.env:
        # A third of the cost: no JSON is encoded by the server and decoded here.
        params["format"] = "plain" if text else "json"
    else:
        params.setdefault("format", "json")
    return query_of(params, "latin-1")


def query_of(params: Mapping[str, str], encoding: str = "utf-8") -> str:
    """Return a query string; ``encoding`` gives the bytes of names and values."""
    return "&".join(
        f"{quote(name, safe='', encoding=encoding)}={quote(value, safe='', encoding=encoding)}"
        for name, value in params.items()
    )


class ListingParameters(NamedTuple):
    """The parameters of a listing, without marker and limit, which each page sets."""

    #: As they are sent.
    texts: Mapping[str, str]
    #: Names descend.
    reverse: bool
    #: The name before which the listing ends; empty for all names.
    end: str
    #: The beginning of all names of the listing, which ``path`` sets too.
    prefix: str

    def is_before(self, name: str, other: str) -> bool:
        """Return True if a name comes before another one in the listing."""
        return name > other if self.reverse else name < other

    def below(self, prefix: str) -> ListingParameters:
        """Return the parameters of a listing of all names below a common prefix."""
        kept = {name: text for name, text in self.texts.items() if name not in ("delimiter", "path")}
        return listing_parameters({**kept, "prefix": prefix})

    def query(self, after: str, limit: int, **more: str) -> str:
        """Return the query for rows after a name, as JSON, with ``more`` parameters."""
        marker = {"marker": after} if after else {}
        return query_of({**self.texts, **marker, "format": "json", "limit": str(limit), **more})


def listing_parameters(texts: Mapping[str, str]) -> ListingParameters:
    """Return the parameters of a listing from their texts."""
    prefix, path = texts.get("prefix", ""), texts.get("path")
    if path is not None:
        prefix = f"{path.rstrip('/')}/" if path else ""
    return ListingParameters(texts, is_true(texts.get("reverse")), texts.get("end_marker", ""), prefix)


class RequestedListing(NamedTuple):
    """The rows that a client requests: at most ``limit`` after a marker."""

    params: ListingParameters
    marker: str
    limit: int
    #: Nothing restricts it to a part of the names but its limit.
    is_whole: bool


def requested_listing(request: Request, limit_max: int) -> RequestedListing:
    """Return the listing of a client's request."""
    texts = {name: request.param_utf8(name) for name in _CONTAINER_PARAMETERS}
    known = {name: text for name, text in texts.items() if text is not None}
    marker, limit = known.pop("marker", ""), known.pop("limit", "")
    most = min(int(limit), limit_max) if limit.isascii() and limit.isdigit() else limit_max
    is_whole = not marker and not any(text for name, text in known.items() if name != "reverse")
    return RequestedListing(listing_parameters(known), marker, most, is_whole)
