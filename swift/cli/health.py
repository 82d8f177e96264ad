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
from swift.operations.health.copies import RingCopies, ring_copies
from swift.operations.health.evaluate import (
    Health,
    Problem,
    RingHealth,
    Severity,
    absence_test,
    count_ring_copies,
    evaluate,
    uses_mount_points,
)
from swift.operations.health.screen import screen
from swift.operations.health.snapshot import load_rings, take_snapshot
from swift.operations.recon.client import Host, ReconClient
from swift.runtime.service.services import SWIFT_DIR

CLEAR = "\x1b[H\x1b[2J"


def read_health(swift_dir: str, timeout_s: float) -> Health:
    """Return the health of the cluster now. Raises ``SwiftError`` and OSError."""
    policies = cluster_of({"swift_dir": swift_dir}).policies
    rings = load_rings(swift_dir, policies)
    snapshot = take_snapshot(rings, ReconClient(timeout_s, agent="swift-health"), swift_dir)
    check_mounts, now_s = uses_mount_points(snapshot), time.time()
    states: list[RingHealth] = []
    copies: list[RingCopies] = []
    devices: dict[str, bool] = {}
    for ring in rings:
        is_away = absence_test(snapshot, ring.server_type, check_mounts=check_mounts)
        states.append(count_ring_copies(ring.view, ring.name, ring.noun, is_away, needed=ring.needed))
        copies.append(ring_copies(ring.view, ring.name, snapshot.copies_of(ring.server_type), is_away, now_s))
        for device in ring.view.devices:
            if device is not None:
                name = f"{device.ip}/{device.device}"
                devices[name] = devices.get(name, False) or is_away(
                    Host(device.ip, device.port), device.device
                )
    return evaluate(states, devices, snapshot, now_s, copies=copies)


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-health",
        description="Show on one screen what is degraded in a cluster, what heals it, and when. "
        "The exit status is 0 when all is well, 1 when something is degraded, 2 when something is in danger, "
        "and 3 when it is unknown whether all is well.",
        epilog="examples:\n  swift-health --watch\n  swift-health --format json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        type=_pause_s,
        const=10.0,
        metavar="SECONDS",
        help="again and again (every 10 s)",
    )
    parser.add_argument(
        "-t", "--timeout", type=float, default=5.0, help="seconds to wait for a server (%(default)g)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to show it")
    return parser


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
        "quarantined": {"objects": 0, "containers": 0, "accounts": 0},
    }
    return Health([problem], [], 0, [], None, nothing)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is the level."""
    args = make_parser().parse_args(argv)
    try:
        return _show(args)
    except KeyboardInterrupt:
        # An interrupt is the normal end of ``--watch``; nothing is left half-done.
        return Severity.UNKNOWN


def _show(args: argparse.Namespace) -> int:
    """Print the health once, or until Ctrl-C; return the exit code."""
    while True:
        try:
            health = read_health(args.swift_dir, args.timeout)
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
