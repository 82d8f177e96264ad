"""Web identities: the providers of the records, and verification of the tokens of workloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swift.identity.admin.providers import parse_provider
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.names import QualifiedName
from swift.identity.oidc.errors import OidcError
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.tokens import issuer_of
from swift.identity.oidc.verifier import Claims, TokenVerifier, TokenVerifiers
from swift.identity.policy.conditions import InvalidPolicy, PolicyContext, normalize_key
from swift.identity.policy.document import TrustPolicy, parse_trust_policy
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.records import DamagedRecord, OidcProvider, Role
from swift.identity.rights import decide_web_identity
from swift.identity.store import RecordCache

#: Seconds for which the names of the providers are known.
_NAMES_S = 30.0


class WebIdentity(NamedTuple):
    """A verified token and its provider."""

    provider: Provider
    claims: Claims

    def condition_values(self) -> dict[str, str | tuple[str, ...]]:
        """Return the claims for conditions of trust policies, by ``<issuer without scheme>:<claim>``.

        As in AWS ``aud`` is the claim ``azp`` of a token that has one; ``oaud`` is then its claim ``aud``.
        """
        issuer = self.provider.issuer.split("://", 1)[-1].rstrip("/")
        found: dict[str, str | tuple[str, ...]] = {}
        claims = dict(self.claims.values)
        if isinstance(claims.get("azp"), str):
            claims["oaud"], claims["aud"] = claims.get("aud"), claims["azp"]
        for name, value in claims.items():
            key = normalize_key(f"{issuer}:{name}")
            if isinstance(value, bool):
                found[key] = "true" if value else "false"
            elif isinstance(value, str):
                found[key] = value
            elif isinstance(value, list) and all(isinstance(item, str) for item in value):
                found[key] = tuple(value)
        return found


def is_trusted(role: Role, identity: WebIdentity, context: PolicyContext) -> bool:
    """Return True if a role trusts a web identity; raise ``DamagedRecord``.

    Roles trust the providers of their own tenant only: a name says nothing about the tenant of a provider.
    """
    if QualifiedName(role.name).tenant != identity.provider.tenant:
        return False
    verdict = decide_web_identity(trust_of(role), identity.provider.name, context)
    return verdict is PolicyVerdict.ALLOW


def trust_of(role: Role) -> TrustPolicy:
    """Return the trust policy of a role; raise ``DamagedRecord``."""
    try:
        return parse_trust_policy(role.trust)
    except InvalidPolicy as error:
        raise DamagedRecord(f"roles/{role.name}: {error}")


class WebIdentities:
    """The providers of a cluster. Methods raise ``StoreUnavailable``."""

    def __init__(
        self,
        cache: RecordCache,
        keys: ClusterKeys,
        make_verifiers: Callable[[], TokenVerifiers],
        monotonic: Callable[[], float] = time.monotonic,
    ):
        """``make_verifiers`` is called when the first token comes; it may need packages."""
        self._cache = cache
        self._keys = keys
        self._make_verifiers = make_verifiers
        self._verifiers: TokenVerifiers | None = None
        self._monotonic = monotonic
        self._names: tuple[Sequence[str], float] = ((), float("-inf"))

    def verifier(self, name: str) -> TokenVerifier | None:
        """Return the verifier of a provider; None if there is none. Raise ``DamagedRecord``."""
        if not 0 < len(name) <= 64 or "/" in name:
            return None
        record = self._cache.get(OidcProvider, name)
        if record is None:
            return None
        if self._verifiers is None:
            self._verifiers = self._make_verifiers()
        return self._verifiers.of(parse_provider(record, self._keys))

    def verify(self, token: str, tenant: str = "") -> WebIdentity:
        """Return the identity of a token of a provider, of one tenant if it is given; raise ``OidcError``."""
        issuer = issuer_of(token)
        reason: OidcError | None = None
        for name in self._provider_names():
            try:
                verifier = self.verifier(name)
            except DamagedRecord:
                # The others go on; the cache has reported it.
                continue
            if verifier is None or verifier.provider.issuer != issuer:
                continue
            if tenant and verifier.provider.tenant != tenant:
                continue
            try:
                return WebIdentity(verifier.provider, verifier.verify(token))
            except OidcError as error:
                # Another client of the same issuer may have it.
                reason = error
        raise reason or OidcError("no provider has the token's issuer")

    def _provider_names(self) -> Sequence[str]:
        names, until = self._names
        if self._monotonic() >= until:
            names = tuple(self._cache.store.names(OidcProvider))
            self._names = names, self._monotonic() + _NAMES_S
        return names
