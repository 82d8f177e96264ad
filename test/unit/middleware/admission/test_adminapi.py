"""An operator looks at admission and changes its rules while it runs (doc/explanation/admission.md)."""

import json
import os
import random
import tomllib

import pytest

from swift.http.body import RequestBody
from swift.middleware.admission.rulesexchange import RULES_BYTES_MAX, RulesUpdate
from test.support.checks import every
from test.support.filters import SharedCache
from test.unit.middleware.admission.test_filter import LIMIT_PREFIX, AdmissionFixture

STATE, RULES = "/v1/.admission/cluster/state", "/v1/.admission/cluster/rules"
ADMIN = {"reseller_request": True, "REMOTE_USER": "admin"}


def operate(bench, method="GET", path=STATE, body=b"", env=ADMIN):
    return bench.ask(method, path, body=body, env=dict(env))


def turn(bench):
    """Time passes, and somebody asks something."""
    bench.clock.advance(2)
    bench.ask("HEAD", "/v1/AUTH_z")


def rule(rate, name="slow"):
    return LIMIT_PREFIX.format(name=name, rate=rate)


def limit_of(bench):
    """The greatest rate that a client of the account meets."""
    bench.clock.advance(30)
    return bench.statuses(60).count(200)


@every(("env", "status"), [({}, 401), ({"REMOTE_USER": "a,AUTH_a"}, 403)])
@every("path", [STATE, RULES, f"{RULES}/x", "/v1/.admission/other", "/v1/.admission"])
@every("method", ["GET", "PUT", "POST", "DELETE"])
def test_nobody_else_is_let_in(env, status, path, method):
    bench = AdmissionFixture(cache=SharedCache())
    answer = operate(bench, method, path, rule(1).encode(), env)
    assert (answer.status, "www-authenticate" in answer.headers) == (status, status == 401)
    assert bench.seen == []
    assert operate(bench, path=RULES).status == 200
    assert bench.read == b""


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{RULES}/x", 404),
        ("GET", "/v1/.admission/cluster/other", 404),
        ("GET", "/v1/.admission/other/rules", 404),
        ("GET", "/v1/.admission/cluster", 404),
        ("GET", "/v1/.admission", 404),
        ("PUT", STATE, 405),
        ("POST", RULES, 405),
        ("DELETE", RULES, 405),
        ("HEAD", STATE, 200),
        ("HEAD", RULES, 200),
    ],
)
def test_other_doors_are_closed(method, path, status):
    bench = AdmissionFixture(cache=SharedCache())
    assert operate(bench, method, path).status == status
    assert bench.seen == []


def test_rules_that_are_put_hold_at_once_and_are_shown(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(rule(2))
    path.chmod(0o600)
    bench = AdmissionFixture(cache=SharedCache(), rules_path=path)
    assert limit_of(bench) == 2
    text = "# ours\n" + rule(20)
    assert operate(bench, "PUT", RULES, text.encode()).status == 200
    assert json.loads(bench.read) == {"rules": 1, "written": True, "published": True}
    assert limit_of(bench) == 11
    operate(bench, path=RULES)
    assert bench.read.decode() == text == path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert limit_of(AdmissionFixture(rules_path=path)) == 11, "a proxy that is started later"


def test_all_processes_of_all_proxies_follow(tmp_path):
    cache, files = SharedCache(), [tmp_path / "1.toml", tmp_path / "2.toml"]
    for file in files:
        file.write_text(rule(2))
        os.utime(file, (900, 900))
    benches = [AdmissionFixture(cache=cache, rules_path=file) for file in (*files, *files)]
    operate(benches[0], "PUT", RULES, rule(20).encode())
    for bench in benches:
        turn(bench)
        operate(bench, path=RULES)
        assert bench.read.decode() == rule(20)
    assert [file.read_text() for file in files] == [rule(20)] * 2


def test_without_a_file_rules_are_kept_as_long_as_a_process_knows_them():
    cache = SharedCache()
    first, second = AdmissionFixture(cache=cache), AdmissionFixture(cache=cache)
    operate(first, "PUT", RULES, rule(2).encode())
    assert json.loads(first.read) == {"rules": 1, "written": False, "published": True}
    turn(second)
    cache.values.clear()
    turn(second)
    third = AdmissionFixture(cache=cache)
    turn(third)
    operate(third, path=RULES)
    assert third.read.decode() == rule(2)


def test_the_newest_wins_be_it_the_file(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(rule(2))
    bench = AdmissionFixture(cache=SharedCache(), rules_path=path)
    operate(bench, "PUT", RULES, rule(20).encode())
    given = path.stat().st_mtime_ns
    path.write_text(rule(5))
    os.utime(path, ns=(given + 1, given + 1))
    turn(bench)
    turn(bench)
    operate(bench, path=RULES)
    assert bench.read.decode() == rule(5) == path.read_text()


def test_rules_that_cannot_be_used_are_told_as_of_the_file_and_change_nothing(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(rule(2))
    bench = AdmissionFixture(cache=SharedCache(), rules_path=path, capacity_requests_per_second=100)
    bad = rule(3) + '\n[[rule]]\nname = "bad"\naccount = "x"\nguaranteed = { requests = 81 }\n'
    answer = operate(bench, "PUT", RULES, bad.encode())
    assert answer.status == 400
    assert answer.read_body().decode() == (
        f"{path}: line 6: rule 'bad': with it 81 requests/s are guaranteed, and 80 requests/s may be\n"
    )
    assert path.read_text() == rule(2)
    assert limit_of(bench) == 2


HOSTILE = [b"\xff\xfe", b"\0", b"[[rule", b"rule = 1", b"[[rule]]\nname = 5", b"a = " + b"[" * 5000]


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_no_rules_is_400(body):
    bench = AdmissionFixture(cache=SharedCache())
    answer = operate(bench, "PUT", RULES, body)
    assert answer.status == 400
    assert answer.read_body().startswith(b"rules: ")


GOOD = b"""[[rule]]
name = "backup"
account = "AUTH_b"
guaranteed = { bytes = "50 MB", requests = 100, streams = 8 }
greatest = { bytes = "200 MB" }
weight = 2.5
"""


def test_no_damaged_rules_do_anything_but_be_refused_or_hold():
    draw, bench = random.Random(11), AdmissionFixture(cache=SharedCache(), capacity_bytes_per_second="100 MB")
    operate(bench, "PUT", RULES, GOOD)
    before, refused = GOOD, 0
    for _ in range(1500):
        body = bytearray(GOOD)
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(body))
            body[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
        status = operate(bench, "PUT", RULES, bytes(body)).status
        assert status in (200, 400), bytes(body)
        refused += status == 400
        before = bytes(body) if status == 200 else before
        operate(bench, path=RULES)
        assert bench.read == before
    assert 0 < refused < 1500


class Endless(RequestBody):
    length = None
    given = 0

    def read(self, size=-1):
        self.given += size
        return b"#" * size


def test_what_is_too_long_is_413_and_not_read_further():
    bench = AdmissionFixture(cache=SharedCache())
    body = Endless()
    assert operate(bench, "PUT", RULES, body).status == 413
    assert body.given <= RULES_BYTES_MAX + 65536
    assert operate(bench, "PUT", RULES, b"#" * (RULES_BYTES_MAX + 1)).status == 413
    assert operate(bench, "PUT", RULES, b"#" * RULES_BYTES_MAX).status == 200


def test_rules_that_nobody_would_know_of_are_not_taken(tmp_path):
    cache = SharedCache()
    cache.is_away = True
    bench = AdmissionFixture(cache=cache)
    assert operate(bench, "PUT", RULES, rule(2).encode()).status == 503
    cache.is_away = False
    turn(bench)
    operate(bench, path=RULES)
    assert bench.read == b""
    path = tmp_path / "folder" / "r.toml"
    path.parent.mkdir()
    path.write_text(rule(2))
    bench = AdmissionFixture(rules_path=path)
    path.unlink()
    path.parent.rmdir()
    assert operate(bench, "PUT", RULES, rule(5).encode()).status == 503
    operate(bench, path=RULES)
    assert bench.read.decode() == rule(2)


def test_a_file_that_can_be_written_is_enough_and_memcached_is_told_when_it_is_back(tmp_path):
    cache, path = SharedCache(), tmp_path / "r.toml"
    path.write_text("")
    bench = AdmissionFixture(cache=cache, rules_path=path)
    cache.is_away = True
    assert operate(bench, "PUT", RULES, rule(2).encode()).status == 200
    assert json.loads(bench.read) == {"rules": 1, "written": True, "published": False}
    cache.is_away = False
    turn(bench)
    other = AdmissionFixture(cache=cache)
    turn(other)
    operate(other, path=RULES)
    assert other.read.decode() == rule(2)


@pytest.mark.parametrize(
    "value",
    [7, "x", {}, {"at_ns": "5", "text": ""}, {"at_ns": 1 << 70, "text": ""}, {"at_ns": 5, "text": b"x"}],
)
def test_nonsense_in_memcached_is_nothing(value):
    assert RulesUpdate.of(value) is None
    cache = SharedCache()
    cache.values["admission/rules"] = value
    bench = AdmissionFixture(cache=cache)
    turn(bench)
    assert operate(bench).status == 200


def test_rules_of_others_that_cannot_be_used_here_are_told_of_once():
    cache = SharedCache()
    operate(
        AdmissionFixture(cache=cache),
        "PUT",
        RULES,
        b'[[rule]]\nname="a"\naccount="x"\nguaranteed={requests=81}\n',
    )
    small = AdmissionFixture(cache=cache, capacity_requests_per_second=100)
    for _ in range(3):
        turn(small)
    told = [line for line in small.told.log.lines if "given to another proxy" in line]
    assert len(told) == 1 and "rule 'a'" in told[0]


def test_the_state_says_what_is_asked_for_and_promised(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(rule(50) + '[[rule]]\nname = "kept"\naccount = "AUTH_b"\nguaranteed = { requests = 5 }\n')
    bench = AdmissionFixture(
        cache=SharedCache(), rules_path=path, capacity_bytes_per_second="10 MB", ticket_key="k"
    )
    reserve = "reserve&duration=60&direction=read&bytes_per_second=1MB"
    assert bench.ask("POST", "/v1/AUTH_a", query=reserve).status == 201
    for _ in range(10):
        bench.ask()
        bench.ask(path="/v1/AUTH_b/c/o")
    turn(bench)
    turn(bench)
    operate(bench)
    state = json.loads(bench.read)
    assert state["capacity"] == {"bytes": 10e6, "requests": None, "streams": None}
    assert (state["processes"], state["memcached_is_away"]) == (1, False)
    assert state["rules"]["count"] == 2 and state["rules"]["source"] == str(path)
    assert state["lanes"]["account:AUTH_a"]["requests"] > 1
    assert state["lanes"]["kept"]["guaranteed"]["requests"] == 5
    assert state["limits"]["slow"]["requests"] > 1
    assert state["delivered"]["requests"] > 1
    (reserved,) = state["reservations"]
    assert (reserved["account"], reserved["bytes"], reserved["holds"]) == ("AUTH_a", 1e6, True)
    assert "ticket" not in json.dumps(state), "nobody can use what is shown"


def test_what_is_shown_can_be_put_again(tmp_path):
    bench = AdmissionFixture(cache=SharedCache())
    operate(bench, "PUT", RULES, rule(2).encode())
    operate(bench, path=RULES)
    assert tomllib.loads(bench.read.decode())["rule"][0]["name"] == "slow"
    assert operate(bench, "PUT", RULES, bench.read).status == 200
