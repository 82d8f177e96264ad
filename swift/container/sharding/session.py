"""Sharding of one container (spec: account-container.md §19.3).

A visit takes a container a few steps on: what its root knows of it is learned, rows that belong elsewhere are
moved, the own range decides whether there is a second file, the leader among the replicas looks for cuts, and
every replica creates the shards of what was found and brings its own rows to them. Each step can be repeated:
rows are merged into shards, and ranges of a newer time win, wherever a visit was broken off. A root whose
shards are all small takes them in again: its own range becomes active, and its shards shrink into it as into
any neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from swift.base.shardrange import UPDATING_STATES, ShardRange, State, merge, with_counts
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.container import objecttable, shardtable
from swift.container.broker import COLLAPSED, SHARDED, SHARDING, UNSHARDED, ContainerBroker, root_path
from swift.container.rows import ObjectRow
from swift.container.sharding import shrink
from swift.container.sharding.context import CleaveContext
from swift.container.sharding.delivery import ShardDelivery
from swift.container.sharding.files import begin_epoch, remove_retiring
from swift.container.sharding.overview import audit_root
from swift.container.sharding.roots import Roots
from swift.container.sharding.scan import find_cuts, in_state, ranges_of_cuts
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.shardtable import ShardQuery
from swift.db.schema import max_row
from swift.http import fields
from swift.runtime.report import Counters

_SPLITTING = frozenset((State.SHARDING, State.SHARDED, State.SHRINKING, State.SHRUNK))
_CLEAVABLE = frozenset((State.CREATED, State.CLEAVED, State.ACTIVE, State.SHARDING))
_EVERY_RANGE = ShardQuery(include_deleted=True, include_own=True)
#: Rows that a root gets at a time, as many as replication sends together.
_ROWS_OF_MESSAGE = 1000


class ShardingSession:
    """One container, once; ``broker`` is refreshed."""

    def __init__(
        self,
        broker: ContainerBroker,
        settings: ContainerSharderSettings,
        roots: Roots,
        delivery: ShardDelivery,
        counters: Counters,
        *,
        now: Timestamp,
        is_leader: bool,
        replica_count: int,
    ):
        self._broker = broker
        self._settings = settings
        self._roots = roots
        self._delivery = delivery
        self._counters = counters
        self._now = now
        self._is_leader = is_leader
        self._quorum = replica_count // 2 + 1
        self._info = broker.info()
        self._is_root = broker.read(broker.is_root)
        self._root = root_path(self._info.metadata) or broker.own_name
        #: True if anything was done or is left to be done.
        self.is_at_rest = True

    # --- facts ----------------------------------------------------------------------------------------

    @property
    def is_candidate(self) -> bool:
        """True if the container is to be split, or was split."""
        value = self._info.metadata.get(fields.SYSMETA_SHARDING.title(), ("", ""))[0]
        return is_true(value) or bool(self._broker.shard_ranges(_EVERY_RANGE))

    def _own(self) -> ShardRange:
        broker = self._broker
        stored = broker.read(
            lambda connection: shardtable.own_range(connection, broker.own_name), merged=False
        )
        if stored is not None:
            return stored
        made = Timestamp(self._info.put_timestamp).normal
        return ShardRange(broker.own_name, made, state=State.ACTIVE)

    def _others(self, states: frozenset[State] = frozenset()) -> list[ShardRange]:
        return self._broker.shard_ranges(ShardQuery(states=states))

    def _merge(self, *ranges: ShardRange) -> None:
        self._broker.merge_shard_ranges(ranges)
        self.is_at_rest = False

    def _note(self, event: str) -> None:
        self._counters.add(event)
        self.is_at_rest = False

    # --- the visit ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all steps; raises the errors of ``db.connection``, OSError and ``UnexpectedResponse``."""
        self._counters.add("visited_attempted")
        if not self._is_root:
            self._learn_from_root()
        elif self._has_gaps():
            # Which shard a row belongs to is not known until an operator has filled them.
            return
        self._move_misplaced()
        self._begin()
        if len(self._broker.databases) > 1:
            if self._own().state == State.SHARDING:
                if self._is_leader:
                    self._find()
                self._create_found()
            if self._cleave():
                self._finish()
        elif self._is_root and self._is_leader and self._broker.info().db_state == SHARDED:
            self._advance_shards()
        if not self._is_root:
            self._report()
        if not self.is_at_rest:
            # The other replicas hear of the ranges.
            self._delivery.deliver(self._broker.place)

    def _learn_from_root(self) -> None:
        """Fetch the shard's state from the root."""
        own = self._own()
        found = self._roots.auditing_ranges(self._root, own)
        news = [item for item in found if item.name == self._broker.own_name]
        for item in news:
            # Newer bounds have a newer timestamp: the shard is to fill a gap.
            is_newer = Timestamp(item.timestamp) > Timestamp(own.timestamp)
            if is_newer or Timestamp(item.state_timestamp) > Timestamp(own.state_timestamp) or item.deleted:
                self._merge(item)
        own = self._own()
        if own.state in (State.SHRINKING, State.SHRUNK):
            have = {item.name: item for item in self._others()}
            acceptors = [
                item
                for item in found
                if item.name != own.name
                and not item.deleted
                and item.state == State.ACTIVE
                and item.namespace.overlaps(own.lower, own.upper)
                and (item.name not in have or merge(have[item.name], item) is not have[item.name])
            ]
            if acceptors:
                self._merge(*acceptors)
        if own.deleted and not self._info.is_deleted and self._may_be_removed(own):
            self._broker.delete(self._now)

    def _may_be_removed(self, own: ShardRange) -> bool:
        is_old = Timestamp(own.timestamp).seconds + self._settings.reclaim_age < self._now.seconds
        return is_old and len(self._broker.databases) == 1 and self._broker.read(self._broker.is_empty)

    def _has_gaps(self) -> bool:
        """Return True if names of a sharded root belong to none of its shards."""
        state = self._info.db_state
        if state not in (SHARDING, SHARDED):
            return False
        audit = audit_root(self._others(), self._own(), is_complete=state == SHARDED)
        return bool(audit.gaps)

    # --- misplaced rows -------------------------------------------------------------------------------

    def _move_misplaced(self) -> None:
        """Rows of this container that belong to shards, or to neighbours, go there."""
        own, state = self._own(), self._broker.info().db_state
        # The rows of a shard whose range was deleted by hand stay here, as with OpenStack Swift's sharder.
        has_given_up = own.deleted and own.state in (State.SHARDED, State.SHRINKING, State.SHRUNK)
        is_split = len(self._broker.databases) > 1 or state == SHARDED or has_given_up
        is_bounded = bool(own.lower or own.upper)
        if not is_split and not is_bounded:
            return
        if self._is_root and own.state == State.ACTIVE and not self._others(UPDATING_STATES):
            # Its shards shrink into it: the rows are where they belong.
            return
        after, batch = 0, self._settings.cleave_row_batch_size
        while True:
            start = after
            if is_split:
                rows = self._broker.read(lambda c: objecttable.all_rows(c, start, batch))  # noqa: B023
            else:
                rows = self._broker.read(
                    lambda c: objecttable.rows_outside(c, own.lower, own.upper, start, batch)  # noqa: B023
                )
            if not rows:
                return
            self._note("misplaced_attempted")
            self._distribute(rows)
            after = rows[-1][0]

    def _distribute(self, rows: list[tuple[int, ObjectRow]]) -> None:
        targets = self._others(UPDATING_STATES)
        if not self._is_root and not all(_target_of(row.name, targets) for _, row in rows):
            names = [row.name for _, row in rows]
            targets += self._roots.updating_ranges(self._root, min(names), max(names))
        targets = [item for item in targets if item.name != self._broker.own_name]
        groups: dict[str, tuple[ShardRange, list[tuple[int, ObjectRow]]]] = {}
        for row_id, row in rows:
            target = _target_of(row.name, targets)
            if target is not None:
                groups.setdefault(target.name, (target, []))[1].append((row_id, row))
        for target, moved in groups.values():
            if self._put_into(target, [row for _, row in moved], is_new=False):
                row_ids = [row_id for row_id, _ in moved]
                self._broker.write(lambda c, ids=row_ids: objecttable.remove_rows(c, ids))  # type: ignore[misc]
                self._note("misplaced_success")
            else:
                self._note("misplaced_failure")

    def _put_into(self, target: ShardRange, rows: list[ObjectRow], *, is_new: bool) -> bool:
        """Merge rows into a shard on this device and bring it home; whether enough nodes have it."""
        return self._fill(target, rows) and self._push_to_shard(target, is_new=is_new)

    def _fill(self, target: ShardRange, rows: list[ObjectRow]) -> bool:
        """Merge rows into a shard on this device; a root gets them at its nodes: whether enough took them.

        A root is not made here, lest a container come back that was deleted meanwhile.
        """
        if target.name == self._root:
            known = [self._own(), *(item for item in self._others() if item.name == target.name)]
            took = (self._roots.merge_rows(self._root, some, known, self._now) for some in _parts(rows))
            return all(count >= self._enough(is_new=False) for count in took)
        broker = self._delivery.open_shard(
            target, self._broker.place.device_path, self._root, self._info.storage_policy_index, self._now
        )
        try:
            broker.merge_shard_ranges([target])
            if rows:
                broker.merge_rows(rows)
        finally:
            broker.close()
        return True

    def _enough(self, *, is_new: bool) -> int:
        """Return the number of nodes that must have rows before they count as moved."""
        settings = self._settings
        wanted = settings.shard_replication_quorum if is_new else settings.existing_shard_replication_quorum
        return self._quorum if wanted < 0 else wanted

    def _push_to_shard(self, target: ShardRange, *, is_new: bool) -> bool:
        if target.name == self._root:
            return True
        broker = self._delivery.open_shard(
            target, self._broker.place.device_path, self._root, self._info.storage_policy_index, self._now
        )
        place = broker.place
        broker.close()
        return self._delivery.deliver(place) >= self._enough(is_new=is_new)

    # --- beginning ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make the second file when the own range says that the container is split."""
        broker, own, info = self._broker, self._own(), self._broker.info()
        if len(broker.databases) > 1 or info.db_state not in (UNSHARDED, COLLAPSED):
            return
        others = self._others()
        is_large = info.object_count >= self._settings.shard_container_threshold
        may_start = self._is_root and self._is_leader and self._settings.auto_shard and not info.is_deleted
        if own.state == State.ACTIVE and is_large and may_start:
            own = in_state(own, State.SHARDING, self._now, epoch=True)
            self._merge(own)
        if own.state in _SPLITTING and own.epoch and (others or self._is_leader):
            begin_epoch(broker, own.epoch)
            self._note("sharding_begun")

    # --- finding and creating shards ------------------------------------------------------------------

    def _find(self) -> None:
        broker, own, settings = self._broker, self._own(), self._settings
        others = self._others()
        if not others or (others[-1].upper != own.upper and others[-1].upper):
            after = others[-1].upper if others else ""
            cuts, _is_last = broker.read(
                lambda connection: find_cuts(
                    connection,
                    own,
                    self._info.storage_policy_index,
                    rows=settings.shard_rows,
                    minimum=settings.minimum_rows,
                    after=after,
                    limit=settings.shard_scanner_batch_size,
                ),
                database=broker.oldest,
            )
            account, _, root = self._root.partition("/")
            found = ranges_of_cuts(cuts, account, root, broker.container, self._now, len(others))
            if found:
                self._merge(*found)
                self._note("scanned_found")

    def _create_found(self) -> None:
        """Create the shards of ranges that were found here, by the leader, or by an operator's tool.

        Every replica does, so that a container is split while its leader is away.
        """
        broker = self._broker
        found = self._others(frozenset((State.FOUND,)))
        if found and not self._roots.tell_replicas(broker.own_name, found):
            # Rows go to shards from now on: whichever servers are asked for all rows, one is to name them.
            self._note("created_failure")
            return
        for item in found:
            made = in_state(item, State.CREATED, self._now)
            if not self._roots.create_shard(made, self._root, self._info.storage_policy_index):
                self._note("created_failure")
                return
            self._merge(made)
            self._note("created_success")

    # --- cleaving -------------------------------------------------------------------------------------

    def _cleave(self) -> bool:
        """Bring the next shards their rows; whether all have them."""
        broker, own = self._broker, self._own()
        retiring = broker.oldest
        ref, last_row = broker.read(_identity, database=retiring)
        context = CleaveContext.load(broker.info().metadata, ref, last_row)
        if context.cleave_to_row is None or (context.cleaving_done and last_row > context.cleave_to_row):
            context.start(last_row)
        ready = [item for item in self._others() if item.state in _CLEAVABLE or item.state == State.FOUND]
        filled = 0
        while not context.cleaving_done and filled < self._settings.cleave_batch_size:
            cursor = context.cursor or own.lower
            item = next((each for each in ready if _comes_next(each, cursor)), None)
            if item is None or item.state == State.FOUND:
                # A gap, or a shard that has no containers yet.
                break
            count = self._cleave_into(item, own)
            if count is None:
                self._note("cleaved_failure")
                break
            self._note("cleaved_success")
            filled += bool(count) or item.state != State.CREATED
            context.cursor = item.upper
            context.ranges_done += 1
            context.cleaving_done = not item.upper or bool(own.upper and item.upper >= own.upper)
        context.ranges_todo = sum(1 for each in ready if _comes_after(each, context.cursor or own.lower))
        if context.cleaving_done:
            context.ranges_todo = 0
        context.misplaced_done = True
        context.store(broker, self._now)
        self.is_at_rest = False
        return context.cleaving_done

    def _cleave_into(self, item: ShardRange, own: ShardRange) -> int | None:
        """Copy the old file's rows of a shard; how many objects, None when too few nodes have them."""
        broker, batch = self._broker, self._settings.cleave_row_batch_size
        retiring = broker.oldest
        lower = max(item.lower, own.lower)
        upper = min((text for text in (item.upper, own.upper) if text), default="")
        objects, size, tombstones = broker.read(
            lambda connection: objecttable.counts_inside(connection, lower, upper), database=retiring
        )
        is_new = item.state == State.CREATED
        if is_new:
            item = with_counts(in_state(item, State.CLEAVED, self._now), objects, size, tombstones, self._now)
        is_filled, after = self._fill(item, []), 0
        while is_filled:
            start = after
            rows = broker.read(
                lambda connection: objecttable.rows_inside(connection, lower, upper, start, batch),  # noqa: B023
                database=retiring,
            )
            if not rows:
                break
            is_filled = self._fill(item, [row for _, row in rows])
            after = rows[-1][0]
        if not is_filled or not self._push_to_shard(item, is_new=is_new):
            return None
        if is_new:
            self._merge(item)
        return objects

    # --- finishing ------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Remove the old file, because all rows are in shards."""
        broker, own, now = self._broker, self._own(), self._now
        if own.state not in _SPLITTING or own.epoch is None:
            return
        if broker.place.epoch_of(broker.newest.path) != Timestamp(own.epoch).normal:
            return
        ref, _last_row = broker.read(_identity, database=broker.oldest)
        context = CleaveContext.load(broker.info().metadata, ref, -1)
        done = {State.SHARDING: State.SHARDED, State.SHRINKING: State.SHRUNK}.get(own.state, own.state)
        changed = [in_state(each, State.ACTIVE, now) for each in self._others(frozenset((State.CLEAVED,)))]
        if own.state != done:
            own = with_counts(in_state(own, done, now), 0, 0, 0, now)
            if not self._is_root:
                own = replace(own, timestamp=now.normal, deleted=True)
            changed.append(own)
        if changed:
            self._merge(*changed)
        assert context.cleave_to_row is not None
        if remove_retiring(broker, context.cleave_to_row):
            context.delete(broker, now)
            self._note("completed")

    # --- a split container ----------------------------------------------------------------------------

    def _advance_shards(self) -> None:
        """Split large shards and merge small ones, as the leader of a sharded root."""
        own, others = self._own(), self._others(UPDATING_STATES | {State.SHRINKING})
        if not self._settings.auto_shard or own.deleted:
            return
        if own.state == State.ACTIVE:
            self._end_collapse(own, others)
        elif own.state == State.SHARDED and _tiles(others, own):
            self._split_large(others)
            self._merge_small(others, own)

    def _split_large(self, shards: list[ShardRange]) -> None:
        for item in shards:
            if item.state == State.ACTIVE and item.object_count >= self._settings.shard_container_threshold:
                large = in_state(item, State.SHARDING, self._now, epoch=True)
                self._merge(large)
                self._roots.tell_shard(large, [large], self._root)

    def _merge_small(self, shards: list[ShardRange], own: ShardRange) -> None:
        mergings = shrink.find_mergings(
            shards,
            own,
            shrink_below=self._settings.shrink_below,
            expand_to=self._settings.expand_to,
            max_shrinking=self._settings.max_shrinking,
            max_expanding=self._settings.max_expanding,
        )
        for merging in mergings:
            self._begin_merging(merging)

    def _end_collapse(self, own: ShardRange, shards: list[ShardRange]) -> None:
        """Finish a collapse in which some nodes of the remaining shards were not updated."""
        left = [item for item in shards if item.state == State.ACTIVE]
        if left:
            self._begin_merging((left, own))

    def _begin_merging(self, merging: shrink.Merging) -> None:
        donors, acceptor = shrink.apply(merging, self._now)
        # Donors first: they redirect requests for their rows to the acceptor.
        if not all(self._roots.tell_shard(donor, [donor, acceptor], self._root) for donor in donors):
            return
        self._merge(*donors, acceptor)
        self._note("shrinking_found")
        if acceptor.name != self._broker.own_name:
            self._roots.tell_shard(acceptor, [acceptor], self._root)

    # --- telling the root -----------------------------------------------------------------------------

    def _report(self) -> None:
        """Report the shard's statistics and state to the root."""
        own = self._own()
        if own.state < State.CLEAVED:
            return
        broker = self._broker
        if not own.deleted and len(broker.databases) == 1:
            facts = broker.read(
                lambda connection: objecttable.counts_inside(connection, own.lower, own.upper)
            )
            if facts != (own.object_count, own.bytes_used, own.tombstones):
                own = replace(with_counts(own, *facts, self._now), reported=False)
                self._merge(own)
        if own.reported:
            return
        ranges = self._broker.shard_ranges(_EVERY_RANGE)
        if own.state in (State.SHRINKING, State.SHRUNK):
            # A replica of the root that missed it is to learn, together with the end of this shard, who has
            # its names now: else it would list neither.
            ranges = [item for item in ranges if item.name == own.name or not item.deleted]
        if self._roots.tell_root(self._root, ranges, broker.own_name):
            self._merge(replace(self._own(), reported=True))
            self._note("reported")
        else:
            self._note("report_failure")


def _parts(rows: list[ObjectRow]) -> Iterator[list[ObjectRow]]:
    """Rows as many as a message takes."""
    for start in range(0, len(rows), _ROWS_OF_MESSAGE):
        yield rows[start : start + _ROWS_OF_MESSAGE]


def _identity(connection: object) -> tuple[str, int]:
    row = connection.execute("SELECT id FROM container_info").fetchone()  # type: ignore[attr-defined]
    return row[0], max_row(connection, "object")  # type: ignore[arg-type]


def _target_of(name: str, targets: list[ShardRange]) -> ShardRange | None:
    return next((item for item in targets if item.includes(name)), None)


def _comes_after(item: ShardRange, cursor: str) -> bool:
    return not item.upper or item.upper > cursor


def _comes_next(item: ShardRange, cursor: str) -> bool:
    return item.lower <= cursor and _comes_after(item, cursor)


def _tiles(ranges: list[ShardRange], own: ShardRange) -> bool:
    """Return True if ranges cover the namespace without gap or overlap."""
    end = own.lower
    for number, item in enumerate(ranges):
        if item.lower != end or (number and not end):
            return False
        end = item.upper
    return bool(ranges) and end == own.upper
