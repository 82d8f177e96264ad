"""Shards on this device: made here, filled here, and brought to where they belong by replication."""

from __future__ import annotations

from collections.abc import Sequence

from swift.base.entity import quote_path
from swift.base.shardrange import ShardRange
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.dbsync.device import DeviceReplication
from swift.dbsync.kind import Replication
from swift.dbsync.replica import Replica
from swift.http import fields
from swift.ring.device import Node
from swift.ring.view import RingView
from swift.runtime.daemon import PassContext


class ShardDelivery(DeviceReplication):
    """Brings shards of one device to their nodes and says how many have them."""

    def __init__(self, replication: Replication, device: str, pass_context: PassContext, engine: Engine):
        super().__init__(replication, device, pass_context)
        self._shard_engine = engine
        self._copies = 0

    def _sync_nodes(
        self, replica: Replica, view: RingView, part: int, nodes: Sequence[Node], now: Timestamp
    ) -> list[bool]:
        answers = super()._sync_nodes(replica, view, part, nodes, now)
        is_at_home = len(nodes) < len(view.primaries(part))
        self._copies = sum(answers) + is_at_home
        return answers

    def deliver(self, place: DatabasePath) -> int:
        """Bring a shard to its primaries; how many have all of it now."""
        self._copies = 0
        self.replicate(place)
        return self._copies

    def open_shard(
        self, shard: ShardRange, device_path: str, root: str, policy_index: int, now: Timestamp
    ) -> ContainerBroker:
        """Return the broker of a shard on this device, made if need be; close it."""
        account, _, container = shard.name.partition("/")
        digest = self._replication.context.hasher.digest(account, container)
        part = self._replication.ring.view().partition_of(digest)
        place = DatabasePath(device_path, "containers", str(part), digest.hex())
        broker = ContainerBroker(place, self._shard_engine, account, container)
        if not broker.refresh():
            made = Timestamp(shard.timestamp)
            broker.create(made, policy_index, created_at=now)
            broker.update_metadata(
                {
                    fields.SYSMETA_SHARD_QUOTED_ROOT.title(): (quote_path(root), made.internal),
                    fields.SYSMETA_SHARDING.title(): ("True", made.internal),
                }
            )
        return broker
