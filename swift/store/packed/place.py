"""One object on a device: its entries in the index, and files of it that the index does not have yet.

A device that the file engine wrote has all its objects in files. Until ``repack`` went through a partition,
its directories decide which files there are; the same while objects are kept as files for the file engine.
"""

from __future__ import annotations

from contextlib import suppress

from swift.base.timestamp import Timestamp
from swift.platform.syncing import sync_directory
from swift.policy.policy import Policy
from swift.store.api import ObjectKey
from swift.store.chooser import choose, files_to_remove
from swift.store.core import EngineCore
from swift.store.layout import (
    DATA,
    DURABLE,
    META,
    TOMBSTONE,
    ObjectPath,
    UnexpectedName,
    data_name,
    parse_name,
)
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry
from swift.store.packed.objects import Reader, RecordReader
from swift.store.packed.record import Header, Kind, Position
from swift.store.reader import list_names

#: Position of a file that no record is about.
NOWHERE = Position(0, 0)
_KINDS = {DATA: Kind.DATA, META: Kind.META, TOMBSTONE: Kind.TOMBSTONE}


class Place:
    """An object on a device: its number as a lock, its hash, its entries by partition."""

    __slots__ = ("core", "device", "hash", "key", "lock", "partition")

    def __init__(self, core: EngineCore, device: PackedDevice, key: ObjectKey):
        self.core = core
        self.device = device
        self.key = key
        self.hash = bytes.fromhex(key.hash)
        self.partition = int(key.partition)
        self.lock = int.from_bytes(self.hash[:7], "big")

    def reader(self) -> Reader:
        """Return the reader of the object."""
        return Reader(self.core, self.device, self.key, self.hash)

    def path(self, partition: int) -> ObjectPath:
        """Return the directories of the object in a partition. Raises ``DeviceUnavailable``."""
        return self.core.object_path(self.key._replace(partition=str(partition)))

    def entries(self, partition: int | None = None) -> list[Entry]:
        """Return the entries in a partition, the key's unless given. Raises OSError, ``Damaged``."""
        at = self.partition if partition is None else partition
        policy = self.key.policy.index
        # Asked first: a partition that is indexed meanwhile is complete then.
        may_have_unindexed = self.device.conversion.may_have_unindexed(policy, at)
        found = self.device.entries(policy, at, self.hash)
        while may_have_unindexed:
            files = self.files(at)
            now = self.device.entries(policy, at, self.hash)
            if now == found:
                return _merged(found, files)
            # An object that turned from a file to a record between both looks must not be missed.
            found = now
        return found

    def missing(self) -> list[Entry]:
        """Return the entries of files that the file engine removed. Raises OSError."""
        found = self.device.entries(self.key.policy.index, self.partition, self.hash)
        there = _merged(found, self.files(self.partition))
        return [entry for entry in found if all(entry.position != each.position for each in there)]

    def files(self, partition: int) -> list[Entry]:
        """Return entries for the files in the hash directory. Raises OSError."""
        directory = self.path(partition).directory
        names = list_names(self.core.disk, directory)
        if any(name.endswith(DURABLE) for name in names):
            names = self._name_durable(directory, names)
        entries = (external_entry(name, self.key.policy) for name in sorted(names))
        return [entry for entry in entries if entry is not None]

    def _name_durable(self, directory: str, names: list[str]) -> list[str]:
        """Give archives that old releases declared durable by a file of its own the name that says so."""
        disk, ec = self.core.disk, self.key.policy.ec
        times = {name.removesuffix(DURABLE) for name in names if name.endswith(DURABLE)}
        for name in names:
            entry = external_entry(name, self.key.policy)
            if ec and entry and entry.fragment is not None and entry.timestamp.internal in times:
                with suppress(FileNotFoundError):
                    durable = data_name(entry.timestamp, entry.fragment, durable=True)
                    disk.rename(f"{directory}/{name}", f"{directory}/{durable}")
        sync_directory(disk, directory)
        for time in times:
            with suppress(FileNotFoundError):
                disk.unlink(f"{directory}/{time}{DURABLE}")
        return list_names(disk, directory)

    def header(self, kind: Kind, timestamp: Timestamp) -> Header:
        """Return the header of a new record about this object."""
        return Header(
            kind,
            self.key.policy.index,
            self.partition,
            self.hash,
            timestamp,
            written_ns=int(self.core.clock.time() * 1e9),
        )

    def header_of(self, entry: Entry) -> Header:
        """Return the header of a record that says what an entry does."""
        return self.header(entry.kind, entry.timestamp)._replace(
            fragment=entry.fragment,
            durable=entry.durable,
            external=entry.external,
            ctype_timestamp=entry.ctype_timestamp,
        )

    def is_decided_by_entry(self, entry: Entry) -> bool:
        """Return True if cleanup asks only for an entry of the object, and removes no file for it."""
        # Of an archive that was never committed it asks when it was written, once it is old.
        horizon_s = self.core.clock.time() - self.core.rules.reclaim.reclaim_age_s
        is_committed = self.key.policy.ec is None or entry.durable or entry.kind is not Kind.DATA
        return not entry.external and (is_committed or entry.timestamp.seconds >= horizon_s)

    def obsolete(self, entries: list[Entry], reader: RecordReader) -> list[Entry]:
        """Return the entries that cleanup removes, a tombstone last. Raises ``Damaged``, OSError."""
        by_name = {entry.name: entry for entry in entries}
        if len(by_name) == 1 and entries[0].kind is not Kind.TOMBSTONE and self.key.policy.ec is None:
            return entries[1:] if len(entries) > 1 else []

        def written_s(name: str) -> float:
            entry = by_name[name]
            if entry.external:
                return self.core.disk.stat(f"{self.path(self.partition).directory}/{name}").st_mtime
            return reader.record(entry).header.written_ns / 1e9

        choice = choose(list(by_name), self.key.policy.ec)
        files = files_to_remove(choice, self.core.rules.reclaim, self.core.clock.time(), written_s)
        names = dict.fromkeys(file.name for file in files)
        superseded = [entry for entry in entries if by_name[entry.name] is not entry]
        return superseded + [by_name[name] for name in names]


def _merged(found: list[Entry], files: list[Entry]) -> list[Entry]:
    """Return the entries of the index and those of files that it does not have; a file that is gone has none.

    A file becomes durable by another name before the index says so.
    """
    left = {file._replace(durable=False).name: file for file in files}
    merged = []
    for entry in found:
        file = left.pop(entry._replace(durable=False).name, None)
        if not entry.external:
            merged.append(entry)
        elif file is not None:
            merged.append(entry._replace(durable=entry.durable or file.durable))
    return [*merged, *left.values()]


def external_entry(name: str, policy: Policy) -> Entry | None:
    """Return the entry of a file by its name; None for unknown names.

    A name in another form than the engines write, e.g. a timestamp without decimals, is unknown too: its
    entry would lead to a file name that does not exist.
    """
    try:
        file = parse_name(name, None if policy.ec is None else policy.ec.fragments)
    except UnexpectedName:
        return None
    kind = _KINDS.get(file.extension)
    if kind is None:
        return None
    entry = Entry(kind, file.timestamp, NOWHERE, 0, file.fragment, file.durable, True, file.ctype_timestamp)
    return entry if entry.name == name else None
