"""Space of a packed device: its use, and the return of what is dead; calls block, callers have a handle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

from swift.base.digits import is_digits
from swift.base.errors import NoSpace
from swift.platform.disk import names_in
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, Pace
from swift.store.calls import Effort, effort
from swift.store.chooser import remove_if_empty
from swift.store.handle import Handle, method
from swift.store.layout import is_suffix, objects_dir
from swift.store.lmdbindex import Writing
from swift.store.packed import rows
from swift.store.packed.compaction import CompactionReport, Compactor, volume_uses
from swift.store.packed.devices import PackedDevices
from swift.store.packed.place import Place, external_entry
from swift.store.packed.repack import Repacker, has_hashes
from swift.store.reader import ANY_NAME


@dataclass(frozen=True, slots=True)
class VolumeSpace:
    """Space of one volume, bytes."""

    number: int
    size: int
    dead: int
    #: Space on the device, without holes.
    allocated: int

    @property
    def dead_percent(self) -> float:
        """Part that compaction would return."""
        return 100 * self.dead / self.size if self.size else 0.0

    @property
    def punchable(self) -> int:
        """Dead bytes that are no holes yet, roughly."""
        return max(self.dead - max(self.size - self.allocated, 0), 0)


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """Space of a device, bytes."""

    volumes: int = 0
    volume_bytes: int = 0
    live_bytes: int = 0
    dead_bytes: int = 0
    index_bytes: int = 0
    #: Of volumes: what was there could not be indexed.
    lost_bytes: int = 0

    def as_facts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


class PackedSpace:
    """The space of the devices of one process. Raises ``DeviceUnavailable``, OSError."""

    def __init__(self, devices: PackedDevices):
        self._devices = devices

    @effort(Effort.AUDIT)
    def use(self, device: str) -> SpaceUse:
        """Return how the space of a device is used."""
        opened = self._devices.device(device)
        uses = volume_uses(opened)
        return SpaceUse(
            len(uses),
            sum(use.end for use in uses),
            sum(min(use.live, use.end) for use in uses),
            sum(use.dead for use in uses),
            opened.read_index(lambda index, _spaces: index.size_bytes()),
            sum(use.lost for use in uses),
        )

    @effort(Effort.AUDIT)
    def volumes(self, device: str) -> list[VolumeSpace]:
        """Return the volumes of a device."""
        opened, found = self._devices.device(device), []
        for use in volume_uses(opened):
            try:
                status = self._devices.core.disk.stat(opened.volumes.path(use.number))
            except FileNotFoundError:
                continue
            found.append(VolumeSpace(use.number, use.end, use.dead, status.st_blocks * 512))
        return found

    @effort(Effort.AUDIT)
    def compact(self, device: str, number: int, pace: Pace) -> CompactionReport:
        """Copy what is live of a volume to others and remove it. Raises ``NoSpace``."""
        return Compactor(self._devices.core.disk, self._devices.device(device), pace).compact(number)

    @effort(Effort.AUDIT)
    def punch(self, device: str, number: int, pace: Pace) -> int:
        """Make holes of large dead bodies of a volume; return their bytes."""
        return Compactor(self._devices.core.disk, self._devices.device(device), pace).punch(number)

    @effort(Effort.AUDIT)
    def forget_volumes(self, device: str) -> list[int]:
        """Remove the rows of volumes that are gone; return their numbers.

        One in which something lived was not compacted: what it said of older records is lost with it. Their
        numbers do not come again, because others speak of what was in them.
        """
        opened = self._devices.device(device)
        opened.check_not_replaced()
        known = opened.read_index(lambda index, _spaces: list(rows.volumes(index)))
        there = set(opened.volumes.numbers())
        # A compaction leaves nothing alive before it removes a volume.
        now = opened.read_index(lambda index, _spaces: rows.volumes(index))
        gone = [number for number in known if number in now and number not in there]
        if not gone:
            return []
        lost = [number for number in gone if now[number].live_bytes]
        if lost:
            opened.confirmation.lose()
            self._devices.core.notice(
                f"ERROR volumes {', '.join(map(str, lost))} of {opened.path} were removed with live records: "
                "objects may be missing or old on this device until replication restores them"
            )
        try:
            opened.writer.begin_volume_above(max(gone))
        except NoSpace:
            return []
        for number in gone:
            opened.change_index(partial(_forget_volume, number))
        return gone

    @effort(Effort.AUDIT)
    def directories(self, device: str, policy: Policy) -> list[str]:
        """Return the partitions of a policy that have files."""
        path = objects_dir(self._devices.device(device).path, policy)
        return sorted(filter(is_digits, names_in(self._devices.core.disk, path)), key=int)

    @effort(Effort.AUDIT)
    def take_arrivals(self, device: str, partition: str, policy: Policy, since_s: float) -> int:
        """Convert files that came from outside since a moment (Unix seconds); return their number.

        Raises ``NoSpace``, ``LockTimeout``.
        """
        path = f"{objects_dir(self._devices.device(device).path, policy)}/{partition}"
        disk = self._devices.core.disk
        if has_hashes(disk, path):
            return 0
        repacker = Repacker(self._devices, device, policy)
        return repacker.take_arrivals(int(partition), names_in(disk, path), since_s)

    @effort(Effort.AUDIT)
    def remove_orphans(self, device: str, partition: str, policy: Policy, before_s: float) -> int:
        """Remove files that no record names, older than ``before_s`` (Unix seconds); return their number.

        A file is written before its record. Where files count without records, none is removed.
        """
        opened, removed = self._devices.device(device), 0
        if opened.conversion.may_have_unindexed(policy.index, int(partition)):
            return 0
        path = f"{objects_dir(opened.path, policy)}/{partition}"
        if has_hashes(self._devices.core.disk, path):
            self._devices.core.notice(
                f"{path} was changed by the file engine, so files without a record stay; run "
                "swift-object-repack --to packed"
            )
            return 0
        for suffix in filter(is_suffix, names_in(self._devices.core.disk, path)):
            for name in names_in(self._devices.core.disk, f"{path}/{suffix}"):
                if len(name) == 32 and name.endswith(suffix):
                    place = self._devices.place(ObjectKey(device, partition, policy, ANY_NAME, name))
                    removed += self._remove_unnamed(place, f"{path}/{suffix}/{name}", before_s)
            remove_if_empty(self._devices.core.disk, f"{path}/{suffix}")
        return removed

    def _remove_unnamed(self, place: Place, directory: str, before_s: float) -> int:
        disk = self._devices.core.disk
        names = names_in(disk, directory)
        old = [name for name in names if self._is_old(f"{directory}/{name}", before_s)]
        if names and not old:
            return 0
        removed = 0
        with place.device.holding(place.lock):
            index = place.device.index
            # A file that becomes durable gets its name before the index knows.
            known = {entry._replace(durable=False).name for entry in place.entries() if entry.external}
            unnamed = []
            for name in old:
                entry = external_entry(name, place.key.policy)
                if entry is not None and entry._replace(durable=False).name not in known:
                    unnamed.append(name)
            objection = place.device.agreement.objection(index) if unnamed else ""
            if objection:
                place.core.notice(f"files without a record stay in {directory}: {objection}")
                return 0
            for name in unnamed:
                disk.unlink(f"{directory}/{name}")
                removed += 1
            remove_if_empty(disk, directory)
        return removed

    def _is_old(self, path: str, before_s: float) -> bool:
        try:
            status = self._devices.core.disk.stat(path)
        except FileNotFoundError:
            return False
        # Links are counted by the time of change.
        return max(status.st_mtime, status.st_ctime) < before_s

    def __repr__(self) -> str:
        return f"PackedSpace({self._devices!r})"


def _forget_volume(number: int, writing: Writing) -> None:
    rows.delete_volume(writing, number)


class SpaceHandle(Handle[PackedSpace]):
    """The space of one device, each call made where it may block."""

    use = method(PackedSpace.use)
    volumes = method(PackedSpace.volumes)
    compact = method(PackedSpace.compact)
    punch = method(PackedSpace.punch)
    forget_volumes = method(PackedSpace.forget_volumes)
    directories = method(PackedSpace.directories)
    take_arrivals = method(PackedSpace.take_arrivals)
    remove_orphans = method(PackedSpace.remove_orphans)
