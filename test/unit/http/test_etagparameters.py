"""Parameters of a row's ETag become keys of the row (swift/http/etagparameters.py)."""

import json

from swift.http.etagparameters import add_etag_parameters, move_etag_parameters_to_rows
from swift.http.response import Response

JSON = {"content-type": "application/json; charset=utf-8"}


def quoted(parameters):
    return {name: f'"{value}"' for name, value in parameters.items()}


def shown(rows, **headers):
    response = Response(200, {**JSON, **headers}, json.dumps(rows).encode())
    move_etag_parameters_to_rows(response, ("slo_etag",), quoted)
    assert response.headers.get("content-length", str(len(response.body))) == str(len(response.body))
    return json.loads(response.body)


def test_a_parameter_becomes_a_key_and_others_stay():
    rows = [{"name": "a", "hash": "m; slo_etag=e"}, {"name": "b", "hash": "m; s3_etag=x; slo_etag=e"}]
    assert shown(rows) == [
        {"name": "a", "hash": "m", "slo_etag": '"e"'},
        {"name": "b", "hash": "m; s3_etag=x", "slo_etag": '"e"'},
    ]


def test_a_name_that_looks_like_a_parameter_is_none():
    rows = [{"name": "x; slo_etag=e", "hash": "m"}, {"subdir": " slo_etag=/"}]
    assert shown(rows) == rows


def test_other_answers_are_left_alone():
    for status, kind, body in (
        (404, "application/json", b"; slo_etag=e"),
        (200, "text/plain", b"m; slo_etag=e"),
        (204, "application/json", b""),
    ):
        response = Response(status, {"content-type": kind}, body)
        move_etag_parameters_to_rows(response, ("slo_etag",), quoted)
        assert response.body == body


def test_parameters_are_added_to_what_other_filters_want():
    assert add_etag_parameters("", "m", {"a": "1", "b": "2"}) == "m; a=1; b=2"
    assert add_etag_parameters("; x=y", "m", {"a": "1"}) == "m; x=y; a=1"
    assert add_etag_parameters("other;x=y", "m", {"a": "1"}) == "other; x=y; a=1"
