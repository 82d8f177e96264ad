"""Bringing objects back from the quarantine: they are read to their end first, then moved to their place.

What was quarantined by mistake, or copied back from a backup, is worth something only if it is sound: the
files must load, agree with each other, belong to the hash directory's name and match their checksum. A place
that has files again keeps them: replication may have brought the object back, or something newer.
"""

from __future__ import annotations

from swift.platform.durable import make_directories
from swift.platform.locks import lock_directory
from swift.platform.syncing import sync_directory
from swift.store.api import LIVE, Found, Location, ObjectKey, Viewpoint
from swift.store.chooser import remove_if_empty
from swift.store.core import EngineCore
from swift.store.errors import Damaged
from swift.store.layout import Place
from swift.store.reader import ANY_NAME, load, names_in
from swift.store.upkeep import FileUpkeep, archive_walk


class Restorer:
    """Verifies and restores quarantined hash directories of one engine."""

    def __init__(self, core: EngineCore):
        self._core = core
        self._upkeep = FileUpkeep(core)

    def verify(self, location: Location, directory: str) -> Found:
        """Read the files in ``directory`` to their end, as those of ``location``; return what they are.

        Raises ``Damaged``, ``FilesChanged``, and OSError when the device fails.
        """
        disk, key = self._core.disk, _key_of(location)
        names = names_in(disk, directory)
        if not names:
            raise Damaged("there are no files")
        view = Viewpoint(self._core.clock.time(), open_expired=True)
        loaded = load(disk, directory, names, key, view, open_data=True)
        try:
            found = self._upkeep.found(location, loaded.state)
            if found.key is None:
                raise Damaged("no file says of which object it is")
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
        core, place = self._core, self._core.place(_key_of(location))
        with core.changes.change(place.device, place.directory):
            touched = make_directories(core.disk, place.directory, below=place.device)
            core.mark_dirty(place)
            self._move_files(place, directory)
            for parent in touched:
                sync_directory(core.disk, parent)
        remove_if_empty(core.disk, directory)
        return place.directory

    def _move_files(self, place: Place, directory: str) -> None:
        disk = self._core.disk
        lock = lock_directory(disk, place.directory)
        try:
            taken = set(disk.listdir(place.directory))
            for name in disk.listdir(directory):
                if name not in taken:
                    disk.rename(f"{directory}/{name}", f"{place.directory}/{name}")
            sync_directory(disk, place.directory)
        finally:
            disk.close(lock)

    def __repr__(self) -> str:
        return f"<Restorer of {self._core!r}>"


def _key_of(location: Location) -> ObjectKey:
    return ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
