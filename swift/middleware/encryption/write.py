"""Encrypts requests: bodies, ETags and users' metadata (spec: middleware.md §17.2)."""

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

USER_META = "x-object-meta-"
CRYPTO_META = fields.TRANSIENT_CRYPTO_META + "-"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_OVERRIDES = (fields.SYSMETA_UPDATE_OVERRIDE_ETAG, fields.BACKEND_UPDATE_OVERRIDE + "etag")


def encrypt_metadata(headers: MutableMapping[str, str], keys: EncryptionKeys) -> None:
    """Users' metadata becomes transient system metadata; empty values stay as they are."""
    key = object_key(keys)
    names = [name for name, value in headers.items() if name.startswith(USER_META) and value]
    for name in names:
        value = headers.pop(name)
        headers[CRYPTO_META + name[len(USER_META) :]] = cipher.seal(value, key)
    if names:
        headers[fields.TRANSIENT_CRYPTO_META] = cipher.dump({"cipher": cipher.NAME, "key_id": keys["id"]})


def object_key(keys: EncryptionKeys) -> bytes:
    """Return the object's key among those of a request for one."""
    key = keys["object"]
    if key is None:
        raise cipher.BadCrypto("the keys are those of a container")
    return key


class EncryptedUpload:
    """One PUT: encrypts the body as it passes and says afterwards what belongs to it."""

    def __init__(self, request: Request, keys: EncryptionKeys):
        self._keys = keys
        self._body_key, self._iv = cipher.new_key(), cipher.new_iv()
        self._stream = cipher.Stream(self._body_key, self._iv)
        self._md5 = md5(usedforsecurity=False)
        self._size = 0
        headers = request.headers
        self._wanted = headers.pop("etag", None)
        self._override = next((headers.pop(name) for name in _OVERRIDES if name in headers), None)
        encrypt_metadata(headers, keys)
        self._before = request.env.get(environkeys.UPDATE_FOOTERS)
        self._footers: HeaderMap | None = None
        request.env[environkeys.UPDATE_FOOTERS] = self.update_footers
        request.body = TransformedRequestBody(request.body, self._encrypted)

    def _encrypted(self, data: bytes) -> bytes:
        self._size += len(data)
        self._md5.update(data)
        return self._stream.update(data)

    @property
    def etag(self) -> str:
        """The MD5 of the plain body."""
        return self._md5.hexdigest()

    def update_footers(self, footers: MutableMapping[str, str]) -> None:
        """Add what is known of the whole body; raises ``HTTPError`` 422 when it is not the announced one.

        All nodes are told the same.
        """
        if self._footers is None:
            self._footers = self._made(footers)
        footers.update(self._footers)
        for name in [name for name in footers if name not in self._footers]:
            del footers[name]

    def _made(self, footers: MutableMapping[str, str]) -> HeaderMap:
        if self._before is not None:
            self._before(footers)
        wanted = footers.pop("etag", None) or self._wanted
        if wanted and unquote_etag(wanted) != self.etag:
            raise HTTPError(422)
        override = self._override
        for name in reversed(_OVERRIDES):
            override = footers.pop(name, override)
        encrypt_metadata(footers, self._keys)
        if self._size:
            footers.update(self._of_body())
        if override or self._size:
            text = override or self.etag
            # Filters may leave the beginning open.
            text = self.etag + text if text.startswith(";") else text
            if text != _EMPTY_MD5:
                text = cipher.seal(text, self._keys["container"], self._keys["id"])
            footers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = text
        return {lower_name(name): value for name, value in footers.items()}

    def _of_body(self) -> HeaderMap:
        key, iv = object_key(self._keys), cipher.new_iv()
        wrapped = cipher.Stream(key, iv).update(self._body_key)
        meta: JsonObject = {
            "body_key": {"iv": iv, "key": wrapped},
            "cipher": cipher.NAME,
            "iv": self._iv,
            "key_id": self._keys["id"],
        }
        return {
            fields.SYSMETA_CRYPTO_BODY_META: cipher.dump(meta),
            fields.SYSMETA_CRYPTO_ETAG: cipher.seal(self.etag, key),
            fields.SYSMETA_CRYPTO_ETAG_MAC: cipher.mac_of(key, self.etag),
        }

    def told(self, response: Response) -> Response:
        """Return the answer with the ETag of what the client sent."""
        if response.is_success and "etag" in response.headers:
            response.headers["etag"] = self.etag
        return response
