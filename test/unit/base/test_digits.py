"""Which texts are numbers."""

import pytest

from swift.base.digits import is_digits


@pytest.mark.parametrize("text", ["0", "007", "9" * 20])
def test_ascii_digits_are(text):
    assert is_digits(text)
    int(text)


@pytest.mark.parametrize("text", ["", "\u0665", "\xb2", "+1", "-1", "1_0", " 1", "9" * 21, "9" * 5000])
def test_nothing_else_is(text):
    assert not is_digits(text)
