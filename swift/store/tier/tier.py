"""The tier of one process: combines session, index and rules, and bypasses them when they fail.

Opened at first use, and anew in a child process. When the SSD fails, everything goes past the tier and it
is tried again after a while; every change of the disk is told to the other processes all the same,
through memory. Only when even that is impossible do changes fail: no process may keep trusting what is
not so.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from swift.platform.disk import Disk
from swift.platform.locks import HOLDER_TIMEOUT_S, poll
from swift.platform.mountwatch import MountWatch
from swift.platform.regularfiles import read_through_links
from swift.platform.sharedstate import TOKEN_BYTES, SessionLost, SharedState, StateHeld, TierSession
from swift.store.lmdbindex import Index, IndexFailed, IndexReplaced, LmdbIndex
from swift.store.tier import figures
from swift.store.tier.directory import Handles, HashDirectory, Reader
from swift.store.tier.entries import Entries, Note, ReadStart, device_of, invalidate
from swift.store.tier.entry import Snapshot
from swift.store.tier.extents import ExtentLog
from swift.store.tier.policy import (
    DROP,
    METADATA,
    REFRESH,
    SECOND_TOUCH,
    ClassRules,
    RequestedKeys,
    Rules,
    WriteBudget,
)
from swift.store.tier.settings import TierSettings, owner_of

CONTROL_FILE = "control.json"
_TICK_S = 1.0
_MIB = 1 << 20


class TierMember(Protocol):
    """One of the processes that share a tier; ``TierSession`` is the real one."""

    token: bytes
    shared_state: SharedState

    def is_alive(self, token: bytes) -> bool:
        """Return True if the process of a session may still do something."""

    def report(self, data: bytes) -> None:
        """Publish this process's counts."""

    def close(self, leaving: Callable[[bool], None]) -> None:
        """End it; before another one can begin, ``leaving`` is told whether it was the last one."""

    def forget(self) -> None:
        """In a child of the process: the session stays the parent's."""


class Mounts(Protocol):
    """Mounts of devices; ``MountWatch`` implements it."""

    def has_changed(self) -> bool:
        """Return True if anything was mounted or unmounted since the last call; true the first time."""

    def mount_id(self, path: str) -> int:
        """Return a number of the mount that a directory is on."""

    def close(self) -> None:
        """Give it up."""


@dataclass
class TierDependencies:
    """Dependencies of a tier; tests pass fakes."""

    disk: Disk = field(default_factory=Disk)
    open_session: Callable[[str, tuple[int, int] | None], TierMember] = TierSession
    open_index: Callable[[str, str, str], Index] = LmdbIndex
    open_log: Callable[[str, int], ExtentLog] = ExtentLog
    mounts: Callable[[], Mounts] = MountWatch
    now_ns: Callable[[], int] = time.time_ns
    monotonic: Callable[[], float] = time.monotonic
    notice: Callable[[str], None] = lambda _text: None


#: Path, index, change, and the entry that it leaves; the entry with the body if it is to be kept.
WithBody = Callable[[HashDirectory, Entries, Note, Snapshot], Snapshot]


class CacheTier:
    """One process's access to the node's tier. Opened at first use. Nothing is opened before it is used."""

    def __init__(self, settings: TierSettings, dependencies: TierDependencies | None = None):
        self.configured = self.settings = settings
        self.dependencies = dependencies or TierDependencies()
        self.figures: figures.Figures = Counter()
        self.rules: Rules = settings.rules()
        self.reader = Reader(
            self.dependencies.disk, Handles(self.dependencies.disk, wanted=settings.file_handles)
        )
        #: Why the tier is not used now; empty when it is.
        self.failure = ""
        self._touches = RequestedKeys()
        #: Directories of the objects of erasure coded policies → archives of one object.
        self.fragments: dict[str, int] = {}
        self._pid = 0
        #: The process of which a green thread opens the session or the index now.
        self._opening_pid = 0
        self._member: TierMember | None = None
        self._mounts: Mounts | None = None
        self._devices: dict[str, str] = {}
        self._entries: Entries | None = None
        self._next_tick_s = self._retry_s = self._session_retry_s = 0.0
        self._control_mtime = -1
        #: The last logged reason why changes cannot be taken over.
        self._refusal = ""
        self._left_to_parent: list[object] = []
        #: Logs of bodies, by class and size; see ``bodies``.
        self.logs: dict[tuple[str, int], ExtentLog] = {}
        #: Told the figures once a second.
        self.told: Callable[[figures.Figures, str], None] = lambda _figures, _failure: None
        #: Adds the body to an entry that a write leaves; see ``store``.
        self.with_body: WithBody = lambda _hash_dir, _entries, _note, snapshot: snapshot

    # --- opening -------------------------------------------------------------------------------------

    def entries(self) -> Entries | None:
        """Return the index, None while it cannot be used.

        Raises OSError when not even the session can be opened.
        """
        if self._pid != os.getpid():
            self._open_here()
        now_s = self.dependencies.monotonic()
        if now_s >= self._next_tick_s:
            self._next_tick_s = now_s + _TICK_S
            self._tick()
        if self._entries is None and now_s >= self._retry_s:
            self._open_index()
        return self._entries

    def member(self) -> TierMember:
        """Return this process's session; raises OSError."""
        if self._pid != os.getpid():
            self._open_here()
        assert self._member is not None
        return self._member

    def _open_here(self) -> None:
        """Open a session of this process. Raises OSError."""
        if not self._is_mine_to_open():
            if self._pid != os.getpid():
                raise OSError(errno.EBUSY, "another request is opening it", self.settings.state_directory)
            return
        try:
            self._open_session()
        finally:
            self._opening_pid = 0

    def _is_mine_to_open(self) -> bool:
        """Begin to open something unless another green thread does; return False after its attempt.

        Two would each have one, and what is noted in the first is not known to the second.
        """
        mine = os.getpid()
        if self._opening_pid == mine:
            poll(lambda: self._opening_pid != mine, HOLDER_TIMEOUT_S)
            return False
        self._opening_pid = mine
        return True

    def _open_session(self) -> None:
        if self._member is not None:
            # What a parent opened stays its own; closing it here would close it there.
            self._left_to_parent += [self._member, self._entries, self._mounts]
            self._member.forget()
        self._member = self._entries = None
        self._pid = 0
        if self.dependencies.monotonic() < self._session_retry_s:
            raise OSError(errno.EBUSY, "another process holds it", self.settings.state_directory)
        try:
            self._member = self.dependencies.open_session(
                self.settings.state_directory, owner_of(self.settings.path)
            )
        except StateHeld:
            # Not each request must wait.
            self._session_retry_s = self.dependencies.monotonic() + self.settings.retry_interval
            raise
        self._mounts = self.dependencies.mounts()
        self._devices.clear()
        self._retry_s = self._next_tick_s = 0.0
        self._pid = os.getpid()

    def _open_index(self) -> None:
        member = self.member()
        if self._is_mine_to_open():
            try:
                self._open_index_of(member)
            finally:
                self._opening_pid = 0

    def _open_index_of(self, member: TierMember) -> None:
        try:
            index = self.dependencies.open_index(
                self.settings.path, self.dependencies.disk.boot().id, self.settings.state_directory
            )
        except (IndexFailed, OSError) as error:
            self.failed(str(error))
            return
        if member.shared_state.index != index.identity or self.failure:
            # It may have missed changes.
            member.shared_state.renew()
            member.shared_state.index = index.identity
        self._entries = Entries(
            index,
            member.shared_state,
            member.token[:TOKEN_BYTES],
            member.is_alive,
            now_ns=self.dependencies.now_ns,
        )
        self._apply()
        if self.failure:
            self.dependencies.notice(f"the cache tier at {self.settings.path} works again")
            self.failure = ""

    def failed(self, reason: str) -> None:
        """Go past the tier from now on, and try again later."""
        if not self.failure:
            self.dependencies.notice(f"the cache tier at {self.settings.path} is disabled: {reason}")
        self.failure = reason or "failed"
        self._retry_s = self.dependencies.monotonic() + self.settings.retry_interval
        entries, self._entries = self._entries, None
        self._close_logs()
        if entries is not None:
            try:
                entries.index.close(is_last=False)
            except IndexFailed:
                return

    def _close_logs(self) -> None:
        """Close the logs, so that a failed SSD can be unmounted."""
        logs, self.logs = self.logs, {}
        for log in logs.values():
            log.close()

    def close(self) -> None:
        """Give it up; the last process of the node leaves it so that it survives a boot."""
        if self._pid != os.getpid() or self._member is None:
            return
        member, self._member = self._member, None
        entries, self._entries = self._entries, None
        self._pid = 0
        self._close_logs()

        def leave(is_last: bool) -> None:
            try:
                if entries is not None:
                    entries.index.close(is_last=is_last)
            except IndexFailed as error:
                self.dependencies.notice(f"cannot close the cache tier: {error}")

        member.close(leave)
        if self._mounts is not None:
            self._mounts.close()

    # --- rules ---------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._read_control()
        member = self.member()
        try:
            member.report(figures.pack_report(self.figures, {"pid": self._pid, "failure": self.failure}))
            self.told(self.figures, self.failure)
            self._check_index()
        except SessionLost as error:
            self.failed(str(error))
            self._open_here()
        except IndexReplaced as error:
            self.failed(str(error))
            self._retry_s = 0.0
        except (IndexFailed, OSError) as error:
            self.failed(str(error))

    def _check_index(self) -> None:
        """Raise ``IndexFailed`` or OSError when it may not be used on."""
        if self._entries is not None:
            if not self._entries.is_current:
                raise IndexReplaced("the index was replaced by others")
            self._entries.index.check()

    def _read_control(self) -> None:
        """Take over what ``swift-cache`` changed."""
        path = f"{self.settings.path}/{CONTROL_FILE}"
        try:
            mtime = os.stat(path).st_mtime_ns
            if mtime == self._control_mtime:
                return
            self.settings = self.configured.changed(json.loads(read_through_links(path)))
            self._control_mtime = mtime
        except FileNotFoundError:
            if self._control_mtime < 0:
                return
            self._control_mtime, self.settings = -1, self.configured
        except (OSError, ValueError, RecursionError) as error:
            refusal = f"{path} is not used: {error}"
            if refusal != self._refusal:
                self.dependencies.notice(refusal)
            self._refusal = refusal
            return
        self._refusal = ""
        self._apply()

    def _apply(self) -> None:
        self.rules = self.settings.rules()
        if self._entries is not None:
            self._entries.rules = self.rules
            self._entries.wear = WriteBudget(self.settings.written_per_day_mb * _MIB)

    def rules_of(self, of: str) -> ClassRules | None:
        """Return the rules of a class; None if it is off."""
        return self.rules.get(of)

    def may_cache(self, of: str, path: bytes) -> bool:
        """Return True if what a read found may be kept."""
        rules = self.rules.get(of)
        if rules is None or not rules.means.fills:
            return False
        return rules.admission != SECOND_TOUCH or self._touches.is_second(of.encode() + path)

    def count(self, of: str, device: str, name: str, number: int = 1) -> None:
        """Count one of ``figures.NAMES``."""
        self.figures[of, device, name] += number

    # --- reading -------------------------------------------------------------------------------------

    def watch(self, device_path: str) -> None:
        """Before anything about a device is believed: it must be the mount that it was."""
        assert self._mounts is not None
        if self._mounts.has_changed():
            self._devices.clear()
        if device_path not in self._devices:
            name = device_path.rpartition("/")[2]
            self.member().shared_state.mounted(name, self._mounts.mount_id(device_path))
            self._devices[device_path] = name

    def find(self, hash_dir: HashDirectory) -> Snapshot | None:
        """Return the validated entry of a hash directory; None if the disk must be read."""
        try:
            entries = self.entries()
            rules = self.rules.get(METADATA)
            if entries is None or rules is None or not rules.means.serves:
                return None
            self.watch(hash_dir.device)
            path = hash_dir.path
            found = entries.find(path)
            if found is not None and found.epoch != entries.shared_state.epoch(device_of(path)):
                found = self._validated(entries, hash_dir, path, found)
        except IndexFailed as error:
            self.failed(str(error))
            return None
        except OSError:
            # The disk answers for itself.
            return None
        self.count(METADATA, device_of(path), "misses" if found is None else "hits")
        return found

    def _validated(
        self, entries: Entries, hash_dir: HashDirectory, path: bytes, found: Snapshot
    ) -> Snapshot | None:
        """Return an entry of another time, compared with the disk; None when it was not true any more."""
        start = entries.start(path)
        self.count(METADATA, device_of(path), "unproven")
        if self.reader.is_still(hash_dir, found):
            found = found._replace(epoch=start.epoch)
            return found if entries.keep(path, start, found) else None
        entries.forget(path)
        return None

    def take(self, hash_dir: HashDirectory) -> Snapshot | None:
        """Read a hash directory from the disk and keep it; None when the engine has to do it itself.

        Raises what ``Reader.read`` does.
        """
        path = hash_dir.path
        try:
            entries = self.entries() if self.may_cache(METADATA, path) else None
            if entries is None:
                return None
            self.watch(hash_dir.device)
            start = entries.start(path)
        except (IndexFailed, OSError):
            return None
        snapshot = self.reader.read(hash_dir, start.epoch, self.dependencies.now_ns())
        if snapshot is not None:
            self.keep(entries, path, start, snapshot)
        return snapshot

    def keep(
        self, entries: Entries, path: bytes, start: ReadStart, snapshot: Snapshot, *, of: str = METADATA
    ) -> None:
        """Keep what was read since ``start``; ``of`` is the class that it counts for."""
        try:
            is_kept = entries.keep(path, start, snapshot)
            self.count(of, device_of(path), "kept" if is_kept else "rejected")
        except IndexFailed as error:
            self.failed(str(error))

    # --- changes of the disk -------------------------------------------------------------------------

    def begin(self, hash_dir: HashDirectory) -> tuple[Entries, Note] | None:
        """Return a directory is about to change; None when only memory could be told. Raises OSError."""
        path = hash_dir.path
        entries = self.entries()
        self.watch(hash_dir.device)
        if entries is None:
            self.invalidate(path)
            return None
        note = entries.begin(path)
        if not note.is_kept:
            self.failed(entries.error)
        self.count(METADATA, device_of(path), "dropped", int(note.was_known))
        return entries, note

    def end(self, begun: tuple[Entries, Note] | None, hash_dir: HashDirectory, *, is_done: bool) -> None:
        """End a pending change; ``is_done`` if it happened."""
        path = hash_dir.path
        if begun is None or begun[0] is not self._entries:
            self.invalidate(path)
            entries = self.entries()
            if entries is not None:
                entries.forget(path)
            return
        entries, note = begun
        fresh = None
        if is_done and self._refreshes(note):
            fresh = lambda: self._fresh(hash_dir, entries, note)  # noqa: E731
        if not entries.end(note, fresh):
            self.failed(entries.error)

    def _refreshes(self, note: Note) -> bool:
        rules = self.rules.get(METADATA)
        if rules is None or rules.means.on_write == DROP or note.path.count(b"/") != 4:
            return False
        return rules.means.on_write == REFRESH or note.was_known

    def _fresh(self, hash_dir: HashDirectory, entries: Entries, note: Note) -> Snapshot | None:
        try:
            epoch = entries.shared_state.epoch(device_of(hash_dir.path))
            made = self.reader.read(hash_dir, epoch, self.dependencies.now_ns())
            return made if made is None else self.with_body(hash_dir, entries, note, made)
        except Exception:
            # The next reader notices the failure; the change itself succeeded.
            return None

    def invalidate(self, path: bytes) -> None:
        """Invalidate all entries of a device for all processes: a change could not be recorded."""
        invalidate(self.member().shared_state, path)

    def forget(self, device_path: str, directories: list[str]) -> None:
        """Drop what is known of directories and all below them. Raises OSError."""
        for directory in directories:
            hash_dir = HashDirectory(device_path, directory, None)
            self.end(self.begin(hash_dir), hash_dir, is_done=False)

    def __repr__(self) -> str:
        return f"<Tier at {self.settings.path}{', ' + self.failure if self.failure else ''}>"
