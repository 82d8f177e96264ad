"""Documents of buckets lie in pieces in the metadata of their containers."""

import json
import random
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http import fields
from swift.s3.config.codec import PIECE_BYTES, PIECES, TEXT_BYTES_MAX, DocumentPieces, document_of
from swift.s3.errors import S3Error

RULES = DocumentPieces("rules")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


def noise(size):
    return random.Random(1).randbytes(size).hex()


@given(JSON.filter(lambda value: value is not None))
def test_a_document_comes_back_as_it_was(document):
    assert document_of(RULES.text_of(RULES.stored(document))) == document


def test_every_change_sets_all_pieces_so_that_none_of_a_longer_one_stays():
    long, short = RULES.stored(noise(8000)), RULES.stored("x")
    assert long.keys() == short.keys()
    assert sum(map(bool, long.values())) > 1
    assert document_of(RULES.text_of({**long, **short})) == "x"
    assert RULES.text_of({**long, **RULES.stored(None)}) == ""


def test_pieces_fit_into_headers_and_there_are_so_many():
    found = RULES.stored(noise(8000))
    assert len(found) == PIECES
    assert all(len(text) <= PIECE_BYTES and text.isascii() for text in found.values())
    with pytest.raises(S3Error) as refused:
        RULES.stored(noise(40_000))
    assert refused.value.code == "InvalidRequest"


def test_another_kinds_pieces_are_not_this_ones():
    both = {**RULES.stored("mine"), **DocumentPieces("rules2").stored("its")}
    assert document_of(RULES.text_of(both)) == "mine"
    cut = {name.removeprefix(fields.CONTAINER_SYSMETA): text for name, text in both.items()}
    assert document_of(RULES.text_in(cut)) == "mine"
    assert RULES.first in cut


@pytest.mark.parametrize(
    "text", ["", "!", "AAAA", b64encode(b"[1]").decode(), b64encode(zlib.compress(b"[1")).decode()]
)
def test_half_a_document_is_none(text):
    assert document_of(text) is None


def test_nothing_that_grows_beyond_bounds_is_unpacked():
    bomb = b64encode(zlib.compress(b"[" + b" " * (TEXT_BYTES_MAX * 2) + b"]", 9)).decode()
    assert len(bomb) < PIECE_BYTES * PIECES
    assert document_of(bomb) is None
    deep = b64encode(zlib.compress(json.dumps("x").encode() + b"[" * 200_000)).decode()
    assert document_of(deep) is None
    assert document_of(b64encode(zlib.compress(b"[" * 200_000)).decode()) is None
