"""Moving damaged objects out of the way (spec: object-disk.md §12).

The whole hash directory is renamed below ``quarantined``; nothing is deleted, and nothing is synced: after
a power cut the damage is simply found again.
"""

from __future__ import annotations

import errno
import os
import uuid

from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.policy.policy import Policy
from swift.store.layout import quarantine_dir

_TAKEN = frozenset((errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR))


def quarantine_object(disk: Disk, device_path: str, policy: Policy, directory: str) -> str | None:
    """Move a hash directory (or the file in its place); its new path, None when it was already gone.

    The caller invalidates the suffix first. Raises OSError when it cannot be moved.
    """
    target = quarantine_dir(device_path, policy)
    make_directories(disk, target, below=device_path)
    path = f"{target}/{os.path.basename(directory)}"
    try:
        disk.rename(directory, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        path = f"{path}-{uuid.uuid4().hex}"
        disk.rename(directory, path)
    return path
