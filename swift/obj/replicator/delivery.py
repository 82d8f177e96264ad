"""Bringing suffixes of a partition to one node, by either way, and the proof of what is there afterwards.

``Delivered`` says what a node has of what was offered. SSYNC tells it object by object; of rsync, which
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
from swift.obj.compare.partners import Partners
from swift.obj.replicator.settings import SSYNC, ObjectReplicatorSettings
from swift.obj.ssync.sender import Push, PushFailed, Sender
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.device import Node
from swift.store.layout import partition_dir
from swift.telemetry.log import Log

_LETTER = "[0-9a-zA-Z]"
#: The names that rsync gives to files until they are complete.
EXCLUDED = f".*.{_LETTER * 6}"


def rsync_target(settings: ObjectReplicatorSettings, node: Node, policy: Policy, part: int) -> str:
    """Where a partition lies at a node, as rsync names it."""
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


#: What rsync says when the directory above the one that it is to make is missing.
_NO_PLACE = "No such file or directory"


class DeliveryFailed(SwiftError):
    """A node did not get what it should have."""


@dataclass(frozen=True)
class Parcel:
    """What is to be brought: suffixes of a partition of this device."""

    device: str
    device_path: str
    policy: Policy
    part: int
    suffixes: Sequence[str]
    #: Whether what arrived is to be durable before that is believed.
    durable: bool = False
    #: SSYNC: only ask about these objects.
    confirms: Collection[str] | None = None


@dataclass(frozen=True)
class Delivered:
    """What a node has now."""

    #: Objects that it is known to have; None stands for all that were there when it began.
    hashes: frozenset[str] | None = None
    #: Files or objects that had to be sent.
    sent: int = 0
    failed: int = 0


class Delivery(Protocol):
    """A way to bring suffixes to nodes."""

    def bring(self, parcel: Parcel, node: Node, *, other_region: bool) -> Delivered:
        """Bring them; raises ``DeliveryFailed``."""


@dataclass
class RsyncDelivery:
    """By rsync, then a word to the node, which does not notice what rsync does."""

    settings: ObjectReplicatorSettings
    partners: Partners
    log: Log

    def bring(self, parcel: Parcel, node: Node, *, other_region: bool) -> Delivered:
        """See ``Delivery``."""
        path = partition_dir(parcel.device_path, parcel.policy, str(parcel.part))
        suffixes = [suffix for suffix in parcel.suffixes if os.path.isdir(f"{path}/{suffix}")]
        if not suffixes:
            return Delivered()
        target = rsync_target(self.settings, node, parcel.policy, parcel.part)
        args = rsync_command(self.settings, path, suffixes, target, other_region=other_region)
        try:
            words = self._run(args, parcel, node, suffixes)
        except RsyncFailed as error:
            length = self.settings.rsync_error_log_line_length
            raise DeliveryFailed(str(error)[:length] if length else str(error))
        brought = [line for line in words.splitlines() if line.startswith("<f")]
        if brought and self.settings.log_rsync_transfers:
            self.log.info(f"rsync brought {len(brought)} files to {target}")
        if not self._tell(parcel, node, suffixes, durable=parcel.durable):
            raise DeliveryFailed(f"{node.replication_key} was not told what rsync brought")
        return Delivered(sent=len(brought))

    def _run(self, args: list[str], parcel: Parcel, node: Node, suffixes: list[str]) -> str:
        """Run it, and once more when there was no place yet; raises ``RsyncFailed``."""
        try:
            return rsyncs.run(args, self.settings.rsync_timeout)
        except RsyncFailed as error:
            # Some of it may have arrived; and being told of it makes the partition.
            heard = self._tell(parcel, node, suffixes, durable=False)
            if not heard or _NO_PLACE not in str(error):
                raise
        return rsyncs.run(args, self.settings.rsync_timeout)

    def _tell(self, parcel: Parcel, node: Node, suffixes: list[str], *, durable: bool) -> bool:
        return self.partners.invalidate(node, parcel.policy, parcel.part, suffixes, durable=durable)


@dataclass
class SsyncDelivery:
    """By SSYNC."""

    sender: Sender
    partners: Partners

    def bring(self, parcel: Parcel, node: Node, *, other_region: bool) -> Delivered:
        """See ``Delivery``."""
        job = Push(
            parcel.device,
            str(parcel.part),
            parcel.policy,
            node,
            parcel.suffixes,
            confirms=parcel.confirms,
        )
        try:
            pushed = self.sender.push(job)
        except PushFailed as error:
            raise DeliveryFailed(str(error))
        suffixes = list(parcel.suffixes)
        # What the node had already may have come by rsync, a moment ago.
        if parcel.durable and not self.partners.invalidate(
            node, parcel.policy, parcel.part, suffixes, durable=True
        ):
            raise DeliveryFailed(f"{node.replication_key} did not make durable what it has")
        return Delivered(frozenset(pushed.in_sync), pushed.sent, pushed.failed)


def delivery_of(
    settings: ObjectReplicatorSettings, partners: Partners, sender: Sender, log: Log, *, rsyncable: bool
) -> Delivery:
    """The way that an operator wants, or SSYNC when the engine keeps nothing that rsync could bring."""
    if settings.sync_method == SSYNC or not rsyncable:
        return SsyncDelivery(sender, partners)
    return RsyncDelivery(settings, partners, log)
