"""The queue of objects that expire: the container and the name of an object's task.

The queue is an internal account; its containers are time slices spread a little by the object's hash, so
that deletions of one slice do not all land in one container (spec: replication.md §8.1). Pure.
"""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import InvalidTimestamp, Timestamp

EXPIRING_ACCOUNT = ".expiring_objects"
SLICE_S = 86400
#: Objects of one slice are spread over this many containers.
SPREAD = 100
_LATEST = 9999999999
#: The content type of tasks that clients requested: the object is deleted regardless of its X-Delete-At.
ASYNC_DELETE_TYPE = "application/async-deleted"


def queue_container(hasher: PathHasher, path: EntityPath, delete_at_s: int, slice_s: int = SLICE_S) -> str:
    """Return the task container of an object that expires at ``delete_at_s`` Unix seconds: ten digits."""
    shift = int(hasher.hexdigest(path.account, path.container, path.obj), 16) % SPREAD
    return f"{min(max(0, delete_at_s // slice_s * slice_s - shift), _LATEST):010d}"


def queue_task(path: EntityPath, delete_at_s: int) -> str:
    """Return the task's name in that container."""
    return f"{min(max(0, delete_at_s), _LATEST):010d}-{path.account}/{path.container}/{path.obj}"


def deletion_task(path: EntityPath, asked: Timestamp) -> str:
    """Return the name of a task that deletes versions up to ``asked`` (doc/formats/expirer-queue.md)."""
    return f"{asked.normal}-{path.account}/{path.container}/{path.obj}"


def parse_task(name: str) -> tuple[Timestamp, EntityPath] | None:
    """Return the time of a task and its object; None for a name that is no task's."""
    stamp, dash, target = name.partition("-")
    account, _, rest = target.partition("/")
    container, _, obj = rest.partition("/")
    if not (dash and account and container and obj):
        return None
    try:
        return Timestamp(stamp), EntityPath(account, container, obj)
    except InvalidTimestamp:
        return None
