"""Timestamps: what is written is ASCII and the same however the text was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import RAW_MAX, Timestamp


@given(st.integers(min_value=0, max_value=RAW_MAX), st.integers(min_value=0, max_value=1 << 40))
def test_a_text_read_again_is_written_the_same(raw, offset):
    time = Timestamp.from_raw(raw, offset)
    for text in (time.internal, time.short, time.normal):
        again = Timestamp(text)
        assert again.normal == time.normal == Timestamp.from_raw(again.raw).normal
    assert Timestamp(time.internal) == time


@pytest.mark.parametrize("text", ["\u0661700000000.00000", "1700000000.0000\u0665", "1700000000.5"])
def test_unusual_digits_are_written_as_usual_ones(text):
    time = Timestamp(text)
    assert time.normal.isascii()
    assert time.normal == Timestamp.from_raw(time.raw).normal
