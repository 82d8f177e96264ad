"""Requests that there is no room for are refused early, with the reason (doc/admission.md)."""

import json

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.http.body import WholeBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.admission.filter import Admission
from swift.middleware.admission.settings import AdmissionSettings
from test.support.sharedcache import SharedCache

LIMIT = '[[rule]]\nname = "{name}"\naccount = "AUTH_a"\ngreatest = {{ requests = {rate} }}\n'


class Log:
    def __init__(self):
        self.lines = []

    def warning(self, text, **_more):
        self.lines.append(text)

    info = error = warning


class Told:
    """Telemetry that remembers."""

    def __init__(self):
        self.log = Log()
        self.counted = []
        self.statsd = self
        self.metrics = self

    def increment(self, name, amount=1):
        self.counted.append(name)

    def counter(self, name, help_text, **labels):
        return self

    def inc(self, amount=1.0):
        pass


class Bench:
    def __init__(self, cache=None, **options):
        self.clock = ManualClock(1000.0)
        self.cache = cache
        self.told = Told()
        self.slept = []
        self.body = b"x" * 100
        self.seen = []
        self.takes_s = 0.0
        self.filter = Admission(
            self,
            AdmissionSettings.parse({name: str(value) for name, value in options.items()}),
            self.told,
            clock=self.clock,
            sleep=self.sleep,
            spawn=lambda call, arg: call(arg),
        )

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def handle(self, request):
        self.seen.append(request)
        self.clock.advance(self.takes_s)
        request.body.read()
        body = self.body if isinstance(self.body, bytes) else WholeBody(bytes(self.body))
        return Response(200, {}, body)

    def ask(self, method="GET", path="/v1/AUTH_a/c/o", headers=None, body=b"", env=None, query=""):
        env = {} if env is None else env
        if self.cache is not None:
            env.setdefault("swift.cache", self.cache)
        request = Request(method, path, dict(headers or {}), body, env=env, query=query)
        try:
            response = self.filter.handle(request)
        except HTTPError as error:
            return error.response
        if response.status == 200:
            self.read = response.read_body()
            response.ended(len(self.read), True)
        return response

    def statuses(self, count, **more):
        return [self.ask(**more).status for _ in range(count)]


def write(path, text):
    path.write_text(text)
    return path


def test_it_does_nothing_until_it_is_told_to():
    bench = Bench()
    assert set(bench.statuses(100)) == {200}
    assert bench.read == bench.body


def test_a_refusal_says_why_and_when():
    bench = Bench(capacity_requests_per_second=10)
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
    path = write(tmp_path / "r.toml", LIMIT.format(name="slow", rate=2))
    bench = Bench(rules_path=path)
    assert bench.statuses(5).count(429) == 3
    assert bench.ask().reason == "Too Many Requests"
    assert set(bench.statuses(9, path="/v1/AUTH_b/c/o")) == {200}


def test_a_request_is_asked_about_once():
    bench = Bench(capacity_requests_per_second=10)
    env = {}
    assert set(bench.statuses(100, env=env)) == {200}
    assert set(bench.statuses(100, path="/healthcheck")) == {200}


def test_streams_that_move_more_than_there_is_wait():
    bench = Bench(capacity_bytes_per_second="1 MB")
    bench.body = bytearray(3_000_000)
    bench.ask()
    assert len(bench.read) == 3_000_000
    assert sum(bench.slept) == pytest.approx(2.5, abs=0.7)
    bench = Bench(capacity_bytes_per_second="1 MB", write_cost=3)
    bench.ask("PUT", body=b"x" * 1_000_000)
    assert sum(bench.slept) == pytest.approx(2.5, abs=0.7)


def test_rules_are_read_again_and_bad_ones_change_nothing(tmp_path):
    path = write(tmp_path / "r.toml", LIMIT.format(name="slow", rate=2))
    bench = Bench(rules_path=path)
    assert 429 in bench.statuses(9)
    write(path, "[[rule]]\nname = 5\n")
    bench.clock.advance(5)
    assert 429 in bench.statuses(9)
    (line,) = bench.told.log.lines
    assert line == f"{path}: line 2: rule: name must be a text, not 5; the rules from before stay in force"
    path.unlink()
    bench.clock.advance(5)
    assert 429 in bench.statuses(9)
    write(path, LIMIT.format(name="quick", rate=1000))
    bench.clock.advance(5)
    assert set(bench.statuses(9)) == {200}


def test_rules_that_cannot_be_used_stop_a_start(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Bench(rules_path=tmp_path / "none.toml")
    path = write(tmp_path / "r.toml", '[[rule]]\nname = "r"\nguaranteed = { bytes = "1 MB" }\n')
    assert Bench(rules_path=path, capacity_bytes_per_second="2 MB")
    with pytest.raises(ConfigError, match=r"line 1: rule 'r': with it 1 MB/s are guaranteed, and 800 kB/s"):
        Bench(rules_path=path, capacity_bytes_per_second="1 MB")


@pytest.mark.parametrize("value", ["fast", "-1", "5 XB"])
def test_a_capacity_that_is_none_stops_a_start(value):
    with pytest.raises(ConfigError, match="capacity_bytes_per_second"):
        Bench(capacity_bytes_per_second=value)


def test_classes_are_told_apart(tmp_path):
    names = ("client", "s3", "replication", "audit")
    text = "".join(
        f'[[rule]]\nname = "{name}"\nclass = "{name}"\ngreatest = {{ requests = {n + 2} }}\n'
        for n, name in enumerate(names)
    )
    path = write(tmp_path / "r.toml", text)
    bench = Bench(rules_path=path)
    counts = [
        bench.statuses(20).count(200),
        bench.statuses(1)[0] and sum(bench.ask(env={"swift.source": "S3"}).status == 200 for _ in range(20)),
        bench.statuses(20, headers={"x-backend-replication": "true"}).count(200),
        Bench(rules_path=path, request_class="audit").statuses(20).count(200),
    ]
    assert counts == [2, 2, 3, 3]


def test_a_user_may_have_a_rule(tmp_path):
    text = '[[rule]]\nname = "u"\nuser = "a:me"\ngreatest = { requests = 2 }\n'
    bench = Bench(rules_path=write(tmp_path / "r.toml", text))
    mine = [bench.ask(env={"REMOTE_USER": "a:me,a,AUTH_a"}).status for _ in range(9)]
    assert mine.count(429) == 7
    assert {bench.ask(env={"REMOTE_USER": "a:you,a"}).status for _ in range(9)} == {200}


def test_a_request_that_fails_leaves_its_place(tmp_path):
    class Failing(Bench):
        def handle(self, request):
            raise ZeroDivisionError

    bench = Failing(capacity_streams=2)
    for _ in range(9):
        with pytest.raises(ZeroDivisionError):
            bench.ask()


# reservations


def reserving(cache=None, **options):
    return Bench(
        cache if cache is not None else SharedCache(),
        **{"capacity_bytes_per_second": "1 MB", "ticket_key": "k", **options},
    )


def reserve(bench, path="/v1/AUTH_a", env=None, **params):
    params = {"duration": 60, "bytes_per_second": 500000, "direction": "read", **params}
    query = "&".join(["reserve", *(f"{name}={value}" for name, value in params.items())])
    return bench.ask("POST", path, query=query, env=env)


def test_a_reservation_is_answered_with_a_ticket_or_refused_at_once():
    bench = reserving()
    made = reserve(bench)
    assert made.status == 201
    said = json.loads(made.body)
    assert (said["account"], said["direction"], said["bytes_per_second"]) == ("AUTH_a", "read", 500000)
    assert said["ends"] - said["begins"] == 60
    refused = reserve(bench)
    assert refused.status == 503
    assert refused.body == b"Only 300 kB/s can be reserved for that time.\n"
    assert int(refused.headers["retry-after"]) == 60
    assert reserve(bench, begins=bench.clock.time() + 60).status == 201, "then the first one is over"
    assert reserve(bench, bytes_per_second="300kB").status == 201
    assert not bench.seen, "the account is not asked"


def test_two_proxies_promise_together_what_one_may():
    cache = SharedCache()
    one, other = reserving(cache), reserving(cache)
    assert reserve(one).status == 201
    assert reserve(other).status == 503


@pytest.mark.parametrize(
    "params",
    [
        {"direction": "up"},
        {"duration": "x"},
        {"duration": 0},
        {"duration": 1e9},
        {"bytes_per_second": "many"},
        {"bytes_per_second": -1},
        {"begins": "nan"},
        {"begins": 9e9},
    ],
)
def test_a_bad_wish_is_400(params):
    answer = reserve(reserving(), **params)
    assert answer.status == 400
    assert next(iter(params)).encode() in answer.body


def test_who_may_not_change_the_account_reserves_nothing():
    env = {"swift.authorize": lambda request: error_response(403)}
    assert reserve(reserving(), env=env).status == 403


def test_what_cannot_be_known_is_not_promised():
    cache = SharedCache()
    bench = reserving(cache)
    cache.is_away = True
    assert reserve(bench).status == 503
    assert reserve(reserving(capacity_bytes_per_second="learn")).status == 503
    assert reserve(reserving(capacity_bytes_per_second=0)).status == 503
    assert reserve(reserving(ticket_key="")).status == 501


def test_writes_take_what_they_cost():
    bench = reserving(write_cost=3)
    assert reserve(bench, direction="write", bytes_per_second=300000).status == 503
    made = json.loads(reserve(bench, direction="write", bytes_per_second=200000).body)
    assert made["bytes_per_second"] == 200000


def ticket_of(bench, **params):
    return {"x-reservation": json.loads(reserve(bench, **params).body)["ticket"]}


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
    assert Bench().ask(headers=ticket).headers["x-reservation-status"] == "not used here"


def test_a_capacity_is_learnt_from_what_is_delivered():
    bench = Bench(capacity_requests_per_second="learn")
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
    bench = Bench(cache, capacity_requests_per_second=1000)
    bench.clock.advance(2)
    bench.ask()
    cache.is_away = True
    for _ in range(5):
        bench.clock.advance(2)
        assert bench.ask().status == 200
    assert [line for line in bench.told.log.lines if "away" in line] == [
        "memcached is away: each of 1 processes takes an even part"
    ]
