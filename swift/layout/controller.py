"""Carries out a layout: publishes rings that come nearer to their targets, one step after the other.

``Controller.tick`` makes one decision: it reads the state, looks at the cluster, decides (``advance``, pure
but for the builders that it reads and stores) and stores the new state by a conditional write. Only then the
rings are published, with the version that is in the state. So a controller may end at any point: the next one
publishes the same rings again, or decides again. Invariants, which ``test/sim/test_layout.py`` proves:

- A step changes one copy of a partition at most. The next step of a ring follows when all copies have
  arrived, as replicators say after a whole pass by the present ring.
- While a device is away, only copies on such devices move.
- What is published was stored before, and each version stands for one set of rings.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from swift.gateway.documents import Conflict
from swift.layout.dead import DrainPolicy, judge_dead
from swift.layout.observation import Observation, Observer, RingProgress
from swift.layout.plan import is_object_ring, label_of, united_devices
from swift.layout.state import LayoutState, RingState
from swift.layout.steps import FULL, HELD, Limits, Step, next_step, reshape
from swift.layout.store import BuilderCache, Held, LayoutStore, LeaseKeeper
from swift.ring.builder import RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.partpower import finish_increase, increase, prepare_increase
from swift.ring.ringfile import encode
from swift.ring.split import SplitPhase, phase
from swift.ring.table import TYPECODE_OF_WIDTH

#: A step is not made smaller than this share after clients had to wait.
PACE_MIN = 1 / 64
#: Phase of a part power increase → the sentence about its next step, and the step.
_SPLIT_STEPS = {
    SplitPhase.STEADY: ("its partitions will be split: files are linked to both places", prepare_increase),
    SplitPhase.RELINK: ("its partitions are split", increase),
    SplitPhase.CLEANUP: ("the increase of its part power is complete", finish_increase),
}
_DIGESTS_MAX = 1000
#: Names in a sentence at most.
_NAMES_MAX = 3
#: Weight of the last step in the average rate.
_RATE_SHARE = 0.3


@dataclass(frozen=True)
class Pace:
    """Bounds of steps."""

    #: Percent of a ring's copies that move in one step at most.
    step_percent: float = 5.0
    #: Bytes a second at most, on average; 0: no limit.
    bytes_per_second: float = 0.0
    #: Seconds that a request of a client may take; 0: no limit.
    latency_budget_s: float = 0.0
    #: Percent of a device from which on it takes nothing more.
    full_percent: float = 90.0


class Publisher(Protocol):
    """Gives rings to the nodes."""

    def version(self) -> int:
        """Return the version of the rings on this node; 0 without."""

    def publish(self, version: int, issued_s: float, files: Mapping[str, bytes]) -> None:
        """Sign the files (name → content), and install them here, where other nodes fetch them.

        Raises ``SwiftError`` and OSError.
        """


@dataclass(frozen=True)
class Outcome:
    """Result of a decision: a sentence, and the state afterwards."""

    text: str
    state: LayoutState | None = None


_OTHER = Outcome("another controller has the lease")


class Controller:
    """Carries out the layout of a cluster while it has the lease."""

    def __init__(
        self,
        store: LayoutStore,
        observer: Observer,
        publisher: Publisher,
        lease: LeaseKeeper,
        *,
        pace: Pace,
        drain: DrainPolicy,
        ordered: Collection[str] = (),
        rest_ticks: int = 1,
    ):
        """``ordered`` are the rings in which the index of a copy counts (erasure coded policies).

        At rest the cluster is looked at once in ``rest_ticks`` decisions.
        """
        self._store = store
        self._observer = observer
        self._publisher = publisher
        self._lease = lease
        self._pace = pace
        self._drain = drain
        self._ordered = ordered
        self._cache = BuilderCache(store)
        #: Ring and builder → MD5 of the ring file.
        self._digests: dict[str, str] = {}
        self._decision = ""
        self._rest_ticks = rest_ticks
        self._ticks = -1

    def tick(self) -> Outcome:
        """Make one decision. Raises ``SwiftError`` and OSError."""
        held = self._store.read()
        if held.state.version < self._publisher.version():
            return Outcome(
                f"the layout has version {held.state.version}, this node rings of version "
                f"{self._publisher.version()}: the layout's document is an old copy"
            )
        if held.state.is_moving:
            if not self._lease.hold(self._decision):
                return _OTHER
        else:
            # At rest nothing is written, and devices that are away are looked for less often.
            self._ticks += 1
            if self._publisher.version() >= held.state.version and self._ticks % self._rest_ticks:
                return Outcome(self._decision, held.state)
        outcome = self._decide(held)
        self._decision = outcome.text
        return outcome

    def _decide(self, held: Held) -> Outcome:
        if self._publisher.version() < held.state.version:
            self._publish(held.state)
        seen = self._observer.look()
        state, text = self._advance(held.state, seen)
        if state == held.state:
            return Outcome(text, state)
        if not held.state.is_moving and not self._lease.hold(text):
            return _OTHER
        try:
            self._store.write(state, held.etag)
        except Conflict:
            return Outcome("the layout was changed meanwhile")
        if state.version != held.state.version:
            self._publish(state)
        if not state.is_moving:
            self._store.remove_builders(state.blobs())
        return Outcome(text, state)

    # --- rings ---------------------------------------------------------------------------------------

    def _publish(self, state: LayoutState) -> None:
        files: dict[str, bytes] = {}
        for name, ring in state.rings.items():
            builder = self._cache.read(ring.builder)
            files[f"{name}.ring.gz"] = encode(builder.table(), f"{name}.ring.gz")
            files[f"{name}.builder"] = builder.to_bytes()
        self._publisher.publish(state.version, state.issued_s, files)
        self._cache.keep(state.blobs())

    def _digest(self, name: str, ring: RingState) -> str:
        """Return the MD5 of the ring file of now, as recon pages have it."""
        key = f"{name} {ring.builder}"
        if key not in self._digests:
            content = encode(self._cache.read(ring.builder).table(), f"{name}.ring.gz")
            if len(self._digests) >= _DIGESTS_MAX:
                self._digests.clear()
            self._digests[key] = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return self._digests[key]

    # --- decisions -----------------------------------------------------------------------------------

    def _advance(self, state: LayoutState, seen: Observation) -> tuple[LayoutState, str]:
        """Return the next state, and a sentence about it."""
        builders = {name: self._cache.read(ring.builder) for name, ring in state.rings.items()}
        changed = judge_dead(state, builders, seen, self._drain, self._cache)
        if changed is not None:
            return changed
        split = self._split(state, builders, seen)
        if split is not None:
            return split
        waits = self._unarrived(state, builders, seen)
        if waits:
            return state, waits
        arrived = _count_arrived(state, seen.now_s)
        if not any(ring.target for ring in arrived.rings.values()):
            finished = _finish(arrived, seen.now_s)
            if finished == state:
                return state, "all copies are in their places"
            return finished, "the change is complete: all copies have arrived"
        if state.paused:
            return arrived, f"paused: {state.paused}"
        paced, reason = self._paced(arrived, seen)
        if reason:
            return paced, reason
        return self._step(paced, builders, seen)

    def _split(
        self, state: LayoutState, builders: Mapping[str, RingBuilder], seen: Observation
    ) -> tuple[LayoutState, str] | None:
        """Return the next state of a part power increase; None if there is none."""
        for name, ring in state.rings.items():
            if not ring.is_splitting:
                continue
            waits = self._unsplit(name, ring, builders[name], seen)
            if waits:
                return state, waits
            if state.paused:
                return state, f"paused: {state.paused}"
            builder = builders[name].copy()
            step = phase(builder.part_power, builder.next_part_power)
            text, change = _SPLIT_STEPS[step]
            change(builder)
            following = replace(
                ring, builder=self._cache.add(builder), is_splitting=step != SplitPhase.CLEANUP
            )
            following_state = state.with_ring(name, following)
            return replace(
                following_state, version=state.version + 1, issued_s=seen.now_s
            ), f"ring {name}: {text}"
        return None

    def _unsplit(self, name: str, ring: RingState, builder: RingBuilder, seen: Observation) -> str:
        """Return why the next step of a part power increase has to wait; empty if it has not."""
        progress = seen.rings.get(name)
        if progress is None or progress.digest != self._digest(name, ring):
            return f"ring {name}: this node has not read the present ring yet"
        step = phase(builder.part_power, builder.next_part_power)
        if step == SplitPhase.STEADY:
            return "" if progress.is_in_order else _sentence(name, progress, ())
        if progress.waiting:
            return _sentence(name, progress, ())
        labels = {label_of(dev) for dev in builder.live_devs if dev.get("parts")}
        left = sorted(labels - seen.relinked.get(name, frozenset()))
        return f"ring {name}: run swift-object-relinker {step.value} for {_listed(left)}" if left else ""

    def _unarrived(self, state: LayoutState, builders: Mapping[str, RingBuilder], seen: Observation) -> str:
        """Return why the next step has to wait for copies; empty if all have arrived."""
        for name, ring in state.rings.items():
            if not (ring.previous or ring.target):
                continue
            progress = seen.rings.get(name)
            if progress is None or progress.digest != self._digest(name, ring):
                return f"ring {name}: this node has not read the present ring yet"
            away = [
                dev for dev in builders[name].live_devs if dev.get("parts") and label_of(dev) in seen.away
            ]
            if away:
                # Nothing but copies on such devices may move, although the others report no fault yet.
                has_arrived = progress.is_in_order_elsewhere and self._leaves(ring, away)
            else:
                has_arrived = progress.is_in_order and not (ring.is_from_dead and progress.failed)
            if not has_arrived:
                return _sentence(name, progress, [label_of(dev) for dev in away])
        return ""

    def _leaves(self, ring: RingState, away: Sequence[DeviceRecord]) -> bool:
        """Return True if the target has nothing on the devices that are away."""
        if not ring.target:
            return False
        held = Counter(device for row in self._cache.read(ring.target).rows or () for device in row)
        return not any(held[dev["id"]] for dev in away)

    def _paced(self, state: LayoutState, seen: Observation) -> tuple[LayoutState, str]:
        """Return the state with the pace of the next step, and why it has to wait, if it has."""
        budget_s, limit = self._pace.latency_budget_s, self._pace.bytes_per_second
        if budget_s and seen.latency_s > budget_s:
            slower = replace(state, pace=max(PACE_MIN, state.pace / 2))
            took, budget = f"{seen.latency_s * 1000:.0f} ms", f"{budget_s * 1000:.0f} ms"
            return slower, f"requests take {took}, more than the budget of {budget}"
        wait_s = state.step_began_s + state.step_bytes / limit - seen.now_s if limit else 0.0
        if wait_s > 0:
            return state, f"the next step is due in {wait_s:.0f} s by the limit of {limit / 1e6:g} MB/s"
        return replace(state, pace=min(1.0, 2 * state.pace)) if state.pace < 1 else state, ""

    def _step(
        self, state: LayoutState, builders: Mapping[str, RingBuilder], seen: Observation
    ) -> tuple[LayoutState, str]:
        each = seen.usage.per_copy(builders)
        texts: list[str] = []
        waiting: Counter[str] = Counter()
        moved_bytes = 0.0
        following = state
        for name, ring in state.rings.items():
            if not ring.target:
                continue
            now, target = builders[name], self._cache.read(ring.target)
            builder, step, is_last = self._next_builder(state, now, target, seen, name)
            waiting.update(step.waiting)
            if builder is None:
                continue
            following = following.with_ring(
                name,
                replace(
                    ring,
                    builder=self._cache.add(builder),
                    previous=ring.builder if step.moves else "",
                    target="" if is_last else ring.target,
                    moves_now=len(step.moves),
                    is_from_dead=step.is_from_dead,
                ),
            )
            moved_bytes += len(step.moves) * (each if is_object_ring(name) else 0.0)
            texts.append(f"ring {name}: {len(step.moves):,} copies move, {step.left:,} follow")
        if not texts:
            return state, _reason(waiting)
        return replace(
            following,
            version=state.version + 1,
            issued_s=seen.now_s,
            step_began_s=seen.now_s,
            step_bytes=moved_bytes,
        ), "; ".join(texts)

    def _next_builder(
        self,
        state: LayoutState,
        now: RingBuilder,
        target: RingBuilder,
        seen: Observation,
        name: str,
    ) -> tuple[RingBuilder | None, Step, bool]:
        """Return the builder after the next step, the step, and whether it is the last one.

        The builder is None if nothing can move now.
        """
        devs = united_devices(now, target)
        copies = sum(map(len, target.rows or ()))
        most = max(1, int(copies * self._pace.step_percent / 100 * state.pace))
        typecode = TYPECODE_OF_WIDTH[max(now.dev_id_bytes, target.dev_id_bytes)]
        current = [array(typecode, row) for row in now.rows or ()]
        step = reshape(current, target.rows or (), most) or next_step(
            current,
            target.rows or (),
            devs,
            Limits(
                copies_max=most,
                movable=now.movable_parts,
                dead={dev["id"] for dev in devs if dev is not None and label_of(dev) in seen.away},
                full=_full(devs, seen, self._pace.full_percent),
                any_order=name not in self._ordered,
                seed=state.version,
            ),
        )
        is_last = not step.left and [len(row) for row in step.rows] == [len(row) for row in target.rows or ()]
        if not step.moves and not is_last and sum(map(len, step.rows)) == sum(map(len, current)):
            return None, step, False
        if is_last:
            # The rows are those of the target, but for the order of copies.
            builder = target.copy()
            builder.version = now.version
            builder.hours_since_move, builder.moves_epoch_s = now.hours_since_move, now.moves_epoch_s
            builder.adopt(builder.devs, list(target.rows or ()), [move.part for move in step.moves])
        else:
            builder = now.copy()
            builder.adopt(devs, step.rows, [move.part for move in step.moves])
        return builder, step, is_last


def _sentence(name: str, progress: RingProgress, away: Sequence[str]) -> str:
    """Return why a ring's copies are not in order."""
    if away:
        return f"ring {name}: {', '.join(away)} is away; bring it back, or drain it"
    if progress.left == 0 and progress.failed:
        return f"ring {name}: {progress.failed:,} copies could not be compared with others; see swift-health"
    if progress.waiting:
        return f"ring {name}: waiting for reports of {_listed(progress.waiting)}"
    return f"ring {name}: {progress.left:,} copies are still to arrive"


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return ", ".join(names[:_NAMES_MAX]) + more


def _reason(waiting: Counter[str]) -> str:
    """Return why no copy can move."""
    if waiting[HELD]:
        return "the next partitions may move when min_part_hours have passed"
    return "the devices that are to get copies are too full" if waiting[FULL] else "nothing can move now"


def _full(devs: Sequence[DeviceRecord | None], seen: Observation, percent: float) -> set[int]:
    """Return the ids of devices that take nothing more."""
    found = set()
    for dev in devs:
        if dev is not None and label_of(dev) in seen.usage.devices:
            used, size = seen.usage.devices[label_of(dev)]
            if used * 100 >= size * percent:
                found.add(dev["id"])
    return found


def _count_arrived(state: LayoutState, now_s: float) -> LayoutState:
    """Return the state after the copies of the step under way have arrived."""
    moved = [ring for ring in state.rings.values() if ring.previous]
    if not moved:
        return state
    rings = {
        name: replace(
            ring,
            previous="",
            moves_done=ring.moves_done + ring.moves_now,
            moves_now=0,
            is_from_dead=False,
        )
        for name, ring in state.rings.items()
    }
    took_s = now_s - state.step_began_s
    rate = state.step_bytes / took_s if took_s > 0 and state.step_bytes else 0.0
    if rate and state.rate:
        rate = _RATE_SHARE * rate + (1 - _RATE_SHARE) * state.rate
    return replace(state, rings=rings, rate=rate or state.rate)


def _finish(state: LayoutState, now_s: float) -> LayoutState:
    """Return the state after all targets were reached."""
    changes = tuple(
        replace(each, state="done", ended_s=now_s) if each.state == "running" else each
        for each in state.changes
    )
    return replace(state, changes=changes, pace=1.0)
