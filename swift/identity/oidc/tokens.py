"""JSON Web Tokens in compact form: strict parsing, and signatures of published keys (RFC 7515, 7517, 7519).

Nothing in a token chooses how it is verified: the algorithm must be one of ``ALGORITHMS``, which are all
asymmetric, and fit the key that the provider publishes. Headers that name or carry keys are refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError
from swift.base.extras import install_command
from swift.identity.oidc.errors import OidcCause, OidcError

if TYPE_CHECKING:
    from joserfc.jwk import Key

TOKEN_BYTES_MAX = 16384
#: Algorithm → the key that it needs: a type, or a curve.
ALGORITHMS = {
    **{f"{scheme}{bits}": "RSA" for scheme in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
}
#: Headers that would choose a key, change what is signed, or wrap another token.
_REFUSED_HEADERS = ("jku", "jwk", "x5u", "x5c", "crit", "b64", "enc", "zip", "cty")
_RSA_BITS = range(2048, 8193)
KEYS_MAX = 200
_KID_CHARACTERS_MAX = 256
_PUBLIC: tuple[str, ...] = ("kty", "crv", "n", "e", "x", "y")
#: Members of keys that are private, or would be symmetric.
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")


@dataclass(frozen=True)
class Token:
    """A token that was parsed and is not verified yet."""

    algorithm: str
    kid: str | None
    #: The header ``typ`` in lower case, without ``application/``.
    type: str
    claims: JsonObject = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)


def parse_token(text: str) -> Token:
    """Return the parts of a signed token; raises ``OidcError``."""
    if len(text) > TOKEN_BYTES_MAX:
        raise OidcError(f"the token has more than {TOKEN_BYTES_MAX} bytes")
    parts = text.split(".")
    if len(parts) == 5:
        raise OidcError("the token is encrypted")
    if len(parts) != 3 or not text.isascii():
        raise OidcError("the token is no signed JSON Web Token")
    header = _parse_part(parts[0], "header")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise OidcError("the token's algorithm is not accepted")
    for name in _REFUSED_HEADERS:
        if name in header:
            raise OidcError(f"the token has the header {name}")
    if kid is not None and not (isinstance(kid, str) and len(kid) <= _KID_CHARACTERS_MAX):
        raise OidcError("the token's header kid is invalid")
    if not isinstance(kind, str):
        raise OidcError("the token's header typ is invalid")
    return Token(
        algorithm,
        kid,
        kind.lower().removeprefix("application/"),
        _parse_part(parts[1], "payload"),
        text.rpartition(".")[0].encode("ascii"),
        _decode(parts[2], "signature"),
    )


def issuer_of(text: str) -> str:
    """Return the issuer that a token names, not verified, to find its provider; raises ``OidcError``."""
    issuer = parse_token(text).claims.get("iss")
    if not isinstance(issuer, str):
        raise OidcError("the token has no claim iss")
    return issuer


def parse_json(body: bytes) -> object:
    """Return a JSON value; raises ValueError, also for a member that is there twice and for NaN."""
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique_members, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise ValueError("nested too deeply")


def encode_base64url(data: bytes) -> str:
    """Return Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes:
    """Return the bytes of Base64 for URLs; raises ValueError for padding and for anything not canonical."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise ValueError("no Base64")
    if encode_base64url(data) != text:
        raise ValueError("no canonical Base64")
    return data


def _decode(part: str, name: str) -> bytes:
    try:
        return decode_base64url(part)
    except ValueError:
        raise OidcError(f"the token's {name} is not Base64 for URLs")


def _parse_part(part: str, name: str) -> JsonObject:
    try:
        value = parse_json(_decode(part, name))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OidcError(f"the token's {name} is no JSON object")
    return value


def _unique_members(pairs: list[tuple[str, object]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


# --- keys -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SigningKey:
    """A public key of a provider."""

    kid: str | None
    #: Its type or curve, a value of ``ALGORITHMS``.
    kind: str
    #: The only algorithm of the key; "" for all of its kind.
    algorithm: str
    key: Key = field(repr=False)

    def fits(self, token: Token) -> bool:
        """Return True if the key is that of a token's header and allows its algorithm."""
        if token.kid is not None and token.kid != self.kid:
            return False
        return ALGORITHMS[token.algorithm] == self.kind and self.algorithm in ("", token.algorithm)

    def verifies(self, token: Token) -> bool:
        """Return True if the key signed a token that it fits."""
        from joserfc.jws import JWSRegistry

        return JWSRegistry.algorithms[token.algorithm].verify(token.signed, token.signature, self.key)


def require_joserfc() -> None:
    """Raise ``ConfigError`` without the package joserfc."""
    try:
        import_module("joserfc.jws")
    except ImportError as error:
        raise ConfigError(f"OpenID Connect needs more packages ({install_command('oidc')}): {error}")


def import_keys(body: bytes) -> list[SigningKey]:
    """Return the keys of a JSON Web Key Set that verify signatures; others are left out.

    Raises ``OidcError`` with the cause ``UNAVAILABLE`` if it is no such set.
    """
    try:
        document = parse_json(body)
    except ValueError:
        document = None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        raise OidcError("the provider's keys are no JSON Web Key Set", OidcCause.UNAVAILABLE)
    return [key for each in keys if isinstance(each, dict) and (key := _import_key(each)) is not None]


def _import_key(member: JsonObject) -> SigningKey | None:
    """Return a published key; None for one that is broken, weak, private or for something else."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    kid, algorithm = member.get("kid"), member.get("alg", "")
    operations = member.get("key_ops", ["verify"])
    if not isinstance(kid, str | None) or not isinstance(algorithm, str):
        return None
    if algorithm and algorithm not in ALGORITHMS:
        return None
    if member.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if any(name in member for name in _PRIVATE):
        return None
    kind = "RSA" if member.get("kty") == "RSA" else str(member.get("crv"))
    if kind not in ALGORITHMS.values():
        return None
    public = {name: member[name] for name in _PUBLIC if name in member}
    try:
        if kind == "RSA" and _bits_of(public["n"]) not in _RSA_BITS:
            return None
        key = JWKRegistry.import_key(public)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return SigningKey(kid, kind, algorithm, key)


def _bits_of(number: str) -> int:
    """Return the size of a number in Base64 for URLs."""
    return int.from_bytes(base64.urlsafe_b64decode(f"{number}=="), "big").bit_length()
