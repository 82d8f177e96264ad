"""Base of daemons whose work is divided by device."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict, TypeVar, Unpack

from swift.base.errors import DeviceUnavailable, LockTimeout, NoSpace
from swift.db import walk
from swift.db.broker import Broker
from swift.db.connection import DatabaseBroken, DatabaseError, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.unchanged import Scan, UnchangedDatabases
from swift.db.verify import quarantine_and_log
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.selection import Selection

B = TypeVar("B", bound=Broker)


class DeviceTaskParts(TypedDict, total=False):
    """Dependencies of a task that have defaults: the disks, the order of devices, all devices."""

    disk: Disk | None
    rng: random.Random | None
    selection: Selection | None


class DeviceTask:
    """The half of a ``daemon.DaemonTask`` that knows devices."""

    def __init__(self, context: BackendContext, **parts: Unpack[DeviceTaskParts]):
        self.context = context
        self.disk = parts.get("disk") or Disk()
        self.rng = parts.get("rng") or random.Random()
        self.selection = parts.get("selection") or Selection()

    def shares(self) -> list[str]:
        """Return the names of the selected devices, in random order."""
        names = self.selection.filter_devices(self.context.devices.names())
        self.rng.shuffle(names)
        return names

    def disk_at(self, device: str) -> DiskHandle:
        """Return the handle of a device's disk."""
        return self.context.disk_at(device, self.disk)

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return nothing beyond the progress of the pass."""
        return {}


class DevicePassBase:
    """The half of a ``daemon.Pass`` that belongs to its device."""

    #: Counter of devices that cannot be walked.
    unavailable_event = "errors"

    def __init__(self, task: DeviceTask, device: str, pass_context: PassContext):
        context = task.context
        self._device_task = task
        self._device = device
        self._pass_context = pass_context
        self._counters = pass_context.counters
        self._log = context.telemetry.log
        self._disk = task.disk_at(device)

    def _count_device_error(self, error: Exception) -> None:
        """Count an error of the device; one of another kind counts elsewhere."""
        self._device_task.context.telemetry.faults.note(self._device, error)

    def _device_path(self) -> str | None:
        """Return the device's path; None, counted and logged, when the device is missing."""
        try:
            return self._device_task.context.devices.path(self._device)
        except DeviceUnavailable:
            self._counters.add(self.unavailable_event)
            self._log.warning(f"skipping {self._device} as it is not mounted")
            return None

    def facts(self) -> dict[str, object]:
        """Return nothing beyond the counts."""
        return {}

    def end(self) -> None:
        """Release nothing."""


class DatabasePassBase(DevicePassBase):
    """The half of a pass over the databases of a device: the walk to them."""

    def _partitions(self, device_path: str, directory: str) -> list[str]:
        """Return the selected partitions of the device's ``accounts`` or ``containers`` in random order."""
        task = self._device_task
        found = walk.partitions(self._disk, device_path, directory, task.rng)
        return [partition for partition in found if task.selection.includes_partition(partition)]

    def _database_paths(self, device_path: str, directory: str, partition: str) -> Iterator[DatabasePath]:
        """Yield the databases of a partition, until the work is to end."""
        for place in walk.places(self._disk, device_path, directory, partition, self._log_unreadable):
            if self._pass_context.stop.requested:
                return
            yield place

    def _log_unreadable(self, error: OSError) -> None:
        """Count and log a directory that cannot be listed; the walk continues beside it."""
        self._counters.add(self.unavailable_event)
        self._count_device_error(error)
        self._log.error(f"ERROR cannot list databases of {self._device}: {error}")

    def _changed_databases(
        self, unchanged_databases: UnchangedDatabases, device_path: str, directory: str, some: Sequence[str]
    ) -> Scan:
        """Return the databases of some partitions, using the record of unchanged databases."""
        scan = unchanged_databases.scan(device_path, directory, some, self._device_task.disk.now_ns())
        for error in scan.unreadable:
            self._log_unreadable(error)
        return scan

    def _process_database(
        self,
        place: DatabasePath,
        open_broker: Callable[[], B | None],
        work: Callable[[B], object],
        *,
        failed: str,
        doing: str,
        expected: tuple[type[Exception], ...] = (),
    ) -> None:
        """Open a database, work on it and close it; its errors and ``expected`` ones count as ``failed``."""
        failures: tuple[type[Exception], ...] = (DatabaseError, LockTimeout, NoSpace, OSError, *expected)
        try:
            broker = open_broker()
            if broker is not None:
                try:
                    work(broker)
                finally:
                    broker.close()
        except DatabaseMissing:
            # It was removed or replaced while we looked; the next pass sees what is there.
            return
        except DatabaseBroken as error:
            self._counters.add(failed)
            self._quarantine_broken(place, error)
        except failures as error:
            self._counters.add(failed)
            self._count_device_error(error)
            self._log.error(f"ERROR cannot {doing} {place.directory}: {error}")

    def _quarantine_broken(self, place: DatabasePath, error: DatabaseBroken) -> None:
        """Quarantine a broken database, so that replication restores it. Only log a misplaced one."""
        if os.path.dirname(error.path) != place.directory:
            self._log.error(f"ERROR cannot process {place.directory}: {error}")
            return
        if quarantine_and_log(self._disk, place, error, tell=self._log_error, note=self._count_device_error):
            self._counters.add("quarantines")

    def _log_error(self, text: str) -> None:
        self._log.error(f"ERROR {text}")

    def _partition_batches(self, partitions: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield partitions, as many as one call of a disk thread takes, until the work is to end."""
        for some in walk.portions(partitions):
            if self._pass_context.stop.requested:
                return
            yield some
