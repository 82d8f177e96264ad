"""The queue of objects that expire: which container and which name an object gets in it.

The queue is an internal account; its containers are time slices spread a little by the object's hash, so
that deletions of one slice do not all land in one container (spec: replication.md §8.1). Pure.
"""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher

EXPIRING_ACCOUNT = ".expiring_objects"
SLICE_S = 86400
#: Objects of one slice are spread over this many containers.
SPREAD = 100
_LATEST = 9999999999


def queue_container(hasher: PathHasher, path: EntityPath, delete_at_s: int, slice_s: int = SLICE_S) -> str:
    """The task container of an object that expires at ``delete_at_s`` Unix seconds: ten digits."""
    shift = int(hasher.hexdigest(path.account, path.container, path.obj), 16) % SPREAD
    return f"{min(max(0, delete_at_s // slice_s * slice_s - shift), _LATEST):010d}"


def queue_task(path: EntityPath, delete_at_s: int) -> str:
    """The task's name in that container."""
    return f"{min(max(0, delete_at_s), _LATEST):010d}-{path.account}/{path.container}/{path.obj}"
