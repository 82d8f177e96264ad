"""Subcommands about the ring as a whole: create, the summary, replicas, overload, hours, part power.

spec: ring.md §8, §11
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from swift.ring import partpower
from swift.ring.builder import RingBuilder
from swift.ring.commands.session import EXIT_SUCCESS, EXIT_WARNING, BuilderSession, EndSubcommand, WrongUsage
from swift.ring.commands.tables import device_table
from swift.ring.errors import DeviceError, PartPowerError
from swift.ring.report import RingFacts, RingState, summary

_NEXT_REBALANCE = "The change will take effect after the next rebalance."
_NEXT_WRITE = "The change will take effect after the next write_ring."


def show(session: BuilderSession, argv: Sequence[str]) -> None:
    """Print the settings, the ring file's state and the devices, as the command does without a subcommand."""
    builder = session.loaded
    facts = summary(builder, session.builder_path, session.ring_path)
    session.report(facts)
    session.say(f"{facts['builder']}, build version {facts['version']}, id {facts['id'] or '(not saved)'}")
    session.say(
        f"{facts['partitions']} partitions, {facts['replicas']:.6f} replicas, {facts['regions']} regions, "
        f"{facts['zones']} zones, {facts['device_count']} devices, {facts['dev_id_bytes']}-byte IDs, "
        f"{facts['balance']:.2f} balance, {facts['dispersion'] or 0:.2f} dispersion"
    )
    session.say(
        "The minimum number of hours before a partition can be reassigned is "
        f"{facts['min_part_hours']} ({timedelta(seconds=facts['min_part_seconds_left'])} remaining)"
    )
    session.say(f"The overload factor is {facts['overload'] * 100:.2f}% ({facts['overload']:.6f})")
    session.say(_ring_line(facts["ring"]))
    session.say(*device_table(facts["devices"]))
    if not facts["devices"]:
        session.say("There are no devices in this ring, or all devices have been deleted")
    session.say(*_part_power_lines(builder))


def _ring_line(ring: RingFacts) -> str:
    if ring["state"] == RingState.MISSING.value:
        return f"Ring file {ring['file']} not found, probably it hasn't been written yet"
    if ring["state"] == RingState.INVALID.value:
        return f"Ring file {ring['file']} is invalid: {ring['reason']}"
    if ring["state"] == RingState.UNREADABLE.value:
        return f"Ring file {ring['file']} cannot be read: {ring['reason']}"
    return f"Ring file {ring['file']} is {ring['state']}"


def _part_power_lines(builder: RingBuilder) -> list[str]:
    now, following = builder.part_power, builder.next_part_power
    if following is None:
        return []
    if following != now:
        return [
            "",
            f"Preparing increase of partition power ({now} -> {following})",
            'Run "swift-object-relinker relink" on all nodes before moving on to increase_partition_power.',
        ]
    return [
        "",
        f"Increased partition power ({now} -> {following})",
        'First run "swift-ring-builder <builderfile> write_ring" now and copy the updated .ring.gz file '
        "to all nodes.",
        'Run "swift-object-relinker cleanup" on all nodes before moving on to '
        "finish_increase_partition_power.",
    ]


def create(session: BuilderSession, argv: Sequence[str]) -> None:
    """Make a new builder file: part power, replicas, hours between moves of one partition."""
    if len(argv) < 3:
        raise WrongUsage
    try:
        session.builder = RingBuilder(
            _whole(argv[0], "the part power"), _number(argv[1], "replicas"), _whole(argv[2], "min_part_hours")
        )
    except (DeviceError, ValueError) as error:
        raise EndSubcommand(str(error))
    session.prepare_backups()
    session.save()
    session.back_up(session.builder_path)


def _whole(text: str, name: str) -> int:
    """Return a whole number; raises ValueError that names it."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} must be a whole number, not {text!r}")


def _number(text: str, name: str) -> float:
    """Return a number; raises ValueError that names it."""
    try:
        return _finite(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, not {text!r}")


def _finite(text: str) -> float:
    """Return a number; "nan" and "inf" raise ValueError like any other word."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"could not convert string to float: {text!r}")
    return number


def set_min_part_hours(session: BuilderSession, argv: Sequence[str]) -> None:
    """Change the hours between two moves of one partition."""
    if not argv:
        raise WrongUsage
    try:
        hours = int(argv[0])
    except ValueError:
        raise EndSubcommand(f"{argv[0]!r} is not a whole number of hours.")
    if hours < 0:
        raise EndSubcommand(f"min_part_hours must be non-negative (was {hours})")
    session.loaded.min_part_hours = hours
    session.say(f"The minimum number of hours before a partition can be reassigned is now set to {hours}")
    session.save()


def set_replicas(session: BuilderSession, argv: Sequence[str]) -> None:
    """Change the replica count, which may be fractional."""
    if not argv:
        raise WrongUsage
    try:
        replicas = _finite(argv[0])
    except ValueError:
        raise WrongUsage(f'"{argv[0]}" is not a valid number.')
    if replicas < 1:
        raise EndSubcommand("Replica count must be at least 1.")
    session.loaded.set_replicas(replicas)
    session.say(f"The replica count is now {replicas:.6f}.", _NEXT_REBALANCE)
    session.save()


def set_overload(session: BuilderSession, argv: Sequence[str]) -> int:
    """Change how far devices may go over their share for the sake of dispersion."""
    if not argv:
        raise WrongUsage
    text = argv[0]
    percent = text.endswith("%")
    try:
        overload = _finite(text[:-1]) / 100.0 if percent else _finite(text)
    except ValueError:
        raise WrongUsage(f"{text!r} is not a valid number.")
    if overload < 0:
        raise EndSubcommand("Overload must be non-negative.")
    code = EXIT_SUCCESS
    if overload > 1 and not percent:
        session.say("!?! Warning overload is greater than 100% !?!")
        code = EXIT_WARNING
    session.loaded.overload = overload
    session.say(f"The overload factor is now {overload * 100:.2f}% ({overload:.6f})", _NEXT_REBALANCE)
    session.save()
    return code


def pretend_min_part_hours_passed(session: BuilderSession, argv: Sequence[str]) -> None:
    """Allow every partition to move at the next rebalance."""
    session.loaded.pretend_min_part_hours_passed()
    session.save()


def _step(
    step: Callable[[RingBuilder], None], lines: Sequence[str], session: BuilderSession, argv: Sequence[str]
) -> None:
    try:
        step(session.loaded)
    except PartPowerError as error:
        raise EndSubcommand(str(error))
    session.say(*(line.format(session.loaded.next_part_power or 0) for line in lines))
    session.save()


def prepare_increase_partition_power(session: BuilderSession, argv: Sequence[str]) -> None:
    """Announce twice as many partitions, so that nodes link objects to their coming places."""
    if "object" not in os.path.basename(session.builder_path):
        raise EndSubcommand("Partition power increase is only supported for object rings.")
    lines = (
        "The next partition power is now {}.",
        _NEXT_WRITE,
        "Ensure your proxy-servers, object-replicators and ",
        "reconstructors are using the changed rings and relink ",
        "(using swift-object-relinker) your existing data",
        "before the partition power increase",
    )
    _step(partpower.prepare_increase, lines, session, argv)


_CANCELLED = (
    "The next partition power is now {}.",
    _NEXT_WRITE,
    "Ensure your object-servers are using the changed rings and",
    "cleanup (using swift-object-relinker) the hard links",
)
#: Double the partitions, once all objects are linked.
increase_partition_power = partial(_step, partpower.increase, ("The partition power is now {}.", _NEXT_WRITE))
#: Give up a prepared increase.
cancel_increase_partition_power = partial(_step, partpower.cancel_increase, _CANCELLED)
#: End an increase, once the links at the old places are gone.
finish_increase_partition_power = partial(_step, partpower.finish_increase, (_NEXT_WRITE,))
