"""Many processes use one capacity together, and no more (doc/explanation/admission.md)."""

import copy
import random

import pytest

from swift.cluster.memcache import MemcacheError
from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.capacityshares import (
    NAMES_MAX,
    ShareExchange,
    compute_shares,
    even_shares,
    is_usage_report,
)
from swift.middleware.admission.limiter import UNGUARANTEED_KEY, AdmittedRequest, Limiter, Usage
from swift.middleware.admission.rules import RequestProperties, parse_rules
from test.support.checks import every
from test.support.filters import SharedCache


@every("seed", range(100))
def test_the_parts_of_all_processes_add_up_to_one(seed):
    draw = random.Random(seed)
    names = [f"n{n}" for n in range(draw.randint(1, 5))]
    told = [
        {name: [draw.choice((0.0, draw.uniform(0, 1e6))), draw.uniform(0, 9), 0.0] for name in names}
        for _ in range(draw.randint(1, 8))
    ]
    found = [compute_shares(mine, [t for t in told if t is not mine]) for mine in told]
    for name in names:
        for resource in ("bytes", "requests"):
            assert sum(parts.shares[resource, name] for parts in found) == pytest.approx(1.0)
    assert sum(parts.other_share for parts in found) == pytest.approx(1.0)
    assert all(parts.processes == len(told) for parts in found)


def test_when_nobody_can_be_told_the_parts_are_even():
    assert (even_shares(4).other_share, even_shares(0).other_share) == (0.25, 1.0)


@pytest.mark.parametrize("value", [None, [], {"a": 1}, {"a": [1, 2]}, {"a": [1, 2, "x"]}, {"a": [1, 2, -3]}])
def test_what_no_process_tells_is_not_believed(value):
    assert not is_usage_report(value)


def test_they_hear_each_other_also_when_a_window_ends():
    cache = SharedCache()
    all_of = [ShareExchange() for _ in range(5)]
    for now in range(40):
        found = [
            x.exchange(cache, {"a": Usage(bytes=100.0 * (n + 1))}, {}, 1.0, now) for n, x in enumerate(all_of)
        ]
        if now > 3:
            assert {parts.processes for parts in found} == {5}, now
    whole = sum(parts.shares["bytes", "a"] for parts in found)
    assert whole == pytest.approx(1.0, abs=0.02)
    assert found[4].shares["bytes", "a"] == pytest.approx(5 / 15, abs=0.03)


def test_processes_that_were_forked_from_one_are_several():
    cache, one = SharedCache(), ShareExchange()
    other = copy.copy(one)
    for now in range(3):
        found = [exchange.exchange(cache, {}, {}, 1.0, now).processes for exchange in (one, other)]
    assert found == [2, 2]


def test_one_that_went_away_is_forgotten_after_two_windows():
    cache = SharedCache()
    one, other = ShareExchange(), ShareExchange()
    for now in range(60):
        if now < 10:
            other.exchange(cache, {}, {}, 1.0, now)
        found = one.exchange(cache, {}, {}, 1.0, now)
    assert found.processes == 1


def test_streams_of_others_are_told():
    cache = SharedCache()
    one, other = ShareExchange(), ShareExchange()
    one.exchange(cache, {"a": Usage(streams=3)}, {}, 1.0, 0.0)
    assert other.exchange(cache, {"a": Usage(streams=2)}, {}, 1.0, 0.0).streams == {
        "a": 3,
        UNGUARANTEED_KEY: 0,
    }


def test_memcached_that_is_away_is_an_error():
    cache = SharedCache()
    cache.is_away = True
    with pytest.raises(MemcacheError):
        ShareExchange().exchange(cache, {}, {}, 1.0, 0.0)


def test_what_is_told_is_small_however_many_ask():
    exchange = ShareExchange()
    uses = {f"account:{n}": Usage(bytes=float(n + 1)) for n in range(5000)}
    told = exchange.make_report(uses, {"rule:kept": Amounts(bytes=5.0)}, 1.0)
    assert len(told) == NAMES_MAX
    assert "account:4999" in told
    for _ in range(60):
        told = exchange.make_report({}, {}, 1.0)
    assert set(told) == {UNGUARANTEED_KEY}


RULES = '[[rule]]\nname = "kept"\naccount = "AUTH_k"\nguaranteed = { bytes = 400 }\n'


class Proxies:
    """Some processes with a gate each; clients keep to one of them, or go to any."""

    def __init__(self, count, cache):
        self.cache = cache
        rules = parse_rules(RULES, source="r")
        self.guarantees = rules.guarantees()
        self.gates = [Limiter(rules, Amounts(bytes=1000.0), burst_s=0.5, now=0.0) for _ in range(count)]
        self.exchanges = [ShareExchange() for _ in range(count)]
        self.used = {}

    def exchange(self, now):
        for gate, exchange in zip(self.gates, self.exchanges, strict=True):
            uses = gate.take_report()
            try:
                parts = exchange.exchange(self.cache, uses, self.guarantees, 1.0, now)
            except MemcacheError:
                parts = even_shares(exchange.processes)
            gate.set_shares(parts.shares, parts.other_share, parts.streams, now)

    def ask(self, gate, account, now):
        grant = self.gates[gate].admit(RequestProperties(account), now, expected_bytes=5)
        if isinstance(grant, AdmittedRequest):
            grant.count_bytes(5, now)
            grant.end(now)
            self.used[account] = self.used.get(account, 0) + 5

    def run(self, begin, seconds, where, tries=4):
        now, turned = begin, begin
        while now < begin + seconds:
            if now - turned >= 1.0:
                self.exchange(now)
                turned = now
            for account, gates in where.items():
                for gate in gates:
                    for _ in range(tries):
                        self.ask(gate, account, now)
            now += 0.02
        return now


def test_together_they_use_the_capacity_and_no_more_and_guarantees_are_kept():
    proxies = Proxies(4, SharedCache())
    where = {"AUTH_k": [0], "AUTH_a": [0, 1, 2, 3], "AUTH_b": [3]}
    now = proxies.run(0.0, 10.0, where)
    proxies.used.clear()
    proxies.run(now, 20.0, where)
    assert sum(proxies.used.values()) <= 1.05 * 1000 * 20
    assert sum(proxies.used.values()) >= 0.9 * 1000 * 20
    assert proxies.used["AUTH_k"] >= 0.95 * 400 * 20


def test_when_memcached_goes_away_they_never_use_more_than_the_capacity():
    proxies = Proxies(4, SharedCache())
    where = {"AUTH_a": [0, 1, 2, 3], "AUTH_b": [0, 1, 2, 3]}
    now = proxies.run(0.0, 10.0, where)
    proxies.cache.is_away = True
    now = proxies.run(now, 2.0, where)
    proxies.used.clear()
    proxies.run(now, 20.0, where)
    assert sum(proxies.used.values()) <= 1.05 * 1000 * 20
