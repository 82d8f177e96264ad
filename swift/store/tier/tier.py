"""The tier of one process: it joins session, index and rules, and does without them when they fail.

Opened at first use, and anew in a child process. When the SSD fails, everything goes past the tier and it
is tried again after a while; every change of the disk is told to the other processes all the same,
through memory. Only when even that is impossible do changes fail: nobody may be left believing what is
not so.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from swift.platform.disk import Disk
from swift.platform.mountwatch import MountWatch
from swift.platform.regularfiles import read_through_links
from swift.store.tier import figures
from swift.store.tier.directory import Handles, Reader, Where
from swift.store.tier.entries import PAUSE_NS, Entries, Note, Start, device_of, partition_of
from swift.store.tier.entry import Snapshot
from swift.store.tier.extents import ExtentLog
from swift.store.tier.index import Index, IndexFailed, IndexReplaced, LmdbIndex
from swift.store.tier.policy import (
    DROP,
    METADATA,
    REFRESH,
    SECOND_TOUCH,
    ClassRules,
    Rules,
    Touches,
    Wear,
)
from swift.store.tier.settings import TierSettings
from swift.store.tier.shared import TOKEN_BYTES, SessionLost, TierSession, Words

CONTROL_FILE = "control.json"
_TICK_S = 1.0
_MIB = 1 << 20


class TierMember(Protocol):
    """One of the processes that share a tier; ``TierSession`` is the real one."""

    token: bytes
    words: Words

    def is_alive(self, token: bytes) -> bool:
        """Whether the process of a session may still do something."""

    def report(self, data: bytes) -> None:
        """Leave figures for whoever asks."""

    def close(self, leaving: Callable[[bool], None]) -> None:
        """End it; before another one can begin, ``leaving`` is told whether it was the last one."""

    def forget(self) -> None:
        """In a child of the process: the session stays the parent's."""


class Mounts(Protocol):
    """Which mounts devices are on; ``MountWatch`` is the real one."""

    def has_changed(self) -> bool:
        """Whether anything was mounted or unmounted since the last call; true the first time."""

    def mount_of(self, path: str) -> int:
        """A number of the mount that a directory is on."""

    def close(self) -> None:
        """Give it up."""


@dataclass
class Seams:
    """What a tier stands on; tests pass others."""

    disk: Disk = field(default_factory=Disk)
    open_session: Callable[[str, tuple[int, int] | None], TierMember] = TierSession
    open_index: Callable[[str, str, str], Index] = LmdbIndex
    open_log: Callable[[str, int], ExtentLog] = ExtentLog
    mounts: Callable[[], Mounts] = MountWatch
    now_ns: Callable[[], int] = time.time_ns
    monotonic: Callable[[], float] = time.monotonic
    notice: Callable[[str], None] = lambda _text: None


#: Where, the index, the change, and the entry that it leaves; the entry with the body if it is to be kept.
WithBody = Callable[[Where, Entries, Note, Snapshot], Snapshot]


class CacheTier:
    """What a process knows of the node's tier. Nothing is opened before it is used."""

    def __init__(self, settings: TierSettings, seams: Seams | None = None):
        self.configured = self.settings = settings
        self.seams = seams or Seams()
        self.figures: figures.Figures = Counter()
        self.rules: Rules = settings.rules()
        self.reader = Reader(self.seams.disk, Handles(self.seams.disk, wanted=settings.file_handles))
        #: Why the tier is not used now; empty when it is.
        self.failure = ""
        self._touches = Touches()
        #: Directories of the objects of erasure coded policies → archives of one object.
        self.fragments: dict[str, int] = {}
        self._pid = 0
        self._member: TierMember | None = None
        self._mounts: Mounts | None = None
        self._devices: dict[str, str] = {}
        self._entries: Entries | None = None
        self._next_tick_s = self._retry_s = 0.0
        self._control_mtime = -1
        #: What was told last about changes that cannot be taken over.
        self._refusal = ""
        self._left_to_parent: list[object] = []
        #: Logs of bodies, by class and size; see ``bodies``.
        self.logs: dict[tuple[str, int], ExtentLog] = {}
        #: Told the figures once a second.
        self.told: Callable[[figures.Figures, str], None] = lambda _figures, _failure: None
        #: Adds the body to an entry that a write leaves; see ``store``.
        self.with_body: WithBody = lambda _where, _entries, _note, snapshot: snapshot

    # --- opening -------------------------------------------------------------------------------------

    def entries(self) -> Entries | None:
        """The index, None while it cannot be used. Raises OSError when not even the session can be opened."""
        if self._pid != os.getpid():
            self._open_here()
        now_s = self.seams.monotonic()
        if now_s >= self._next_tick_s:
            self._next_tick_s = now_s + _TICK_S
            self._tick()
        if self._entries is None and now_s >= self._retry_s:
            self._open_index()
        return self._entries

    def member(self) -> TierMember:
        """This process among the others; raises OSError."""
        if self._pid != os.getpid():
            self._open_here()
        assert self._member is not None
        return self._member

    def _open_here(self) -> None:
        if self._member is not None:
            # What a parent opened stays its own; closing it here would close it there.
            self._left_to_parent += [self._member, self._entries, self._mounts]
            self._member.forget()
        self._member = self._entries = None
        self._member = self.seams.open_session(self.settings.state_path, _owner_of(self.settings.path))
        self._mounts = self.seams.mounts()
        self._devices.clear()
        self._retry_s = self._next_tick_s = 0.0
        self._pid = os.getpid()

    def _open_index(self) -> None:
        member = self.member()
        try:
            index = self.seams.open_index(
                self.settings.path, self.seams.disk.boot().id, self.settings.state_path
            )
        except (IndexFailed, OSError) as error:
            self.failed(str(error))
            return
        if member.words.index != index.identity or self.failure:
            # Nobody knows what it missed.
            member.words.renew()
            member.words.index = index.identity
        self._entries = Entries(
            index,
            member.words,
            member.token[:TOKEN_BYTES],
            member.is_alive,
            now_ns=self.seams.now_ns,
        )
        self._apply()
        if self.failure:
            self.seams.notice(f"the cache tier at {self.settings.path} is back")
            self.failure = ""

    def failed(self, reason: str) -> None:
        """Go past the tier from now on, and try again later."""
        if not self.failure:
            self.seams.notice(f"the cache tier at {self.settings.path} is not used: {reason}")
        self.failure = reason or "failed"
        self._retry_s = self.seams.monotonic() + self.settings.retry_interval
        entries, self._entries = self._entries, None
        self._close_logs()
        if entries is not None:
            try:
                entries.index.close(is_last=False)
            except IndexFailed:
                return

    def _close_logs(self) -> None:
        """So that a failed SSD can be unmounted."""
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
                self.seams.notice(f"the cache tier was not closed: {error}")

        member.close(leave)
        if self._mounts is not None:
            self._mounts.close()

    # --- rules ---------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._read_control()
        member = self.member()
        try:
            member.report(figures.packed(self.figures, {"pid": self._pid, "failure": self.failure}))
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
                self.seams.notice(refusal)
            self._refusal = refusal
            return
        self._refusal = ""
        self._apply()

    def _apply(self) -> None:
        self.rules = self.settings.rules()
        if self._entries is not None:
            self._entries.rules = self.rules
            self._entries.wear = Wear(self.settings.written_per_day_mb * _MIB)

    def rules_of(self, of: str) -> ClassRules | None:
        """How a class is treated; None when it is off."""
        return self.rules.get(of)

    def admits(self, of: str, path: bytes) -> bool:
        """Whether what a read found may be kept."""
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
            self.member().words.mounted(name, self._mounts.mount_of(device_path))
            self._devices[device_path] = name

    def find(self, where: Where) -> Snapshot | None:
        """What is known of a hash directory and shown true; None when the disk has to be asked."""
        try:
            entries = self.entries()
            rules = self.rules.get(METADATA)
            if entries is None or rules is None or not rules.means.serves:
                return None
            self.watch(where.device)
            path = where.path
            found = entries.find(path)
            if found is not None and found.epoch != entries.words.epoch(device_of(path)):
                found = self._proven(entries, where, path, found)
        except IndexFailed as error:
            self.failed(str(error))
            return None
        except OSError:
            # The disk answers for itself.
            return None
        self.count(METADATA, device_of(path), "misses" if found is None else "hits")
        return found

    def _proven(self, entries: Entries, where: Where, path: bytes, found: Snapshot) -> Snapshot | None:
        """An entry of another time, compared with the disk; None when it was not true any more."""
        start = entries.start(path)
        self.count(METADATA, device_of(path), "unproven")
        if self.reader.is_still(where, found):
            found = found._replace(epoch=start.epoch)
            return found if entries.keep(path, start, found) else None
        entries.forget(path)
        return None

    def take(self, where: Where) -> Snapshot | None:
        """Read a hash directory from the disk and keep it; None when the engine has to do it itself.

        Raises what ``Reader.read`` does.
        """
        path = where.path
        try:
            entries = self.entries() if self.admits(METADATA, path) else None
            if entries is None:
                return None
            self.watch(where.device)
            start = entries.start(path)
        except (IndexFailed, OSError):
            return None
        snapshot = self.reader.read(where, start.epoch, self.seams.now_ns())
        if snapshot is not None:
            self.keep(entries, path, start, snapshot)
        return snapshot

    def keep(
        self, entries: Entries, path: bytes, start: Start, snapshot: Snapshot, *, of: str = METADATA
    ) -> None:
        """Keep what was read since ``start``; ``of`` is the class that it counts for."""
        try:
            is_kept = entries.keep(path, start, snapshot)
            self.count(of, device_of(path), "kept" if is_kept else "rejected")
        except IndexFailed as error:
            self.failed(str(error))

    # --- changes of the disk -------------------------------------------------------------------------

    def begin(self, where: Where) -> tuple[Entries, Note] | None:
        """A directory is about to change; None when only memory could be told. Raises OSError."""
        path = where.path
        entries = self.entries()
        self.watch(where.device)
        if entries is None:
            self.distrust(path)
            return None
        note = entries.begin(path)
        if not note.is_kept:
            self.failed(entries.error)
        self.count(METADATA, device_of(path), "dropped", int(note.was_known))
        return entries, note

    def end(self, begun: tuple[Entries, Note] | None, where: Where, *, is_done: bool) -> None:
        """It has changed (``is_done``) or not."""
        path = where.path
        if begun is None or begun[0] is not self._entries:
            self.distrust(path)
            entries = self.entries()
            if entries is not None:
                entries.forget(path)
            return
        entries, note = begun
        fresh = None
        if is_done and self._refreshes(note):
            fresh = lambda: self._fresh(where, entries, note)  # noqa: E731
        if not entries.end(note, fresh):
            self.failed(entries.error)

    def _refreshes(self, note: Note) -> bool:
        rules = self.rules.get(METADATA)
        if rules is None or rules.means.on_write == DROP or note.path.count(b"/") != 4:
            return False
        return rules.means.on_write == REFRESH or note.was_known

    def _fresh(self, where: Where, entries: Entries, note: Note) -> Snapshot | None:
        try:
            epoch = entries.words.epoch(device_of(where.path))
            made = self.reader.read(where, epoch, self.seams.now_ns())
            return made if made is None else self.with_body(where, entries, note, made)
        except Exception:
            # Whoever reads it next sees what is wrong; the change itself went well.
            return None

    def distrust(self, path: bytes) -> None:
        """Nothing of a device is believed any more, by nobody: the index could not be told of a change."""
        words = self.member().words
        words.pause(time.monotonic_ns() + PAUSE_NS)
        words.renew(device_of(path))
        words.touch(partition_of(path))

    def forget(self, device_path: str, directories: list[str]) -> None:
        """Drop what is known of directories and all below them. Raises OSError."""
        for directory in directories:
            where = Where(device_path, directory, None)
            self.end(self.begin(where), where, is_done=False)

    def __repr__(self) -> str:
        return f"<Tier at {self.settings.path}{', ' + self.failure if self.failure else ''}>"


def _owner_of(path: str) -> tuple[int, int] | None:
    """Whose the SSD's directory is; None when it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_uid, found.st_gid
