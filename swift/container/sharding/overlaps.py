"""Analysis of overlaps and gaps for ``swift-manage-shard-ranges``, with the repairing ranges.

Spec: cli-and-config.md §12. The sharder moves the objects afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding import repair
from swift.container.sharding.scan import in_state

_BUSY = (State.SHARDING, State.SHRINKING)


@dataclass(frozen=True)
class RepairVerdict:
    """Result of an analysis: if it can be repaired, and the repairing ranges; none if nothing is wrong."""

    is_fit: bool
    changes: list[ShardRange]
    #: The operator is asked although no range can be changed, as OpenStack Swift's command does.
    needs_consent: bool = False


def _both(donors: Sequence[ShardRange], acceptors: Sequence[ShardRange]) -> str:
    parts = ["Donors:", lines_of(donors), "Acceptors:", lines_of(acceptors)]
    return "\n".join(part for part in parts if part)


def lines_of(items: Sequence[ShardRange], indent: str = "  ") -> str:
    """Shards as the peer's command tells of them."""
    return "\n".join(
        f"{indent}{item.name!r}\n"
        f"{indent}  objects: {item.object_count:9d}, tombstones: {item.tombstones:9d}, "
        f"lower: {item.lower!r}\n"
        f"{indent}    state: {item.state.name.lower():>9s}, deleted: {item.deleted:d}             "
        f"upper: {item.upper!r}"
        for item in items
    )


def overlaps(
    ranges: Sequence[ShardRange], now: Timestamp, *, min_age_s: float, verbose: int
) -> RepairVerdict:
    """Tell of overlapping shards; those beside the best sequence are to shrink into it."""
    busy = [state for state in _BUSY if any(item.state == state for item in ranges)]
    if busy:
        print(f"WARNING: Found shard ranges in {busy[0].name.lower()} state")
        print("No repairs performed.")
        return RepairVerdict(False, [])
    chosen = repair.best_sequence(ranges)
    if not chosen:
        print("Found no complete sequence of shard ranges.")
        print("Repairs necessary to fill gaps.")
        print("Gap filling not supported by this tool. No repairs performed.")
        return RepairVerdict(False, [])
    donors = _donors(ranges, chosen, now, min_age_s)
    isolated = repair.isolated_in(chosen, donors)
    if isolated:
        print(f"ERROR: Isolated cleaved and/or active shard ranges in {isolated}")
        if verbose:
            print(_both(donors, chosen))
        print("No repairs performed.")
        return RepairVerdict(False, [])
    if not donors:
        print(
            f"Found one complete sequence of {len(chosen)} shard ranges and no overlapping shard ranges.\n"
            "No repairs necessary."
        )
        return RepairVerdict(True, [])
    have = sum(item.object_count for item in chosen)
    print("Repairs necessary to remove overlapping shard ranges.")
    print(
        f"Chosen a complete sequence of {len(chosen)} shard ranges with current total of {have} object "
        f"records to accept object records from {len(donors)} overlapping donor shard ranges."
    )
    if verbose:
        print(_both(donors, chosen))
    moved = sum(item.object_count for item in donors)
    print("Once applied to the broker these changes will result in:")
    print(f"    {len(donors)} shard ranges being removed.")
    print(f"    {moved} object records being moved to the chosen shard ranges.")
    return RepairVerdict(True, [in_state(item, State.SHRINKING, now, epoch=True) for item in donors])


def _donors(
    ranges: Sequence[ShardRange], chosen: Sequence[ShardRange], now: Timestamp, min_age_s: float
) -> list[ShardRange]:
    names = {item.name for item in chosen}
    others = sorted((item for item in ranges if item.name not in names), key=lambda item: item.sort_key)
    old = [item for item in others if not min_age_s or not repair.is_younger(item, now, min_age_s)]
    if len(old) < len(others):
        print(f"{len(others) - len(old)} overlapping donor shards ignored due to minimum age limit")
    donors = [item for item in old if not any(repair.are_related(item, other) for other in chosen)]
    if len(donors) < len(old):
        print(f"{len(old) - len(donors)} donor shards ignored due to parent-child relationship checks")
    return donors


def gaps(ranges: Sequence[ShardRange], now: Timestamp, *, max_expanding: int) -> RepairVerdict:
    """Tell of names without a shard; neighbours are to take them."""
    found = repair.find_gaps(ranges)
    if not found:
        count = len(repair.staying(ranges))
        print(f"Found one complete sequence of {count} shard ranges with no gaps.\nNo repairs necessary.")
        return RepairVerdict(True, [])
    print(f"Found {len(found)} gaps:")
    known = {item.name: item for item in ranges}
    changes: dict[str, ShardRange] = {}
    for gap in found:
        lower = repr(gap.lower) if gap.lower else "MinBound"
        upper = repr(gap.upper) if gap.upper else "MaxBound"
        print(f"  gap: {lower} - {upper}\n    apparent gap contents:")
        inside = [item for item in ranges if item.namespace.overlaps(gap.lower, gap.upper)]
        if inside:
            print(lines_of(inside, "      "))
        item = repair.filler_of(gap, known.values())
        if item is None:
            print("WARNING: cannot fix gap: non-ACTIVE neighbors")
            continue
        print(f"    gap can be fixed by expanding neighbor range:\n{lines_of([item], '      ')}")
        if item.name in changes or max_expanding < 0 or len(changes) < max_expanding:
            known[item.name] = changes[item.name] = repair.expanded(item, gap, now)
    print("\nRepairs necessary to fill gaps.")
    print("The following expanded shard range(s) will be applied to the DB:")
    if changes:
        print(lines_of(list(changes.values()), "    "))
    print(
        "\nIt is recommended that no other concurrent changes are made to the \nshard ranges while fixing "
        "gaps. If necessary, abort this change \nand stop any auto-sharding processes before repeating this "
        "command.\n"
    )
    return RepairVerdict(True, list(changes.values()), needs_consent=True)
