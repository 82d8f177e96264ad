"""Restore of quarantined objects: read them completely first, then move them back.

What was quarantined by mistake, or copied back from a backup, is worth something only if it is sound: the
files must load, agree with each other, belong to the hash directory's name and match their checksum. A place
that has files again keeps them: replication may have brought the object back, or something newer.
"""

from __future__ import annotations

from swift.platform.durable import make_directories
from swift.platform.locks import lock_directory
from swift.platform.syncing import sync_directory
from swift.store.api import LIVE, Found, Location, ObjectKey, ReadOptions
from swift.store.chooser import remove_if_empty
from swift.store.core import EngineCore
from swift.store.errors import Damaged
from swift.store.layout import ObjectPath
from swift.store.maintenance import FileMaintenance, archive_walk
from swift.store.reader import ANY_NAME, list_names, load


class Restorer:
    """Verifies and restores quarantined hash directories of one engine."""

    def __init__(self, core: EngineCore):
        self._core = core
        self._upkeep = FileMaintenance(core)

    def verify(self, location: Location, directory: str) -> Found:
        """Read the files in ``directory`` to their end, as those of ``location``; return what they are.

        Raises ``Damaged``, ``FilesChanged``, and OSError when the device fails.
        """
        disk, key = self._core.disk, _key_of(location)
        names = list_names(disk, directory)
        if not names:
            raise Damaged("there are no files")
        options = ReadOptions(self._core.clock.time(), open_expired=True)
        loaded = load(disk, directory, names, key, options, open_data=True)
        try:
            found = self._upkeep.found(location, loaded.state)
            if found.key is None:
                raise Damaged("no file holds the object's name")
            if found.state.kind == LIVE:
                walk = archive_walk(location.policy, found.state)
                self._upkeep.read_all(loaded, lambda _count: None, walk)
            return found
        finally:
            if loaded.fd is not None:
                disk.close(loaded.fd)

    def restore(self, location: Location, directory: str) -> str:
        """Move verified files to where they belong; return the hash directory. Raises OSError.

        Files whose names are taken there stay in the quarantine.
        """
        core, object_path = self._core, self._core.object_path(_key_of(location))
        with core.changes.change(object_path.device, object_path.directory):
            touched = make_directories(core.disk, object_path.directory, below=object_path.device)
            core.mark_dirty(object_path)
            self._move_files(object_path, directory)
            for parent in touched:
                sync_directory(core.disk, parent)
        remove_if_empty(core.disk, directory)
        return object_path.directory

    def _move_files(self, object_path: ObjectPath, directory: str) -> None:
        disk = self._core.disk
        lock = lock_directory(disk, object_path.directory)
        try:
            taken = set(disk.listdir(object_path.directory))
            for name in disk.listdir(directory):
                if name not in taken:
                    disk.rename(f"{directory}/{name}", f"{object_path.directory}/{name}")
            sync_directory(disk, object_path.directory)
        finally:
            disk.close(lock)

    def __repr__(self) -> str:
        return f"<Restorer of {self._core!r}>"


def _key_of(location: Location) -> ObjectKey:
    return ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
