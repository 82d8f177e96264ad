"""Reservations by clients: ``POST /v1/{account}?reserve`` requests one, the response carries its ticket.

    POST /v1/AUTH_a?reserve&duration=600&bytes_per_second=50MB&direction=read

201 has the ticket; 503 says how much is free, and from when there would be more. Deciding is
``tickets.free_for``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

from swift.cluster.memcache import MemcacheError
from swift.gateway.infocache import Cache
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.admission.amounts import parse_amount, shown
from swift.middleware.admission.reservations import SharedReservations
from swift.middleware.admission.settings import AdmissionSettings
from swift.middleware.admission.tickets import DIRECTIONS, WRITE, ReservedShare, free_for, signed

JSON = "application/json; charset=utf-8"


def is_reserving(request: Request) -> bool:
    """Return True if a request asks for a reservation."""
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
        """Return the parsed value; raises ``HTTPError`` 400."""
        params = request.params
        direction = params.get("direction", "")
        if direction not in DIRECTIONS:
            raise _bad(f"direction must be one of {', '.join(DIRECTIONS)}")
        rate = _number(params.get("bytes_per_second", ""), "bytes_per_second")
        duration = _number(params.get("duration", ""), "duration")
        if duration > settings.reservation_seconds_max:
            raise _bad(f"duration must be at most {settings.reservation_seconds_max:g} seconds")
        begins = _number(params["begins"], "begins") if "begins" in params else now
        if begins > now + settings.reservation_ahead_max:
            raise _bad(f"begins must be within {settings.reservation_ahead_max:g} seconds")
        return cls(direction, rate, max(begins, now), max(begins, now) + duration)


class ReservationHandler:
    """Makes reservations for one proxy."""

    def __init__(self, settings: AdmissionSettings, ledger: SharedReservations):
        self._settings = settings
        self._ledger = ledger
        self._key = settings.ticket_key.encode()

    def answer(self, request: Request, cache: Cache | None, promisable: float | None, now: float) -> Response:
        """``promisable``: bytes a second for all reservations together; None while unknown."""
        assert request.entity is not None
        authorise = request.env.get(environkeys.AUTHORIZE)
        denied = None if authorise is None else authorise(request)
        if denied is not None:
            refused: Response = denied
            return refused
        if not self._key:
            return error_response(
                501, "Nothing can be reserved here: there is no ticket_key.\n", content_type=TEXT
            )
        wish = RequestedReservation.of(request, self._settings, now)
        if promisable is None or cache is None:
            return _unknown()
        account = request.entity.path.account
        try:
            made = self._ledger.reserve(
                cache, lambda rivals: self._decide(wish, account, rivals, promisable), now
            )
        except MemcacheError:
            return _unknown()
        if made is None:
            return self._refusal(wish, promisable, now)
        return self._granted(made)

    def cost(self, direction: str, rate: float) -> float:
        """Return the capacity that a reservation takes."""
        return rate * self._settings.write_cost if direction == WRITE else rate

    def _decide(
        self, wish: RequestedReservation, account: str, rivals: Iterable[ReservedShare], promisable: float
    ) -> ReservedShare | None:
        taken = self.cost(wish.direction, wish.bytes)
        free = free_for(rivals, promisable=promisable, begins=wish.begins, ends=wish.ends)
        if taken > free:
            return None
        return ReservedShare(os.urandom(12).hex(), account, wish.direction, taken, wish.begins, wish.ends)

    def _granted(self, made: ReservedShare) -> Response:
        rate = made.bytes / self.cost(made.direction, 1.0)
        answer = {
            "ticket": signed(made, self._key),
            "account": made.account,
            "direction": made.direction,
            "bytes_per_second": round(rate),
            "begins": made.begins,
            "ends": made.ends,
        }
        return Response(201, {"content-type": JSON}, json.dumps(answer).encode())

    def _refusal(self, wish: RequestedReservation, promisable: float, now: float) -> Response:
        rivals = self._ledger.known(now).values()
        free = free_for(rivals, promisable=promisable, begins=wish.begins, ends=wish.ends)
        free /= self.cost(wish.direction, 1.0)
        ends = [r.ends for r in rivals if r.begins < wish.ends and wish.begins < r.ends]
        wait_s = max(1, math.ceil(min(ends, default=now + 60) - now))
        text = f"Only {shown(free, 'bytes')} can be reserved for that time.\n"
        return error_response(503, text, {"retry-after": str(wait_s)}, content_type=TEXT)


def _unknown() -> Response:
    text = "Nothing can be reserved now: the free capacity is unknown.\n"
    return error_response(503, text, {"retry-after": "10"}, content_type=TEXT)


def _number(text: str, name: str) -> float:
    try:
        return parse_amount(float(text) if text.replace(".", "", 1).isdigit() else text)
    except ValueError as error:
        raise _bad(f"{name} {error}")


def _bad(text: str) -> HTTPError:
    return HTTPError(400, f"{text}\n", content_type=TEXT)
