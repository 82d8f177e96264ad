"""Refuses requests to a storage server that no server of its cluster has signed.

``cluster.serverauth`` tells if a signature is valid. ``ServerGuard`` decides by the mode of swift.conf: in
``accept`` it serves requests without a signature and counts them, in ``require`` it refuses them too, unless
they come from exempt networks. OPTIONS, which tools send to see that a server is there, is open. Filters
before the app, e.g. healthcheck and recon, respond without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.base.documents import JsonObject
from swift.cluster.serverauth import Refusal, ServerSecrets, Verifier
from swift.config.cluster import ServerAuthSettings
from swift.config.kinds import is_in_networks
from swift.http import fields
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.platform.addresses import is_address, matches_any_address, normalize_address
from swift.platform.nonces import NonceTable
from swift.telemetry.devicefaults import CallLater, never_flush
from swift.telemetry.metrics import CounterMetric
from swift.telemetry.recon import Facts, ReconFile
from swift.telemetry.telemetry import Telemetry

_REQUESTS = CounterMetric(
    "swift_server_auth_requests_total",
    "Requests to storage servers by what their signature was; refused if it was not valid.",
    ("server", "result"),
)
_OVERWRITTEN = CounterMetric(
    "swift_server_auth_overwritten_nonces_total",
    "Nonces that gave way to newer ones although a request with them could be sent again.",
    ("server",),
)

#: Results that are no refusal.
SIGNED, EXEMPT, SERVED = "signed", "exempt", "served_unsigned"
#: Key of the recon file.
RECON_KEY = "server_auth"
#: Refused requests of one address are logged this often, seconds.
LOG_EVERY_S = 60.0
LOGGED_ADDRESSES_MAX = 1000
#: The recon file is written at most once in so many seconds by one process.
WRITE_EVERY_S = 5.0
#: Counts begin anew when the last request of a kind is so long ago.
FORGOTTEN_AFTER_S = 86400.0
#: Addresses are looked up again after so many seconds; those of other machines sooner.
OWN_HOST_S, OTHER_HOST_S = 60.0, 1.0
HOSTS_MAX = 1024
_LOOK_UP_S = 1.0
#: For names of hosts, which may take long to be looked up.
_threads = green.ThreadPool(1, "hosts")


class OwnHosts:
    """Tells if a ``Host`` header names this server.

    ``addresses`` returns those of the server; ``port`` 0 stands for any port.
    """

    def __init__(self, addresses: Callable[[], frozenset[str]], port: int, *, clock: Clock | None = None):
        self._addresses = addresses
        self._port = port
        self._monotonic = (clock or SystemClock()).monotonic
        #: Header → verdict, and until when it holds.
        self._known: dict[str, tuple[bool, float]] = {}

    def __call__(self, host: str) -> bool:
        """Return True for an address of this server; it may look up a name, which takes a while."""
        now_s = self._monotonic()
        known = self._known.get(host)
        if known is not None and now_s < known[1]:
            return known[0]
        found = self._is_own(host)
        if len(self._known) >= HOSTS_MAX:
            self._known.clear()
        self._known[host] = found, now_s + (OWN_HOST_S if found else OTHER_HOST_S)
        return found

    def _is_own(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if self._port and port != str(self._port):
            return False
        name = normalize_address(name)
        addresses = self._addresses()
        if is_address(name):
            return name in addresses
        try:
            with green.Timeout(_LOOK_UP_S):
                found: bool = _threads.call(matches_any_address, name, addresses)
                return found
        except green.DeadlineExceeded:
            return False

    def __repr__(self) -> str:
        return f"<OwnHosts port {self._port}, {len(self._known)} known>"


class SharedNonces:
    """The nonces of all servers of this user on this machine; opened when the first one comes."""

    def __init__(self, directory: str, window_s: float, report: Callable[[str], None]):
        self._directory = directory
        self._window_s = window_s
        self._report = report
        self._table: NonceTable | None = None

    def take(self, nonce: int, time_s: float, now_s: float) -> bool:
        """Return False for a nonce that was taken within the window."""
        table = self._table
        if table is None:
            table = self._table = self._open()
        return table.take(nonce, time_s, now_s)

    @property
    def overwritten(self) -> int:
        """Nonces of this process that gave way too early."""
        return 0 if self._table is None else self._table.overwritten

    def _open(self) -> NonceTable:
        # The user of the servers, which the main process becomes late.
        path = f"{self._directory}/swift-nonces-{os.geteuid()}"
        try:
            return NonceTable.shared(path, window_s=self._window_s)
        except OSError as error:
            self._report(
                f"cannot use {path}: {error.strerror}; a request that is sent again is only noticed if the "
                "same process gets it"
            )
            return NonceTable.private(window_s=self._window_s)


class AuthCounts:
    """Counts refused requests, and those without a signature, for recon.

    The recon file has the sums of all processes of a server type.
    """

    def __init__(
        self,
        recon: ReconFile | None = None,
        *,
        later: CallLater = never_flush,
        now_s: Callable[[], float] = time.time,
    ):
        self._recon = recon
        self._later = later
        self._now_s = now_s
        self._pending: dict[str, JsonObject] = {}
        self._written_s = 0.0
        self._is_due = False

    def note(self, kind: str, address: str, reason: str) -> None:
        """Count a request; ``kind`` is ``refused`` or ``unsigned``."""
        if self._recon is None:
            return
        now_s = self._now_s()
        found = self._pending.setdefault(kind, {"count": 0})
        found.update(count=found["count"] + 1, last=now_s, address=address, reason=reason)
        is_first, self._is_due = not self._is_due, True
        if now_s - self._written_s >= WRITE_EVERY_S:
            self.flush()
        elif is_first:
            self._later(WRITE_EVERY_S, self.flush)

    def flush(self) -> None:
        """Add what was counted to the recon file; a failure to write it is logged there."""
        pending, self._pending = self._pending, {}
        self._is_due = False
        self._written_s = self._now_s()
        if pending and self._recon is not None:
            self._recon.update(lambda have: _merge_counts(have, pending))

    def __repr__(self) -> str:
        return f"<AuthCounts {self._pending}>"


def _merge_counts(have: JsonObject, pending: dict[str, JsonObject]) -> Facts:
    """Return the facts of the recon file with ``pending`` added. Pure."""
    known = have.get(RECON_KEY)
    facts: dict[str, object] = {}
    for kind, new in pending.items():
        old = known.get(kind) if isinstance(known, dict) else None
        count, since_s = 0, new["last"]
        if isinstance(old, dict) and isinstance(old.get("count"), int):
            last_s = old.get("last")
            if isinstance(last_s, (int, float)) and new["last"] - last_s < FORGOTTEN_AFTER_S:
                count, since_s = old["count"], old.get("since", new["last"])
        facts[kind] = {**new, "count": count + new["count"], "since": since_s}
    return {RECON_KEY: facts}


class ServerGuard:
    """The rule of one storage server for requests by their signature."""

    def __init__(
        self,
        server_type: str,
        settings: ServerAuthSettings,
        secrets: ServerSecrets,
        nonces: SharedNonces,
        is_own_host: Callable[[str], bool],
        telemetry: Telemetry,
        counts: AuthCounts | None = None,
        *,
        clock: Clock | None = None,
    ):
        """``settings.mode`` is ``accept`` or ``require``."""
        clock = clock or SystemClock()
        self._requires = settings.mode == "require"
        self._exempt = settings.exempt
        self._verifier = Verifier(secrets, nonces.take, is_own_host, window_s=settings.window, clock=clock)
        self._nonces = nonces
        self._overwritten = 0
        self._log = telemetry.log
        self._counts = counts or AuthCounts()
        self._monotonic = clock.monotonic
        #: Address → when a refusal of it was logged.
        self._logged: dict[str, float] = {}
        metrics = telemetry.metrics
        results = (SIGNED, EXEMPT, SERVED, *(reason.value for reason in Refusal))
        self._results = {name: _REQUESTS.of(metrics, server=server_type, result=name) for name in results}
        self._overwritten_metric = _OVERWRITTEN.of(metrics, server=server_type)

    def refuse(self, request: Request) -> Response | None:
        """Return the refusal of a request; None if it is served."""
        problem = self._verifier.check(request.method, request.raw_path, request.query, request.headers)
        if problem is None:
            self._results[SIGNED].inc()
            if self._nonces.overwritten != self._overwritten:
                self._note_overwritten()
            return None
        reason, sentence = problem
        if reason is Refusal.UNSIGNED:
            if request.method == "OPTIONS":
                return None
            if self._exempt and is_in_networks(request.remote_addr, self._exempt):
                self._results[EXEMPT].inc()
                return None
            if not self._requires:
                self._results[SERVED].inc()
                self._counts.note("unsigned", request.remote_addr, sentence)
                return None
        self._results[reason.value].inc()
        self._counts.note("refused", request.remote_addr, sentence)
        self._log_refusal(request, sentence)
        headers = {fields.BACKEND_SERVER_AUTH: sentence}
        return error_response(403, f"Refused: {sentence}.\n", headers, content_type=TEXT)

    def _note_overwritten(self) -> None:
        overwritten = self._nonces.overwritten
        self._overwritten_metric.inc(overwritten - self._overwritten)
        self._overwritten = overwritten

    def _log_refusal(self, request: Request, sentence: str) -> None:
        """Log the first refusal of a minute and address."""
        now_s, address = self._monotonic(), request.remote_addr
        if now_s - self._logged.get(address, float("-inf")) < LOG_EVERY_S:
            return
        if len(self._logged) >= LOGGED_ADDRESSES_MAX:
            self._logged.clear()
        self._logged[address] = now_s
        self._log.warning(
            f"refused {request.method} from {address}: {sentence}; more refusals in the next minute "
            "are only counted",
            txid=request.headers.get("x-trans-id"),
        )

    def __repr__(self) -> str:
        return f"ServerGuard(requires={self._requires}, {self._verifier!r})"
