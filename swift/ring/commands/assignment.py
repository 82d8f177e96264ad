"""Subcommands about the assignment: rebalance, dispersion, validate, write_ring, write_builder, version.

spec: ring.md §11
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta

from swift.ring.builder import BALANCE_OF_WEIGHTLESS, Rebalanced, RingBuilder
from swift.ring.commands.devices import require_rows
from swift.ring.commands.session import (
    EXIT_ERROR,
    EXIT_SUCCESS,
    EXIT_WARNING,
    BuilderSession,
    EndSubcommand,
    WrongUsage,
)
from swift.ring.commands.tables import tier_table
from swift.ring.errors import RingError, RingFileError, RingValidationError
from swift.ring.report import dispersion_report
from swift.ring.ringfile import load_table

_RULE = "-" * 79
_SHORT = {"-d": "--debug", "-f": "--force", "-s": "--seed", "-v": "--verbose"}
_CHANGE_WORTH_SAVING = 1
_BALANCE_WORTH_MENTIONING = 5
_DEFAULT_MIN_PART_HOURS = 24
#: As many lines as OpenStack Swift prints here, because scripts count them.
_FORMAT_NOTICE = (
    "The ring is written in format 1, which all releases of\n"
    "OpenStack Swift can read. --format-version=2 writes the\n"
    "other one, which old releases cannot read and which\n"
    "rings with more than 65,535 devices need.\n"
)


class _Options:
    """Flags and values of the subcommands here; what is left over is in ``words``."""

    def __init__(self, argv: Sequence[str], flags: Sequence[str] = (), values: Sequence[str] = ()):
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.words: list[str] = []
        words = iter(argv)
        for word in words:
            name, equals, value = word.partition("=")
            if word[:2] in _SHORT:
                name, value = _SHORT[word[:2]], word[2:]
            if name in flags and (equals or value):
                raise WrongUsage(f"option {name} takes no value: {word}")
            if name in flags:
                self.flags.add(name)
            elif name in values:
                self.values[name] = value or next(words, "")
            elif word.startswith("-") and word != "-":
                raise WrongUsage(f"no such option: {word}")
            else:
                self.words.append(word)

    def choice(self, name: str, choices: Sequence[str]) -> int | None:
        """Return the number given for an option, or None."""
        value = self.values.get(name)
        if value is not None and value not in choices:
            raise WrongUsage(f"option {name}: invalid choice: {value!r} (choose from {', '.join(choices)})")
        return None if value is None else int(value)


def _format_version(session: BuilderSession, options: _Options) -> int:
    version = options.choice("--format-version", ("1", "2"))
    if version is None:
        session.say(_FORMAT_NOTICE)
        return 1
    return version


def rebalance(session: BuilderSession, argv: Sequence[str]) -> int:
    """Assign partitions anew with as few moves as possible and write builder and ring."""
    options = _Options(argv, ("--force", "--debug"), ("--seed", "--format-version"))
    seed = options.values.get("--seed") or next(iter(options.words), None)
    format_version = _format_version(session, options)
    builder = session.loaded
    if builder.next_part_power is not None:
        raise EndSubcommand(
            "Partition power increase in progress.\nYou need to finish the increase first before rebalancing."
        )
    seconds_left = builder.min_part_seconds_left
    devs_changed = builder.devs_changed
    before = builder.balance, builder.dispersion or 0.0
    try:
        if "--debug" in options.flags:
            for line in str(builder.plan()).splitlines():
                session.say(f"DEBUG: {line}")
        with _without_collector():
            result = builder.rebalance(seed=seed, progress=session.progress())
        builder.validate()
    except RingError as error:
        raise EndSubcommand(_framed(str(error)))
    if not (result.changed or result.removed or "--force" in options.flags):
        return _nothing_to_do(session, builder, seconds_left)
    if not (devs_changed or "--force" in options.flags) and _hardly_changed(before, result):
        session.report({"saved": False, "reason": "changed less than 1%", **asdict(result)})
        session.say("Cowardly refusing to save rebalance as it did not change at least 1%.")
        return EXIT_WARNING
    code = _describe_result(session, builder, result)
    if not session.dry_run:
        session.prepare_backups()
        session.write_ring(format_version=format_version)
        session.back_up(session.ring_path)
        session.save()
        session.back_up(session.builder_path)
    return code


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Spare the cycle collector: a rebalance makes millions of small values, and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _framed(text: str) -> str:
    return (
        f"{_RULE}\n"
        "An error has occurred during ring validation. Common\n"
        "causes of failure are rings that are empty or do not\n"
        "have enough devices to accommodate the replica count.\n"
        f"Original exception message:\n {text}\n{_RULE}"
    )


def _nothing_to_do(session: BuilderSession, builder: RingBuilder, seconds_left: int) -> int:
    session.say("No partitions could be reassigned.")
    if seconds_left > 0:
        reason = (
            "The time between rebalances must be at least min_part_hours: "
            f"{builder.min_part_hours} hours ({timedelta(seconds=seconds_left)} remaining)"
        )
    else:
        reason = "There is no need to do so at this time"
    session.report({"saved": False, "reason": reason, "changed": 0, "removed": 0})
    session.say(reason)
    return EXIT_WARNING


def _hardly_changed(before: tuple[float, float], after: Rebalanced) -> bool:
    balance_changed = abs(after.balance - before[0]) >= _CHANGE_WORTH_SAVING or (
        before[0] == after.balance == BALANCE_OF_WEIGHTLESS
    )
    dispersion_changed = abs(after.dispersion - before[1]) >= _CHANGE_WORTH_SAVING
    return not balance_changed and not dispersion_changed


def _describe_result(session: BuilderSession, builder: RingBuilder, result: Rebalanced) -> int:
    percent = 100.0 * result.changed / builder.parts
    session.report({"saved": not session.dry_run, "changed_percent": percent, **asdict(result)})
    session.say(
        f"Reassigned {result.changed} ({percent:.2f}%) partitions. "
        f"Balance is now {result.balance:.2f}.  Dispersion is now {result.dispersion:.2f}"
    )
    if result.dispersion > 0:
        session.say(_RULE)
        session.say(
            f"NOTE: Dispersion of {result.dispersion:.6f} indicates some parts are not\n"
            "      optimally dispersed.\n\n"
            "      You may want to adjust some device weights, increase\n"
            "      the overload or review the dispersion report."
        )
        session.say(_RULE)
        return EXIT_WARNING
    if result.balance > _BALANCE_WORTH_MENTIONING and result.balance / 100.0 > builder.overload:
        session.say(_RULE)
        session.say(
            f"NOTE: Balance of {result.balance:.2f} indicates you should push this \n"
            f"      ring, wait at least {builder.min_part_hours} hours, and rebalance/repush."
        )
        session.say(_RULE)
        return EXIT_WARNING
    return EXIT_SUCCESS


def dispersion(session: BuilderSession, argv: Sequence[str]) -> int:
    """Show how well replicas are kept apart, tier by tier."""
    options = _Options(argv, ("--verbose", "--recalculate"))
    require_rows(session)
    builder = session.loaded
    if "--recalculate" in options.flags or not builder.dispersion_graph:
        builder.measure_dispersion()
        builder.version += 1
        session.save()
    try:
        report = dispersion_report(builder, next(iter(options.words), None))
    except re.error as error:
        raise EndSubcommand(f"Invalid search filter {options.words[0]!r}: {error}")
    session.report(asdict(report))
    session.say(
        f"Dispersion is {report.dispersion:.6f}, Balance is {report.balance:.6f}, "
        f"Overload is {report.overload * 100:.2f}%"
    )
    session.say(f"Required overload is {report.required_overload * 100:.6f}%")
    code = EXIT_SUCCESS
    if report.worst is not None:
        session.say(f"Worst tier is {report.worst.over_percent:.6f} ({report.worst.name})")
        code = EXIT_WARNING
    if "--verbose" in options.flags:
        session.say(*tier_table(report))
    return code


def validate(session: BuilderSession, argv: Sequence[str]) -> int:
    """Check the assignment; silent when all is well."""
    try:
        session.loaded.validate()
    except RingValidationError as error:
        session.report({"valid": False, "reason": str(error)})
        session.warn(f"{session.builder_path}: {error}")
        return EXIT_ERROR
    session.report({"valid": True, "reason": ""})
    return EXIT_SUCCESS


def write_ring(session: BuilderSession, argv: Sequence[str]) -> None:
    """Write the ring file again, without rebalancing."""
    options = _Options(argv, (), ("--format-version", "--dev-id-bytes"))
    if options.words:
        raise WrongUsage
    format_version = _format_version(session, options)
    dev_id_bytes = options.choice("--dev-id-bytes", ("2", "4"))
    builder = session.loaded
    if not builder.live_devs:
        raise EndSubcommand("Unable to write empty ring.")
    if not builder.rows:
        session.warn(
            "WARNING: Writing a ring with no partition assignments but with devices; "
            'did you forget to run "rebalance"?'
        )
    session.prepare_backups()
    try:
        session.write_ring(format_version=format_version, dev_id_bytes=dev_id_bytes)
    except (RingFileError, OverflowError) as error:
        raise EndSubcommand(str(error))
    session.back_up(session.ring_path)


def write_builder(session: BuilderSession, argv: Sequence[str]) -> None:
    """Make a builder from a ring file, for those who lost theirs; what a ring does not hold is lost."""
    if os.path.exists(session.builder_path):
        raise EndSubcommand(
            f"Cowardly refusing to overwrite existing Ring Builder file: {session.builder_path}"
        )
    try:
        hours = int(argv[0]) if argv else _DEFAULT_MIN_PART_HOURS
        if hours < 0:
            raise ValueError
    except ValueError:
        raise EndSubcommand(f"{argv[0]!r} is not a whole number of hours.")
    if not argv:
        session.warn(
            f"WARNING: default min_part_hours may not match the value in the lost builder ({hours})."
        )
    table = load_table(session.ring_path)
    session.builder = RingBuilder.from_table(table, min_part_hours=hours)
    session.save()


def version(session: BuilderSession, argv: Sequence[str]) -> None:
    """Show the format and the builder version of a ring file."""
    table = load_table(session.ring_path)
    built = "none" if table.build_version is None else str(table.build_version)
    session.report(
        {
            "ring": session.ring_path,
            "format_version": table.format_version,
            "dev_id_bytes": table.dev_id_bytes,
            "build_version": table.build_version,
        }
    )
    session.say(
        f"{session.ring_path}: Serialization version: {table.format_version} "
        f"({table.dev_id_bytes}-byte IDs), build version: {built}"
    )
