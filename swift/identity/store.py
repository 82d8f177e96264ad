"""The store of records: objects of a reserved account, changed by conditional writes, and cached.

``RecordStore`` reads and writes; one of two writers wins (``Conflict``). ``RecordCache`` keeps what it has
read for at most ``stale_s``, so that a change is seen everywhere within that time, and for ``outage_s`` while
the account cannot be read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from swift import green
from swift.base.entity import EntityPath
from swift.base.memo import SizedCache
from swift.gateway.documents import Conflict, DocumentStore, StoreUnavailable
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.identity.names import ACCOUNT
from swift.identity.records import KINDS, RECORD_BYTES_MAX, DamagedRecord, Record, tombstone

RecordT = TypeVar("RecordT", bound=Record)

AGENT = "swift-identity"
#: Seconds for which the document of a deleted record stays.
TOMBSTONE_S = 7 * 86400
_CONTENT = {"content-type": "application/json"}
#: The content type of a deleted record, by which listings leave it out.
_DELETED_TYPE = "application/x-deleted"
#: Bytes of records in a cache, and of each one besides its document.
CACHE_BYTES_MAX, ENTRY_BYTES = 64 << 20, 1 << 10
#: After a failure the next try is not sooner.
RETRY_S = 2.0


class Found(NamedTuple, Generic[RecordT]):
    """A record, None if there is none, and the ETag and the size of its document; empty for no document."""

    record: RecordT | None
    etag: str
    size_bytes: int = 0


class RecordStore:
    """Reads and changes records."""

    def __init__(self, client: InternalClient):
        self._client = client
        self._documents = DocumentStore(client, ACCOUNT, RECORD_BYTES_MAX, self.create_containers)

    def create_containers(self) -> None:
        """Create the account and its containers; raise ``StoreUnavailable``."""
        try:
            self._client.create(EntityPath(ACCOUNT))
            for kind in KINDS:
                self._client.create(EntityPath(ACCOUNT, kind.kind))
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot create {ACCOUNT}: {error}")

    def read(self, kind: type[RecordT], name: str) -> Found[RecordT]:
        """Return the newest version of a record; raise ``StoreUnavailable`` and ``DamagedRecord``."""
        body, etag = self._documents.read(kind.kind, name)
        if body is None:
            return Found(None, "")
        try:
            tree = json.loads(body)
            if not isinstance(tree, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            raise DamagedRecord(f"{kind.kind}/{name}: {error}")
        if "deleted" in tree:
            return Found(None, etag)
        return Found(kind.from_document(name, tree), etag, len(body))

    def create(self, record: Record) -> str:
        """Store a new record and return its ETag; raise ``Conflict`` if there is one."""
        found = self.read(type(record), record.name)
        if found.record is not None:
            raise Conflict(f"{record.kind}/{record.name} exists")
        return self._put(record, record.to_document(), found.etag)

    def replace(self, record: Record, etag: str) -> str:
        """Store a record in place of the one with an ETag, and return the new ETag; raise ``Conflict``."""
        return self._put(record, record.to_document(), etag)

    def update(
        self, kind: type[RecordT], name: str, change: Callable[[RecordT], RecordT], *, tries: int = 8
    ) -> RecordT | None:
        """Change a record whatever others do meanwhile; None if there is none.

        ``change`` is called once a try. Raises ``Conflict`` if others are always first.
        """
        for _ in range(tries):
            found = self.read(kind, name)
            if found.record is None:
                return None
            changed = change(found.record)
            if changed == found.record:
                return changed
            try:
                self.replace(changed, found.etag)
                return changed
            except Conflict:
                continue
        raise Conflict(f"{kind.kind}/{name} is changed by others all the time; try again")

    def delete(self, kind: type[Record], name: str) -> bool:
        """Delete a record, damaged ones too; return False if there was none. Raise ``Conflict``."""
        try:
            found: Found[Record] = self.read(kind, name)
        except DamagedRecord:
            try:
                head = self._client.head(EntityPath(ACCOUNT, kind.kind, name))
            except UnexpectedResponse as error:
                raise StoreUnavailable(f"cannot read {kind.kind}/{name}: {error}")
            found = Found(None, (head or {}).get("etag", "").strip('"'))
            if head is None:
                return False
        else:
            if found.record is None:
                return False
        headers = {"x-delete-after": str(TOMBSTONE_S), "content-type": _DELETED_TYPE}
        self._documents.write(kind.kind, name, tombstone(), found.etag, headers)
        return True

    def put_unconditionally(self, record: Record) -> None:
        """Store a record of which the last writer wins."""
        path = EntityPath(ACCOUNT, record.kind, record.name)
        try:
            self._client.put(path, record.to_document(), _CONTENT)
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot store {record.kind}/{record.name}: {error}")

    def _put(self, record: Record, document: bytes, etag: str) -> str:
        return self._documents.write(record.kind, record.name, document, etag, _CONTENT)

    def names(self, kind: type[Record], prefix: str = "", marker: str = "") -> Iterator[str]:
        """Yield the names of the records of a kind that begin with a prefix, after a marker, in order.

        A record that was created or deleted a moment ago may be missing or among them.
        """
        try:
            for row in self._client.objects(ACCOUNT, kind.kind, prefix=prefix, marker=marker):
                if row.get("content_type") != _DELETED_TYPE:
                    yield str(row["name"])
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot list {kind.kind}: {error}")


# --- the cache ----------------------------------------------------------------------------------------


class _Entry:
    """A record or the reason why it cannot be read, and since when that is known."""

    __slots__ = ("found", "damage", "read_at", "retry_at", "reading")

    def __init__(self) -> None:
        self.found: Found[Record] | None = None
        self.damage: DamagedRecord | None = None
        self.read_at = float("-inf")
        self.retry_at = float("-inf")
        self.reading: green.Event | None = None


class RecordCache:
    """Records of one worker. ``get`` returns what was read at most ``stale_s`` ago.

    Past half of that time it reads again in the background, so that requests of frequent callers do not
    wait. While the account cannot be read, records stay for ``outage_s``.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        stale_s: float,
        outage_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        spawn: Callable[[Callable[[], object]], object] = green.spawn_detached,
        log_failure: Callable[[str], None] = lambda _text: None,
    ):
        self.store = store
        self._stale_s = stale_s
        self._outage_s = max(stale_s, outage_s)
        self._monotonic = monotonic
        self._spawn = spawn
        self._log_failure = log_failure
        self._entries: SizedCache[tuple[str, str], _Entry] = SizedCache(CACHE_BYTES_MAX)

    def get(self, kind: type[RecordT], name: str) -> RecordT | None:
        """Return a record, None if there is none; raise ``StoreUnavailable`` and ``DamagedRecord``."""
        return self.get_until(kind, name)[0]

    def get_until(self, kind: type[RecordT], name: str) -> tuple[RecordT | None, float]:
        """Return the same, and the monotonic time from which it has to be asked for again."""
        key = kind.kind, name
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries.keep(key, _Entry(), ENTRY_BYTES)
        now = self._monotonic()
        age = now - entry.read_at
        if age > self._stale_s:
            if now >= entry.retry_at:
                self._read(entry, kind, name)
            if self._monotonic() - entry.read_at > self._outage_s:
                raise StoreUnavailable(f"{kind.kind}/{name} cannot be read")
        elif age > self._stale_s / 2 and entry.reading is None and now >= entry.retry_at:
            self._spawn(lambda: self._read(entry, kind, name))
        if entry.damage is not None:
            raise entry.damage
        assert entry.found is not None, "it was read"
        record = entry.found.record
        assert record is None or isinstance(record, kind)
        return record, min(entry.read_at + self._stale_s / 2, now + self._stale_s / 2)

    def forget(self, kind: type[Record], name: str) -> None:
        """Read a record anew next time; this worker has changed it."""
        self._entries.drop((kind.kind, name))

    def _read(self, entry: _Entry, kind: type[Record], name: str) -> None:
        """Read a record once for all who ask at the same moment."""
        if entry.reading is not None:
            entry.reading.wait()
            return
        entry.reading = green.Event()
        begun = self._monotonic()
        size_bytes = 0
        try:
            try:
                found = self.store.read(kind, name)
                size_bytes = found.size_bytes
                entry.found, entry.damage = found, None
            except DamagedRecord as error:
                self._log_failure(str(error))
                entry.found, entry.damage = None, error
            entry.read_at = begun
            if self._entries.get((kind.kind, name)) is entry:
                self._entries.keep((kind.kind, name), entry, ENTRY_BYTES + size_bytes)
        except StoreUnavailable as error:
            entry.retry_at = self._monotonic() + RETRY_S
            self._log_failure(str(error))
        finally:
            event, entry.reading = entry.reading, None
            event.set()
