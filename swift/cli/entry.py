"""Where every command begins: ``swift-aio`` is ``swift_aio`` here, which runs ``main`` of its module.

A reader that has gone (``swift-recon --all | head``) ends a command at its next line, without a word and with
the status of a program that SIGPIPE ended. The signal itself is not for us: it would also end commands for
the closed connection of a node.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module

from swift.cli.commands import MODULES

READER_GONE = 128 + signal.SIGPIPE


class PipeOutput(io.FileIO):
    """Standard output that ends the process when nobody reads it; ``except OSError`` has no part in that."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """See ``io.RawIOBase``. Raises ``SystemExit``."""
        try:
            return super().write(data)
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            raise SystemExit(READER_GONE)


def run(module: str) -> int:
    """Run a command, its module below ``swift.cli``; the exit code."""
    former = sys.stdout
    if isinstance(former, io.TextIOWrapper):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(PipeOutput(former.fileno(), "w", closefd=False)),
            encoding=former.encoding,
            errors=former.errors,
            line_buffering=former.line_buffering,
            write_through=former.write_through,
        )
    try:
        code: int = import_module(f"swift.cli.{module}").main()
        return code
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def __getattr__(name: str) -> Callable[[], int]:
    """The command whose name has hyphens instead."""
    try:
        return partial(run, MODULES[name.replace("_", "-")])
    except KeyError:
        raise AttributeError(name)
