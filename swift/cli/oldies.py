"""swift-oldies: list processes of this software that have been running for long.

spec: cli-and-config.md §8.4
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from swift.config.commandline import CommandLine, print_report
from swift.runtime.service.processes import RunningProcess, processes, program_name

HOUR_S = 3600
WIDTH = 80


def swift_processes(age_hours: int) -> Iterator[RunningProcess]:
    """Yield processes of commands of this software, but this one, at least so old."""
    for running in processes():
        is_other = running.pid not in (os.getpid(), os.getppid())
        if is_other and program_name(running).startswith("swift-") and running.age_s >= age_hours * HOUR_S:
            yield running


def process_table(found: Sequence[RunningProcess], *, width: int | None = WIDTH) -> Iterator[str]:
    """Yield a table of processes, nothing if there are none; lines are cut at ``width``."""
    if found:
        yield "Hours   PID Command"
    for running in found:
        program = program_name(running)
        rest = running.arguments[_program_index(running) + 1 :]
        command = " ".join((program.removeprefix("swift-"), *rest))
        yield f"{int(running.age_s / HOUR_S):5} {running.pid:5} {command}"[:width]


def as_json(found: Iterable[RunningProcess]) -> list[dict[str, object]]:
    """Return the same for programs."""
    return [
        {"pid": each.pid, "hours": round(each.age_s / HOUR_S, 2), "command": each.command} for each in found
    ]


def _program_index(running: RunningProcess) -> int:
    """Return the place of the word that names the program."""
    for place, word in enumerate(running.arguments):
        if word == "swift.cli.daemon":
            return place + 1
        if os.path.basename(word).startswith("swift-") or word.startswith("swift.cli."):
            return place
    return 0


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-oldies",
        description="List processes of this software that have been running for long.",
        epilog="example: swift-oldies -a 48 -p | xargs -r kill",
    )
    parser.add_argument(
        "-a", "--age", type=int, default=720, metavar="HOURS", help="at least so old (default: %(default)s)"
    )
    parser.add_argument("-p", "--pids", action="store_true", help="print only the pids")
    parser.add_format("how to list them")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    found = list(swift_processes(args.age))
    lines = (str(each.pid) for each in found) if args.pids else process_table(found)
    print_report(args, as_json(found), lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
