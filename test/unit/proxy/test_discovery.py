"""Requests for /info: who is told what, and which signatures count (public-api.md §4)."""

import hmac
import json
from hashlib import sha1
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.base.limits import Limits
from swift.http.request import Request
from swift.policy.policy import Policies, Policy
from swift.proxy.discovery import InfoController, register_swift_section
from swift.proxy.settings import ProxySettings
from swift.telemetry.inforegistry import InfoRegistry

NOW = 1_000_000
POLICIES = Policies(
    [Policy(0, "gold", aliases=("yellow",), is_default=True), Policy(1, "old", is_deprecated=True)]
)


def front(**options):
    settings = ProxySettings(**{"admin_key": "key", **options})
    context = SimpleNamespace(
        settings=settings, clock=ManualClock(NOW), limits=Limits(max_file_size=5), policies=POLICIES
    )
    registry = InfoRegistry()
    register_swift_section(registry, context, "1.2")
    registry.register("keys", {"secret": "x"}, admin=True)
    return InfoController(context, registry)


def ask(method="GET", query="", headers=None, **options):
    return front(**options).handle(Request(method, "/info", headers or {}, query=query))


def facts(**more):
    return json.loads(ask(**more).body)


def signed(verb="GET", expires=str(NOW + 10), key="key", path="/info"):
    signature = hmac.new(key.encode(), f"{verb}\n{expires}\n{path}".encode(), sha1).hexdigest()
    return f"swiftinfo_sig={signature}&swiftinfo_expires={expires}"


def test_everybody_is_told_of_limits_and_of_policies_that_take_objects():
    told = facts()["swift"]
    assert (told["version"], told["max_file_size"]) == ("1.2", 5)
    assert told["policies"] == [{"name": "gold", "aliases": "gold, yellow", "default": True}]
    assert "admin" not in facts()


def test_what_is_not_for_the_public_is_left_out():
    assert "policies" not in facts(disallowed_sections=("swift.policies",))["swift"]


def test_who_signs_sees_what_operators_see():
    assert facts(query=signed())["admin"]["keys"] == {"secret": "x"}


@pytest.mark.parametrize(
    ("method", "query", "status"),
    [
        ("GET", signed(), 200),
        ("HEAD", signed(), 200),
        ("HEAD", signed("HEAD"), 200),
        ("GET", signed("HEAD"), 401),
        ("GET", signed("PUT"), 401),
        ("GET", signed(key="other"), 401),
        ("GET", signed(path="/other"), 401),
        ("GET", signed(expires=str(NOW)), 200),
        ("GET", signed(expires=str(NOW - 1)), 401),
        ("GET", signed(expires="9" * 20), 200),
        ("GET", signed(expires="9" * 5000), 401),
        ("GET", signed(expires="-1"), 401),
        ("GET", signed(expires="1e99"), 401),
        ("GET", signed(expires="soon"), 401),
        ("GET", "swiftinfo_sig=x", 401),
        ("GET", f"swiftinfo_expires={NOW + 1}", 401),
        ("GET", f"swiftinfo_sig=%C3%A9%E2%82%AC%00&swiftinfo_expires={NOW + 1}", 401),
        ("GET", f"swiftinfo_sig=%FF&swiftinfo_expires=%D9%A3{NOW}", 401),
    ],
)
def test_which_signatures_count(method, query, status):
    assert ask(method, query).status == status


def test_without_a_key_no_signature_counts_not_even_that_of_the_empty_one():
    assert ask(query=signed(key=""), admin_key="").status == 403


def test_facts_may_be_kept_from_everybody():
    assert ask(expose_info=False).status == 403
    assert ask(query=signed(), expose_info=False).status == 403


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "COPY"])
def test_facts_are_only_read(method):
    response = ask(method)
    assert (response.status, response.headers["allow"]) == (405, "HEAD, GET, OPTIONS")
    assert ask("OPTIONS").headers["allow"] == "HEAD, GET, OPTIONS"


def test_a_page_of_another_origin_may_read_them():
    headers = ask(headers={"origin": "http://a"}).headers
    assert headers["access-control-allow-origin"] == "http://a"
    assert "access-control-allow-origin" not in ask().headers


def test_a_browser_gets_a_page_on_which_nothing_runs():
    response = ask(headers={"accept": "text/html"})
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert ask().headers["vary"] == response.headers["vary"] == "Accept"
