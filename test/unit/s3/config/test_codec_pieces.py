"""Documents of buckets lie in pieces in the metadata of their containers."""

import random
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.s3.auth.session import sysmeta_of
from swift.s3.config.codec import DamagedConfiguration, rules_codec
from swift.s3.errors import S3Error

RULES = rules_codec("rules")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


def noise(size):
    return random.Random(1).randbytes(size).hex()


def unpacked(headers):
    return RULES.unpack_list(RULES.packed(sysmeta_of(headers)))


@given(st.lists(JSON))
def test_a_list_comes_back_as_it_was(items):
    assert unpacked(RULES.encode_json(items)) == items


def test_every_change_sets_all_pieces_so_that_none_of_a_longer_one_stays():
    long, short = RULES.encode_json([noise(8000)]), RULES.encode_json(["x"])
    assert long.keys() == short.keys()
    assert sum(map(bool, long.values())) > 1
    assert unpacked({**long, **short}) == ["x"]
    assert RULES.packed(sysmeta_of({**long, **RULES.encode_json(None)})) == ""


def test_pieces_fit_into_headers_and_there_are_so_many():
    found = RULES.encode_json([noise(8000)])
    assert len(found) == 8
    assert all(len(text) <= 4000 and text.isascii() for text in found.values())
    with pytest.raises(S3Error) as refused:
        RULES.encode_json([noise(40_000)])
    assert refused.value.code == "InvalidRequest"


def test_another_kinds_pieces_are_not_this_ones():
    both = {**RULES.encode_json(["mine"]), **rules_codec("rules2").encode_json(["its"])}
    assert unpacked(both) == ["mine"]


DAMAGED = {
    "no base64": "!",
    "no zlib": "AAAA",
    "not compressed": b64encode(b"[1]").decode(),
    "half a list": b64encode(zlib.compress(b"[1")).decode(),
    "no list": b64encode(zlib.compress(b"{}")).decode(),
    "cut": b64encode(zlib.compress(b"[1]")[:-6]).decode(),
    "bomb": b64encode(zlib.compress(b"[" + b" " * (RULES.bytes_max * 2) + b"]", 9)).decode(),
    "deep": b64encode(zlib.compress(b"[" * 200_000)).decode(),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_list_is_no_list(text):
    assert len(text) < 8 * 4000
    with pytest.raises(DamagedConfiguration) as refused:
        RULES.unpack_list(text)
    assert (refused.value.code, refused.value.status) == ("InternalError", 500)
    assert "rules configuration is damaged" in refused.value.text
