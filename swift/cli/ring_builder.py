"""swift-ring-builder: make and change rings.

``main`` finds the files, takes the lock when called as ``…-safe``, loads the builder and calls a function of
``cli.ring``; it turns every error into one line and an exit code (0 success, 1 warning, 2 error).
spec: ring.md §11
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from swift.base.errors import LockTimeout
from swift.base.nearest import nearest
from swift.config.commandline import VERSION, CommandLine
from swift.platform.disk import Disk
from swift.platform.locks import file_lock
from swift.platform.privileges import inherit_owner
from swift.ring.builder import RingBuilder
from swift.ring.commands import assignment, devices, settings
from swift.ring.commands.select import BadValue
from swift.ring.commands.session import (
    EXIT_ERROR,
    EXIT_SUCCESS,
    BuilderSession,
    EndSubcommand,
    WrongUsage,
    file_names,
    take_switches,
)
from swift.ring.commands.usage import USAGES, everything
from swift.ring.composite import load_composition
from swift.ring.errors import BuilderFileError, RingError

LOCK_TIMEOUT_S = 15.0
_HELP = ("-h", "--help")
_WITHOUT_BUILDER = ("create", "write_builder", "version")
_KEEP_RING_NAME = ("write_builder", "version")

COMMANDS: dict[str, Callable[[BuilderSession, Sequence[str]], int | None]] = {
    "add": devices.add,
    "cancel_increase_partition_power": settings.cancel_increase_partition_power,
    "create": settings.create,
    "dispersion": assignment.dispersion,
    "finish_increase_partition_power": settings.finish_increase_partition_power,
    "increase_partition_power": settings.increase_partition_power,
    "list_parts": devices.list_parts,
    "prepare_increase_partition_power": settings.prepare_increase_partition_power,
    "pretend_min_part_hours_passed": settings.pretend_min_part_hours_passed,
    "rebalance": assignment.rebalance,
    "remove": devices.remove,
    "search": devices.search,
    "set_info": devices.set_info,
    "set_min_part_hours": settings.set_min_part_hours,
    "set_overload": settings.set_overload,
    "set_region": devices.set_region,
    "set_replicas": settings.set_replicas,
    "set_weight": devices.set_weight,
    "set_zone": devices.set_zone,
    "validate": assignment.validate,
    "version": assignment.version,
    "write_builder": assignment.write_builder,
    "write_ring": assignment.write_ring,
}
assert set(COMMANDS) == set(USAGES), "every subcommand explains itself"


def make_parser() -> CommandLine:
    """Return the command as the man page describes it; every subcommand reads its own words."""
    parser = CommandLine(
        prog="swift-ring-builder",
        usage="swift-ring-builder <builder_file> [<subcommand> [<argument> ...]]",
        description="Make and change rings. As swift-ring-builder-safe it holds a lock meanwhile.",
        epilog=everything(),
        add_help=False,
    )
    add = parser.add_argument
    add("--version", action="store_true", help="print the version and exit")
    add("--dry-run", action="store_true", help="do everything, write nothing")
    add("--format", choices=("text", "json"), help="how to report")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; ``argv`` are the words after the program's name."""
    program = os.path.basename(sys.argv[0])
    words = sys.argv[1:] if argv is None else argv
    try:
        rest, dry_run, as_json = take_switches(words)
        if not rest or rest[0] in _HELP:
            print(everything())
            return EXIT_SUCCESS
        if rest == ["--version"]:
            print(f"{program} ({VERSION})")
            return EXIT_SUCCESS
        builder_path, ring_path = file_names(rest[0])
        session = BuilderSession(builder_path, ring_path, rest[0], dry_run=dry_run, as_json=as_json)
        with _lock(program, builder_path, dry_run=dry_run):
            return _run(session, rest[1] if len(rest) > 1 else "", rest[2:])
    except EndSubcommand as stop:
        if stop.text:
            print(stop.text)
        return stop.code
    except BadValue as error:
        print(error)
        return EXIT_ERROR
    except (RingError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_ERROR


@contextlib.contextmanager
def _lock(program: str, builder_path: str, *, dry_run: bool):  # type: ignore[no-untyped-def]
    """Hold the builder directory's lock when the program is called ``…-safe``."""
    if not program.removesuffix(".py").endswith("-safe") or dry_run:
        yield
        return
    folder = os.path.dirname(os.path.abspath(builder_path))
    try:
        lock = os.path.join(folder, ".lock")
        with file_lock(Disk(), lock, LOCK_TIMEOUT_S):
            inherit_owner(lock)
            yield
    except LockTimeout:
        raise EndSubcommand("Ring/builder dir currently locked.")


def _run(session: BuilderSession, name: str, argv: Sequence[str]) -> int:
    if name and name not in COMMANDS:
        _load(session, name)
        raise EndSubcommand(f"Unknown command: {name}{nearest(name, COMMANDS)}")
    if any(word in _HELP for word in argv) and name:
        print(USAGES[name].render(name))
        return EXIT_SUCCESS
    if session.builder_path != session.given_path and name not in _KEEP_RING_NAME:
        session.say(f"Note: using {session.builder_path} instead of {session.given_path} as builder file")
    _load(session, name)
    try:
        return (COMMANDS[name] if name else settings.show)(session, argv) or EXIT_SUCCESS
    except WrongUsage as problem:
        print(USAGES[name].render(name))
        if str(problem):
            print(problem)
        return EXIT_ERROR


def _load(session: BuilderSession, name: str) -> None:
    """Load the builder, which most subcommands need; a file that is no builder stops all of them."""
    try:
        session.builder = RingBuilder.load(session.builder_path)
    except BuilderFileError as error:
        hint = (
            " (it appears to be a composite ring builder file?)"
            if _is_composite(session.builder_path)
            else ""
        )
        reason = "" if hint else f": {error.reason}"
        raise EndSubcommand(f"Ring Builder file is invalid: {session.builder_path}{hint}{reason}")
    except FileNotFoundError:
        if name not in _WITHOUT_BUILDER:
            raise EndSubcommand(f"Ring Builder file does not exist: {session.builder_path}")
    except PermissionError:
        if name not in _WITHOUT_BUILDER:
            raise EndSubcommand(f"Ring Builder file can not be accessed: {session.builder_path}")
    except OSError as error:
        raise EndSubcommand(f"Problem occurred while reading builder file: {session.builder_path}. {error}")


def _is_composite(path: str) -> bool:
    try:
        load_composition(path)
    except (BuilderFileError, OSError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
