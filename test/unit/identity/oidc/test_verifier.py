"""Claims of tokens: issuer, audience, times and names are checked, and refusals are safe to show."""

import json

import pytest

from swift.base.clock import SystemClock
from swift.cluster.outbound import Outbound
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.verifier import TokenVerifiers
from test.support.checks import every
from test.support.oidc import CLAIMS, DOCUMENT, ISSUER, NOW, FakeProvider, private_key, sign


def refusal(provider, token, **expected):
    with pytest.raises(OidcError) as caught:
        provider.verifier().verify(token, **expected)
    reason = str(caught.value)
    assert reason.isprintable() and len(reason) <= 200 and not reason.startswith("provider")
    return reason


def test_claims_of_a_token():
    provider = FakeProvider(user_claim="preferred_username", roles={"devs": ["writer"]}, role_claim="swift")
    token = provider.token(preferred_username="ann", groups=["devs", "all", "devs"], swift="reader")
    claims = provider.verifier().verify(token)
    assert (claims.issuer, claims.subject, claims.user) == (ISSUER, "u-1", "ann")
    assert (claims.groups, claims.roles) == (("devs", "all"), ("writer", "reader"))
    assert (claims.audiences, claims.expires_at) == (("swift",), NOW + 300)
    assert claims.values["preferred_username"] == "ann"


def test_a_token_of_another_key_is_refused():
    provider = FakeProvider()
    token = sign(
        {"alg": "RS256", "kid": "one"},
        {"iss": ISSUER, "sub": "u", "aud": "swift", "exp": NOW + 9},
        private_key("RSA", 1),
    )
    assert refusal(provider, token) == "the token's signature is wrong"


@every(
    ("claims", "reason"),
    [
        ({"iss": None}, "another issuer"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"iss": ISSUER.upper()}, "another issuer"),
        ({"iss": [ISSUER]}, "another issuer"),
        ({"aud": None}, "another audience"),
        ({"aud": "Swift"}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": ["other"]}, "another audience"),
        ({"aud": {"swift": 1}}, "another audience"),
        ({"aud": ["swift", 1], "azp": "swift"}, "another audience"),
        ({"aud": [["swift"]]}, "another audience"),
        ({"aud": ["swift", "other"]}, "no claim azp"),
        ({"aud": ["swift", "other"], "azp": "other"}, "another client"),
        ({"aud": ["swift", "other"], "azp": ["swift"]}, "another client"),
        ({"sub": None}, "no claim sub"),
        ({"sub": ""}, "claim sub is no name"),
        ({"sub": 1}, "claim sub is no name"),
        ({"sub": "a\nb"}, "claim sub is no name"),
        ({"sub": "a\x1b[31m"}, "claim sub is no name"),
        ({"sub": "a\u202eb"}, "claim sub is no name"),
        ({"sub": "\ud800"}, "claim sub is no name"),
        ({"sub": "x" * 257}, "claim sub is no name"),
        ({"exp": None}, "no claim exp"),
        ({"exp": str(NOW + 300)}, "claim exp is no time"),
        ({"exp": True}, "claim exp is no time"),
        ({"exp": [NOW]}, "claim exp is no time"),
        ({"exp": 1e308}, "claim exp is no time"),
        ({"exp": 10**4000}, "claim exp is no time"),
        ({"exp": NOW - 60}, "has expired"),
        ({"exp": 0}, "has expired"),
        ({"exp": -1}, "has expired"),
        ({"nbf": NOW + 61}, "not valid yet (claim nbf)"),
        ({"nbf": "0"}, "claim nbf is no time"),
        ({"iat": NOW + 61}, "not valid yet (claim iat)"),
        ({"iat": {}}, "claim iat is no time"),
        ({"groups": [1]}, "claim groups is no list of names"),
        ({"groups": {"a": 1}}, "claim groups is no list of names"),
        ({"groups": ["a\n"]}, "claim groups is no list of names"),
        ({"groups": ["g"] * 1001}, "claim groups is no list of names"),
        ({"_claim_names": {"groups": "src1"}}, "too many groups"),
    ],
)
def test_wrong_claims_are_refused_with_a_reason(claims, reason):
    provider = FakeProvider()
    assert reason in refusal(provider, provider.token(**claims))


def test_an_infinite_time_is_refused():
    provider = FakeProvider()
    claims = json.dumps({**CLAIMS, "exp": 0}).replace('"exp": 0', '"exp": 1e999')
    assert "claim exp is no time" in refusal(
        provider, sign({"alg": "RS256", "kid": "one"}, claims, private_key())
    )


def test_clocks_may_differ_a_little():
    provider = FakeProvider()
    verify = provider.verifier().verify
    verify(provider.token(exp=NOW - 59))
    verify(provider.token(nbf=NOW + 60, iat=NOW + 60))
    exact = FakeProvider(clock_skew_seconds=0)
    assert "expired" in refusal(exact, exact.token(exp=NOW))
    assert exact.verifier().verify(exact.token(exp=NOW + 0.5, iat=None))


def test_an_expired_token_has_a_cause_of_its_own():
    provider = FakeProvider()
    with pytest.raises(OidcError) as caught:
        provider.verifier().verify(provider.token(exp=1))
    assert caught.value.cause is OidcCause.EXPIRED and not caught.value.is_unavailable


def test_audiences():
    provider = FakeProvider(audiences=["sts", "swift"])
    verify = provider.verifier().verify
    assert verify(provider.token(aud=["sts"])).audiences == ("sts",)
    assert verify(provider.token(aud=["sts", "other"], azp="sts"))
    assert verify(provider.token(aud="sts", azp="some-app"))
    assert verify(provider.token(aud="special"), audience="special")
    assert "another audience" in refusal(provider, provider.token(), audience="special")
    assert "another audience" in refusal(provider, provider.token(), audience="")


def test_an_id_token_belongs_to_its_log_in():
    provider = FakeProvider()
    verify = provider.verifier().verify
    assert verify(provider.token(nonce="n-1", azp="swift"), nonce="n-1", audience="swift")
    for nonce in (None, "", "n-2", 1, ["n-1"], "n-1é", "\ud800"):
        assert "another log-in" in refusal(provider, provider.token(nonce=nonce), nonce="n-1")
    assert "another client" in refusal(
        provider, provider.token(nonce="n", azp="app"), nonce="n", audience="swift"
    )


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_types_of_tokens(kind):
    provider = FakeProvider()
    assert provider.verifier().verify(provider.token(header={"typ": kind}))


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "", "secevent+jwt", "JOSE"])
def test_tokens_for_other_purposes_are_refused(kind):
    provider = FakeProvider()
    assert "another type" in refusal(provider, provider.token(header={"typ": kind}))


def test_an_access_token_is_no_id_token():
    provider = FakeProvider()
    assert "another type" in refusal(provider, provider.token(header={"typ": "at+jwt"}, nonce="n"), nonce="n")


def test_an_address_is_a_name_only_if_it_is_verified():
    provider = FakeProvider(user_claim="email")
    assert (
        provider.verifier().verify(provider.token(email="a@b.example", email_verified=True)).user
        == "a@b.example"
    )
    for verified in (None, False, "true", 1):
        token = provider.token(email="a@b.example", email_verified=verified)
        assert "not verified" in refusal(provider, token)


def test_groups_are_optional_and_may_be_one():
    provider = FakeProvider(groups_claim="realm_access.roles")
    verify = provider.verifier().verify
    assert verify(provider.token()).groups == ()
    assert verify(provider.token(realm_access={"roles": "one"})).groups == ("one",)
    assert verify(provider.token(realm_access={"roles": []})).groups == ()
    assert verify(provider.token(realm_access=[])).groups == ()


def test_a_refusal_is_one_short_line():
    error = OidcError("a\r\nb\x00\x1b[0m\u202e\ud800" + "x" * 500)
    assert str(error).startswith("a??b??[0m??xxx") and len(str(error)) == 200 and str(error).isprintable()


def test_claims_and_tokens_are_not_shown():
    provider = FakeProvider()
    claims = provider.verifier().verify(provider.token(email="ann@example.org"))
    assert "ann@example.org" not in repr(claims)


def test_a_verifier_is_kept_until_its_provider_changes():
    verifiers = TokenVerifiers(Outbound(), SystemClock())
    first = verifiers.of(Provider.from_document(DOCUMENT))
    assert verifiers.of(Provider.from_document(DOCUMENT)) is first
    changed = verifiers.of(Provider.from_document({**DOCUMENT, "client_secret": "new"}))
    assert changed is not first and verifiers.of(changed.provider) is changed
