"""The command line that every command has: what ``argparse`` reads, and ``--version``."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import NoReturn, ParamSpec, TextIO

from swift import DISTRIBUTION, __version__
from swift.base.errors import SwiftError
from swift.base.nearest import nearest

_UNKNOWN = re.compile(r"unrecognized arguments: ([^\s=]+)")
_CHOICE = re.compile(r".*: invalid choice: '(.*?)' \(choose from (.*)\)")
_Args = ParamSpec("_Args")
#: The text of ``--version`` after the name of the command.
VERSION = f"{DISTRIBUTION} {__version__}"


class HelpText(argparse.HelpFormatter):
    """Wraps descriptions; examples and texts that have lines already stay as they are, to be pasted."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text or text.lower().startswith("example"):
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


class CommandLine(argparse.ArgumentParser):
    """A parser with ``--version``, which its subcommands have as well."""

    def __init__(
        self,
        prog: str | None = None,
        usage: str | None = None,
        description: str | None = None,
        epilog: str | None = None,
        formatter_class: type[argparse.HelpFormatter] = HelpText,
        add_help: bool = True,
        version: str = VERSION,
        **later: bool,
    ):
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=formatter_class,
            add_help=add_help,
        )
        # Newer interpreters hand more on to the parsers of sub-commands: Python 3.14 ``color``.
        vars(self).update(later)
        if add_help:
            text = f"%(prog)s ({version})"
            self.add_argument("--version", action="version", version=text, help="print the version and exit")

    def error(self, message: str) -> NoReturn:
        """Print the error with the option or word that was probably meant; exit with 2."""
        hint = ""
        if match := _UNKNOWN.match(message):
            hint = nearest(match[1], self._option_string_actions)
        elif match := _CHOICE.match(message):
            hint = nearest(match[1], (word.strip("' ") for word in match[2].split(",")))
        super().error(message + hint)

    def check_words(self, words: Iterable[str], known: Iterable[str]) -> None:
        """Refuse bare words that are not known; exit with 2."""
        known = tuple(known)
        for word in words:
            if word not in known:
                super().error(f"{word} is none of {', '.join(known)}{nearest(word, known)}")

    def add_format(self, help: str = "how to report") -> None:
        """Add the option ``--format``: ``text``, the default, or ``json``."""
        self.add_argument("--format", choices=("text", "json"), default="text", help=help)


class ProgressLine:
    """One line of a terminal that shows how far the work is; silent where ``out`` is no terminal.

    Threads may share it. ``every_s`` is the least time between two texts.
    """

    def __init__(self, out: TextIO, *, every_s: float = 0.0, clock: Callable[[], float] = time.monotonic):
        self._out = out
        self._every_s = every_s
        self._clock = clock
        self._next_s = 0.0

    def show(self, text: str) -> None:
        """Replace the line, not too often."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + self._every_s
            self._write(text)

    def clear(self) -> None:
        """Remove the line."""
        self._write("")

    def _write(self, text: str) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{text}")
            self._out.flush()


def print_report(
    args: argparse.Namespace, facts: object, lines: Iterable[str] = (), *, indent: int | None = 2
) -> None:
    """Print ``facts`` as JSON if ``--format json`` was given, else the lines."""
    if args.format == "json":
        print(json.dumps(facts, indent=indent))
        return
    for line in lines:
        print(line)


def reports_errors(
    name: str,
    *others: type[Exception],
    code: int = 1,
    describe: Callable[[Exception], str] = str,
    plain: tuple[type[Exception], ...] = (),
) -> Callable[[Callable[_Args, int]], Callable[_Args, int]]:
    """Return a decorator of ``main`` functions that prints expected errors and returns ``code`` for them.

    Expected are ``SwiftError``, OSError and ``others``; ``name`` is that of the command. The text of
    ``plain`` errors is a result: it is printed alone, on standard output, and the code is 1.
    """
    expected: tuple[type[Exception], ...] = (SwiftError, OSError, *others)

    def decorate(main: Callable[_Args, int]) -> Callable[_Args, int]:
        @wraps(main)
        def run(*args: _Args.args, **kwargs: _Args.kwargs) -> int:
            try:
                return main(*args, **kwargs)
            except plain as error:
                print(error)
                return 1
            except expected as error:
                print(f"{name}: {describe(error)}", file=sys.stderr)
                return code

        return run

    return decorate
