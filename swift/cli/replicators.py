"""What the commands of both database replicators share: their daemon and its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from swift.cli.daemonize import Daemon
from swift.cluster.rings import Rings
from swift.dbsync.daemon import DatabaseReplicator, Selection
from swift.dbsync.kind import Kind
from swift.dbsync.settings import ReplicatorSettings
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext


def replicator(kind: Kind, ring_of: Callable[[Rings], Ring]) -> Daemon:
    """The command of one kind."""

    def make(
        context: BackendContext, rings: Rings, settings: Any, args: argparse.Namespace
    ) -> DatabaseReplicator:
        selection = Selection(_items(args.devices), _items(args.partitions))
        return DatabaseReplicator(context, ring_of(rings), kind, settings, selection=selection)

    return Daemon(
        kind.daemon,
        kind.server_type,
        f"Bring {kind.server_type} databases to all nodes that should have them.",
        ReplicatorSettings,
        make,
        _add_arguments,
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--devices", default="", help="only these devices (comma list)")
    parser.add_argument("-p", "--partitions", default="", help="only these partitions (comma list)")


def _items(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())
