"""The record of each node: avoided, unresponsive, absent, and when it is used again (proxy.md §7)."""

from dataclasses import replace

import pytest

from swift.base.clock import ManualClock
from swift.cluster.health import (
    ABSENT_S,
    FIRST_PAUSE_S,
    NODES_MAX,
    SUSPECT_S,
    UNRESPONSIVE_S,
    NodeHealth,
    Probe,
    replication_server,
)
from swift.ring.device import Device
from test.support.daemons import make_node

DEVICE = Device(1, 1, 1, "127.0.0.1", 1, "127.0.0.1", 1, "d", 1.0, "")
NODE, OTHER = DEVICE.key, "127.0.0.1:2/d"
PATIENCE_S = 10.0


class Statsd:
    enabled = True

    def __init__(self):
        self.names = []

    def increment(self, name, _amount):
        self.names.append(name)


@pytest.fixture
def clock():
    # Just booted: what happened "long ago" cannot be told from "never" by the time alone.
    return ManualClock(5.0)


def health_of(clock, **options):
    return NodeHealth(clock, **{"limit": 2, "interval_s": 60.0, **options})


def avoid(health, *, slow=False):
    while not health.failed(NODE, slow=slow):
        pass


def test_as_many_errors_as_the_limit_are_forgiven_and_the_next_is_not(clock):
    health = health_of(clock)
    assert [health.failed(NODE) for _ in range(3)] == [False, False, True]
    assert health.is_avoided(NODE)
    assert not health.is_avoided(OTHER)


def test_errors_far_apart_do_not_add_up(clock):
    health = health_of(clock)
    for _ in range(5):
        assert not health.failed(NODE)
        clock.advance(60.0)
    for _ in range(2):
        assert not health.failed(NODE)
        clock.advance(59.9)
    assert health.failed(NODE)


def test_pauses_between_probes_double_up_to_the_interval(clock):
    health = health_of(clock, interval_s=5.0)
    avoid(health)
    pauses = []
    for _ in range(4):
        waited = 0.0
        while not health.may_use(NODE):
            clock.advance(0.5)
            waited += 0.5
        pauses.append(waited)
        health.failed(NODE)
    assert pauses == [FIRST_PAUSE_S, 2.0, 4.0, 5.0]


def test_one_request_is_the_probe_and_its_success_ends_it(clock):
    health = health_of(clock)
    avoid(health)
    clock.advance(FIRST_PAUSE_S)
    assert [health.may_use(NODE), health.may_use(NODE)] == [True, False]
    health.succeeded(NODE)
    assert health.may_use(NODE)
    assert not health.is_avoided(NODE)


def test_a_probe_that_never_ends_is_followed_by_another(clock):
    health = health_of(clock)
    avoid(health)
    clock.advance(FIRST_PAUSE_S)
    assert health.may_use(NODE)
    clock.advance(FIRST_PAUSE_S)
    assert health.may_use(NODE)


def test_errors_of_requests_that_were_no_probe_lengthen_nothing(clock):
    health = health_of(clock)
    avoid(health)
    assert [health.failed(NODE) for _ in range(20)] == [False] * 20
    clock.advance(FIRST_PAUSE_S)
    assert health.may_use(NODE)


def test_a_success_forgives_no_errors_that_were_not_enough(clock):
    health = health_of(clock)
    for _ in range(2):
        health.failed(NODE)
        health.succeeded(NODE)
    assert health.failed(NODE)


def test_a_507_is_avoided_for_the_whole_interval(clock):
    health = health_of(clock)
    health.avoid(NODE)
    clock.advance(59.9)
    assert not health.may_use(NODE)
    clock.advance(0.1)
    assert health.may_use(NODE)


def test_the_last_error_says_whether_asking_may_cost_a_timeout(clock):
    health = health_of(clock)
    assert not health.is_slow(NODE)
    avoid(health, slow=True)
    assert health.is_slow(NODE)
    health.failed(NODE)
    assert not health.is_slow(NODE)


def test_metrics_count_what_begins_and_what_is_left_out(clock):
    health = health_of(clock, statsd=(statsd := Statsd()))
    avoid(health)
    health.may_use(NODE)
    health.avoid(OTHER)
    assert statsd.names == [f"error_limiter.{n}" for n in ("incremented_limit", "is_limited", "forced_limit")]


def test_what_it_knows_can_be_read(clock):
    health = health_of(clock)
    avoid(health)
    assert NODE in repr(health)


PROBE = Probe(DEVICE, "/d/7/a", "0")


def asked_until_silent(health, clock):
    health.requested(NODE, clock.monotonic(), PROBE)
    clock.advance(UNRESPONSIVE_S)


def test_a_silent_node_is_left_alone_by_requests_of_clients_and_asked_in_the_background(clock):
    health, probes = health_of(clock, patience_s=10.0), []
    health.send_probe = probes.append
    asked_until_silent(health, clock)
    for _ in range(200):
        assert not health.may_use(NODE)
        assert health.may_use(OTHER)
        clock.advance(0.1)
    assert probes == [PROBE] * 4
    assert health.is_unresponsive(NODE)
    assert health.is_slow(NODE), "asking it may cost a timeout"
    health.responded(NODE)
    assert health.may_use(NODE) and not health.is_unresponsive(NODE)


@pytest.mark.parametrize("sign", ["succeeded", "failed", "avoid", "responded"])
def test_any_sign_of_life_ends_a_silence(clock, sign):
    health = health_of(clock)
    asked_until_silent(health, clock)
    getattr(health, sign)(NODE)
    assert health.may_use(NODE) == (sign != "avoid")
    assert not health.is_slow(NODE)


def test_a_timeout_is_no_sign_of_life(clock):
    health = health_of(clock)
    asked_until_silent(health, clock)
    health.failed(NODE, slow=True)
    assert not health.may_use(NODE)


def test_an_avoided_node_that_is_unresponsive_is_probed_by_no_client(clock):
    health = health_of(clock)
    avoid(health, slow=True)
    clock.advance(FIRST_PAUSE_S)
    asked_until_silent(health, clock)
    assert not health.may_use(NODE)
    health.responded(NODE)
    assert health.may_use(NODE)


@pytest.fixture
def health(clock):
    return NodeHealth(clock, patience_s=PATIENCE_S)


def request(health, clock, key="a", probe=None):
    health.requested(key, clock.monotonic(), probe)


def test_who_answers_nobody_is_unresponsive_before_anything_has_timed_out(health, clock):
    request(health, clock)
    clock.advance(UNRESPONSIVE_S - 0.1)
    assert not health.is_unresponsive("a")
    clock.advance(0.1)
    assert health.is_unresponsive("a") and not health.is_unresponsive("b")
    assert "a" in repr(health)


def test_who_answers_now_and_then_is_busy_and_not_silent(health, clock):
    for _ in range(20):
        request(health, clock)
        clock.advance(UNRESPONSIVE_S / 2)
        request(health, clock)
        health.responded("a")
        assert not health.is_unresponsive("a")


def test_what_was_asked_longer_ago_than_anybody_waits_proves_nothing(health, clock):
    # Its client may have gone, and nobody has asked since.
    request(health, clock)
    clock.advance(PATIENCE_S + 0.1)
    assert not health.is_unresponsive("a")
    request(health, clock)
    clock.advance(UNRESPONSIVE_S / 2)
    assert not health.is_unresponsive("a"), "its silence begins anew"


def test_a_probe_is_probe_due_before_the_silence_begins_and_then_now_and_then(health, clock):
    assert not health.is_probe_due("a")
    request(health, clock)
    assert not health.is_probe_due("a")
    clock.advance(SUSPECT_S)
    due = 0
    for _ in range(400):
        due += health.is_probe_due("a")
        clock.advance(0.1)
    assert due == 40 / (PATIENCE_S / 2)
    assert health.is_unresponsive("a")


def test_a_probe_asks_what_was_asked_first(health, clock):
    probes = []
    health.send_probe = probes.append
    for number in range(3):
        request(health, clock, probe=Probe(DEVICE, f"/d/{number}/a", "0"))
    clock.advance(SUSPECT_S)
    health.suspect("a")
    assert probes == [Probe(DEVICE, "/d/0/a", "0")]


def test_what_is_remembered_has_a_bound(health, clock):
    for number in range(NODES_MAX + 1):
        request(health, clock, str(number))
    clock.advance(UNRESPONSIVE_S)
    assert health.is_unresponsive(str(NODES_MAX)) and not health.is_unresponsive("0")


def test_a_server_that_let_a_request_time_out_is_absent_for_a_while(health, clock):
    server, other = replication_server(make_node(1)), replication_server(make_node(2))
    assert server == replication_server(replace(make_node(1), id=9, device="other"))
    health.mark_absent(server)
    assert health.is_absent(server) and not health.is_absent(other)
    assert server in repr(health)
    clock.advance(ABSENT_S)
    assert not health.is_absent(server)


def test_absent_servers_can_be_used_again(health):
    health.mark_absent("a")
    health.forget_absent()
    assert not health.is_absent("a")


def test_a_request_that_waits_is_probed_although_an_earlier_one_was_answered_since(health, clock):
    probes = []
    health.send_probe = probes.append
    request(health, clock, probe=Probe(DEVICE, "/d/0/a", "0"))
    request(health, clock, probe=Probe(DEVICE, "/d/0/b", "0"))
    health.responded("a")
    clock.advance(SUSPECT_S)
    health.suspect_request("a")
    assert probes == [Probe(DEVICE, "/d/0/b", "0")]
    clock.advance(UNRESPONSIVE_S - SUSPECT_S)
    assert health.is_unresponsive("a")
    health.responded("a")
    assert not health.is_unresponsive("a"), "it answered the probe"
