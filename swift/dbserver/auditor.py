"""The database auditors: every database of this node is opened and read, broken ones are moved away.

Spec: account-container.md §15. What only accounts or only containers have is the ``AuditKind``'s. Reading
finds damage while other replicas are still whole; replication then brings the database back from them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Unpack

from swift.base.errors import SwiftError
from swift.db import files
from swift.db.broker import Broker, Engine
from swift.db.connection import DatabaseBroken, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.verify import WHOLE_BYTES_MAX, quarantine_broken, verify_files
from swift.platform.disk import Disk
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.devicetask import DatabasePassBase, DeviceTask, DeviceTaskParts


@dataclass(frozen=True)
class AuditKind:
    """Differences between account and container auditors."""

    #: ``account`` or ``container``.
    server_type: str
    #: Of the devices: ``accounts`` or ``containers``.
    directory: str
    #: Of the database, the one with many rows.
    table: str
    #: The refreshed broker of a database on disk, None when there is none.
    open_found: Callable[[DatabasePath, Engine], Broker | None]
    #: The names whose hash the database lies under, read through the broker as servers read it.
    names: Callable[[Any], tuple[str, ...]]
    #: Sentences about totals that are not what rows say.
    totals: Callable[[sqlite3.Connection], list[str]]

    @property
    def daemon(self) -> str:
        """E.g. ``account-auditor``."""
        return f"{self.server_type}-auditor"


class DatabaseAuditor(DeviceTask):
    """The task: every device is a share."""

    def __init__(
        self,
        context: BackendContext,
        kind: AuditKind,
        *,
        whole_bytes_max: int = WHOLE_BYTES_MAX,
        **parts: Unpack[DeviceTaskParts],
    ):
        self.name = kind.daemon
        super().__init__(context, **parts)
        self.kind = kind
        self.whole_bytes_max = whole_bytes_max

    def begin(self, share: str, pass_context: PassContext) -> DatabaseAuditPass:
        """Return a pass over the device ``share``."""
        return DatabaseAuditPass(self, share, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass (middleware.md, ``/recon/auditor``)."""
        kind = self.kind.server_type
        counts = [result.counts for result in passed.results.values()]
        return {
            f"{kind}_audits_since": passed.ended_s - passed.seconds,
            f"{kind}_audits_passed": sum(each.get("passes", 0) for each in counts),
            f"{kind}_audits_failed": sum(each.get("failures", 0) + each.get("errors", 0) for each in counts),
            f"{kind}_auditor_pass_completed": passed.seconds,
        }


class DatabaseAuditPass(DatabasePassBase):
    """One pass over the databases of a device."""

    def __init__(self, task: DatabaseAuditor, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._engine = Engine.at(self._disk, self._log.warning)

    def plan(self) -> Iterator[DatabasePath]:
        """Yield the hash directories of all databases, partitions in random order."""
        path = self._device_path()
        if path is None:
            return
        directory = self._task.kind.directory
        for partition in self._partitions(path, directory):
            yield from self._database_paths(path, directory, partition)

    def do(self, unit: DatabasePath) -> None:
        """Audit one database."""
        started_s = self._pass_context.clock.monotonic()
        try:
            found = self._disk.call(_inodes, unit)
            try:
                problems = self._problems(unit)
            except DatabaseBroken as error:
                self._disk.call(self._quarantine, unit, found, error)
                return
        except (DatabaseMissing, FileNotFoundError):
            # It was removed or replaced while we looked; the next pass sees what is there.
            return
        except (SwiftError, OSError) as error:
            self._counters.add("errors")
            self._count_device_error(error)
            self._log.error(f"ERROR cannot audit {unit.directory}: {error}")
            return
        finally:
            self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)
        if problems is None:
            return
        for problem in problems:
            self._log.error(f"ERROR {self._task.kind.server_type} database {unit.directory}: {problem}")
        self._counters.add("failures" if problems else "passes")

    def _problems(self, place: DatabasePath) -> list[str] | None:
        """Return the inconsistencies of a sound database; None if it does not exist."""
        kind = self._task.kind
        broker = kind.open_found(place, self._engine)
        if broker is None:
            return None
        try:
            problems = []
            names = kind.names(broker)
            if self._task.context.hasher.hexdigest(*names) != place.name_hash:
                problems.append(f"that of {'/'.join(names)} does not belong there")
            limit = self._task.whole_bytes_max
            return problems + verify_files(broker, kind.table, kind.totals, whole_bytes_max=limit)
        finally:
            broker.close()

    def _quarantine(
        self, disk: Disk, place: DatabasePath, found: list[tuple[str, int]], error: DatabaseBroken
    ) -> None:
        """Move a broken database away, if it still is the one that was read.

        A server may have done so already, and replication brought a sound one.
        """
        with files.locked(disk, place):
            if _inodes(disk, place) != found:
                raise DatabaseMissing(error.path, "was replaced")
            moved = quarantine_broken(disk, place, error)
        if moved is None:
            self._log.error(f"{error}; valid when read again, so it was not quarantined")
            return
        self._counters.add("failures")
        self._counters.add("quarantines")
        self._log.error(f"{error}; quarantined to {moved}")


def _inodes(disk: Disk, place: DatabasePath) -> list[tuple[str, int]]:
    """Return which database files there are; raises OSError."""
    return [(path, disk.stat(path).st_ino) for path in files.database_files(disk, place)]
