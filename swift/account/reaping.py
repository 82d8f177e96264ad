"""Emptying and removing one container of a deleted account, by direct requests (account-container.md §16).

Objects are listed at one replica of the container, a page at a time, and deleted at every node that should
have them; then the container is deleted at every replica. What fails stays for the next pass: the container
servers refuse to delete what is not empty. A sharded container is emptied through its shards, each of which
hears of its own rows. It knows nothing of account databases; a decision that something may go is made
before it is called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import SwiftError
from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient, Timeouts, log_no_response
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.policy.policy import Policy
from swift.ring.device import Node, address
from swift.runtime.backendapp import BackendContext
from swift.runtime.report import Counters
from swift.runtime.stop import StopRequest

#: Maximum depth of shards of shards.
DEPTH_MAX = 8


class CannotList(SwiftError):
    """No replica of a container could be listed."""


class RingPlacement(NamedTuple):
    """A container's or account's partition and its nodes."""

    part: int
    nodes: tuple[Node, ...]


class ObjectPage(NamedTuple):
    """Names listed by a container (or a shard of it), in one policy."""

    listed_by: EntityPath
    policy_index: str
    names: tuple[str, ...]


class ContainerReaper:
    """Removes one container; ``reap`` does it, ``width`` objects at the same time."""

    def __init__(
        self,
        context: BackendContext,
        rings: Rings,
        timeouts: Timeouts,
        path: EntityPath,
        account: RingPlacement,
        *,
        width: int,
        counters: Counters,
        stop: StopRequest,
    ):
        self._context = context
        self._rings = rings
        self._width = width
        self._path = path
        self._account = account
        self._counters = counters
        self._stop = stop
        self._direct = DirectClient(
            context.transport, "account-reaper", timeouts, on_no_response=log_no_response(self._log_error)
        )

    def reap(self) -> None:
        """Delete all objects that are listed, then the container.

        Raises ``CannotList``, ring errors and OSError; failures of single nodes are counted and logged.
        """
        try:
            for page in self._pages(self._path, "", "", 0):
                self._delete_objects(page)
                if self._stop.requested:
                    return
        except CannotList:
            self._counters.add("containers_failures")
            self._counters.add("containers_remaining")
            raise
        self._delete_container()

    # --- listing --------------------------------------------------------------------------------------

    def _pages(self, path: EntityPath, lower: str, upper: str, depth: int) -> Iterator[ObjectPage]:
        """Yield the listing of ``path`` between two bounds, through its shards."""
        record_type = "auto" if depth < DEPTH_MAX else "object"
        marker = lower
        while True:
            reply = self._list(path, marker, upper, record_type)
            if reply is None:
                return
            rows = _rows(reply)
            if reply.headers.get(fields.BACKEND_RECORD_TYPE) == "shard":
                yield from self._pages_of_shards(path, rows, lower, upper, depth)
                return
            names = tuple(str(row["name"]) for row in rows if "name" in row)
            if not names:
                return
            yield ObjectPage(path, reply.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"), names)
            marker = names[-1]

    def _pages_of_shards(
        self, path: EntityPath, rows: Sequence[dict[str, object]], lower: str, upper: str, depth: int
    ) -> Iterator[ObjectPage]:
        for row in rows:
            account, _, container = str(row.get("name", "")).partition("/")
            shard = EntityPath(account, container)
            low, high = max(lower, str(row.get("lower", ""))), str(row.get("upper", ""))
            if upper and (not high or upper < high):
                high = upper
            # What was not split off yet is still listed by the container itself.
            yield from self._pages(shard, low, high, DEPTH_MAX if shard == path else depth + 1)

    def _list(self, path: EntityPath, marker: str, upper: str, record_type: str) -> BackendResponse | None:
        """Return a page from the last replica that can give one, None when the container does not exist."""
        limit = self._context.limits.container_listing_limit
        query = f"format=json&limit={limit}&marker={quote(marker)}"
        if upper:
            # A shard has the name that is its upper bound; the end of a listing is exclusive.
            query += f"&end_marker={quote(upper)}%00"
        if record_type == "auto":
            query += "&states=listing"
        headers = {fields.BACKEND_RECORD_TYPE: record_type, fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        part, nodes = self._container(path)
        missing = False
        for node in reversed(nodes):
            reply = self._request(node, part, "GET", path, headers, query)
            if reply is not None and reply.is_success:
                return reply
            missing = missing or (reply is not None and reply.status == 404)
        if missing:
            return None
        raise CannotList(f"no replica of {path} can be listed")

    # --- deleting -------------------------------------------------------------------------------------

    def _delete_objects(self, page: ObjectPage) -> None:
        """Delete all objects of a page, some at the same time."""
        policy = self._context.policies.of_header(page.policy_index)
        if policy is None:
            self._counters.add("errors")
            self._counters.add("objects_remaining", len(page.names))
            self._log_error(
                f"cannot reap {page.listed_by}: it has the unknown policy index {page.policy_index}"
            )
            return

        def delete(name: str) -> None:
            if not self._stop.requested:
                self._delete_object(page.listed_by, policy, name)

        green.bounded_map(delete, page.names, self._width)

    def _delete_object(self, listed_by: EntityPath, policy: Policy, name: str) -> None:
        path = EntityPath(self._path.account, self._path.container, name)
        placement = RingPlacement(*self._rings.object(policy).nodes(self._context.hasher.digest(*path)))
        common = {**self._headers(), fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index)}
        if listed_by != self._path:
            common[fields.BACKEND_QUOTED_CONTAINER_PATH] = quote_path(
                f"{listed_by.account}/{listed_by.container}"
            )
            common["x-container-root-db-state"] = "sharded"
        told = _naming("x-container", self._container(listed_by), len(placement.nodes))
        self._delete("objects", path, placement, [{**common, **names} for names in told])

    def _delete_container(self) -> None:
        placement = self._container(self._path)
        common = {**self._headers(), "x-account-override-deleted": "yes"}
        told = _naming("x-account", self._account, len(placement.nodes))
        statuses = self._delete("containers", self._path, placement, [{**common, **names} for names in told])
        if all(status == 404 for status in statuses):
            self._forget_container()

    def _forget_container(self) -> None:
        """No replica has the container, so none tells the account: its row would stay for ever.

        Should the container turn up again, it tells the account that it lives.
        """
        headers = {
            **self._headers(),
            "x-put-timestamp": Timestamp(0).internal,
            "x-delete-timestamp": Timestamp(self._context.clock.time()).internal,
            "x-object-count": "0",
            "x-bytes-used": "0",
            "x-account-override-deleted": "yes",
        }
        part, nodes = self._account
        green.gather([partial(self._request, node, part, "PUT", self._path, headers) for node in nodes])

    def _delete(
        self, kind: str, path: EntityPath, placement: RingPlacement, headers: Sequence[HeaderMap]
    ) -> list[int | None]:
        """Ask all nodes and count what came of it: gone when most nodes have it no more."""
        replies: list[BackendResponse | None] = green.gather(
            [
                partial(self._request, node, placement.part, "DELETE", path, own)
                for node, own in zip(placement.nodes, headers, strict=True)
            ]
        )
        gone = sum(1 for reply in replies if reply is not None and (reply.is_success or reply.status == 404))
        if gone < len(replies):
            self._counters.add(f"{kind}_failures")
        if 2 * gone > len(replies):
            self._counters.add(f"{kind}_deleted")
        else:
            self._counters.add(f"{kind}_possibly_remaining" if gone else f"{kind}_remaining")
        return [None if reply is None else reply.status for reply in replies]

    # --- asking ---------------------------------------------------------------------------------------

    def _container(self, path: EntityPath) -> RingPlacement:
        return RingPlacement(
            *self._rings.container.nodes(self._context.hasher.digest(path.account, path.container))
        )

    def _headers(self) -> HeaderMap:
        return {"x-timestamp": Timestamp(self._context.clock.time()).internal}

    def _request(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> BackendResponse | None:
        """Return a node's answer over the replication network, None when there was none."""
        reply = self._direct.request_entity(node, part, method, path, headers, query)
        if reply is None:
            return None
        self._counters.add(f"return_codes.{reply.status // 100}")
        if reply.status >= 500:
            self._log_error(f"{method} {path} at {node.replication_key}: status {reply.status}")
        return reply

    def _log_error(self, text: str) -> None:
        self._context.telemetry.log.error(f"ERROR {text}")


def _rows(reply: BackendResponse) -> list[dict[str, object]]:
    """Return the rows of a JSON listing; raises ``CannotList``."""
    if not reply.body:
        return []
    try:
        rows = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise CannotList("a listing is not JSON")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CannotList("a listing is not a list of objects")
    return rows


def _naming(prefix: str, placement: RingPlacement, count: int) -> list[HeaderMap]:
    """Return headers for ``count`` servers that distribute the updates among them."""
    shares: list[list[Node]] = [[] for _ in range(count)]
    for number in range(max(count, len(placement.nodes))):
        shares[number % count].append(placement.nodes[number % len(placement.nodes)])
    return [
        {
            f"{prefix}-host": ",".join(address(node.ip, node.port) for node in share),
            f"{prefix}-partition": str(placement.part),
            f"{prefix}-device": ",".join(node.device for node in share),
        }
        for share in shares
    ]
