"""Which files of a hash directory win: decided from names alone (spec: object-disk.md §6, §7).

``choose`` is pure: it gets names and returns a ``Choice`` that says which files make up the object, which
are obsolete, and which may be reclaimed once they are old. Opening, cleaning up and hashing all act on
the same ``Choice``. Erasure coded data has rules of its own in ``store.chooser_ec``.

Rules are applied in order, each taking files out of play: tombstones, metas, data, result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from swift.base.timestamp import Timestamp
from swift.policy.policy import ErasureCode
from swift.store.choice import Choice, DataRule, Files, FragmentPreference, take_out
from swift.store.chooser_ec import fragment_rule
from swift.store.filenames import DATA, META, TOMBSTONE, FileName, UnexpectedName, parse_name

#: Bodies and tombstones whose time is printed without an offset, so that they sort by it.
_PLAIN = re.compile(r"[0-9]{10}\.[0-9]{5}\.(?:data|ts)\Z")
_PLAIN_STEM = 16


def choose(
    names: Collection[str],
    ec: ErasureCode | None = None,
    *,
    preferences: list[FragmentPreference] | None = None,
    fragment: int | None = None,
) -> Choice:
    """Decide over the names of one hash directory.

    ``ec`` is the geometry of an erasure coded policy; ``preferences`` (possibly empty: anything goes) and
    ``fragment`` select among its archives and mean nothing for replicated objects.
    """
    if ec is None:
        return _newer_of_two(names) or _choose(names, None, _replicated_data)
    return _choose(names, ec.fragments, fragment_rule(preferences, fragment))


def _newer_of_two(names: Collection[str]) -> Choice | None:
    """What every change of a plain object leaves: two bodies or tombstones, of which the newer one wins.

    The rules below say the same. None when that is not what the names are.
    """
    if len(names) != 2:
        return None
    older, newer = sorted(names)
    if older[:_PLAIN_STEM] == newer[:_PLAIN_STEM] or not (_PLAIN.match(older) and _PLAIN.match(newer)):
        return None
    winner = parse_name(newer)
    if winner.extension == DATA:
        return Choice(data=winner, obsolete=[parse_name(older)])
    return Choice(tombstone=winner, obsolete=[parse_name(older)])


def _choose(names: Iterable[str], fragments: int | None, data_rule: DataRule) -> Choice:
    choice = Choice()
    groups: Files = {}
    for name in sorted(names, reverse=True):
        try:
            file = parse_name(name, fragments)
        except UnexpectedName:
            choice.unexpected.append(name)
            continue
        groups.setdefault(file.extension, []).append(file)
    for files in groups.values():
        files.sort(key=_timestamp, reverse=True)
    _tombstone_rule(groups, choice)
    _meta_rule(groups, choice)
    data_rule(groups, choice)
    _result_rule(groups, choice)
    return choice


def _timestamp(file: FileName) -> Timestamp:
    return file.timestamp


def _tombstone_rule(groups: Files, choice: Choice) -> None:
    tombstones = groups.get(TOMBSTONE)
    if not tombstones:
        return
    newest = tombstones[0]
    take_out(
        groups,
        choice,
        lambda file: (
            file is not newest and (file.extension == TOMBSTONE or file.timestamp <= newest.timestamp)
        ),
    )


def _meta_rule(groups: Files, choice: Choice) -> None:
    metas = groups.get(META)
    if not metas or len(metas) == 1:
        return
    first = metas[0]
    # None sorts lowest: a meta without content type says nothing about it.
    rest = sorted(metas[1:], key=_ctype_order, reverse=True)
    second = rest[0]
    keep = [first]
    if _ctype_order(second) > _ctype_order(first):
        keep = [second] if second.timestamp == first.timestamp else [first, second]
    choice.obsolete.extend(file for file in metas if file not in keep)
    groups[META] = keep


def _ctype_order(file: FileName) -> tuple[int, int]:
    ctype = file.ctype_timestamp
    return (-1, 0) if ctype is None else (ctype.raw, ctype.offset)


def _replicated_data(groups: Files, choice: Choice) -> None:
    files = groups.get(DATA)
    if not files:
        choice.possible_reclaim.extend(groups.get(META, ()))
        return
    winner = choice.data = files[0]
    take_out(
        groups,
        choice,
        lambda file: file is not winner and (file.extension == DATA or file.timestamp <= winner.timestamp),
    )


def _result_rule(groups: Files, choice: Choice) -> None:
    metas = groups.get(META)
    if choice.data is not None:
        if metas:
            choice.meta = metas[0]
            last = metas[-1]
            if last.ctype_timestamp is not None and last.ctype_timestamp > choice.data.timestamp:
                choice.ctype = last
    elif tombstones := groups.get(TOMBSTONE):
        choice.tombstone = tombstones[0]
