"""swift-container-info: tell what the database of a container says, and where it belongs.

spec: cli-and-config.md §9
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import partial

from swift.base.entity import EntityPath
from swift.base.shardrange import ShardRange
from swift.compose import Cluster
from swift.container.broker import ContainerBroker
from swift.container.replication import replica_at
from swift.container.shardtable import ShardQuery
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.operations import info as database_info
from swift.operations.info import DatabaseFacts, format_timestamp, sync_points


def _sharding(broker: ContainerBroker, state: str, *, verbose: bool) -> Iterator[str]:
    is_root = broker.read(broker.is_root)
    yield "Sharding Metadata:"
    yield f"  Type: {'root' if is_root else 'shard'}"
    yield f"  State: {state}"
    ranges = broker.shard_ranges(ShardQuery())
    if not ranges:
        return
    yield f"Shard Ranges ({len(ranges)}):"
    yield "  States:"
    counts = Counter(each.state for each in ranges)
    for each_state in sorted(counts):
        yield f"{each_state.name.lower():>13}: {counts[each_state]}"
    if not verbose:
        yield "(Use -v/--verbose to show more Shard Ranges details)"
        return
    for each in ranges:
        yield from _range_lines(each)


def _range_lines(each: ShardRange) -> Iterator[str]:
    yield f"  Name: {each.name}"
    yield f"    lower: {each.lower!r}, upper: {each.upper!r}"
    yield (
        f"    Object Count: {each.object_count}, Bytes Used: {each.bytes_used}, "
        f"State: {each.state.name.lower()} ({int(each.state)})"
    )
    yield f"    Created at: {format_timestamp(each.timestamp)}"
    yield f"    Meta Timestamp: {format_timestamp(each.meta_timestamp)}"


def _read_facts(
    place: DatabasePath, engine: Engine, cluster: Cluster, args: argparse.Namespace
) -> DatabaseFacts:
    replica = replica_at(place, engine)
    broker = replica.broker
    assert isinstance(broker, ContainerBroker), "a container's replica has a container's broker"
    broker.refresh()
    try:
        broker.names = broker.read(replica.names)
        info = broker.info()
        policy = cluster.policies.get(info.storage_policy_index)
        rows = [
            ("Created at", format_timestamp(info.created_at)),
            ("Put Timestamp", format_timestamp(info.put_timestamp)),
            ("Delete Timestamp", format_timestamp(info.delete_timestamp)),
            ("Status Timestamp", format_timestamp(info.status_changed_at)),
            ("Object Count", str(info.object_count)),
            ("Bytes Used", str(info.bytes_used)),
            ("Storage Policy", f"{policy.name if policy else 'Unknown'} ({info.storage_policy_index})"),
            ("Reported Put Timestamp", format_timestamp(info.reported_put_timestamp)),
            ("Reported Delete Timestamp", format_timestamp(info.reported_delete_timestamp)),
            ("Reported Object Count", str(info.reported_object_count)),
            ("Reported Bytes Used", str(info.reported_bytes_used)),
            ("Chexor", info.hash),
            ("UUID", info.id),
            ("X-Container-Sync-Point1", str(info.x_container_sync_point1)),
            ("X-Container-Sync-Point2", str(info.x_container_sync_point2)),
        ]
        return DatabaseFacts(
            EntityPath(info.account, info.container),
            info.is_deleted,
            rows,
            info.metadata,
            tuple(_sharding(broker, info.db_state, verbose=args.verbose)),
            sync_points(broker) if args.sync else {},
        )
    finally:
        broker.close()


make_parser = partial(database_info.make_parser, "container")
main = partial(database_info.run, "container", _read_facts)

if __name__ == "__main__":
    raise SystemExit(main())
