"""Observation of a container after sharding work: recon lists and warnings (account-container.md §19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.documents import JsonObject
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container import shardtable
from swift.container.broker import SHARDED, SHARDING, ContainerBroker, ContainerFacts, root_path
from swift.container.sharding import overview
from swift.container.sharding.overview import Overview
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.shardtable import ShardQuery
from swift.platform.disk import Disk
from swift.runtime.report import Counters


@dataclass(frozen=True)
class Observer:
    """Looks at containers of one device; ``warn`` takes a line for the log."""

    overview: Overview
    settings: ContainerSharderSettings
    counters: Counters
    warn: Callable[[str], None]

    def look(self, broker: ContainerBroker, node_index: int | None, now: Timestamp, seconds: float) -> None:
        """Note how a container stands ``seconds`` after its visit began. Raises as ``db.connection``."""
        broker.refresh()
        info = broker.info()
        own = broker.read(lambda connection: shardtable.own_range(connection, broker.own_name), merged=False)
        if own is None:
            own = ShardRange(broker.own_name, now.normal, state=State.ACTIVE)
        ranges = broker.shard_ranges(ShardQuery())
        lists: dict[str, JsonObject] = {}
        facts = self._facts(broker, info, own, node_index)
        if own.state == State.ACTIVE and info.object_count >= self.settings.shard_container_threshold:
            lists[overview.SHARDING] = facts
        if broker.read(broker.is_root):
            lists |= self._of_root(info, own, ranges, facts, now, seconds)
            if info.db_state in (SHARDING, SHARDED):
                self._audit(broker, info, own, ranges, now)
        self._warn_of_slowness(broker, info, own, ranges, now)
        self.overview.note(broker.place.directory, lists)

    def _facts(
        self, broker: ContainerBroker, info: ContainerFacts, own: ShardRange, node_index: int | None
    ) -> JsonObject:
        path = broker.newest.path
        return {
            "account": info.account,
            "container": info.container,
            "file_size": broker.call(_size_of, path),
            "meta_timestamp": own.meta_timestamp,
            "node_index": node_index,
            "object_count": info.object_count,
            "path": path,
            "root": root_path(info.metadata) or broker.own_name,
            "tombstones": own.tombstones,
        }

    def _of_root(
        self,
        info: ContainerFacts,
        own: ShardRange,
        ranges: list[ShardRange],
        facts: JsonObject,
        now: Timestamp,
        seconds: float,
    ) -> dict[str, JsonObject]:
        settings, lists = self.settings, dict[str, JsonObject]()
        small = overview.compactible(
            ranges,
            own,
            shrink_below=settings.shrink_below,
            expand_to=settings.expand_to,
            max_shrinking=settings.max_shrinking,
            max_expanding=settings.max_expanding,
        )
        if info.db_state == SHARDED and small:
            lists[overview.SHRINKING] = {**facts, "compactible_ranges": small}
        is_new = now.seconds - Timestamp(own.state_timestamp).seconds < settings.recon_sharded_timeout
        if info.db_state == SHARDING or (own.state == State.SHARDED and is_new):
            lists[overview.PROGRESS] = {
                **facts,
                **overview.state_counts(ranges),
                "db_state": info.db_state,
                "state": own.state.name.lower(),
                "error": None,
                "processing_time": seconds,
            }
            if own.state == State.SHARDED and own.epoch:
                took_s = Timestamp(own.state_timestamp).seconds - Timestamp(own.epoch).seconds
                lists[overview.PROGRESS]["total_sharding_time"] = took_s
        return lists

    def _audit(
        self,
        broker: ContainerBroker,
        info: ContainerFacts,
        own: ShardRange,
        ranges: list[ShardRange],
        now: Timestamp,
    ) -> None:
        audit = overview.audit_root(ranges, own, is_complete=info.db_state == SHARDED)
        self.counters.add("audit_root_attempted")
        self.counters.add("audit_root_failure" if audit.gaps else "audit_root_success")
        if audit.overlaps:
            self.counters.add("audit_root_has_overlap")
            self.counters.add("audit_root_num_overlap", len(audit.overlaps))
        for words in audit.words():
            self._warn(broker, words[:7], now, f"the shards of {broker.own_name} have {words}")

    def _warn_of_slowness(
        self,
        broker: ContainerBroker,
        info: ContainerFacts,
        own: ShardRange,
        ranges: list[ShardRange],
        now: Timestamp,
    ) -> None:
        if info.db_state != SHARDING or not own.epoch:
            return
        seconds = now.seconds - Timestamp(own.epoch).seconds
        if seconds <= self.settings.container_sharding_timeout:
            return
        counts = ", ".join(f"{count} {name}" for name, count in overview.state_counts(ranges).items())
        words = f"{broker.own_name} is being split for {seconds:.0f} s, its shards are {counts}"
        self._warn(broker, "slow", now, words)

    def _warn(self, broker: ContainerBroker, kind: str, now: Timestamp, words: str) -> None:
        directory = broker.place.directory
        if self.overview.may_warn(directory, kind, now.seconds, self.settings.periodic_warnings_interval):
            self.warn(f"WARNING {words} (in {broker.newest.path})")


def _size_of(disk: Disk, path: str) -> int:
    return disk.stat(path).st_size
