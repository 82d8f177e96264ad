"""Driving wrk."""

import shutil

import pytest

from swift.base.errors import ConfigError
from tools.bench.wrk import Load, Measured, check_wrk, run_wrk


def test_a_rate_is_what_was_done_in_the_time():
    assert Measured(500, 2.0, 0, 1, 2, 3, 0).per_second == 250
    assert Measured(0, 0.0, 0, 0, 0, 0, 0).per_second == 0


def test_a_machine_without_wrk_says_what_to_install():
    if shutil.which("wrk") is None:
        with pytest.raises(ConfigError, match="install the system package wrk"):
            check_wrk()
    else:
        check_wrk()


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_an_address_where_nobody_listens_is_bad_all_through():
    try:
        measured = run_wrk("127.0.0.1:9", "token", Load("GET", "/o", 1, 1.0))
    except ConfigError as error:
        assert "wrk failed" in str(error)
    else:
        assert measured.requests == 0
