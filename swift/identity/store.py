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
from swift.base.errors import SwiftError
from swift.base.memo import SizedCache
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.gateway.subrequest import Forward
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import Response
from swift.identity.names import ACCOUNT
from swift.identity.records import KINDS, RECORD_BYTES_MAX, DamagedRecord, Record, tombstone

RecordT = TypeVar("RecordT", bound=Record)

AGENT = "swift-identity"
REQUEST_TIMEOUT_S = 10.0
#: Seconds for which the document of a deleted record stays.
TOMBSTONE_S = 7 * 86400
_CONTENT = {"content-type": "application/json"}
#: The content type of a deleted record, by which listings leave it out.
_DELETED_TYPE = "application/x-deleted"
#: Bytes of records in a cache, and of each one besides its document.
CACHE_BYTES_MAX, ENTRY_BYTES = 64 << 20, 1 << 10
#: After a failure the next try is not sooner.
RETRY_S = 2.0


class StoreUnavailable(SwiftError):
    """The records cannot be read or changed now."""


class Conflict(SwiftError):
    """Another client has changed or created the record meanwhile."""


class Found(NamedTuple, Generic[RecordT]):
    """A record, None if there is none, and the ETag and the size of its document; empty for no document."""

    record: RecordT | None
    etag: str
    size_bytes: int = 0


def identity_client(forward: Forward) -> InternalClient:
    """Return the client of records for a pipeline; they are stored without encryption, as they are."""

    def send(request: Request) -> Response:
        env = request.env
        env[environkeys.AUTHORIZE] = _allow
        env[environkeys.AUTHORIZE_OVERRIDE] = True
        env[environkeys.CRYPTO_OVERRIDE] = True
        env[environkeys.ACCESS_LOG_MADE] = True
        env[environkeys.RATELIMIT_HANDLED] = True
        env[environkeys.ADMITTED] = True
        return forward(request)

    return InternalClient(send, AGENT, tries=2, timeout_s=REQUEST_TIMEOUT_S, backoff_s=0.1)


def _allow(_request: Request) -> None:
    """Authorize everything."""


class RecordStore:
    """Reads and changes records."""

    def __init__(self, client: InternalClient):
        self._client = client

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
        path = EntityPath(ACCOUNT, kind.kind, name)
        try:
            with self._client.request("GET", path, {"x-newest": "true"}, accept=(200, 404)) as response:
                if response.status == 404:
                    return Found(None, "")
                etag = response.headers.get("etag", "").strip('"')
                body = response.read_body(RECORD_BYTES_MAX)
        except (UnexpectedResponse, BodyError) as error:
            raise StoreUnavailable(f"cannot read {kind.kind}/{name}: {error}")
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
        self._send(kind.kind, name, tombstone(), found.etag, headers)
        return True

    def put_unconditionally(self, record: Record) -> None:
        """Store a record of which the last writer wins."""
        path = EntityPath(ACCOUNT, record.kind, record.name)
        try:
            self._client.put(path, record.to_document(), _CONTENT)
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot store {record.kind}/{record.name}: {error}")

    def _put(self, record: Record, document: bytes, etag: str) -> str:
        if len(document) > RECORD_BYTES_MAX:
            raise StoreUnavailable(f"{record.kind}/{record.name} is larger than {RECORD_BYTES_MAX} bytes")
        return self._send(record.kind, record.name, document, etag, {})

    def _send(self, kind: str, name: str, document: bytes, etag: str, headers: dict[str, str]) -> str:
        condition = {"if-match": f'"{etag}"'} if etag else {"if-none-match": "*"}
        path = EntityPath(ACCOUNT, kind, name)
        sent = {**_CONTENT, **headers, **condition}
        try:
            for attempt in (1, 2):
                with self._client.request(
                    "PUT", path, sent, document, accept=(201, 404, 412, 409)
                ) as response:
                    status, stored = response.status, response.headers.get("etag", "").strip('"')
                if status != 404 or attempt == 2:
                    break
                self.create_containers()
            if status != 201:
                stored = self._etag_of_stored(path, document)
        except (UnexpectedResponse, BodyError) as error:
            raise StoreUnavailable(f"cannot store {kind}/{name}: {error}")
        if not stored:
            raise Conflict(f"{kind}/{name} was changed by another client meanwhile")
        return stored

    def _etag_of_stored(self, path: EntityPath, document: bytes) -> str:
        """Return the ETag of a document if it is stored, else an empty text.

        A PUT that was stored although its response was an error is sent again, and then refused.
        """
        with self._client.request("GET", path, {"x-newest": "true"}, accept=(200, 404)) as response:
            is_stored = response.status == 200 and response.read_body(RECORD_BYTES_MAX) == document
            return response.headers.get("etag", "").strip('"') if is_stored else ""

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
