"""The filter that encrypts what is written and decrypts what is read (spec: middleware.md §17)."""

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
from swift.http.cryptokeys import EncryptionKeys, EncryptionKeysUnavailable, FetchKeys
from swift.http.headers import HeaderMap, title_case
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import check_metadata
from swift.middleware.encryption import cipher
from swift.middleware.encryption.read import decrypt_body, decrypt_headers, decrypt_listing
from swift.middleware.encryption.write import EncryptedUpload, encrypt_metadata, object_key
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.log import Log

_NO_KEYS = "Unable to retrieve encryption keys."
_CONDITIONS = ("if-match", "if-none-match")


@dataclass(frozen=True)
class EncryptionSettings(Settings):
    """``[filter:encryption]``."""

    disable_encryption: bool = option(False, "Store new objects as they come; encrypted ones are still read.")


class Encryption(Filter):
    """Stores objects encrypted and gives them out in clear."""

    def __init__(self, app: App, settings: EncryptionSettings, limits: Limits, log: Log):
        super().__init__(app)
        self._writes = not settings.disable_encryption
        self._limits = limits
        self._log = log

    def handle(self, request: Request) -> Response:
        """Answer a request for an object, or list a container."""
        env, entity = request.env, request.entity
        fetch: FetchKeys | None = env.get(environkeys.FETCH_CRYPTO_KEYS)
        if fetch is None or entity is None or is_true(env.get(environkeys.CRYPTO_OVERRIDE)):
            return self.forward(request)
        if entity.path.obj is None:
            return self._list(request, fetch) if request.method == "GET" else self.forward(request)
        self._add_macs(request, fetch)
        if request.method in ("GET", "HEAD"):
            return self._read(request, fetch)
        if self._writes and request.method == "PUT":
            return self._put(request, fetch)
        if self._writes and request.method == "POST":
            check_metadata(request.headers, "object", self._limits)
            encrypt_metadata(request.headers, self._keys(request, fetch))
        return self.forward(request)

    def _keys(self, request: Request, fetch: FetchKeys) -> EncryptionKeys:
        try:
            return fetch(None)
        except EncryptionKeysUnavailable as error:
            self._log.error(str(error), txid=request.env.get(environkeys.TRANS_ID))
            raise HTTPError(500, _NO_KEYS, content_type=TEXT)

    def _add_macs(self, request: Request, fetch: FetchKeys) -> None:
        """Have conditions be judged by what stands for ETags, under every secret that may be an object's."""
        headers = request.headers
        listed = [name for name in _CONDITIONS if EtagList.parse(headers.get(name, "")) - {"*"}]
        if not listed:
            return
        keys = self._keys(request, fetch)
        secrets = [object_key(fetch(key_id)) for key_id in keys["all_ids"]]
        for name in listed:
            tags = sorted(EtagList.parse(headers[name]))
            shown = [quoted for tag in tags for quoted in _with_macs(tag, secrets)]
            headers[name] = ", ".join(shown)
        place, also = title_case(fields.SYSMETA_CRYPTO_ETAG_MAC), headers.get(fields.BACKEND_ETAG_IS_AT)
        headers[fields.BACKEND_ETAG_IS_AT] = f"{also},{place}" if also else place

    # writing

    def _put(self, request: Request, fetch: FetchKeys) -> Response:
        check_metadata(request.headers, "object", self._limits)
        env, sent = request.env, request.body
        before = env.get(environkeys.UPDATE_FOOTERS)
        upload = EncryptedUpload(request, self._keys(request, fetch))
        try:
            return upload.told(self.forward(request))
        finally:
            request.body = sent
            if before is None:
                del env[environkeys.UPDATE_FOOTERS]
            else:
                env[environkeys.UPDATE_FOOTERS] = before

    # reading

    def _list(self, request: Request, fetch: FetchKeys) -> Response:
        response = self.forward(request)
        txid = request.env.get(environkeys.TRANS_ID)
        decrypt_listing(response, fetch, lambda text: self._log.error(text, txid=txid))
        return response

    def _read(self, request: Request, fetch: FetchKeys) -> Response:
        """Answer a read; If-Range is about the ETag that is decrypted here."""
        headers = request.headers
        if_range = headers.pop("if-range", None)
        response = self._decrypted(request, fetch)
        if if_range is None:
            return response
        headers["if-range"] = if_range
        if not is_outdated_range_response(headers, response):
            return response
        drained(response)
        wanted = headers.pop("range")
        try:
            return self._decrypted(request, fetch)
        finally:
            headers["range"] = wanted

    def _decrypted(self, request: Request, fetch: FetchKeys) -> Response:
        response = self.forward(request)
        headers = response.headers
        if not response.is_success and response.status not in (304, 412, 416):
            _drop(headers)
            return response
        body_meta = headers.get(fields.SYSMETA_CRYPTO_BODY_META)
        what = "header"
        try:
            decrypt_headers(headers, fetch)
            what = "object"
            if body_meta is not None and request.method == "GET" and response.is_success:
                decrypt_body(request, response, body_meta, fetch)
        except (EncryptionKeysUnavailable, cipher.BadCrypto) as error:
            self._log.error(f"Error decrypting {what}: {error}", txid=request.env.get(environkeys.TRANS_ID))
            response.discard()
            response.report_end(0, False)
            text = _NO_KEYS if isinstance(error, EncryptionKeysUnavailable) else f"Error decrypting {what}"
            return error_response(500, text, content_type=TEXT)
        return response


def _with_macs(tag: str, secrets: list[bytes]) -> list[str]:
    """Return a tag of a condition, and what stands for it under each secret; weak tags stay weak."""
    if tag == "*":
        return [tag]
    weak, plain = ("W/", unquote_etag(tag[2:])) if tag.startswith("W/") else ("", tag)
    return [f'{weak}"{each}"' for each in (plain, *(cipher.mac_of(key, plain) for key in secrets))]


def _drop(headers: HeaderMap) -> None:
    for name in [name for name in headers if name.startswith(fields.SYSMETA_CRYPTO)]:
        del headers[name]


def _make(app: App, settings: EncryptionSettings, services: Services) -> Encryption:
    """Return the filter of a configuration section."""
    services.info.register("encryption", {"enabled": not settings.disable_encryption}, admin=True)
    limits = services.cluster.config.limits
    return Encryption(app, settings, limits, services.telemetry().log)


FILTER = FilterDeclaration(
    "encryption",
    EncryptionSettings,
    _make,
    position=300,
)
