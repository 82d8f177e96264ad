"""What is read is plain again, or an error that says why it is not (middleware.md §17.3)."""

import json
import os

import pytest

from swift.base.ranges import ByteRanges
from swift.http import fields
from swift.http.body import BodyError, IterableBody, iter_body_bytes
from swift.http.cryptokeys import EncryptionKeysUnavailable
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.encryption import cipher
from swift.middleware.encryption.decrypt import (
    UNKNOWN_HASH,
    decrypt_body,
    decrypt_headers,
    decrypt_listing,
    fetch_stored_keys,
)
from swift.middleware.encryption.encrypt import CRYPTO_META_PREFIX
from test.support.filters import EncryptionFixture

OBJECT, CONTAINER, BODY_KEY, IV = b"o" * 32, b"c" * 32, b"b" * 32, bytes(16)
KEY_ID = {"path": "/a/c/o", "v": "2"}
META = {"cipher": cipher.CIPHER_NAME, "key_id": KEY_ID}


@pytest.fixture
def front(sim):
    return EncryptionFixture(sim)


def fetch(key_id=None):
    if key_id is not None and key_id != KEY_ID:
        raise EncryptionKeysUnavailable("another secret")
    return {"object": OBJECT, "container": CONTAINER, "id": KEY_ID, "all_ids": [KEY_ID]}


def body_meta(**changes):
    wrapped = {"iv": IV, "key": cipher.KeyStream(OBJECT, IV).update(BODY_KEY)}
    return cipher.dump_meta({**META, "iv": IV, "body_key": wrapped, **changes})


# --- bodies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, 15, 16, 17, 1000])
def test_every_range_is_that_of_the_plain_body(front, first):
    data = os.urandom(3000)
    front("PUT", "/a/c/o", {}, data)
    answer = front("GET", "/a/c/o", {"range": f"bytes={first}-{first + 99}"})
    assert (answer.status, answer.body) == (206, data[first : first + 100])
    assert front("GET", "/a/c/o", {"range": "bytes=-7"}).body == data[-7:]


def test_several_ranges_are_parts_of_the_plain_body(front):
    data = bytes(range(256)) * 12
    front("PUT", "/a/c/o", {"content-type": "text/x"}, data)
    answer = front("GET", "/a/c/o", {"range": "bytes=3-9,1000-1040,-5"})
    assert answer.status == 206
    boundary = answer.headers["content-type"].partition("boundary=")[2]
    parts = answer.body.split(b"--" + boundary.encode())[1:-1]
    assert [part.partition(b"\r\n\r\n")[2][:-2] for part in parts] == [data[3:10], data[1000:1041], data[-5:]]
    assert int(answer.headers["content-length"]) == len(answer.body)


def plain_of(response, request=None, meta=None):
    decrypt_body(request or Request("GET", "/v1/a/c/o"), response, meta or body_meta(), fetch)
    return b"".join(iter_body_bytes(response.body))


@pytest.mark.parametrize("content_range", ["", "bytes */4", "bytes x-3/4", "bytes -3/4"])
def test_a_part_that_begins_nowhere_cannot_be_decrypted(content_range):
    response = Response(206, {"content-range": content_range, "content-length": "4"}, b"data")
    with pytest.raises(cipher.CryptoError):
        plain_of(response)


MULTIPART = {"content-type": "multipart/byteranges;boundary=b", "content-range": "bytes 0-1/9"}


def test_parts_that_nobody_asked_for_are_not_decrypted():
    with pytest.raises(cipher.CryptoError):
        plain_of(Response(206, MULTIPART, b"--b\r\n"))


@pytest.mark.parametrize("body", [b"", b"--b\r\n", b"x" * 200_000], ids=["none", "cut", "none of them"])
def test_parts_that_cannot_be_told_apart_break_off(body):
    request = Request("GET", "/v1/a/c/o", {"range": "bytes=0-1,5-6"})
    assert ByteRanges.parse(request.headers["range"]) is not None
    with pytest.raises(BodyError):
        plain_of(Response(206, MULTIPART, body), request)


def test_what_has_no_parts_is_not_read_to_its_end():
    pieces = iter([b"x" * 10_000] * 100)
    request = Request("GET", "/v1/a/c/o", {"range": "bytes=0-1,5-6"})
    with pytest.raises(BodyError):
        plain_of(Response(206, MULTIPART, IterableBody(pieces)), request)
    assert len(list(pieces)) > 90


def test_parts_that_break_off_are_no_whole_answer(front):
    data = bytes(range(256)) * 12
    front("PUT", "/a/c/o", {}, data)
    request = {"range": "bytes=3-9,1000-1040"}
    whole = front("GET", "/a/c/o", request)
    headers = {"content-type": whole.headers["content-type"]}
    with pytest.raises(BodyError, match="broke off"):
        plain_of(Response(206, headers, whole.body[:-60]), Request("GET", "/v1/a/c/o", request))


@pytest.mark.parametrize(
    "changes",
    [
        {"body_key": None},
        {"body_key": {}},
        {"body_key": {"iv": IV}},
        {"body_key": {"iv": IV, "key": b"short"}},
        {"iv": b"short"},
        {"cipher": "ROT13"},
        {"key_id": "text"},
    ],
)
def test_a_key_that_cannot_be_unwrapped_is_told_as_such(changes):
    changes = {name: value for name, value in changes.items() if value is not None}
    meta = body_meta(**changes) if changes else cipher.dump_meta({**META, "iv": IV})
    with pytest.raises((cipher.CryptoError, EncryptionKeysUnavailable)):
        plain_of(Response(200, {}, b"data"), meta=meta)


def test_damaged_crypto_meta_is_an_error_and_no_traceback(front, sim):
    meta = "x-object-sysmeta-crypto-body-meta"
    for text in ("", "x", "%7B%7D", "%7B%22cipher%22%3A+%22AES_CTR_256%22%7D", "[]", "%7B%22iv%22%3A+3%7D"):
        sim("PUT", "/a/c/o", {meta: text or "-"}, b"data")
        answer = front("GET", "/a/c/o")
        assert answer.status == 500
        assert answer.body in (b"Error decrypting header", b"Error decrypting object")


@pytest.mark.parametrize("key_id", ["text", 1, ["path"]])
def test_a_key_id_that_is_none_has_no_key(key_id):
    with pytest.raises(EncryptionKeysUnavailable):
        fetch_stored_keys(fetch, {"key_id": key_id})


# --- headers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quoted", [True, False])
def test_an_etag_stays_quoted_as_it_was(quoted):
    etag = '"stored"' if quoted else "stored"
    headers = {
        "etag": etag,
        fields.SYSMETA_CRYPTO_ETAG: cipher.encrypt_value("plain", OBJECT, KEY_ID),
        fields.SYSMETA_CRYPTO_ETAG_MAC: "m",
        fields.SYSMETA_CRYPTO_BODY_META: body_meta(),
    }
    decrypt_headers(headers, fetch)
    assert headers == {
        "etag": etag.replace("stored", "plain"),
        fields.BACKEND_CRYPTO_CIPHER: cipher.CIPHER_NAME,
    }


def test_metadata_of_an_object_that_was_not_encrypted_stays():
    headers = {"etag": "e", "x-object-meta-a": "1", fields.SYSMETA_UPDATE_OVERRIDE_ETAG: "e; s3_etag=x"}
    before = dict(headers)
    decrypt_headers(headers, fetch)
    assert headers == before


def test_what_a_row_was_to_say_is_plain_again_for_copies_but_a_mere_etag_goes():
    for plain, left in (("e; s3_etag=x", {fields.SYSMETA_UPDATE_OVERRIDE_ETAG: "e; s3_etag=x"}), ("e", {})):
        headers = {fields.SYSMETA_UPDATE_OVERRIDE_ETAG: cipher.encrypt_value(plain, CONTAINER, KEY_ID)}
        decrypt_headers(headers, fetch)
        assert headers == left


@pytest.mark.parametrize("value", ["plain", "%%%; swift_meta=%7B%7D", "", "\xe9; swift_meta="])
def test_metadata_that_is_not_encrypted_under_such_a_name_is_an_error(value):
    headers = {CRYPTO_META_PREFIX + "a": value, fields.TRANSIENT_CRYPTO_META: cipher.dump_meta(META)}
    with pytest.raises(cipher.CryptoError):
        decrypt_headers(headers, fetch)


def test_scripts_may_read_the_metadata_that_was_encrypted():
    headers = {
        CRYPTO_META_PREFIX + "a": cipher.encrypt_value("1", OBJECT),
        fields.TRANSIENT_CRYPTO_META: cipher.dump_meta(META),
    }
    for exposed, after in ((None, None), ("etag", "etag, x-object-meta-a")):
        seen = {**headers, **({"access-control-expose-headers": exposed} if exposed else {})}
        decrypt_headers(seen, fetch)
        assert seen.get("access-control-expose-headers") == after


def test_metadata_without_a_key_id_is_an_error():
    with pytest.raises(cipher.CryptoError):
        decrypt_headers({CRYPTO_META_PREFIX + "a": cipher.encrypt_value("1", OBJECT)}, fetch)


# --- listings -------------------------------------------------------------------------------------------


def test_each_row_is_decrypted_by_itself_and_each_failure_told_once():
    rows = [
        {"name": "good", "hash": cipher.encrypt_value("e", CONTAINER, KEY_ID)},
        {"name": "plain", "hash": "e"},
        {"name": "other", "hash": cipher.encrypt_value("e", CONTAINER, {"path": "/x"})},
        {"name": "other too", "hash": cipher.encrypt_value("e", CONTAINER, {"path": "/x"})},
        {"name": "damaged", "hash": "%%%; swift_meta=x"},
        {"name": "odd", "hash": 5},
        {"subdir": "d/"},
    ]
    response = Response(200, {"content-type": "application/json; charset=utf-8"}, json.dumps(rows).encode())
    told = []
    decrypt_listing(response, fetch, told.append)
    body = response.read_body()
    assert [row.get("hash") for row in json.loads(body)] == [
        "e",
        "e",
        UNKNOWN_HASH,
        UNKNOWN_HASH,
        UNKNOWN_HASH,
        5,
        None,
    ]
    assert len(told) == 2
    assert response.headers["content-length"] == str(len(body))


@pytest.mark.parametrize(("status", "kind"), [(404, "application/json"), (200, "text/plain")])
def test_what_is_no_listing_is_not_touched(status, kind):
    text = b'[{"hash": "x; swift_meta=y"}]'
    response = Response(status, {"content-type": kind}, text)
    decrypt_listing(response, fetch, pytest.fail)
    assert response.read_body() == text
