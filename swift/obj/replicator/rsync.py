"""The command line with which rsync brings suffixes of a partition to a node (spec: replication.md §2.3).

A file that is there already is never written again: its name says what is in it. Temporary files of others
stay here. What was brought is not durable until the node is asked to make it so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from swift.dbsync.rsync import module_of
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.device import Node

_LETTER = "[0-9a-zA-Z]"
#: The names that rsync gives to files until they are complete.
EXCLUDED = f".*.{_LETTER * 6}"


def target_of(settings: ObjectReplicatorSettings, node: Node, policy: Policy, part: int) -> str:
    """Where a partition lies at a node, as rsync names it."""
    objects = with_policy_suffix("objects", policy.index)
    return f"{module_of(settings.rsync_module, node)}/{node.device}/{objects}/{part}"


def command(
    settings: ObjectReplicatorSettings,
    partition_path: str,
    suffixes: Sequence[str],
    target: str,
    *,
    other_region: bool,
) -> list[str]:
    """The arguments of rsync, in the peer's order."""
    io_timeout = math.ceil(settings.rsync_io_timeout)
    return [
        "rsync",
        "--recursive",
        "--whole-file",
        "--human-readable",
        "--xattrs",
        "--itemize-changes",
        "--ignore-existing",
        f"--timeout={io_timeout}",
        f"--contimeout={io_timeout}",
        f"--bwlimit={settings.rsync_bwlimit}",
        f"--exclude={EXCLUDED}",
        *(("--compress",) if settings.rsync_compress and other_region else ()),
        *(f"{partition_path}/{suffix}" for suffix in suffixes),
        target,
    ]
