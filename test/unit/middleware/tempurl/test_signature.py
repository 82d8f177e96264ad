"""Signatures are read strictly, and only a key that is there signs anything (middleware.md §3)."""

import base64
import hmac

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.middleware.tempurl.filter import TempURLSettings
from swift.middleware.tempurl.signature import (
    HEX_LENGTHS,
    Key,
    Signature,
    find_signing_key,
    parse_expiry,
    parse_signature,
)

ALL = tuple(HEX_LENGTHS)
RAW = hmac.new(b"k", b"text", "sha256").digest()
KEY = Key(b"k", EntityPath("a"))


@pytest.mark.parametrize("digest", ALL)
def test_every_digest_is_told_by_its_length_or_by_its_name(digest):
    raw = hmac.new(b"k", b"text", digest).digest()
    wanted = Signature(digest, raw.hex())
    standard = base64.b64encode(raw).decode()
    for text in (
        raw.hex(),
        f"{digest}:{standard}",
        f"{digest}:{standard.rstrip('=')}",
        f"{digest}:{base64.urlsafe_b64encode(raw).decode()}",
    ):
        assert parse_signature(text, ALL) == wanted
        assert parse_signature(text, tuple(set(ALL) - {digest})) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "x",
        RAW.hex().upper(),
        RAW.hex() + "0",
        RAW.hex()[:-1],
        RAW.hex()[:-1] + "\n",
        "sha1:" + base64.b64encode(RAW).decode(),
        "SHA256:" + base64.b64encode(RAW).decode(),
        "md5:" + base64.b64encode(RAW[:16]).decode(),
        "sha256:" + RAW.hex(),
        "sha256:" + base64.b64encode(RAW).decode() + "!",
        "sha256:\xe9",
        "\xe9" * 64,
    ],
)
def test_other_texts_are_no_signatures(text):
    assert parse_signature(text, ALL) is None


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("1795232865", 1795232865),
        ("+5", 5),
        (" 5", 5),
        ("-5", -5),
        ("1_000", 1000),
        ("2999-01-01T00:00:00Z", 32472144000),
        ("2999-01-01", None),
        ("2999-01-01T00:00:00", None),
        ("2999-01-01T00:00:00+00:00", None),
        ("5.0", None),
        ("1e9", None),
        ("", None),
        ("x", None),
        ("9" * 30, None),
        ("9" * 10000, None),
    ],
)
def test_times_are_numbers_or_one_iso_format(text, second):
    assert parse_expiry(text) == second


def test_the_key_that_signed_one_of_the_messages_is_found():
    other = Key(b"other", EntityPath("a", "c"))
    signature = Signature("sha256", RAW.hex())
    assert find_signing_key(signature, [b"no", b"text"], [other, KEY]) is KEY
    assert find_signing_key(signature, [b"text"], [other]) is None
    assert find_signing_key(signature, [], [KEY]) is None


@pytest.mark.parametrize(
    ("text", "digests"), [("sha512 sha1", ("sha1", "sha512")), ("SHA256 md5", ("sha256",))]
)
def test_unknown_digests_are_left_out(text, digests):
    assert TempURLSettings.parse({"allowed_digests": text}).allowed_digests == digests


def test_a_filter_without_any_digest_does_not_start():
    with pytest.raises(ConfigError, match="allowed_digests"):
        TempURLSettings.parse({"allowed_digests": "md5"})
