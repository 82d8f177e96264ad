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
from swift.http.body import body_of
from swift.http.readahead import size_of
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.admission.announced import Announcement, Announcements
from swift.middleware.admission.bodies import MeteredDownload, MeteredUpload
from swift.middleware.admission.console import ACCOUNT, Console, RulesNotStored, uses_of
from swift.middleware.admission.learned import LearnedRate
from swift.middleware.admission.limiter import Admitted, Limiter, Rejection, ReservedClass
from swift.middleware.admission.reservations import SharedReservations
from swift.middleware.admission.reserving import ReservationHandler, is_reserving
from swift.middleware.admission.rulefile import RuleFile
from swift.middleware.admission.rules import AdmissionFacts, parse_rules
from swift.middleware.admission.settings import LEARN, AdmissionSettings
from swift.middleware.admission.shares import DELIVERED, ShareExchange, even
from swift.middleware.admission.tickets import READ, WRITE, BadTicket, checked
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.telemetry import Telemetry

TICKET = "x-reservation"
TICKET_STATUS = "x-reservation-status"
_READING = frozenset(("GET", "HEAD", "OPTIONS"))
#: A stream that waits looks at least so often whether it may go on, seconds.
LOOK_AGAIN_S = 1.0
#: A shorter wait would cost more than it is worth.
NAP_S = 0.01
#: Requests that S3 clients sent are marked so by the filter that made them.
_S3_SOURCE = "S3"


class Admission(Filter):
    """Lets in what there is room for; ``spawn`` starts what must not keep a request waiting."""

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
        self._file = RuleFile(settings.rules_path, settings.promisable(self._capacity), warn)
        now = self._clock.monotonic()
        self.limiter = Limiter(self._file.rules, self._capacity, burst_s=settings.burst_seconds, now=now)
        self._ledger = SharedReservations(sleep)
        self._reservations = ReservationHandler(settings, self._ledger)
        self._key = settings.ticket_key.encode()
        self._exchange = ShareExchange()
        self._announcements = Announcements()
        self._learnt = {
            name: LearnedRate()
            for name, said in (
                ("bytes", settings.capacity_bytes_per_second),
                ("requests", settings.capacity_requests_per_second),
            )
            if said == LEARN
        }
        self._answers_s, self._answers = 0.0, 0
        self._turned_at = now
        self._is_turning = False
        self._is_away = False

    def handle(self, request: Request) -> Response:
        """Ask once for a request."""
        env, entity = request.env, request.entity
        if entity is None or env.get(environkeys.ADMITTED):
            return self.forward(request)
        env[environkeys.ADMITTED] = True
        cache: Cache | None = env.get(environkeys.CACHE)
        self._keep_up(cache)
        if entity.path.account == ACCOUNT:
            console = Console(self._state, lambda: self._file.text, partial(self._change_rules, cache))
            return console.answer(request)
        if is_reserving(request):
            return self._reservations.answer(request, cache, self._promisable(), self._clock.time())
        path = entity.path
        facts = AdmissionFacts(path.account, path.container or "", _user_of(request), self._class_of(request))
        promise, problem = self._promise_of(request, path.account)
        now = self._clock.monotonic()
        size = self._expected(request)
        grant = self.limiter.admit(facts, now, expected_bytes=size, reserved=promise)
        if isinstance(grant, Rejection):
            return self._refused(grant)
        response = self._answered(request, grant)
        if problem:
            response.headers[TICKET_STATUS] = problem
        return response

    # what a request is

    def _class_of(self, request: Request) -> str:
        env = request.env
        if environkeys.S3_AUTH_DETAILS in env or env.get(environkeys.SOURCE) == _S3_SOURCE:
            return "s3"
        if is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            return "replication"
        return self._settings.request_class

    def _promise_of(self, request: Request, account: str) -> tuple[ReservedClass | None, str]:
        """Return the class that the request's ticket promises, and the reason when it promises none; an
        invalid ticket has no other effect.
        """
        ticket = request.headers.pop(TICKET, None)
        if ticket is None:
            return None, ""
        if not self._key:
            return None, "not used here"
        direction = READ if request.method in _READING else WRITE
        try:
            found = checked(ticket, self._key, account=account, direction=direction, now=self._clock.time())
        except BadTicket as error:
            return None, error.reason
        return ReservedClass(found.key, found.bytes), ""

    def _expected(self, request: Request) -> float | None:
        if request.method in _READING:
            return None if request.method == "GET" else 0.0
        length = request.body.length
        return None if length is None else length * self._settings.write_cost

    # while it is answered

    def _answered(self, request: Request, grant: Admitted) -> Response:
        cost = self._settings.write_cost
        if request.method not in _READING:
            request.body = MeteredUpload(request.body, lambda size: self._draw(grant, size * cost))
        began = self._clock.monotonic()
        try:
            response = self.forward(request)
        except BaseException:
            grant.end(self._clock.monotonic())
            raise
        if request.method == "GET":
            self._answers_s += self._clock.monotonic() - began
        self._answers += 1
        body = response.body
        if isinstance(body, bytes):
            self._count(len(body))
            grant.draw(len(body), self._clock.monotonic())
        else:
            size = size_of(response)
            if size is not None and request.method in _READING:
                grant.expect(size, self._clock.monotonic())
            response.body = MeteredDownload(body_of(body), lambda size: self._draw(grant, size))
        response.observe_end(lambda _sent, _complete: grant.end(self._clock.monotonic()))
        return response

    def _draw(self, grant: Admitted, amount: float) -> None:
        self._count(amount)
        wait_s = grant.draw(amount, self._clock.monotonic())
        while wait_s > 0:
            # There may be more room before long than there seems to be now.
            self._sleep(min(max(wait_s, NAP_S), LOOK_AGAIN_S))
            wait_s = grant.wait_s(self._clock.monotonic())

    def _count(self, amount: float) -> None:
        self.limiter.uses[DELIVERED].bytes += amount

    def _refused(self, refusal: Rejection) -> Response:
        name = "limited" if refusal.status == 429 else "refused"
        self._telemetry.statsd.increment(f"admission.{name}")
        counter = self._telemetry.metrics.counter(
            "swift_admission_refused_total", "Requests that were not let in.", status=str(refusal.status)
        )
        counter.inc()
        wait_s = max(1, math.ceil(refusal.wait_s))
        body = f"{refusal.reason} Try again after {wait_s} s.\n".encode("utf-8", "surrogateescape")
        headers = {"content-type": TEXT, "retry-after": str(wait_s)}
        if refusal.status == 429:
            return Response(429, headers, body, reason="Too Many Requests")
        return error_response(503, body, headers, content_type=TEXT)

    # now and then

    def _keep_up(self, cache: Cache | None) -> None:
        now = self._clock.monotonic()
        if self._is_turning or now - self._turned_at < self._settings.interval:
            return
        self._is_turning = True
        self._spawn(self._turn, cache)

    def _turn(self, cache: Cache | None) -> None:
        """Look at the rules, exchange with the others, learn."""
        try:
            now = self._clock.monotonic()
            passed_s, self._turned_at = max(1e-3, now - self._turned_at), now
            if self._file.look(self._settings.promisable(self._capacity)):
                self._rules_changed()
            answers, answers_s, self._answers, self._answers_s = self._answers, self._answers_s, 0, 0.0
            self.limiter.uses[DELIVERED].requests += answers
            delivered = self._share(cache, passed_s)
            if self._file.follow(self._announcements.newest, self._settings.promisable(self._capacity)):
                self._rules_changed()
            self._learn(delivered, answers_s / max(1, answers), answers)
            self.limiter.set_reservations(self._promises(), self._clock.monotonic())
        finally:
            self._is_turning = False

    def _share(self, cache: Cache | None, passed_s: float) -> tuple[float, float]:
        """Tell and receive; what all processes delivered a second."""
        uses, parts = self.limiter.report(), even(self._exchange.processes)
        mine = uses.get(DELIVERED)
        delivered = (0.0, 0.0) if mine is None else (mine.bytes / passed_s, mine.requests / passed_s)
        if cache is None:
            self._exchange.alone(uses, self._file.rules.guarantees(), passed_s)
        else:
            now = self._clock.time()
            try:
                parts = self._exchange.turn(cache, uses, self._file.rules.guarantees(), passed_s, now)
                delivered = parts.delivered
                self._ledger.receive(cache, now)
                self._announcements.receive(cache)
                self._away(False)
            except MemcacheError:
                self._away(True)
        self.limiter.set_shares(parts.parts, parts.other, parts.streams, self._clock.monotonic())
        return delivered

    def _away(self, is_away: bool) -> None:
        if is_away and not self._is_away:
            count = self._exchange.processes
            self._telemetry.log.warning(
                f"memcached does not respond: each of {count} processes limits requests to an equal share"
            )
        self._is_away = is_away

    def _learn(self, delivered: tuple[float, float], answer_s: float, answers: int) -> None:
        found: dict[str, float | None] = {}
        for name, rate in zip(("bytes", "requests"), delivered, strict=True):
            if name in self._learnt:
                found[name] = self._learnt[name].learn(rate, answer_s, answers)
        if found:
            self._capacity = replace(self._capacity, **found)
            self.limiter.set_capacity(self._capacity, self._clock.monotonic())

    # what an operator asks

    def _rules_changed(self) -> None:
        self.limiter.set_rules(self._file.rules, self._clock.monotonic())
        self._telemetry.log.info(
            f"loaded {len(self._file.rules.rules)} admission rules from {self._file.source}"
        )

    def _change_rules(self, cache: Cache | None, text: str) -> dict[str, object]:
        """Other rules for all; see ``Console``."""
        newest = self._announcements.newest
        # Later than every known revision, whatever the clocks of other proxies.
        at_ns = max(int(self._clock.time() * 1e9), self._file.at_ns + 1, newest.at_ns + 1 if newest else 0)
        made = Announcement(at_ns, text)
        promisable = self._settings.promisable(self._capacity)
        parse_rules(text, source=self._file.source, promisable=promisable)
        is_report = False
        if cache is not None:
            with contextlib.suppress(MemcacheError):
                self._announcements.announce(cache, made)
                is_report = True
        is_written = self._file.write(made)
        if not is_report and not is_written:
            self._announcements.newest = newest
            raise RulesNotStored
        self._file.adopt(made, promisable)
        self._rules_changed()
        return {"rules": len(self._file.rules.rules), "written": is_written, "told": is_report}

    def _state(self) -> dict[str, object]:
        """Return the state of all processes as of the last exchange."""
        file, now = self._file, self._clock.time()
        return {
            "capacity": asdict(self._capacity),
            "promisable_bytes_per_second": self._promisable(),
            "processes": self._exchange.processes,
            "memcached_is_away": self._is_away,
            "rules": {"count": len(file.rules.rules), "source": file.source, "written": file.at_ns / 1e9},
            **uses_of(self._exchange.totals, file.rules),
            "reservations": [
                {**asdict(each), "holds": each.holds(now)} for each in self._ledger.known(now).values()
            ],
        }

    def _promises(self) -> dict[str, float]:
        now = self._clock.time()
        return {r.key: r.bytes for r in self._ledger.known(now).values() if r.holds(now)}

    def _promisable(self) -> float | None:
        """Bytes a second for all reservations together."""
        most = self._settings.promisable(self._capacity).bytes
        if most is None:
            return None
        kept = sum(amounts.bytes or 0.0 for amounts in self._file.rules.guarantees().values())
        return max(0.0, most - kept)


def _user_of(request: Request) -> str:
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
    right_of=dict.fromkeys(("tempauth", "keystoneauth"), "the user would not be identified yet"),
    left_of=dict.fromkeys(("slo", "dlo", "copy"), "each of its requests would be asked about"),
)
