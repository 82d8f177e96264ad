"""Requests that come too fast wait, and those that would wait too long are refused (middleware.md §13)."""

import pytest

from swift.base.clock import ManualClock
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.ratelimit.filter import Ratelimit, RatelimitSettings
from swift.middleware.ratelimit.rates import RatesBySize
from test.support.filters import Counters


class Bench:
    def __init__(self, containers=None, listings=None, **options):
        self.clock = ManualClock(1_000_000.0)
        self.cache = Counters()
        self.objects, self.said, self.slept, self.passed = "150", None, [], 0
        self.filter = Ratelimit(
            self,
            RatelimitSettings.parse(options),
            RatesBySize(containers or {}),
            RatesBySize(listings or {}),
            clock=self.clock,
            sleep=self.sleep,
        )

    def sleep(self, seconds):
        self.slept.append(round(seconds, 6))
        self.clock.advance(seconds)

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            if request.entity.path.container:
                return Response(204, {"x-container-object-count": self.objects})
            said = {} if self.said is None else {"x-account-sysmeta-global-write-ratelimit": self.said}
            return Response(204, said)
        self.passed += 1
        return Response(200)

    def ask(self, method, path, **env):
        return self.filter.handle(Request(method, path, {}, env={"swift.cache": self.cache, **env}))


def test_a_pace_is_kept():
    bench = Bench(account_ratelimit="10", rate_buffer_seconds="0")
    for _ in range(5):
        assert bench.ask("PUT", "/v1/a/c").status == 200
    assert bench.slept == [0.1] * 4


def test_a_pause_can_be_caught_up_but_for_no_longer_than_the_buffer():
    bench = Bench(account_ratelimit="1", rate_buffer_seconds="3")
    bench.ask("PUT", "/v1/a/c")
    bench.clock.advance(1000)
    for _ in range(5):
        bench.ask("PUT", "/v1/a/c")
    assert bench.slept == [1.0] * 4
    bench.clock.advance(3)
    for _ in range(4):
        bench.ask("PUT", "/v1/a/c")
    assert bench.slept == [1.0] * 5


def test_who_would_wait_too_long_is_refused_and_takes_no_turn():
    bench = Bench(account_ratelimit="1", max_sleep_time_seconds="2", rate_buffer_seconds="0")
    bench.filter._sleep = lambda seconds: None
    statuses = [bench.ask("DELETE", "/v1/a/c").status for _ in range(10)]
    assert statuses == [200] * 3 + [498] * 7
    answer = bench.ask("DELETE", "/v1/a/c")
    assert (answer.reason, answer.body) == ("Rate Limited", b"Slow down")
    bench.clock.advance(2)
    assert bench.ask("DELETE", "/v1/a/c").status == 200


@pytest.mark.parametrize(
    ("method", "path", "keys"),
    [
        ("PUT", "/v1/a/c", {"ratelimit/a"}),
        ("DELETE", "/v1/a/c", {"ratelimit/a"}),
        ("POST", "/v1/a/c", set()),
        ("GET", "/v1/a/c", {"ratelimit_listing/a/c"}),
        ("HEAD", "/v1/a/c", set()),
        ("PUT", "/v1/a/c/o", {"ratelimit/a/c"}),
        ("COPY", "/v1/a/c/o", {"ratelimit/a/c"}),
        ("GET", "/v1/a/c/o", set()),
        ("PUT", "/v1/a", set()),
        ("GET", "/info", set()),
    ],
)
def test_each_kind_of_request_has_its_counter(method, path, keys):
    bench = Bench({0: 100.0}, {0: 100.0}, account_ratelimit="10")
    bench.ask(method, path)
    assert set(bench.cache.values) == keys
    bench.said = "7.5"
    bench.ask(method, path)
    writes = path != "/info" and method in ("PUT", "DELETE", "POST", "COPY")
    assert set(bench.cache.values) - keys == ({"ratelimit/global-write/a"} if writes else set())


def test_small_containers_are_free():
    bench = Bench({1000: 1.0})
    bench.ask("PUT", "/v1/a/c/o")
    assert bench.cache.values == {}


@pytest.mark.parametrize("said", ["", "junk", "-1", "0", "nan", "inf"])
def test_what_is_no_rate_limits_nothing(said):
    bench = Bench()
    bench.said = said
    assert bench.ask("PUT", "/v1/a/c/o").status == 200
    assert bench.cache.values == {}


@pytest.mark.parametrize("by", ["option", "account"])
def test_lists_of_accounts(by):
    white = Bench(account_ratelimit="1", account_whitelist="a" if by == "option" else "")
    black = Bench(account_blacklist="a" if by == "option" else "")
    if by == "account":
        white.said, black.said = "WHITELIST", "BLACKLIST"
    for _ in range(3):
        assert white.ask("PUT", "/v1/a/c").status == 200
    assert white.slept == []
    answer = black.ask("GET", "/v1/a/c/o")
    assert (answer.status, answer.reason) == (497, "Blacklisted")
    assert answer.body == b"Your account has been blacklisted"
    assert (black.slept, black.passed) == ([1.0], 0)


def test_a_request_waits_once_and_nobody_waits_without_a_cache():
    bench = Bench(account_ratelimit="1")
    request = Request("PUT", "/v1/a/c", {}, env={"swift.cache": bench.cache})
    for _ in range(3):
        bench.filter.handle(request)
    assert len(set(bench.cache.values.values())) == 1 and bench.slept == []
    bench.cache.broken = True
    assert bench.ask("PUT", "/v1/a/c").status == 200
    assert bench.filter.handle(Request("PUT", "/v1/a/c")).status == 200


def test_a_request_of_s3_names_no_account():
    """Else every key of a bucket would be looked for as an account."""
    bench = Bench({0: 1.0}, account_ratelimit="1")
    bench.handle = lambda request: asked.append(request) or Response(200)
    asked = []
    bench.filter.forward = bench.handle
    for _ in range(3):
        assert bench.ask("PUT", "/bucket/key").status == 200
    assert [request.raw_path for request in asked] == ["/bucket/key"] * 3
    assert bench.slept == []
