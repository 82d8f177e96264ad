"""Requests are let in, or refused with the reason and a time (doc/explanation/admission.md)."""

import pytest

from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.limiter import AdmittedRequest, Limiter, Rejection, ReservedClass
from swift.middleware.admission.rules import AdmissionRules, RequestProperties, parse_rules

EVERYBODY = RequestProperties("AUTH_a")
BACKUP = RequestProperties("AUTH_backup")


def gate_of(text="", **capacity):
    return Limiter(parse_rules(text, source="r"), Amounts(**capacity), burst_s=0.5, now=0.0)


def let_in(gate, facts, now, count, **more):
    return [g for _ in range(count) if isinstance(g := gate.admit(facts, now, **more), AdmittedRequest)]


def test_without_rules_and_capacity_everything_is_let_in():
    gate = gate_of()
    assert len(let_in(gate, EVERYBODY, 0.0, 1000)) == 1000


def test_beyond_capacity_is_503_with_a_reason_and_a_time():
    gate = gate_of(requests=10.0)
    assert 5 <= len(let_in(gate, EVERYBODY, 0.0, 100)) <= 7
    refusal = gate.admit(EVERYBODY, 0.0)
    assert isinstance(refusal, Rejection)
    assert (refusal.status, refusal.wait_s > 0) == (503, True)
    assert (
        refusal.reason == "No requests are free for account:AUTH_a: all 10 requests/s are in use or promised."
    )
    assert isinstance(gate.admit(EVERYBODY, refusal.wait_s + 0.11), AdmittedRequest)


def test_beyond_an_own_limit_is_429_that_names_the_rule():
    gate = gate_of('[[rule]]\nname = "slow"\naccount = "AUTH_a"\ngreatest = { requests = 2 }\n')
    assert len(let_in(gate, EVERYBODY, 0.0, 50)) == 2
    refusal = gate.admit(EVERYBODY, 0.0)
    assert (refusal.status, refusal.reason) == (429, "Rule slow allows 2 requests/s.")
    assert len(let_in(gate, BACKUP, 0.0, 50)) == 50


def test_each_account_is_bounded_for_itself_where_the_rule_says_each():
    gate = gate_of('[[rule]]\nname = "each"\naccount = "*"\ngreatest = { streams = 3 }\n')
    assert [len(let_in(gate, RequestProperties(f"AUTH_{n}"), 0.0, 10)) for n in range(3)] == [3, 3, 3]


def test_a_stream_that_ends_leaves_its_place():
    gate = gate_of('[[rule]]\nname = "few"\naccount = "*"\ngreatest = { streams = 2 }\n')
    one, _two = let_in(gate, EVERYBODY, 0.0, 9)
    assert gate.admit(EVERYBODY, 0.0).reason == "Rule few allows 2 streams."
    one.end(0.0)
    one.end(0.0)
    assert len(let_in(gate, EVERYBODY, 0.0, 9)) == 1


def test_guaranteed_streams_are_never_lent():
    text = '[[rule]]\nname = "backup"\naccount = "AUTH_backup"\nguaranteed = { streams = 4 }\n'
    gate = gate_of(text, streams=10.0)
    assert len(let_in(gate, EVERYBODY, 0.0, 50)) == 6
    assert gate.admit(EVERYBODY, 0.0).status == 503
    assert len(let_in(gate, BACKUP, 0.0, 50)) == 4


def test_one_who_has_many_streams_leaves_some_to_those_who_come_later():
    gate = gate_of(streams=100.0)
    first = let_in(gate, EVERYBODY, 0.0, 1000)
    assert len(first) == 100, "alone it may have all"
    for grant in first[:30]:
        grant.end(0.0)
    others = [grant for n in range(20) for grant in let_in(gate, RequestProperties(f"AUTH_{n}"), 0.0, 1)]
    assert len(others) == 20
    assert len(let_in(gate, EVERYBODY, 0.0, 1000)) == 0


def test_streams_under_way_wait_when_their_lane_owes():
    gate = gate_of(bytes=1000.0)
    (grant,) = let_in(gate, EVERYBODY, 0.0, 1, expected_bytes=0)
    assert grant.count_bytes(400, 0.0) == 0
    wait_s = grant.count_bytes(1000, 0.0)
    assert 0.5 < wait_s < 1.5


def test_what_was_expected_is_counted_once_and_given_back_when_it_does_not_come():
    gate = gate_of(bytes=1000.0)
    (grant,) = let_in(gate, EVERYBODY, 0.0, 1, expected_bytes=500)
    assert grant.count_bytes(500, 0.0) == 0
    (empty,) = let_in(gate, EVERYBODY, 10.0, 1, expected_bytes=1_000_000)
    assert isinstance(gate.admit(EVERYBODY, 10.0), Rejection)
    empty.end(10.0)
    assert isinstance(gate.admit(EVERYBODY, 10.0), AdmittedRequest)


def test_the_size_of_what_is_asked_next_is_learnt():
    gate = gate_of(bytes=1e6)
    now = 0.0
    for _ in range(200):
        now += 1.0
        (grant,) = let_in(gate, EVERYBODY, now, 1)
        grant.count_bytes(1000, now)
        grant.end(now)
    assert len(let_in(gate, EVERYBODY, now + 10, 2000)) > 300, "small objects are expected by now"


def test_a_promise_is_a_lane_of_its_own():
    gate = gate_of(bytes=1000.0)
    gate.set_reservations({"ticket:1": 800.0}, 0.0)
    promised, other = 0.0, 0.0
    now = 0.0
    while now < 10.0:
        for facts, promise in ((EVERYBODY, None), (EVERYBODY, ReservedClass("ticket:1", 800.0))):
            grant = gate.admit(facts, now, expected_bytes=10, reserved=promise)
            if isinstance(grant, AdmittedRequest):
                grant.count_bytes(10, now)
                grant.end(now)
                if promise:
                    promised += 10
                else:
                    other += 10
        now += 0.01
    assert promised >= 0.95 * 8000
    assert promised + other <= 1000 * 11 + 20


def test_other_rules_hold_at_once():
    gate = gate_of('[[rule]]\nname = "r"\naccount = "*"\ngreatest = { streams = 1 }\n')
    let_in(gate, EVERYBODY, 0.0, 1)
    assert isinstance(gate.admit(EVERYBODY, 0.0), Rejection)
    gate.set_rules(AdmissionRules(), 0.0)
    assert isinstance(gate.admit(EVERYBODY, 0.0), AdmittedRequest)


def test_a_process_has_its_part_of_everything():
    text = '[[rule]]\nname = "r"\naccount = "AUTH_a"\ngreatest = { requests = 100 }\n'
    gate = gate_of(text, requests=1000.0)
    gate.set_shares({("requests", "limit:r"): 0.25}, 0.5, {}, 0.0)
    assert 12 <= len(let_in(gate, EVERYBODY, 0.0, 100)) <= 14
    gate = gate_of("", requests=100.0)
    gate.set_shares({}, 0.1, {}, 0.0)
    taken = len(let_in(gate, EVERYBODY, 0.0, 1000))
    later = sum(len(let_in(gate, EVERYBODY, n * 0.1, 100)) for n in range(1, 101))
    assert taken <= 52
    assert 80 <= later <= 110, "a tenth of 100 requests/s for 10 s"


def test_streams_of_other_processes_count():
    gate = gate_of('[[rule]]\nname = "r"\naccount = "*"\ngreatest = { streams = 5 }\n', streams=50.0)
    gate.set_shares({}, 0.5, {"limit:r/AUTH_a": 4, "account:AUTH_b": 49}, 0.0)
    assert len(let_in(gate, EVERYBODY, 0.0, 9)) == 1


def test_a_report_says_what_was_asked_and_keeps_open_streams():
    gate = gate_of()
    grants = let_in(gate, EVERYBODY, 0.0, 3, expected_bytes=10)
    grants[0].end(0.0)
    told = gate.take_report()["account:AUTH_a"]
    assert (told.bytes, told.requests, told.streams) == (20.0, 3.0, 2)
    assert gate.take_report()["account:AUTH_a"].requests == 0
    for grant in grants:
        grant.end(0.0)
    gate.take_report()
    assert "account:AUTH_a" not in gate.take_report()


@pytest.mark.long
def test_names_cannot_fill_the_memory():
    gate = gate_of('[[rule]]\nname = "r"\naccount = "*"\ngreatest = { requests = 5 }\n', requests=1e9)
    for n in range(25_000):
        for grant in let_in(gate, RequestProperties(f"AUTH_{n}"), n * 0.001, 1):
            grant.end(n * 0.001)
        if n % 1000 == 0:
            gate.take_report()
    assert max(len(gate._rate_limits), len(gate._class_settings), len(gate._sizes)) <= 10_000
    assert len(gate._classes["requests"]._classes) < 10_000
