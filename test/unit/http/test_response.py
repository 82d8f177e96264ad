"""Responses as values, and the one error that carries one."""

import pytest

from swift.http.response import TEXT, HTTPError, Response, error_response


def test_a_response_has_the_reason_of_its_status():
    assert Response(404).reason == "Not Found"
    assert Response(404, reason="Gone fishing").reason == "Gone fishing"
    assert Response(299).reason == "Unknown"


def test_each_response_has_headers_of_its_own():
    first = Response()
    first.headers["x"] = "1"
    assert Response().headers == {}


def test_an_error_explains_itself_in_html():
    response = error_response(507, drive="sdb1")
    assert response.headers["content-type"] == "text/html; charset=UTF-8"
    assert response.read_body().endswith(b"Drive: sdb1</p></html>")


def test_a_text_of_its_own_takes_the_place_of_the_explanation():
    response = error_response(400, "caf\u00e9", {"retry-after": "1"}, content_type=TEXT)
    assert response.read_body() == "caf\u00e9".encode()
    assert response.headers == {"content-type": TEXT, "retry-after": "1"}


def test_undecodable_names_come_back_as_the_bytes_they_were():
    assert error_response(400, "bad \udcff").read_body() == b"bad \xff"


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_explanation_has_no_body(status):
    assert error_response(status).read_body() == b""


def test_an_http_error_reads_as_its_status_and_carries_its_response():
    error = HTTPError(409, "no")
    assert (str(error), error.response.status) == ("409 Conflict", 409)
    response = Response(418, reason="Teapot")
    assert HTTPError.of(response).response is response
    assert str(HTTPError.of(response)) == "418 Teapot"


def test_a_text_with_half_a_surrogate_pair_is_still_an_answer():
    assert error_response(400, "a\ud800b").body == b"a\\ud800b"
    assert error_response(400, "a\udcffb").body == b"a\xffb"
