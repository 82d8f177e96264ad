"""Links to a device's containers that are synced to other clusters (spec: account-container.md §17).

``<device>/sync_containers/<part>/<suffix>/<hash>/<hash>.db`` is a link to the database of a container that
says where it is copied to, and with which key. The daemon that copies walks these links instead of every
container. Container servers and replicators keep them true.
"""

from __future__ import annotations

import contextlib
import os

from swift.container.broker import ContainerBroker, ContainerFacts
from swift.db.files import DatabasePath
from swift.platform.disk import Disk

DIRECTORY = "sync_containers"


def is_synced(info: ContainerFacts) -> bool:
    """Return True if a container has a sync target and key."""
    values = [
        info.metadata.get(name, ("", ""))[0] for name in ("X-Container-Sync-To", "X-Container-Sync-Key")
    ]
    return all(values) and not info.is_deleted


def keep_link(broker: ContainerBroker, info: ContainerFacts) -> None:
    """Make the link of a container that is to be copied, remove that of another; raises OSError."""
    if "X-Container-Sync-To" in info.metadata:
        broker.call(_keep, broker.place, broker.newest.path if is_synced(info) else None)


def _keep(disk: Disk, place: DatabasePath, target: str | None) -> None:
    link = link_of(place)
    have = None
    with contextlib.suppress(OSError):
        have = os.readlink(link)
    if have == target:
        return
    if have is not None:
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(link)
    if target is None:
        for directory in (os.path.dirname(link), os.path.dirname(os.path.dirname(link))):
            with contextlib.suppress(OSError):
                disk.rmdir(directory)
        return
    os.makedirs(os.path.dirname(link), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # Nothing is lost: the next reader of the database creates it again.
        os.symlink(target, link)


def link_of(place: DatabasePath) -> str:
    """Return the path of a container's link."""
    return place._replace(kind=DIRECTORY).file()
