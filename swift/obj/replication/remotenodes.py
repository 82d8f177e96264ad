"""Requests to remote nodes: digests of many partitions at once, suffix hashes of one.

Every answer that did not come is told as a status, so that the caller decides what it means; a node that
gives none is left alone for a while, because each further question would cost a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from swift.base.clock import Clock
from swift.base.pickles import PickleRefused, restricted_loads
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.health import NodeHealth, replication_server
from swift.cluster.transport import BackendResponse, TransportError, replication_address
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.obj.replication import digests
from swift.obj.replication.digests import DigestRequest
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.store.layout import is_suffix
from swift.telemetry.log import Log

#: Stands for the response of a node that did not respond.
NO_RESPONSE = 0
UNMOUNTED = 507
#: Time until a node without digests is asked for them again, seconds.
NO_DIGESTS_S = 3600.0
#: Questions in which a node may tell nothing new before it is asked partition by partition.
_EMPTY_RESPONSES_MAX = 1


class RemoteNodes:
    """Client of the replication servers of other nodes."""

    def __init__(self, direct: DirectClient, *, response_s: float, clock: Clock, log: Log):
        """``response_s``: how long a node may take for an answer that costs it work, seconds."""
        self._direct = direct
        self._extra_s = response_s
        self._clock = clock
        self._log = log
        self._health = NodeHealth(clock)
        self._no_digests_until: dict[tuple[str, int], float] = {}

    def start_pass(self) -> None:
        """Start a pass: retry nodes that did not respond in an earlier one."""
        self._health.forget_absent()

    def is_absent(self, node: Node) -> bool:
        """Return True if the node recently did not respond."""
        return self._health.is_absent(replication_server(node))

    def _request(
        self, node: Node, policy: Policy, below: str, headers: HeaderMap, body: bytes = b""
    ) -> BackendResponse:
        """Send a REPLICATE request; a node that does not respond yields status ``NO_RESPONSE``."""
        if self.is_absent(node):
            return BackendResponse(NO_RESPONSE)
        sent = {
            "content-length": str(len(body)),
            "user-agent": self._direct.agent,
            fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index),
            **headers,
        }
        try:
            return self._direct.request(
                replication_address(node), "REPLICATE", below, sent, body, more_time_s=self._extra_s
            )
        except TransportError as error:
            self._log.warning(f"REPLICATE to {node.replication_key} failed: {error}")
            self._health.mark_absent(replication_server(node))
            return BackendResponse(NO_RESPONSE)

    # --- many partitions -----------------------------------------------------------------------------

    def digests(self, node: Node, policy: Policy, query: DigestRequest) -> tuple[int, dict[int, str]]:
        """Return a node's last status and the partition digests that it reported."""
        received: dict[int, str] = {}
        status = 200
        rest = dict(query)
        empty_responses = 0
        while rest and empty_responses <= _EMPTY_RESPONSES_MAX:
            if self._no_digests_until.get(_address(node), 0.0) > self._clock.monotonic():
                return 200, received
            portion = dict(islice(rest.items(), digests.PARTITIONS_MAX))
            status, response = self._digests_once(node, policy, portion)
            if status != 200:
                break
            empty_responses = 0 if response else empty_responses + 1
            received.update(response)
            # Those that it could not tell in time go last.
            left = {part: index for part, index in portion.items() if part not in response}
            rest = {part: index for part, index in rest.items() if part not in portion} | left
        return status, received

    def _digests_once(self, node: Node, policy: Policy, portion: DigestRequest) -> tuple[int, dict[int, str]]:
        path = node_path(node.device, next(iter(portion)), "")
        flag = {fields.BACKEND_PARTITION_DIGESTS: "true", "content-type": "application/json"}
        response = self._request(node, policy, path, flag, digests.encode_request(portion))
        if response.status != 200:
            return response.status, {}
        if fields.BACKEND_PARTITION_DIGESTS not in response.headers:
            self._no_digests_until[_address(node)] = self._clock.monotonic() + NO_DIGESTS_S
            return 200, {}

        try:
            found = digests.decode_response(response.body)
        except digests.BadDigestMessage as error:
            self._log.warning(f"{node.replication_key} sent malformed digests: {error}")
            return 200, {}
        return 200, {part: text for part, text in found.items() if part in portion}

    # --- one partition -------------------------------------------------------------------------------

    def hashes(self, node: Node, policy: Policy, part: int) -> tuple[int, dict[str, object]]:
        """Return the response's status and the suffix hashes of a node's partition; none unless the status
        is 200.
        """
        response = self._request(node, policy, node_path(node.device, part, ""), {})
        if response.status != 200:
            return response.status, {}
        try:
            found = restricted_loads(response.body)
        except PickleRefused:
            found = None
        if not isinstance(found, dict):
            self._log.warning(f"{node.replication_key} sent malformed hashes of partition {part}")
            return NO_RESPONSE, {}
        suffixes = {name: value for name, value in found.items() if isinstance(name, str) and is_suffix(name)}
        return 200, suffixes

    def invalidate(
        self, node: Node, policy: Policy, part: int, suffixes: list[str], *, durable: bool
    ) -> bool:
        """Invalidate pushed suffixes on a node; return True if it did so.

        With ``durable`` it is asked to make them durable before it answers. Servers of the peer cannot do
        that; their word is taken as it is.
        """
        headers = {fields.BACKEND_MAKE_DURABLE: "true"} if durable else {}
        return all(
            self._request(
                node, policy, node_path(node.device, part, f"/{'-'.join(some)}"), headers
            ).is_success
            for some in _portions(suffixes)
        )

    def __repr__(self) -> str:
        return f"<RemoteNodes of {self._direct!r}>"


def _address(node: Node) -> tuple[str, int]:
    return node.replication_ip, node.replication_port


def _portions(suffixes: list[str]) -> Iterator[list[str]]:
    """Split suffixes into lists that fit a request line."""
    for start in range(0, len(suffixes), 1000):
        yield suffixes[start : start + 1000]


def differing_suffixes(mine: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    """Return the suffixes of replicated objects that a node lacks or whose hashes differ."""
    return sorted(name for name, value in mine.items() if theirs.get(name) != value or value is None)


def differing_archive_suffixes(
    mine: Mapping[str, object], own: int, theirs: Mapping[str, object], other: int
) -> list[str]:
    """Return the differing suffixes of EC archives: local index ``own`` against a node's index ``other``."""

    def of(value: object, index: int) -> tuple[object, object]:
        return (value.get(None), value.get(index)) if isinstance(value, Mapping) else (None, None)

    return sorted(name for name, value in mine.items() if of(value, own) != of(theirs.get(name), other))
