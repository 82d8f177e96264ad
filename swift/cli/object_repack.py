"""swift-object-repack: convert devices between the file engine and the packed engine while they serve."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from swift.config.commandline import CommandLine, ProgressLine, print_report, reports_errors
from swift.operations.packed import CONFIG, PackedNode, describe_error
from swift.operations.repacking import (
    FILES,
    PACKED,
    RepackJob,
    check_servers,
    convert,
    jobs_of,
    next_steps,
    remove_volumes,
    serves_only_files,
    states,
)
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.repack import RepackReport

NAME = "swift-object-repack"
EXIT_ERROR, EXIT_STOPPED = 1, 3
_COLUMNS = ("device", "policy", "engine", "state", "packed", "files", "partitions_unindexed")


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="Convert the devices of this node between the file engine and the packed engine while "
        "servers run. It may be interrupted at any time; run it again to go on.",
        epilog="examples:\n  swift-object-repack --to packed --device sdb1 --rate 200\n"
        "  swift-object-repack --status\n  swift-object-repack --to files",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", choices=(PACKED, FILES), help="engine that is to keep the objects")
    what.add_argument(
        "--status", action="store_true", help="show how far each device and policy of this node is"
    )
    add("-c", "--conf", default=CONFIG, help="configuration of the object server (%(default)s)")
    add("--device", action="append", default=[], help="only this device; may be repeated")
    add("--policy", action="append", default=[], help="only this policy, by name or index; may be repeated")
    add("--rate", type=float, default=0.0, help="objects per second, of all devices together; 0: no limit")
    add("--workers", type=int, default=1, help="devices that are converted at the same time (%(default)s)")
    parser.add_format()
    return parser


@reports_errors(NAME, IndexFailed, code=EXIT_ERROR, describe=describe_error)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 done, 1 errors, 3 stopped by a signal before the end."""
    parser = make_parser()
    args = parser.parse_args(argv)
    # Not a number is neither.
    if not args.rate >= 0:
        parser.error(f"--rate must not be negative, but is {args.rate:g}")
    if args.workers < 1:
        parser.error(f"--workers must be at least 1, but is {args.workers}")
    node = PackedNode(args.conf, lambda text: print(f"{NAME}: {text}", file=sys.stderr))
    try:
        if args.status:
            return _show_status(node, args)
        if args.to == FILES and serves_only_files(node, args.policy):
            return _remove_volumes(node, args)
        return _convert(node, args)
    finally:
        node.close()


def _show_status(node: PackedNode, args: argparse.Namespace) -> int:
    found = list(states(node, args.device, args.policy))
    if args.format == "json":
        print(json.dumps(found, indent=2))
        return 0
    table = [
        _COLUMNS,
        *(tuple("-" if row[name] is None else str(row[name]) for name in _COLUMNS) for row in found),
    ]
    widths = [max(len(line[at]) for line in table) for at in range(len(_COLUMNS))]
    for line in table:
        print("  ".join(map(str.ljust, line, widths)).rstrip())
    return 0


def _remove_volumes(node: PackedNode, args: argparse.Namespace) -> int:
    removed = [device for device in node.device_names(args.device) if remove_volumes(node, device)]
    line = "nothing to do: there are no records of a policy that the file engine serves"
    if removed:
        line = f"removed the volumes of {', '.join(removed)}"
    print_report(args, {"removed": removed}, [line], indent=None)
    return 0


def _convert(node: PackedNode, args: argparse.Namespace) -> int:
    jobs = jobs_of(node, args.to, args.device, args.policy)
    if args.to == PACKED:
        check_servers(node)
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    line = ProgressLine(sys.stderr)

    def tell(job: RepackJob, report: RepackReport) -> None:
        line.show(
            f"{job.device} {job.policy.name}: {report.partitions_done} of {report.partitions} "
            f"partitions, {report.converted} converted"
        )

    results = []
    try:
        for job, report, error in convert(
            node, jobs, args.to, rate=args.rate, workers=args.workers, stopped=stop.is_set, tell=tell
        ):
            line.clear()
            row = {
                "device": job.device,
                "policy": job.policy.name,
                **report.as_dict(),
                "error": error or None,
            }
            results.append(row)
            if args.format == "text":
                print(_line(job, report, error, is_stopped=stop.is_set()), flush=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    has_failed = any(row["error"] for row in results)
    is_done = not has_failed and not stop.is_set()
    steps = next_steps(args.to, list(dict.fromkeys(job.policy for job in jobs))) if is_done else []
    print_report(args, {"to": args.to, "is_done": is_done, "devices": results, "next": steps}, steps)
    if has_failed:
        return EXIT_ERROR
    return EXIT_STOPPED if stop.is_set() else 0


def _line(job: RepackJob, report: RepackReport, error: str, *, is_stopped: bool) -> str:
    ended = f"failed: {error}" if error else "stopped; run it again to go on" if is_stopped else "done"
    quarantined = f", {report.quarantined} quarantined" if report.quarantined else ""
    return (
        f"{job.device} {job.policy.name}: {ended}; {report.converted} records or files converted "
        f"({report.converted_bytes} bytes){quarantined}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
