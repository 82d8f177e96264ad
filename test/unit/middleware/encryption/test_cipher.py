"""Values are encrypted as the peer stores them, and damaged ones are said to be (middleware.md §17.1)."""

import base64
import json
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.middleware.encryption.cipher import (
    IV_BYTES,
    BadCrypto,
    Stream,
    dump,
    is_encrypted_response,
    load,
    mac_of,
    new_iv,
    new_key,
    seal,
    sealed_meta,
    unseal,
)

KEY, IV = bytes(range(32)), bytes(16)


@given(st.binary(max_size=100), st.integers(0, 100), st.integers(0, 5))
def test_a_stream_that_begins_in_the_middle_goes_on_where_the_whole_one_is(data, offset, piece):
    whole = Stream(KEY, IV).update(data)
    stream, rest = Stream(KEY, IV, offset), data[offset:]
    assert stream.update(rest[:piece]) + stream.update(rest[piece:]) == whole[offset:]
    assert Stream(KEY, IV).update(whole) == data


def test_the_counter_begins_anew_after_the_last_one():
    data = bytes(48)
    last = b"\xff" * 16
    assert Stream(KEY, last).update(data)[16:] == Stream(KEY, IV).update(data[16:])
    assert Stream(KEY, last, 16).update(data) == Stream(KEY, IV).update(data)


def test_the_first_block_is_the_standard_s():
    # NIST SP 800-38A, F.5.5: CTR-AES256.Encrypt, block 1.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    assert Stream(key, counter).update(plain).hex() == "601ec313775789a5b7a7f504bbf3d228"


def test_keys_and_beginnings_are_random():
    assert len({new_iv() for _ in range(20)}) == 20
    assert len({new_key() for _ in range(20)}) == 20


@given(st.text(st.characters(max_codepoint=255)))
def test_a_sealed_value_comes_back_and_shows_nothing(value):
    text = seal(value, KEY, {"path": "/a/c"})
    assert is_encrypted_response(text)
    assert text.isascii()
    assert unseal(text, KEY) == value
    assert sealed_meta(text)["key_id"] == {"path": "/a/c"}
    if len(value) > 8:
        assert unseal(text, bytes(32)) != value


def test_bytes_come_back_at_any_depth():
    meta = {"cipher": "AES_CTR_256", "iv": IV, "body_key": {"iv": IV, "key": KEY}, "key_id": {"v": "1"}}
    assert load(dump(meta)) == meta
    assert "%2B" in dump({"iv": b"\xfb" * 16})


def document(**values):
    return quote_plus(json.dumps(values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        document(),
        quote_plus("[]"),
        quote_plus("[" * 100_000),
        document(cipher="AES_CBC"),
        document(cipher="AES_CTR_256", iv="***"),
        document(cipher="AES_CTR_256", iv=7),
        document(cipher="AES_CTR_256", iv=base64.b64encode(bytes(IV_BYTES - 1)).decode()),
        document(cipher="AES_CTR_256", body_key=[]),
        document(cipher="AES_CTR_256", body_key={"key": 1}),
    ],
)
def test_what_was_not_written_here_is_said_to_be_bad(text):
    with pytest.raises(BadCrypto):
        load(text)
    with pytest.raises(BadCrypto):
        sealed_meta(f"AAAA; swift_meta={text}")


@pytest.mark.parametrize("text", ["", "plain", "AAAA; swift_meta=" + document(cipher="AES_CTR_256")])
def test_what_is_not_sealed_is_not_unsealed(text):
    with pytest.raises(BadCrypto):
        unseal(text, KEY)


def test_a_sealed_value_that_is_not_base64_is_bad():
    with pytest.raises(BadCrypto, match="base64"):
        unseal("*" + seal("value", KEY), KEY)


def test_what_stands_for_an_etag_depends_on_etag_and_key():
    assert len({mac_of(key, etag) for key in (KEY, bytes(32)) for etag in ("a", "b")}) == 4
    assert mac_of(KEY, "a") == mac_of(KEY, "a")
