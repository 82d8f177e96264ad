"""Amounts are read as people write them and shown as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.middleware.admission.amounts import format_amount, parse_amount


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (50, 50.0),
        (0.5, 0.5),
        ("50", 50.0),
        ("50 MB", 50e6),
        ("1.5kb", 1500.0),
        ("2 GiB", 2.0 * 1024**3),
        (" 3 TB ", 3e12),
        ("7b", 7.0),
    ],
)
def test_numbers_may_have_units(value, amount):
    assert parse_amount(value) == amount


@pytest.mark.parametrize(
    "value",
    [0, -1, "0", "-5 MB", True, None, [], "", "MB", "5 XB", "1e3", "1,5 MB", "5 MB/s", float("nan"), 1e16,
     float("inf"), "9" * 400, "٣"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_was_said(value):
    with pytest.raises(ValueError, match="must be"):
        parse_amount(value)


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (5, "streams", "5 streams"),
        (12.5, "requests", "12.5 requests/s"),
        (999, "bytes", "999 B/s"),
        (1500, "bytes", "1.5 kB/s"),
        (2e7, "bytes", "20 MB/s"),
        (3e9, "bytes", "3 GB/s"),
    ],
)
def test_amounts_are_shown_in_the_largest_unit_that_fits(amount, resource, text):
    assert format_amount(amount, resource) == text


@given(st.integers(1, 10**6))
def test_what_is_shown_of_bytes_is_read_back(kilobytes):
    text = format_amount(kilobytes * 1000.0, "bytes").removesuffix("/s")
    assert parse_amount(text) == pytest.approx(kilobytes * 1000, rel=1e-3)
