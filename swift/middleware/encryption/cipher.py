"""AES-256 in counter mode and the text format of encrypted values (spec: middleware.md §17.1).

Pure: keys in, bytes and texts out.
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

CIPHER_NAME = "AES_CTR_256"
IV_BYTES, KEY_BYTES = 16, 32
_META_SEPARATOR = "; swift_meta="


class CryptoError(SwiftError):
    """Stored crypto metadata or ciphertext is invalid."""


class KeyStream:
    """An AES-CTR key stream from byte ``offset`` on; encryption and decryption are the same operation."""

    def __init__(self, key: bytes, iv: bytes, offset: int = 0):
        counter = (int.from_bytes(iv, "big") + offset // IV_BYTES) % (1 << 128)
        mode = modes.CTR(counter.to_bytes(IV_BYTES, "big"))
        self._context = Cipher(algorithms.AES(key), mode).encryptor()
        self._context.update(bytes(offset % IV_BYTES))

    def update(self, data: bytes) -> bytes:
        """Return the next bytes, encrypted or decrypted."""
        return self._context.update(data)


def new_iv() -> bytes:
    """Return a random initialization vector."""
    return secrets.token_bytes(IV_BYTES)


def new_key() -> bytes:
    """Return a random key."""
    return secrets.token_bytes(KEY_BYTES)


def etag_mac(key: bytes, etag: str) -> str:
    """Return the HMAC that replaces an ETag in conditional requests."""
    return base64.b64encode(hmac.digest(key, etag.encode("latin-1"), sha256)).decode("ascii")


# --- stored formats ---------------------------------------------------------------------------------


def dump_meta(meta: JsonObject) -> str:
    """Serialize crypto metadata; ``iv`` and ``key`` are bytes in it, at any depth."""
    return quote_plus(json.dumps(_encode_bytes(meta), sort_keys=True))


def _encode_bytes(meta: JsonObject) -> JsonObject:
    encoded: JsonObject = {}
    for name, value in meta.items():
        if isinstance(value, bytes):
            encoded[name] = base64.b64encode(value).decode("ascii")
        else:
            encoded[name] = _encode_bytes(value) if isinstance(value, dict) else value
    return encoded


def load_meta(text: str) -> JsonObject:
    """Parse what ``dump_meta`` serialized; raises ``CryptoError`` for any other text or cipher."""
    try:
        meta = _decode_bytes(json.loads(unquote_plus(text)))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise CryptoError(f"bad crypto meta: {error}")
    if meta.get("cipher") != CIPHER_NAME:
        raise CryptoError(f"unknown cipher {meta.get('cipher')!r}")
    if "iv" in meta and len(meta["iv"]) != IV_BYTES:
        raise CryptoError("an IV has the wrong length")
    return meta


def _decode_bytes(meta: object) -> JsonObject:
    if not isinstance(meta, dict):
        raise ValueError("not an object")
    decoded: JsonObject = {}
    for name, value in meta.items():
        if name in ("iv", "key"):
            decoded[name] = base64.b64decode(value, validate=True)
        else:
            decoded[name] = _decode_bytes(value) if name == "body_key" else value
    return decoded


def encrypt_value(value: str, key: bytes, key_id: dict[str, str] | None = None) -> str:
    """Encrypt a value (a Latin-1 view) and append the crypto metadata that decrypts it."""
    iv = new_iv()
    data = KeyStream(key, iv).update(value.encode("latin-1"))
    meta: JsonObject = {"cipher": CIPHER_NAME, "iv": iv}
    if key_id is not None:
        meta["key_id"] = key_id
    return base64.b64encode(data).decode("ascii") + _META_SEPARATOR + dump_meta(meta)


def is_encrypted_value(text: str) -> bool:
    """Return True if ``encrypt_value`` made the value."""
    return _META_SEPARATOR in text


def value_meta(text: str) -> JsonObject:
    """Return the crypto metadata of a sealed value; raises ``CryptoError``."""
    _data, separator, meta = text.partition(_META_SEPARATOR)
    if not separator:
        raise CryptoError("a value is not encrypted")
    parsed = load_meta(meta)
    if "iv" not in parsed:
        raise CryptoError("a value has no IV")
    return parsed


def decrypt_value(text: str, key: bytes) -> str:
    """Return the plaintext of a sealed value as a Latin-1 view; raises ``CryptoError``."""
    meta = value_meta(text)
    try:
        data = base64.b64decode(text.partition(_META_SEPARATOR)[0], validate=True)
    except (binascii.Error, ValueError) as error:
        raise CryptoError(f"a value is not base64: {error}")
    return KeyStream(key, meta["iv"]).update(data).decode("latin-1")
