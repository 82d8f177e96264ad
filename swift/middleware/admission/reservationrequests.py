"""Reservations by clients: ``POST /v1/{account}?reserve`` requests one, the response carries its ticket.

    POST /v1/AUTH_a?reserve&duration=600&bytes_per_second=50MB&direction=read

201 has the ticket; 503 has the free bandwidth and the time of the next release. The computation is
``tickets.unreserved_bandwidth``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

from swift.cluster.memcache import MemcacheError
from swift.gateway.infocache import Cache
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.admission.amounts import format_amount, parse_amount
from swift.middleware.admission.reservations import SharedReservations
from swift.middleware.admission.settings import AdmissionSettings
from swift.middleware.admission.tickets import (
    DIRECTIONS,
    WRITE,
    ReservedShare,
    sign_ticket,
    unreserved_bandwidth,
)
from swift.middleware.authorization import require_access

JSON_TYPE = "application/json; charset=utf-8"


def is_reservation_request(request: Request) -> bool:
    """Return True if a client requests a reservation."""
    entity = request.entity
    return (
        request.method == "POST"
        and entity is not None
        and entity.path.container is None
        and "reserve" in request.params
    )


@dataclass(frozen=True, slots=True)
class RequestedReservation:
    """A reservation that a client requests; times in Unix seconds."""

    direction: str
    bytes: float
    begins: float
    ends: float

    @classmethod
    def of(cls, request: Request, settings: AdmissionSettings, now: float) -> RequestedReservation:
        """Parse a request for a reservation; raises ``HTTPError`` 400."""
        params = request.params
        direction = params.get("direction", "")
        if direction not in DIRECTIONS:
            raise _bad_request(f"direction must be one of {', '.join(DIRECTIONS)}")
        rate = _parse_amount(params.get("bytes_per_second", ""), "bytes_per_second")
        duration = _parse_amount(params.get("duration", ""), "duration")
        if duration > settings.reservation_seconds_max:
            raise _bad_request(f"duration must be at most {settings.reservation_seconds_max:g} seconds")
        begins = _parse_amount(params["begins"], "begins") if "begins" in params else now
        if begins > now + settings.reservation_ahead_max:
            raise _bad_request(f"begins must be within {settings.reservation_ahead_max:g} seconds")
        return cls(direction, rate, max(begins, now), max(begins, now) + duration)


class ReservationHandler:
    """Makes reservations for one proxy."""

    def __init__(self, settings: AdmissionSettings, ledger: SharedReservations):
        self._settings = settings
        self._reservations = ledger
        self._key = settings.ticket_key.encode()

    def handle(self, request: Request, cache: Cache | None, promisable: float | None, now: float) -> Response:
        """Return the response to a request for a reservation.

        ``promisable`` is the bandwidth of all reservations together, bytes a second; None while unknown.
        """
        assert request.entity is not None
        require_access(request, request.acl)
        if not self._key:
            return error_response(
                501, "Nothing can be reserved here: there is no ticket_key.\n", content_type=TEXT
            )
        requested = RequestedReservation.of(request, self._settings, now)
        if promisable is None or cache is None:
            return _capacity_unknown()
        account = request.entity.path.account
        try:
            made = self._reservations.reserve(
                cache, lambda others: self._make_reservation(requested, account, others, promisable), now
            )
        except MemcacheError:
            return _capacity_unknown()
        if made is None:
            return self._insufficient_capacity(requested, promisable, now)
        return self._ticket_response(made)

    def cost(self, direction: str, rate: float) -> float:
        """Return the capacity that a reservation takes."""
        return rate * self._settings.write_cost if direction == WRITE else rate

    def _make_reservation(
        self,
        requested: RequestedReservation,
        account: str,
        others: Iterable[ReservedShare],
        promisable: float,
    ) -> ReservedShare | None:
        taken = self.cost(requested.direction, requested.bytes)
        free = unreserved_bandwidth(
            others, promisable=promisable, begins=requested.begins, ends=requested.ends
        )
        if taken > free:
            return None
        return ReservedShare(
            os.urandom(12).hex(), account, requested.direction, taken, requested.begins, requested.ends
        )

    def _ticket_response(self, made: ReservedShare) -> Response:
        rate = made.bytes / self.cost(made.direction, 1.0)
        answer = {
            "ticket": sign_ticket(made, self._key),
            "account": made.account,
            "direction": made.direction,
            "bytes_per_second": round(rate),
            "begins": made.begins,
            "ends": made.ends,
        }
        return Response(201, {"content-type": JSON_TYPE}, json.dumps(answer).encode())

    def _insufficient_capacity(
        self, requested: RequestedReservation, promisable: float, now: float
    ) -> Response:
        others = self._reservations.unexpired(now).values()
        free = unreserved_bandwidth(
            others, promisable=promisable, begins=requested.begins, ends=requested.ends
        )
        free /= self.cost(requested.direction, 1.0)
        ends = [r.ends for r in others if r.begins < requested.ends and requested.begins < r.ends]
        wait_s = max(1, math.ceil(min(ends, default=now + 60) - now))
        text = f"Only {format_amount(free, 'bytes')} can be reserved for that time.\n"
        return error_response(503, text, {"retry-after": str(wait_s)}, content_type=TEXT)


def _capacity_unknown() -> Response:
    text = "Nothing can be reserved now: the free capacity is unknown.\n"
    return error_response(503, text, {"retry-after": "10"}, content_type=TEXT)


def _parse_amount(text: str, name: str) -> float:
    try:
        return parse_amount(float(text) if text.replace(".", "", 1).isdigit() else text)
    except ValueError as error:
        raise _bad_request(f"{name} {error}")


def _bad_request(text: str) -> HTTPError:
    return HTTPError(400, f"{text}\n", content_type=TEXT)
