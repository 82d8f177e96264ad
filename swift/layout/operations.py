"""Operations of an operator on a layout; each is one conditional write."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from swift.gateway.documents import Conflict
from swift.layout.edits import EditError, LayoutEdit, apply_edits, settle
from swift.layout.plan import LayoutPlan, Usage, is_object_ring, make_plan, united_devices
from swift.layout.state import Change, LayoutState, RingState
from swift.layout.store import Held, LayoutStore, NoLayout
from swift.ring.builder import RingBuilder
from swift.ring.manifest import is_ring_name
from swift.ring.partpower import prepare_increase

TRIES = 5
STAGED_MAX = 1000


class Objections(EditError):
    """A plan that is not applied without ``force``; the text has the reasons."""


@dataclass(frozen=True)
class Proposal:
    """The rings that follow from the staged edits, and the plan."""

    targets: Mapping[str, RingBuilder]
    plan: LayoutPlan


def _refusal(plan: LayoutPlan) -> str:
    """Return why a plan is not applied, and how it is in spite of that."""
    return f"not applied without --force: {'; '.join(plan.objections)}"


class LayoutOperations:
    """Changes the layout of a cluster.

    Methods raise ``StoreUnavailable``, ``Conflict``, ``EditError`` and ``RingError``.
    """

    def __init__(self, store: LayoutStore, now: Callable[[], float]):
        self._store = store
        self._now = now

    def create(
        self, builders: Mapping[str, RingBuilder], *, cluster: str = "", version: int = 1
    ) -> LayoutState:
        """Make the layout of a cluster from its builders, which stay as they are.

        ``cluster`` is the id in ``layout.pub``, ``version`` higher than those that nodes may have.
        """
        if not builders:
            raise EditError("there are no builders to begin with")
        for name, builder in builders.items():
            if not is_ring_name(name):
                raise EditError(
                    f"{name[:64]!a} is no name of a ring, so no node would take it: move {name}.builder away"
                )
            if builder.rows is None:
                raise EditError(f"builder {name} was never rebalanced: rebalance it before")
            builder.validate()
        try:
            self._store.read()
        except NoLayout:
            rings = {name: RingState(self._store.add_builder(each)) for name, each in builders.items()}
            state = LayoutState(cluster or secrets.token_hex(16), version, self._now(), rings)
            self._store.write(state, "")
            return state
        raise EditError("the cluster has a layout already; see: swift-layout show")

    def read(self) -> LayoutState:
        """Return the state."""
        return self._store.read().state

    def decision(self) -> str:
        """Return the last decision of the controller; empty if none was at work."""
        lease, _ = self._store.read_lease()
        return "" if lease is None else lease.decision

    def builders(self, state: LayoutState) -> dict[str, RingBuilder]:
        """Return the builders of now."""
        return {name: self._store.read_builder(ring.builder) for name, ring in state.rings.items()}

    def stage(self, edit: LayoutEdit) -> LayoutState:
        """Keep an edit until it is applied; one that cannot be made is refused."""

        def add(held: Held) -> LayoutState:
            staged = (*held.state.staged, edit)
            if len(staged) > STAGED_MAX:
                raise EditError(f"{STAGED_MAX} changes are staged: apply or discard them before")
            apply_edits(self._bases(held.state), staged)
            return replace(held.state, staged=staged)

        return self._change(add)

    def discard(self) -> LayoutState:
        """Forget the staged edits."""
        return self._change(lambda held: replace(held.state, staged=()))

    def propose(self, state: LayoutState, usage: Usage) -> Proposal:
        """Return the rings that follow from the staged edits."""
        wanted = apply_edits(self._bases(state), state.staged)
        for builder in wanted.values():
            if builder.devs_changed or builder.rows is None:
                settle(builder, seed=state.version)
        return Proposal(wanted, make_plan(self.builders(state), wanted, usage, rate=state.rate))

    def apply(self, usage: Usage, *, force: bool = False) -> tuple[LayoutState, LayoutPlan]:
        """Make the staged edits the target; raise ``Objections`` if something speaks against it."""
        held = self._store.read()
        if any(ring.is_splitting for ring in held.state.rings.values()):
            raise EditError("a part power is being increased; wait for its end: swift-layout watch")
        if not held.state.staged:
            raise EditError("nothing is staged; begin with: swift-layout add, drain or another change")
        proposal = self.propose(held.state, usage)
        if proposal.plan.objections and not force:
            raise Objections(_refusal(proposal.plan))
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        rings = dict(held.state.rings)
        for ring in proposal.plan.rings:
            target = proposal.targets[ring.name]
            after[ring.name] = self._store.add_builder(target)
            if ring.name in rings:
                before[ring.name] = rings[ring.name].builder
            else:
                # A new ring has nothing to move.
                rings[ring.name] = RingState(after[ring.name])
        text = "; ".join(map(str, held.state.staged))
        state = replace(held.state, staged=(), rings=rings)
        if len(rings) > len(held.state.rings):
            state = replace(state, version=state.version + 1, issued_s=self._now())
        state = state.with_change(text, before, after, self._now(), moves=proposal.plan.moves)
        self._store.write(state, held.etag)
        return state, proposal.plan

    def increase_part_power(self, name: str) -> LayoutState:
        """Let a ring of objects have twice as many partitions; this cannot be reverted."""

        def begin(held: Held) -> LayoutState:
            state = held.state
            if name not in state.rings or not is_object_ring(name):
                objects = ", ".join(filter(is_object_ring, sorted(state.rings)))
                raise EditError(f"{name} is no ring of objects; there are {objects}")
            if state.is_moving:
                raise EditError("another change is under way; wait for its end: swift-layout watch")
            builder = self._store.read_builder(state.rings[name].builder)
            # Raises, so that nothing begins that cannot be prepared.
            prepare_increase(builder)
            state = state.with_change(f"increase the part power of {name}", {}, {}, self._now())
            return state.with_ring(name, replace(state.rings[name], is_splitting=True))

        return self._change(begin)

    def revert(self, usage: Usage, number: int = 0, *, force: bool = False) -> LayoutState:
        """Go back to the rings before a change, 0: the last one; changes after it are undone as well."""
        held = self._store.read()
        change = _change_to_revert(held.state, number)
        if not change.before or any(ring.is_splitting for ring in held.state.rings.values()):
            raise EditError(f"change {change.number} cannot be reverted: {change.text}")
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        targets: dict[str, RingBuilder] = {}
        undone = [each for each in held.state.changes if each.number >= change.number]
        for each in reversed(undone):
            after.update(each.before)
        for name, builder in after.items():
            before[name] = held.state.rings[name].builder
            target = self._store.read_builder(builder)
            now = self._store.read_builder(before[name])
            if target.part_power != now.part_power:
                raise EditError(f"ring {name} has more partitions since then, which cannot be undone")
            united_devices(now, target)
            targets[name] = target
        plan = make_plan(self.builders(held.state), targets, usage, rate=held.state.rate)
        if plan.objections and not force:
            raise Objections(_refusal(plan))
        text = f"revert change {change.number}"
        state = held.state.with_change(text, before, after, self._now(), moves=plan.moves)
        numbers = {each.number for each in undone}
        changes = tuple(
            replace(each, state="reverted") if each.number in numbers else each for each in state.changes
        )
        state = replace(state, changes=changes)
        self._store.write(state, held.etag)
        return state

    def pause(self, reason: str) -> LayoutState:
        """Let no further step begin."""
        return self._change(lambda held: replace(held.state, paused=reason or "by an operator"))

    def resume(self) -> LayoutState:
        """Let steps go on."""
        return self._change(lambda held: replace(held.state, paused=""))

    def _bases(self, state: LayoutState) -> dict[str, RingBuilder]:
        """Return the builders that edits start from: the present rows with the devices of the target."""
        found = {}
        for name, ring in state.rings.items():
            builder = self._store.read_builder(ring.builder)
            if ring.target:
                target = self._store.read_builder(ring.target)
                kept = {dev["id"] for dev in target.live_devs}
                leaving = [dev["id"] for dev in builder.live_devs if dev["id"] not in kept]
                builder.adopt(united_devices(builder, target), list(builder.rows or ()), ())
                for dev_id in leaving:
                    builder.remove_device(dev_id)
                builder.set_replicas(target.replicas)
                builder.devs_changed = True
            found[name] = builder
        return found

    def _change(self, change: Callable[[Held], LayoutState]) -> LayoutState:
        """Store what ``change`` makes of the state, again if another client was first."""
        for _ in range(TRIES):
            held = self._store.read()
            state = change(held)
            if state == held.state:
                return state
            try:
                self._store.write(state, held.etag)
                return state
            except Conflict:
                continue
        raise Conflict("the layout is changed by others all the time; try again")


def _change_to_revert(state: LayoutState, number: int) -> Change:
    if not state.changes:
        raise EditError("nothing was changed yet, so there is nothing to revert")
    if not number:
        return next((each for each in reversed(state.changes) if each.state != "reverted"), state.changes[-1])
    for change in state.changes:
        if change.number == number:
            return change
    raise EditError(f"there is no change {number}; see: swift-layout history")
