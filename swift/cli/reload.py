"""swift-reload: reload the configuration of a server without refused requests.

It looks whether the process is the master of a server and whether its configuration is good, sends SIGUSR1,
and waits until the new workers are ready.
spec: cli-and-config.md §8.2
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from swift.config.commandline import CommandLine
from swift.runtime.service.processes import ReadySocket, ReloadRefused, RunningProcess, process, program_name
from swift.runtime.service.services import MAIN_SERVERS

EXIT_CHECK = 1
EXIT_BAD_PID = 2
EXIT_TIMEOUT = 128 + errno.ETIMEDOUT
#: A day: nothing takes longer, and sockets cannot wait for any time.
TIMEOUT_MAX_S = 86400.0

SERVERS = frozenset(f"swift-{name}" for name in MAIN_SERVERS)


class BadPid(Exception):
    """The process cannot be reloaded; the text has the reason."""


def find_master(pid: int) -> RunningProcess:
    """Return the master of a server. Raises ``BadPid``."""
    running = process(pid)
    if running is None:
        raise BadPid(f"Failed to get process information for {pid}")
    program = program_name(running)
    if not program.startswith("swift-"):
        raise BadPid(f"Non-swift process: {running.command!r}")
    if program not in SERVERS:
        raise BadPid(f"Process does not support config checks: {program}")
    parent = process(running.parent)
    if parent is not None and program_name(parent) == program:
        raise BadPid(
            f"Process appears to be a {program} worker, not a manager. Did you mean {running.parent}?"
        )
    return running


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-reload",
        description="Reload the configuration of a server without refused requests.",
        epilog="example: swift-reload $(cat /var/run/swift/proxy-server.pid)",
    )
    parser.add_argument("pid", type=int, help="pid of the server's master process")
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument(
        "-t",
        "--timeout",
        type=_seconds,
        default=300.0,
        help="seconds to wait for the reload (default: %(default)g)",
    )
    waiting.add_argument("-w", "--no-wait", action="store_true", help="do not wait for the reload")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the progress")
    return parser


def _seconds(text: str) -> float:
    found = float(text)
    if not 0 < found <= TIMEOUT_MAX_S:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {TIMEOUT_MAX_S:.0f}, not {text}")
    return found


def _check(running: RunningProcess) -> int:
    """Have the command of the server try its configuration; the exit status."""
    command = [*running.arguments, "--test-config"]
    return subprocess.run(command, check=False, cwd=f"/proc/{running.pid}/cwd").returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 reloaded, 1 refused, 2 wrong process, 238 not in time."""
    args = make_parser().parse_args(argv)
    try:
        running = find_master(args.pid)
        program = program_name(running)
        if args.verbose:
            print(f"Checking config for {program}")
        if _check(running):
            print(f"The configuration of {program} is no good; nothing was done", file=sys.stderr)
            return EXIT_CHECK
        with ReadySocket(args.pid) as word:
            if args.verbose:
                print(f"Sending USR1 signal to {args.pid}")
            os.kill(args.pid, signal.SIGUSR1)
            if args.no_wait:
                return 0
            tell = (
                (lambda text: print(f"{program} ({args.pid}): {text}")) if args.verbose else (lambda _: None)
            )
            if not word.wait(args.timeout, tell):
                print(f"Timed out reloading {program}", file=sys.stderr)
                return EXIT_TIMEOUT
    except BadPid as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_PID
    except ReloadRefused as refused:
        print(f"{program} was not reloaded: {refused}", file=sys.stderr)
        return EXIT_CHECK
    except OSError as error:
        print(f"swift-reload: {error}", file=sys.stderr)
        return EXIT_CHECK
    print(f"Reloaded {program}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
