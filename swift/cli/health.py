"""swift-health: one screen for a cluster: what is degraded, what heals it, when it will be done.

It reads the rings of this machine and asks the servers for their recon facts; nothing is changed. The exit
status is for monitoring: 0 all is well, 1 something is degraded, 2 something is in danger, 3 it is unknown
whether all is well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from swift import green
from swift.base.errors import SwiftError
from swift.compose import cluster_of
from swift.config.commandline import CommandLine
from swift.operations.health.evaluate import Health, Problem, Severity
from swift.operations.health.forecast import CRITICAL_DAYS, WARNING_DAYS
from swift.operations.health.identities import IdentityWatch
from swift.operations.health.reader import CapacityTerms, HealthReader
from swift.operations.health.screen import screen
from swift.operations.recon.client import ReconClient
from swift.runtime.service.services import SWIFT_DIR

CLEAR = "\x1b[H\x1b[2J"


def read_health(args: argparse.Namespace, identities: IdentityWatch) -> Health:
    """Return the health of the cluster now. Raises ``SwiftError`` and OSError."""
    policies = cluster_of({"swift_dir": args.swift_dir}).policies
    terms = CapacityTerms(args.history, args.full_warning, args.full_critical)
    client = ReconClient(args.timeout, agent="swift-health")
    health = HealthReader(args.swift_dir, policies, client, terms, identities=identities).read().health
    if args.metrics:
        try:
            health.capacity.export(args.metrics)
        except OSError as failed:
            print(f"swift-health: cannot write {args.metrics}: {failed}", file=sys.stderr)
    return health


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-health",
        description="Show on one screen what is degraded in a cluster, what heals it, and when. "
        "The exit status is 0 when all is well, 1 when something is degraded, 2 when something is in danger, "
        "and 3 when it is unknown whether all is well.",
        epilog="columns:\n"
        "  degraded, away              partitions that lack a device, copies that they lack\n"
        "  at last copy, out of reach  partitions with one readable copy, with none\n"
        "  to move, to copy, failed    partitions and databases to be moved or copied, or beyond repair\n\n"
        "examples:\n  swift-health --watch\n  swift-health -d ~/swift-data/etc\n"
        "  swift-health --format json\n"
        "  swift-health --history /var/lib/swift/capacity.jsonl",
    )
    add = parser.add_argument
    add("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    add(
        "-w",
        "--watch",
        nargs="?",
        type=_pause_s,
        const=10.0,
        metavar="SECONDS",
        help="again and again (every 10 s)",
    )
    add("-t", "--timeout", type=float, default=5.0, help="seconds to wait for a server (%(default)g)")
    add(
        "--history",
        default="",
        metavar="FILE",
        help="keep the disk usage in this file, once an hour, and show when policies and zones will be full",
    )
    add(
        "--metrics", default="", metavar="FILE", help="with --history: write the forecast for Prometheus, too"
    )
    add(
        "--full-warning",
        type=_days,
        default=WARNING_DAYS,
        metavar="DAYS",
        help="warn of zones that are full in fewer days (%(default)g)",
    )
    add(
        "--full-critical",
        type=_days,
        default=CRITICAL_DAYS,
        metavar="DAYS",
        help="call it critical in fewer days (%(default)g)",
    )
    parser.add_format("how to show it")
    return parser


def _days(text: str) -> float:
    """Parse a number of days of the command line."""
    days = float(text)
    if not 0 <= days < float("inf"):
        raise ValueError(text)
    return days


def _pause_s(text: str) -> float:
    """Parse the seconds between two looks of the command line."""
    seconds = float(text)
    if not 0.1 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _unknown(error: Exception) -> Health:
    problem = Problem(Severity.UNKNOWN, str(error), "run this where swift.conf and the rings are")
    nothing = {
        "async_pending": 0,
        "async_pending_last": 0,
        "damaged_identities": [],
        "layout_versions": {},
        "native_disk": {},
        "quarantined": {"objects": 0, "containers": 0, "accounts": 0},
    }
    return Health([problem], [], 0, [], None, nothing)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is the level."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.metrics and not args.history:
        parser.error("--metrics needs --history FILE: the growth comes from it")
    try:
        return _show(args)
    except KeyboardInterrupt:
        # An interrupt is the normal end of ``--watch``; nothing is left half-done.
        return Severity.UNKNOWN


def _show(args: argparse.Namespace) -> int:
    """Print the health once, or until Ctrl-C; return the exit code."""
    identities = IdentityWatch(args.swift_dir)
    while True:
        try:
            health = read_health(args, identities)
        except (SwiftError, OSError) as error:
            if args.format == "text" and args.watch is None:
                print(f"swift-health: {error}", file=sys.stderr)
                return Severity.UNKNOWN
            health = _unknown(error)
        text = (
            json.dumps(health.as_json()) if args.format == "json" else "\n".join(screen(health, time.time()))
        )
        if args.watch is None:
            print(text)
            return health.level
        print(f"{CLEAR if sys.stdout.isatty() and args.format == 'text' else ''}{text}", flush=True)
        try:
            green.sleep(args.watch)
        except KeyboardInterrupt:
            return health.level


if __name__ == "__main__":
    raise SystemExit(main())
