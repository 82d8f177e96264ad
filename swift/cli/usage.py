"""swift-usage: usage of each account by storage policy, from the account databases of this node.

The exit status is 0 when everything was counted, 1 when something could not be read, 2 when nothing could be.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from swift.base.errors import ConfigError, SwiftError
from swift.compose import daemon_context
from swift.config.commandline import CommandLine, ProgressLine
from swift.config.files import read_section
from swift.operations.usage import (
    FirstPrimaries,
    UsageQuery,
    UsageReader,
    own_device_ids,
    parse_away,
    write_csv,
    write_json,
)
from swift.platform.privileges import become_owner
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR

NAME = "swift-usage"
EXIT_INCOMPLETE, EXIT_NOTHING = 1, 2
PROGRESS_S = 0.5
WRITERS = {"csv": write_csv, "json": write_json}


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="Print the objects and bytes of each account by storage policy, "
        "from the account databases of this node. "
        "A node counts the accounts whose first primary device it has, so the outputs of all account servers "
        "together have each account once. The exit status is 0 when everything was counted, 1 when something "
        "could not be read, and 2 when nothing could be.",
        epilog="examples:\n  swift-usage > usage.csv\n"
        "  swift-usage --containers --prefix AUTH_ --format json > usage.json",
    )
    add = parser.add_argument
    add(
        "config",
        nargs="?",
        default=f"{SWIFT_DIR}/account-server.conf",
        help="configuration of the account server (%(default)s)",
    )
    add("--containers", action="store_true", help="print a row for each container")
    add("--account", action="append", default=[], metavar="NAME", help="only this account; may be repeated")
    add("--prefix", default="", help="only accounts whose names begin with this")
    add("--deleted", action="store_true", help="also accounts that are deleted and not reclaimed yet")
    add("--all-replicas", action="store_true", help="every database on this node, also copies and handoffs")
    add(
        "--away",
        action="append",
        default=[],
        metavar="ADDRESS/DEVICE",
        help="leave out this device of the account ring: the next primary counts its accounts; "
        "name the same on all nodes",
    )
    add("--format", choices=tuple(WRITERS), default="csv", help="how to print (%(default)s)")
    return parser


def make_reader(
    config: str, query: UsageQuery, line: ProgressLine, *, command: str = NAME, away: Sequence[str] = ()
) -> UsageReader:
    """Return the reader of this node for a command; raises ``SwiftError`` and OSError."""
    conf = read_section(config, "app:account-server")
    context = daemon_context(conf, name="usage")
    swift_dir = conf.get("swift_dir", SWIFT_DIR)
    view = RingView(load_table(os.path.join(swift_dir, "account.ring.gz"), thorough=False))
    own = own_device_ids(view, context.ring_ip, context.ring_port)
    if not own and not query.all_replicas:
        raise ConfigError(
            f"no device of the account ring has the address of {config}; run it on an account server"
        )
    primaries = FirstPrimaries(view, own, parse_away(view, away))
    devices = context.devices

    def warn(text: str) -> None:
        line.clear()
        print(f"{command}: {text}", file=sys.stderr)

    # Pending rows are merged as a server does it: as the user of the databases.
    become_owner(f"{devices.root}/{name}/accounts" for name in devices.names())
    return UsageReader(
        devices, primaries, context.hasher, context.policies, query, warn=warn, progress=line.show
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    query = UsageQuery(args.account, args.prefix, args.containers, args.deleted, args.all_replicas)
    line = ProgressLine(sys.stderr, every_s=PROGRESS_S)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        reader = make_reader(args.config, query, line, away=args.away)
    except (SwiftError, OSError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return EXIT_NOTHING
    try:
        WRITERS[args.format](reader.rows(), query, stamp, sys.stdout)
    finally:
        line.clear()
    if not reader.problems:
        return 0
    print(f"{NAME}: {reader.problems} problems: the output is incomplete", file=sys.stderr)
    return EXIT_INCOMPLETE


if __name__ == "__main__":
    raise SystemExit(main())
