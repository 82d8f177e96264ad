"""``main`` of every daemon of a storage node: configuration, privileges, signals, once or forever.

Spec: cli-and-config.md §8. The loop is ``runtime.daemon``; what a daemon does is its task's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO

from swift.base.errors import ConfigError, SwiftError
from swift.cluster.rings import Rings
from swift.compose import CONSOLE_KEY, daemon_context
from swift.config.commandline import CommandLine
from swift.config.common import PrioritySettings, ServerSettings, StorageSettings
from swift.config.declared import daemons
from swift.config.files import parser_of, read_section
from swift.config.unknown import unknown_options
from swift.platform.heap import limit_heaps
from swift.platform.privileges import drop_privileges
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import DaemonTask, Runner, Schedule, run_all_forever, run_all_once
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.notify import READY, STOPPING, notify_systemd
from swift.runtime.pipeline import server_of
from swift.runtime.priority import set_priority
from swift.runtime.report import stream_if_terminal
from swift.runtime.selection import Selection
from swift.runtime.service.checks import machine_problems
from swift.runtime.service.streams import detach_streams
from swift.runtime.stop import StopRequest, make_blocking_stop_request
from swift.telemetry.recon import ReconFile


def make_parser(daemon: Daemon) -> CommandLine:
    """Return the command line."""
    command = f"swift-{daemon.name}"
    parser = CommandLine(
        prog=command, description=daemon.about, epilog=f"example: {command} {daemon.usual_path} --once -v"
    )
    parser.add_argument("config", nargs="?", help="configuration file or directory")
    parser.add_argument("-v", "--verbose", action="store_true", help="log to the console")
    parser.add_argument("-o", "--once", action="store_true", help="do one pass and exit")
    parser.add_argument("-t", "--test-config", action="store_true", help="check the configuration and exit")
    parser.add_argument("-d", "--devices", default="", help="only these devices (comma list)")
    parser.add_argument("-p", "--partitions", default="", help="only these partitions (comma list)")
    if daemon.server_type == "object":
        parser.add_argument("-i", "--policies", default="", help="only these policy indexes (comma list)")
    daemon.add_arguments(parser)
    parser.add_argument("words", nargs="*", help="'once' and 'verbose' are accepted as bare words")
    return parser


def run_daemon(daemon: Daemon, argv: Sequence[str] | None = None) -> int:
    """Run a daemon from its command line; return the exit code."""
    parser = make_parser(daemon)
    args = parser.parse_args(argv)
    parser.check_words(args.words, ("once", "verbose"))
    if not args.config or not os.path.exists(args.config):
        parser.print_usage()
        reason = f"unable to locate {args.config}" if args.config else "missing config path argument"
        print(f"Error: {reason}")
        return 1
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        return _run(daemon, args)
    except (SwiftError, OSError) as error:
        print(f"swift-{daemon.name}: {error}", file=sys.stderr)
        return 1


@dataclass(frozen=True)
class PreparedDaemon:
    """A daemon whose configuration was read: everything but privileges, signals and the loop."""

    #: Tasks of the process with their schedules; the daemon's own task first.
    tasks: tuple[tuple[DaemonTask, Schedule], ...]
    context: BackendContext
    recon: ReconFile
    user: str
    priority: PrioritySettings
    rings: Rings
    #: True if the command line selects a part of the work.
    is_limited: bool = False

    @property
    def forks(self) -> bool:
        """True if the process only watches workers: if one task forks, all do."""
        return any(schedule.workers > 1 for _task, schedule in self.tasks)

    def runners(self, stop: StopRequest, terminal: TextIO | None = None) -> list[Runner]:
        """Return the loops of the daemon."""
        return [
            Runner(
                task,
                schedule,
                telemetry=self.context.telemetry,
                recon=self.recon,
                stop=stop,
                terminal=terminal,
                forks=self.forks,
                is_limited=self.is_limited,
            )
            for task, schedule in self.tasks
        ]


def prepare_daemon(
    daemon: Daemon, path: str, *, verbose: bool, args: argparse.Namespace | None = None
) -> PreparedDaemon:
    """Read the configuration file ``path`` and make the task; raises ``ConfigError`` and OSError.

    ``args`` is the command line; without one, everything is selected.
    """
    _check_file(daemon, path)
    conf = read_section(path, daemon.name)
    if verbose:
        conf[CONSOLE_KEY] = "true"
    conf.setdefault("log_name", daemon.name)
    settings: Any = daemon.settings.parse(conf, source=f"{path} [{daemon.name}]")
    server = ServerSettings.parse(conf, source=f"{path} [DEFAULT]")
    context = daemon_context(conf, name=daemon.name)
    for finding in unknown_options(path, only=daemon.name):
        context.telemetry.log.warning(finding)
    storage = StorageSettings.parse(conf)
    recon = ReconFile(storage.recon_cache_path, daemon.server_type, context.telemetry.log)
    rings = Rings(server.swift_dir, context.policies, report=context.telemetry.log.error)
    selection = Selection()
    if args is not None:
        selection = Selection.parse(args.devices, args.partitions, getattr(args, "policies", ""))
        selection.check(_device_names(storage, rings), context.policies)
    given = argparse.Namespace() if args is None else args
    parts = DaemonParts(context, rings, settings, conf, storage, selection, path, given)
    tasks = ((daemon.make(parts), daemon.schedule(parts)), *daemon.companions(parts))
    priority = PrioritySettings.parse(conf, source=f"{path} [{daemon.name}]")
    return PreparedDaemon(tasks, context, recon, server.user, priority, rings, bool(selection))


def _check_file(daemon: Daemon, path: str) -> None:
    """Refuse the configuration of another server. Raises ``ConfigError``."""
    server = server_of(path)
    expected = f"{daemon.server_type}-server"
    has_client = daemon.conf_name or parser_of(path).has_section(daemon.name)
    if server and server != expected and not (server == "proxy-server" and has_client):
        raise ConfigError(
            f"{path} is the configuration of the {server}; name that of the {expected}, "
            f"e.g. {daemon.usual_path}"
        )


def _device_names(storage: StorageSettings, rings: Rings) -> Iterator[str]:
    """Yield the names of the directories of devices, and of devices in rings that can be read."""
    with contextlib.suppress(OSError):
        yield from (entry.name for entry in os.scandir(storage.devices) if entry.is_dir())
    yield from rings.device_names()


def _run(daemon: Daemon, args: argparse.Namespace) -> int:
    once = args.once or "once" in args.words
    verbose = args.verbose or "verbose" in args.words
    prepared = prepare_daemon(daemon, args.config, verbose=verbose, args=args)
    if args.test_config:
        return _test(daemon, args.config, prepared)
    log = prepared.context.telemetry.log
    set_priority(prepared.priority)
    drop_privileges(prepared.user)
    os.umask(0o022)
    limit_heaps()
    stop = _make_stop_request(prepared)
    stop.on_signals()
    runners = prepared.runners(stop, stream_if_terminal() if once or verbose else None)
    if not once:
        detach_streams(log, console=verbose)
    log.notice(f"Starting {os.getpid()}")
    notify_systemd(READY)
    completed = True
    if once:
        completed = run_all_once(runners)
    else:
        run_all_forever(runners, stop)
    notify_systemd(STOPPING)
    log.notice(f"Exited {os.getpid()}")
    return 0 if completed else 1


def _test(daemon: Daemon, path: str, prepared: PreparedDaemon) -> int:
    """Print what is wrong or not used; return 0 if the daemon would start."""
    for finding in unknown_options(path, only=daemon.name):
        print(f"swift-{daemon.name}: warning: {finding}", file=sys.stderr)
    settings = ServerSettings.parse(read_section(path, daemon.name))
    problems = [*prepared.rings.damaged(), *machine_problems(daemon.name, path, settings, listens=False)]
    for problem in problems:
        print(f"swift-{daemon.name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _make_stop_request(prepared: PreparedDaemon) -> StopRequest:
    """Return a ``StopRequest`` that waits in the event loop, or a blocking one if it only forks workers."""
    if prepared.forks:
        return make_blocking_stop_request()
    return StopRequest()


def find_daemon(name: str) -> Daemon:
    """Return the daemon that ``swift-<name>`` runs; raises ``ConfigError`` for an unknown one."""
    declared = daemons().get(name)
    if declared is None:
        raise ConfigError(f"there is no daemon {name!r}")
    daemon: Daemon = import_module(declared.module).DAEMON
    return daemon
