"""Numbers of quotas: what is one, and when it is exceeded."""

import pytest

from swift.middleware.quota import exceeds_quota, is_valid_quota, parse_quota


@pytest.mark.parametrize("text", ["0", "7", "9" * 256, "007"])
def test_digits_are_a_quota(text):
    assert is_valid_quota(text) and parse_quota(text) == int(text)


@pytest.mark.parametrize("text", ["-1", "+1", "1.5", " 1", "\u0661", "\xb2", "x", "9" * 257])
def test_nothing_else_is(text):
    assert not is_valid_quota(text) and parse_quota(text) is None


def test_an_empty_one_may_be_said_and_is_none():
    assert is_valid_quota("") and parse_quota("") is None and parse_quota(None) is None


@pytest.mark.parametrize(
    ("quota", "used", "more", "is_too_much"),
    [(10, 5, 5, False), (10, 5, 6, True), (0, 0, 0, False), (0, 0, 1, True), (None, 1 << 60, 1, False)],
)
def test_a_quota_may_be_filled_and_not_more(quota, used, more, is_too_much):
    assert exceeds_quota(quota, used, more) is is_too_much
