"""Indexes of devices: their directories, and the process that closes them last."""

from __future__ import annotations

import fcntl
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote_plus

from swift.base.errors import ConfigError, SwiftError
from swift.platform.disk import Disk
from swift.platform.locks import HOLDER_TIMEOUT_S, Patience
from swift.platform.sharedstate import StateHeld, check_owner, held
from swift.store.lmdbindex import STATE, IndexBusy, IndexFailed, LmdbIndex, opening_failed
from swift.store.packed.settings import SECTION, PackedSettings

_DIRECTORY = "index"
_LOCK = "closing"
_USERS = "users"
_TOKEN = "token"
#: In the engine's directory on the device: where its index is, locked by all who use it.
_PLACE = "index-path"
_PLACE_BYTES_MAX = 4096
_TOKEN_BYTES = 16
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class DeviceIndex(LmdbIndex):
    """The index of a device; the last process that closes it leaves it so that it survives a boot.

    Raises ``IndexFailed``, ``ConfigError``.
    """

    def __init__(
        self,
        directory: str,
        boot_id: str,
        memory: str,
        device_directory: str,
        *,
        timeout_s: float = HOLDER_TIMEOUT_S,
    ):
        self._memory_directory = memory
        self._directory_name = directory
        self._device_directory = device_directory
        self._users_fd = self._place_fd = self._directory_fd = -1
        try:
            os.makedirs(memory, exist_ok=True)
            check_owner(memory)
            with held(f"{memory}/{_LOCK}", timeout_s=timeout_s):
                self._place_fd = os.open(f"{device_directory}/{_PLACE}", _FLAGS, 0o600)
                self._settle_place()
                os.makedirs(directory, exist_ok=True)
                self._users_fd = self._open_users(f"{directory}/{_USERS}")
                self._join(_token(memory))
                super().__init__(directory, boot_id, memory, opening_timeout_s=timeout_s)
                if not self._is_one_of_users():
                    raise IndexFailed(f"{directory} was replaced while it was opened")
        except StateHeld as error:
            self._let_go()
            raise IndexBusy(error.seconds)
        except OSError as error:
            self._let_go()
            raise opening_failed(directory, error)
        except BaseException:
            self._let_go()
            raise

    def _open_users(self, path: str) -> int:
        """Return the open file that users of the index lock. Raises OSError."""
        if not os.path.lexists(path):
            # It was removed. Processes that still lock it are not seen any more: they must give up the index.
            self._forget()
        return os.open(path, _FLAGS, 0o600)

    def _is_one_of_users(self) -> bool:
        """Return True if users of the directory that was opened lock the same file as this process."""
        try:
            found = os.stat(_USERS, dir_fd=self._directory_fd)
        except OSError:
            return False
        mine = os.fstat(self._users_fd)
        return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)

    def _join(self, token: bytes) -> None:
        """Become one of the users of the index, who share the memory of this token.

        Raises ``ConfigError``, OSError.
        """
        if _is_alone(self._users_fd):
            os.pwrite(self._users_fd, token, 0)
        elif os.pread(self._users_fd, len(token), 0) != token:
            raise ConfigError(
                f"other processes use the index of {self._directory_name} with another state_path: give all"
                f" servers and daemons of the node the same {self._memory_directory}, also in containers"
            )
        fcntl.flock(self._users_fd, fcntl.LOCK_SH)

    def _settle_place(self) -> None:
        """Refuse another index than the one that others use for the device: neither would have all changes.

        One that was used before another one is made again. Raises ``ConfigError``, OSError.
        """
        fd, mine = self._place_fd, os.path.realpath(self._directory_name)
        is_alone = _is_alone(fd)
        if not is_alone:
            fcntl.flock(fd, fcntl.LOCK_SH)
        theirs = os.fsdecode(os.pread(fd, _PLACE_BYTES_MAX, 0))
        if is_alone and theirs != mine:
            # A device takes the index that is on it along when it is mounted elsewhere.
            on_device = f"/{os.path.basename(self._device_directory)}/{_DIRECTORY}"
            if not (theirs.endswith(on_device) and mine.endswith(on_device)):
                self._forget()
            os.ftruncate(fd, 0)
            os.pwrite(fd, os.fsencode(mine), 0)
            os.fsync(fd)
        if is_alone:
            fcntl.flock(fd, fcntl.LOCK_SH)
        elif theirs != mine:
            # Damage must not reach a terminal.
            shown = theirs if theirs.isprintable() else repr(theirs)
            raise ConfigError(
                f"other processes keep the index of {self._device_directory} in {shown}, not in {mine}: "
                "give all servers, daemons and commands of the node the same index_path in [packed]"
            )

    def _forget(self) -> None:
        """Let an old index be made again: volumes that it names may have been compacted away since.

        Raises OSError.
        """
        try:
            os.unlink(f"{self._directory_name}/{STATE}")
        except FileNotFoundError:
            return
        directory = os.open(self._directory_name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def __del__(self) -> None:
        # Others of this process go on, or it ends.
        self._let_go()
        super().__del__()

    def _let_go(self) -> None:
        fds = self._users_fd, self._place_fd
        self._users_fd = self._place_fd = -1
        for fd in fds:
            if fd >= 0:
                os.close(fd)

    def close(self, *, is_last: bool = False) -> None:
        """See ``Index``; this one knows itself if it is the last."""
        if self._users_fd < 0:
            return
        try:
            with held(f"{self._memory_directory}/{_LOCK}"):
                is_alone = self._is_one_of_users() and _is_alone(self._users_fd)
                super().close(is_last=is_last or is_alone)
        except OSError as error:
            raise IndexFailed(str(error))
        finally:
            self._let_go()


def _token(memory: str) -> bytes:
    """Return the random bytes that a directory in memory is known by, made when they are missing."""
    fd = os.open(f"{memory}/{_TOKEN}", _FLAGS, 0o600)
    try:
        token = os.pread(fd, _TOKEN_BYTES, 0)
        if len(token) < _TOKEN_BYTES:
            token = os.urandom(_TOKEN_BYTES)
            os.pwrite(fd, token, 0)
        return token
    finally:
        os.close(fd)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, _FLAGS, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_alone(fd: int) -> bool:
    """Return True if no other process has the index open."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def index_path_error(settings: PackedSettings) -> str:
    """Return the error if ``index_path`` is set and not a directory; else an empty text."""
    root = settings.index_path
    if not root or os.path.isdir(root):
        return ""
    return f"index_path {root} of [{SECTION}] is not a directory; mount its filesystem, or create it"


class IndexInUse(SwiftError):
    """Other processes use an index that must not be used now."""


class IndexOpening:
    """Opens the indexes of devices as the settings say."""

    def __init__(self, settings: PackedSettings, disk: Disk, *, holder_timeout_s: float = HOLDER_TIMEOUT_S):
        self._settings = settings
        self._disk = disk
        self._holder_timeout_s = holder_timeout_s
        #: Of devices, by the engine's directory.
        self._patience = defaultdict[str, Patience](partial(Patience, holder_timeout_s))

    def __call__(self, directory: str) -> DeviceIndex:
        """Return the index of the engine's directory on a device. Raises ``IndexFailed``, ``ConfigError``."""
        try:
            self._check_root()
        except OSError as error:
            raise IndexFailed(str(error))
        patience = self._patience[directory]
        try:
            index = DeviceIndex(
                self.path(directory),
                self._disk.boot().id,
                self._memory(directory),
                directory,
                timeout_s=patience.timeout_s,
            )
        except IndexBusy:
            patience.is_exhausted = True
            raise
        patience.is_exhausted = False
        return index

    def path(self, directory: str) -> str:
        """Return the directory of the index of the engine's directory on a device."""
        root = self._settings.index_path
        return f"{root}/{quote_plus(directory)}" if root else f"{directory}/{_DIRECTORY}"

    def _check_root(self) -> None:
        """Raise OSError without ``index_path``: made here, it would fill the disk below its mount point."""
        reason = index_path_error(self._settings)
        if reason:
            raise OSError(reason)

    def _memory(self, directory: str) -> str:
        return f"{self._settings.state_directory}/{quote_plus(directory)}"

    @contextmanager
    def unused(self, directory: str) -> Iterator[None]:
        """Keep other processes from opening an index; raises ``IndexInUse`` if one has it open, OSError."""
        self._check_root()
        memory, place = self._memory(directory), self.path(directory)
        os.makedirs(memory, exist_ok=True)
        check_owner(memory)
        os.makedirs(place, exist_ok=True)
        with (
            held(f"{memory}/{_LOCK}", timeout_s=self._holder_timeout_s),
            _opened(f"{place}/{_USERS}") as users,
            # Others may keep the index elsewhere.
            _opened(f"{directory}/{_PLACE}") as elsewhere,
        ):
            if not (_is_alone(users) and _is_alone(elsewhere)):
                raise IndexInUse(f"other processes have {directory} open; stop them first")
            yield

    def __repr__(self) -> str:
        return f"IndexOpening({self._settings.index_path or 'on devices'!r})"
