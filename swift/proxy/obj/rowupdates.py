"""Container rows and expiry queue entries that follow an object write (spec: proxy.md §9).

Object servers send the rows. ``write_attempts`` gives each of them its share of the container's servers, so
that enough rows are sent whichever nodes respond. Where no object server with a share has taken the write,
the proxy sends the rows itself (``unsent_updates``). In containers with strong listings a majority of the
container's servers has the row before the write is acknowledged (``ensure_row_majority``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import NamedTuple

from swift import green
from swift.base.digits import is_digits
from swift.base.entity import EntityPath, quote_path
from swift.base.etag import unquote_etag
from swift.cluster.direct import node_path
from swift.cluster.expiry import EXPIRING_ACCOUNT, queue_container
from swift.cluster.quorum import container_update_count, majority
from swift.cluster.transport import BackendResponse, NodeAddress, TransportError
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.proxy.backend import backend_headers, hosts_and_devices
from swift.proxy.context import ProxyContext
from swift.proxy.obj.location import WriteLocation
from swift.ring.device import Node


class ContainerNodes(NamedTuple):
    """The servers of the container that takes an object's row."""

    part: int
    nodes: Sequence[Node]
    #: Number of them that a write needs.
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
    """Return copies of ``headers`` for each object node, with the container nodes that it must update.

    ``object_nodes`` are the primaries, of which ``object_count`` need not be the number.
    """
    container_nodes = pair_with_objects(object_nodes, containers.nodes)
    attempts = [dict(headers) for _ in range(object_count)]
    shares: list[list[Node]] = [[] for _ in range(object_count)]
    updates = container_update_count(len(container_nodes), containers.quorum, object_count, object_quorum)
    for i in range(updates):
        shares[i % object_count].append(container_nodes[i % len(container_nodes)])
    for attempt, share in zip(attempts, shares, strict=True):
        if share:
            attempt[fields.CONTAINER_PARTITION] = str(containers.part)
            attempt[fields.CONTAINER_HOST], attempt[fields.CONTAINER_DEVICE] = hosts_and_devices(share)
            attempt[fields.CONTAINER_ROOT_DB_STATE] = containers.db_state
    return attempts


def pair_with_objects(objects: Sequence[Node], containers: Sequence[Node]) -> list[Node]:
    """Return ``containers``, each at the position of the object node that updates it.

    An object server updates the same container server whenever possible, preferably one on its own device or
    host. Rows of changes that became durable together then arrive together and share a sync (decision 0010).
    """
    free = list(range(len(containers)))
    places = [-1] * min(len(objects), len(free))
    for is_near in (_same_device, _same_host):
        for i, place in enumerate(places):
            if place < 0:
                for k in free:
                    if is_near(objects[i], containers[k]):
                        places[i] = k
                        free.remove(k)
                        break
    for i, place in enumerate(places):
        if place < 0:
            # Two devices may prefer the same server; the second takes one that is left.
            preferred = objects[i].id % len(containers)
            places[i] = preferred if preferred in free else free[0]
            free.remove(places[i])
    return [containers[k] for k in places + free]


def _same_device(one: Node, other: Node) -> bool:
    return one.ip == other.ip and one.device == other.device


def _same_host(one: Node, other: Node) -> bool:
    return one.ip == other.ip


def add_expiry(
    attempts: Sequence[HeaderMap], *, container: str, part: int, nodes: Sequence[Node], delete_at: str
) -> None:
    """Give the object nodes, in reverse order, the queue container nodes that they update."""
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
            attempt[fields.DELETE_AT_HOST], attempt[fields.DELETE_AT_DEVICE] = hosts_and_devices(share)


def mark_queue_cleaners(attempts: Sequence[HeaderMap]) -> None:
    """Let the first two nodes remove an old queue entry, unless the request's header is already set.

    The expirer removes its entry itself, so it sets the header to exclude all nodes.
    """
    for i, attempt in enumerate(attempts):
        attempt.setdefault(fields.BACKEND_CLEAN_EXPIRING_QUEUE, "t" if i < 2 else "f")


_OVERRIDES = (fields.BACKEND_UPDATE_OVERRIDE, fields.SYSMETA_UPDATE_OVERRIDE)
#: Containers that are being split take rows through redirects, which only object servers follow.
_UNSHARDED_STATES = ("unsharded", "")


def unsent_updates(
    attempts: Sequence[HeaderMap],
    responses: Sequence[BackendResponse],
    accepted: Sequence[int] = (200, 201, 202),
) -> list[HeaderMap]:
    """Return the attempts without a response of one of the ``accepted`` statuses."""
    taken = {id(a.attempt) for a in responses if a.status in accepted}
    return [attempt for attempt in attempts if id(attempt) not in taken]


def row_of_put(request: Request, size: int, etag: str, footers: HeaderMap | None = None) -> HeaderMap:
    """Return the row of a stored object; overrides in ``footers`` win over those in headers."""
    row = {
        "x-size": str(size),
        "x-content-type": request.headers.get("content-type", ""),
        "x-etag": unquote_etag(etag),
    }
    for prefix in _OVERRIDES:
        for name, value in (*request.headers.items(), *(footers or {}).items()):
            if name.startswith(prefix):
                row[f"x-{name[len(prefix) :]}"] = value
    return row


def send_updates(
    context: ProxyContext,
    request: Request,
    location: WriteLocation,
    unsent: Sequence[HeaderMap],
    op: str,
    row: HeaderMap,
) -> None:
    """Send ``op`` (PUT or DELETE of the row) for every unsent share, in the background."""
    if not unsent or location.container.sharding_state not in _UNSHARDED_STATES:
        return
    headers = _row_headers(context, request, location, row)
    for ip, port, device, part in _container_servers(unsent):
        path = node_path(device, part, location.path.quoted)
        green.spawn_detached(_send_row, context, NodeAddress(ip, port), op, path, headers)


def _row_headers(
    context: ProxyContext, request: Request, location: WriteLocation, row: HeaderMap
) -> HeaderMap:
    """Return the headers that a container server is sent with a row."""
    return {
        **row,
        "x-timestamp": request.timestamp.internal,
        fields.BACKEND_STORAGE_POLICY_INDEX: str(location.policy.index),
        "x-trans-id": request.env.get(environkeys.TRANS_ID, "-"),
        "user-agent": context.direct.agent,
        "referer": f"{request.method} {request.url}",
    }


def _container_servers(unsent: Sequence[HeaderMap]) -> Iterator[tuple[str, int, str, str]]:
    for attempt in unsent:
        hosts = attempt.get(fields.CONTAINER_HOST, "").split(",")
        devices = attempt.get(fields.CONTAINER_DEVICE, "").split(",")
        for host, device in zip(hosts, devices, strict=False):
            ip, _, port = host.rpartition(":")
            if is_digits(port):
                yield ip.strip("[]"), int(port), device, attempt[fields.CONTAINER_PARTITION]


def _send_row(
    context: ProxyContext, node: NodeAddress | Node, op: str, path: str, headers: HeaderMap
) -> bool:
    """Send a row to a container server; return True if the server took it."""
    try:
        response = context.direct.request(node, op, path, headers)
        outcome = "" if response.is_success else f"status {response.status}"
    except TransportError as error:
        outcome = str(error)
    if outcome:
        context.telemetry.log.warning(
            f"container row of {path} was not sent to {node.ip}:{node.port}: {outcome}",
            txid=headers["x-trans-id"],
        )
    return not outcome


def ensure_row_majority(
    context: ProxyContext,
    request: Request,
    location: WriteLocation,
    responses: Sequence[BackendResponse],
    op: str,
    row: HeaderMap,
) -> bool:
    """Return True if a majority of the primaries of one container has ``op`` (PUT or DELETE) of a row.

    Our object servers report which container servers took the row (``X-Backend-Container-Servers``); the
    others get it from here. A strong listing shows every such row (decision 0017).
    """
    lists = [
        response.headers.get(name, "")
        for response in responses
        for name in (fields.BACKEND_CONTAINER_SERVERS, fields.FORMER_CONTAINER_SERVERS)
    ]
    reported = {key for keys in lists for key in keys.split(",")}
    headers = _row_headers(context, request, location, row)
    own = EntityPath(location.path.account, location.path.container)
    first = location.shard or own
    if _ensure_majority_of(context, location.path, first, reported, op, headers):
        return True
    # A listing requests the rows of the container's own servers too, which move the row to its shard.
    return first != own and _ensure_majority_of(context, location.path, own, frozenset(), op, headers)


def _ensure_majority_of(
    context: ProxyContext,
    path: EntityPath,
    container: EntityPath,
    reported: Set[str],
    op: str,
    headers: HeaderMap,
) -> bool:
    """Return True if a majority of a container's primaries has the row, after sending it to the others."""
    view = context.rings.container.view()
    part = view.partition_of(context.hasher.digest(container.account, container.container))
    nodes = view.primaries(part)
    missing = [node for node in nodes if node.key not in reported]
    known, need = len(nodes) - len(missing), majority(len(nodes))
    if known >= need:
        return True
    row = EntityPath(container.account, container.container, path.obj).quoted
    known += sum(
        green.gather(
            [partial(_send_row, context, n, op, node_path(n.device, part, row), headers) for n in missing]
        )
    )
    if known < need:
        context.telemetry.log.error(
            f"ERROR only {known} of {len(nodes)} servers of {container} have the row of {path}",
            txid=headers["x-trans-id"],
        )
    return known >= need


def write_attempts(
    context: ProxyContext, request: Request, location: WriteLocation, count: int | None = None
) -> list[HeaderMap]:
    """Return one set of headers per primary, with its share of container and queue updates.

    ``count`` is the number of nodes when it is not that of the primaries.
    """
    path, headers = location.path, backend_headers(context, request, transfer=True)
    containers = context.rings.container.view()
    shard = location.shard
    target = shard or path
    part = containers.partition_of(context.hasher.digest(target.account, target.container))
    if shard is not None:
        headers[fields.BACKEND_QUOTED_CONTAINER_PATH] = quote_path(f"{shard.account}/{shard.container}")
    headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(location.policy.index)
    if location.view.next_part_power is not None:
        headers[fields.BACKEND_NEXT_PART_POWER] = str(location.view.next_part_power)
    container_nodes = containers.primaries(part)
    attempts = spread_updates(
        headers,
        ContainerNodes(
            part,
            container_nodes,
            context.write_quorum(len(container_nodes)),
            location.container.sharding_state,
        ),
        object_count=count or len(location.view.primaries(location.part)),
        object_quorum=location.quorum,
        object_nodes=location.view.primaries(location.part),
    )
    if location.is_strongly_listed:
        for attempt in attempts:
            attempt[fields.BACKEND_REPORT_CONTAINER_SERVERS] = "true"
    mark_queue_cleaners(attempts)
    delete_at = headers.get("x-delete-at")
    if delete_at:
        divisor = context.settings.expiring_objects_container_divisor
        queue = queue_container(context.hasher, path, int(delete_at), divisor)
        queue_part = containers.partition_of(context.hasher.digest(EXPIRING_ACCOUNT, queue))
        add_expiry(
            attempts,
            container=queue,
            part=queue_part,
            nodes=containers.primaries(queue_part),
            delete_at=delete_at,
        )
    return attempts
