"""Decrypts responses: bodies, ETags and user metadata (spec: middleware.md §17.3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from swift.base.documents import JsonObject
from swift.base.ranges import ByteRanges, Span
from swift.http import fields
from swift.http.body import BodyError, IterableBody, ResponseBody, as_response_body, iter_body_bytes
from swift.http.cryptokeys import EncryptionKeys, EncryptionKeysUnavailable, FetchKeys, KeyServiceUnavailable
from swift.http.etagparameters import LISTING_BYTES_MAX
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.http.transform import TransformedBody
from swift.middleware.encryption import cipher
from swift.middleware.encryption.encrypt import CRYPTO_META_PREFIX, USER_META_PREFIX, object_key
from swift.wire.byteranges import parse_layout

UNKNOWN_HASH = "<unknown>"
#: Bytes that the head of a first part may have.
_HEAD_BYTES_MAX = 65536


def fetch_stored_keys(fetch: FetchKeys, meta: JsonObject) -> EncryptionKeys:
    """Return the keys for stored crypto metadata; raises ``EncryptionKeysUnavailable``."""
    key_id = meta.get("key_id")
    if key_id is not None and not isinstance(key_id, dict):
        raise EncryptionKeysUnavailable("a key id is no object")
    return fetch(key_id)


# --- headers ----------------------------------------------------------------------------------------


def decrypt_headers(headers: HeaderMap, fetch: FetchKeys) -> None:
    """Restore ETags and user metadata; raises ``CryptoError`` and ``EncryptionKeysUnavailable``."""
    body_meta = headers.pop(fields.SYSMETA_CRYPTO_BODY_META, None)
    etag = headers.pop(fields.SYSMETA_CRYPTO_ETAG, None)
    headers.pop(fields.SYSMETA_CRYPTO_ETAG_MAC, None)
    if body_meta is not None:
        meta = cipher.load_meta(body_meta)
        headers[fields.BACKEND_CRYPTO_CIPHER] = cipher.CIPHER_NAME
        if etag is not None:
            plain = cipher.decrypt_value(etag, object_key(fetch_stored_keys(fetch, meta)))
            if "etag" in headers:
                headers["etag"] = f'"{plain}"' if headers["etag"].startswith('"') else plain
    _restore_override(headers, fetch)
    _restore_metadata(headers, fetch)


def _restore_override(headers: HeaderMap, fetch: FetchKeys) -> None:
    """Restore the container-update ETag override of other filters, which copies carry along."""
    override = headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, "")
    if not cipher.is_encrypted_value(override):
        return
    keys = fetch_stored_keys(fetch, cipher.value_meta(override))
    plain = cipher.decrypt_value(override, keys["container"])
    if ";" in plain:
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = plain
    else:
        del headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG]


def _restore_metadata(headers: HeaderMap, fetch: FetchKeys) -> None:
    common = headers.pop(fields.TRANSIENT_CRYPTO_META, None)
    names = [name for name in headers if name.startswith(CRYPTO_META_PREFIX)]
    if not names:
        return
    if common is None:
        raise cipher.CryptoError("metadata has no key id")
    key = object_key(fetch_stored_keys(fetch, cipher.load_meta(common)))
    restored = [USER_META_PREFIX + name[len(CRYPTO_META_PREFIX) :] for name in names]
    for name, plain in zip(names, restored, strict=True):
        headers[plain] = cipher.decrypt_value(headers.pop(name), key)
    exposed = headers.get("access-control-expose-headers")
    if exposed is not None:
        # The proxy listed only the encrypted names.
        headers["access-control-expose-headers"] = ", ".join([exposed, *restored])


# --- bodies -----------------------------------------------------------------------------------------


def decrypt_body(request: Request, response: Response, body_meta: str, fetch: FetchKeys) -> None:
    """Replace the body of a GET response by its plaintext.

    Raises ``CryptoError`` and ``EncryptionKeysUnavailable``.
    """
    meta = cipher.load_meta(body_meta)
    wrapped = meta.get("body_key")
    if "iv" not in meta or not isinstance(wrapped, dict) or not {"iv", "key"} <= wrapped.keys():
        raise cipher.CryptoError("the key of a body is missing")
    key = cipher.KeyStream(object_key(fetch_stored_keys(fetch, meta)), wrapped["iv"]).update(wrapped["key"])
    if len(key) != cipher.KEY_BYTES:
        raise cipher.CryptoError("the key of a body has the wrong length")

    def stream(offset: int) -> cipher.KeyStream:
        return cipher.KeyStream(key, meta["iv"], offset)

    if response.status == 206 and response.headers.get("content-type", "").startswith("multipart/"):
        ranges = ByteRanges.parse(request.headers.get("range", ""))
        if ranges is None:
            raise cipher.CryptoError("several parts, though one was requested")
        source = as_response_body(response.body)
        response.body = IterableBody(_decrypt_parts(source, ranges, stream), source.length, source.close)
        return
    offset = _parse_first_byte(response.headers.get("content-range", "")) if response.status == 206 else 0
    response.body = TransformedBody(response.body, stream(offset).update)


def _parse_first_byte(content_range: str) -> int:
    first = content_range.removeprefix("bytes ").partition("-")[0]
    if not first.isdecimal():
        raise cipher.CryptoError(f"Content-Range is {content_range!r}")
    return int(first)


def _decrypt_parts(
    source: ResponseBody, ranges: ByteRanges, stream: Callable[[int], cipher.KeyStream]
) -> Iterator[bytes]:
    """Yield the pieces of a multipart body, each range decrypted from its first byte on."""
    chunks = iter_body_bytes(source)
    buffered, layout = b"", None
    while layout is None:
        chunk = next(chunks, b"")
        buffered += chunk
        layout = parse_layout(buffered, ranges)
        if layout is None and (not chunk or len(buffered) > _HEAD_BYTES_MAX):
            raise BodyError("the parts of a response have no boundary")
    for piece in layout.pieces():
        remaining = piece.length if isinstance(piece, Span) else len(piece)
        transform = stream(piece.start).update if isinstance(piece, Span) else bytes
        while remaining:
            buffered = buffered or next(chunks, b"")
            if not buffered:
                raise BodyError("the parts of an answer broke off")
            yield transform(buffered[:remaining])
            remaining, buffered = remaining - min(remaining, len(buffered)), buffered[remaining:]


# --- listings ---------------------------------------------------------------------------------------


def decrypt_listing(response: Response, fetch: FetchKeys, warn: Callable[[str], None]) -> None:
    """Restore the hashes of a JSON listing; those without a key become ``<unknown>``.

    Raises ``KeyServiceUnavailable``.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if not response.is_success or kind != "application/json":
        return
    body = response.read_body(2 * LISTING_BYTES_MAX)
    if b"; swift_meta=" not in body:
        return
    rows = json.loads(body)
    failures = set()
    for row in rows:
        value = row.get("hash")
        if not isinstance(value, str) or not cipher.is_encrypted_value(value):
            continue
        try:
            row["hash"] = cipher.decrypt_value(
                value, fetch_stored_keys(fetch, cipher.value_meta(value))["container"]
            )
        except KeyServiceUnavailable:
            raise
        except (EncryptionKeysUnavailable, cipher.CryptoError) as error:
            failures.add(str(error))
            row["hash"] = UNKNOWN_HASH
    for failure in sorted(failures):
        warn(f"hashes of a listing cannot be decrypted: {failure}")
    response.body = json.dumps(rows).encode("ascii")
    response.headers["content-length"] = str(len(response.body))
