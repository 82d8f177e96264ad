"""The filter: the limiter admits client requests, which draw the bytes they move.

See doc/explanation/admission.md.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.base.truth import is_true
from swift.cluster.memcache import MemcacheError
from swift.gateway.infocache import Cache
from swift.http import environkeys, fields
from swift.http.body import as_response_body
from swift.http.readahead import response_size
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.admission.adminapi import ACCOUNT, AdminApi, RulesNotStored, usage_by_name
from swift.middleware.admission.bodies import MeteredDownload, MeteredUpload
from swift.middleware.admission.capacityestimate import LearnedRate
from swift.middleware.admission.capacityshares import DELIVERED_KEY, ShareExchange, even_shares
from swift.middleware.admission.limiter import AdmittedRequest, Limiter, Rejection, ReservedClass
from swift.middleware.admission.reservationrequests import ReservationHandler, is_reservation_request
from swift.middleware.admission.reservations import SharedReservations
from swift.middleware.admission.rulefile import RuleFile
from swift.middleware.admission.rules import RequestProperties, parse_rules
from swift.middleware.admission.rulesexchange import RulesExchange, RulesUpdate
from swift.middleware.admission.settings import LEARN_CAPACITY, AdmissionSettings
from swift.middleware.admission.tickets import READ, WRITE, BadTicket, verify_ticket
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.events import Event
from swift.telemetry.metrics import CounterMetric
from swift.telemetry.telemetry import Telemetry

_REJECTED = Event("admission.{reason}", "Rejected requests: `limited` (429) or `refused` (503).")

_REFUSED = CounterMetric("swift_admission_refused_total", "Requests that were rejected.", ("status",))

TICKET = "x-reservation"
TICKET_STATUS = "x-reservation-status"
_READING = frozenset(("GET", "HEAD", "OPTIONS"))
#: Longest sleep of a waiting stream before it checks again, seconds.
RECHECK_S = 1.0
#: A shorter wait would cost more than it is worth.
SLEEP_MIN_S = 0.01
#: Requests that S3 clients sent are marked so by the filter that made them.
_S3_SOURCE = "S3"


class Admission(Filter):
    """Admits requests while there is capacity; ``spawn`` starts work that must not delay a request."""

    def __init__(
        self,
        app: App,
        settings: AdmissionSettings,
        telemetry: Telemetry | None = None,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = green.sleep,
        spawn: Callable[[Callable[[Cache | None], None], Cache | None], None] = green.spawn_detached,
    ):
        super().__init__(app)
        self._settings = settings
        self._telemetry = telemetry or Telemetry()
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._spawn = spawn
        self._capacity = settings.capacity
        warn = self._telemetry.log.warning
        self._rule_file = RuleFile(settings.rules_path, settings.promisable(self._capacity), warn)
        now = self._clock.monotonic()
        self.limiter = Limiter(self._rule_file.rules, self._capacity, burst_s=settings.burst_seconds, now=now)
        self._shared_reservations = SharedReservations(sleep)
        self._reservation_handler = ReservationHandler(settings, self._shared_reservations)
        self._ticket_key = settings.ticket_key.encode()
        self._share_exchange = ShareExchange()
        self._rules_exchange = RulesExchange()
        self._learned_rates = {
            name: LearnedRate()
            for name, said in (
                ("bytes", settings.capacity_bytes_per_second),
                ("requests", settings.capacity_requests_per_second),
            )
            if said == LEARN_CAPACITY
        }
        self._response_seconds, self._response_count = 0.0, 0
        self._updated_at = now
        self._is_updating = False
        self._is_memcached_away = False

    def handle(self, request: Request) -> Response:
        """Admit or reject a request once; its sub-requests pass."""
        env, entity = request.env, request.entity
        if entity is None or env.get(environkeys.ADMITTED):
            return self.forward(request)
        env[environkeys.ADMITTED] = True
        cache: Cache | None = env.get(environkeys.CACHE)
        self._update_if_due(cache)
        if entity.path.account == ACCOUNT:
            console = AdminApi(
                self._cluster_state, lambda: self._rule_file.text, partial(self._change_rules, cache)
            )
            return console.handle(request)
        if is_reservation_request(request):
            return self._reservation_handler.handle(
                request, cache, self._reservable_bytes(), self._clock.time()
            )
        path = entity.path
        properties = RequestProperties(
            path.account, path.container or "", _user_name(request), self._request_class(request)
        )
        reserved_class, problem = self._reserved_class(request, path.account)
        now = self._clock.monotonic()
        size = self._expected_bytes(request)
        admitted = self.limiter.admit(properties, now, expected_bytes=size, reserved=reserved_class)
        if isinstance(admitted, Rejection):
            return self._rejection_response(admitted)
        response = self._forward_metered(request, admitted)
        if problem:
            response.headers[TICKET_STATUS] = problem
        return response

    # what a request is

    def _request_class(self, request: Request) -> str:
        env = request.env
        if environkeys.S3_AUTH_DETAILS in env or env.get(environkeys.SOURCE) == _S3_SOURCE:
            return "s3"
        if is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            return "replication"
        return self._settings.request_class

    def _reserved_class(self, request: Request, account: str) -> tuple[ReservedClass | None, str]:
        """Return the class of the request's ticket, and the reason if the ticket is not valid.

        An invalid ticket has no other effect.
        """
        ticket = request.headers.pop(TICKET, None)
        if ticket is None:
            return None, ""
        if not self._ticket_key:
            return None, "not used here"
        direction = READ if request.method in _READING else WRITE
        try:
            found = verify_ticket(
                ticket, self._ticket_key, account=account, direction=direction, now=self._clock.time()
            )
        except BadTicket as error:
            return None, error.reason
        return ReservedClass(found.key, found.bytes), ""

    def _expected_bytes(self, request: Request) -> float | None:
        if request.method in _READING:
            return None if request.method == "GET" else 0.0
        length = request.body.length
        return None if length is None else length * self._settings.write_cost

    # while it is answered

    def _forward_metered(self, request: Request, admitted: AdmittedRequest) -> Response:
        cost = self._settings.write_cost
        if request.method not in _READING:
            request.body = MeteredUpload(
                request.body, lambda size: self._wait_for_bytes(admitted, size * cost)
            )
        began = self._clock.monotonic()
        try:
            response = self.forward(request)
        except BaseException:
            admitted.end(self._clock.monotonic())
            raise
        if request.method == "GET":
            self._response_seconds += self._clock.monotonic() - began
        self._response_count += 1
        body = response.body
        if isinstance(body, bytes):
            self._count_delivered(len(body))
            admitted.count_bytes(len(body), self._clock.monotonic())
        else:
            size = response_size(response)
            if size is not None and request.method in _READING:
                admitted.set_expected_size(size, self._clock.monotonic())
            response.body = MeteredDownload(
                as_response_body(body), lambda size: self._wait_for_bytes(admitted, size)
            )
        response.on_response_end(lambda _sent, _complete: admitted.end(self._clock.monotonic()))
        return response

    def _wait_for_bytes(self, admitted: AdmittedRequest, amount: float) -> None:
        self._count_delivered(amount)
        wait_s = admitted.count_bytes(amount, self._clock.monotonic())
        while wait_s > 0:
            # There may be more room before long than there seems to be now.
            self._sleep(min(max(wait_s, SLEEP_MIN_S), RECHECK_S))
            wait_s = admitted.wait_s(self._clock.monotonic())

    def _count_delivered(self, amount: float) -> None:
        self.limiter.usage[DELIVERED_KEY].bytes += amount

    def _rejection_response(self, refusal: Rejection) -> Response:
        name = "limited" if refusal.status == 429 else "refused"
        _REJECTED.count(self._telemetry.statsd, reason=name)
        _REFUSED.of(self._telemetry.metrics, status=str(refusal.status)).inc()
        wait_s = max(1, math.ceil(refusal.wait_s))
        body = f"{refusal.reason} Try again after {wait_s} s.\n".encode("utf-8", "surrogateescape")
        headers = {"content-type": TEXT, "retry-after": str(wait_s)}
        if refusal.status == 429:
            return Response(429, headers, body, reason="Too Many Requests")
        return error_response(503, body, headers, content_type=TEXT)

    # now and then

    def _update_if_due(self, cache: Cache | None) -> None:
        now = self._clock.monotonic()
        if self._is_updating or now - self._updated_at < self._settings.interval:
            return
        self._is_updating = True
        self._spawn(self._update, cache)

    def _update(self, cache: Cache | None) -> None:
        """Check the rules file, exchange reports with other processes and learn the capacity."""
        try:
            now = self._clock.monotonic()
            passed_s, self._updated_at = max(1e-3, now - self._updated_at), now
            if self._rule_file.reload_if_changed(self._settings.promisable(self._capacity)):
                self._apply_rules()
            answers, answers_s, self._response_count, self._response_seconds = (
                self._response_count,
                self._response_seconds,
                0,
                0.0,
            )
            self.limiter.usage[DELIVERED_KEY].requests += answers
            delivered = self._exchange_shares(cache, passed_s)
            if self._rule_file.apply_update(
                self._rules_exchange.newest, self._settings.promisable(self._capacity)
            ):
                self._apply_rules()
            self._learn_capacity(delivered, answers_s / max(1, answers), answers)
            self.limiter.set_reservations(self._active_reservations(), self._clock.monotonic())
        finally:
            self._is_updating = False

    def _exchange_shares(self, cache: Cache | None, passed_s: float) -> tuple[float, float]:
        """Exchange reports; return what all processes delivered per second."""
        uses, parts = self.limiter.take_report(), even_shares(self._share_exchange.processes)
        mine = uses.get(DELIVERED_KEY)
        delivered = (0.0, 0.0) if mine is None else (mine.bytes / passed_s, mine.requests / passed_s)
        if cache is None:
            self._share_exchange.report_alone(uses, self._rule_file.rules.guarantees(), passed_s)
        else:
            now = self._clock.time()
            try:
                parts = self._share_exchange.exchange(
                    cache, uses, self._rule_file.rules.guarantees(), passed_s, now
                )
                delivered = parts.delivered
                self._shared_reservations.synchronize(cache, now)
                self._rules_exchange.receive(cache)
                self._set_memcached_away(False)
            except MemcacheError:
                self._set_memcached_away(True)
        self.limiter.set_shares(parts.shares, parts.other_share, parts.streams, self._clock.monotonic())
        return delivered

    def _set_memcached_away(self, is_away: bool) -> None:
        if is_away and not self._is_memcached_away:
            count = self._share_exchange.processes
            self._telemetry.log.warning(
                f"memcached does not respond: each of {count} processes limits requests to an equal share"
            )
        self._is_memcached_away = is_away

    def _learn_capacity(self, delivered: tuple[float, float], response_s: float, answers: int) -> None:
        found: dict[str, float | None] = {}
        for name, rate in zip(("bytes", "requests"), delivered, strict=True):
            if name in self._learned_rates:
                found[name] = self._learned_rates[name].update(rate, response_s, answers)
        if found:
            self._capacity = replace(self._capacity, **found)
            self.limiter.set_capacity(self._capacity, self._clock.monotonic())

    # the operator's API

    def _apply_rules(self) -> None:
        self.limiter.set_rules(self._rule_file.rules, self._clock.monotonic())
        self._telemetry.log.info(
            f"loaded {len(self._rule_file.rules.rules)} admission rules from {self._rule_file.source}"
        )

    def _change_rules(self, cache: Cache | None, text: str) -> dict[str, object]:
        """Replace the rules of all processes; see ``AdminApi``."""
        newest = self._rules_exchange.newest
        # Later than every known revision, whatever the clocks of other proxies.
        at_ns = max(
            int(self._clock.time() * 1e9), self._rule_file.at_ns + 1, newest.at_ns + 1 if newest else 0
        )
        update = RulesUpdate(at_ns, text)
        promisable = self._settings.promisable(self._capacity)
        parse_rules(text, source=self._rule_file.source, promisable=promisable)
        is_published = False
        if cache is not None:
            with contextlib.suppress(MemcacheError):
                self._rules_exchange.publish(cache, update)
                is_published = True
        is_written = self._rule_file.write(update)
        if not is_published and not is_written:
            self._rules_exchange.newest = newest
            raise RulesNotStored
        self._rule_file.replace_rules(update, promisable)
        self._apply_rules()
        return {"rules": len(self._rule_file.rules.rules), "written": is_written, "published": is_published}

    def _cluster_state(self) -> dict[str, object]:
        """Return the state of all processes as of the last exchange."""
        file, now = self._rule_file, self._clock.time()
        return {
            "capacity": asdict(self._capacity),
            "promisable_bytes_per_second": self._reservable_bytes(),
            "processes": self._share_exchange.processes,
            "memcached_is_away": self._is_memcached_away,
            "rules": {"count": len(file.rules.rules), "source": file.source, "written": file.at_ns / 1e9},
            **usage_by_name(self._share_exchange.totals, file.rules),
            "reservations": [
                {**asdict(each), "holds": each.is_active(now)}
                for each in self._shared_reservations.unexpired(now).values()
            ],
        }

    def _active_reservations(self) -> dict[str, float]:
        now = self._clock.time()
        return {r.key: r.bytes for r in self._shared_reservations.unexpired(now).values() if r.is_active(now)}

    def _reservable_bytes(self) -> float | None:
        """Return the bytes a second that all reservations together may take; None if unlimited."""
        most = self._settings.promisable(self._capacity).bytes
        if most is None:
            return None
        kept = sum(amounts.bytes or 0.0 for amounts in self._rule_file.rules.guarantees().values())
        return max(0.0, most - kept)


def _user_name(request: Request) -> str:
    """Return the name of the requesting user: the first name that the authentication filter sets."""
    return str(request.env.get(environkeys.REMOTE_USER) or "").split(",", 1)[0]


FILTER = FilterDeclaration(
    "admission",
    AdmissionSettings,
    lambda app, settings, services: Admission(app, settings, services.telemetry()),
    position=180,
    info=lambda settings: {
        "reservations": bool(settings.ticket_key),
        "max_duration": settings.reservation_seconds_max,
    },
    right_of=dict.fromkeys(("tempauth", "swiftauth", "keystoneauth"), "the user must be identified"),
    left_of=dict.fromkeys(("slo", "dlo", "copy"), "a large object or copy is admitted as one request"),
)
