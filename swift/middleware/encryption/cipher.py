"""AES-256 in counter mode and the texts that encrypted values are stored as (spec: middleware.md §17.1).

Pure: keys come in, bytes and texts go out.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from hashlib import sha256
from urllib.parse import quote_plus, unquote_plus

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError

NAME = "AES_CTR_256"
IV_BYTES, KEY_BYTES = 16, 32
_MARK = "; swift_meta="


class BadCrypto(SwiftError):
    """Stored crypto metadata or ciphertext is invalid."""


class Stream:
    """A key stream from byte ``offset`` on; encrypting and decrypting are the same."""

    def __init__(self, key: bytes, iv: bytes, offset: int = 0):
        counter = (int.from_bytes(iv, "big") + offset // IV_BYTES) % (1 << 128)
        mode = modes.CTR(counter.to_bytes(IV_BYTES, "big"))
        self._context = Cipher(algorithms.AES(key), mode).encryptor()
        self._context.update(bytes(offset % IV_BYTES))

    def update(self, data: bytes) -> bytes:
        """Return the next bytes."""
        return self._context.update(data)


def new_iv() -> bytes:
    """Return a random beginning of a key stream."""
    return secrets.token_bytes(IV_BYTES)


def new_key() -> bytes:
    """Return a random key."""
    return secrets.token_bytes(KEY_BYTES)


def mac_of(key: bytes, etag: str) -> str:
    """Return the HMAC that stands for an ETag in conditional requests."""
    return base64.b64encode(hmac.digest(key, etag.encode("latin-1"), sha256)).decode("ascii")


# --- what is stored ---------------------------------------------------------------------------------


def dump(meta: JsonObject) -> str:
    """Return the text of what is needed to decrypt; ``iv`` and ``key`` are bytes in it, at any depth."""
    return quote_plus(json.dumps(_as_text(meta), sort_keys=True))


def _as_text(meta: JsonObject) -> JsonObject:
    told: JsonObject = {}
    for name, value in meta.items():
        if isinstance(value, bytes):
            told[name] = base64.b64encode(value).decode("ascii")
        else:
            told[name] = _as_text(value) if isinstance(value, dict) else value
    return told


def load(text: str) -> JsonObject:
    """Return the value that ``dump`` serialized; raises ``BadCrypto`` for anything else, and for another
    cipher.
    """
    try:
        found = _as_bytes(json.loads(unquote_plus(text)))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise BadCrypto(f"bad crypto meta: {error}")
    if found.get("cipher") != NAME:
        raise BadCrypto(f"unknown cipher {found.get('cipher')!r}")
    if "iv" in found and len(found["iv"]) != IV_BYTES:
        raise BadCrypto("an IV has the wrong length")
    return found


def _as_bytes(meta: object) -> JsonObject:
    if not isinstance(meta, dict):
        raise ValueError("not an object")
    told: JsonObject = {}
    for name, value in meta.items():
        if name in ("iv", "key"):
            told[name] = base64.b64decode(value, validate=True)
        else:
            told[name] = _as_bytes(value) if name == "body_key" else value
    return told


def seal(value: str, key: bytes, key_id: dict[str, str] | None = None) -> str:
    """Return an encrypted value (a Latin-1 view) with what is needed to decrypt it behind it."""
    iv = new_iv()
    data = Stream(key, iv).update(value.encode("latin-1"))
    meta: JsonObject = {"cipher": NAME, "iv": iv}
    if key_id is not None:
        meta["key_id"] = key_id
    return base64.b64encode(data).decode("ascii") + _MARK + dump(meta)


def is_encrypted_response(text: str) -> bool:
    """Return True if a value was made by ``seal``."""
    return _MARK in text


def sealed_meta(text: str) -> JsonObject:
    """Return the crypto metadata of a sealed value; raises ``BadCrypto``."""
    _data, mark, meta = text.partition(_MARK)
    if not mark:
        raise BadCrypto("a value is not encrypted")
    found = load(meta)
    if "iv" not in found:
        raise BadCrypto("a value has no IV")
    return found


def unseal(text: str, key: bytes) -> str:
    """Return the plaintext of a sealed value as a Latin-1 view; raises ``BadCrypto``."""
    meta = sealed_meta(text)
    try:
        data = base64.b64decode(text.partition(_MARK)[0], validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadCrypto(f"a value is not base64: {error}")
    return Stream(key, meta["iv"]).update(data).decode("latin-1")
