"""Drains devices that are away for long, within bounds, and takes them back when they return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from swift.layout.edits import settle
from swift.layout.observation import Observation
from swift.layout.plan import label_of, make_plan
from swift.layout.state import OFF, ON, DeadDevice, LayoutState
from swift.layout.store import BuilderCache
from swift.ring.builder import RingBuilder
from swift.ring.errors import RingError


@dataclass(frozen=True)
class DrainPolicy:
    """When devices that are away are drained."""

    #: ``off``, ``dry-run`` (announced only) or ``on``.
    mode: str = OFF
    #: Seconds; half of it passes before it is announced.
    after_s: float = 3600.0
    #: Devices that are drained so at the same time, all in one zone.
    devices_max: int = 12


def judge_dead(
    state: LayoutState,
    builders: Mapping[str, RingBuilder],
    seen: Observation,
    policy: DrainPolicy,
    cache: BuilderCache,
) -> tuple[LayoutState, str] | None:
    """Return the state after a change of what is known about devices that are away; None without a change."""
    known = dict(state.dead)
    held = {
        label_of(dev): (dev["region"], dev["zone"])
        for builder in builders.values()
        for dev in builder.live_devs
        if dev.get("parts") or dev["weight"]
    }
    back = sorted(label for label in known if label not in seen.away)
    # While partitions are split, a ring has no other targets.
    if any(ring.is_splitting for ring in state.rings.values()):
        return None
    if back:
        return _take_back(state, back, builders, seen, cache)
    fresh = sorted(label for label in seen.away if label in held and label not in known)
    if fresh:
        known.update({label: DeadDevice(seen.now_s) for label in fresh})
        return replace(state, dead=known), f"away: {', '.join(fresh)}"
    if policy.mode == OFF:
        return None
    for label, dead in sorted(known.items()):
        if dead.drained_s or label not in held:
            continue
        waited_s = seen.now_s - dead.since_s
        if not dead.announced_s and waited_s >= policy.after_s / 2:
            known[label] = replace(dead, announced_s=seen.now_s)
            left_s = max(0.0, policy.after_s - waited_s)
            verb = "will be" if policy.mode == ON else "would be (dry-run)"
            return replace(state, dead=known), f"{label} is away and {verb} drained in {left_s:.0f} s"
    due = [
        label
        for label, dead in sorted(known.items())
        if dead.announced_s
        and not dead.drained_s
        and label in held
        and seen.now_s - dead.since_s >= policy.after_s
    ]
    if policy.mode != ON or not due:
        return None
    chosen = _within_bounds(due, known, held, policy)
    if not chosen:
        return _refuse(state, due, f"at most {policy.devices_max} devices, all in one zone, are drained so")
    try:
        return _drain(state, chosen, builders, seen, cache)
    except _Refused as refused:
        return _refuse(state, chosen, str(refused))


class _Refused(Exception):
    """Devices are not drained; the text has no figures, as these change all the time."""


def _refuse(state: LayoutState, labels: list[str], reason: str) -> tuple[LayoutState, str] | None:
    """Return the state that tells why devices are not drained; None if it tells that already."""
    dead = {
        label: replace(each, refused=reason) if label in labels else each
        for label, each in state.dead.items()
    }
    if dead == state.dead:
        return None
    return replace(state, dead=dead), f"{', '.join(labels)}: away for too long, but not drained: {reason}"


def _within_bounds(
    due: list[str],
    known: Mapping[str, DeadDevice],
    held: Mapping[str, tuple[int, int]],
    policy: DrainPolicy,
) -> list[str]:
    """Return the devices that may be drained beside those that are drained already."""
    drained = [label for label, dead in known.items() if dead.drained_s]
    zones = {held[label] for label in drained if label in held}
    chosen: list[str] = []
    for label in due:
        if len(drained) + len(chosen) < policy.devices_max and not zones - {held[label]}:
            zones.add(held[label])
            chosen.append(label)
    return chosen


def _drain(
    state: LayoutState,
    labels: list[str],
    builders: Mapping[str, RingBuilder],
    seen: Observation,
    cache: BuilderCache,
) -> tuple[LayoutState, str]:
    """Return the state with targets without devices; raise ``_Refused`` if their copies find no place."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    weights: dict[str, dict[str, float]] = {label: {} for label in labels}
    targets: dict[str, RingBuilder] = {}
    for name, ring in state.rings.items():
        target = cache.read(ring.target or ring.builder).copy()
        chosen = [dev for dev in target.live_devs if label_of(dev) in labels and dev["weight"]]
        for dev in chosen:
            weights[label_of(dev)][name] = dev["weight"]
            target.change_device(dev["id"], weight=0.0)
        if not chosen:
            continue
        try:
            settle(target, seed=state.version)
        except RingError as error:
            raise _Refused("too few devices would be left") from error
        targets[name] = target
    # That a zone has no copy, or others have two, is what its death means; space must be there.
    plan = make_plan(builders, targets, seen.usage)
    if not targets:
        raise _Refused("the change under way takes its partitions already")
    if plan.space:
        raise _Refused("the others have no space for its copies")
    for name, target in targets.items():
        before[name], after[name] = state.rings[name].builder, cache.add(target)
    dead = dict(state.dead)
    for label in labels:
        dead[label] = replace(dead[label], drained_s=seen.now_s, weights=weights[label], refused="")
    text = f"drain {', '.join(labels)}: away for too long"
    following = replace(state, dead=dead)
    return following.with_change(text, before, after, seen.now_s, moves=plan.moves), text


def _take_back(
    state: LayoutState,
    back: list[str],
    builders: Mapping[str, RingBuilder],
    seen: Observation,
    cache: BuilderCache,
) -> tuple[LayoutState, str]:
    """Forget that devices were away; give those that were drained their weights and partitions again."""
    dead = {label: each for label, each in state.dead.items() if label not in back}
    following = replace(state, dead=dead)
    drained = {label: state.dead[label] for label in back if state.dead[label].weights}
    if not drained:
        return following, f"back: {', '.join(back)}"
    last = state.changes[-1]
    still_away = any(each.drained_s for each in dead.values())
    is_last = not still_away and all(each.drained_s == last.made_s for each in drained.values())
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for name, ring in state.rings.items():
        given = {label: each.weights[name] for label, each in drained.items() if name in each.weights}
        if not given:
            continue
        before[name] = ring.builder
        if is_last and name in last.before:
            # Its data is still there: the former places need the least copying.
            after[name] = last.before[name]
            continue
        target = cache.read(ring.target or ring.builder).copy()
        for dev in target.live_devs:
            if label_of(dev) in given and not dev["weight"]:
                target.change_device(dev["id"], weight=given[label_of(dev)])
        settle(target, seed=state.version)
        after[name] = cache.add(target)
    text = f"take back {', '.join(back)}"
    targets = {name: cache.read(target) for name, target in after.items()}
    moves = make_plan(builders, targets, seen.usage).moves
    return following.with_change(text, before, after, seen.now_s, moves=moves), text
