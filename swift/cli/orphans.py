"""swift-orphans: list, and perhaps end, processes of this software that no pid file knows.

Processes with the word ``once`` are left alone: they are run by hand.
spec: cli-and-config.md §8.4
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from swift.cli.oldies import WIDTH, as_json, process_table, swift_processes
from swift.config.commandline import CommandLine, print_report
from swift.runtime.service.processes import RunningProcess, process
from swift.runtime.service.services import RUN_DIR


def known_pids(run_dir: str) -> set[int]:
    """Return the pids in the pid files below a directory."""
    found = set()
    for path in Path(run_dir).rglob("*.pid"):
        try:
            found.add(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


def find_orphans(candidates: Iterable[RunningProcess], known: set[int]) -> Iterator[RunningProcess]:
    """Yield processes that are neither known nor descend from a known one."""
    for running in candidates:
        if "once" not in running.arguments and not _descends(running, known):
            yield running


def _descends(running: RunningProcess | None, known: set[int]) -> bool:
    while running is not None and running.pid > 1:
        if running.pid in known:
            return True
        running = process(running.parent)
    return False


def signal_number(text: str) -> int | None:
    """Return the number of a signal that is named (with or without SIG) or numbered.

    None when there is none.
    """
    try:
        return signal.Signals(int(text)).value
    except ValueError:
        name = text.upper()
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"].value
    except KeyError:
        return None


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-orphans",
        description="List, and perhaps end, processes of this software that no pid file names.",
        epilog="example: swift-orphans -a 2 -k TERM",
    )
    add = parser.add_argument
    add("-a", "--age", type=int, default=24, metavar="HOURS", help="at least so old (default: %(default)s)")
    add("-k", "--kill", default="", metavar="SIGNAL", help="send them this signal")
    add("-w", "--wide", action="store_true", help=f"do not cut lines at {WIDTH} characters")
    add("-r", "--run-dir", default=RUN_DIR, help="directory of the pid files (%(default)s)")
    parser.add_format("how to list them")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    found = list(find_orphans(swift_processes(args.age), known_pids(args.run_dir)))
    lines = process_table(found, width=None if args.wide else WIDTH)
    print_report(args, as_json(found), lines)
    if not args.kill or not found:
        return 0
    number = signal_number(args.kill)
    if number is None:
        print(f"Could not translate {args.kill!r} to a signal number.")
        return 1
    print(f"Sending processes {args.kill} ({number}) signal...", end="", flush=True)
    failed = [each.pid for each in found if not _send(each.pid, number)]
    print("Done.")
    if failed:
        print(f"swift-orphans: cannot signal {', '.join(map(str, failed))}", file=sys.stderr)
    return 1 if failed else 0


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
