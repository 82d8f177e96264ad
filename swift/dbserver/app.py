"""Common base of account and container servers on top of ``BackendApp``: brokers and their errors.

A request names a device, a partition and an entity; ``broker_of`` finds the cached broker and has it look at
the disk. Errors of the database engine become statuses here: a broken database is quarantined, so that
replication can bring a good copy.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from swift.base.entity import EntityPath, NotUTF8, reserved_name_error
from swift.base.errors import DeviceUnavailable, InvalidValue
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.db.broker import Broker, Engine
from swift.db.cache import BrokerCache, Held
from swift.db.connection import DatabaseBroken, DatabaseFailing, DatabaseMissing, DatabaseUnwritable
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from swift.db.metadata import Metadata
from swift.db.verify import quarantine_and_log
from swift.http import fields
from swift.http.headers import HeaderMap, lower_name, title_case, utf8_value, wire_value
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.platform.devices import SpaceGuard
from swift.platform.disk import Disk
from swift.platform.regularfiles import CALL_FAILED, DEVICE_LOST
from swift.runtime.backendapp import BackendApp, BackendContext, Handler, split_backend_path

B = TypeVar("B", bound=Broker)

_HASHES_MAX = 4096
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class StorageTarget(NamedTuple):
    """The parts of a storage request's path."""

    device: str
    partition: str
    path: EntityPath


class DatabaseOptions(Protocol):
    """The options of both servers that concern databases."""

    @property
    def db_preallocation(self) -> bool:
        """Return True if databases are allocated in large steps."""

    @property
    def db_query_logging(self) -> bool:
        """Return True if every SQL statement is logged."""


class DatabaseApp(BackendApp, Generic[B]):
    """Subclasses set ``directory`` and ``broker_class`` and fill ``database_verbs``."""

    directory = ""
    broker_class: type[B]

    def __init__(
        self,
        context: BackendContext,
        settings: DatabaseOptions | None = None,
        *,
        disk: Disk | None = None,
        space: SpaceGuard | None = None,
    ):
        super().__init__(context)
        self.disk = disk or Disk()
        self.space = space or SpaceGuard(self.disk, None)
        self._query_log = context.telemetry.log.info if settings and settings.db_query_logging else None
        self._preallocate = settings is not None and settings.db_preallocation
        self._engines: dict[str, Engine] = {}
        #: The hash directory's name of an entity; the same ones are asked for again and again.
        self._hash_of = lru_cache(_HASHES_MAX)(context.hasher.hexdigest)
        self.brokers: BrokerCache[B] = BrokerCache(self._make_broker)

    def database_verbs(self) -> Mapping[str, Handler]:
        """Return method name → handler that may raise the errors of the database engine."""
        return {}

    def verbs(self) -> Mapping[str, Handler]:
        """Return the handlers with database errors answered."""
        return {name: _Answering(self, handler) for name, handler in self.database_verbs().items()}

    def respond(self, handler: Handler, request: Request) -> Response:
        """Return the response of a handler, with its errors answered; for parts of a request."""
        return self._call_handler(_Answering(self, handler), request)

    # --- finding things ---------------------------------------------------------------------------

    def target(self, request: Request, minimum: int, maximum: int) -> StorageTarget:
        """Return the checked path of a request.

        Raises ``HTTPError`` 400, ``UnexpectedPath`` and ``NotUTF8``.
        """
        device, partition, *names = split_backend_path(request, minimum, maximum)
        self.context.partitions.check(partition, self.server_type)
        for name in names[:2]:
            if name and "/" in name:
                raise HTTPError(400, f"Invalid path: {request.raw_path}", content_type=TEXT)
        path = EntityPath(*names)
        problem = reserved_name_error(path, self.context.limits.auto_create_account_prefix)
        if problem is not None:
            raise HTTPError(400, problem)
        return StorageTarget(device, partition, path)

    def broker_of(self, target: StorageTarget, *names: str) -> B:
        """Return the refreshed broker of an entity; raises ``DeviceUnavailable`` and database errors."""
        broker = self.known_broker(target, *names)
        broker.refresh()
        return broker

    def known_broker(self, target: StorageTarget, *names: str) -> B:
        """Return the same as it was left by the last request.

        Raises ``DeviceUnavailable`` and ``UnexpectedPath``.
        """
        try:
            device_path = self.context.devices.path(target.device)
        except DeviceUnavailable:
            self.brokers.forget_device(target.device)
            raise
        name_hash = self._hash_of(*names)
        self.context.partitions.check_hash(target.partition, self.server_type, name_hash)
        place = DatabasePath(device_path, self.directory, target.partition, name_hash)
        return self.brokers.get(place, *names)

    def check_space(self, broker: B) -> None:
        """Refuse writes that would eat into the reserve; raises ``NoSpace``."""
        self.space.check(broker.place.device_path, None)

    def now(self) -> Timestamp:
        """Return the clock's time."""
        return Timestamp(self.context.clock.time())

    def merge_metadata(
        self,
        merge: Callable[[Metadata, Callable[[Metadata], None]], None],
        metadata: Metadata,
        check: Callable[[Metadata], None],
    ) -> HeaderMap:
        """Merge metadata with a broker's ``merge``; return the headers that tell of newer values which stay.

        ``check`` may refuse the result by raising.
        """
        if not metadata:
            return {}
        newest = ""

        def look(merged: Metadata) -> None:
            nonlocal newest
            check(merged)
            newer = [merged[name][1] for name in metadata if merged[name][1] > metadata[name][1]]
            newest = max(newer, default="")

        merge(metadata, look)
        return {fields.BACKEND_TIMESTAMP: newest} if newest else {}

    def _make_broker(self, place: DatabasePath, *names: str) -> B:
        engine = self._engines.get(place.device)
        if engine is None:
            engine = self._engines[place.device] = Engine.at(
                self.context.disk_at(place.device, self.disk),
                self.context.telemetry.log.warning,
                trace=self._query_log,
                preallocate=self._preallocate,
            )
        return self.broker_class(place, engine, *names)

    # --- errors -----------------------------------------------------------------------------------

    def quarantine(self, error: DatabaseBroken, request: Request) -> bool:
        """Move a database aside that stays broken when it is read again, and say so; True if it was moved."""
        place = DatabasePath.of_file(error.path)
        telemetry = self.context.telemetry
        self.brokers.forget(place)
        return quarantine_and_log(
            self.context.disk_at(place.device, self.disk),
            place,
            error,
            tell=partial(telemetry.log.error, txid=request.headers.get("x-trans-id")),
            note=partial(telemetry.faults.note, place.device),
        )


class _Answering:
    """A handler whose database errors become responses."""

    __slots__ = ("_app", "_handler")

    def __init__(self, app: DatabaseApp[Any], handler: Handler):
        self._app = app
        self._handler = handler

    def __call__(self, request: Request) -> Response:
        try:
            with Held(self._app.brokers):
                return self._handler(request)
        except DatabaseMissing:
            return error_response(404)
        except DatabaseBroken as error:
            self._app.quarantine(error, request)
            return error_response(503)
        except DatabaseFailing as error:
            self._app.context.telemetry.faults.note(request.raw_path.split("/", 2)[1], error)
            self._app.context.telemetry.log.error(str(error), txid=request.headers.get("x-trans-id"))
            return error_response(503)
        except DatabaseUnwritable as error:
            self._app.context.telemetry.log.error(str(error), txid=request.headers.get("x-trans-id"))
            return error_response(507, drive=request.raw_path.split("/", 2)[1])
        except OSError as error:
            return self._failed(error, request)

    def _failed(self, error: OSError, request: Request) -> Response:
        """Return 507 for a device that is lost, full or takes no writes, else 503."""
        context, device = self._app.context, request.raw_path.split("/", 2)[1]
        context.telemetry.faults.note(device, error)
        context.telemetry.log.error(str(error), txid=request.headers.get("x-trans-id"))
        is_lost = error.errno in DEVICE_LOST or error.errno in _NO_ROOM
        if error.errno in CALL_FAILED and request.method not in ("GET", "HEAD"):
            is_lost = True
        if isinstance(error, FileNotFoundError):
            # Only a directory, which others remove while it is empty, if the device is there.
            is_lost = not context.devices.is_usable(device)
        return error_response(507, drive=device) if is_lost else error_response(503)


#: JSON messages larger than this are refused, bytes.
MESSAGE_BYTES_MAX = 64 << 20
_PIECE_BYTES = 1 << 20


def whole_body(request: Request, limit: int = MESSAGE_BYTES_MAX) -> bytes:
    """Return the body of a request in memory.

    Raises ``HTTPError`` 413 beyond ``limit`` and the body's errors.
    """
    data = bytearray()
    while piece := request.body.read(_PIECE_BYTES):
        data += piece
        if len(data) > limit:
            raise HTTPError(413)
    return bytes(data)


def listing_query(request: Request, default_limit: int, *, path: bool = True) -> ListingQuery:
    """Return the listing parameters of a GET (public-api.md §7.3); ``path`` is not known to accounts.

    Raises ``HTTPError`` 400 for a parameter that is not UTF-8 and 412 for a limit above the constraint.
    """
    given = listing_parameters(request)
    text = given.get("limit", "")
    try:
        # More digits than any constraint has are cut off: int() of a very long text is refused by Python.
        limit = int(text[:20]) if text.isdigit() else default_limit
    except ValueError:
        # Superscripts and the like count as digits, but not as numbers.
        limit = default_limit
    if limit > default_limit:
        raise HTTPError(412, f"Maximum limit is {default_limit}")
    return ListingQuery(
        limit=limit,
        marker=given.get("marker", ""),
        end_marker=given.get("end_marker", ""),
        prefix=given.get("prefix", ""),
        delimiter=given.get("delimiter", ""),
        path=given.get("path") if path else None,
        reverse=is_true(given.get("reverse")),
        reserved=is_true(request.headers.get(fields.BACKEND_ALLOW_RESERVED_NAMES)),
    )


_PARAMETERS = (
    *("limit", "marker", "end_marker", "prefix", "delimiter", "path", "format", "reverse"),
    *("states", "includes"),
)


def listing_parameters(request: Request) -> dict[str, str]:
    """Return the parameters that listings know, decoded; raises ``HTTPError`` 400 naming a bad one."""
    given = {}
    try:
        for name in _PARAMETERS:
            value = request.param_utf8(name)
            if value is not None:
                given[name] = value
    except NotUTF8 as error:
        raise HTTPError(400, str(error), content_type="text/plain")
    return given


# --- headers of both servers ------------------------------------------------------------------------


def stored_name(name: str) -> str:
    """Return a lower-case header name as the metadata column keeps it: Title-Case text."""
    return utf8_value(title_case(name))


def metadata_of(
    headers: HeaderMap, prefixes: tuple[str, ...], names: frozenset[str], timestamp: Timestamp
) -> dict[str, tuple[str, str]]:
    """Return the headers that the metadata column keeps, with the time of the request."""
    time = timestamp.internal
    return {
        stored_name(name): (utf8_value(value), time)
        for name, value in headers.items()
        if name in names or name.startswith(prefixes)
    }


def check_metadata_text(metadata: Mapping[str, tuple[str, str]]) -> None:
    """Refuse metadata that is not UTF-8 without NUL: ``HTTPError`` 400 (account-container.md §8)."""
    for name, (value, _time) in metadata.items():
        for text in (name, value):
            if "\x00" in text or not _is_utf8(text):
                raise HTTPError(400, "Metadata must be valid UTF-8")


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def metadata_headers(metadata: Mapping[str, tuple[str, str]]) -> HeaderMap:
    """Return stored metadata as response headers, deleted ones left out."""
    return {
        lower_name(wire_value(name)): wire_value(value) for name, (value, _time) in metadata.items() if value
    }


def header_int(headers: HeaderMap, name: str, default: int | None = None) -> int:
    """Return a whole number in a header; raises ``HTTPError`` 400 naming it."""
    text = headers.get(name)
    if text is None and default is not None:
        return default
    try:
        number = int(text or "")
    except ValueError:
        number = 1 << 64
    if not -(1 << 63) < number < 1 << 63:
        problem = "Missing" if text is None else "Invalid"
        raise HTTPError(400, f"{problem} {title_case(name)} header", content_type=TEXT)
    return number


def header_time(headers: HeaderMap, name: str, default: str | None = None) -> Timestamp:
    """Return a timestamp in a header; raises ``HTTPError`` 400 naming it."""
    text = headers.get(name, default)
    try:
        return Timestamp(text)
    except InvalidValue:
        problem = "Missing" if text is None else "Invalid"
        raise HTTPError(400, f"{problem} {title_case(name)} header", content_type=TEXT)
