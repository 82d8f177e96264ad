"""Subcommands about devices: add, search, list_parts, set_weight, set_region, set_zone, set_info, remove.

Each edits the builder in memory and saves it once at the end, so a refused value leaves the file as it was.
spec: ring.md §11
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from swift.ring.commands.select import (
    PORT_MAX,
    Arguments,
    BadValue,
    list_names,
    matching_any,
    parse_add_value,
    parse_change_value,
    parse_device_name,
)
from swift.ring.commands.session import EXIT_ERROR, EXIT_SUCCESS, BuilderSession, EndSubcommand, WrongUsage
from swift.ring.commands.tables import search_table
from swift.ring.device import DeviceRecord, describe
from swift.ring.errors import DeviceError, DuplicateDevice
from swift.ring.report import device_facts, partition_matches

UNCHANGED = "The on-disk ring builder is unchanged."
_NOTHING_FOUND = "No matching devices found"
_ADD_REQUIRED = (
    ("-r", "region"),
    ("-z", "zone"),
    ("-i", "ip"),
    ("-p", "port"),
    ("-d", "device"),
    ("-w", "weight"),
)


def _refuse_during_increase(session: BuilderSession, action: str) -> None:
    if session.loaded.next_part_power is not None:
        raise EndSubcommand(
            "Partition power increase in progress. You need \n"
            f"to finish the increase first before {action} devices."
        )


def add(session: BuilderSession, argv: Sequence[str]) -> None:
    """Add devices by add values with weights, or one device by options."""
    _refuse_during_increase(session, "adding")
    try:
        arguments = Arguments(argv)
        new = _devices_to_add(session, arguments)
        lines = []
        for fields in new:
            dev_id = session.loaded.add_device(**fields)
            dev = session.loaded.devs[dev_id]
            assert dev is not None, "a device that was just added exists"
            lines.append(f"Device {describe(dev)} with {dev['weight']} weight got id {dev_id}")
    except DuplicateDevice as error:
        raise EndSubcommand(f"{error}\n{UNCHANGED}\n")
    except (BadValue, DeviceError, ValueError) as error:
        raise EndSubcommand(f"{error}\n{UNCHANGED}")
    _save_and_say(session, lines)


def _devices_to_add(session: BuilderSession, arguments: Arguments) -> list[DeviceRecord]:
    if arguments.wanted:
        if arguments.words:
            raise WrongUsage
        return [_device_from_options(arguments.wanted)]
    if not arguments.words or len(arguments.words) % 2:
        raise WrongUsage
    new = []
    for text, weight in zip(arguments.words[::2], arguments.words[1::2], strict=True):
        fields = parse_add_value(text)
        if "region" not in fields:
            session.warn(f"WARNING: No region specified for {text}. Defaulting to region 1.\n")
            fields["region"] = 1
        fields["weight"] = float(weight)
        new.append(fields)
    return new


def _device_from_options(wanted: DeviceRecord) -> DeviceRecord:
    for short, name in _ADD_REQUIRED:
        if name not in wanted:
            raise BadValue(f"Required argument {short}/--{name} not specified.")
    fields: DeviceRecord = {**wanted}
    fields["device"] = parse_device_name(fields["device"])
    for port in (fields.get("port", 0), fields.get("replication_port", 0)):
        if not 0 <= port <= PORT_MAX:
            raise BadValue(f"Invalid port {port}")
    return fields


def search(session: BuilderSession, argv: Sequence[str]) -> int:
    """Show the devices that match."""
    arguments = Arguments(argv)
    if len(arguments.words) > 1:
        raise WrongUsage
    found = matching_any(session.loaded, arguments.searches(arguments.words))
    facts = [device_facts(session.loaded, dev) for dev in found]
    session.report(facts)
    if not found:
        session.say(_NOTHING_FOUND)
        return EXIT_ERROR
    session.say(*search_table(facts))
    return EXIT_SUCCESS


def list_parts(session: BuilderSession, argv: Sequence[str]) -> int:
    """Show which partitions are on the devices that match."""
    arguments = Arguments(argv)
    wanted = arguments.searches(arguments.words)
    require_rows(session)
    found = matching_any(session.loaded, wanted)
    if not found:
        session.report([])
        session.say(_NOTHING_FOUND)
        return EXIT_ERROR
    matches = partition_matches(session.loaded, {dev["id"] for dev in found})
    session.report([{"partition": part, "matches": count} for part, count in matches])
    session.say("Partition   Matches")
    for part, count in matches:
        session.say(f"{part:9d}   {count:7d}")
    return EXIT_SUCCESS


def require_rows(session: BuilderSession) -> None:
    """Stop unless the builder has been rebalanced."""
    if not session.loaded.rows:
        raise EndSubcommand(
            f'Specified builder file "{session.builder_path}" is not rebalanced yet. Please rebalance first.'
        )


def _set_each(name: str, parse: Callable[[str], float], session: BuilderSession, argv: Sequence[str]) -> None:
    """set_weight, set_region and set_zone: (search value, new value) pairs."""
    arguments = Arguments(argv)
    lines = []
    try:
        changes = [(wanted, parse(text)) for wanted, text in arguments.value_pairs()]
        for wanted, value in changes:
            devs = _found_or_stop(session, [wanted])
            _confirm_many(session, devs, f"update the {name} for these", "modifications", yes=arguments.yes)
            for dev in devs:
                session.loaded.change_device(dev["id"], **cast(DeviceRecord, {name: value}))
                lines.append(f"{describe(dev)} {name} set to {dev.get(name)}")
    except (DeviceError, ValueError) as error:
        raise EndSubcommand(str(error))
    _save_and_say(session, lines)


def _save_and_say(session: BuilderSession, lines: Sequence[str]) -> None:
    """Save what all of the pairs changed, and only then tell of it."""
    session.save()
    session.say(*lines)


def _found_or_stop(session: BuilderSession, wanted: Sequence[DeviceRecord]) -> list[DeviceRecord]:
    devs = matching_any(session.loaded, wanted)
    if not devs:
        raise EndSubcommand(f"Search value matched 0 devices.\n{UNCHANGED}")
    return devs


def _confirm_many(
    session: BuilderSession, devs: list[DeviceRecord], verb: str, changes: str, *, yes: bool
) -> None:
    if len(devs) > 1:
        session.say(*list_names(devs))
        question = f"Are you sure you want to {verb} {len(devs)} devices? (y/N) "
        session.confirm(question, f"Aborting device {changes}", yes=yes)


#: Change weights, regions or zones; takes effect at the next rebalance.
set_weight = partial(_set_each, "weight", float)
set_region = partial(_set_each, "region", int)
set_zone = partial(_set_each, "zone", int)


def set_info(session: BuilderSession, argv: Sequence[str]) -> None:
    """Change addresses, names and meta, which placement does not look at."""
    arguments = Arguments(argv)
    changes: list[tuple[DeviceRecord, DeviceRecord]]
    if arguments.wanted:
        if arguments.words:
            raise WrongUsage
        changes = [(arguments.wanted, arguments.changes)]
    elif not arguments.words or len(arguments.words) % 2 or arguments.changes:
        raise WrongUsage
    else:
        pairs = arguments.value_pairs()
        changes = [(wanted, parse_change_value(text)) for wanted, text in pairs]
    lines = []
    try:
        for wanted, change in changes:
            devs = _found_or_stop(session, [wanted])
            _confirm_many(session, devs, "update the info for these", "modifications", yes=arguments.yes)
            for dev in devs:
                before = describe(dev)
                session.loaded.set_info(dev["id"], **change)
                lines.append(f"Device {before} is now {describe(dev)}")
    except (DeviceError, DuplicateDevice) as error:
        raise EndSubcommand(str(error))
    _save_and_say(session, lines)


def remove(session: BuilderSession, argv: Sequence[str]) -> None:
    """Mark devices; they go at the next rebalance."""
    arguments = Arguments(argv)
    wanted = arguments.searches(arguments.words)
    _refuse_during_increase(session, "removing")
    devs = _found_or_stop(session, wanted)
    _confirm_many(session, devs, "remove these", "removals", yes=arguments.yes)
    for dev in devs:
        session.loaded.remove_device(dev["id"])
    _save_and_say(
        session, [f"{describe(dev)} marked for removal and will be removed next rebalance." for dev in devs]
    )
