"""Where a kept update goes: to its container, or to the shard that stands in for it (replication.md §6)."""

from __future__ import annotations

from dataclasses import replace

from swift.store.api import PendingUpdate


def container_of(pending: PendingUpdate) -> str:
    """``account/container`` of where it goes: the container, or the shard that stands in for it."""
    update = pending.update
    return update.container_path or f"{update.path.account}/{update.path.container}"


def redirected(pending: PendingUpdate, container: str) -> PendingUpdate:
    """The same on its way to another container; in a circle it starts over at the object's own."""
    update = pending.update
    if container in pending.redirects:
        return replace(pending, update=update._replace(container_path=None), successes=(), redirects=())
    return replace(
        pending,
        update=update._replace(container_path=container),
        successes=(),
        redirects=(*pending.redirects, container),
    )
