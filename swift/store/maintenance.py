"""Maintenance of the filesystem engine's objects by daemons: find, audit and purge.

Daemons know objects by their hash directories, so a key is made from what the files say. Whatever is
wrong is quarantined on the way; what changes meanwhile is looked at again. Forgetting (``purge``) removes
exactly the files that another node is known to have, while the object is held, and only after what was
removed before them is durable: otherwise a power cut could bring back something older than what was
forgotten (spec: object-disk.md §7, §8, §12, replication.md §5.2, §7).

``FragmentWalk`` checks that an archive is a row of whole fragments of one index (spec: replication.md §4).

An archive's MD5 tells that it is what was written; the headers in it tell that what was written can be
decoded. Bytes are fed in any pieces.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import md5

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.ec.fragment import HEADER_BYTES, BadFragment, FragmentHeader
from swift.http import fields
from swift.platform.disk import Disk, names_in
from swift.platform.durable import make_directories
from swift.platform.locks import file_lock, lock_directory
from swift.platform.regularfiles import IrregularFile, open_regular
from swift.platform.syncing import sync_directory
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
from swift.store.chooser import remove_if_empty
from swift.store.core import TRIES, EngineCore
from swift.store.errors import Damaged, FilesChanged, MisplacedLeft
from swift.store.hashes import HASHES_FILE, JOURNAL_FILE, LOCK_FILE, journal_idle_s, journal_token
from swift.store.layout import (
    DATA,
    META,
    ObjectPath,
    UnexpectedName,
    data_name,
    is_rsync_temporary,
    is_suffix,
    objects_dir,
    parse_name,
    partition_dir,
    temporary_dir,
    tombstone_name,
)
from swift.store.metadata import CHECKSUM_ATTRIBUTE, AttributesTooLarge, read_metadata_blob, write_attribute
from swift.store.partitionlock import REPLICATION_LOCK_FILE
from swift.store.reader import ANY_NAME, Loaded, list_names

#: Metadata without which a fragment archive is useless (object-disk.md §5).
_EC_NEEDED = ("Content-Length", fields.SYSMETA_EC_FRAG_INDEX.title(), fields.SYSMETA_EC_ETAG.title())


class FragmentWalk:
    """Steps from header to header through the bytes of an archive."""

    def __init__(self, index: str):
        self._index = index
        self._head = b""
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raises ``Damaged``."""
        position = 0
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
                continue
            wanted = HEADER_BYTES - len(self._head)
            self._head += data[position : position + wanted]
            position += wanted
            if len(self._head) == HEADER_BYTES:
                self._take_header()

    def _take_header(self) -> None:
        try:
            header = FragmentHeader.parse(self._head)
        except BadFragment as error:
            raise Damaged(str(error))
        if str(header.index) != self._index:
            raise Damaged(f"a fragment of index {header.index} is in the archive of index {self._index}")
        self._head, self._skip = b"", header.payload_size

    def finish(self) -> None:
        """Finish the check of an archive; raises ``Damaged`` for an incomplete fragment."""
        if self._head or self._skip:
            raise Damaged("the archive ends inside a fragment")


def archive_walk(policy: Policy, state: ObjectState) -> FragmentWalk | None:
    """Return the checker of an EC object's archive; raises ``Damaged`` if required metadata is missing."""
    if not policy.is_ec:
        return None
    for name in _EC_NEEDED:
        if name not in state.metadata:
            raise Damaged(f"metadata lacks {name}")
    return FragmentWalk(state.metadata[_EC_NEEDED[1]])


READ_BYTES = 1 << 20
#: Beginning of the names of files in which auditors keep their place.
AUDITOR_STATUS = "auditor_status_"


def _is_meta_until(name: str, timestamp: Timestamp) -> bool:
    """Return True if a file is metadata not newer than ``timestamp``: what it says was handed over with
    it.
    """
    try:
        return name.endswith(META) and parse_name(name).timestamp <= timestamp
    except UnexpectedName:
        return False


def _sync_object(disk: Disk, directory: str) -> None:
    """Make the files of a hash directory durable, and their names. What vanishes meanwhile is superseded."""
    for name in names_in(disk, directory):
        try:
            fd = open_regular(disk, f"{directory}/{name}", os.O_RDONLY)
        except (FileNotFoundError, IrregularFile):
            # Only a file needs a sync; audits find the others.
            continue
        try:
            disk.fsync(fd)
        finally:
            disk.close(fd)
    _sync_if_there(disk, directory)


def _sync_if_there(disk: Disk, directory: str) -> None:
    try:
        sync_directory(disk, directory)
    except (FileNotFoundError, NotADirectoryError):
        return


class FileMaintenance:
    """``Maintenance`` of the filesystem engine."""

    def __init__(self, core: EngineCore):
        self._core = core

    def _object_path(self, location: Location) -> ObjectPath:
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        return self._core.object_path(key)

    # --- find ----------------------------------------------------------------------------------------

    def find(self, location: Location, options: ReadOptions) -> Found:
        object_path = self._object_path(location)
        for _ in range(TRIES):
            _, loaded = self._core.loaded(object_path.key, options, open_data=False)
            try:
                return self.found(location, loaded.state)
            except Damaged as error:
                self.check_may_move(location, error)
                self._core.quarantine(object_path, str(error))
        raise FilesChanged(f"{object_path.directory} is repeatedly damaged")

    def found(self, location: Location, state: ObjectState) -> Found:
        """Return the state with the key that its name makes.

        Raises ``Damaged`` for a name of another hash.
        """
        name = state.metadata.get("name")
        if name is None:
            return Found(None, state)
        parts = name.split("/", 3)
        if len(parts) != 4 or parts[0]:
            raise Damaged(f"{name!r} names no object")
        path = EntityPath(*parts[1:])
        if self._core.hasher.hexdigest(*path) != location.hash:
            raise Damaged(f"{name!r} does not belong into {location.hash}", is_misplaced=True)
        self._core.misplaced.note_fitting(location.device)
        return Found(
            ObjectKey(location.device, location.partition, location.policy, path, location.hash), state
        )

    def check_may_move(self, location: Location, error: Damaged) -> None:
        """Raise ``MisplacedLeft`` for a misplaced object that may be in its place by other settings."""
        if error.is_misplaced and not self._core.misplaced.may_move(location.device):
            raise MisplacedLeft(f"{error}; are the hash path settings in swift.conf right?")

    # --- audit ---------------------------------------------------------------------------------------

    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        object_path = self._object_path(location)
        options = ReadOptions(self._core.clock.time(), open_expired=True)
        for _ in range(TRIES):
            try:
                names = list_names(self._core.disk, object_path.directory)
                self._remove_partial_files(object_path, names, temporary_age_s)
                _, loaded = self._core.loaded(object_path.key, options, open_data=True, quarantines=False)
                try:
                    return self._audit_loaded(location, object_path, loaded, full, pace)
                finally:
                    if loaded.fd is not None:
                        self._core.disk.close(loaded.fd)
            except FilesChanged:
                continue
            except Damaged as error:
                self.check_may_move(location, error)
                self._core.quarantine(object_path, str(error))
                return AuditReport(Found(None, ObjectState()), str(error))
        raise FilesChanged(f"{object_path.directory} keeps changing")

    def _remove_partial_files(
        self, object_path: ObjectPath, names: Iterable[str], temporary_age_s: float
    ) -> None:
        """Remove stale partial files."""
        disk, before = self._core.disk, self._core.clock.time() - temporary_age_s
        for name in filter(is_rsync_temporary, names):
            path = f"{object_path.directory}/{name}"
            try:
                if disk.stat(path).st_mtime < before:
                    disk.unlink(path)
            except FileNotFoundError:
                continue

    def _audit_loaded(
        self, location: Location, object_path: ObjectPath, loaded: Loaded, full: bool, pace: Pace
    ) -> AuditReport:
        found = self.found(location, loaded.state)
        choice, core = loaded.choice, self._core
        for file in (choice.data, choice.meta, choice.ctype, choice.tombstone):
            if file is not None:
                self._add_checksum(f"{object_path.directory}/{file.name}")
        tombstone = choice.tombstone
        if tombstone is not None:
            horizon = core.clock.time() - core.rules.reclaim.reclaim_age_s
            if tombstone.timestamp.seconds < horizon:
                with core.changes.change(object_path.device, object_path.directory):
                    core.mark_dirty(object_path)
        if loaded.fd is None or found.state.kind != LIVE:
            return AuditReport(found)
        walk = archive_walk(location.policy, found.state)
        read = self.read_all(loaded, pace, walk) if full else 0
        return AuditReport(found, None, read, loaded.data_path)

    def _add_checksum(self, path: str) -> None:
        """Metadata of old releases has no checksum; it gets one. Raises ``Damaged``."""
        disk = self._core.disk
        try:
            blob, had = read_metadata_blob(disk, path)
        except FileNotFoundError:
            raise FilesChanged(f"{path} vanished")
        if not had:
            digest = md5(blob, usedforsecurity=False).hexdigest().encode()
            try:
                write_attribute(disk, path, CHECKSUM_ATTRIBUTE, digest)
            except AttributesTooLarge:
                # It is as good as it was before.
                return

    def read_all(self, loaded: Loaded, pace: Pace, walk: FragmentWalk | None) -> int:
        """Read the body past its checksum; raises ``Damaged`` unless the file was replaced meanwhile.

        Raises OSError when the device fails, which proves nothing about the object.
        """
        disk, state, fd = self._core.disk, loaded.state, loaded.fd
        assert fd is not None
        digest, offset = md5(usedforsecurity=False), 0
        while offset < state.size:
            piece = disk.pread(fd, min(READ_BYTES, state.size - offset), offset)
            if not piece:
                raise Damaged(f"body ends {state.size - offset} bytes early")
            digest.update(piece)
            if walk is not None:
                walk.feed(piece)
            # An audit must not evict pages that clients requested.
            disk.drop_cache(fd, offset, len(piece))
            offset += len(piece)
            pace(len(piece))
        if digest.hexdigest() != state.metadata.get("ETag"):
            self._check_not_replaced(loaded)
            raise Damaged(f"MD5 of the body is {digest.hexdigest()}, not {state.metadata.get('ETag')}")
        if walk is not None:
            walk.finish()
        return offset

    def _check_not_replaced(self, loaded: Loaded) -> None:
        """Raise ``FilesChanged`` when the name is another file's now."""
        disk = self._core.disk
        assert loaded.fd is not None
        try:
            if disk.stat(loaded.data_path).st_ino == disk.fstat(loaded.fd).st_ino:
                return
        except FileNotFoundError:
            pass
        raise FilesChanged(f"{loaded.data_path} was replaced")

    def quarantine(self, location: Location, reason: str) -> None:
        object_path = self._object_path(location)
        try:
            self._core.quarantine(object_path, reason)
        except FileNotFoundError:
            # Nothing is there any more.
            return

    # --- purge ---------------------------------------------------------------------------------------

    def purge(self, location: Location, synced: SyncedVersion) -> bool:
        disk, object_path = self._core.disk, self._object_path(location)
        try:
            fd = lock_directory(disk, object_path.directory)
        except FileNotFoundError:
            return True
        try:
            with self._core.changes.change(object_path.device, object_path.directory):
                names = disk.listdir(object_path.directory)
                gone = self._removable(object_path, names, synced)
                if gone:
                    self._core.mark_dirty(object_path)
                    sync_directory(disk, object_path.directory)
                for name in gone:
                    disk.unlink(f"{object_path.directory}/{name}")
                is_gone = len(gone) == len(names) and remove_if_empty(disk, object_path.directory)
        finally:
            disk.close(fd)
        if is_gone:
            remove_if_empty(disk, object_path.suffix)
        return is_gone

    def reading_order(self, device: str, policy: Policy) -> list[str]:
        """See ``Maintenance``: partitions are as good."""
        return []

    def locations_in(self, device: str, part: str, policies: Sequence[Policy]) -> Iterator[Location]:
        return iter(())

    def purge_all(self, purges: Sequence[tuple[Location, SyncedVersion]]) -> None:
        for location, synced in purges:
            self.purge(location, synced)

    def _removable(self, object_path: ObjectPath, names: list[str], synced: SyncedVersion) -> list[str]:
        """Return the files that need not stay."""
        ec = object_path.key.policy.ec
        at, index = synced.timestamp, synced.fragment
        wanted = [tombstone_name(at)]
        if ec is None:
            wanted.append(data_name(at))
        elif index is not None:
            wanted.append(data_name(at, index, durable=True))
            if synced.durable or self._is_abandoned(object_path, data_name(at, index)):
                wanted.append(data_name(at, index))
        gone = [name for name in wanted if name in names]
        left = [name for name in names if name not in gone]
        if not gone or any(name.endswith(DATA) for name in left):
            return gone
        metas = [name for name in left if name.endswith(META)]
        if tombstone_name(at) in gone:
            # Metadata above a tombstone is never offered: alone it would keep its partition here.
            return metas + gone
        if not all(_is_meta_until(name, synced.meta_timestamp or at) for name in metas):
            # Metadata that was posted since then is offered with its data.
            return []
        return gone if synced.keeps_metadata else metas + gone

    def remove_lone_metadata(self, locations: Sequence[Location]) -> None:
        disk = self._core.disk
        for location in locations:
            object_path = self._object_path(location)
            try:
                fd = lock_directory(disk, object_path.directory)
            except FileNotFoundError:
                continue
            try:
                with self._core.changes.change(object_path.device, object_path.directory):
                    names = disk.listdir(object_path.directory)
                    if all(name.endswith(META) for name in names):
                        self._core.mark_dirty(object_path)
                        for name in names:
                            disk.unlink(f"{object_path.directory}/{name}")
                        remove_if_empty(disk, object_path.directory)
            finally:
                disk.close(fd)
            remove_if_empty(disk, object_path.suffix)

    def _is_abandoned(self, object_path: ObjectPath, name: str) -> bool:
        """Return True if an uncommitted archive is so old that no commit is on its way."""
        window_s = self._core.rules.reclaim.commit_window_s
        try:
            written_s = self._core.disk.stat(f"{object_path.directory}/{name}").st_mtime
        except FileNotFoundError:
            return False
        return written_s < self._core.clock.time() - window_s

    # --- partitions ----------------------------------------------------------------------------------

    def change_token(self, device: str, partition: str, policy: Policy) -> str:
        path = partition_dir(self._core.devices.path(device), policy, partition)
        return journal_token(self._core.disk, path, self._core.disk.now_ns())

    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        path = partition_dir(self._core.devices.path(device), policy, partition)
        return journal_idle_s(self._core.disk, path, self._core.disk.now_ns())

    def confirm(self, device: str, partitions: Sequence[str], policy: Policy) -> None:
        """See ``Maintenance``; whatever is missing here was never more than one object."""

    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``Maintenance``: every file first, then the names that lead to it."""
        disk, device_path = self._core.disk, self._core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        for suffix in filter(is_suffix, suffixes):
            for name in names_in(disk, f"{path}/{suffix}"):
                _sync_object(disk, f"{path}/{suffix}/{name}")
            _sync_if_there(disk, f"{path}/{suffix}")
        for directory in (path, objects_dir(device_path, policy), device_path):
            _sync_if_there(disk, directory)

    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        disk, device_path = self._core.disk, self._core.devices.path(device)
        temporary, objects = temporary_dir(device_path, policy), objects_dir(device_path, policy)
        for name in names_in(disk, temporary):
            try:
                if disk.stat(f"{temporary}/{name}").st_mtime < before_s:
                    disk.unlink(f"{temporary}/{name}")
            except (FileNotFoundError, IsADirectoryError):
                continue
        for parent in make_directories(disk, objects, below=device_path):
            sync_directory(disk, parent)
        return [
            name
            for name in disk.listdir(objects)
            if not (name.isascii() and name.isdigit()) and not name.startswith(AUDITOR_STATUS)
        ]

    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        device_path = self._core.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        with self._core.changes.change(device_path, path):
            return self._remove_partition(path)

    def _remove_partition(self, path: str) -> bool:
        disk = self._core.disk
        try:
            with file_lock(disk, f"{path}/{LOCK_FILE}"):
                names = disk.listdir(path)
                for name in filter(is_suffix, names):
                    if not remove_if_empty(disk, f"{path}/{name}"):
                        return False
                for name in (HASHES_FILE, JOURNAL_FILE, REPLICATION_LOCK_FILE, LOCK_FILE):
                    if name in names:
                        disk.unlink(f"{path}/{name}")
        except FileNotFoundError:
            # Gone, or going: another one removes it at this moment.
            pass
        if remove_if_empty(disk, path):
            self._core.durable_partitions.discard(path)
            return True
        return False

    def __repr__(self) -> str:
        return f"<FileMaintenance of {self._core!r}>"
