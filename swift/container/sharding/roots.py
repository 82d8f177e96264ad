"""Requests between shards and roots (spec: account-container.md §19.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath, quote_path
from swift.base.errors import InvalidValue
from swift.base.hashing import PathHasher
from swift.base.shardrange import ShardRange
from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.transport import TransportError, replication_address
from swift.container.rows import ObjectRow
from swift.gateway.internal_client import InternalClient
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.ring.device import Node
from swift.ring.ring import Ring

#: A method, headers and a body.
_Message = tuple[str, HeaderMap, bytes]


class Roots:
    """Asks roots by way of a pipeline, and tells all nodes of a container about ranges."""

    def __init__(self, client: InternalClient, direct: DirectClient, ring: Ring, hasher: PathHasher):
        self._client = client
        self._direct = direct
        self._ring = ring
        self._hasher = hasher

    # --- asking ---------------------------------------------------------------------------------------

    def auditing_ranges(self, root: str, own: ShardRange) -> list[ShardRange]:
        """Return the root's ranges for a shard, including deleted ones and the root's own."""
        return self._ranges(root, "auditing", own.lower, own.upper, include_deleted=True)

    def updating_ranges(self, root: str, first: str, last: str) -> list[ShardRange]:
        """Return the shards of a root that take the rows from one name to another."""
        found = self._ranges(root, "updating", "", "", include_deleted=False)
        return [item for item in found if item.includes(first) or item.lower < last]

    def _ranges(
        self, root: str, states: str, lower: str, upper: str, *, include_deleted: bool
    ) -> list[ShardRange]:
        account, _, container = root.partition("/")
        headers = {
            fields.BACKEND_RECORD_TYPE: "shard",
            fields.BACKEND_OVERRIDE_DELETED: "true",
            fields.BACKEND_INCLUDE_DELETED: "true" if include_deleted else "false",
            "x-newest": "true",
        }
        pairs = {"format": "json", "states": states, "marker": lower, "end_marker": upper}
        query = "&".join(f"{name}={quote(text.encode(), safe='')}" for name, text in pairs.items() if text)
        with self._client.request(
            "GET", EntityPath(account, container), headers, query=query, accept=(2, 404)
        ) as response:
            body = response.read_body() if response.status == 200 else b""
            if response.headers.get(fields.BACKEND_RECORD_TYPE) != "shard":
                return []
        try:
            found = json.loads(body or b"[]")
            return [ShardRange.from_mapping(item) for item in found] if isinstance(found, list) else []
        except (ValueError, RecursionError, InvalidValue):
            return []

    # --- telling --------------------------------------------------------------------------------------

    def create_shard(self, shard: ShardRange, root: str, policy_index: int) -> bool:
        """Make a shard's containers; whether a majority of its nodes has one now."""
        headers = {
            fields.BACKEND_AUTO_CREATE: "true",
            fields.BACKEND_STORAGE_POLICY_INDEX: str(policy_index),
            fields.SYSMETA_SHARD_QUOTED_ROOT: quote_path(root),
            fields.SYSMETA_SHARDING: "True",
        }
        return self._put(shard.name, [shard], {"x-timestamp": shard.timestamp, **headers}, root)

    def tell_shard(self, shard: ShardRange, ranges: Sequence[ShardRange], root: str) -> bool:
        """Tell a shard of ranges; whether a majority of its nodes heard."""
        return self._put(shard.name, ranges, {"x-timestamp": shard.state_timestamp}, root)

    def tell_replicas(self, name: str, ranges: Sequence[ShardRange]) -> bool:
        """Tell a container's own servers of its shards; whether a majority of them heard."""
        stamp = max(item.meta_timestamp for item in ranges)
        return self._put(name, ranges, {"x-timestamp": stamp}, name)

    def tell_root(self, root: str, ranges: Sequence[ShardRange], teller: str) -> bool:
        """Tell a root of ranges; whether a majority of its nodes heard."""
        stamp = max((item.meta_timestamp for item in ranges), default="0")
        return self._put(root, ranges, {"x-timestamp": stamp}, teller)

    def merge_rows(
        self, root: str, rows: Sequence[ObjectRow], ranges: Sequence[ShardRange], now: Timestamp
    ) -> int:
        """Give a root rows; how many of its nodes have them all. One that has no such container gets none.

        A node is told first of the ranges which say that the rows are the root's: it would bring them back.
        """
        body = json.dumps([row.as_update() for row in rows]).encode("ascii")
        told = self._ranges_message(ranges, {"x-timestamp": now.internal}, ranges[0].name)
        sent = ("UPDATE", self._headers({"x-timestamp": now.internal}, body), body)
        return self._send(root, [told, sent])

    def _put(self, name: str, ranges: Sequence[ShardRange], headers: HeaderMap, teller: str) -> bool:
        _part, nodes = self._nodes_of(name)
        return 2 * self._send(name, [self._ranges_message(ranges, headers, teller)]) > len(nodes)

    def _ranges_message(self, ranges: Sequence[ShardRange], headers: HeaderMap, teller: str) -> _Message:
        body = json.dumps([item.as_dict() for item in ranges]).encode("ascii")
        about = {fields.BACKEND_RECORD_TYPE: "shard", "referer": quote_path(teller)}
        return "PUT", self._headers({**headers, **about}, body), body

    def _headers(self, headers: HeaderMap, body: bytes) -> HeaderMap:
        return {
            **headers,
            "content-length": str(len(body)),
            "content-type": "application/json",
            "user-agent": self._direct.agent,
        }

    def _nodes_of(self, name: str) -> tuple[int, Sequence[Node]]:
        account, _, container = name.partition("/")
        return self._ring.nodes(self._hasher.digest(account, container))

    def _send(self, name: str, messages: Sequence[_Message]) -> int:
        """Send messages to all nodes of a container, one after the other; how many took them all."""
        part, nodes = self._nodes_of(name)
        account, _, container = name.partition("/")
        path = EntityPath(account, container)
        return sum(green.gather([partial(self._send_all_to, node, part, path, messages) for node in nodes]))

    def _send_all_to(self, node: Node, part: int, path: EntityPath, messages: Sequence[_Message]) -> bool:
        return all(self._send_to(node, part, path, *message) for message in messages)

    def _send_to(
        self, node: Node, part: int, path: EntityPath, method: str, headers: HeaderMap, body: bytes
    ) -> bool:
        target = node_path(node.device, part, path.quoted)
        try:
            reply = self._direct.request(replication_address(node), method, target, headers, body)
        except TransportError:
            return False
        return reply.is_success
