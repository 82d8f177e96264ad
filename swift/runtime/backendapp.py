"""Base of the account, container and object servers.

A ``BackendApp`` looks a verb up in its table, turns errors into statuses at this one boundary, and
writes the access line in the peer's field order (spec: account-container.md §12 end). It refuses to
know what any verb does.

Validates the partitions of requests to a storage server against its ring.

A partition becomes a directory, so anything else that looks like a number (``01``, one beyond the ring) would
hide what is stored there from every daemon. Rings only ever grow: the number of partitions is read again when
one beyond it is asked for and the file has changed since. Without a ring every partition of the largest
possible one is taken.

While partitions are being split, ``find_partition`` returns the one of the two that stores an object. The
file is then checked at every request: all workers of a node must use the new partitions from the same moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from wsgiref.types import StartResponse, WSGIEnvironment

from swift import __version__, green
from swift.base.clock import Clock, SystemClock
from swift.base.entity import NotUTF8, decode_path, is_utf8_path, normalize_path_quoting
from swift.base.errors import DeviceUnavailable, LockTimeout, NoSpace
from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.base.timestamp import InvalidTimestamp
from swift.base.truth import is_true
from swift.cluster.transport import Transport, TransportError
from swift.config.kinds import IPNetwork, is_in_networks
from swift.http import fields
from swift.http.body import BadFraming, BodyTimeout, ClientDisconnected
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.platform.regularfiles import FileIdentity, file_identity
from swift.policy.policy import Policies
from swift.ring.errors import PartPowerError, RingError
from swift.ring.ring import RELOAD_INTERVAL_S
from swift.ring.ringfile import load_table
from swift.ring.split import Home, home_of
from swift.runtime.diskcalls import DiskThreadPools
from swift.runtime.layoutpages import PREFIX as LAYOUT_PREFIX
from swift.runtime.layoutpages import LayoutPages
from swift.runtime.serverguard import ServerGuard
from swift.telemetry.accesslog import AccessLog, common_log_time
from swift.telemetry.events import Event
from swift.telemetry.logtemplate import LogTemplate, TemplateFields, with_txid
from swift.telemetry.metrics import CounterMetric, HistogramMetric
from swift.telemetry.telemetry import Telemetry

_TIMING = Event(
    "{method}{errors}.timing", "Duration of a request; `.errors` for status 500 and higher but 507."
)

_DURATION = HistogramMetric(
    "swift_backend_request_seconds", "Duration of requests of storage servers.", ("server", "method")
)
_RESPONSES = CounterMetric(
    "swift_backend_responses_total", "Responses of storage servers, by status.", ("server", "status")
)

#: Partitions of the largest ring there can be.
PARTITIONS_MAX = 1 << 32
_DIGITS_MAX = len(str(PARTITIONS_MAX))


class UnexpectedPath(Exception):
    """A path that no sender with this node's ring makes; ``BackendApp`` responds with 400.

    If the device cannot be used, the response is 507: OpenStack Swift checks the device first. Its tools
    wait for servers by requests such as ``GET /connect/1/2/3/4``.
    """


@dataclass(slots=True)
class _RingContent:
    """Content of one ring file."""

    count: int = PARTITIONS_MAX
    #: None while there is no ring.
    part_power: int | None = None
    next_part_power: int | None = None
    #: When the file that was read had been written.
    identity: FileIdentity | None = None
    #: Until when the file is not looked at again, unless there is a reason.
    until_s: float = float("-inf")


class RingPartitions:
    """The partitions of the rings in a directory; ``swift_dir`` empty stands for no rings."""

    __slots__ = ("_dir", "_known", "_monotonic")

    def __init__(self, swift_dir: str = "", *, clock: Clock | None = None):
        self._dir = swift_dir
        self._known: dict[str, _RingContent] = {}
        self._monotonic = (clock or SystemClock()).monotonic

    def check(self, partition: str, ring_name: str) -> None:
        """Raise ``UnexpectedPath`` unless the ring ``<ring_name>.ring.gz`` has that partition."""
        if partition.isascii() and partition.isdigit() and len(partition) <= _DIGITS_MAX:
            number = int(partition)
            if len(partition) > 1 and partition[0] == "0":
                number = PARTITIONS_MAX
            known = self._known.get(ring_name)
            if known is not None and known.part_power is not None and number < known.count:
                return
            if number < self._ring_content(ring_name).count:
                return
        raise UnexpectedPath(f"Invalid partition: {partition[: _DIGITS_MAX + 1]}")

    def check_hash(self, partition: str, ring_name: str, name_hash: str) -> None:
        """Raise ``UnexpectedPath`` unless a partition, which was checked, is that of a path's hash.

        While partitions are being split, both of a path's are. Without a ring every one is taken.
        """
        value, asked = int(name_hash[:8], 16), int(partition)
        known = self._known.get(ring_name)
        power = None if known is None else known.part_power
        if power is not None and value >> (32 - power) == asked:
            return
        if not self._matches_partition(value, asked, self._ring_content(ring_name)):
            raise UnexpectedPath(f"Partition {partition} is not that of the path")

    @staticmethod
    def _matches_partition(value: int, asked: int, known: _RingContent) -> bool:
        power, following = known.part_power, known.next_part_power
        if power is None:
            return True
        powers = [power]
        if following is not None:
            # Senders may have the ring of the step before, or of one that was cancelled.
            powers += [following, power - 1, power + 1] if following == power else [following]
        return any(value >> (32 - each) == asked for each in powers if 0 <= each <= 32)

    def find_partition(
        self, partition: str, ring_name: str, name_hash: str, *, is_splitting: bool
    ) -> Home | None:
        """Return the partition that stores an object requested with ``partition``, which is valid.

        None when its partition is not being split. ``is_splitting`` is whether the sender says that it is.
        """
        known = self._known.get(ring_name)
        if known is None:
            # There are no rings.
            return None
        power = known.part_power
        if (
            is_splitting
            or known.next_part_power is not None
            or power is None
            or int(name_hash[:8], 16) >> (32 - power) != int(partition)
            or self._monotonic() >= known.until_s
        ):
            known = self._ring_content(ring_name)
        if known.part_power is None or known.next_part_power is None:
            return None
        try:
            return home_of(partition, name_hash, known.part_power, known.next_part_power)
        except PartPowerError:
            return None

    def _ring_content(self, ring_name: str) -> _RingContent:
        """Return the ring file's content; during a part power increase the larger number of partitions."""
        known = self._known.get(ring_name)
        if known is None:
            known = _RingContent()
            if not self._dir:
                return known
            self._known[ring_name] = known
        path = os.path.join(self._dir, f"{ring_name}.ring.gz")
        known.until_s = self._monotonic() + RELOAD_INTERVAL_S
        try:
            identity = file_identity(path)
            if identity != known.identity:
                table = load_table(path, thorough=known.part_power is not None)
                known.part_power, known.next_part_power = table.part_power, table.next_part_power
                known.count = 1 << max(table.part_power, table.next_part_power or 0)
                known.identity = identity
        except (OSError, RingError):
            # Keep the last known ring: it is better than none.
            return known
        return known

    def __repr__(self) -> str:
        counts = {name: known.count for name, known in self._known.items()}
        return f"Partitions({self._dir!r}, {counts})"


_RELATIVE_NAMES = frozenset((".", ".."))

_NOT_UTF8 = "Invalid UTF8 or contains NULL"

Handler = Callable[[Request], Response]

#: The fields of ``log_format``.
ACCESS_FIELDS = TemplateFields(
    plain=(
        "method",
        "status",
        "content_length",
        "txn_id",
        "trans_time",
        "additional_info",
        "pid",
        "policy_index",
    ),
    anonymous=("remote_addr", "path", "referer", "user_agent"),
    moments=("time",),
)


class _NoTransport:
    """Refuses all requests; the default of a context that needs no network."""

    def request(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Fail as an unreachable node would."""
        raise TransportError("this service has no transport")

    stream = request


@dataclass(frozen=True)
class DateLimit:
    """Refuses changes dated further ahead than ``ahead_max_s`` of the clock; 0 refuses none.

    One proxy with a fast clock would otherwise hide the later changes of all others until that date.
    ``exempt`` are the networks of nodes that may send any date.
    """

    ahead_max_s: float = 0.0
    exempt: Sequence[IPNetwork] = ()

    def check(self, request: Request, clock: Clock) -> None:
        """Raise ``HTTPError`` 400 for a change from the future, and ``InvalidTimestamp``."""
        if not self.ahead_max_s:
            return
        ahead_s = request.timestamp.seconds - clock.time()
        if ahead_s <= self.ahead_max_s or is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            return
        if is_in_networks(request.remote_addr, self.exempt):
            return
        raise HTTPError(
            400,
            f"X-Timestamp is {ahead_s:.1f} s ahead of this server's clock",
            content_type=TEXT,
            headers={fields.BACKEND_TIMESTAMP_AHEAD: f"{ahead_s:.1f}"},
        )


@dataclass
class BackendContext:
    """Everything a storage server is handed by the composition root."""

    devices: Devices
    hasher: PathHasher = field(default_factory=PathHasher)
    limits: Limits = field(default_factory=Limits)
    policies: Policies = field(default_factory=Policies.single)
    telemetry: Telemetry = field(default_factory=Telemetry)
    clock: Clock = field(default_factory=SystemClock)
    transport: Transport = field(default_factory=_NoTransport)
    pools: DiskThreadPools = field(default_factory=lambda: DiskThreadPools(0))
    access_log: AccessLog | None = None
    #: The operator's format of access lines; None: the one of OpenStack Swift.
    access_template: LogTemplate | None = None
    replication_server: bool = True
    partitions: RingPartitions = field(default_factory=RingPartitions)
    layout: LayoutPages = field(default_factory=LayoutPages)
    #: The rule that refuses changes because of their date.
    dates: DateLimit = field(default_factory=DateLimit)
    #: The rule that refuses requests that no server of the cluster has signed; None: there is none.
    guard: ServerGuard | None = None
    #: The address and port under which this node stands in rings, as daemons need it; "" is any address.
    ring_ip: str = ""
    ring_port: int = 0

    def disk_at(self, device: str, disk: Disk, purpose: str = "") -> DiskHandle:
        """Return the handle of a device's disk; calls for a ``purpose`` have threads of their own."""
        pools = self.pools
        return DiskHandle(disk, pools.threads(device, purpose) if purpose else pools.run(device))


class BackendApp:
    """Dispatches verbs of one storage server; subclasses fill ``server_type`` and ``verbs``."""

    server_type = ""
    replication_verbs: frozenset[str] = frozenset(("REPLICATE",))
    #: Access lines say how long the text of an error is; the peer's database servers do not.
    logs_text_length = False

    def __init__(self, context: BackendContext):
        self.context = context
        self.pid = os.getpid()
        table = dict(self.verbs())
        table["OPTIONS"] = self._options
        if not context.replication_server:
            for verb in self.replication_verbs:
                table.pop(verb, None)
        self._table = table
        self._allow = ", ".join(sorted(table))
        metrics = context.telemetry.metrics
        self._durations = {
            verb: _DURATION.of(metrics, server=self.server_type, method=verb) for verb in table
        }
        self._answers: dict[int, Any] = {}

    def verbs(self) -> Mapping[str, Handler]:
        """Return method name → handler."""
        return {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the WSGI face, for third-party filters in front."""
        from swift.runtime.wsgi import serve_wsgi

        return serve_wsgi(self.handle, environ, start_response)

    def handle(self, request: Request) -> Response:
        """Return the response to one request; never raises."""
        started = time.time()
        handler = self._table.get(request.method)
        if request.raw_path.startswith(LAYOUT_PREFIX):
            handler = self.context.layout.handle
        guard = self.context.guard
        if guard is not None and (refused := guard.refuse(request)) is not None:
            response = refused
        elif not is_utf8_path(request.raw_path):
            response = error_response(412, _NOT_UTF8)
        elif handler is None:
            response = error_response(405, headers={"allow": self._allow})
        else:
            response = self._call_handler(handler, request)
        self._record_response(request, response, started)
        return response

    def read_hit(self, request: Request, hits: frozenset[int]) -> Response | None:
        """Return the response to a read if its status is one of ``hits``, for ``cluster.localreads``.

        None otherwise, and nothing is recorded: the request then comes over the network. Raises
        ``DeadlineExceeded`` when the caller's passes meanwhile.
        """
        started = time.time()
        try:
            response = self._table[request.method](request)
        except green.DeadlineExceeded:
            raise
        except Exception:
            return None
        if response.status not in hits:
            response.discard()
            return None
        self._record_response(request, response, started)
        return response

    def _call_handler(self, handler: Handler, request: Request) -> Response:
        try:
            return handler(request)
        except HTTPError as error:
            return error.response
        except UnexpectedPath as error:
            device = decode_path(request.raw_path).split("/", 2)[1]
            if not self.context.devices.is_usable(device):
                return error_response(507, drive=device)
            return error_response(400, str(error), content_type=TEXT)
        except DeviceUnavailable as error:
            return error_response(507, drive=error.device)
        except NoSpace:
            return error_response(507, drive=request.raw_path.lstrip("/").partition("/")[0])
        except InvalidTimestamp:
            word = "Invalid" if "x-timestamp" in request.headers else "Missing"
            return error_response(400, f"{word} X-Timestamp header", content_type=TEXT)
        except NotUTF8:
            return error_response(412, _NOT_UTF8)
        except BodyTimeout:
            return error_response(408)
        except ClientDisconnected:
            return error_response(499)
        except BadFraming:
            return error_response(400)
        except MemoryError as error:
            self.context.telemetry.log.error(
                f"ERROR {request.method} {request.path_qs}: out of memory {error}",
                txid=request.headers.get("x-trans-id"),
            )
            return error_response(503)
        except LockTimeout as error:
            self.context.telemetry.log.error(str(error), txid=request.headers.get("x-trans-id"))
            return error_response(503)
        except Exception as error:
            self.context.telemetry.log.exception(
                f"ERROR cannot handle {request.method} {request.path_qs}",
                error,
                txid=request.headers.get("x-trans-id"),
            )
            return error_response(500)

    def check_date(self, request: Request) -> None:
        """Refuse a change from the future; raises ``HTTPError`` 400 and ``InvalidTimestamp``."""
        self.context.dates.check(request, self.context.clock)

    def _options(self, _request: Request) -> Response:
        return Response(200, {"allow": self._allow, "server": f"{self.server_type}-server/{__version__}"})

    def _record_response(self, request: Request, response: Response, started: float) -> None:
        now = time.time()
        seconds = now - started
        duration = self._durations.get(request.method)
        if duration is not None:
            duration.observe(seconds)
        counter = self._answers.get(response.status)
        if counter is None:
            counter = self._answers[response.status] = _RESPONSES.of(
                self.context.telemetry.metrics, server=self.server_type, status=str(response.status)
            )
        counter.inc()
        statsd = self.context.telemetry.statsd
        if statsd.enabled:
            errors = ".errors" if response.status >= 500 and response.status != 507 else ""
            _TIMING.time(statsd, seconds, method=request.method, errors=errors)
        if statsd.labels_enabled:
            self._record_labelled_metrics(request, response, seconds)
        log = self.context.access_log
        if log is not None and log.is_wanted and self._is_logged(request):
            log.write(self._access_line(request, response, now, seconds))

    def _record_labelled_metrics(self, _request: Request, _response: Response, _seconds: float) -> None:
        """Send the metrics with labels of a request; only object servers have any."""

    def _is_logged(self, _request: Request) -> bool:
        """Return True if a request gets an access line."""
        return True

    def _access_line(self, request: Request, response: Response, now: float, seconds: float) -> str:
        headers, answer = request.headers, response.headers
        length = answer.get("content-length")
        if length is None and self.logs_text_length and request.method != "HEAD":
            length = str(len(response.body)) if isinstance(response.body, bytes) else None
        policy = headers.get(fields.BACKEND_STORAGE_POLICY_INDEX) or answer.get(
            fields.BACKEND_STORAGE_POLICY_INDEX
        )
        template = self.context.access_template
        if template is not None:
            return with_txid(
                template.line(
                    {
                        "remote_addr": request.remote_addr,
                        "time": now,
                        "method": request.method,
                        "path": normalize_path_quoting(request.raw_path),
                        "status": str(response.status),
                        "content_length": length if length != "0" else None,
                        "referer": headers.get("referer"),
                        "txn_id": headers.get("x-trans-id"),
                        "user_agent": headers.get("user-agent"),
                        "trans_time": seconds,
                        "pid": str(self.pid),
                        "policy_index": policy,
                    }
                ),
                headers.get("x-trans-id"),
            )
        return (
            f"{request.remote_addr or '-'} - - [{common_log_time(now)}] "
            f'"{request.method} {normalize_path_quoting(request.raw_path)}" {response.status} '
            f"{length if length and length != '0' else '-'} "
            f'"{headers.get("referer", "-")}" "{headers.get("x-trans-id", "-")}" '
            f'"{headers.get("user-agent", "-")}" {seconds:.4f} "-" {self.pid} '
            f"{policy or '-'}"
        )


def split_backend_path(request: Request, minimum: int, maximum: int) -> list[Any]:
    """Return device, partition and names of a storage request.

    Raises ``HTTPError`` 400 (text/plain, spec: object-server.md §2) and ``NotUTF8``.
    """
    try:
        parts = request.split_path(minimum, maximum, rest_with_last=True)
    except NotUTF8:
        raise
    except ValueError as error:
        raise HTTPError(400, str(error), content_type=TEXT)
    device, partition = parts[:2]
    if device in _RELATIVE_NAMES or partition in _RELATIVE_NAMES:
        problem = f"device: {device}" if device in _RELATIVE_NAMES else f"partition: {partition}"
        raise HTTPError(400, f"Invalid {problem}", content_type=TEXT)
    return parts


def reject_sync_key(headers: HeaderMap) -> None:
    """Refuse a request that carries what container sync signs requests to proxies with: ``HTTPError`` 403."""
    if "x-container-sync-key" in headers or "x-container-sync-auth" in headers:
        raise HTTPError(403, "Container sync sends to proxies, not to storage servers", content_type=TEXT)
