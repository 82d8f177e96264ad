"""Where one object lives: its container's facts, its policy, its ring and its partition."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.entity import EntityPath, quote_path
from swift.cluster.expiry import EXPIRING_ACCOUNT, queue_container
from swift.gateway.info import ContainerInfo
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.policy.policy import Policy
from swift.proxy.context import ProxyContext
from swift.proxy.obj.updateheaders import ContainerNodes, add_expiry, mark_queue_cleaners, spread_updates
from swift.proxy.stronglisting import META_KEY, is_wanted
from swift.ring.view import RingView


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """One object and the ring state that a request works with from begin to end."""

    path: EntityPath
    container: ContainerInfo
    policy: Policy
    view: RingView
    part: int

    #: Object servers that must acknowledge a write.
    quorum: int
    #: A write is acknowledged when a majority of the container's servers has its row.
    is_strongly_listed: bool = False
    #: The container that takes the object's row where the object's own is split.
    shard: EntityPath | None = None

    @property
    def majority(self) -> int:
        """Primaries that must agree when only one of several writers may win."""
        return len(self.view.primaries(self.part)) // 2 + 1


def locate(context: ProxyContext, request: Request, path: EntityPath, info: ContainerInfo) -> ObjectTarget:
    """The target of a request; 503 for an unknown policy."""
    header = request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
    policy = context.policies.of_header(header) if header else context.policies.get(info.policy_index)
    if policy is None:
        raise HTTPError(503, "Unknown storage policy")
    view = context.rings.object(policy).view()
    part = view.partition_of(context.hasher.digest(path.account, path.container, path.obj))
    quorum = context.object_quorum(policy, len(view.primaries(part)))
    return ObjectTarget(path, info, policy, view, part, quorum, _is_strongly_listed(context, path, info))


def _is_strongly_listed(context: ProxyContext, path: EntityPath, info: ContainerInfo) -> bool:
    if not is_wanted(context.settings.strong_listing, info.meta.get(META_KEY)):
        return False
    is_internal = path.account.startswith(context.limits.auto_create_account_prefix)
    return not is_internal


def write_attempts(
    context: ProxyContext,
    headers: HeaderMap,
    target: ObjectTarget,
    count: int | None = None,
) -> list[HeaderMap]:
    """One set of headers per primary of the object, with its share of container and queue updates.

    ``count`` is the number of nodes when it is not that of the primaries.
    """
    path = target.path
    containers = context.rings.container.view()
    shard = target.shard
    told = shard or path
    part = containers.partition_of(context.hasher.digest(told.account, told.container))
    if shard is not None:
        headers[fields.BACKEND_QUOTED_CONTAINER_PATH] = quote_path(f"{shard.account}/{shard.container}")
    headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(target.policy.index)
    if target.view.next_part_power is not None:
        headers[fields.BACKEND_NEXT_PART_POWER] = str(target.view.next_part_power)
    container_nodes = containers.primaries(part)
    attempts = spread_updates(
        headers,
        ContainerNodes(
            part, container_nodes, context.write_quorum(len(container_nodes)), target.container.sharding_state
        ),
        object_count=count or len(target.view.primaries(target.part)),
        object_quorum=target.quorum,
        object_nodes=target.view.primaries(target.part),
    )
    if target.is_strongly_listed:
        for attempt in attempts:
            attempt[fields.BACKEND_REPORT_TOLD] = "true"
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
