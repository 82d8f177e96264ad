"""Providers of OpenID Connect."""

from __future__ import annotations

import json

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.gateway.documents import Conflict
from swift.identity.admin.base import Admin, NoSuchIdentity
from swift.identity.clusterkeys import ClusterKeys, Unreadable
from swift.identity.names import InvalidIdentity, shown
from swift.identity.oidc.provider import Provider
from swift.identity.records import DamagedRecord, OidcProvider


class ProviderAdmin(Admin):
    """Providers of the cluster."""

    def put_provider(self, *, provider: str, settings: str, client_secret: str = "") -> JsonObject:
        """Create or replace a provider; ``settings`` is a JSON object as in doc/howto/oidc.md."""
        try:
            tree = json.loads(settings)
        except (ValueError, RecursionError) as error:
            raise InvalidIdentity("settings", f"is no JSON: {error}")
        if not isinstance(tree, dict) or "client_secret" in tree:
            raise InvalidIdentity(
                "settings", "must be a JSON object without the secret, which is client_secret"
            )
        try:
            Provider.from_document({**tree, "name": provider, "client_secret": client_secret})
        except InvalidValue as error:
            raise InvalidIdentity("settings", str(error))
        sealed = self._keys.seal(client_secret, f"provider {provider}") if client_secret else ""
        record = OidcProvider(provider, json.dumps(tree), sealed, self._now())
        found = self._store.read(OidcProvider, provider)
        try:
            self._store.replace(record, found.etag)
        except Conflict:
            raise InvalidIdentity("provider", "was changed by another client meanwhile; try again")
        finally:
            self._cache.forget(OidcProvider, provider)
        return _describe_provider(record)

    def get_provider(self, *, provider: str) -> JsonObject:
        """Return the settings of a provider, without its secret."""
        record = self._store.read(OidcProvider, provider).record
        if record is None:
            raise NoSuchIdentity("provider", f"there is no provider {shown(provider)}")
        return _describe_provider(record)

    def list_providers(self) -> JsonObject:
        """Return the names of the providers."""
        return {"providers": list(self._store.names(OidcProvider))}

    def delete_provider(self, *, provider: str) -> JsonObject:
        """Delete a provider; its tokens are refused from then on."""
        self.get_provider(provider=provider)
        self._delete(OidcProvider, provider)
        return {}


def parse_provider(record: OidcProvider, keys: ClusterKeys) -> Provider:
    """Return the provider of a record; raise ``DamagedRecord``."""
    try:
        secret = keys.open(record.client_secret, f"provider {record.name}") if record.client_secret else ""
        tree: JsonObject = json.loads(record.settings)
        return Provider.from_document({**tree, "name": record.name, "client_secret": secret})
    except (InvalidValue, Unreadable, ValueError, TypeError) as error:
        raise DamagedRecord(f"providers/{record.name}: {error}")


def _describe_provider(record: OidcProvider) -> JsonObject:
    return {
        "provider": record.name,
        "settings": record.settings,
        "has_secret": bool(record.client_secret),
        "created": record.created,
    }
