"""The location of one object: its container's info, its policy, its ring and its partition."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.entity import EntityPath
from swift.gateway.info import ContainerInfo
from swift.http import fields
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.policy.policy import Policy
from swift.proxy.context import STRONG_KEY, ProxyContext
from swift.ring.view import RingView


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """One object and the ring state that its request uses from begin to end."""

    path: EntityPath
    container: ContainerInfo
    policy: Policy
    view: RingView
    part: int


@dataclass(frozen=True, slots=True)
class WriteLocation(ObjectLocation):
    """The location of an object that is changed."""

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


def locate(context: ProxyContext, request: Request, path: EntityPath, info: ContainerInfo) -> ObjectLocation:
    """Return the location of a request's object; raise 503 for an unknown policy."""
    header = request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
    policy = context.policies.of_header(header) if header else context.policies.get(info.policy_index)
    if policy is None:
        raise HTTPError(503, "Unknown storage policy")
    view = context.rings.object(policy).view()
    part = view.partition_of(context.hasher.digest(path.account, path.container, path.obj))
    return ObjectLocation(path, info, policy, view, part)


def locate_for_write(
    context: ProxyContext, request: Request, path: EntityPath, info: ContainerInfo
) -> WriteLocation:
    """Return the location of an object to be changed, without its shard; raise as ``locate``."""
    found = locate(context, request, path, info)
    quorum = context.object_quorum(found.policy, len(found.view.primaries(found.part)))
    is_internal = path.account.startswith(context.limits.auto_create_account_prefix)
    is_strongly_listed = not is_internal and context.lists_strongly(info.meta.get(STRONG_KEY))
    return WriteLocation(path, info, found.policy, found.view, found.part, quorum, is_strongly_listed)
