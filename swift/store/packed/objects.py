"""Reading objects: from the entries of the index to a merged state and a body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Protocol

from swift.http.body import FileBody
from swift.store.api import ObjectKey, ObjectState, ReadOptions
from swift.store.chooser import Choice
from swift.store.core import EngineCore
from swift.store.errors import CorruptBody, Damaged, FilesChanged
from swift.store.layout import DATA, FileName
from swift.store.metadata import Metadata, decode_metadata, read_metadata
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry
from swift.store.packed.record import BadRecord, Kind, Position
from swift.store.packed.volumes import StoredRecord
from swift.store.reader import Loaded, choose_for, load, state_of

#: Bytes that are read with the header of a record whose body is not wanted: metadata is seldom longer.
HEAD_BYTES = 4096
#: A body that is opened is read together with its header up to this size, a longer one in one piece later.
OPENED_BYTES = 256 << 10


class PackedLoaded:
    """A state with the record of the body, and the choice behind it."""

    __slots__ = ("state", "choice", "record", "file", "entries")

    def __init__(
        self,
        state: ObjectState,
        choice: Choice,
        record: StoredRecord | None = None,
        file: Loaded | None = None,
    ):
        self.state = state
        self.choice = choice
        #: All of the object's, as they were read.
        self.entries: list[Entry] = []
        #: None when there is no body, or when it is a file.
        self.record = record
        #: The open file of a large body.
        self.file = file


class RecordReader(ABC):
    """Merges the records of one object; subclasses say where they are."""

    def __init__(self, key: ObjectKey, object_hash: bytes):
        self._key = key
        self._hash = object_hash

    def load(self, entries: list[Entry], options: ReadOptions, *, open_data: bool) -> PackedLoaded:
        """Return the state that ``entries`` amount to.

        Raises ``FilesChanged`` when records were moved meanwhile, ``Damaged``, ``HashCollision``, OSError.
        """
        by_name, choice = self._choose(entries, options)
        loaded = self._load(by_name, choice, options, open_data)
        loaded.entries = entries
        return loaded

    def _choose(self, entries: list[Entry], options: ReadOptions) -> tuple[dict[str, Entry], Choice]:
        by_name = {entry.name: entry for entry in entries}
        if len(entries) == 1 and entries[0].kind is Kind.DATA and self._key.policy.ec is None:
            # By far the most objects: a body that was never touched again.
            (name,) = by_name
            return by_name, Choice(data=FileName(name, entries[0].timestamp, DATA))
        return by_name, choose_for(list(by_name), self._key, options)

    def _load(
        self, by_name: dict[str, Entry], choice: Choice, options: ReadOptions, open_data: bool
    ) -> PackedLoaded:
        record: StoredRecord | None = None
        if choice.data is not None:
            record = self.record(by_name[choice.data.name], open_data=open_data)

        def read(file: FileName) -> Metadata:
            if record is not None and file is choice.data:
                return decode_metadata(record.metadata)
            return self._metadata(by_name[file.name])

        size = 0 if record is None else record.header.body_bytes
        return PackedLoaded(state_of(choice, self._key, options, read, size), choice, record)

    def record(self, entry: Entry, *, open_data: bool = False) -> StoredRecord:
        """Return the record of an entry, checked to be of this object; see ``wanted_bytes``.

        Raises ``Damaged``, ``FilesChanged`` when it was moved, OSError.
        """
        record = self._fetch(entry, open_data)
        header = record.header
        if header.hash != self._hash or header.timestamp != entry.timestamp or header.kind != entry.kind:
            raise Damaged(f"another record is at {_spot(entry)}")
        return record

    @abstractmethod
    def _fetch(self, entry: Entry, open_data: bool) -> StoredRecord:
        """Return the record at the place of an entry."""

    def _metadata(self, entry: Entry) -> Metadata:
        return decode_metadata(self.record(entry).metadata)


class CachedVolumes(Protocol):
    """Volumes, of which only memory is read."""

    def try_read(self, position: Position, length: int) -> StoredRecord | None:
        """Return a record if it is in memory; else None. Raises ``BadRecord``, OSError."""


class MemoryReader(RecordReader):
    """Reads an object as far as its records are in memory."""

    def __init__(self, key: ObjectKey, object_hash: bytes, volumes: CachedVolumes):
        self._key = key
        self._hash = object_hash
        self._volumes = volumes
        self._records: dict[Position, StoredRecord] = {}

    def try_load(self, entries: list[Entry], options: ReadOptions, *, open_data: bool) -> PackedLoaded | None:
        """Return what ``load`` does if it is in memory; else None. Raises ``HashCollision``."""
        by_name, choice = self._choose(entries, options)
        try:
            for file in (choice.data, choice.meta, choice.ctype, choice.tombstone):
                if file is None:
                    continue
                entry = by_name[file.name]
                if entry.external:
                    return None
                record = self._volumes.try_read(entry.position, wanted_bytes(entry, open_data))
                if record is None:
                    return None
                self._records[entry.position] = record
            loaded = self._load(by_name, choice, options, open_data)
        except (BadRecord, Damaged, OSError):
            return None
        loaded.entries = entries
        return loaded

    def _fetch(self, entry: Entry, open_data: bool) -> StoredRecord:
        return self._records[entry.position]


class Reader(RecordReader):
    """Reads an object on a device."""

    def __init__(self, core: EngineCore, device: PackedDevice, key: ObjectKey, object_hash: bytes):
        super().__init__(key, object_hash)
        self._core = core
        self._device = device

    def _load(
        self, by_name: dict[str, Entry], choice: Choice, options: ReadOptions, open_data: bool
    ) -> PackedLoaded:
        if choice.data is None or not by_name[choice.data.name].external:
            return super()._load(by_name, choice, options, open_data)
        # The body is a file; what was posted may be packed.
        core, key = self._core, self._key
        options = _any_archive(options)
        file = load(core.disk, self._directory, [choice.data.name], key, options, open_data=open_data)
        try:
            state = state_of(
                choice, key, options, lambda each: self._metadata(by_name[each.name]), file.state.size
            )
        except BaseException:
            if file.fd is not None:
                core.disk.close(file.fd)
            raise
        return PackedLoaded(state, choice, None, file)

    @property
    def _directory(self) -> str:
        return self._core.object_path(self._key).directory

    def _metadata(self, entry: Entry) -> Metadata:
        if entry.external:
            return read_metadata(self._core.disk, f"{self._directory}/{entry.name}")
        return super()._metadata(entry)

    def _fetch(self, entry: Entry, open_data: bool) -> StoredRecord:
        try:
            return self._device.volumes.read(entry.position, wanted_bytes(entry, open_data))
        except FileNotFoundError:
            raise FilesChanged(f"volume {entry.position.volume} of {self._device.path} is gone")
        except BadRecord as error:
            raise Damaged(f"{error} at {_spot(entry)}")


def wanted_bytes(entry: Entry, open_data: bool) -> int:
    """Return how many bytes of a record are read at once; with ``open_data`` its body is wanted."""
    wanted = entry.read_bytes
    return wanted if open_data and wanted <= OPENED_BYTES else min(wanted, HEAD_BYTES)


def _any_archive(options: ReadOptions) -> ReadOptions:
    """Return options with which an archive counts although it is not known to be durable."""
    return options._replace(preferences=[] if options.preferences is None else options.preferences)


def _spot(entry: Entry) -> str:
    return f"{entry.position.unit} of volume {entry.position.volume}"


class PackedObject:
    """``StoredObject`` in a volume."""

    __slots__ = ("state", "keep_cache", "check_md5", "_record", "_quarantine", "_body")

    def __init__(self, state: ObjectState, record: StoredRecord | None, quarantine: Callable[[str], None]):
        self.state = state
        self.keep_cache = True
        self.check_md5 = True
        self._record = record
        self._quarantine = quarantine
        self._body: bytes | None = None

    def _read(self) -> bytes:
        if self._body is None:
            assert self._record is not None
            try:
                self._body = self._record.body()
            except BadRecord as error:
                self._quarantine(str(error))
                raise CorruptBody(str(error))
        return self._body

    def read_cached(self, size_max: int) -> bytes | None:
        """Return a small body that was read with its header; None if its checksum is wrong."""
        record = self._record
        if record is None or self.state.size > size_max or not record.has_body:
            return None
        try:
            return record.body()
        except BadRecord:
            return None

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """See ``StoredObject``; the checksum of the whole body is compared before its first byte.

        All of it is one block: it is in memory then, and each further block would be another call to threads.
        """
        if start < stop:
            body = self._read()
            yield body if stop - start == len(body) else body[start:stop]

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        return self.blocks(start, stop)

    def close(self) -> None:
        self._record = self._body = None

    def __repr__(self) -> str:
        return f"<PackedObject {self.state.kind} {self.state.size} bytes>"
