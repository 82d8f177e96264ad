"""swift-reconciler-enqueue: have the container reconciler look at an object that lies in a wrong policy.

The entry is written to the container servers of the queue directly. spec: cli-and-config.md §12,
account-container.md §18
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from swift.base.entity import BadPath, EntityPath, quote_path, split_path
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.direct import DirectClient, NodeTimeouts, has_majority
from swift.cluster.rings import Rings
from swift.compose import Cluster, cluster_of, connections_to_nodes
from swift.config.commandline import CommandLine, reports_errors
from swift.container.misplaced import QUEUE_ACCOUNT, entry
from swift.container.rows import ObjectRow
from swift.http import fields
from swift.runtime.service.services import SWIFT_DIR
from swift.telemetry.telemetry import Telemetry

TIMEOUTS = NodeTimeouts(5.0, 15.0)


class CannotEnqueue(Exception):
    """The entry could not be made; the text has the reason."""


def enqueue(
    cluster: Cluster, rings: Rings, client: DirectClient, row: ObjectRow, path: EntityPath, *, force: bool
) -> str:
    """Write the entry of a misplaced row to a majority of its nodes; the queue's container.

    Raises ``CannotEnqueue``, ``RingError`` and OSError.
    """
    container, queued = entry(row, f"{path.account}/{path.container}")
    target = EntityPath(QUEUE_ACCOUNT, container, queued.name)
    part, nodes = rings.container.nodes(cluster.config.hasher.digest(QUEUE_ACCOUNT, container))
    stamp = Timestamp.now() if force else Timestamp(queued.created_at)
    headers = {
        "x-timestamp": stamp.internal,
        "x-size": "0",
        "x-etag": queued.etag,
        "x-content-type": queued.content_type,
        fields.BACKEND_STORAGE_POLICY_INDEX: "0",
    }
    answers = client.request_all(nodes, part, "PUT", target, headers)
    if not has_majority(answers):
        raise CannotEnqueue("unable to enqueue!")
    return container


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-reconciler-enqueue",
        description="Have the container reconciler look at an object that lies in a wrong policy.",
        epilog="example: swift-reconciler-enqueue 1 /AUTH_test/photos/cat.jpg 1795228430.52472",
    )
    add = parser.add_argument
    add("policy_index", nargs="?", help="the policy in which the object is stored")
    add("path", nargs="?", help="/account/container/object")
    add("timestamp", nargs="?", help="of its data file or tombstone")
    add("-X", "--op", choices=("PUT", "DELETE"), default="PUT", help="what was done (%(default)s)")
    add("-f", "--force", action="store_true", help="enqueue again what was enqueued before")
    add("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    return parser


def _row(args: argparse.Namespace, cluster: Cluster) -> tuple[ObjectRow, EntityPath]:
    known = {str(policy.index): policy.index for policy in cluster.policies}
    index = known.get(args.policy_index)
    if index is None:
        raise CannotEnqueue(f"invalid storage policy index: {args.policy_index}")
    try:
        account, container, obj = split_path(quote_path(args.path), 3, 3, rest_with_last=True)
    except BadPath as error:
        raise CannotEnqueue(str(error))
    try:
        stamp = Timestamp(args.timestamp).internal
    except InvalidTimestamp:
        raise CannotEnqueue(f"invalid timestamp: {args.timestamp}")
    row = ObjectRow(str(obj), stamp, 0, "", "", deleted=int(args.op == "DELETE"), storage_policy_index=index)
    return row, EntityPath(str(account), container, obj)


@reports_errors("swift-reconciler-enqueue")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.policy_index is None:
        parser.print_help()
        return 0
    if args.timestamp is None:
        parser.error("a policy index, a path and a timestamp are needed")
    try:
        conf = {"swift_dir": args.swift_dir}
        cluster = cluster_of(conf)
        row, path = _row(args, cluster)
        rings = Rings(args.swift_dir, cluster.policies)
        client = DirectClient(connections_to_nodes(conf, Telemetry()), "reconciler-enqueue", TIMEOUTS)
        print(enqueue(cluster, rings, client, row, path, force=args.force))
    except CannotEnqueue as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
