"""One run of swift-ring-builder: the files it works on, where it prints, and how it stops.

A subcommand is a function of a ``BuilderSession`` and its arguments that returns an exit code. It stops early
by raising ``EndSubcommand``. Everything that touches files goes through the session, so that a dry run writes
nothing. spec: ring.md §11
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from swift.config.commandline import ProgressLine
from swift.platform.privileges import inherit_owner, make_directories
from swift.ring.builder import RingBuilder

EXIT_SUCCESS = 0
EXIT_WARNING = 1
EXIT_ERROR = 2
_PROGRESS_EVERY_S = 0.2


class EndSubcommand(Exception):
    """Ends a subcommand with an exit code; the text, if any, has a line of its own on stdout."""

    def __init__(self, text: str, code: int = EXIT_ERROR):
        super().__init__(text)
        self.code = code
        self.text = text


class WrongUsage(Exception):
    """The arguments do not fit the subcommand: its usage is printed, then this text."""


@dataclass
class BuilderSession:
    """``builder`` is None for subcommands that do not need an existing builder file."""

    builder_path: str
    ring_path: str
    given_path: str
    builder: RingBuilder | None = None
    dry_run: bool = False
    as_json: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    ask: Callable[[str], str] = input

    @property
    def loaded(self) -> RingBuilder:
        """The builder, for subcommands that cannot run without."""
        if self.builder is None:
            raise EndSubcommand(f"Ring Builder file does not exist: {self.builder_path}")
        return self.builder

    def say(self, *lines: str) -> None:
        """Print lines of the report; silent when the report is JSON."""
        if not self.as_json:
            print("".join(f"{line}\n" for line in lines), end="", file=self.out)

    def warn(self, text: str) -> None:
        """Print a line on stderr."""
        print(text, file=self.err)

    def report(self, facts: object) -> None:
        """Print the report as JSON when asked to."""
        if self.as_json:
            print(json.dumps(facts, indent=4, sort_keys=True), file=self.out)

    def save(self) -> None:
        """Write the builder file, unless this is a dry run."""
        if not self.dry_run:
            self.loaded.save(self.builder_path)

    def write_ring(self, *, format_version: int, dev_id_bytes: int | None = None) -> None:
        """Write the ring file, unless this is a dry run."""
        if not self.dry_run:
            self.loaded.write_ring(self.ring_path, format_version=format_version, dev_id_bytes=dev_id_bytes)

    def back_up(self, path: str) -> None:
        """Copy a just written file to ``backups/<unix time>.<name>``."""
        if not self.dry_run:
            copy = os.path.join(self._backups(), f"{int(time.time())}.{os.path.basename(path)}")
            shutil.copyfile(path, copy)
            inherit_owner(copy)

    def prepare_backups(self) -> None:
        """Create the backup directory; its absence must not be found out after the work is done."""
        if not self.dry_run:
            make_directories(self._backups())

    def _backups(self) -> str:
        return os.path.join(os.path.dirname(os.path.abspath(self.builder_path)), "backups")

    def confirm(self, question: str, refusal: str, *, yes: bool) -> None:
        """Ask the operator unless ``yes``; anything but y raises Stop with ``refusal``."""
        if yes:
            return
        try:
            answer = self.ask(question)
        except EOFError:
            answer = ""
        if answer.strip().lower() != "y":
            raise EndSubcommand(refusal)

    def progress(self) -> Callable[[str, int, int], None] | None:
        """Return a line on stderr that shows the progress of a rebalance, or None when it is no terminal."""
        if not self.err.isatty():
            return None
        line = ProgressLine(self.err, every_s=_PROGRESS_EVERY_S)

        def show(step: str, done: int, total: int) -> None:
            if done < total:
                line.show(f"{step}: {done} of {total} ({100 * done // total}%)")
            else:
                line.clear()

        return show


def take_switches(argv: Sequence[str]) -> tuple[list[str], bool, bool]:
    """Arguments without ``--dry-run`` and ``--format text|json``, and whether each was given."""
    rest: list[str] = []
    dry_run = as_json = False
    words = iter(argv)
    for word in words:
        if word == "--dry-run":
            dry_run = True
        elif word == "--format" or word.startswith("--format="):
            value = word.partition("=")[2] if "=" in word else next(words, "")
            if value not in ("json", "text"):
                raise EndSubcommand(f"--format must be text or json (was {value!r})")
            as_json = value == "json"
        else:
            rest.append(word)
    return rest, dry_run, as_json


def file_names(given: str) -> tuple[str, str]:
    """Return the builder and the ring file that one argument stands for (spec: ring.md §11)."""
    if given.endswith(".ring.gz"):
        return given[: -len(".ring.gz")] + ".builder", given
    if given.endswith(".builder"):
        return given, given[: -len(".builder")] + ".ring.gz"
    return given, given + ".ring.gz"
