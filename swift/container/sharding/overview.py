"""Sharding overview for operators: sharded containers and candidates (spec: account-container.md §19)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from swift.base.documents import JsonObject
from swift.base.shardrange import ShardRange, State
from swift.container.sharding import repair, shrink

SHARDING, SHRINKING, PROGRESS = "sharding_candidates", "shrinking_candidates", "sharding_in_progress"
#: States that recon counts.
_COUNTED = (State.FOUND, State.CREATED, State.CLEAVED, State.ACTIVE)


@dataclass
class Overview:
    """The containers of a device that are worth showing, by their directories, kept from pass to pass."""

    shown: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    #: Directory and kind of a warning → Unix seconds of the last one.
    _warned: dict[tuple[str, str], float] = field(default_factory=dict)

    def note(self, directory: str, lists: dict[str, JsonObject]) -> None:
        """Record the result of processing a container; no list if there is nothing to show."""
        self.shown.pop(directory, None)
        if lists:
            self.shown[directory] = lists

    def forget(self, directories: Iterable[str]) -> None:
        """Forget these shards."""
        for directory in directories:
            self.shown.pop(directory, None)

    def may_warn(self, directory: str, kind: str, now_s: float, interval_s: float) -> bool:
        """Return True if a warning is due again, and count it as given."""
        last_s = self._warned.get((directory, kind))
        if last_s is not None and now_s - last_s < interval_s:
            return False
        self._warned[directory, kind] = now_s
        return True

    def of(self, name: str) -> list[JsonObject]:
        """One of the lists."""
        return [lists[name] for lists in self.shown.values() if name in lists]


def recon_lists(overviews: Iterable[Overview], limit: int) -> JsonObject:
    """Return recon's lists: at most ``limit`` largest candidates (negative: all), and all being split."""
    known = list(overviews)
    told: JsonObject = {}
    for name, key in ((SHARDING, "object_count"), (SHRINKING, "compactible_ranges")):
        found = [item for overview in known for item in overview.of(name)]
        found.sort(key=lambda item: (-int(item[key]), str(item["path"])))
        told[name] = {"found": len(found), "top": found if limit < 0 else found[:limit]}
    told[PROGRESS] = {"all": [item for overview in known for item in overview.of(PROGRESS)]}
    return told


def state_counts(ranges: Sequence[ShardRange]) -> dict[str, int]:
    """Return the number of shards in each of recon's states."""
    counts = Counter(item.state for item in ranges)
    return {state.name.lower(): counts[state] for state in _COUNTED}


def compactible(
    ranges: Sequence[ShardRange],
    own: ShardRange,
    *,
    shrink_below: int,
    expand_to: int,
    max_shrinking: int,
    max_expanding: int,
) -> int:
    """Return the number of shards that could be merged into others, or into the root."""
    found = shrink.find_mergings(
        ranges,
        own,
        shrink_below=shrink_below,
        expand_to=expand_to,
        max_shrinking=max_shrinking,
        max_expanding=max_expanding,
    )
    return sum(len(donors) for donors, _acceptor in found)


@dataclass(frozen=True)
class RootAudit:
    """Defects in the shards of a root."""

    gaps: list[repair.Gap]
    overlaps: list[ShardRange]

    def words(self) -> list[str]:
        """Return the same for the log."""
        said = []
        if self.gaps:
            texts = ", ".join(f"{gap.lower or 'MinBound'}-{gap.upper or 'MaxBound'}" for gap in self.gaps)
            said.append(f"missing range(s): {texts}")
        if self.overlaps:
            texts = ", ".join(f"{item.lower}-{item.upper}" for item in self.overlaps)
            said.append(f"overlapping range(s): {texts}")
        return said


def audit_root(ranges: Sequence[ShardRange], own: ShardRange, *, is_complete: bool) -> RootAudit:
    """Look for gaps and overlaps; unless all shards are found already, the end may be open.

    A shard that is being split and what is split off it are the same names. A root that takes its shards in
    has all names itself.
    """
    parents = [item for item in ranges if item.state == State.SHARDING]
    kept = [item for item in ranges if not any(repair.are_related(item, other) for other in parents)]
    gaps = [] if own.state == State.ACTIVE else repair.find_gaps(kept)
    return RootAudit([gap for gap in gaps if is_complete or gap.upper], repair.find_overlaps(kept))
