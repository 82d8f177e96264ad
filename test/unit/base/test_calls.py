"""Calls that somebody else makes."""

import pytest

from swift.base.calls import run_inline


def test_a_call_in_place_gives_its_result():
    assert run_inline(divmod, 7, 2) == (3, 1)


def test_a_call_in_place_raises_its_own_error():
    with pytest.raises(ZeroDivisionError):
        run_inline(divmod, 7, 0)
