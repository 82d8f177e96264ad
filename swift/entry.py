"""Entry point of every command: that of ``swift-aio`` runs ``main`` of ``swift.cli.aio``.

Each module of ``swift.cli`` is a command of its name; ``swift.cli.daemon`` is the commands of all daemons.

A closed output (``swift-recon --all | head``) ends a command at its next line, silently and with the status
of a program that SIGPIPE ended. The signal itself is ignored: it would also end commands for the closed
connection of a node. Ctrl-C ends a command without a traceback, with the status of SIGINT.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

import swift
from swift.config.declared import daemons

READER_GONE = 128 + signal.SIGPIPE
INTERRUPTED = 128 + signal.SIGINT
#: Second names of commands.
ALIASES = {"swift-ring-builder-safe": "swift-ring-builder"}
#: The module that runs daemons.
DAEMON = "daemon"


class PipeOutput(io.FileIO):
    """Standard output that ends the process when its reader is gone; no ``except OSError`` catches that."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """See ``io.RawIOBase``. Raises ``SystemExit``."""
        try:
            return super().write(data)
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            raise SystemExit(READER_GONE)


def conflict(distribution: Callable[[str], metadata.Distribution] = metadata.distribution) -> str:
    """Return what is wrong when OpenStack Swift was installed over this package; empty if it was not.

    Both have the import package ``swift`` and the commands: in one folder the one that was installed last has
    overwritten files of the other. ``distribution`` finds an installed distribution.
    """
    try:
        other = distribution("swift")
    except metadata.PackageNotFoundError:
        return ""
    if os.path.realpath(str(other.locate_file("swift"))) != os.path.realpath(os.path.dirname(swift.__file__)):
        return ""
    return (
        f"OpenStack Swift (the distribution swift {other.version}) is installed in the same place; both have "
        f"the package swift; run pip uninstall swift {swift.DISTRIBUTION}, then install one of them"
    )


def commands() -> dict[str, tuple[str, ...]]:
    """Return the commands of the distribution: name → module below ``swift.cli`` and its first words."""
    modules = (path.stem for path in (Path(__file__).parent / "cli").glob("*.py"))
    found: dict[str, tuple[str, ...]] = {
        f"swift-{module.replace('_', '-')}": (module,)
        for module in modules
        if module not in ("__init__", DAEMON)
    }
    found |= {f"swift-{name}": (DAEMON, name) for name in daemons()}
    return dict(sorted((found | {name: found[other] for name, other in ALIASES.items()}).items()))


def module_words(name: str) -> list[str]:
    """Return the words after ``python`` that run the command ``swift-<name>``; raises KeyError."""
    module, *words = commands()[f"swift-{name}"]
    return ["-m", f"swift.cli.{module}", *words]


def run(module: str, *words: str) -> int:
    """Run a command, its module below ``swift.cli``, with these words first; return the exit code."""
    if problem := conflict():
        print(f"{os.path.basename(sys.argv[0])}: {problem}", file=sys.stderr)
        return 1
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
        main = import_module(f"swift.cli.{module}").main
        code: int = main([*words, *sys.argv[1:]]) if words else main()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def __getattr__(name: str) -> Callable[[], int]:
    """Return the command whose name has hyphens instead; raises AttributeError."""
    command = name.replace("_", "-")
    daemon = command.removeprefix("swift-")
    if daemon in daemons():
        return partial(run, DAEMON, daemon)
    module = ALIASES.get(command, command).removeprefix("swift-").replace("-", "_")
    if not (command.startswith("swift-") and (Path(__file__).parent / "cli" / f"{module}.py").exists()):
        raise AttributeError(name)
    return partial(run, module)
