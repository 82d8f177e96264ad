"""Delivery of suffixes to one node by rsync or SSYNC, with confirmation of the node's copies.

``DeliveryResult`` says what a node has of what was offered. SSYNC tells it object by object; of rsync, which
only ends well or not, it is all or nothing. Either way it counts towards removing something here only after
the node was asked to make it durable.

With rsync (replication.md §2.3) a file that is there already is never written again: its name says what is
in it. Temporary files of others stay here. What was brought is not durable until the node is asked to make
it so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from swift.base.errors import SwiftError
from swift.dbsync import rsync as rsyncs
from swift.dbsync.rsync import RsyncFailed, module_of
from swift.obj.replication.remotenodes import RemoteNodes
from swift.obj.replicator.settings import SSYNC, ObjectReplicatorSettings
from swift.obj.ssync.sender import PushFailed, Sender, SsyncJob
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.device import Node
from swift.store.layout import partition_dir
from swift.telemetry.log import Log

_LETTER = "[0-9a-zA-Z]"
#: The names that rsync gives to files until they are complete.
EXCLUDED = f".*.{_LETTER * 6}"


def rsync_target(settings: ObjectReplicatorSettings, node: Node, policy: Policy, part: int) -> str:
    """Return the rsync path of a partition on a node."""
    objects = with_policy_suffix("objects", policy.index)
    return f"{module_of(settings.rsync_module, node)}/{node.device}/{objects}/{part}"


def rsync_command(
    settings: ObjectReplicatorSettings,
    partition_path: str,
    suffixes: Sequence[str],
    target: str,
    *,
    other_region: bool,
) -> list[str]:
    """Return the arguments of rsync, in the peer's order."""
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


#: rsync's error when the parent of the target directory is missing.
_NO_DIRECTORY = "No such file or directory"


class DeliveryFailed(SwiftError):
    """A push to a node failed."""


@dataclass(frozen=True)
class ReplicationJob:
    """Replication job: suffixes of a local partition to push."""

    device: str
    device_path: str
    policy: Policy
    part: int
    suffixes: Sequence[str]
    #: True if what arrived is to be durable before that is believed.
    durable: bool = False
    #: SSYNC: only ask about these objects.
    confirms: Collection[str] | None = None


@dataclass(frozen=True)
class DeliveryResult:
    """Suffix hashes of a node after a push."""

    #: Objects that it is known to have; None stands for all that were there when it began.
    hashes: frozenset[str] | None = None
    #: Files or objects that had to be sent.
    sent: int = 0
    failed: int = 0


class Delivery(Protocol):
    """Transport of suffixes to nodes."""

    def push(self, job: ReplicationJob, node: Node, *, other_region: bool) -> DeliveryResult:
        """Push the job's suffixes; raises ``DeliveryFailed``."""


@dataclass
class RsyncDelivery:
    """Delivery by rsync, followed by an invalidation, because the node does not notice rsync's writes."""

    settings: ObjectReplicatorSettings
    remote_nodes: RemoteNodes
    log: Log

    def push(self, job: ReplicationJob, node: Node, *, other_region: bool) -> DeliveryResult:
        """See ``Delivery``."""
        path = partition_dir(job.device_path, job.policy, str(job.part))
        suffixes = [suffix for suffix in job.suffixes if os.path.isdir(f"{path}/{suffix}")]
        if not suffixes:
            return DeliveryResult()
        target = rsync_target(self.settings, node, job.policy, job.part)
        args = rsync_command(self.settings, path, suffixes, target, other_region=other_region)
        try:
            output = self._run(args, job, node, suffixes)
        except RsyncFailed as error:
            length = self.settings.rsync_error_log_line_length
            raise DeliveryFailed(str(error)[:length] if length else str(error))
        sent = [line for line in output.splitlines() if line.startswith("<f")]
        if sent and self.settings.log_rsync_transfers:
            self.log.info(f"rsync sent {len(sent)} files to {target}")
        if not self._invalidate(job, node, suffixes, durable=job.durable):
            raise DeliveryFailed(f"{node.replication_key} did not invalidate the suffixes that rsync sent")
        return DeliveryResult(sent=len(sent))

    def _run(self, args: list[str], job: ReplicationJob, node: Node, suffixes: list[str]) -> str:
        """Run rsync; retry after creating the missing partition directory. Raises ``RsyncFailed``."""
        try:
            return rsyncs.run(args, self.settings.rsync_timeout)
        except RsyncFailed as error:
            # Part of it may have arrived; the invalidation creates the partition.
            acknowledged = self._invalidate(job, node, suffixes, durable=False)
            if not acknowledged or _NO_DIRECTORY not in str(error):
                raise
        return rsyncs.run(args, self.settings.rsync_timeout)

    def _invalidate(self, job: ReplicationJob, node: Node, suffixes: list[str], *, durable: bool) -> bool:
        return self.remote_nodes.invalidate(node, job.policy, job.part, suffixes, durable=durable)


@dataclass
class SsyncDelivery:
    """Delivery by SSYNC."""

    sender: Sender
    remote_nodes: RemoteNodes

    def push(self, job: ReplicationJob, node: Node, *, other_region: bool) -> DeliveryResult:
        """See ``Delivery``."""
        push_job = SsyncJob(
            job.device,
            str(job.part),
            job.policy,
            node,
            job.suffixes,
            confirms=job.confirms,
        )
        try:
            pushed = self.sender.push(push_job)
        except PushFailed as error:
            raise DeliveryFailed(str(error))
        suffixes = list(job.suffixes)
        # What the node had already may have come by rsync, a moment ago.
        if job.durable and not self.remote_nodes.invalidate(
            node, job.policy, job.part, suffixes, durable=True
        ):
            raise DeliveryFailed(f"{node.replication_key} did not sync its copy to disk")
        return DeliveryResult(frozenset(pushed.in_sync), pushed.sent, pushed.failed)


def make_delivery(
    settings: ObjectReplicatorSettings,
    remote_nodes: RemoteNodes,
    sender: Sender,
    log: Log,
    *,
    rsyncable: bool,
) -> Delivery:
    """Return the configured delivery, or SSYNC if the engine has no files for rsync."""
    if settings.sync_method == SSYNC or not rsyncable:
        return SsyncDelivery(sender, remote_nodes)
    return RsyncDelivery(settings, remote_nodes, log)
