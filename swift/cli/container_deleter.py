"""swift-container-deleter: have the expirer delete the objects of a container, or a part of them.

Each object gets a task in the expirer's queue, written to the container servers directly; until the expirer
comes to it, the object stays. spec: cli-and-config.md §12, doc/formats/expirer-queue.md
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.expiry import ASYNC_DELETE_TYPE, EXPIRING_ACCOUNT, deletion_task, queue_container
from swift.compose import cluster_of, internal_client
from swift.config.commandline import CommandLine, reports_errors
from swift.config.files import read_section
from swift.container.rows import ObjectRow
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields

AGENT = "Swift Container Deleter"
CONFIG = "/etc/swift/internal-client.conf"
PROGRESS_EVERY_S = 10.0
#: Objects that are enqueued at a time.
BATCH = 1000
MD5_OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e"


def enqueue_names(
    client: InternalClient, hasher: PathHasher, names: Iterable[str], parent: EntityPath, stamp: Timestamp
) -> Iterator[tuple[int, str]]:
    """Enqueue objects in batches; yield the number done and the last name. Raises ``UnexpectedResponse``."""
    count, source = 0, iter(names)
    while batch := list(islice(source, BATCH)):
        queues: dict[str, list[EntityPath]] = {}
        for name in batch:
            path = EntityPath(parent.account, parent.container, name)
            queues.setdefault(queue_container(hasher, path, int(stamp.seconds)), []).append(path)
        green.gather([partial(_enqueue, client, queue, paths, stamp) for queue, paths in queues.items()])
        count += len(batch)
        yield count, batch[-1]


def _enqueue(client: InternalClient, queue: str, paths: Sequence[EntityPath], stamp: Timestamp) -> None:
    container = EntityPath(EXPIRING_ACCOUNT, queue)
    rows = [
        ObjectRow(deletion_task(path, stamp), stamp.internal, 0, ASYNC_DELETE_TYPE, MD5_OF_NOTHING).as_dict(0)
        for path in paths
    ]
    headers = {fields.BACKEND_STORAGE_POLICY_INDEX: "0", fields.BACKEND_ALLOW_PRIVATE_METHODS: "True"}
    body = json.dumps(rows).encode()
    with client.request("UPDATE", container, headers, body, accept=(2, 404)) as response:
        is_there = response.is_success
    if not is_there:
        client.create(container)
        with client.request("UPDATE", container, headers, body):
            return


def enqueue_listing(
    client: InternalClient,
    hasher: PathHasher,
    parent: EntityPath,
    stamp: Timestamp,
    *,
    say: Callable[[str], None],
    **limits: str,
) -> int:
    """Enqueue the objects of a listing with these limits; return their number.

    Raises ``UnexpectedResponse``.
    """
    rows = client.objects(parent.account, parent.container or "", **limits)
    count, last, told_s = 0, "", time.monotonic()
    try:
        for count, last in enqueue_names(client, hasher, (row["name"] for row in rows), parent, stamp):
            if time.monotonic() - told_s >= PROGRESS_EVERY_S:
                say(f"Marked {count} objects for deletion, through {last!r}")
                told_s = time.monotonic()
    except UnexpectedResponse:
        if count:
            say(f"Marked {count} objects for deletion, through {last!r}")
        raise
    return count


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-container-deleter",
        description="Have the expirer delete the objects of a container, or a part of them. "
        "Until it comes to an object, that stays in listings. After a failure, go on with --marker.",
        epilog="example: swift-container-deleter --prefix 2019/ AUTH_test logs",
    )
    add = parser.add_argument
    add("account", help="the account of the container")
    add("container", help="the container")
    add("--config", default=CONFIG, help="configuration of the internal client (default: %(default)s)")
    add("--request-tries", type=int, default=3, help="default: %(default)s")
    add("--prefix", default="", help="only objects with this prefix")
    add("--marker", default="", help="only objects after this name")
    add("--end-marker", default="", help="only objects before this name")
    add("--timestamp", default="", help="only what is not newer than this time (default: now)")
    return parser


@reports_errors("swift-container-deleter")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)

    def say(text: str) -> None:
        print(text, flush=True)

    for name in (args.account, args.container):
        if not name or "/" in name:
            print(f"swift-container-deleter: {name!r} is no name of an account or container", file=sys.stderr)
            return 1
    try:
        stamp = Timestamp(args.timestamp) if args.timestamp else Timestamp.now()
        hasher = cluster_of(read_section(args.config, "DEFAULT")).config.hasher
        client = internal_client(args.config, AGENT, tries=max(1, args.request_tries))
        limits = {name: getattr(args, name) for name in ("prefix", "marker", "end_marker")}
        count = enqueue_listing(
            client, hasher, EntityPath(args.account, args.container), stamp, say=say, **limits
        )
    except InvalidTimestamp:
        print(f"swift-container-deleter: {args.timestamp!r} is no timestamp", file=sys.stderr)
        return 1
    say(f"Finished. Marked {count} objects for deletion.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
