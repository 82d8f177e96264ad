"""The encryption filter: encrypts writes and decrypts reads (spec: middleware.md §17)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.etag import EtagList, unquote_etag
from swift.base.limits import Limits
from swift.base.truth import is_true
from swift.compose import Services
from swift.config.schema import Settings, option
from swift.gateway.subrequest import drained
from swift.http import environkeys, fields
from swift.http.conditional import is_outdated_range_response
from swift.http.cryptokeys import (
    EncryptionKeys,
    EncryptionKeysUnavailable,
    FetchKeys,
    KeyId,
    KeyServiceUnavailable,
)
from swift.http.headers import HeaderMap, title_case
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import check_metadata
from swift.middleware.encryption import cipher
from swift.middleware.encryption.decrypt import decrypt_body, decrypt_headers, decrypt_listing
from swift.middleware.encryption.encrypt import EncryptedUpload, encrypt_metadata, object_key
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.log import Log

_NO_KEYS_ERROR = "Unable to retrieve encryption keys."
_REASON_HEADER = "x-encryption-error"
_ETAG_CONDITION_HEADERS = ("if-match", "if-none-match")


@dataclass(frozen=True)
class EncryptionSettings(Settings):
    """``[filter:encryption]``."""

    disable_encryption: bool = option(False, "Store new objects as they come; encrypted ones are still read.")


class Encryption(Filter):
    """Encrypts stored objects and decrypts responses."""

    def __init__(self, app: App, settings: EncryptionSettings, limits: Limits, log: Log):
        super().__init__(app)
        self._encrypts_writes = not settings.disable_encryption
        self._limits = limits
        self._log = log

    def handle(self, request: Request) -> Response:
        """Encrypt uploads and metadata; decrypt objects and container listings."""
        env, entity = request.env, request.entity
        fetch: FetchKeys | None = env.get(environkeys.FETCH_CRYPTO_KEYS)
        if fetch is None or entity is None or is_true(env.get(environkeys.CRYPTO_OVERRIDE)):
            return self.forward(request)
        if entity.path.obj is None:
            return self._get_listing(request, fetch) if request.method == "GET" else self.forward(request)
        env[environkeys.CIPHERTEXT_ACCEPTED] = True
        self._add_etag_macs(request, fetch)
        if request.method in ("GET", "HEAD"):
            return self._read_object(request, fetch)
        if self._encrypts_writes and request.method == "PUT":
            return self._put_object(request, fetch)
        if self._encrypts_writes and request.method == "POST":
            check_metadata(request.headers, "object", self._limits)
            encrypt_metadata(request.headers, self._fetch_keys(request, fetch))
        return self.forward(request)

    def _fetch_keys(self, request: Request, fetch: FetchKeys, key_id: KeyId | None = None) -> EncryptionKeys:
        try:
            return fetch(key_id)
        except EncryptionKeysUnavailable as error:
            self._log.error(str(error), txid=request.env.get(environkeys.TRANS_ID))
            raise HTTPError.of(_without_keys(error))

    def _add_etag_macs(self, request: Request, fetch: FetchKeys) -> None:
        """Add the HMACs of ETags in conditions, under every root secret that an object may have."""
        headers = request.headers
        listed = [name for name in _ETAG_CONDITION_HEADERS if EtagList.parse(headers.get(name, "")) - {"*"}]
        if not listed:
            return
        keys = self._fetch_keys(request, fetch)
        secrets = [object_key(self._fetch_keys(request, fetch, key_id)) for key_id in keys["all_ids"]]
        for name in listed:
            tags = sorted(EtagList.parse(headers[name]))
            tags_and_macs = [quoted for tag in tags for quoted in _tag_with_macs(tag, secrets)]
            headers[name] = ", ".join(tags_and_macs)
        mac_header, etag_locations = (
            title_case(fields.SYSMETA_CRYPTO_ETAG_MAC),
            headers.get(fields.BACKEND_ETAG_IS_AT),
        )
        headers[fields.BACKEND_ETAG_IS_AT] = (
            f"{etag_locations},{mac_header}" if etag_locations else mac_header
        )

    # writing

    def _put_object(self, request: Request, fetch: FetchKeys) -> Response:
        check_metadata(request.headers, "object", self._limits)
        env, client_body = request.env, request.body
        next_callback = env.get(environkeys.UPDATE_FOOTERS)
        upload = EncryptedUpload(request, self._fetch_keys(request, fetch))
        try:
            return upload.with_plain_etag(self.forward(request))
        finally:
            request.body = client_body
            if next_callback is None:
                del env[environkeys.UPDATE_FOOTERS]
            else:
                env[environkeys.UPDATE_FOOTERS] = next_callback

    # reading

    def _get_listing(self, request: Request, fetch: FetchKeys) -> Response:
        response = self.forward(request)
        txid = request.env.get(environkeys.TRANS_ID)
        try:
            decrypt_listing(response, fetch, lambda text: self._log.error(text, txid=txid))
        except KeyServiceUnavailable as error:
            self._log.error(f"Error decrypting listing: {error}", txid=txid)
            return _without_keys(error)
        return response

    def _read_object(self, request: Request, fetch: FetchKeys) -> Response:
        """Return the response to a GET or HEAD; If-Range is compared with the decrypted ETag."""
        headers = request.headers
        if_range = headers.pop("if-range", None)
        response = self._forward_decrypted(request, fetch)
        if if_range is None:
            return response
        headers["if-range"] = if_range
        if not is_outdated_range_response(headers, response):
            return response
        drained(response)
        range_header = headers.pop("range")
        try:
            return self._forward_decrypted(request, fetch)
        finally:
            headers["range"] = range_header

    def _forward_decrypted(self, request: Request, fetch: FetchKeys) -> Response:
        response = self.forward(request)
        headers = response.headers
        if not response.is_success and response.status not in (304, 412, 416):
            _remove_crypto_headers(headers)
            return response
        body_meta = headers.get(fields.SYSMETA_CRYPTO_BODY_META)
        failing_part = "header"
        try:
            decrypt_headers(headers, fetch)
            failing_part = "object"
            if body_meta is not None and request.method == "GET" and response.is_success:
                decrypt_body(request, response, body_meta, fetch)
        except (EncryptionKeysUnavailable, cipher.CryptoError) as error:
            self._log.error(
                f"Error decrypting {failing_part}: {error}", txid=request.env.get(environkeys.TRANS_ID)
            )
            drained(response, is_complete=False)
            if isinstance(error, EncryptionKeysUnavailable):
                return _without_keys(error)
            return error_response(500, f"Error decrypting {failing_part}", content_type=TEXT)
        return response


def _without_keys(error: EncryptionKeysUnavailable) -> Response:
    """Return the response to a request that lacks its keys; 503 if a key service may provide them."""
    if not isinstance(error, KeyServiceUnavailable):
        return error_response(500, _NO_KEYS_ERROR, content_type=TEXT)
    return error_response(
        503, f"{_NO_KEYS_ERROR[:-1]}: {error}", {_REASON_HEADER: str(error)}, content_type=TEXT
    )


def _tag_with_macs(tag: str, secrets: list[bytes]) -> list[str]:
    """Return a tag of a condition and its HMAC under each secret; weak tags stay weak."""
    if tag == "*":
        return [tag]
    weak, plain = ("W/", unquote_etag(tag[2:])) if tag.startswith("W/") else ("", tag)
    return [f'{weak}"{each}"' for each in (plain, *(cipher.etag_mac(key, plain) for key in secrets))]


def _remove_crypto_headers(headers: HeaderMap) -> None:
    for name in [name for name in headers if name.startswith(fields.SYSMETA_CRYPTO)]:
        del headers[name]


def _make_filter(app: App, settings: EncryptionSettings, services: Services) -> Encryption:
    """Return the filter of a configuration section."""
    services.info.register("encryption", {"enabled": not settings.disable_encryption}, admin=True)
    limits = services.cluster.config.limits
    return Encryption(app, settings, limits, services.telemetry().log)


FILTER = FilterDeclaration("encryption", EncryptionSettings, _make_filter, position=300)
