"""Reading objects: from the entries of the index to a merged state and a body."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swift.http.body import FileBody
from swift.platform.waiting import before_blocking
from swift.store.api import ObjectKey, ObjectState, ReadOptions
from swift.store.chooser import Choice
from swift.store.core import EngineCore
from swift.store.errors import CorruptBody, Damaged, FilesChanged
from swift.store.layout import DATA, FileName
from swift.store.metadata import Metadata, decode_metadata, read_metadata
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry
from swift.store.packed.record import BadRecord, Kind
from swift.store.packed.volumes import StoredRecord
from swift.store.reader import Loaded, choose_for, load, state_of

#: Bytes that are read with the header of a record whose body is not wanted: metadata is seldom longer.
HEAD_BYTES = 4096
#: A body that is opened is read together with its header up to this size.
OPENED_BYTES = 256 << 10
#: Bytes of a body that are given out at a time.
BLOCK_BYTES = 64 << 10


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


class Reader:
    """Reads the objects of one device."""

    def __init__(self, core: EngineCore, device: PackedDevice):
        self._core = core
        self._device = device

    def load(
        self,
        key: ObjectKey,
        object_hash: bytes,
        entries: list[Entry],
        options: ReadOptions,
        *,
        open_data: bool,
    ) -> PackedLoaded:
        """Return the state that ``entries`` amount to.

        Raises ``FilesChanged`` when records were moved meanwhile, ``Damaged``, ``HashCollision``, OSError.
        """
        by_name = {entry.name: entry for entry in entries}
        if len(entries) == 1 and entries[0].kind is Kind.DATA and key.policy.ec is None:
            # By far the most objects: a body that was never touched again.
            (name,) = by_name
            choice = Choice(data=FileName(name, entries[0].timestamp, DATA))
        else:
            choice = choose_for(list(by_name), key, options)
        data = None if choice.data is None else by_name[choice.data.name]
        if data is None or not data.external:
            loaded = self._load_packed(key, object_hash, by_name, choice, data, options, open_data)
        else:
            loaded = self._load_external(key, object_hash, by_name, choice, options, open_data)
        loaded.entries = entries
        return loaded

    def _load_packed(
        self,
        key: ObjectKey,
        object_hash: bytes,
        by_name: dict[str, Entry],
        choice: Choice,
        data: Entry | None,
        options: ReadOptions,
        open_data: bool,
    ) -> PackedLoaded:
        record: StoredRecord | None = None
        if data is not None:
            length = min(data.read_bytes, OPENED_BYTES if open_data else HEAD_BYTES)
            record = self.record(data, object_hash, length)

        def read(file: FileName) -> Metadata:
            if record is not None and file is choice.data:
                return decode_metadata(record.metadata)
            entry = by_name[file.name]
            if entry.external:
                before_blocking()
                directory = self._core.object_path(key).directory
                return read_metadata(self._core.disk, f"{directory}/{entry.name}")
            return self.metadata(entry, object_hash)

        size = 0 if record is None else record.header.body_bytes
        state = state_of(choice, key, options, read, size)
        return PackedLoaded(state, choice, record)

    def _load_external(
        self,
        key: ObjectKey,
        object_hash: bytes,
        by_name: dict[str, Entry],
        choice: Choice,
        options: ReadOptions,
        open_data: bool,
    ) -> PackedLoaded:
        """Load an object whose body is a file; what was posted may be packed."""
        before_blocking()
        core, directory = self._core, self._core.object_path(key).directory
        assert choice.data is not None
        file = load(core.disk, directory, [choice.data.name], key, _any_archive(options), open_data=open_data)
        try:

            def read(each: FileName) -> Metadata:
                entry = by_name[each.name]
                if entry.external:
                    return read_metadata(core.disk, f"{directory}/{each.name}")
                return self.metadata(entry, object_hash)

            state = state_of(choice, key, options, read, file.state.size)
        except BaseException:
            if file.fd is not None:
                core.disk.close(file.fd)
            raise
        return PackedLoaded(state, choice, None, file)

    def record(self, entry: Entry, object_hash: bytes, length: int) -> StoredRecord:
        """Return the record of an entry, checked to be of this object.

        Raises ``Damaged``, ``FilesChanged`` when it was moved, OSError.
        """
        try:
            record = self._device.read(entry, length)
        except FileNotFoundError:
            raise FilesChanged(f"volume {entry.position.volume} of {self._device.path} is gone")
        except BadRecord as error:
            raise Damaged(f"{error} at {_spot(entry)}")
        header = record.header
        if header.hash != object_hash or header.timestamp != entry.timestamp or header.kind != entry.kind:
            raise Damaged(f"another record is at {_spot(entry)}")
        return record

    def metadata(self, entry: Entry, object_hash: bytes) -> Metadata:
        """Return the metadata of an entry; raises like ``record``."""
        return decode_metadata(self.record(entry, object_hash, HEAD_BYTES).metadata)


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
        """See ``StoredObject``: small bodies were read with their headers."""
        record, size = self._record, self.state.size
        if record is None or size > size_max or not record.has_body:
            return None
        return self._read()

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """See ``StoredObject``; the checksum of the whole body is compared before its first byte."""
        if start >= stop:
            return
        body = self._read()
        if start == 0 and stop == len(body) <= BLOCK_BYTES:
            yield body
            return
        for begin in range(start, stop, BLOCK_BYTES):
            yield body[begin : min(stop, begin + BLOCK_BYTES)]

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """See ``StoredObject``."""
        return self.blocks(start, stop)

    def close(self) -> None:
        """See ``StoredObject``."""
        self._record = self._body = None

    def __repr__(self) -> str:
        return f"<PackedObject {self.state.kind} {self.state.size} bytes>"
