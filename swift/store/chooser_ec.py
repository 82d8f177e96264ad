"""Which fragment archive of an erasure coded object wins (spec: object-disk.md §6.1).

Archives of one timestamp form a set. The *durable set* is the newest one that was committed (one durable
member makes the whole set durable); older sets are over. Newer, uncommitted sets are candidates only for
readers that state preferences, because the proxy may find enough of them elsewhere.
"""

from __future__ import annotations

from swift.base.timestamp import Timestamp
from swift.store.choice import Choice, DataRule, Files, FragmentPreference, take_out
from swift.store.filenames import DATA, DURABLE, META, FileName

FragmentSet = tuple[Timestamp, list[FileName]]


def fragment_rule(preferences: list[FragmentPreference] | None, fragment: int | None) -> DataRule:
    """The data rule for a reader with these preferences (None: durable only) and wanted index."""

    def rule(groups: Files, choice: Choice) -> None:
        _fragment_data(groups, choice, preferences, fragment)

    return rule


def _fragment_data(
    groups: Files, choice: Choice, preferences: list[FragmentPreference] | None, fragment: int | None
) -> None:
    sets = _sets(groups.get(DATA, []))
    durable_at = _durable_timestamp(groups)
    durable = next((s for s in sets if s[0] == durable_at), None)
    if durable is not None:
        sets = sets[: sets.index(durable) + 1]
    choice.fragment_sets = sets
    chosen, choice.data = _choose_fragment(sets, durable, preferences, fragment)
    if choice.data is not None and durable is not None:
        choice.durable_timestamp = durable_at
    if durable_at is not None:
        orphans = durable is None
        take_out(
            groups,
            choice,
            lambda file: file.timestamp < durable_at or (orphans and file.extension == DURABLE),
        )
    choice.possible_reclaim.extend(
        file for each in sets if each is not durable and each is not chosen for file in each[1]
    )
    if durable is None:
        choice.possible_reclaim.extend(groups.get(META, ()))
    if choice.data is not None and chosen is not durable and META in groups:
        written = choice.data.timestamp
        groups[META] = [file for file in groups[META] if file.timestamp > written]


def _sets(files: list[FileName]) -> list[FragmentSet]:
    """Archives by timestamp, newest first; each by rising index, equal indexes in descending name order."""
    by_time: dict[Timestamp, list[FileName]] = {}
    for file in files:
        by_time.setdefault(file.timestamp, []).append(file)
    return [
        (timestamp, sorted(members, key=lambda file: file.fragment or 0))
        for timestamp, members in sorted(by_time.items(), reverse=True)
    ]


def _durable_timestamp(groups: Files) -> Timestamp | None:
    times = [file.timestamp for file in groups.get(DATA, ()) if file.durable]
    times.extend(file.timestamp for file in groups.get(DURABLE, ()))
    return max(times, default=None)


def _choose_fragment(
    sets: list[FragmentSet],
    durable: FragmentSet | None,
    preferences: list[FragmentPreference] | None,
    fragment: int | None,
) -> tuple[FragmentSet | None, FileName | None]:
    if preferences is None:
        return (durable, _pick(durable, fragment)) if durable is not None else (None, None)
    by_time = {each[0]: each for each in sets}
    candidates = list(sets)
    for preference in preferences:
        listed = by_time.get(preference.timestamp)
        if listed is None:
            continue
        welcome = [file for file in listed[1] if file.fragment not in preference.exclude]
        if welcome:
            return listed, welcome[-1]
        if listed in candidates:
            candidates.remove(listed)
    if not candidates:
        return None, None
    return candidates[0], _pick(candidates[0], fragment)


def _pick(chosen: FragmentSet, fragment: int | None) -> FileName | None:
    members = [file for file in chosen[1] if fragment is None or file.fragment == fragment]
    return members[-1] if members else None
