"""Encrypts requests: bodies, ETags and user metadata (spec: middleware.md §17.2)."""

from __future__ import annotations

from collections.abc import MutableMapping
from hashlib import md5

from swift.base.documents import JsonObject
from swift.base.etag import unquote_etag
from swift.http import environkeys, fields
from swift.http.cryptokeys import EncryptionKeys
from swift.http.headers import HeaderMap, lower_name
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.http.transform import TransformedRequestBody
from swift.middleware.encryption import cipher

USER_META_PREFIX = "x-object-meta-"
CRYPTO_META_PREFIX = fields.TRANSIENT_CRYPTO_META + "-"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_ETAG_OVERRIDE_HEADERS = (fields.SYSMETA_UPDATE_OVERRIDE_ETAG, fields.BACKEND_UPDATE_OVERRIDE + "etag")


def encrypt_metadata(headers: MutableMapping[str, str], keys: EncryptionKeys) -> None:
    """Replace user metadata by encrypted transient system metadata; empty values stay as they are."""
    key = object_key(keys)
    names = [name for name, value in headers.items() if name.startswith(USER_META_PREFIX) and value]
    for name in names:
        value = headers.pop(name)
        headers[CRYPTO_META_PREFIX + name[len(USER_META_PREFIX) :]] = cipher.encrypt_value(value, key)
    if names:
        headers[fields.TRANSIENT_CRYPTO_META] = cipher.dump_meta(
            {"cipher": cipher.CIPHER_NAME, "key_id": keys["id"]}
        )


def object_key(keys: EncryptionKeys) -> bytes:
    """Return the object key; raises ``CryptoError`` for the keys of a container."""
    key = keys["object"]
    if key is None:
        raise cipher.CryptoError("the keys are those of a container")
    return key


class EncryptedUpload:
    """Encrypts the body of one PUT as it is read and adds the crypto metadata in the footers."""

    def __init__(self, request: Request, keys: EncryptionKeys):
        self._keys = keys
        self._body_key, self._iv = cipher.new_key(), cipher.new_iv()
        self._stream = cipher.KeyStream(self._body_key, self._iv)
        self._md5 = md5(usedforsecurity=False)
        self._size = 0
        headers = request.headers
        self._expected_etag = headers.pop("etag", None)
        self._etag_override = next(
            (headers.pop(name) for name in _ETAG_OVERRIDE_HEADERS if name in headers), None
        )
        encrypt_metadata(headers, keys)
        self._next_callback = request.env.get(environkeys.UPDATE_FOOTERS)
        self._footers: HeaderMap | None = None
        request.env[environkeys.UPDATE_FOOTERS] = self.update_footers
        request.body = TransformedRequestBody(request.body, self._encrypt)

    def _encrypt(self, data: bytes) -> bytes:
        self._size += len(data)
        self._md5.update(data)
        return self._stream.update(data)

    @property
    def etag(self) -> str:
        """MD5 of the plain body."""
        return self._md5.hexdigest()

    def update_footers(self, footers: MutableMapping[str, str]) -> None:
        """Add the crypto metadata; raises ``HTTPError`` 422 for a body that does not match its ETag.

        All nodes get the same footers.
        """
        if self._footers is None:
            self._footers = self._make_footers(footers)
        footers.update(self._footers)
        for name in [name for name in footers if name not in self._footers]:
            del footers[name]

    def _make_footers(self, footers: MutableMapping[str, str]) -> HeaderMap:
        if self._next_callback is not None:
            self._next_callback(footers)
        expected_etag = footers.pop("etag", None) or self._expected_etag
        if expected_etag and unquote_etag(expected_etag) != self.etag:
            raise HTTPError(422)
        override = self._etag_override
        for name in reversed(_ETAG_OVERRIDE_HEADERS):
            override = footers.pop(name, override)
        encrypt_metadata(footers, self._keys)
        if self._size:
            footers.update(self._body_metadata())
        if override or self._size:
            value = override or self.etag
            # Filters may leave out the ETag before the parameters.
            value = self.etag + value if value.startswith(";") else value
            if value != _EMPTY_MD5:
                value = cipher.encrypt_value(value, self._keys["container"], self._keys["id"])
            footers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = value
        return {lower_name(name): value for name, value in footers.items()}

    def _body_metadata(self) -> HeaderMap:
        key, iv = object_key(self._keys), cipher.new_iv()
        wrapped = cipher.KeyStream(key, iv).update(self._body_key)
        meta: JsonObject = {
            "body_key": {"iv": iv, "key": wrapped},
            "cipher": cipher.CIPHER_NAME,
            "iv": self._iv,
            "key_id": self._keys["id"],
        }
        return {
            fields.SYSMETA_CRYPTO_BODY_META: cipher.dump_meta(meta),
            fields.SYSMETA_CRYPTO_ETAG: cipher.encrypt_value(self.etag, key),
            fields.SYSMETA_CRYPTO_ETAG_MAC: cipher.etag_mac(key, self.etag),
        }

    def with_plain_etag(self, response: Response) -> Response:
        """Replace the ETag of a response by that of the plain body."""
        if response.is_success and "etag" in response.headers:
            response.headers["etag"] = self.etag
        return response
