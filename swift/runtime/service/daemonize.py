"""``main`` of every daemon of a storage node: configuration, privileges, signals, once or forever.

Spec: cli-and-config.md §8. The loop is ``runtime.daemon``; what a daemon does is its task's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO, TypedDict

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.rings import Rings
from swift.compose import CONSOLE_KEY, daemon_context, internal_client
from swift.config.commandline import CommandLine
from swift.config.common import PrioritySettings, ServerSettings, StorageSettings
from swift.config.files import parser_of, read_section
from swift.config.schema import Settings
from swift.config.unknown import unknown_options
from swift.gateway.internal_client import InternalClient
from swift.platform.heap import share_heaps
from swift.platform.privileges import drop_privileges
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import (
    DaemonTask,
    Pass,
    PassContext,
    PassReport,
    Runner,
    Schedule,
    forever_together,
    once_together,
)
from swift.runtime.notify import READY, STOPPING, notify_systemd
from swift.runtime.priority import set_priority
from swift.runtime.report import terminal_of
from swift.runtime.selection import Selection
from swift.runtime.service.streams import detach_streams
from swift.runtime.stop import Stop, plain_stop
from swift.telemetry.recon import ReconFile


@dataclass(frozen=True)
class DaemonParts:
    """What tasks are made of."""

    context: BackendContext
    rings: Rings
    #: What ``Daemon.settings`` parsed.
    settings: Any
    #: The section over ``[DEFAULT]``, for whoever needs options of others.
    conf: Mapping[str, str]
    storage: StorageSettings
    selection: Selection
    #: The configuration file, for whoever has sections beside its own.
    conf_path: str = ""
    #: The command line; empty where the daemon is started in another way.
    args: argparse.Namespace = field(default_factory=argparse.Namespace)


def _own_schedule(parts: DaemonParts) -> Schedule:
    schedule: Schedule = parts.settings.schedule
    return schedule


@dataclass(frozen=True)
class Daemon:
    """A console command: the daemon ``name`` reads ``[name]`` of ``<server_type>-server.conf``."""

    name: str
    server_type: str
    about: str
    settings: type[Settings]
    #: Makes the task, which has ``DaemonParts.selection`` decide what is done.
    make: Callable[[DaemonParts], DaemonTask]
    #: When it works; the ``schedule`` of its settings if nothing else is said.
    schedule: Callable[[DaemonParts], Schedule] = _own_schedule
    #: Further tasks of the same process, each in its own rhythm.
    companions: Callable[[DaemonParts], Sequence[tuple[DaemonTask, Schedule]]] = lambda _parts: ()
    #: Adds its own options to the command line.
    add_arguments: Callable[[argparse.ArgumentParser], object] = lambda _parser: None
    #: The configuration file where it is not the server's.
    conf_name: str = ""

    @property
    def usual_path(self) -> str:
        """Where its configuration mostly is."""
        return f"/etc/swift/{self.conf_name or f'{self.server_type}-server.conf'}"


def make_parser(daemon: Daemon) -> argparse.ArgumentParser:
    """The command line."""
    command = f"swift-{daemon.name}"
    parser = CommandLine(
        prog=command,
        description=daemon.about,
        epilog=f"example: {command} {daemon.usual_path} --once -v",
    )
    parser.add_argument("config", nargs="?", help="configuration file or directory")
    parser.add_argument("-v", "--verbose", action="store_true", help="log to the console")
    parser.add_argument("-o", "--once", action="store_true", help="do one pass and exit")
    parser.add_argument(
        "-t",
        "--test-config",
        action="store_true",
        help="load the configuration, say whether it is good, exit",
    )
    parser.add_argument("-d", "--devices", default="", help="only these devices (comma list)")
    parser.add_argument("-p", "--partitions", default="", help="only these partitions (comma list)")
    if daemon.server_type == "object":
        parser.add_argument("-i", "--policies", default="", help="only these policy indexes (comma list)")
    daemon.add_arguments(parser)
    parser.add_argument("words", nargs="*", help="'once' and 'verbose' are accepted as bare words")
    return parser


def run_daemon(daemon: Daemon, argv: Sequence[str] | None = None) -> int:
    """The console script of a daemon; the exit code."""
    parser = make_parser(daemon)
    args = parser.parse_args(argv)
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
class Prepared:
    """A daemon whose configuration was read: everything but privileges, signals and the loop."""

    #: What the process does, and when; the daemon's own task first.
    tasks: tuple[tuple[DaemonTask, Schedule], ...]
    context: BackendContext
    recon: ReconFile
    user: str
    priority: PrioritySettings
    rings: Rings
    #: Whether the command line selects a part of the work.
    is_limited: bool = False

    @property
    def forks(self) -> bool:
        """Whether the process only watches workers: if one task forks, all do."""
        return any(schedule.workers > 1 for _task, schedule in self.tasks)

    def runners(self, stop: Stop, terminal: TextIO | None = None) -> list[Runner]:
        """The loops of the daemon."""
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


def prepare(daemon: Daemon, path: str, *, verbose: bool, args: argparse.Namespace | None = None) -> Prepared:
    """Read the configuration file ``path`` and make the task; raises ``ConfigError`` and OSError.

    ``args`` is the command line; without one, everything is selected.
    """
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
    given = argparse.Namespace() if args is None else args
    parts = DaemonParts(context, rings, settings, conf, storage, selection, path, given)
    tasks = ((daemon.make(parts), daemon.schedule(parts)), *daemon.companions(parts))
    priority = PrioritySettings.parse(conf, source=f"{path} [{daemon.name}]")
    return Prepared(tasks, context, recon, server.user, priority, rings, bool(selection))


def _run(daemon: Daemon, args: argparse.Namespace) -> int:
    once = args.once or "once" in args.words
    verbose = args.verbose or "verbose" in args.words
    prepared = prepare(daemon, args.config, verbose=verbose, args=args)
    if args.test_config:
        problems = prepared.rings.damaged()
        for problem in problems:
            print(f"swift-{daemon.name}: {problem}", file=sys.stderr)
        return 1 if problems else 0
    log = prepared.context.telemetry.log
    set_priority(prepared.priority)
    drop_privileges(prepared.user)
    os.umask(0o022)
    share_heaps()
    stop = _stop_for(prepared)
    stop.on_signals()
    runners = prepared.runners(stop, terminal_of() if once or verbose else None)
    if not once:
        detach_streams(log, console=verbose)
    log.notice(f"Starting {os.getpid()}")
    notify_systemd(READY)
    completed = True
    if once:
        completed = once_together(runners)
    else:
        forever_together(runners, stop)
    notify_systemd(STOPPING)
    log.notice(f"Exited {os.getpid()}")
    return 0 if completed else 1


def _stop_for(prepared: Prepared) -> Stop:
    """Green waiting where this process works itself, plain waiting where it only forks workers."""
    if prepared.forks:
        return plain_stop()
    green.use_hub()
    return Stop()


# Daemons of which several processes share the work, by ``processes`` and ``process``.


class Shared(Protocol):
    """The options of such a daemon."""

    @property
    def processes(self) -> int:
        """How many share the work; 0: this one does all."""

    @property
    def process(self) -> int:
        """Which of them this one is, from 0."""


class ProcessNumbers(TypedDict):
    """Both of them."""

    processes: int
    process: int


def arguments_of(who: str) -> Callable[[argparse.ArgumentParser], None]:
    """What adds the arguments; ``who`` says who shares what."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--processes", type=int, help=who)
        parser.add_argument("--process", type=int, help="which of them this one is, from 0")

    return add


def share_of(parts: DaemonParts, settings: Shared) -> ProcessNumbers:
    """Both numbers, from the command line or the file; raises ``ConfigError`` when they do not fit."""
    given = {name: getattr(parts.args, name, None) for name in ("processes", "process")}
    processes = settings.processes if given["processes"] is None else given["processes"]
    process = settings.process if given["process"] is None else given["process"]
    if processes and process >= processes:
        raise ConfigError(f"process {process} must be below processes {processes} ({parts.conf_path})")
    return {"processes": processes, "process": process}


# A daemon that has nothing to do on this node, as its configuration says.


class Resting:
    """The task of such a daemon; it needs no pipeline of its own."""

    def __init__(self, name: str):
        self.name = name

    def shares(self) -> list[str]:
        """There is nothing to be done."""
        return []

    def begin(self, share: str, context: PassContext) -> Pass[object]:
        """There is no share to begin with; raises LookupError."""
        raise LookupError(share)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Nothing."""
        return {}

    progress = report


def own_client(parts: DaemonParts, name: str, conf_path: str, tries: int) -> InternalClient | None:
    """The client of a daemon whose own file has its pipeline, unless ``conf_path`` names another.

    It answers with no object that its pipeline cannot decrypt. None, with a warning, when the file is that of
    a container server, whose pipeline is none for a client.
    """
    if not conf_path and parser_of(parts.conf_path).has_section("app:container-server"):
        parts.context.telemetry.log.warning(
            f"{parts.conf_path} [{name}]: internal_client_conf_path is not set; nothing is done here"
        )
        return None
    path = conf_path or parts.conf_path
    return internal_client(path, name, tries=tries, use_replication_network=True, must_decrypt=True)
