"""Keys of a provider: fetched once for all, kept within bounds, and served while the provider is away."""

import pytest

from swift import green
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.fetch import ProviderResponse
from swift.identity.oidc.keys import (
    FRESH_S_DEFAULT,
    FRESH_S_MAX,
    FRESH_S_MIN,
    REFRESH_INTERVAL_S,
    RETRY_S,
    STALE_S_MAX,
    PublishedKeys,
)
from test.support.checks import every
from test.support.oidc import FakeProvider, private_key

DISCOVERY = "/.well-known/openid-configuration"


def forever(provider, **claims):
    return provider.token(exp=provider.clock.time() + 10 * STALE_S_MAX, **claims)


def test_keys_are_fetched_at_the_first_token_and_kept():
    provider = FakeProvider()
    verifier = provider.verifier()
    assert provider.requests == []
    for _ in range(3):
        verifier.verify(provider.token())
    assert [url for url, _form, _authorization in provider.requests] == [
        "https://id.example/realms/main/.well-known/openid-configuration",
        "https://id.example/keys",
    ]


@every(
    ("header", "age", "fresh_s"),
    [
        ("", "", FRESH_S_DEFAULT),
        ("max-age=1800", "", 1800),
        ("public, Max-Age=1800, must-revalidate", "", 1800),
        ('max-age="1800"', "", 1800),
        ("max-age=1800", "300", 1500),
        ("max-age=1800", "-5", 1800),
        ("max-age=0", "", FRESH_S_MIN),
        ("no-store", "", FRESH_S_MIN),
        ("max-age=1800, no-cache", "", FRESH_S_MIN),
        ("max-age=99999999999999999999", "", FRESH_S_MAX),
        ("max-age=1e9", "", FRESH_S_DEFAULT),
        ("max-age=-1", "", FRESH_S_DEFAULT),
        ("max-age", "", FRESH_S_DEFAULT),
    ],
)
def test_cache_control_is_honoured_within_bounds(header, age, fresh_s):
    provider = FakeProvider()
    provider.headers = {"cache-control": header, "age": age}
    verifier = provider.verifier()
    token = forever(provider)
    verifier.verify(token)
    provider.clock.advance(fresh_s - 1)
    verifier.verify(token)
    assert provider.fetches_of("/keys") == 1
    provider.clock.advance(1)
    verifier.verify(token)
    assert provider.fetches_of("/keys") == 2


def test_a_key_that_vanished_is_refused_after_the_bound():
    provider = FakeProvider()
    provider.headers = {"cache-control": "max-age=99999999"}
    verifier = provider.verifier()
    token = forever(provider)
    verifier.verify(token)
    provider.keys = {"two": (private_key("RSA", 1), {})}
    provider.clock.advance(FRESH_S_MAX)
    with pytest.raises(OidcError, match="not one of the provider's"):
        verifier.verify(token)


def test_a_new_key_is_found_at_once():
    provider = FakeProvider()
    verifier = provider.verifier()
    verifier.verify(provider.token())
    provider.clock.advance(REFRESH_INTERVAL_S)
    provider.keys["two"] = private_key("RSA", 1), {}
    verifier.verify(provider.token("two"))
    assert provider.fetches_of("/keys") == 2


def test_unknown_keys_cause_one_fetch_a_minute():
    provider = FakeProvider()
    verifier = provider.verifier()
    verifier.verify(provider.token())
    for number in range(12):
        with pytest.raises(OidcError, match="not one of the provider's"):
            verifier.verify(provider.token(f"unknown-{number}"))
        provider.clock.advance(REFRESH_INTERVAL_S / 4)
    assert provider.fetches_of("/keys") == 3


def test_tokens_that_are_refused_anyway_cause_no_fetch():
    provider = FakeProvider()
    verifier = provider.verifier()
    for claims in ({"exp": 1}, {"iss": "https://evil.example"}, {"aud": "other"}):
        with pytest.raises(OidcError):
            verifier.verify(provider.token("unknown", **claims))
    assert provider.requests == []


def test_stale_keys_serve_while_the_provider_is_away_and_no_longer():
    provider = FakeProvider()
    verifier = provider.verifier()
    token = forever(provider)
    verifier.verify(token)
    provider.go_away()
    attempts = provider.fetches_of(DISCOVERY)
    provider.clock.advance(FRESH_S_DEFAULT)
    for _ in range(10):
        verifier.verify(token)
    assert provider.fetches_of(DISCOVERY) == attempts + 1, "an absent provider is requested once"
    provider.clock.advance(RETRY_S)
    verifier.verify(token)
    assert provider.fetches_of(DISCOVERY) == attempts + 1, "the second attempt delays none"
    green.sleep()
    assert provider.fetches_of(DISCOVERY) == attempts + 2
    provider.clock.advance(STALE_S_MAX - FRESH_S_DEFAULT - RETRY_S - 1)
    verifier.verify(token)
    green.sleep()
    provider.clock.advance(1)
    with pytest.raises(OidcError, match="connection refused") as caught:
        verifier.verify(token)
    assert caught.value.is_unavailable
    provider.failure = None
    provider.clock.advance(RETRY_S)
    verifier.verify(token)


def test_stale_keys_are_replaced_when_the_provider_is_back():
    provider = FakeProvider()
    verifier = provider.verifier()
    token = forever(provider)
    verifier.verify(token)
    provider.go_away()
    provider.clock.advance(FRESH_S_DEFAULT)
    verifier.verify(token)
    provider.failure = None
    provider.keys = {"two": (private_key("RSA", 1), {})}
    provider.clock.advance(RETRY_S)
    verifier.verify(token)
    green.sleep()
    with pytest.raises(OidcError, match="not one of the provider's"):
        verifier.verify(token)


def test_an_unknown_key_while_the_provider_is_away_is_no_verdict_on_the_token():
    provider = FakeProvider()
    verifier = provider.verifier()
    verifier.verify(provider.token())
    provider.go_away()
    provider.clock.advance(REFRESH_INTERVAL_S)
    with pytest.raises(OidcError) as caught:
        verifier.verify(provider.token("two"))
    assert caught.value.cause is OidcCause.UNAVAILABLE


def test_one_fetch_serves_all_that_wait_and_others_go_on():
    provider = FakeProvider()
    verifier = provider.verifier()
    gate, meanwhile = green.Event(), []

    def wait():
        assert gate.wait(5)

    provider.failure = wait
    token = provider.token()
    tasks = [green.spawn(verifier.verify, token) for _ in range(50)]
    green.sleep()
    green.sleep()
    meanwhile.append("another request")
    assert len(provider.requests) == 1 and not any(task.done for task in tasks)
    gate.set()
    assert {task.wait().subject for task in tasks} == {"u-1"}
    assert provider.fetches_of("/keys") == 1 and meanwhile


def test_the_fetch_goes_on_when_the_request_that_began_it_ends():
    provider = FakeProvider()
    verifier = provider.verifier()
    gate = green.Event()
    provider.failure = lambda: gate.wait(5)
    first, second = (
        green.spawn(verifier.verify, provider.token()),
        green.spawn(verifier.verify, provider.token()),
    )
    green.sleep()
    green.sleep()
    first.kill()
    gate.set()
    assert second.wait().subject == "u-1"
    assert provider.fetches_of("/keys") == 1


def test_a_wait_for_the_provider_has_an_end():
    provider = FakeProvider()
    gate = green.Event()
    provider.failure = lambda: gate.wait(5)
    with pytest.raises(OidcError, match="does not respond in time") as caught:
        PublishedKeys(provider.provider, provider, provider.clock, wait_s=0.01).current()
    assert caught.value.is_unavailable
    gate.set()


def test_several_keys_of_one_name_are_told_apart_by_their_kind():
    provider = FakeProvider()
    verifier = provider.verifier()
    curve = private_key("P-256")
    provider.keys = {"one": (private_key(), {}), "one ": (curve, {"kid": "one"})}
    verifier.verify(provider.token())
    provider.keys["one"] = curve, {}
    verifier.verify(provider.token(algorithm="ES256"))


def test_a_token_without_a_key_name_needs_a_provider_with_one_key():
    provider = FakeProvider()
    token = provider.token(header={"kid": None})
    provider.verifier().verify(token)
    provider.keys["curve"] = private_key("P-256"), {}
    provider.verifier().verify(token)
    provider.keys["two"] = private_key("RSA", 1), {}
    with pytest.raises(OidcError, match="does not name its key"):
        provider.verifier().verify(token)


@every(
    "change",
    [
        {"issuer": "https://id.example"},
        {"issuer": "https://id.example/realms/main/"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "http://id.example/keys"},
        {"jwks_uri": "http://127.0.0.1:6379/keys"},
        {"jwks_uri": "http://localhost/keys"},
        {"jwks_uri": "https://id.example@127.0.0.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://id.example/keys\r\nX: y"},
        {"jwks_uri": ["https://id.example/keys"]},
        {"jwks_uri": "https://id.example/nothing"},
    ],
)
def test_a_wrong_discovery_document_is_the_providers_fault(change):
    provider = FakeProvider()
    provider.discovery.update(change)
    with pytest.raises(OidcError) as caught:
        provider.verifier().verify(provider.token())
    assert caught.value.is_unavailable and str(caught.value).startswith("provider main: ")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"issuer":1,"issuer":2}', b"\xff\xfe", b"[" * 100000]
)
def test_a_discovery_document_is_a_json_object(body):
    provider = FakeProvider()
    verifier = provider.verifier()
    verifier.published._fetch = lambda url: ProviderResponse(200, {}, body)
    with pytest.raises(OidcError, match="no JSON object") as caught:
        verifier.verify(provider.token())
    assert caught.value.is_unavailable


def test_other_statuses_are_no_documents():
    provider = FakeProvider()
    verifier = provider.verifier()
    verifier.published._fetch = lambda url: ProviderResponse(302, {"location": "https://evil.example"}, b"{}")
    with pytest.raises(OidcError, match="status 302"):
        verifier.verify(provider.token())
