"""Declarations of daemons: each daemon's module declares it once, as ``DAEMON``.

``python -m tools.generate`` finds the declarations and writes what is derived from them.
Spec: cli-and-config.md §8
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from swift.base.errors import ConfigError
from swift.cluster.rings import Rings
from swift.config.common import StorageSettings
from swift.config.schema import Settings
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import DaemonTask, Schedule
from swift.runtime.selection import Selection


@dataclass(frozen=True)
class DaemonParts:
    """The parts that a task is made of."""

    context: BackendContext
    rings: Rings
    #: The parsed ``Daemon.settings``.
    settings: Any
    #: The section merged over ``[DEFAULT]``, for options that other sections declare.
    conf: Mapping[str, str]
    storage: StorageSettings
    selection: Selection
    #: The configuration file, for tasks that read further sections.
    conf_path: str = ""
    #: The command line; empty where the daemon is started in another way.
    args: argparse.Namespace = field(default_factory=argparse.Namespace)


def _own_schedule(parts: DaemonParts) -> Schedule:
    schedule: Schedule = parts.settings.schedule
    return schedule


@dataclass(frozen=True)
class Daemon:
    """A daemon and all that is derived from it: command, unit, man page, sample section.

    The command ``swift-<name>`` reads ``[name]`` of ``<server_type>-server.conf``.
    """

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
    #: The configuration file where it is not the server's, and the sentence at the top of its sample.
    conf_name: str = ""
    conf_about: str = ""
    #: Filters of the pipeline in its own file, left of the proxy, besides those that every client has.
    #: None for a daemon that is no client.
    pipeline: tuple[str, ...] | None = ()
    #: True if one process is enough for a cluster.
    once_per_cluster: bool = False
    #: Options of a cluster on one machine, which serves requests beside its daemons.
    small_cluster: Mapping[str, int] = field(default_factory=dict)
    #: Lines of its section in the sample that no option of its settings stands for.
    sample_lines: tuple[str, ...] = ()

    @property
    def usual_path(self) -> str:
        """Default path of the configuration file."""
        return f"/etc/swift/{self.conf_name or f'{self.server_type}-server.conf'}"


class ProcessSettings(Protocol):
    """The options of such a daemon."""

    @property
    def processes(self) -> int:
        """The number of processes that share the work; 0: this one does all."""

    @property
    def process(self) -> int:
        """Number of this process, from 0."""


class ProcessNumbers(TypedDict):
    """Both of them."""

    processes: int
    process: int


def make_argument_adder(who: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return a function that adds the arguments; ``who`` describes the sharing processes in the help."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--processes", type=int, help=who)
        parser.add_argument("--process", type=int, help="which of them this one is, from 0")

    return add


def parse_process_numbers(parts: DaemonParts, settings: ProcessSettings) -> ProcessNumbers:
    """Return both numbers from the command line or the file; raises ``ConfigError`` if inconsistent."""
    given = {name: getattr(parts.args, name, None) for name in ("processes", "process")}
    processes = settings.processes if given["processes"] is None else given["processes"]
    process = settings.process if given["process"] is None else given["process"]
    if processes and process >= processes:
        raise ConfigError(f"process {process} must be below processes {processes} ({parts.conf_path})")
    return {"processes": processes, "process": process}
