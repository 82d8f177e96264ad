"""Maintenance of the packed engine's objects by daemons: find, audit, purge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import md5

from swift.policy.policy import Policy
from swift.store.api import (
    LIVE,
    AuditReport,
    Found,
    Location,
    ObjectKey,
    ObjectState,
    Pace,
    ReadOptions,
    SyncedVersion,
)
from swift.store.core import TRIES
from swift.store.errors import Damaged, FilesChanged
from swift.store.layout import data_name, tombstone_name
from swift.store.maintenance import FileMaintenance, archive_walk
from swift.store.packed.compaction import Compactor
from swift.store.packed.devices import PackedDevices
from swift.store.packed.edit import removal
from swift.store.packed.entry import Entry
from swift.store.packed.files import remove, unlink_removed
from swift.store.packed.lost import LostRanges
from swift.store.packed.objects import PackedLoaded
from swift.store.packed.place import Place
from swift.store.packed.quarantine import quarantine
from swift.store.packed.record import BadRecord, Kind
from swift.store.reader import ANY_NAME

#: Bytes of a body that are fed to a check at a time.
PIECE_BYTES = 1 << 20


class PackedMaintenance:
    """``Maintenance`` of the packed engine."""

    def __init__(self, devices: PackedDevices):
        self._devices = devices
        self._files = FileMaintenance(devices.core)

    def _place(self, location: Location) -> Place:
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        return self._devices.place(key)

    def find(self, location: Location, options: ReadOptions) -> Found:
        place = self._place(location)
        for _ in range(TRIES):
            loaded = self._devices.load(place, options, open_data=False)
            try:
                return self._files.found(location, loaded.state)
            except Damaged as error:
                self._files.check_may_move(location, error)
                self._quarantine(place, loaded.entries, str(error))
        raise FilesChanged(f"{location.hash} on {place.device.path} is repeatedly damaged")

    def _quarantine(self, place: Place, entries: list[Entry], reason: str) -> bool:
        """Quarantine an object unless it changed; return True if it did not."""
        with place.device.holding(place.lock):
            now = place.entries()
            if now != entries:
                return False
            quarantine(place, entries, reason)
            return True

    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        """See ``Maintenance``; records have no partial files, and always checksums."""
        place = self._place(location)
        options = ReadOptions(self._devices.core.clock.time(), open_expired=True)
        for _ in range(TRIES):
            entries = place.entries()
            try:
                loaded = self._devices.load(place, options, open_data=True, quarantines=False)
            except Damaged as error:
                self._files.check_may_move(location, error)
                if self._quarantine(place, entries, str(error)):
                    return AuditReport(Found(None, ObjectState()), str(error))
                continue
            try:
                return self._audit_loaded(location, loaded, full, pace)
            except Damaged as error:
                self._files.check_may_move(location, error)
                if self._quarantine(place, loaded.entries, str(error)):
                    return AuditReport(Found(None, ObjectState()), str(error))
            except FilesChanged:
                continue
            finally:
                if loaded.file is not None and loaded.file.fd is not None:
                    self._devices.core.disk.close(loaded.file.fd)
        raise FilesChanged(f"{location.hash} on {place.device.path} keeps changing")

    def reading_order(self, device: str, policy: Policy) -> list[str]:
        """See ``Maintenance``: the volumes, unless there may be files that the index does not have."""
        opened = self._devices.device(device)
        if not opened.conversion.is_indexed(policy.index):
            return []
        return [str(number) for number in opened.volumes.numbers()]

    def locations_in(self, device: str, part: str, policies: Sequence[Policy]) -> Iterator[Location]:
        """See ``Maintenance``: the volume is read from its beginning to its end."""
        opened = self._devices.device(device)
        by_index = {policy.index: policy for policy in policies}
        compactor = Compactor(self._devices.core.disk, opened)
        try:
            volume = opened.volumes.open_anew(int(part))
        except FileNotFoundError:
            # It was compacted; its objects are in newer ones.
            return
        lost = LostRanges()
        for position, header in opened.volumes.scan(volume, 0, lost.add):
            lost.pass_record(position, header)
            policy = by_index.get(header.policy)
            if policy is None:
                continue
            for spot in compactor.spots(position, header):
                # Metadata of POSTs is audited with the body.
                if header.kind is Kind.DATA or all(entry.kind is not Kind.DATA for entry in spot.entries):
                    yield Location(device, str(spot.partition), policy, header.hash.hex())
        if lost.unreadable_bytes:
            self._devices.core.notice(
                f"ERROR {lost.unreadable_bytes} bytes of {opened.volumes.path(volume.number)} cannot be read"
            )

    def _audit_loaded(self, location: Location, loaded: PackedLoaded, full: bool, pace: Pace) -> AuditReport:
        found = self._files.found(location, loaded.state)
        if found.state.kind != LIVE:
            return AuditReport(found)
        walk = archive_walk(location.policy, found.state)
        if not full:
            return AuditReport(found)
        if loaded.file is not None:
            read = self._files.read_all(loaded.file, pace, walk)
            return AuditReport(found, None, read, loaded.file.data_path)
        assert loaded.record is not None
        try:
            body = loaded.record.body()
        except BadRecord:
            body = loaded.record.raw_body()
        pace(len(body))
        digest = md5(body, usedforsecurity=False).hexdigest()
        if digest != found.state.metadata.get("ETag"):
            raise Damaged(f"MD5 of the body is {digest}, not {found.state.metadata.get('ETag')}")
        if walk is not None:
            walk.feed(body)
            walk.finish()
        return AuditReport(found, None, len(body))

    def quarantine(self, location: Location, reason: str) -> None:
        place = self._place(location)
        with place.device.holding(place.lock):
            entries = place.entries()
            if entries:
                quarantine(place, entries, reason)

    def purge(self, location: Location, synced: SyncedVersion) -> bool:
        place = self._place(location)
        with place.device.holding(place.lock):
            entries = place.entries()
            gone = self._removable(place, entries, synced)
            if gone:
                # Without what made them obsolete they would count again.
                obsolete = place.obsolete(entries, place.reader())
                gone.extend(entry for entry in obsolete if entry not in gone and entry.external)
                remove(place, place.partition, gone)
            return len(gone) == len(entries)

    def purge_all(self, purges: Sequence[tuple[Location, SyncedVersion]]) -> None:
        """See ``Maintenance``: all of it is one batch."""
        by_place = {
            (location.device, location.policy.index, location.hash): 0 for location, _synced in purges
        }
        if len(by_place) < len(purges) or len({device for device, _policy, _hash in by_place}) > 1:
            for location, synced in purges:
                self.purge(location, synced)
            return
        places = [(self._place(location), synced) for location, synced in purges]
        with ExitStack() as held:
            for lock in sorted({place.lock for place, _synced in places}):
                held.enter_context(places[0][0].device.holding(lock))
            changes = []
            for place, synced in places:
                entries = place.entries()
                gone = self._removable(place, entries, synced)
                if gone:
                    changes.append((place, removal(place, place.partition, gone, entries)))
            if changes:
                changes[0][0].device.commit_all([change for _place, change in changes])
            for place, change in changes:
                unlink_removed(place, change.updates[0])

    def _removable(self, place: Place, entries: list[Entry], synced: SyncedVersion) -> list[Entry]:
        at, index = synced.timestamp, synced.fragment
        wanted = {tombstone_name(at)}
        if not place.key.policy.is_ec:
            wanted.add(data_name(at))
        elif index is not None:
            wanted.add(data_name(at, index, durable=True))
            if synced.durable or self._is_abandoned(place, entries, data_name(at, index)):
                wanted.add(data_name(at, index))
        gone = [entry for entry in entries if entry.name in wanted]
        left = [entry for entry in entries if entry not in gone]
        if not gone or any(entry.kind is Kind.DATA for entry in left):
            return gone
        metas = [entry for entry in left if entry.kind is Kind.META]
        if any(entry.kind is Kind.TOMBSTONE for entry in gone):
            # Metadata above a tombstone is never offered: alone it would keep its partition here.
            return metas + gone
        if any(entry.timestamp > (synced.meta_timestamp or at) for entry in metas):
            # Metadata that was posted since then is offered with its data.
            return []
        return gone if synced.keeps_metadata else metas + gone

    def remove_lone_metadata(self, locations: Sequence[Location]) -> None:
        for location in locations:
            place = self._place(location)
            with place.device.holding(place.lock):
                entries = place.entries()
                if entries and all(entry.kind is Kind.META for entry in entries):
                    remove(place, place.partition, entries)

    def _is_abandoned(self, place: Place, entries: list[Entry], name: str) -> bool:
        """Return True if an uncommitted archive is so old that no commit is on its way."""
        core = self._devices.core
        for entry in entries:
            if entry.name == name:
                if entry.external:
                    path = f"{core.object_path(place.key).directory}/{name}"
                    written_s = core.disk.stat(path).st_mtime
                else:
                    written_s = place.reader().record(entry).header.written_ns / 1e9
                return written_s < core.clock.time() - core.rules.reclaim.commit_window_s
        return False

    def change_token(self, device: str, partition: str, policy: Policy) -> str:
        row = self._devices.partitions(device).row(int(partition), policy)
        return f"packed-{row.sequence:x}/packed" if row else ""

    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        row = self._devices.partitions(device).row(int(partition), policy)
        if row is None:
            return math.inf
        idle_ns = self._devices.core.disk.now_ns() - row.changed_ns
        # A clock that was set back says nothing.
        return idle_ns / 1e9 if idle_ns >= 0 else math.inf

    def confirm(self, device: str, partitions: Sequence[str], policy: Policy) -> None:
        opened = self._devices.device(device)
        if opened.confirmation.confirm(policy.index, map(int, partitions)):
            self._devices.core.notice(
                f"all partitions of {opened.path} were found equal to other replicas since records were lost"
            )

    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``Maintenance``: whatever is in the index is durable."""
        self._devices.device(device)

    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        self._devices.device(device)
        return self._files.prepare(device, policy, before_s)

    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        partitions = self._devices.partitions(device)
        if any(partitions.objects(int(partition), policy)):
            return False
        return self._files.remove_partition(device, partition, policy) and partitions.remove(
            int(partition), policy
        )

    def __repr__(self) -> str:
        return f"<PackedMaintenance of {self._devices!r}>"
