"""Help of each subcommand: arguments, purpose, an example.

spec: ring.md §11
"""

from __future__ import annotations

from dataclasses import dataclass

PROGRAM = "swift-ring-builder"
BANNER = f"{PROGRAM} 1.3"

_OPTIONS = (
    "[--id <id>] [--region <region>] [--zone <zone>] [--ip <ip>] [--port <port>]\n"
    "    [--replication-ip <ip>] [--replication-port <port>] [--device <name>]\n"
    "    [--weight <weight>] [--meta <text>]"
)
_CAUTION = (
    "Then write the ring and copy it to all nodes.\n"
    "Done in the wrong order, this makes data unavailable: follow the steps one by one."
)


@dataclass(frozen=True, slots=True)
class Usage:
    """``forms`` are argument lists, ``text`` the purpose, ``example`` the words after the builder file."""

    forms: tuple[str, ...]
    text: str
    example: str

    def render(self, name: str) -> str:
        """Return the help of one subcommand."""
        heads = [f"{PROGRAM} <builder_file> {name} {form}".rstrip() for form in self.forms]
        lines = ["\n\nor\n\n".join(heads)]
        lines += [f"    {line}" if line else "" for line in self.text.splitlines()]
        lines += ["", f"    Example: {PROGRAM} object.builder {name} {self.example}".rstrip()]
        return "\n".join(lines)


def _setter(what: str, example: str) -> Usage:
    return Usage(
        (f"<search-value> <{what}> [<search-value> <{what}> ...] [--yes]", f"{_OPTIONS} <{what}> [--yes]"),
        f"Gives the devices that match another {what}. Partitions move at the next rebalance,\n"
        "so that several changes can be made first. Asks when more than one device matches,\n"
        "unless --yes is given.",
        example,
    )


USAGES = {
    "create": Usage(
        ("<part_power> <replicas> <min_part_hours>",),
        "Makes a builder for 2^part_power partitions. A partition that was moved stays where\n"
        "it is for min_part_hours.",
        "14 3 24",
    ),
    "add": Usage(
        (
            "[r<region>]z<zone>-<ip>:<port>[R<r_ip>:<r_port>]/<device>[_<meta>] <weight> [...]",
            "--region <region> --zone <zone> --ip <ip or host> --port <port>\n"
            "    [--replication-ip <ip or host>] [--replication-port <port>]\n"
            "    --device <name> --weight <weight> [--meta <text>]",
        ),
        "Adds devices. They get partitions at the next rebalance. Put IPv6 addresses in\n"
        "brackets. R<r_ip>:<r_port> is the address for replication, if it is another one.",
        "r1z1-10.0.0.1:6200/sda 100",
    ),
    "search": Usage(("<search-value>", _OPTIONS), "Shows the devices that match.", "z1-10.0.0.1"),
    "list_parts": Usage(
        ("<search-value> [<search-value> ...]", _OPTIONS),
        "Lists the partitions on the devices that match and how many of these devices each\n"
        "one is on, most matches first.",
        "d3 d7",
    ),
    "set_weight": _setter("weight", "d3 150"),
    "set_region": _setter("region", "d3 2"),
    "set_zone": _setter("zone", "d3 4"),
    "set_info": Usage(
        (
            "<search-value> [<ip>][:<port>][R[<r_ip>][:<r_port>]][/<device>][_<meta>] [...] [--yes]",
            f"{_OPTIONS}\n    [--change-ip <ip or host>] [--change-port <port>]\n"
            "    [--change-replication-ip <ip or host>] [--change-replication-port <port>]\n"
            "    [--change-device <name>] [--change-meta <text>] [--yes]",
        ),
        "Changes what the devices that match are called and how they are reached. No data\n"
        "moves; use write_ring afterwards. Leave out what should stay.",
        "d3 10.0.0.9:6200/sdb_new",
    ),
    "remove": Usage(
        ("<search-value> [<search-value> ...] [--yes]", f"{_OPTIONS} [--yes]"),
        "Marks failed devices; the next rebalance gives their partitions to others, even if\n"
        "these were moved lately. To retire a device that still works, set its weight to 0,\n"
        "let it drain, then remove it. Asks when more than one device matches.",
        "d3",
    ),
    "rebalance": Usage(
        ("[--force] [--seed <seed>] [--debug] [--format-version {1,2}] [--dry-run]",),
        "Brings the assignment in line with devices and weights, moving as little as possible,\n"
        "and writes builder and ring with backups. --force saves changes below 1%, --debug\n"
        "prints the plan, --seed makes the result repeatable.",
        "--format-version 1",
    ),
    "dispersion": Usage(
        ("[<filter>] [--verbose] [--recalculate]",),
        "Shows whether replicas are kept as far apart as the devices allow. The filter is a\n"
        "regular expression that the names of tiers begin with. --verbose lists, for each\n"
        "tier, its partition-replicas, the share that is too many there, the most replicas of\n"
        "a partition it should hold, and how many partitions have 0, 1, 2, ... there.",
        '"r\\d+z\\d+$" --verbose',
    ),
    "validate": Usage(("",), "Checks the assignment; says nothing when it is sound.", ""),
    "write_ring": Usage(
        ("[--format-version {1,2}] [--dev-id-bytes {2,4}]",),
        "Writes the ring file again, for instance after set_info.",
        "--format-version 1",
    ),
    "write_builder": Usage(
        ("[<min_part_hours>]",),
        "Makes a builder from a ring file, if the builder and its backups are lost. What a\n"
        "ring does not hold (overload, times of moves) starts afresh.",
        "24",
    ),
    "pretend_min_part_hours_passed": Usage(
        ("",),
        "Forgets when partitions were last moved. Moving again what replication has not yet\n"
        "caught up with makes data unavailable.",
        "",
    ),
    "set_min_part_hours": Usage(
        ("<hours>",), "Sets how long a moved partition stays; should cover a full replication pass.", "24"
    ),
    "set_replicas": Usage(
        ("<replicas>",),
        "Sets the replica count from the next rebalance on. It may be fractional: with 2.5,\n"
        "half of the partitions have 3 replicas.",
        "3",
    ),
    "set_overload": Usage(
        ("<overload>[%]",),
        "Sets how much more than its weight's share a device may take to keep replicas apart.",
        "10%",
    ),
    "version": Usage(("",), "Shows the format and the builder version of a ring file.", ""),
    "prepare_increase_partition_power": Usage(
        ("",),
        f"Announces twice as many partitions. {_CAUTION}\n"
        'Afterwards run "swift-object-relinker relink" everywhere.',
        "",
    ),
    "increase_partition_power": Usage(
        ("",),
        f"Doubles the partitions, once everything is relinked. {_CAUTION}\n"
        'Afterwards run "swift-object-relinker cleanup" everywhere.',
        "",
    ),
    "cancel_increase_partition_power": Usage(
        ("",),
        f"Gives up a prepared increase. {_CAUTION}\n"
        'Afterwards run "swift-object-relinker cleanup" everywhere.',
        "",
    ),
    "finish_increase_partition_power": Usage(
        ("",), f"Ends an increase, once everything is cleaned up. {_CAUTION}", ""
    ),
}

_SEARCH_HELP = """A search value names one or more devices; give at least one part, in this order:

    d<id>r<region>z<zone>-<ip>:<port>R<r_ip>:<r_port>/<device>_<meta>

    d74              device 74
    z1-10.0.0.1      devices of zone 1 with that address
    :6200            devices that use that port
    [::1]            devices with that IPv6 address
    R10.1.0.1        devices with that replication address
    /sdb1            devices of that name
    _rack7           devices with that text in their meta data

Every subcommand also takes --dry-run (do everything, write nothing) and reports take --format json.
A ring file may be given instead of the builder file that belongs to it.

Exit codes: 0 = success, 1 = done, with a warning, 2 = error"""


def everything() -> str:
    """Return the help of the command."""
    parts = [
        BANNER,
        f"{PROGRAM} <builder_file>\n    Shows settings, devices and the state of the ring file. The flag DEL "
        "marks a device\n    that the next rebalance removes.\n\n"
        f"    Example: {PROGRAM} object.builder",
    ]
    parts += [USAGES[name].render(name) for name in sorted(USAGES)]
    parts += [_SEARCH_HELP, f"Quick list: {' '.join(sorted(USAGES))}"]
    return "\n\n".join(parts)
