"""One device of the packed engine: its volumes, its index, and the writer that brings changes into both."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from swift.base.errors import ConfigError, LockTimeout, NoSpace
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.locks import LOCK_TIMEOUT_S, Patience
from swift.platform.syncing import sync_directory
from swift.store.lmdbindex import Index, IndexBusy, IndexFailed
from swift.store.packed import rows
from swift.store.packed.agreement import Agreement
from swift.store.packed.confirmation import Confirmation
from swift.store.packed.conversion import Conversion
from swift.store.packed.entry import Entry
from swift.store.packed.locks import ObjectLocks
from swift.store.packed.recovery import KnownEnds, Recovery
from swift.store.packed.rows import Spaces
from swift.store.packed.session import IndexOpener, IndexSession, unusable
from swift.store.packed.volumes import StoredRecord, Volumes
from swift.store.packed.writer import PackedRules, Writer

DIRECTORY = "packed"
_LOCK = "lock"


class PackedDevice:
    """The volumes and the index of a device, as this process uses them.

    Raises OSError, ``LockTimeout``. ``open_index`` gets the directory of the engine.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        open_index: IndexOpener,
        rules: PackedRules,
        notice: Callable[[str], None],
        patience: Patience | None = None,
    ):
        self.path = path
        self.directory = f"{path}/{DIRECTORY}"
        self.disk = disk
        self.rules = rules
        self._notice = notice
        for parent in make_directories(disk, self.directory, below=path):
            sync_directory(disk, parent)
        self.volumes = Volumes(disk, self.directory, device_path=path, notice=notice)
        self.locks = ObjectLocks(disk, f"{self.directory}/{_LOCK}")
        #: True when the directory of the engine is another one now: the device was wiped or replaced.
        self.is_stale = False
        self._identity = self._directory_identity()
        self.session = session = IndexSession(
            disk,
            self.volumes,
            path,
            self,
            open_index=open_index,
            notice=notice,
            patience=patience or Patience(),
        )
        self.writer = Writer(session, rules, notice=notice, check_not_replaced=self.check_not_replaced)
        self.read_index, self.change_index = session.read_index, session.change_index
        self.opening, self.writing = session.opening, session.writing
        self.commit, self.commit_all = self.writer.commit, self.writer.commit_all
        self.conversion = Conversion(self)
        self.confirmation = Confirmation(session)
        self.agreement = Agreement(session, rules.publish_timeout_s)
        try:
            session.open()
            # A full device can be read; the next change disowns them.
            with session.writing, suppress(NoSpace):
                self.writer.disown()
            self.conversion.learn()
            self.confirmation.learn()
        except BaseException as error:
            self.locks.close()
            if isinstance(error, IndexBusy):
                raise session.locked(error)
            if isinstance(error, IndexFailed | ConfigError):
                raise unusable(path, error)
            raise

    @property
    def index(self) -> Index:
        """The index in use."""
        return self.session.index

    def _directory_identity(self) -> tuple[int, int] | None:
        try:
            status = self.disk.stat(self.directory)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def object_bytes_max(self, policy: int) -> int:
        """Return the largest size of a packed body; -1 while everything is kept as files. Raises OSError."""
        # Before this engine makes a directory of the policy itself.
        self.conversion.is_unindexed(policy)
        return -1 if self.conversion.keeps_as_files(policy) else self.rules.object_bytes_max

    def look(self) -> None:
        """Notice what other processes did to the device; to be called now and then. Raises OSError."""
        self.is_stale = self.is_stale or self._directory_identity() != self._identity
        self.volumes.forget_removed()

    def check_not_replaced(self) -> None:
        """Raise FileNotFoundError if the directory of the engine is another one now."""
        self.look()
        if self.is_stale:
            raise FileNotFoundError(errno.ENOENT, "the directory was replaced", self.directory)

    def refresh(self) -> None:
        """``look``, and learn what was converted. Raises OSError."""
        self.look()
        if not self.is_stale:
            self.conversion.learn()
            self.confirmation.learn()
        self.writer.let_go_of_idle_volume()

    def complete(self, index: Index, spaces: Spaces, identity: bytes, known: KnownEnds) -> bool:
        """Index what is in the volumes and not in the index; ``known`` is of the index before."""
        never = self.writer.unwanted_positions
        recovery = Recovery(self.disk, self.volumes, index, spaces, self._notice, never)
        if not rows.is_complete(index):
            recovery.rebuild(identity, self.conversion.marks(), known)
        return self.writer.complete(recovery)

    def reopened(self) -> None:
        """Learn what an index that took the place of another one says."""
        self.confirmation.learn()

    def hold(self, lock: int, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """Lock an object to look at it and change it. Raises ``LockTimeout``, ``NoSpace``, OSError."""
        self.locks.acquire(lock, timeout_s)
        try:
            if not self.writer.is_caught_up:
                self.writer.catch_up()
        except BaseException:
            self.locks.release(lock)
            raise

    @contextmanager
    def holding(self, lock: int, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold an object; raises like ``hold``."""
        self.hold(lock, timeout_s)
        try:
            yield
        finally:
            self.locks.release(lock)

    def entries(self, policy: int, partition: int, object_hash: bytes) -> list[Entry]:
        """Return the entries of an object. Raises OSError."""
        return self.session.entries(policy, partition, object_hash)

    def read(self, entry: Entry, length: int) -> StoredRecord:
        """Return the record of an entry; at least ``length`` bytes of it are read at once.

        Raises ``BadRecord``, FileNotFoundError, OSError.
        """
        return self.volumes.read(entry.position, length)

    def close(self) -> None:
        """Close everything."""
        try:
            self.look()
            if not self.is_stale:
                self.writer.settle()
            self.session.close()
        except (OSError, NoSpace, LockTimeout, IndexFailed) as error:
            self._notice(f"the index of {self.path} is not complete and will be made again: {error}")
        self.writer.close()
        self.volumes.close()
        self.locks.close()

    def __repr__(self) -> str:
        return f"PackedDevice({self.path!r})"
