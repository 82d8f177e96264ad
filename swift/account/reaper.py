"""The account reaper: what a deleted account still holds is removed (spec: account-container.md §16).

A deletion only marks the account. Some time later every primary of it removes its share of the containers:
those whose name's MD5 falls to its place among the replicas, so that nodes do not do each other's work. The
account's database itself goes later, when replication finds it empty and old enough.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Unpack

from swift.account.broker import AccountBroker, AccountFacts
from swift.account.reaping import ContainerReaper, RingPlacement
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.base.pages import follow_pages
from swift.cluster.rings import Rings
from swift.config.kinds import SECONDS, integer
from swift.config.schema import Settings, option
from swift.db.broker import Engine
from swift.db.connection import DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from swift.db.stat import as_timestamp
from swift.platform.addresses import matches_any_address, own_addresses
from swift.ring.device import Node
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts

NAME = "account-reaper"
DIRECTORY = "accounts"
#: Containers listed at once, for each replica.
PAGE_ROWS = 1000
EVENTS = (
    "errors",
    *(f"{kind}_{what}" for kind in ("containers", "objects") for what in ("deleted", "failures")),
    *(f"{kind}_{what}" for kind in ("containers", "objects") for what in ("remaining", "possibly_remaining")),
)


@dataclass(frozen=True)
class AccountReaperSettings(Settings):
    """``[account-reaper]`` (spec: cli-and-config.md §3)."""

    interval: float = option(3600.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    concurrency: int = option(
        25,
        "Requests under way at the same time: its square root in containers, and as many in each of them.",
        kind=integer(1),
    )
    delay_reaping: float = option(
        0.0, "Seconds from an account's deletion until its content is removed.", kind=SECONDS
    )
    reap_warn_after: float = option(
        2592000.0,
        "Seconds beyond delay_reaping after which a warning reports an account that still exists.",
        kind=SECONDS,
    )
    node_timeout: float = option(10.0, "Seconds to wait for a node's response.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def width(self) -> int:
        """Containers in work, and objects in each."""
        return math.isqrt(self.concurrency)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, concurrency=self.width, report_interval_s=self.report_interval)


@dataclass
class AccountWork:
    """An account that is being emptied by this node."""

    account: str
    placement: RingPlacement
    own_index: int
    begun_s: float
    containers: int = 0
    done: int = 0
    is_planned: bool = False

    def is_mine(self, container: str) -> bool:
        """Return True if the container is in this node's share."""
        digest = hashlib.md5(container.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
        return int(digest, 16) % len(self.placement.nodes) == self.own_index


@dataclass(frozen=True)
class ReapedContainer:
    """A container to remove."""

    work: AccountWork = field(repr=False)
    path: EntityPath

    def __str__(self) -> str:
        return f"reaping {self.path}"


class AccountReaper(DeviceTask):
    """The task: every device is a share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        rings: Rings,
        settings: AccountReaperSettings,
        **parts: Unpack[DeviceTaskParts],
    ):
        super().__init__(context, **parts)
        self.rings = rings
        self.settings = settings

    def begin(self, share: str, pass_context: PassContext) -> ReaperPass:
        """Return a pass over the device ``share``."""
        return ReaperPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        counts = [result.counts for result in passed.results.values()]
        return {
            "account_reaper_stats": {
                event: sum(each.get(event, 0) for each in counts) for event in (*EVENTS, "accounts")
            },
            "account_reaper_sweep": passed.seconds,
            "account_reaper_last": passed.ended_s,
        }


class ReaperPass(DatabasePassBase):
    """One pass over the accounts of a device."""

    def __init__(self, task: AccountReaper, device: str, pass_context: PassContext):
        context = task.context
        super().__init__(task, device, pass_context)
        self._task = task
        self._engine = Engine.at(self._disk, self._log.warning)
        self._addresses = own_addresses(context.ring_ip)

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[ReapedContainer]:
        """Yield the containers to remove, account by account."""
        path = self._device_path()
        if path is None:
            return
        count = self._task.rings.account.view().partition_count
        for partition in self._partitions(path, DIRECTORY):
            own = self._own_node(int(partition)) if int(partition) < count else None
            if own is None:
                # A copy on its way somewhere else; the primaries reap.
                continue
            for place in self._database_paths(path, DIRECTORY, partition):
                yield from self._containers(place, own)

    def _own_node(self, partition: int) -> tuple[int, tuple[Node, ...]] | None:
        """Return this device's index among a partition's primaries, None if it is none."""
        nodes = self._task.rings.account.primaries(partition)
        port = self._task.context.ring_port
        for index, node in enumerate(nodes):
            addresses = ((node.ip, node.port), (node.replication_ip, node.replication_port))
            if node.device == self._device and any(
                port == at and matches_any_address(ip, self._addresses) for ip, at in addresses
            ):
                return index, nodes
        return None

    def _containers(
        self, place: DatabasePath, own: tuple[int, tuple[Node, ...]]
    ) -> Iterator[ReapedContainer]:
        """Yield this node's share of an account's containers; skips unreadable accounts."""
        try:
            broker = AccountBroker.open_found(place, self._engine)
            if broker is None:
                return
            try:
                yield from self._share(broker, place, own)
            finally:
                broker.close()
        except (DatabaseMissing, FileNotFoundError):
            # It was removed or replaced while we looked; the next pass sees what is there.
            return
        except (SwiftError, OSError) as error:
            self._counters.add("errors")
            self._log.error(f"ERROR cannot reap account database {place.directory}: {error}")

    def _share(
        self, broker: AccountBroker, place: DatabasePath, own: tuple[int, tuple[Node, ...]]
    ) -> Iterator[ReapedContainer]:
        info = broker.info()
        if not self._is_reapable(info, place):
            return
        index, nodes = own
        now_s = self._pass_context.clock.monotonic()
        work = AccountWork(info.account, RingPlacement(int(place.partition), nodes), index, now_s)
        self._log.info(f"Beginning pass on account {info.account}")
        self._counters.add("accounts")
        limit = PAGE_ROWS * len(nodes)
        pages = follow_pages(
            lambda marker: broker.listing(ListingQuery(limit, marker=marker, reserved=True)),
            "",
            lambda row: row[0],
        )
        for name, *_ in chain.from_iterable(pages):
            if work.is_mine(name):
                work.containers += 1
                yield ReapedContainer(work, EntityPath(info.account, name))
        work.is_planned = True
        self._end_of(work)

    def _is_reapable(self, info: AccountFacts, place: DatabasePath) -> bool:
        """Return True if the account was deleted long enough ago and has containers; warns about old ones."""
        if not info.is_status_deleted or not info.container_count:
            return False
        ring, hasher = self._task.rings.account, self._task.context.hasher
        if ring.partition_of(hasher.digest(info.account)) != int(place.partition):
            # This node is not a primary of the account.
            return False
        settings = self._task.settings
        over_s = (
            self._pass_context.clock.time()
            - as_timestamp(info.delete_timestamp).seconds
            - settings.delay_reaping
        )
        if over_s < 0:
            return False
        if over_s >= settings.reap_warn_after:
            since = as_timestamp(info.delete_timestamp).isoformat
            self._log.warning(f"Account {info.account} has not been reaped since {since}")
        return True

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: ReapedContainer) -> None:
        """Remove a container and all that it holds."""
        work = unit.work
        reaper = ContainerReaper(
            self._task.context,
            self._task.rings,
            self._task.settings,
            unit.path,
            work.placement,
            width=self._task.settings.width,
            counters=self._counters,
            stop=self._pass_context.stop,
        )
        try:
            reaper.reap()
        finally:
            work.done += 1
            self._end_of(work)

    def _end_of(self, work: AccountWork) -> None:
        """Say so when an account's share is through."""
        if not work.is_planned or work.done < work.containers:
            return
        seconds = self._pass_context.clock.monotonic() - work.begun_s
        self._counters.timing("timing", seconds)
        self._log.info(
            f"Completed pass on account {work.account}: {work.containers} containers, {seconds:.1f}s"
        )


DAEMON = Daemon(
    NAME,
    "account",
    "Remove what deleted accounts still hold.",
    AccountReaperSettings,
    lambda parts: AccountReaper(parts.context, parts.rings, parts.settings, selection=parts.selection),
    small_cluster={"interval": 60},
)
