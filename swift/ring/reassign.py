"""Moving partitions of an existing ring towards a plan, as few as possible.

Four steps, each over plain arrays: give every hole a device; pull apart replicas that are too close; let
devices above their quota hand partitions to devices below theirs; and, where that got stuck, pass
partitions on by way of a third device. A partition moves for balance or dispersion at most once, and
only when its minimum time has passed; what was on a removed device moves regardless. Each move is made at
once, so that the next one sees true counts. spec: ring.md §10.9, §10.10
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from swift.ring.device import DeviceRecord
from swift.ring.dispersion import heads_of, levels_of, repeating
from swift.ring.domains import Domain, Domains
from swift.ring.errors import RingValidationError
from swift.ring.plan import Plan
from swift.ring.tiers import Key

_REPORT_EVERY_MOVES = 1024
_ROUNDS_MAX = 3
_HAND_ON_TRIES = 200
_CHAIN_TRIES = 40
_OWN_TIER = -1_000_000
Progress = Callable[[str, int, int], None]


class Reassignment:
    """One rebalance in progress; ``rows`` are changed in place, holes hold ``hole``.

    ``movable`` is non-zero for partitions whose minimum time has passed. ``placed`` collects (partition, row)
    of every replica that was given a device.
    """

    def __init__(
        self,
        plan: Plan,
        records: Sequence[DeviceRecord | None],
        rows: Sequence[array[int]],
        *,
        hole: int,
        movable: bytearray,
        rng: random.Random,
        progress: Progress | None = None,
    ):
        self._plan = plan
        self._records = records
        self._rows = rows
        self._hole = hole
        self._movable = movable
        self._rng = rng
        self._progress = progress
        held: Counter[int] = Counter()
        for row in rows:
            held.update(row)
        held.pop(hole, None)
        self._domains = Domains(plan, records, held, rng)
        self._full_rows = [row for row in rows if len(row) == plan.parts]
        self._short_row = next((row for row in rows if len(row) < plan.parts), array("H"))
        self.placed: set[tuple[int, int]] = set()

    def run(self) -> None:
        """All steps in order. Raises RingValidationError when a replica fits on no device."""
        self._fill_holes()
        self._pull_apart()
        for _ in range(_ROUNDS_MAX):
            if not self._relieve_overweight():
                break
        self._chain_moves()

    # -- one partition ---------------------------------------------------------------------------------

    def _others(self, part: int, row_number: int) -> list[int]:
        """Devices of the partition's other replicas."""
        ids = [row[part] for row in self._full_rows]
        if part < len(self._short_row):
            ids.append(self._short_row[part])
        del ids[row_number]
        hole = self._hole
        return [dev_id for dev_id in ids if dev_id != hole] if hole in ids else ids

    def _place(self, part: int, row_number: int, leaf: Domain) -> None:
        assert leaf.dev_id is not None, "partitions are placed on devices"
        self._rows[row_number][part] = leaf.dev_id
        self._movable[part] = 0
        self.placed.add((part, row_number))

    def _try_move(
        self, part: int, row_number: int, *, need_room: bool, leave_tiers: Sequence[Domain]
    ) -> bool:
        """Move one replica to the roomiest device that is no worse for it; tells whether it moved.

        Tiers of the present device may take the replica back, however full, except ``leave_tiers``.
        """
        leaf = self._domains.by_device[self._rows[row_number][part]]
        counts = self._domains.counts(self._others(part, row_number))
        for domain in leaf.path[:3]:
            if domain not in leave_tiers:
                counts[domain] = _OWN_TIER
        counts[leaf] = 1
        target = self._domains.receiver(counts, leaving=leaf.path, need_room=need_room)
        if target is None:
            return False
        self._domains.move(leaf, target)
        self._place(part, row_number, target)
        return True

    def _report(self, step: str, done: int, total: int) -> None:
        if self._progress is not None and (done % _REPORT_EVERY_MOVES == 0 or done == total):
            self._progress(step, done, total)

    # -- the steps -------------------------------------------------------------------------------------

    def _fill_holes(self) -> None:
        hole = self._hole
        holes = [
            (part, number)
            for number, row in enumerate(self._rows)
            if hole in row
            for part, dev_id in enumerate(row)
            if dev_id == hole
        ]
        self._rng.shuffle(holes)
        for done, (part, number) in enumerate(holes, 1):
            counts = self._domains.counts(self._others(part, number))
            target = (
                self._domains.receiver(counts)
                or self._domains.receiver(counts, need_room=False)
                or self._domains.receiver(counts, need_room=False, disperse=False)
            )
            if target is None:
                raise RingValidationError(f"partition {part} has more replicas than there are devices")
            self._domains.take(target)
            self._place(part, number, target)
            self._report("assigning", done, len(holes))

    def _pull_apart(self) -> None:
        """Move replicas out of domains that hold more of a partition than the plan allows."""
        crowded = self._crowded_parts()
        for done, part in enumerate(crowded, 1):
            self._report("dispersing", done, len(crowded))
            ids = [row[part] for row in self._rows if part < len(row)]
            twice = len(set(ids)) < len(ids)
            if not self._movable[part] and not twice:
                continue
            self._pull_one_apart(part, ids)

    def _crowded_parts(self) -> list[int]:
        """Partitions with more replicas in some domain than the plan's maximum there, in random order."""
        maximum: dict[Key, int] = {tier.key: tier.maximum for tier in self._plan.root.walk()}
        rows = [row for row in self._rows if len(row)]
        found: set[int] = set()
        candidates: Sequence[int] = range(min(len(row) for row in rows))
        extra = range(len(candidates), self._plan.parts)
        for heads, parts in ((heads_of(rows), candidates), (rows[:-1], extra)):
            candidates = parts
            for level in levels_of(self._records):
                limits = [max(1, maximum.get(key, 0)) for key in level.keys]
                candidates, combos = repeating(level, heads, candidates)
                bad = {
                    combo
                    for combo in set(combos)
                    if any(combo.count(number) > limits[number] for number in combo)
                }
                if bad:
                    found.update(part for part, combo in zip(candidates, combos, strict=True) if combo in bad)
        crowded = sorted(found)
        self._rng.shuffle(crowded)
        return crowded

    def _pull_one_apart(self, part: int, ids: list[int]) -> None:
        by_device = self._domains.by_device
        counts = self._domains.counts(ids)
        choices = []
        for number, dev_id in enumerate(ids):
            leaf = by_device[dev_id]
            over = [domain for domain in leaf.path if counts[domain] > max(1, domain.maximum)]
            if over:
                choices.append((-len(over), leaf.room, self._rng.random(), number, over))
        for _, _, _, number, over in sorted(choices, key=lambda choice: choice[:3]):
            if self._try_move(part, number, need_room=True, leave_tiers=over):
                return
        for _, _, _, number, over in sorted(choices, key=lambda choice: choice[:3]):
            if self._try_move(part, number, need_room=False, leave_tiers=over):
                return

    def _relieve_overweight(self) -> bool:
        """One round of handing partitions on; tells whether another round could help."""
        over = {dev_id: -leaf.room for dev_id, leaf in self._domains.by_device.items() if leaf.room < 0}
        if not over:
            return False
        # One number per partition-replica (row x parts + partition): a large ring has a million of them.
        candidates: dict[int, list[int]] = {dev_id: [] for dev_id in over}
        for number, row in enumerate(self._rows):
            for slot, dev_id in enumerate(row, number * self._plan.parts):
                if dev_id in over:
                    candidates[dev_id].append(slot)
        sources = [dev_id for dev_id, excess in over.items() for _ in range(excess)]
        self._rng.shuffle(sources)
        moved = 0
        for done, dev_id in enumerate(sources, 1):
            moved += self._hand_on(candidates[dev_id])
            self._report("balancing", done, len(sources))
        return 0 < moved < len(sources)

    def _hand_on(self, candidates: list[int]) -> bool:
        """Move one of these partition-replicas to a device below its quota."""
        for _ in range(min(_HAND_ON_TRIES, len(candidates))):
            place = int(self._rng.random() * len(candidates))
            number, part = divmod(candidates[place], self._plan.parts)
            candidates[place] = candidates[-1]
            candidates.pop()
            if self._movable[part] and self._try_move(part, number, need_room=True, leave_tiers=()):
                return True
        return False

    def _chain_moves(self) -> None:
        """Let devices still above their quota pass partitions on by way of a device that is just full."""
        over = [leaf for leaf in self._domains.by_device.values() if leaf.room < 0]
        if not over:
            return
        on_device = self._slots_by_device()
        for leaf in over:
            assert leaf.dev_id is not None, "by_device holds devices only"
            tries = _CHAIN_TRIES
            for part, number in on_device.get(leaf.dev_id, []):
                if leaf.room >= 0 or not tries:
                    break
                if self._rows[number][part] == leaf.dev_id and self._may_move(part, number):
                    tries -= 1
                    if not self._try_move(part, number, need_room=True, leave_tiers=()):
                        self._trade(part, number, on_device)

    def _slots_by_device(self) -> dict[int, list[tuple[int, int]]]:
        """(partition, row) of everything a device holds, in random order."""
        on_device: dict[int, list[tuple[int, int]]] = {}
        for number, row in enumerate(self._rows):
            for part, dev_id in enumerate(row):
                on_device.setdefault(dev_id, []).append((part, number))
        for slots in on_device.values():
            self._rng.shuffle(slots)
        return on_device

    def _may_move(self, part: int, number: int) -> bool:
        """Return True if the minimum time has passed, or this very replica is on the move already."""
        return bool(self._movable[part]) or (part, number) in self.placed

    def _trade(self, part: int, number: int, on_device: Mapping[int, list[tuple[int, int]]]) -> bool:
        """Hand a partition to a full device which at once hands another one on; undone if it cannot."""
        row = self._rows[number]
        source = row[part]
        before = self._movable[part], (part, number) in self.placed
        if not self._try_move(part, number, need_room=False, leave_tiers=()):
            return False
        middle = row[part]
        tries = _CHAIN_TRIES
        for other, other_number in on_device.get(middle, []):
            if not tries:
                break
            if self._rows[other_number][other] != middle or not self._may_move(other, other_number):
                continue
            tries -= 1
            if self._try_move(other, other_number, need_room=True, leave_tiers=()):
                return True
        self._domains.move(self._domains.by_device[middle], self._domains.by_device[source])
        row[part] = source
        self._movable[part] = before[0]
        if not before[1]:
            self.placed.discard((part, number))
        return False
