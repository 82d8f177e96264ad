"""Rows that a majority of a container's primaries has before a write is acknowledged (decision 0017).

Only where strong listings are wanted. The container is the object's own, or the shard that takes its rows.
Object servers of ours say which container servers took the row (``X-Backend-Container-Told``); whom nobody of
them told, the proxy tells itself.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.direct import node_path
from swift.cluster.quorum import majority
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.proxy.context import ProxyContext
from swift.proxy.obj.orphans import row_headers
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node


def tell_majority(
    context: ProxyContext,
    request: Request,
    target: ObjectTarget,
    answers: Sequence[BackendResponse],
    op: str,
    row: HeaderMap,
) -> bool:
    """Have ``op`` (PUT or DELETE of the row) known to a majority of the primaries of one container.

    True at once where listings need not be strong.
    """
    if not target.is_listed_surely:
        return True
    told = {place for a in answers for place in a.headers.get(fields.BACKEND_CONTAINER_TOLD, "").split(",")}
    own = EntityPath(target.path.account, target.path.container)
    first = target.shard or own
    if _is_known(context, request, target, first, told, op, row):
        return True
    # Whoever lists the container asks its own servers too, and they bring the row to where it belongs.
    return first != own and _is_known(context, request, target, own, frozenset(), op, row)


def _is_known(
    context: ProxyContext,
    request: Request,
    target: ObjectTarget,
    container: EntityPath,
    told: Set[str],
    op: str,
    row: HeaderMap,
) -> bool:
    """Whether a majority of a container's primaries has the row, after telling those that were not told."""
    view = context.rings.container.view()
    part = view.partition_of(context.hasher.digest(container.account, container.container))
    nodes = view.primaries(part)
    missing = [node for node in nodes if node.key not in told]
    known, need = len(nodes) - len(missing), majority(len(nodes))
    if known >= need:
        return True
    headers = row_headers(context, request, target, row)
    path = EntityPath(container.account, container.container, target.path.obj).quoted
    known += sum(green.gather([partial(_tell, context, n, part, op, path, headers) for n in missing]))
    if known < need:
        context.telemetry.log.error(
            f"ERROR the row of {target.path} is known to {known} of {len(nodes)} servers of {container} only",
            txid=headers["x-trans-id"],
        )
    return known >= need


def _tell(context: ProxyContext, node: Node, part: int, op: str, path: str, headers: HeaderMap) -> bool:
    try:
        reply = context.direct.request(node, op, node_path(node.device, part, path), headers)
    except TransportError:
        return False
    return reply.is_success
