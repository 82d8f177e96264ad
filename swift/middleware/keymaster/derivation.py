"""Derivation of container and object keys from root secrets (spec: middleware.md §17.1).

A key is the HMAC-SHA256 of a path under a root secret. Encrypted data is stored with a key id that names the
path and the secret. So new secrets can be added while old objects stay readable.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from swift.base.entity import EntityPath
from swift.http.cryptokeys import EncryptionKeys, EncryptionKeysUnavailable, KeyId

SECRET_BYTES_MIN = 32
_VERSIONS = ("1", "2", "3")


@dataclass(frozen=True, slots=True)
class RootSecrets:
    """Root secrets by id; None is the id of the secret without one."""

    secrets: Mapping[str | None, bytes] = field(repr=False)
    active_secret_id: str | None
    meta_version: str

    def derive_keys(self, path: EntityPath, key_id: KeyId | None) -> EncryptionKeys:
        """Derive the keys of a path, or of a stored key id; raises ``EncryptionKeysUnavailable``."""
        if key_id is None:
            key_path, secret_id, version = path, self.active_secret_id, self.meta_version
        else:
            version = key_id.get("v", "")
            key_path, secret_id = _resolve_path(path, key_id), key_id.get("secret_id")
        secret = self.secrets.get(secret_id)
        if secret is None or version not in _VERSIONS:
            raise EncryptionKeysUnavailable(
                f"no key for secret id {secret_id!r} in version {version!r}", unknown_secret=True
            )
        container = EntityPath(key_path.account, key_path.container)
        ids = [
            self._make_key_id(path, self.meta_version, secret_id)
            for secret_id in sorted(self.secrets, key=str)
        ]
        return EncryptionKeys(
            container=_derive(secret, str(container)),
            object=None if key_path.obj is None else _derive(secret, _derivation_path(key_path, version)),
            id=key_id or self._make_key_id(path, self.meta_version, self.active_secret_id),
            all_ids=ids,
        )

    @staticmethod
    def _make_key_id(path: EntityPath, version: str, secret_id: str | None) -> KeyId:
        text = _derivation_path(path, version)
        if version != "3":
            text = text.encode("utf-8", "surrogateescape").decode("latin-1")
        key_id: KeyId = {"v": version, "path": text}
        if secret_id is not None:
            key_id["secret_id"] = secret_id
        return key_id


def _derivation_path(path: EntityPath, version: str) -> str:
    """Return the text that an object key is derived from.

    Version 1 used object names that begin with a slash without account and container.
    """
    if version == "1" and path.obj is not None and path.obj.startswith("/"):
        return path.obj
    return str(path)


def _derive(secret: bytes, path: str) -> bytes:
    return hmac.digest(secret, path.encode("utf-8", "surrogateescape"), sha256)


def _resolve_path(requested: EntityPath, key_id: KeyId) -> EntityPath:
    """Return the path that a stored key id names; old ids may contain Latin-1 views of UTF-8."""
    text = key_id.get("path", "")
    candidates = [text]
    if key_id.get("v") != "3":
        try:
            candidates.insert(0, text.encode("latin-1").decode("utf-8"))
        except UnicodeError:
            candidates = [text]
    version = key_id.get("v", "")
    for candidate in candidates:
        if candidate in (str(requested), _derivation_path(requested, version)):
            return requested
    text = candidates[0]
    container = EntityPath(requested.account, requested.container)
    if version == "1" and not text.startswith(f"{container}/"):
        return container._replace(obj=text)
    parts = text[1:].split("/", 2)
    if not text.startswith("/") or len(parts) < 2:
        raise EncryptionKeysUnavailable(f"a key id has the path {text!r}")
    return EntityPath(*parts)
