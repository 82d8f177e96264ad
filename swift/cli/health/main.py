"""swift-health: one screen for a cluster: what is degraded, what heals it, when it will be done.

It reads the rings of this machine and asks the servers for their recon facts; nothing is changed. The exit
status is for monitoring: 0 all is well, 1 something is degraded, 2 something is in danger, 3 nobody can say.
"""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402

from swift.base.errors import SwiftError  # noqa: E402
from swift.cli.health.hearing import listen, rings_of  # noqa: E402
from swift.cli.health.judge import (  # noqa: E402
    Health,
    Problem,
    RingHealth,
    Severity,
    is_away_by,
    judge,
    ring_state,
    uses_mounts,
)
from swift.cli.recon.report import age_text  # noqa: E402
from swift.cli.scout import Host, Scout  # noqa: E402
from swift.cli.services import SWIFT_DIR  # noqa: E402
from swift.compose import cluster_of  # noqa: E402

CLEAR = "\x1b[H\x1b[2J"


def look(swift_dir: str, timeout_s: float) -> Health:
    """The health of the cluster now. Raises ``SwiftError`` and OSError."""
    policies = cluster_of({"swift_dir": swift_dir}).policies
    rings = rings_of(swift_dir, policies)
    heard = listen(rings, Scout(timeout_s, agent="swift-health"), swift_dir)
    check_mounts = uses_mounts(heard)
    states: list[RingHealth] = []
    devices: dict[str, bool] = {}
    for ring in rings:
        is_away = is_away_by(heard, ring.server_type, check_mounts=check_mounts)
        states.append(ring_state(ring.view, ring.name, ring.noun, is_away, needed=ring.needed))
        for device in ring.view.devices:
            if device is not None:
                name = f"{device.ip}/{device.device}"
                devices[name] = devices.get(name, False) or is_away(
                    Host(device.ip, device.port), device.device
                )
    return judge(states, devices, heard)


def screen(health: Health, now_s: float) -> Iterator[str]:
    """The screen."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s))
    yield f"{health.level.name:<9} {stamp} UTC   {health.devices} devices, {len(health.away)} away"
    yield ""
    heads = (("partitions", 11), ("degraded", 10), ("missing", 9), ("at last copy", 14), ("out of reach", 14))
    yield f"{'ring':<14}" + "".join(f"{word:>{width}}" for word, width in heads)
    for ring in health.rings:
        yield (
            f"{ring.name:<14}{ring.partitions:>11}{ring.degraded:>10}{ring.missing_copies:>9}"
            f"{ring.last_count:>14}{ring.lost_count:>14}"
        )
    yield ""
    quarantined = health.facts["quarantined"]
    yield (
        f"waiting updates {health.facts['async_pending']} ({_counted(health, now_s)}), "
        f"quarantined: {quarantined['objects']} objects, {quarantined['containers']} containers, "
        f"{quarantined['accounts']} accounts"
    )
    for problem in health.problems:
        yield ""
        yield f"{problem.level.name}: {problem.text}"
        yield f"  to heal it: {problem.remedy}"
    if health.done_s is not None:
        left_s = max(0.0, health.done_s - now_s)
        span = age_text(left_s).removesuffix(" ago")
        yield ""
        yield f"copies on handoffs are complete in about {span}, if passes take as long as the last ones did"
    elif any(ring.degraded for ring in health.rings):
        yield ""
        yield "nobody can say when copies on handoffs are complete: no replicator has completed a pass"


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="swift-health",
        description="Show on one screen what is degraded in a cluster, what heals it, and when. "
        "The exit status is 0 when all is well, 1 when something is degraded, 2 when something is in danger, "
        "and 3 when nobody can say.",
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
    """Seconds between two looks, from the command line."""
    seconds = float(text)
    if not 0.1 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _counted(health: Health, now_s: float) -> str:
    """How old the oldest count of waiting updates is."""
    last_s = health.facts["async_pending_last"]
    if not last_s:
        return "not counted everywhere: run swift-recon-cron"
    return f"counted {max(0.0, now_s - last_s):.0f} s ago"


def _unknown(error: Exception) -> Health:
    problem = Problem(Severity.UNKNOWN, str(error), "run this where swift.conf and the rings are")
    nothing = {
        "async_pending": 0,
        "async_pending_last": 0,
        "quarantined": {"objects": 0, "containers": 0, "accounts": 0},
    }
    return Health([problem], [], 0, [], None, nothing)


def main(argv: Sequence[str] | None = None) -> int:
    """The console script; the exit code is the level."""
    args = make_parser().parse_args(argv)
    green.use_hub()
    try:
        return _show(args)
    except KeyboardInterrupt:
        # Whoever watches ends it so; nothing was left half-done.
        return Severity.UNKNOWN


def _show(args: argparse.Namespace) -> int:
    """Once, or until Ctrl-C; the exit code."""
    while True:
        try:
            health = look(args.swift_dir, args.timeout)
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
