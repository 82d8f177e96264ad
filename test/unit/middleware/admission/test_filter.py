"""Requests that there is no room for are refused early, with the reason (doc/explanation/admission.md)."""

import pytest

from swift.base.errors import ConfigError
from test.support.filters import AdmissionFixture, SharedCache, reserving, ticket_of

LIMIT_PREFIX = '[[rule]]\nname = "{name}"\naccount = "AUTH_a"\ngreatest = {{ requests = {rate} }}\n'


def write(path, text):
    path.write_text(text)
    return path


def test_it_does_nothing_until_it_is_told_to():
    bench = AdmissionFixture()
    assert set(bench.statuses(100)) == {200}
    assert bench.read == bench.body


def test_a_refusal_says_why_and_when():
    bench = AdmissionFixture(capacity_requests_per_second=10)
    statuses = bench.statuses(50)
    assert statuses.count(200) < 8
    refused = bench.ask()
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.read_body() == (
        b"No requests are free for account:AUTH_a: all 10 requests/s are in use or promised."
        b" Try again after 1 s.\n"
    )
    assert "admission.refused" in bench.told.counted


def test_a_client_beyond_its_own_limit_is_told_429(tmp_path):
    path = write(tmp_path / "r.toml", LIMIT_PREFIX.format(name="slow", rate=2))
    bench = AdmissionFixture(rules_path=path)
    assert bench.statuses(5).count(429) == 3
    assert bench.ask().reason == "Too Many Requests"
    assert set(bench.statuses(9, path="/v1/AUTH_b/c/o")) == {200}


def test_a_request_is_asked_about_once():
    bench = AdmissionFixture(capacity_requests_per_second=10)
    env = {}
    assert set(bench.statuses(100, env=env)) == {200}
    assert set(bench.statuses(100, path="/healthcheck")) == {200}


def test_streams_that_move_more_than_there_is_wait():
    bench = AdmissionFixture(capacity_bytes_per_second="1 MB")
    bench.body = bytearray(3_000_000)
    bench.ask()
    assert len(bench.read) == 3_000_000
    assert sum(bench.slept) == pytest.approx(2.5, abs=0.7)
    bench = AdmissionFixture(capacity_bytes_per_second="1 MB", write_cost=3)
    bench.ask("PUT", body=b"x" * 1_000_000)
    assert sum(bench.slept) == pytest.approx(2.5, abs=0.7)


def test_rules_are_read_again_and_bad_ones_change_nothing(tmp_path):
    path = write(tmp_path / "r.toml", LIMIT_PREFIX.format(name="slow", rate=2))
    bench = AdmissionFixture(rules_path=path)
    assert 429 in bench.statuses(9)
    write(path, "[[rule]]\nname = 5\n")
    bench.clock.advance(5)
    assert 429 in bench.statuses(9)
    (line,) = bench.told.log.lines
    assert line == f"{path}: line 2: rule: name must be a text, not 5; the rules from before stay in force"
    path.unlink()
    bench.clock.advance(5)
    assert 429 in bench.statuses(9)
    write(path, LIMIT_PREFIX.format(name="quick", rate=1000))
    bench.clock.advance(5)
    assert set(bench.statuses(9)) == {200}


def test_rules_that_cannot_be_used_stop_a_start(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        AdmissionFixture(rules_path=tmp_path / "none.toml")
    path = write(tmp_path / "r.toml", '[[rule]]\nname = "r"\nguaranteed = { bytes = "1 MB" }\n')
    assert AdmissionFixture(rules_path=path, capacity_bytes_per_second="2 MB")
    with pytest.raises(ConfigError, match=r"line 1: rule 'r': with it 1 MB/s are guaranteed, and 800 kB/s"):
        AdmissionFixture(rules_path=path, capacity_bytes_per_second="1 MB")


@pytest.mark.parametrize("value", ["fast", "-1", "5 XB"])
def test_a_capacity_that_is_none_stops_a_start(value):
    with pytest.raises(ConfigError, match="capacity_bytes_per_second"):
        AdmissionFixture(capacity_bytes_per_second=value)


def test_classes_are_told_apart(tmp_path):
    names = ("client", "s3", "replication", "audit")
    text = "".join(
        f'[[rule]]\nname = "{name}"\nclass = "{name}"\ngreatest = {{ requests = {n + 2} }}\n'
        for n, name in enumerate(names)
    )
    path = write(tmp_path / "r.toml", text)
    bench = AdmissionFixture(rules_path=path)
    counts = [
        bench.statuses(20).count(200),
        bench.statuses(1)[0] and sum(bench.ask(env={"swift.source": "S3"}).status == 200 for _ in range(20)),
        bench.statuses(20, headers={"x-backend-replication": "true"}).count(200),
        AdmissionFixture(rules_path=path, request_class="audit").statuses(20).count(200),
    ]
    assert counts == [2, 2, 3, 3]


def test_a_user_may_have_a_rule(tmp_path):
    text = '[[rule]]\nname = "u"\nuser = "a:me"\ngreatest = { requests = 2 }\n'
    bench = AdmissionFixture(rules_path=write(tmp_path / "r.toml", text))
    mine = [bench.ask(env={"REMOTE_USER": "a:me,a,AUTH_a"}).status for _ in range(9)]
    assert mine.count(429) == 7
    assert {bench.ask(env={"REMOTE_USER": "a:you,a"}).status for _ in range(9)} == {200}


def test_a_request_that_fails_leaves_its_place(tmp_path):
    class Failing(AdmissionFixture):
        def handle(self, request):
            raise ZeroDivisionError

    bench = Failing(capacity_streams=2)
    for _ in range(9):
        with pytest.raises(ZeroDivisionError):
            bench.ask()


# reservations


def test_who_has_a_ticket_gets_what_was_promised_however_many_ask():
    bench = reserving()
    bench.body = b"x" * 10_000
    ticket, got = ticket_of(bench), 0
    for _ in range(2000):
        bench.clock.advance(0.01)
        got += bench.ask(headers=ticket).status == 200
        for _ in range(3):
            bench.ask(path="/v1/AUTH_b/c/o")
        if bench.clock.time() > 1055:
            break
    assert got * 10_000 >= 0.95 * 500_000 * (bench.clock.time() - 1000)
    assert "x-reservation" not in bench.seen[-1].headers


@pytest.mark.parametrize(
    ("ticket", "status"),
    [("rubbish", "malformed"), ("e30=.00", "forged")],
)
def test_a_ticket_that_is_none_does_no_harm_and_no_good(ticket, status):
    answer = reserving().ask(headers={"x-reservation": ticket})
    assert (answer.status, answer.headers["x-reservation-status"]) == (200, status)


def test_a_ticket_is_worth_nothing_elsewhere_or_later():
    bench = reserving()
    ticket = ticket_of(bench)
    for change, said in (
        ({"path": "/v1/AUTH_b/c/o"}, "for another account"),
        ({"method": "PUT"}, "for reads only"),
    ):
        assert bench.ask(headers=ticket, **change).headers["x-reservation-status"] == said
    assert "x-reservation-status" not in bench.ask(headers=ticket).headers
    bench.clock.advance(61)
    assert bench.ask(headers=ticket).headers["x-reservation-status"] == "over"
    assert AdmissionFixture().ask(headers=ticket).headers["x-reservation-status"] == "not used here"


def test_a_capacity_is_learnt_from_what_is_delivered():
    bench = AdmissionFixture(capacity_requests_per_second="learn")
    for _ in range(100):
        bench.clock.advance(0.05)
        bench.takes_s = 0.01
        bench.ask()
    assert bench.filter._capacity.requests is None
    for _ in range(200):
        bench.takes_s = 0.2
        bench.ask()
    assert bench.filter._capacity.requests == pytest.approx(5, rel=0.5)


def test_memcached_that_goes_away_is_told_once():
    cache = SharedCache()
    bench = AdmissionFixture(cache, capacity_requests_per_second=1000)
    bench.clock.advance(2)
    bench.ask()
    cache.is_away = True
    for _ in range(5):
        bench.clock.advance(2)
        assert bench.ask().status == 200
    assert [line for line in bench.told.log.lines if "memcached" in line] == [
        "memcached does not respond: each of 1 processes limits requests to an equal share"
    ]
