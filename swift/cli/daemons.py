"""All daemons of a node in one process.

Most of the memory of a daemon is Python itself, and a node has a dozen of them; here they are green threads
of one process with one event loop. Each has its own section, log name, recon file and pace, as if it were
alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.config.commandline import CommandLine
from swift.config.declared import daemons
from swift.platform.heap import limit_heaps
from swift.platform.privileges import drop_privileges
from swift.runtime.daemon import run_all_forever
from swift.runtime.notify import READY, STOPPING, notify_systemd
from swift.runtime.priority import set_priority
from swift.runtime.service.daemonize import PreparedDaemon, find_daemon, prepare_daemon
from swift.runtime.service.services import SWIFT_DIR, Service, config_paths, is_configured
from swift.runtime.service.streams import detach_streams
from swift.runtime.stop import StopRequest

COMMAND = "swift-daemons"


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=COMMAND,
        description="Run all daemons of this node in one process: those that swift-init would start, whose "
        "file is there and has their section.",
        epilog=f"example: {COMMAND} --except object-auditor,container-sync",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log to the console")
    parser.add_argument("-t", "--test-config", action="store_true", help="name the daemons and exit")
    parser.add_argument("--swift-dir", default=SWIFT_DIR, help="directory of the files (%(default)s)")
    parser.add_argument("--except", dest="without", default="", help="not these daemons (comma list)")
    parser.add_argument("words", nargs="*", metavar="DAEMON=FILE", help="only these daemons with these files")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM; return the exit code."""
    args = make_parser().parse_args(argv)
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        chosen = list(map(_parse_word, args.words)) or list(_configured(args.swift_dir, args.without))
        if not chosen:
            other = "another" if args.without else "a"
            raise ConfigError(f"no file in {args.swift_dir} has the section of {other} daemon")
        prepared, errors = _prepare_all(chosen, verbose=args.verbose)
        for text in errors:
            print(f"{COMMAND}: {text}", file=sys.stderr)
        if errors and (args.words or args.test_config or not prepared):
            return 1
        user = _user_of(prepared)
        if args.test_config:
            print("\n".join(f"{name} {path}" for name, path in chosen))
            return 0
        # One process has one priority: the one that serves requests least.
        set_priority(max((item.priority for item in prepared), key=lambda priority: priority.nice_priority))
        drop_privileges(user)
    except (SwiftError, OSError) as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        return 1
    os.umask(0o022)
    limit_heaps()
    stop = StopRequest()
    stop.on_signals()
    log = prepared[0].context.telemetry.log
    for text in errors:
        # As with a process for each, the others run.
        log.error(f"cannot run {text}")
    detach_streams(log, console=args.verbose)
    notify_systemd(READY)
    green.gather([partial(_run_daemon, item, stop) for item in prepared])
    notify_systemd(STOPPING)
    return 0


def _parse_word(word: str) -> tuple[str, str]:
    name, _, path = word.partition("=")
    return name, path


def _configured(swift_dir: str, without: str) -> Iterator[tuple[str, str]]:
    """Yield the configured daemons with their files; raises ``ConfigError``."""
    left_out = [name.strip() for name in without.split(",") if name.strip()]
    for name in left_out:
        find_daemon(name)
    for name in daemons():
        if name in left_out:
            continue
        service = Service(name)
        paths = [path for path in config_paths(service, swift_dir) if is_configured(service, path)]
        # Beside it, instances in a folder serve another address; without it, other nodes of this machine.
        node = [path for path in paths if os.path.dirname(path) == swift_dir.rstrip("/")]
        yield from ((name, path) for path in node or paths)


def _prepare_all(
    chosen: Sequence[tuple[str, str]], *, verbose: bool
) -> tuple[list[PreparedDaemon], list[str]]:
    """Return the daemons, and why others cannot run. Raises ``ConfigError`` for one that is to fork."""
    prepared, errors = [], []
    for name, path in chosen:
        daemon = find_daemon(name)
        try:
            item = prepare_daemon(daemon, path, verbose=verbose)
        except (SwiftError, OSError) as error:
            errors.append(f"{name}: {error}")
            continue
        if item.forks:
            raise ConfigError(
                f"{name} is to fork workers ({path}), which it cannot do beside other daemons: run "
                f"swift-{name}, and here --except {name}"
            )
        prepared.append(item)
    return prepared, errors


def _user_of(prepared: Sequence[PreparedDaemon]) -> str:
    """Return the user of all daemons; raises ``ConfigError`` unless they have the same one."""
    users = sorted({item.user for item in prepared})
    if len(users) > 1:
        raise ConfigError(
            f"the files of the daemons name several users ({', '.join(users)}): run {COMMAND} once for each, "
            "with the daemons of that user"
        )
    return users[0]


def _run_daemon(prepared: PreparedDaemon, stop: StopRequest) -> None:
    log = prepared.context.telemetry.log
    log.notice(f"Starting {os.getpid()}")
    run_all_forever(prepared.runners(stop), stop)
    log.notice(f"Exited {os.getpid()}")


if __name__ == "__main__":
    raise SystemExit(main())
