"""Log-in through a certified provider of npm's registry: discovery, code flow, groups, rotated keys."""

from urllib.parse import urlsplit

import pytest

from swift.base.clock import ManualClock, SystemClock
from swift.identity.oidc.errors import OidcError
from swift.identity.oidc.keys import FRESH_S_DEFAULT, REFRESH_INTERVAL_S
from swift.identity.oidc.login import LoginResult
from test.support.oidc_server import (
    PUBLIC,
    OidcServer,
    Person,
    Site,
    default_keys,
    install_provider,
    needs_node,
)

pytestmark = [pytest.mark.process, needs_node]
GROUPS = {"ann": ["admins", "devs"], "bob": []}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    install_provider(folder)
    return folder


@pytest.fixture
def server(packages):
    made = OidcServer(packages, [f"{PUBLIC}/auth/oidc/npm/callback"], GROUPS)
    made.start(*default_keys())
    yield made
    made.stop()


def test_a_person_logs_in_and_groups_become_roles(server):
    site = Site(server)
    location, cookie = site.begin()
    person = Person(server)
    back = person.log_in(location, "ann")
    assert len(person.pages) == 2, "log-in and consent"
    result = site.finish(back, cookie)
    assert isinstance(result, LoginResult), site.lines
    assert (result.claims.subject, result.groups, result.roles) == ("ann", ("admins", "devs"), ("operator",))
    assert result.claims.audiences == ("swift",) and result.return_to == "/console"
    other = site.log_in(server, "bob")
    assert (other.groups, other.roles) == ((), ())


def test_a_verified_address_may_be_the_name(server):
    assert Site(server, user_claim="email").log_in(server, "ann").claims.user == "ann@example.org"


@pytest.mark.parametrize("algorithm", ["ES256", "PS256"])
def test_other_algorithms_of_the_provider(server, algorithm):
    server.configuration["enabledJWA"] = {"idTokenSigningAlgValues": ["RS256", algorithm]}
    server.configuration["clients"][0]["id_token_signed_response_alg"] = algorithm
    server.start(*default_keys())
    assert Site(server).log_in(server, "ann").claims.subject == "ann"


def test_the_secret_may_be_a_part_of_the_form(server):
    server.configuration["clients"][0]["token_endpoint_auth_method"] = "client_secret_post"
    server.configuration["clientAuthMethods"] = ["client_secret_post"]
    server.start(*default_keys())
    assert Site(server).log_in(server, "ann").claims.subject == "ann"


def test_rotated_keys_are_found_and_old_ones_refused(server):
    clock = ManualClock(SystemClock().time())
    site = Site(server, clock)
    tokens = []
    verify = site.verifier.verify
    site.verifier.verify = lambda token, **expected: (
        tokens.append((token, expected)) or verify(token, **expected)
    )
    assert site.log_in(server, "ann").claims.subject == "ann"
    clock.advance(REFRESH_INTERVAL_S)
    server.start(*default_keys(1))
    assert site.log_in(server, "bob").claims.subject == "bob"
    token, expected = tokens[0]
    with pytest.raises(OidcError, match="not one of the provider's"):
        verify(token, **expected)
    clock.advance(FRESH_S_DEFAULT)
    server.stop()
    assert verify(*tokens[1][:1], **tokens[1][1]).subject == "bob", (
        "stale keys serve while the provider is away"
    )


def test_a_code_is_redeemed_once(server):
    site = Site(server)
    location, cookie = site.begin()
    back = Person(server).log_in(location, "ann")
    assert isinstance(site.finish(back, cookie), LoginResult)
    assert site.finish(back, cookie).status == 400
    other = Site(server)
    assert other.finish(back, cookie).status == 403
    assert "the provider refused the code: invalid_grant" in other.lines[-1]


def test_a_refusal_of_the_person_is_shown(server):
    site = Site(server)
    location, cookie = site.begin()
    found = site.finish(Person(server).log_in(f"{location}&prompt=none", "ann"), cookie)
    assert found.status == 403 and b"login_required" in found.body


def test_a_code_of_another_log_in_is_refused(server):
    site = Site(server)
    (first, cookie), (second, other) = site.begin(), site.begin()
    code = urlsplit(Person(server).log_in(first, "ann")).query
    state = urlsplit(Person(server).log_in(second, "bob")).query
    mixed = "&".join(
        part
        for query, name in ((code, "code"), (state, "state"), (state, "iss"))
        for part in query.split("&")
        if part.startswith(f"{name}=")
    )
    # Both may have the same name; a browser then keeps the newer one.
    kept = dict(pair.split("=", 1) for pair in (cookie, other))
    cookies = "; ".join(f"{name}={value}" for name, value in kept.items())
    found = site.finish(f"{PUBLIC}/auth/oidc/npm/callback?{mixed}", cookies)
    assert found.status == 403 and "invalid_grant" in site.lines[-1]
