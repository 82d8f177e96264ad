"""Timestamps: what is written is ASCII and the same however the text was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import OFFSET_MAX, RAW_MAX, InvalidTimestamp, Timestamp


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


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("1700000000.00001", 170000000000001),
        ("+700000000.00001", 70000000000001),
        (" 700000000.00001", 70000000000001),
        ("1700000000.0001e", None),
        ("-700000000.00001", None),
        ("1700000000.0000\xb2", None),
        ("1700000000_00001", 170000000000000),
    ],
)
def test_texts_of_the_usual_length_are_read_like_all_others(text, raw):
    if raw is None:
        with pytest.raises(InvalidTimestamp):
            Timestamp(text)
    else:
        assert Timestamp(text).raw == raw


def test_above_an_offset_is_the_next_one_and_above_the_last_one_the_next_tick():
    stamp = Timestamp("1402464677.04188")
    assert stamp.above(3).short == "1402464677.04188_3"
    assert Timestamp(stamp, offset=OFFSET_MAX - 1).above(1).offset == OFFSET_MAX
    assert Timestamp(stamp, offset=OFFSET_MAX).above(1).internal == "1402464677.04189"
    with pytest.raises(InvalidTimestamp):
        Timestamp.from_raw(RAW_MAX, OFFSET_MAX).above(1)
