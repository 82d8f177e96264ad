"""Names in the host (middleware.md §15)."""

import pytest

from swift.middleware.domain_remap import DomainRemap, DomainRemapSettings
from test.support.filters import SmallBackend, ask


@pytest.mark.parametrize(
    ("host", "path", "wanted"),
    [
        ("auth-a.example.com", "/", "/v1/AUTH_a/"),
        ("AUTH_a.EXAMPLE.com:80", "/c/o", "/v1/AUTH_a/c/o"),
        ("Con.auth-Acc.example.com", "/o", "/v1/AUTH_Acc/Con/o"),
        ("caf\xc3\xa9.auth-a.example.com", "/o", "/v1/AUTH_a/caf%C3%A9/o"),
        ("\xff.auth-a.example.com", "/o", "/v1/AUTH_a/%FF/o"),
        (".auth-a.example.com", "/o", "/v1/AUTH_a/o"),
        ("c.authentic.example.com", "/o", "/o"),
        ("c.auth-a.example.com", "/o%2Fx", "/v1/AUTH_a/c/o%2Fx"),
        ("c.auth-a-b.example.com", "/o", "/v1/AUTH_a-b/c/o"),
        ("example.com", "/o", "/o"),
        ("other.com", "/o", "/o"),
        ("else.example.com", "/o", "/o"),
        (".example.com", "/o", "/o"),
        ("a..example.com", "/o", "/o"),
        ("evilexample.com", "/o", "/o"),
    ],
)
def test_names_in_the_host_go_into_the_path(host, path, wanted):
    app = SmallBackend()
    ask(DomainRemap(app, DomainRemapSettings()), path=path, headers={"host": host})
    assert app.seen.raw_path == wanted


def test_too_many_names_are_refused():
    answer = ask(
        DomainRemap(SmallBackend(), DomainRemapSettings()), headers={"host": "x.c.auth-a.example.com"}
    )
    assert (answer.status, answer.body) == (400, b"Bad domain in host header")


def test_an_unknown_account_may_get_a_prefix():
    app = SmallBackend()
    ask(
        DomainRemap(app, DomainRemapSettings(default_reseller_prefix="SRV")),
        path="/o",
        headers={"host": "x-y.example.com"},
    )
    assert app.seen.raw_path == "/v1/SRV_x-y/o"


def test_the_clients_own_root_can_be_left_out():
    app = SmallBackend()
    filter_ = DomainRemap(app, DomainRemapSettings(mangle_client_paths=True))
    for path, wanted in (("/v1/o", "/v1/AUTH_a/o"), ("/v1", "/v1/AUTH_a/"), ("/v10/o", "/v1/AUTH_a/v10/o")):
        ask(filter_, path=path, headers={"host": "auth-a.example.com"})
        assert app.seen.raw_path == wanted


def test_clients_are_sent_to_places_they_know():
    app = SmallBackend(location="http://c.auth-a.example.com/v1/AUTH_a/c/dir/")
    answer = ask(
        DomainRemap(app, DomainRemapSettings()), path="/dir", headers={"host": "c.auth-a.example.com"}
    )
    assert answer.headers["location"] == "http://c.auth-a.example.com/dir/"
