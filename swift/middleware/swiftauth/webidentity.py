"""Web identities: the providers of the records, and verification of the tokens of workloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swift.identity.admin.providers import parse_provider
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.oidc.errors import OidcError
from swift.identity.oidc.provider import Provider
from swift.identity.oidc.tokens import issuer_of
from swift.identity.oidc.verifier import Claims, TokenVerifier, TokenVerifiers
from swift.identity.policy.conditions import normalize_key
from swift.identity.records import DamagedRecord, OidcProvider
from swift.identity.store import RecordCache

#: Seconds for which the names of the providers are known.
_NAMES_S = 30.0


class WebIdentity(NamedTuple):
    """A verified token and its provider."""

    provider: Provider
    claims: Claims

    def condition_values(self) -> dict[str, str | tuple[str, ...]]:
        """Return the claims for conditions of trust policies, by ``<issuer without scheme>:<claim>``."""
        issuer = self.provider.issuer.split("://", 1)[-1].rstrip("/")
        found: dict[str, str | tuple[str, ...]] = {}
        for name, value in self.claims.values.items():
            key = normalize_key(f"{issuer}:{name}")
            if isinstance(value, bool):
                found[key] = "true" if value else "false"
            elif isinstance(value, str):
                found[key] = value
            elif isinstance(value, list) and all(isinstance(item, str) for item in value):
                found[key] = tuple(value)
        return found


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

    def verify(self, token: str) -> WebIdentity:
        """Return the identity of a token of any provider; raise ``OidcError``."""
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
