"""What is to be done about a partition of an erasure coded policy: decided from suffix hashes alone.

A primary keeps the archives of its own index in sync with three neighbours, and brings all others home; a
handoff brings everything home. Tombstones belong to no index: they go along with the first job, and where
there is none to enough primaries that a majority meets one of them. spec: replication.md §5
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.policy.policy import ErasureCode
from swift.ring.device import Node


@dataclass(frozen=True)
class ArchiveRevert:
    """Archives of one index (None: tombstones only) that go to these nodes, and leave here."""

    index: int | None
    suffixes: tuple[str, ...]
    nodes: tuple[Node, ...]


def fragment_of(node: Node, ec: ErasureCode) -> int:
    """The index of the archives that belong to a primary."""
    return (node.index or 0) % ec.fragments


def sync_partners(own: Node, primaries: Sequence[Node]) -> list[Node]:
    """The neighbours that a primary rebuilds for: left, right and far."""
    count, at = len(primaries), own.index or 0
    places = dict.fromkeys(((at - 1) % count, (at + 1) % count, (at + count // 2) % count))
    return [primaries[place] for place in places if primaries[place].id != own.id]


def reverts_of(
    hashes: Mapping[str, object],
    own: Node | None,
    primaries: Sequence[Node],
    ec: ErasureCode,
    rng: random.Random,
) -> list[ArchiveRevert]:
    """What does not belong here. Archives of an index that no primary has stay."""
    by_index: dict[int, list[str]] = {}
    bare: list[str] = []
    for suffix, value in sorted(hashes.items()):
        indexes = [key for key in value if key is not None] if isinstance(value, Mapping) else []
        for index in indexes:
            if own is None or index != fragment_of(own, ec):
                by_index.setdefault(index, []).append(suffix)
        if not indexes and isinstance(value, Mapping):
            bare.append(suffix)
    reverts = []
    for index, suffixes in sorted(by_index.items()):
        nodes = tuple(node for node in primaries if fragment_of(node, ec) == index)
        if nodes:
            reverts.append(ArchiveRevert(index, tuple(suffixes), nodes))
    if own is None and bare:
        if reverts:
            first = reverts[0]
            reverts[0] = ArchiveRevert(first.index, tuple(sorted({*first.suffixes, *bare})), first.nodes)
        else:
            enough = min(len(primaries), ec.fragments * ec.duplication - ec.data + 1)
            reverts.append(ArchiveRevert(None, tuple(bare), tuple(rng.sample(list(primaries), enough))))
    return reverts
