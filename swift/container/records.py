"""Shard ranges as records of a container GET or PUT (spec: account-container.md §12).

Parses what a request asks of them, asks the broker and renders them; the object side of a GET is the
server's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from swift.base.errors import InvalidValue
from swift.base.shardrange import ShardRange, State, parse_states
from swift.base.truth import is_true
from swift.container import shardtable
from swift.container.broker import SHARDED, ContainerBroker, ContainerFacts
from swift.container.shardtable import ShardQuery
from swift.dbserver.app import listing_parameters
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.listing import as_text, container_xml
from swift.http.negotiate import ListingFormat
from swift.http.request import Request
from swift.http.response import HTTPError

OBJECT = "object"
SHARD = "shard"
#: Everything that a replica knows of names, deletions included (ours). Until 0.4 also ``held``, of 0.2.
REPLICA_ROWS = ("replica-rows", "held")
AUTO = "auto"
FULL = "full"
NAMESPACE = "namespace"
_FILLED = ("listing", "updating")


def ranges_of_body(body: bytes) -> list[ShardRange]:
    """Return the ranges of a PUT; raises ``HTTPError`` 400."""
    try:
        values = json.loads(body)
        return [ShardRange.from_mapping(item) for item in values]
    except (ValueError, TypeError, RecursionError) as error:
        raise HTTPError(400, f"Invalid body: {error!r}")


def shard_rows(
    request: Request, broker: ContainerBroker, info: ContainerFacts
) -> tuple[list[dict[str, object]], HeaderMap]:
    """Return the JSON rows that a GET asks for and the headers that describe them.

    Raises ``HTTPError`` 400.
    """
    shape = request.headers.get(fields.BACKEND_RECORD_SHARD_FORMAT, FULL).lower()
    shape = shape if shape == NAMESPACE else FULL
    given = listing_parameters(request)
    words = [word.strip().lower() for word in given.get("states", "").split(",") if word.strip()]
    states = _states(given.get("states", ""))
    include_deleted = is_true(request.headers.get(fields.BACKEND_INCLUDE_DELETED))
    auditing = "auditing" in words
    if shape == NAMESPACE and include_deleted:
        raise HTTPError(400, "No include_deleted for namespace GET")
    if shape == NAMESPACE and auditing:
        raise HTTPError(400, "No auditing state for namespace GET")
    headers = {fields.BACKEND_RECORD_TYPE: SHARD, fields.BACKEND_RECORD_SHARD_FORMAT: shape}
    marker, end_marker = given.get("marker", ""), given.get("end_marker", "")
    includes, reverse = given.get("includes"), is_true(given.get("reverse"))
    override = request.headers.get(fields.BACKEND_OVERRIDE_NAME_FILTER, "")
    if override and override.lower() == info.db_state == SHARDED:
        # All of them in ascending order: the proxy caches them for every listing.
        marker, end_marker, includes, reverse = "", "", None, False
        headers[fields.BACKEND_OVERRIDE_NAME_FILTER] = "true"
    query = ShardQuery(
        marker=marker,
        end_marker=end_marker,
        includes=includes,
        reverse=reverse,
        states=states,
        include_deleted=include_deleted,
        include_own=auditing,
    )
    ranges = broker.shard_ranges(query, fill_gaps=any(word in _FILLED for word in words))
    if shape == NAMESPACE:
        return [dict(item.namespace.as_dict()) for item in ranges], headers
    return [item.as_dict() for item in ranges], headers


def _states(text: str) -> frozenset[State]:
    if not text:
        return frozenset()
    try:
        return parse_states(text)
    except InvalidValue:
        raise HTTPError(400, "Bad state")


def is_retired(broker: ContainerBroker) -> bool:
    """Return True if a shard knows that other shards have all of its names, though rows may remain."""
    own = broker.read(lambda connection: shardtable.own_range(connection, broker.own_name), merged=False)
    return own is not None and own.deleted


def render(shape: ListingFormat, rows: Sequence[dict[str, object]], container: str) -> bytes:
    """Shard ranges in the format asked for; only JSON shows everything."""
    if shape is ListingFormat.JSON:
        return json.dumps(list(rows)).encode("ascii")
    return as_text(rows) if shape is ListingFormat.PLAIN else container_xml(rows, container)
