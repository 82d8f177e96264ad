"""The keys of containers and objects, derived from root secrets (spec: middleware.md §17.1).

A key is HMAC-SHA256 of a path under a root secret. The id that is stored with what a key encrypted names the
path and the secret, so that secrets can be added and objects of older ones still be read.
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
    """Secrets by id; None is the id of the one without."""

    secrets: Mapping[str | None, bytes] = field(repr=False)
    active: str | None
    version: str

    def keys(self, path: EntityPath, key_id: KeyId | None) -> EncryptionKeys:
        """Return the keys of a path, or of what has an id; raises ``EncryptionKeysUnavailable``."""
        if key_id is None:
            named, secret_id, version = path, self.active, self.version
        else:
            version = key_id.get("v", "")
            named, secret_id = _path_of(path, key_id), key_id.get("secret_id")
        secret = self.secrets.get(secret_id)
        if secret is None or version not in _VERSIONS:
            raise EncryptionKeysUnavailable(
                f"no key for secret id {secret_id!r} in version {version!r}", unknown_secret=True
            )
        container = EntityPath(named.account, named.container)
        ids = [self._id(path, self.version, secret_id) for secret_id in sorted(self.secrets, key=str)]
        return EncryptionKeys(
            container=_derived(secret, str(container)),
            object=None if named.obj is None else _derived(secret, _object_path(named, version)),
            id=key_id or self._id(path, self.version, self.active),
            all_ids=ids,
        )

    @staticmethod
    def _id(path: EntityPath, version: str, secret_id: str | None) -> KeyId:
        text = _object_path(path, version)
        if version != "3":
            text = text.encode("utf-8", "surrogateescape").decode("latin-1")
        key_id: KeyId = {"v": version, "path": text}
        if secret_id is not None:
            key_id["secret_id"] = secret_id
        return key_id


def _object_path(path: EntityPath, version: str) -> str:
    """Return the text that a key is made from; the first version took names that begin with a slash alone."""
    if version == "1" and path.obj is not None and path.obj.startswith("/"):
        return path.obj
    return str(path)


def _derived(secret: bytes, path: str) -> bytes:
    return hmac.digest(secret, path.encode("utf-8", "surrogateescape"), sha256)


def _path_of(asked: EntityPath, key_id: KeyId) -> EntityPath:
    """Return the path that a stored id names; the text of old ones is Latin-1 of UTF-8, mostly."""
    text = key_id.get("path", "")
    readings = [text]
    if key_id.get("v") != "3":
        try:
            readings.insert(0, text.encode("latin-1").decode("utf-8"))
        except UnicodeError:
            readings = [text]
    version = key_id.get("v", "")
    for reading in readings:
        if reading in (str(asked), _object_path(asked, version)):
            return asked
    text = readings[0]
    home = EntityPath(asked.account, asked.container)
    if version == "1" and not text.startswith(f"{home}/"):
        return home._replace(obj=text)
    parts = text[1:].split("/", 2)
    if not text.startswith("/") or len(parts) < 2:
        raise EncryptionKeysUnavailable(f"a key id has the path {text!r}")
    return EntityPath(*parts)
