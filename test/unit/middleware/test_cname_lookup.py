"""Aliases of hosts (middleware.md §15)."""

import pytest

from swift.middleware.cname_lookup import CnameLookup, CnameLookupSettings
from test.support.filters import SmallBackend, ask
from test.support.sim import MemoryCache

ALIASES = {
    "files.customer.org": "c.auth-a.example.com",
    "two.customer.org": "files.customer.org",
    "loop.org": "loop.org",
}


def cname(app, asked, **options):
    def lookup(name):
        asked.append(name)
        return 60.0, ALIASES.get(name)

    return CnameLookup(app, CnameLookupSettings.parse(options), lookup)


@pytest.mark.parametrize(
    ("host", "depth", "wanted"),
    [
        ("files.customer.org", "1", "c.auth-a.example.com"),
        ("FILES.customer.org:8080", "1", "c.auth-a.example.com:8080"),
        ("two.customer.org", "2", "c.auth-a.example.com"),
        ("c.example.com", "1", "c.example.com"),
        ("example.com", "1", "example.com"),
        ("10.0.0.1:80", "1", "10.0.0.1:80"),
        ("[::1]:80", "1", "[::1]:80"),
        ("", "1", ""),
    ],
)
def test_an_alias_of_ours_becomes_ours(host, depth, wanted):
    app = SmallBackend()
    assert ask(cname(app, [], lookup_depth=depth), headers={"host": host}).status == 200
    assert app.seen.headers["host"] == wanted


@pytest.mark.parametrize(
    ("host", "depth", "text"),
    [
        ("two.customer.org", "1", b"CNAME lookup failed after 1 tries"),
        ("loop.org", "5", b"CNAME lookup failed after 5 tries"),
        ("nobody.org", "3", b"CNAME lookup failed to resolve to a valid domain"),
    ],
)
def test_others_are_refused(host, depth, text):
    answer = ask(cname(SmallBackend(), [], lookup_depth=depth), headers={"host": host})
    assert (answer.status, answer.body) == (400, text)
    assert answer.headers["content-type"] == "text/plain"


def test_answers_of_name_servers_are_remembered():
    asked, env = [], {"swift.cache": MemoryCache()}
    filter_ = cname(SmallBackend(), asked)
    for host in ("files.customer.org", "nobody.org") * 3:
        ask(filter_, headers={"host": host}, env=dict(env))
    assert asked == ["files.customer.org", "nobody.org"]
    assert env["swift.cache"].values["cname-files.customer.org"] == "c.auth-a.example.com"


def test_redirects_keep_the_name_that_the_client_knows():
    app = SmallBackend(location="http://c.auth-a.example.com/dir/")
    answer = ask(cname(app, []), headers={"host": "files.customer.org"})
    assert answer.headers["location"] == "http://files.customer.org/dir/"
