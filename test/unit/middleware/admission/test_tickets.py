"""Tickets are signed, bound to an account, and worth nothing outside their time.

See doc/explanation/admission.md.
"""

import random

import pytest

from swift.middleware.admission.tickets import (
    BadTicket,
    ReservedShare,
    sign_ticket,
    unexpired,
    unreserved_bandwidth,
    verify_ticket,
)
from test.support.checks import every

KEY = b"secret"
HELD = ReservedShare("r1", "AUTH_a", "read", 50e6, 100.0, 200.0)


def check(ticket, **more):
    return verify_ticket(ticket, KEY, **{"account": "AUTH_a", "direction": "read", "now": 150.0, **more})


def test_a_ticket_says_what_was_reserved():
    assert check(sign_ticket(HELD, KEY)) == HELD


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"account": "AUTH_b"}, "for another account"),
        ({"direction": "write"}, "for reads only"),
        ({"now": 99.9}, "not good yet"),
        ({"now": 200.0}, "over"),
    ],
)
def test_it_is_good_for_nothing_else(change, reason):
    with pytest.raises(BadTicket) as error:
        check(sign_ticket(HELD, KEY), **change)
    assert error.value.reason == reason


@pytest.mark.parametrize("ticket", ["", ".", "x", "a.b", "=.=", "é.1", "A" * 5000 + ".1"])
def test_what_is_no_ticket_is_refused(ticket):
    with pytest.raises(BadTicket):
        check(ticket)


def test_no_byte_of_it_can_be_changed():
    ticket = sign_ticket(HELD, KEY)
    draw = random.Random(7)
    for _ in range(300):
        place = draw.randrange(len(ticket))
        changed = ticket[:place] + chr(33 + draw.randrange(90)) + ticket[place + 1 :]
        if changed != ticket:
            with pytest.raises(BadTicket):
                check(changed)
    with pytest.raises(BadTicket, match="forged"):
        check(sign_ticket(HELD, b"another"))


@pytest.mark.parametrize(
    "value", [None, 1, [], {}, {"id": 1}, {**dict.fromkeys(("id", "account", "direction"), "x")}]
)
def test_what_is_no_reservation_is_none(value):
    assert ReservedShare.of(value) is None


@every("seed", range(200))
def test_at_no_moment_is_more_promised_than_may_be(seed):
    draw, promisable, made = random.Random(seed), 1000.0, []
    for n in range(60):
        begins = draw.uniform(0, 100)
        ends = begins + draw.uniform(1, 40)
        free = unreserved_bandwidth(made, promisable=promisable, begins=begins, ends=ends)
        wanted = draw.uniform(1, 400)
        if wanted <= free:
            made.append(ReservedShare(str(n), "a", "read", wanted, begins, ends))
    for moment in {r.begins for r in made} | {r.ends for r in made}:
        assert sum(r.bytes for r in made if r.is_active(moment)) <= promisable
    assert len(made) > 5


def test_those_that_are_over_are_forgotten():
    assert unexpired([HELD], 199.0) == {"r1": HELD}
    assert unexpired([HELD], 200.0) == {}
