"""Daemons of which several processes share the work, by ``processes`` and ``process``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol, TypedDict

from swift.base.errors import ConfigError
from swift.cli.daemonize import DaemonParts


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
