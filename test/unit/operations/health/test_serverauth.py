"""swift-health names servers that differ in the authentication of servers, and those that refuse requests."""

from swift.operations.health.serverauth import REFUSED_S, AuthReport, auth_problems, parse_auth_report
from swift.operations.recon.client import Host

NOW_S = 1795228430.0
HOSTS = [Host(f"10.0.0.{number}", 6200) for number in range(1, 8)]


def problems(*reports):
    return [text for text, _remedy in auth_problems(dict(zip(HOSTS, reports, strict=False)), NOW_S)]


def test_equal_servers_are_no_problem():
    assert problems(*[AuthReport("require", ("1",))] * 3) == []
    assert problems(*[AuthReport("off")] * 3) == []
    assert problems() == []


def test_servers_in_another_mode_are_named():
    found = problems(AuthReport("require", ("1",)), *[AuthReport("accept", ("1",))] * 6)
    assert found == [
        "servers differ in the mode of server authentication: require on 10.0.0.1:6200; accept on "
        "10.0.0.2:6200, 10.0.0.3:6200, 10.0.0.4:6200, 10.0.0.5:6200 and 2 more"
    ]


def test_servers_with_other_secrets_are_named_also_by_their_order():
    found = problems(*[AuthReport("require", ("1", "2"))] * 2, AuthReport("require", ("2", "1")))
    assert found == [
        "servers have other secrets for server authentication: 2 1 on 10.0.0.3:6200; 1 2 on 10.0.0.1:6200, "
        "10.0.0.2:6200"
    ]


def test_secrets_do_not_matter_where_none_is_demanded():
    assert problems(AuthReport("off", ("1",)), AuthReport("off")) == []


def test_recent_refusals_are_named():
    report = AuthReport("require", ("1",), 3, NOW_S - 60, "10.0.0.9", "no signature")
    assert problems(report) == ["10.0.0.1:6200 refused 3 requests, the last from 10.0.0.9: no signature"]
    old = AuthReport("require", ("1",), 3, NOW_S - REFUSED_S, "10.0.0.9", "no signature")
    assert problems(old) == []


def test_a_page_becomes_a_report():
    page = {
        "mode": "require",
        "key_ids": ["1", "\x1b[2J"],
        "refused": {"count": 2, "since": 1.0, "last": 5, "address": "10.0.0.9", "reason": "no"},
        "unsigned": {"count": 9},
    }
    assert parse_auth_report(page) == AuthReport("require", ("1", "'\\x1b[2J'"), 2, 5.0, "10.0.0.9", "no")
    assert parse_auth_report({}) is None
