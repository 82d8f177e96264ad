"""Boolean texts of headers and options."""

import pytest

from swift.base.truth import is_true


@pytest.mark.parametrize("text", ["true", "TRUE", " yes ", "1", "on", "t", "y", True])
def test_these_mean_yes(text):
    assert is_true(text)


@pytest.mark.parametrize("text", ["false", "no", "0", "off", "", "truth", "2", None, False, 1])
def test_everything_else_means_no(text):
    assert not is_true(text)
