"""Another root secret for stored objects: encrypts their keys, ETags and metadata again, not their bodies.

A body is encrypted with a key of its own, which is stored beside it, wrapped with the object's key. So a new
root secret needs new headers only. The MAC of the plain ETag proves that the old keys are right: without it a
wrong root secret would destroy the object's key. Pure: headers in, headers out.
"""

from __future__ import annotations

import hmac

from swift.base.documents import JsonObject
from swift.http import fields
from swift.http.cryptokeys import EncryptionKeys, FetchKeys
from swift.http.headers import HeaderMap
from swift.middleware.encryption import cipher
from swift.middleware.encryption.decrypt import fetch_stored_keys
from swift.middleware.encryption.encrypt import CRYPTO_META_PREFIX, object_key

#: The root secret without an id, as tools name it.
NO_ID = "-"
_ETAG = fields.SYSMETA_UPDATE_OVERRIDE_ETAG


def secret_of(meta: JsonObject) -> str:
    """Return the id of the root secret in crypto metadata."""
    key_id = meta.get("key_id")
    return str(key_id.get("secret_id", NO_ID)) if isinstance(key_id, dict) else NO_ID


def listed_secret(value: object) -> str:
    """Return the id of the root secret of a row's hash; empty if it is not encrypted.

    Raises ``CryptoError``.
    """
    if not isinstance(value, str) or not cipher.is_encrypted_value(value):
        return ""
    return secret_of(cipher.value_meta(value))


def data_secrets(headers: HeaderMap) -> set[str]:
    """Return the ids of the root secrets of an object's body and ETags; raises ``CryptoError``."""
    found = {listed_secret(headers.get(_ETAG))} - {""}
    if fields.SYSMETA_CRYPTO_BODY_META in headers:
        found.add(secret_of(cipher.load_meta(headers[fields.SYSMETA_CRYPTO_BODY_META])))
    return found


def metadata_secrets(headers: HeaderMap) -> set[str]:
    """Return the id of the root secret of the user's metadata, if it has any; raises ``CryptoError``."""
    if fields.TRANSIENT_CRYPTO_META not in headers:
        return set()
    return {secret_of(cipher.load_meta(headers[fields.TRANSIENT_CRYPTO_META]))}


def rewrap(headers: HeaderMap, fetch: FetchKeys) -> None:
    """Encrypt with the active root secret what an object's headers have encrypted.

    Raises ``EncryptionKeysUnavailable``, and ``CryptoError`` if stored values do not belong to their keys.
    """
    new = fetch(None)
    proven = _rewrap_body(headers, fetch, new) if fields.SYSMETA_CRYPTO_BODY_META in headers else None
    _rewrap_listed_etag(headers, fetch, new)
    if fields.TRANSIENT_CRYPTO_META in headers:
        _rewrap_metadata(headers, fetch, new, proven)


def _rewrap_body(headers: HeaderMap, fetch: FetchKeys, new: EncryptionKeys) -> bytes:
    """Wrap the body's key and encrypt the ETag again; return the old key, which is proven right."""
    meta = cipher.load_meta(headers[fields.SYSMETA_CRYPTO_BODY_META])
    old_key, new_key = object_key(fetch_stored_keys(fetch, meta)), object_key(new)
    etag = cipher.decrypt_value(headers.get(fields.SYSMETA_CRYPTO_ETAG, ""), old_key)
    mac = headers.get(fields.SYSMETA_CRYPTO_ETAG_MAC, "")
    if not hmac.compare_digest(cipher.etag_mac(old_key, etag).encode(), mac.encode("latin-1")):
        raise cipher.CryptoError("the ETag does not belong to the root secret")
    wrapped = meta.get("body_key")
    if not isinstance(wrapped, dict) or not {"iv", "key"} <= wrapped.keys():
        raise cipher.CryptoError("the key of a body is missing")
    body_key, iv = cipher.KeyStream(old_key, wrapped["iv"]).update(wrapped["key"]), cipher.new_iv()
    meta["body_key"] = {"iv": iv, "key": cipher.KeyStream(new_key, iv).update(body_key)}
    meta["key_id"] = new["id"]
    headers[fields.SYSMETA_CRYPTO_BODY_META] = cipher.dump_meta(meta)
    headers[fields.SYSMETA_CRYPTO_ETAG] = cipher.encrypt_value(etag, new_key)
    headers[fields.SYSMETA_CRYPTO_ETAG_MAC] = cipher.etag_mac(new_key, etag)
    return old_key


def _rewrap_listed_etag(headers: HeaderMap, fetch: FetchKeys, new: EncryptionKeys) -> None:
    value = headers.get(_ETAG, "")
    if not cipher.is_encrypted_value(value):
        return
    plain = cipher.decrypt_value(value, fetch_stored_keys(fetch, cipher.value_meta(value))["container"])
    if not plain.isascii() or not plain.isprintable():
        raise cipher.CryptoError("the ETag in listings does not belong to the root secret")
    headers[_ETAG] = cipher.encrypt_value(plain, new["container"], new["id"])


def _rewrap_metadata(headers: HeaderMap, fetch: FetchKeys, new: EncryptionKeys, proven: bytes | None) -> None:
    common = cipher.load_meta(headers[fields.TRANSIENT_CRYPTO_META])
    old_key = object_key(fetch_stored_keys(fetch, common))
    for name in [name for name in headers if name.startswith(CRYPTO_META_PREFIX)]:
        plain = cipher.decrypt_value(headers[name], old_key)
        if old_key != proven:
            _check_text(plain)
        headers[name] = cipher.encrypt_value(plain, object_key(new))
    headers[fields.TRANSIENT_CRYPTO_META] = cipher.dump_meta({**common, "key_id": new["id"]})


def _check_text(value: str) -> None:
    """Raise ``CryptoError`` for a value that is no text: no MAC proves that its key is right."""
    try:
        value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise cipher.CryptoError("metadata does not belong to the root secret")
