"""Status codes, their reasons and explanations."""

import pytest

from swift.http.response import STATUS, default_body, is_success, reason_phrase
from test.support.checks import every


@every("code", sorted(STATUS))
def test_every_status_has_a_body_that_fits_its_reason(code):
    body = default_body(code, "sda")
    assert body == b"" or body.startswith(f"<html><h1>{reason_phrase(code)}</h1><p>".encode())


def test_a_status_that_nobody_knows_has_neither():
    assert (reason_phrase(799), default_body(799)) == ("Unknown", b"")


def test_a_full_device_is_named():
    assert b"Drive: sdx9<" in default_body(507, "sdx9")


@pytest.mark.parametrize(("code", "good"), [(199, False), (200, True), (299, True), (300, False)])
def test_success_is_2xx(code, good):
    assert is_success(code) is good
