"""Checksums of the S3 API: their values, how parts make one, and what is no promise."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.s3.core.checksums import (
    ALGORITHMS,
    COMPOSITE,
    FULL_OBJECT,
    decode_checksum,
    encode_checksum,
    find_algorithm,
    parse_declared_checksum,
)
from swift.s3.core.errors import S3Error

#: What the catalogue of parametrised CRCs calls "check", and the standards' own examples.
CHECKS = {
    "CRC32": (b"123456789", "cbf43926"),
    "CRC32C": (b"123456789", "e3069283"),
    "CRC64NVME": (b"123456789", "ae8b14860a799888"),
    "SHA1": (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    "SHA256": (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    "MD5": (b"abc", "900150983cd24fb0d6963f7d28e17f72"),
}
CRCS = [name for name, algorithm in ALGORITHMS.items() if algorithm.polynomial is not None]


def digest_of(name, data):
    running = ALGORITHMS[name].start()
    running.update(data)
    return running.digest()


@pytest.mark.parametrize("name", CHECKS)
def test_each_gives_the_published_value(name):
    data, expected = CHECKS[name]
    assert digest_of(name, data).hex() == expected
    assert len(digest_of(name, b"")) == ALGORITHMS[name].size


@pytest.mark.parametrize("name", CRCS)
@given(pieces=st.lists(st.binary(max_size=200), min_size=1, max_size=5))
def test_crcs_of_parts_make_the_one_of_all_bytes(name, pieces):
    parts = [(digest_of(name, piece), len(piece)) for piece in pieces]
    assert ALGORITHMS[name].combine_parts(parts, FULL_OBJECT) == encode_checksum(
        digest_of(name, b"".join(pieces))
    )


def test_a_composite_one_is_that_of_the_parts_checksums_and_says_how_many():
    one, two = sha256(b"1").digest(), sha256(b"2").digest()
    expected = b64encode(sha256(one + two).digest()).decode() + "-2"
    assert ALGORITHMS["SHA256"].combine_parts([(one, 1), (two, 1)], COMPOSITE) == expected


@pytest.mark.parametrize(
    ("name", "kind"), [("SHA256", FULL_OBJECT), ("MD5", FULL_OBJECT), ("CRC64NVME", COMPOSITE)]
)
def test_what_cannot_be_put_together_so_is_refused(name, kind):
    with pytest.raises(S3Error) as refused:
        ALGORITHMS[name].validate_type(kind)
    assert refused.value.code == "InvalidRequest"


@pytest.mark.parametrize("name", CHECKS)
def test_every_one_is_allowed_in_its_usual_type(name):
    ALGORITHMS[name].validate_type(ALGORITHMS[name].default_type)


@pytest.mark.parametrize("text", ["", "AAAA", "!!!!!!!!", "y/Q5Jg", "y/Q5JgA=", "y/Q5Jg==\n", "é"])
def test_what_is_no_checksum_of_its_kind_is_none(text):
    assert decode_checksum(ALGORITHMS["CRC32"], text) is None


def test_a_checksum_is_read_as_it_is_written():
    assert decode_checksum(ALGORITHMS["CRC32"], "y/Q5Jg==") == bytes.fromhex("cbf43926")


def test_a_header_or_a_trailer_may_promise_one():
    given = parse_declared_checksum(
        {"x-amz-checksum-crc32": " y/Q5Jg== ", "x-amz-sdk-checksum-algorithm": "crc32"}
    )
    assert (given.algorithm.name, given.text) == ("CRC32", "y/Q5Jg==")
    for announced in ("x-amz-checksum-sha256", " x-amz-checksum-sha256 ", "x-amz-checksum-sha256,"):
        later = parse_declared_checksum({"x-amz-trailer": announced, "x-amz-sdk-checksum-algorithm": ""})
        assert (later.algorithm.name, later.text) == ("SHA256", None)
    assert parse_declared_checksum({"x-amz-trailer": ""}) is None
    assert parse_declared_checksum({"x-amz-checksum-type": FULL_OBJECT, "content-md5": "x"}) is None
    assert parse_declared_checksum({"x-amz-trailer": "x-amz-checksum-sha256"}, of_body=False) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-checksum-crc32": "y/Q5Jg==", "x-amz-checksum-sha1": "AAAA"},
        {"x-amz-checksum-crc32": "y/Q5Jg==", "x-amz-trailer": "x-amz-checksum-crc32"},
        {"x-amz-checksum-crc16": "AAA="},
        {"x-amz-checksum-crc32": "AAAA"},
        {"x-amz-checksum-mode": "ENABLED"},
        *({"x-amz-trailer": text} for text in ("x-amz-meta-a", ",", ",x-amz-checksum-crc32", "x-foo,")),
        {"x-amz-trailer": "X-Amz-Checksum-Crc32"},
        {"x-amz-trailer": "x-amz-checksum-crc32,x-amz-checksum-sha1"},
        {"x-amz-checksum-crc32": "y/Q5Jg==", "x-amz-sdk-checksum-algorithm": "SHA1"},
        {"x-amz-trailer": "x-amz-checksum-crc32", "x-amz-sdk-checksum-algorithm": "SHA1"},
        {"x-amz-sdk-checksum-algorithm": "CRC32"},
    ],
)
def test_a_promise_that_contradicts_itself_is_refused(headers):
    with pytest.raises(S3Error) as refused:
        parse_declared_checksum(headers)
    assert refused.value.code == "InvalidRequest"


def test_algorithms_are_known_by_name_in_any_case():
    assert find_algorithm("crc64nvme") is ALGORITHMS["CRC64NVME"]
    with pytest.raises(S3Error):
        find_algorithm("ADLER32")
