"""Container rows that no object server took along.

Each object server of a write tells its share of the container servers. When a node and all that could
stand in for it are away, the write may still succeed on the others, but that share would never be told,
and one replica of the listing would lack the object until databases are replicated. So the proxy tells it
itself, after the client has its answer. Best effort: the rows of the other shares are already on their way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swift import green
from swift.base.digits import is_digits
from swift.base.etag import unquote_etag
from swift.cluster.direct import node_path
from swift.cluster.transport import BackendResponse, NodeAddress, TransportError
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.proxy.context import ProxyContext
from swift.proxy.obj.target import ObjectTarget

_OVERRIDES = (fields.BACKEND_UPDATE_OVERRIDE, fields.SYSMETA_UPDATE_OVERRIDE)
#: Containers that are being split take rows through redirects, which only object servers follow.
_WHOLE = ("unsharded", "")


def orphans_of(
    attempts: Sequence[HeaderMap],
    answers: Sequence[BackendResponse],
    accepted: Sequence[int] = (200, 201, 202),
) -> list[HeaderMap]:
    """The attempts that no node answered with one of the ``accepted`` statuses."""
    taken = {id(a.attempt) for a in answers if a.status in accepted}
    return [attempt for attempt in attempts if id(attempt) not in taken]


def row_of_put(request: Request, size: int, etag: str, footers: HeaderMap | None = None) -> HeaderMap:
    """What a container is told of a stored object; overrides in ``footers`` win over those in headers."""
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


def tell_containers(
    context: ProxyContext,
    request: Request,
    target: ObjectTarget,
    orphans: Sequence[HeaderMap],
    op: str,
    row: HeaderMap,
) -> None:
    """Send ``op`` (PUT or DELETE of the row) for every orphaned share, in the background."""
    if not orphans or target.container.sharding_state not in _WHOLE:
        return
    headers = row_headers(context, request, target, row)
    for ip, port, device, part in _places(orphans):
        path = node_path(device, part, target.path.quoted)
        green.spawn_detached(_tell, context, (ip, port), op, path, headers)


def row_headers(context: ProxyContext, request: Request, target: ObjectTarget, row: HeaderMap) -> HeaderMap:
    """What a container server is sent with a row."""
    return {
        **row,
        "x-timestamp": request.timestamp.internal,
        fields.BACKEND_STORAGE_POLICY_INDEX: str(target.policy.index),
        "x-trans-id": request.env.get(environkeys.TRANS_ID, "-"),
        "user-agent": context.direct.agent,
        "referer": f"{request.method} {request.url}",
    }


def _places(orphans: Sequence[HeaderMap]) -> Iterator[tuple[str, int, str, str]]:
    for orphan in orphans:
        hosts = orphan.get(fields.CONTAINER_HOST, "").split(",")
        devices = orphan.get(fields.CONTAINER_DEVICE, "").split(",")
        for host, device in zip(hosts, devices, strict=False):
            ip, _, port = host.rpartition(":")
            if is_digits(port):
                yield ip.strip("[]"), int(port), device, orphan[fields.CONTAINER_PARTITION]


def _tell(context: ProxyContext, address: tuple[str, int], op: str, path: str, headers: HeaderMap) -> None:
    try:
        reply = context.direct.request(NodeAddress(*address), op, path, headers)
        outcome = "" if reply.is_success else f"status {reply.status}"
    except TransportError as error:
        outcome = str(error)
    if outcome:
        context.telemetry.log.warning(
            f"container row of {path} not told to {address[0]}:{address[1]}: {outcome}",
            txid=headers["x-trans-id"],
        )
