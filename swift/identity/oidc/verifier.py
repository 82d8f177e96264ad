"""Verification of the tokens of a provider: signature, issuer, audience, time, and the names in them."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from swift.base.clock import Clock
from swift.base.documents import JsonObject
from swift.cluster.outbound import Outbound
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.oidc.fetch import Fetch, HttpFetch
from swift.identity.oidc.keys import PublishedKeys
from swift.identity.oidc.provider import NAMES_MAX, Provider, claim_at, is_name
from swift.identity.oidc.tokens import Token, parse_token, require_joserfc

#: Far beyond every time that a token may have, in Unix seconds.
_TIME_MAX = 1e11


@dataclass(frozen=True)
class Claims:
    """The content of a verified token."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    #: The value of the provider's ``user_claim``.
    user: str
    groups: tuple[str, ...]
    #: Names of roles, by the provider's ``roles`` and ``role_claim``.
    roles: tuple[str, ...]
    #: Unix seconds.
    expires_at: float
    #: All claims.
    values: Mapping[str, object] = field(repr=False)


class TokenVerifier:
    """Verifies tokens of one provider; raises ``ConfigError`` without the packages for it."""

    def __init__(self, provider: Provider, fetch: Fetch, clock: Clock):
        require_joserfc()
        self.provider = provider
        self.fetch = fetch
        self.published = PublishedKeys(provider, fetch, clock)
        self._clock = clock

    def verify(self, token: str, *, nonce: str | None = None, audience: str | None = None) -> Claims:
        """Return the claims of a token; raises ``OidcError``.

        ``audience`` replaces the audiences of the provider. With ``nonce`` the token must be an ID token of
        the log-in that had it.
        """
        parsed = parse_token(token)
        # Claims come before the signature: no request to the provider is made for a token that is refused.
        claims = self._check(parsed, nonce, audience)
        if not any(key.verifies(parsed) for key in self.published.keys_of(parsed)):
            raise OidcError("the token's signature is wrong")
        return claims

    def _check(self, token: Token, nonce: str | None, audience: str | None) -> Claims:
        provider, claims = self.provider, token.claims
        if token.type != "jwt" and (token.type != "at+jwt" or nonce is not None):
            raise OidcError("the token is of another type")
        if claims.get("iss") != provider.issuer:
            raise OidcError("the token has another issuer")
        accepted = provider.audiences if audience is None else (audience,)
        audiences = _check_audiences(claims, accepted, provider.client_id, is_login=nonce is not None)
        expires_at = self._check_times(claims)
        if nonce is not None:
            found = claims.get("nonce")
            if not isinstance(found, str) or not hmac.compare_digest(
                found.encode("utf-8", "replace"), nonce.encode()
            ):
                raise OidcError("the token belongs to another log-in")
        groups = _groups_of(claims, provider.groups_claim)
        return Claims(
            issuer=provider.issuer,
            subject=_name_of(claims, "sub"),
            audiences=audiences,
            user=self._user_of(claims),
            groups=groups,
            roles=provider.roles_of(groups, claims),
            expires_at=expires_at,
            values=claims,
        )

    def _check_times(self, claims: JsonObject) -> float:
        """Check ``exp``, ``nbf`` and ``iat``; return the token's end."""
        now, skew_s = self._clock.time(), self.provider.clock_skew_seconds
        expires_at = _time_of(claims, "exp")
        if expires_at is None:
            raise OidcError("the token has no claim exp")
        if expires_at + skew_s <= now:
            raise OidcError("the token has expired", OidcCause.EXPIRED)
        for name in ("nbf", "iat"):
            begins_at = _time_of(claims, name)
            if begins_at is not None and begins_at - skew_s > now:
                raise OidcError(f"the token is not valid yet (claim {name})")
        return expires_at

    def _user_of(self, claims: JsonObject) -> str:
        name = self.provider.user_claim
        # Some providers let their users enter any address.
        if name == "email" and claims.get("email_verified") is not True:
            raise OidcError("the token's e-mail address is not verified")
        return _name_of(claims, name)


class TokenVerifiers:
    """The verifiers of all providers, each with its keys, until the provider changes."""

    def __init__(self, outbound: Outbound, clock: Clock):
        self._outbound = outbound
        self._clock = clock
        self._verifiers: dict[str, TokenVerifier] = {}

    def of(self, provider: Provider) -> TokenVerifier:
        """Return the verifier of a provider."""
        verifier = self._verifiers.get(provider.name)
        if verifier is None or verifier.provider != provider:
            verifier = TokenVerifier(provider, HttpFetch(provider, self._outbound), self._clock)
            self._verifiers[provider.name] = verifier
        return verifier


def _check_audiences(
    claims: JsonObject, accepted: tuple[str, ...], client_id: str, *, is_login: bool
) -> tuple[str, ...]:
    """Return the audiences of a token for us (OpenID Connect Core, 3.1.3.7)."""
    value = claims.get("aud")
    audiences = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in audiences) or not set(audiences).intersection(accepted):
        raise OidcError("the token is for another audience")
    party = claims.get("azp")
    if len(audiences) > 1 and party is None:
        raise OidcError("the token has several audiences and no claim azp")
    if party is not None and (is_login or len(audiences) > 1) and party not in (client_id, *accepted):
        raise OidcError("the token was issued to another client (claim azp)")
    return tuple(audiences)


def _time_of(claims: JsonObject, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _TIME_MAX:
        raise OidcError(f"the token's claim {name} is no time")
    return float(value)


def _name_of(claims: JsonObject, path: str) -> str:
    value = claim_at(claims, path)
    if value is None:
        raise OidcError(f"the token has no claim {path}")
    if not is_name(value):
        raise OidcError(f"the token's claim {path} is no name")
    return str(value)


def _groups_of(claims: JsonObject, path: str) -> tuple[str, ...]:
    """Return the groups of a token; a single name is a list of one."""
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and path in elsewhere:
        raise OidcError(f"the token leaves out the claim {path}: the user has too many groups")
    value = claim_at(claims, path)
    if value is None or value == "":
        return ()
    groups = value if isinstance(value, list) else [value]
    if len(groups) > NAMES_MAX or not all(is_name(each) for each in groups):
        raise OidcError(f"the token's claim {path} is no list of names")
    return tuple(dict.fromkeys(groups))
