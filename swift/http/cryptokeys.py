"""Interface between keymasters and the encryption filter (spec: middleware.md §17.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from swift.base.errors import SwiftError
from swift.http import fields
from swift.http.headers import HeaderMap

#: Values that identify the key of stored ciphertext: ``v``, ``path`` and perhaps ``secret_id``.
KeyId = dict[str, str]


class EncryptionKeys(TypedDict):
    """The keys of a request; those of a container have no ``object``."""

    container: bytes
    object: bytes | None
    id: KeyId
    #: Ids of the same path under every secret.
    all_ids: list[KeyId]


#: The value of ``swift.callback.fetch_crypto_keys``; raises ``EncryptionKeysUnavailable``.
FetchKeys = Callable[[KeyId | None], EncryptionKeys]


def is_encrypted_response(headers: HeaderMap) -> bool:
    """Return True if an answer about an object is as it is stored: its body or its metadata encrypted."""
    return fields.SYSMETA_CRYPTO_BODY_META in headers or fields.TRANSIENT_CRYPTO_META in headers


class EncryptionKeysUnavailable(SwiftError):
    """There is no key; ``unknown_secret`` when another keymaster may have it."""

    def __init__(self, text: str, *, unknown_secret: bool = False):
        super().__init__(text)
        self.unknown_secret = unknown_secret


class KeyServiceUnavailable(EncryptionKeysUnavailable):
    """A key service does not provide the key now; clients are told the text."""
