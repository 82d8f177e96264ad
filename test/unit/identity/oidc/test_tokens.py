"""Parsing and signatures of tokens: what is not plainly a signed token of a published key is refused."""

import base64
import hmac
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from swift.base.errors import ConfigError
from swift.identity.oidc import tokens
from swift.identity.oidc.errors import OidcError
from swift.identity.oidc.tokens import ALGORITHMS, TOKEN_BYTES_MAX, import_keys, issuer_of, parse_token
from test.support.checks import every
from test.support.oidc import CLAIMS, ISSUER, encode, key_for, private_key, public, sign

HEADER = {"alg": "RS256", "kid": "one"}


def keys_of(*members):
    return import_keys(json.dumps({"keys": members}).encode())


def is_verified(text, *members):
    token = parse_token(text)
    return any(key.verifies(token) for key in keys_of(*members) if key.fits(token))


def refusal_of(text):
    with pytest.raises(OidcError) as caught:
        parse_token(text)
    reason = str(caught.value)
    assert reason.isprintable() and len(reason) <= 200
    assert not [part for part in text.split(".") if len(part) > 8 and part in reason]
    return reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_accepted_algorithm_is_verified(algorithm):
    key = key_for(algorithm)
    text = sign({"alg": algorithm, "kid": "one"}, CLAIMS, key)
    assert is_verified(text, public(key, kid="one", alg=algorithm, use="sig"))
    assert is_verified(text, public(key, kid="one"))
    assert is_verified(sign({"alg": algorithm}, CLAIMS, key), public(key, kid="one"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_changed_token_is_not_verified(algorithm):
    key = key_for(algorithm)
    head, body, signature = sign({"alg": algorithm, "kid": "one"}, CLAIMS, key).split(".")
    published = public(key, kid="one")
    other = encode({**CLAIMS, "sub": "root"})
    assert not is_verified(f"{head}.{other}.{signature}", published)
    assert not is_verified(
        f"{encode({'alg': algorithm, 'kid': 'one', 'a': 1})}.{body}.{signature}", published
    )
    raw = base64.urlsafe_b64decode(signature + "==")
    for wrong in (b"", b"\0", raw[:-1], raw + b"\0", bytes(len(raw)), b"\xff" * len(raw), raw[::-1], raw * 2):
        assert not is_verified(f"{head}.{body}.{encode(wrong)}", published)


def test_another_key_does_not_verify():
    text = sign(HEADER, CLAIMS, private_key("RSA", 1))
    assert not is_verified(text, public(private_key(), kid="one"))


def test_a_key_is_used_for_its_algorithm_only():
    key = private_key()
    text = sign({"alg": "PS256", "kid": "one"}, CLAIMS, key)
    assert is_verified(text, public(key, kid="one", alg="PS256"))
    assert not is_verified(text, public(key, kid="one", alg="RS256"))
    assert not is_verified(text, public(key, kid="one", alg="PS384"))


def test_algorithm_and_curve_must_fit():
    p384 = private_key("P-384")
    signed = f"{encode({'alg': 'ES256', 'kid': 'one'})}.{encode(CLAIMS)}"
    text = f"{signed}.{encode(JWSRegistry.algorithms['ES384'].sign(signed.encode(), p384))}"
    assert not is_verified(text, public(p384, kid="one"))


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "nOnE", "", None, 1, ["RS256"], "rs256", "ES256K", "A128KW"]
)
def test_unsigned_and_unknown_algorithms_are_refused(algorithm):
    for signature in ("", encode(b"x" * 256)):
        text = f"{encode({'alg': algorithm, 'kid': 'one'})}.{encode(CLAIMS)}.{signature}"
        assert refusal_of(text) == "the token's algorithm is not accepted"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_secret_of_an_hmac(algorithm):
    key = private_key()
    for secret in (
        key.as_pem(private=False),
        key.as_der(private=False),
        json.dumps(public(key)).encode(),
        b"\0",
    ):
        signed = f"{encode({'alg': algorithm, 'kid': 'one'})}.{encode(CLAIMS)}"
        text = f"{signed}.{encode(hmac.new(secret, signed.encode(), f'sha{algorithm[2:]}').digest())}"
        assert refusal_of(text) == "the token's algorithm is not accepted"


@every(
    ("name", "value"),
    [
        ("jku", "https://evil.example/keys"),
        ("x5u", "https://evil.example/certificate"),
        ("x5c", ["MII"]),
        ("crit", ["exp"]),
        ("crit", []),
        ("b64", False),
        ("zip", "DEF"),
        ("enc", "A128GCM"),
        ("cty", "JWT"),
    ],
)
def test_headers_that_change_the_verification_are_refused(name, value):
    assert (
        refusal_of(sign({**HEADER, name: value}, CLAIMS, private_key())) == f"the token has the header {name}"
    )


def test_a_key_in_the_header_is_refused():
    own = private_key("RSA", 1)
    assert refusal_of(sign({**HEADER, "jwk": public(own)}, CLAIMS, own)) == "the token has the header jwk"


def parts(header=HEADER, claims=CLAIMS, signature="AA"):
    return f"{encode(header)}.{encode(claims)}.{signature}"


@every(
    ("case", "text"),
    [
        ("empty", ""),
        ("dots", ".."),
        ("two parts", "a.b"),
        ("four parts", "a.b.c.d"),
        ("JSON", json.dumps({"payload": encode(CLAIMS), "signatures": []})),
        ("header twice", parts('{"alg":"RS256","alg":"ES256"}')),
        ("claim twice", parts(claims='{"sub":"a","sub":"b"}')),
        ("inner member twice", parts(claims='{"a":{"b":1,"b":1}}')),
        ("escaped member twice", parts(claims='{"sub":"a","s\\u0075b":"b"}')),
        ("NaN", parts(claims='{"exp":NaN}')),
        ("a list", parts(claims="[]")),
        ("a text", parts(claims='"a"')),
        ("header a list", parts("[]")),
        ("deep", parts(claims="[" * 5000)),
        ("no UTF-8", parts(claims=b'{"a":"\xff"}')),
        ("a mark of byte order", parts(claims=b"\xef\xbb\xbf{}")),
        ("padding", parts(signature="AA==")),
        ("not canonical", parts(signature="AB")),
        ("other alphabet", parts(signature="++++")),
        ("space", parts(signature=" AAA")),
        ("line end", parts(signature="AAAA\n")),
        ("not ASCII", parts(signature="ÄÄÄÄ")),
        ("surrogate", parts(signature="\udcff")),
        ("kid a number", parts({**HEADER, "kid": 1})),
        ("kid too long", parts({**HEADER, "kid": "../" * 100})),
        ("typ a number", parts({**HEADER, "typ": 1})),
    ],
)
def test_what_is_no_token_is_refused(case, text):
    assert refusal_of(text), case


def test_encrypted_tokens_are_refused():
    assert refusal_of(f"{encode({'alg': 'RSA-OAEP', 'enc': 'A128GCM'})}.a.b.c.d") == "the token is encrypted"


def test_long_tokens_are_refused():
    fits = sign(HEADER, {**CLAIMS, "x": ""}, private_key())
    longest = sign(HEADER, {**CLAIMS, "x": "x" * ((TOKEN_BYTES_MAX - len(fits)) * 3 // 4)}, private_key())
    assert TOKEN_BYTES_MAX - 4 <= len(longest) <= TOKEN_BYTES_MAX
    assert is_verified(longest, public(private_key(), kid="one"))
    assert "more than 16384 bytes" in refusal_of(longest + "AAAAA")


@given(
    st.one_of(
        st.text(max_size=80), st.tuples(*[st.binary(max_size=40)] * 3).map(lambda p: ".".join(map(encode, p)))
    )
)
def test_garbage_is_refused_without_another_error(text):
    refusal_of(text)


@given(
    header=st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "x"]),
        st.sampled_from(["RS256", "none", "", 1, None, [], {}]),
    )
)
def test_odd_headers_have_no_other_error(header):
    try:
        token = parse_token(f"{encode(header)}.{encode(CLAIMS)}.AA")
    except OidcError:
        return
    assert token.algorithm == "RS256"


def test_keys_that_must_not_verify_are_left_out():
    rsa, curve = public(private_key()), public(private_key("P-256"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weak = public(RSAKey.generate_key(1024))
    outside = {**curve, "x": curve["y"]}
    assert (
        keys_of(
            *(
                weak,
                outside,
                {**rsa, "use": "enc"},
                {**rsa, "key_ops": ["sign"]},
                {**rsa, "key_ops": "verify"},
            ),
            *(private_key().as_dict(private=True), OctKey.generate_key(256).as_dict(), {**rsa, "k": "AA"}),
            *(
                {"kty": "oct", "k": "AAAA", "alg": "HS256"},
                {**rsa, "alg": "HS256"},
                {**rsa, "alg": "RSA-OAEP"},
            ),
            *({**rsa, "alg": ["RS256"]}, {**rsa, "kid": 1}, {**rsa, "kty": "EC"}, {**rsa, "kty": ["RSA"]}),
            *(
                {**rsa, "n": "AA"},
                {**rsa, "n": 1},
                {**rsa, "e": ""},
                {"kty": "RSA"},
                {},
                {"kty": "OKP", "crv": "X25519", "x": "AA"},
            ),
            *(
                public(OKPKey.generate_key("X25519")),
                public(ECKey.generate_key("secp256k1")),
                1,
                None,
                [],
                "key",
            ),
            *(
                {**curve, "kty": "OKP"},
                {**curve, "kty": "oct"},
                {**curve, "crv": "Ed25519"},
                {**rsa, "kty": "oct"},
            ),
            *({**curve, "crv": "P-384"}, {**curve, "crv": "RSA"}, {**curve, "crv": ["P-256"]}),
        )
        == []
    )


def test_one_broken_key_does_not_hide_the_others():
    rsa = public(private_key(), kid="one")
    assert [key.kid for key in keys_of({"kty": "RSA"}, rsa)] == ["one"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys":{}}',
        b'{"keys":[],"keys":[]}',
        b"\xff",
        b'{"keys":[' + b"1," * 200 + b"1]}",
    ],
)
def test_what_is_no_key_set_is_the_providers_fault(body):
    with pytest.raises(OidcError) as caught:
        import_keys(body)
    assert caught.value.is_unavailable


def test_the_issuer_of_a_token_finds_its_provider():
    assert issuer_of(sign(HEADER, CLAIMS, private_key())) == ISSUER
    for claims in ({}, {"iss": 1}):
        with pytest.raises(OidcError, match="claim iss"):
            issuer_of(sign(HEADER, claims, private_key()))


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "joserfc.jws", None)
    with pytest.raises(ConfigError, match="pip install"):
        tokens.require_joserfc()
