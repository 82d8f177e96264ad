"""What object servers are told about containers and expiry (spec: proxy.md §9).

Pure over ring views: from an object write to one set of headers per object node, with the container
updates spread so that enough of them are sent whichever nodes answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swift.cluster.quorum import container_update_count
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.ring.device import Node


class ContainerNodes(NamedTuple):
    """The servers of the container that takes an object's row."""

    part: int
    nodes: Sequence[Node]
    #: How many of them a write needs.
    quorum: int
    #: The sharding state of the object's container.
    db_state: str


def spread_updates(
    headers: HeaderMap,
    containers: ContainerNodes,
    *,
    object_count: int,
    object_quorum: int,
    object_nodes: Sequence[Node],
) -> list[HeaderMap]:
    """Copies of ``headers`` for each object node, with the container nodes it must tell.

    ``object_nodes`` are the primaries, of which ``object_count`` need not be the number.
    """
    container_nodes = in_pairs(object_nodes, containers.nodes)
    attempts = [dict(headers) for _ in range(object_count)]
    shares: list[list[Node]] = [[] for _ in range(object_count)]
    updates = container_update_count(len(container_nodes), containers.quorum, object_count, object_quorum)
    for i in range(updates):
        shares[i % object_count].append(container_nodes[i % len(container_nodes)])
    for attempt, share in zip(attempts, shares, strict=True):
        if share:
            attempt[fields.CONTAINER_PARTITION] = str(containers.part)
            attempt[fields.CONTAINER_HOST], attempt[fields.CONTAINER_DEVICE] = _hosts_and_devices(share)
            attempt[fields.CONTAINER_ROOT_DB_STATE] = containers.db_state
    return attempts


def in_pairs(objects: Sequence[Node], containers: Sequence[Node]) -> list[Node]:
    """``containers``, each in the place of the object node that is to tell it.

    An object server tells the same container server whenever it can, first of all the one beside it. Rows of
    changes that became durable together then arrive together and share a sync (decision 0010).
    """
    free = list(range(len(containers)))
    places = [-1] * min(len(objects), len(free))
    for is_beside in (_same_device, _same_host):
        for i, place in enumerate(places):
            if place < 0:
                for k in free:
                    if is_beside(objects[i], containers[k]):
                        places[i] = k
                        free.remove(k)
                        break
    for i, place in enumerate(places):
        if place < 0:
            # Two devices may wish for the same one; the second takes what is left.
            wish = objects[i].id % len(containers)
            places[i] = wish if wish in free else free[0]
            free.remove(places[i])
    return [containers[k] for k in places + free]


def _same_device(one: Node, other: Node) -> bool:
    return one.ip == other.ip and one.device == other.device


def _same_host(one: Node, other: Node) -> bool:
    return one.ip == other.ip


def _hosts_and_devices(nodes: Sequence[Node]) -> tuple[str, str]:
    """Two lists as object servers read them."""
    if len(nodes) == 1:
        # As nearly always.
        return nodes[0].key.rpartition("/")[0], nodes[0].device
    return (
        ",".join([node.key.rpartition("/")[0] for node in nodes]),
        ",".join([node.device for node in nodes]),
    )


def add_expiry(
    attempts: Sequence[HeaderMap], *, container: str, part: int, nodes: Sequence[Node], delete_at: str
) -> None:
    """Tell the object nodes, in reverse order, which queue container nodes to update."""
    count = len(attempts)
    shares: list[list[Node]] = [[] for _ in range(count)]
    for i in range(max(count, len(nodes)) if nodes else 0):
        if i < len(nodes):
            shares[count - 1 - i % count].append(nodes[i])
    for attempt, share in zip(attempts, shares, strict=True):
        attempt["x-delete-at"] = delete_at
        attempt[fields.DELETE_AT_CONTAINER] = container
        if share:
            attempt[fields.DELETE_AT_PARTITION] = str(part)
            attempt[fields.DELETE_AT_HOST], attempt[fields.DELETE_AT_DEVICE] = _hosts_and_devices(share)


def mark_queue_cleaners(attempts: Sequence[HeaderMap]) -> None:
    """Have the first two nodes remove an old queue entry, unless the request says who removes it.

    The expirer removes its entry itself and asks that no node does.
    """
    for i, attempt in enumerate(attempts):
        attempt.setdefault(fields.BACKEND_CLEAN_EXPIRING_QUEUE, "t" if i < 2 else "f")
