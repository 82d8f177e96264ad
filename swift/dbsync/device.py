"""Replication of one database: clean it, sync it to its primaries, remove it if it is a handoff.

Spec: account-container.md §13. A database is compared with its copies one after another. One that does not
belong here is brought to where it does and then removed. One that was deleted long ago is removed, one that
is broken or lies under a wrong name is quarantined. Failures are counted and never end the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from swift.base.errors import LockTimeout, NoSpace
from swift.base.misplaced import MisplacedGuard
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken, DatabaseError, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.verify import quarantine_and_log
from swift.dbsync import handoffs
from swift.dbsync.kind import Replication
from swift.dbsync.reclaim import age, reclaim, remove_temporary
from swift.dbsync.remote import NodeFailed, NodeSkipped, RemoteDatabase
from swift.dbsync.replica import Replica
from swift.dbsync.session import RemoteUnmounted, ReplicationSession
from swift.ring.device import Node
from swift.ring.view import RingView
from swift.runtime.daemon import PassContext


class DeviceReplication:
    """The databases of one device during one pass."""

    def __init__(self, replication: Replication, device: str, pass_context: PassContext):
        context = replication.context
        self._replication = replication
        self._device = device
        self._pass_context = pass_context
        self._counters = pass_context.counters
        self._log = context.telemetry.log
        self._disk = context.disk_at(device, replication.disk)
        self._engine = Engine.at(self._disk, self._log.warning)
        self._misplaced = MisplacedGuard()
        #: The partitions of databases that were moved away.
        self.quarantined: set[int] = set()
        #: Failures of each node: address → device → count.
        self.failed: dict[str, dict[str, int]] = {}

    def replicate(self, place: DatabasePath) -> bool:
        """Replicate one database; whatever goes wrong is counted and logged.

        True when all its copies are equal now and nothing is left to be done.
        """
        started_s = self._pass_context.clock.monotonic()
        replica = self._replication.kind.replica_at(place, self._engine)
        in_order = False
        try:
            if replica.broker.refresh():
                self._counters.add("attempts")
                if self._check_location(replica):
                    in_order = self._process(replica)
        except DatabaseMissing:
            # It was removed or replaced while we looked; the next pass sees what is there.
            return False
        except DatabaseBroken as error:
            self._counters.add("failures")
            self._quarantine(place, error)
        except (DatabaseError, LockTimeout, NoSpace, OSError) as error:
            self._counters.add("failures")
            self._replication.context.telemetry.faults.note(self._device, error)
            self._log.error(f"ERROR cannot replicate {place.directory}: {error}")
        finally:
            replica.broker.close()
        self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)
        return in_order

    # --- is it what it seems -----------------------------------------------------------------------

    def _check_location(self, replica: Replica) -> bool:
        """Return True if the directory matches the names in the database; else quarantine it."""
        names = replica.broker.read(replica.names, merged=False)
        place = replica.broker.place
        if self._replication.context.hasher.hexdigest(*names) == place.name_hash:
            self._misplaced.note_fitting(self._device)
            replica.broker.names = names
            return True
        self._counters.add("failures")
        what = f"{place.directory} holds the database of {'/'.join(names)}"
        if self._misplaced.may_move(self._device):
            self._quarantine(place, DatabaseBroken(place.file(), what))
        else:
            # With wrong hash path settings everything would look misplaced.
            self._log.error(f"ERROR {what}; are the hash path settings in swift.conf right?")
        return False

    def _quarantine(self, place: DatabasePath, why: DatabaseBroken) -> None:
        note = partial(self._replication.context.telemetry.faults.note, self._device)
        if quarantine_and_log(self._disk, place, why, tell=self._log_error, note=note):
            self.quarantined.add(self._replication.ring.view().partition_of(bytes.fromhex(place.name_hash)))

    def _log_error(self, text: str) -> None:
        self._log.error(f"ERROR {text}")

    # --- where does it belong ----------------------------------------------------------------------

    def _process(self, replica: Replica) -> bool:
        """See ``replicate``."""
        shared, broker = self._replication, replica.broker
        now = Timestamp(shared.context.clock.time())
        self._clean(replica, now)
        before = age(now, shared.settings.reclaim_age)
        if broker.read(lambda connection: replica.old.is_reclaimable(connection, before)):
            if handoffs.remove(broker, lambda c: replica.old.is_reclaimable(c, before)):
                self._counters.add(f"removes.{self._device}")
            return False
        view = shared.ring.view()
        part = view.partition_of(bytes.fromhex(broker.place.name_hash))
        primaries = view.primaries(part)
        index = self._own_index(view, primaries)
        if str(part) != broker.place.partition:
            index = None
            self._log.error(
                f"Found {broker.place.directory} when it should be on partition {part}; will replicate out "
                "and remove."
            )
        # A copy here is removed only if nothing has changed since this moment.
        seen = broker.read(replica.info)
        others = primaries if index is None else (*primaries[index + 1 :], *primaries[:index])
        answers = self._sync_nodes(replica, view, part, others, now)
        if shared.kind.afterwards is not None:
            shared.kind.afterwards(replica, view, shared.context.hasher, answers)
        if index is None:
            self._remove_handoff(replica, seen, answers)
            return False
        return all(answers) and not broker.read(replica.holds_unsplit_rows)

    def _clean(self, replica: Replica, now: Timestamp) -> None:
        """Reclaim old rows and remove temporary files."""
        reclaim_age, place = self._replication.settings.reclaim_age, replica.broker.place
        reclaim(replica.broker, replica.old, now, reclaim_age)
        before_s = now.seconds - reclaim_age
        self._disk.call(remove_temporary, place.directory, ".tmp", before_s)

    def _own_index(self, view: RingView, primaries: Sequence[Node]) -> int | None:
        """Return this device's index among the primaries, None for a handoff."""
        ids = self._replication.own.ids(view)
        found = (n for n, node in enumerate(primaries) if node.id in ids and node.device == self._device)
        return next(found, None)

    # --- telling others ----------------------------------------------------------------------------

    def _sync_nodes(
        self, replica: Replica, view: RingView, part: int, nodes: Sequence[Node], now: Timestamp
    ) -> list[bool]:
        """Sync the database to nodes; return their success.

        Handoffs replace unmounted devices. Handoffs stand in for unmounted devices.
        """
        waiting = list(nodes)
        handoff_nodes = view.handoffs(part)
        own_ids = self._replication.own.ids(view)
        answers = []
        while waiting:
            node = waiting.pop(0)
            try:
                self._session(replica, part, node, view, now).run()
            except RemoteUnmounted as error:
                self._log.error(f"ERROR Remote drive not mounted: {error}")
                spare = next((n for n in handoff_nodes if not self._is_this_device(n, own_ids)), None)
                if spare is not None:
                    waiting.append(spare)
                self._count_result(node, False)
                answers.append(False)
            except NodeFailed as error:
                say = self._log.debug if isinstance(error, NodeSkipped) else self._log.error
                say(f"ERROR syncing {replica.broker.place.directory} with {node.replication_key}: {error}")
                self._count_result(node, False)
                answers.append(False)
            else:
                self._count_result(node, True)
                answers.append(True)
        return answers

    def _is_this_device(self, node: Node, own_ids: frozenset[int]) -> bool:
        return node.id in own_ids and node.device == self._device

    def _session(
        self, replica: Replica, part: int, node: Node, view: RingView, now: Timestamp
    ) -> ReplicationSession:
        shared = self._replication
        here = next((view.devices[n] for n in shared.own.ids(view)), None)
        remote = RemoteDatabase(
            shared.access,
            node,
            part,
            replica.broker.place.name_hash,
            disk=self._disk,
            is_remote_region=here is not None and node.region != here.region,
        )
        return ReplicationSession(
            replica,
            remote,
            shared.settings,
            self._counters,
            now=now,
            many_policies=len(shared.context.policies) > 1,
        )

    def _count_result(self, node: Node, came_through: bool) -> None:
        self._counters.add("successes" if came_through else "failures")
        if not came_through:
            devices = self.failed.setdefault(node.replication_ip, {})
            devices[node.device] = devices.get(node.device, 0) + 1

    # --- leaving -----------------------------------------------------------------------------------

    def _remove_handoff(self, replica: Replica, seen: dict[str, object], answers: Sequence[bool]) -> None:
        """Remove a handoff database if enough nodes have all of it."""
        needed = self._replication.settings.handoff_delete
        enough = sum(answers) >= min(needed, len(answers)) if needed else all(answers)
        if not enough or not answers:
            return

        def is_unchanged(connection: Any) -> bool:
            have = replica.info(connection)
            # The time of creation is only ever learned from the nodes just told.
            changed = {name for name in have if have[name] != seen[name]} - {"created_at"}
            return not changed and not replica.holds_unsplit_rows(connection)

        if handoffs.remove(replica.broker, is_unchanged):
            self._counters.add(f"removes.{self._device}")
