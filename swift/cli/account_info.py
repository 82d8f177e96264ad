"""swift-account-info: tell what the database of an account says, and where it belongs.

spec: cli-and-config.md §9
"""

from __future__ import annotations

import argparse
from functools import partial

from swift.account.broker import AccountBroker
from swift.base.entity import EntityPath
from swift.compose import Cluster
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.operations import info as database_info
from swift.operations.info import DatabaseFacts, NoDatabase, format_timestamp, sync_points


def _read_facts(
    place: DatabasePath, engine: Engine, cluster: Cluster, args: argparse.Namespace
) -> DatabaseFacts:
    broker = AccountBroker.open_found(place, engine)
    if broker is None:
        raise NoDatabase("DB file doesn't exist")
    try:
        info = broker.info()
        rows = [
            ("Created at", format_timestamp(info.created_at)),
            ("Put Timestamp", format_timestamp(info.put_timestamp)),
            ("Delete Timestamp", format_timestamp(info.delete_timestamp)),
            ("Status Timestamp", format_timestamp(info.status_changed_at)),
            ("Container Count", str(info.container_count)),
        ]
        stats = broker.policy_stats()
        if len(stats) > 1:
            for each in stats:
                policy = cluster.policies.get(each.index)
                name = policy.name if policy else str(each.index)
                rows.append((f"{name} Container Count", str(each.container_count)))
        rows += [("Object Count", str(info.object_count)), ("Bytes Used", str(info.bytes_used))]
        rows += [("Chexor", info.hash), ("UUID", info.id)]
        return DatabaseFacts(
            EntityPath(info.account),
            info.is_deleted,
            rows,
            info.metadata,
            syncs=sync_points(broker) if args.sync else {},
        )
    finally:
        broker.close()


make_parser = partial(database_info.make_parser, "account")
main = partial(database_info.run, "account", _read_facts)

if __name__ == "__main__":
    raise SystemExit(main())
