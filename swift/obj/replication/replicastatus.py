"""Status of remote copies: partitions that need work, and their order.

``ReplicaStatus`` is pure: it holds which remote copies are equal, different, missing or unknown. The
partition with the fewest known copies comes first. A partition with unknown copies does not precede one
whose copies are known to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from swift import green
from swift.obj.replication.digests import EMPTY
from swift.obj.replication.remotenodes import RemoteNodes
from swift.policy.policy import Policy
from swift.ring.device import Node


class CopyState(IntEnum):
    """State of a remote copy of a partition."""

    EQUAL = 0
    DIFFERENT = 1
    MISSING = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class DigestQuery:
    """A partition to compare with a remote node."""

    part: int
    #: Digest that an equal remote partition has; None while the local one is unknown.
    digest: str | None
    #: Erasure coding: the index of the partner's archives.
    index: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """States of a partition's remote copies, by device id."""

    states: Mapping[int, CopyState]

    @property
    def is_in_sync(self) -> bool:
        """Return True if all remote copies equal the local one."""
        return all(verdict is CopyState.EQUAL for verdict in self.states.values())

    @property
    def copies(self) -> float:
        """Number of remote copies; a copy that differs or is unknown counts as half."""
        worth = {CopyState.EQUAL: 1.0, CopyState.MISSING: 0.0}
        return sum(worth.get(verdict, 0.5) for verdict in self.states.values())

    def state_of(self, node: Node) -> CopyState:
        """Return the state of one node's copy."""
        return self.states.get(node.id, CopyState.UNKNOWN)

    def __str__(self) -> str:
        return ", ".join(f"{node}: {verdict.name.lower()}" for node, verdict in sorted(self.states.items()))


def compare_digests(mine: str | None, theirs: str | None) -> CopyState:
    """Compare a local digest with a remote one."""
    if theirs is None:
        return CopyState.UNKNOWN
    if mine == theirs:
        return CopyState.EQUAL
    return CopyState.MISSING if theirs == EMPTY else CopyState.DIFFERENT


def request_status(
    remote_nodes: RemoteNodes,
    policy: Policy,
    queries: Mapping[int, tuple[Node, Iterable[DigestQuery]]],
    on_refusal: Callable[[Node, int], None],
) -> dict[int, ReplicaStatus]:
    """Request digests from each remote node once; return partition → replica status.

    ``digest_queries`` is by device id; ``on_refusal`` is told the status of a partner that gave no digests.
    """
    found: dict[int, dict[int, CopyState]] = {}

    def ask(node: Node, query: list[DigestQuery]) -> None:
        status, received = remote_nodes.digests(node, policy, {each.part: each.index for each in query})
        if status != 200:
            on_refusal(node, status)
        for each in query:
            found.setdefault(each.part, {})[node.id] = compare_digests(each.digest, received.get(each.part))

    green.gather([partial(ask, node, list(query)) for node, query in queries.values()])
    return {part: ReplicaStatus(states) for part, states in found.items()}
