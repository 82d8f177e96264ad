"""Parameters of a row's ETag become keys of the row (swift/http/rows.py)."""

import json

from swift.http.response import Response
from swift.http.rows import with_row_parameter

JSON = {"content-type": "application/json; charset=utf-8"}


def shown(rows, **headers):
    response = Response(200, {**JSON, **headers}, json.dumps(rows).encode())
    with_row_parameter(response, {"slo_etag": lambda text: f'"{text}"'})
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
        with_row_parameter(response, {"slo_etag": str})
        assert response.body == body
