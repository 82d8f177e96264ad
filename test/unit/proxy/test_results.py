"""From many backend answers to the one the client gets."""

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.http.request import Request
from swift.http.response import Response
from swift.proxy.results import (
    best_response,
    client_headers,
    early_refusal,
    has_timestamp,
    put_response,
    with_deletion_time,
)

STAMP = "x-backend-timestamp"


def responses(*statuses):
    return [BackendResponse(status) for status in statuses]


def test_what_belongs_to_a_backends_connection_stays_there():
    headers = {
        "etag": '"e"',
        "connection": "close",
        "x-put-timestamp": "1",
        "content-length": "0",
        "x-object-meta-a": "b",
    }
    assert client_headers(headers) == {"etag": "e", "x-object-meta-a": "b"}


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((201, 201, 201), 201),
        ((201, 201), 201),
        ((201, 503, 503), 503),
        ((404, 404, 201), 404),
        ((201, 404, 503), 503),
        ((), 503),
    ],
)
def test_a_quorum_decides_and_who_does_not_answer_says_503(statuses, status):
    assert best_response(responses(*statuses), 3, 2).status == status


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((201, 201, 409), 201),
        ((201, 409, 409), 202),
        ((201, 409, 503), 202),
        ((409, 409, 409), 202),
        ((201, 503, 503), 503),
        ((503, 503, 409), 503),
    ],
)
def test_nodes_that_have_something_newer_need_not_store_it(statuses, status):
    assert put_response(responses(*statuses), 3, 2).status == status


@pytest.mark.parametrize(
    ("statuses", "headers", "status"),
    [
        ((100, 100), {}, None),
        ((100, 412), {"if-none-match": "*"}, 412),
        ((100, 412), {}, None),
        ((100, 403), {}, 403),
        ((100, 409), {}, 202),
        ((403, 409), {}, 403),
    ],
)
def test_one_node_can_refuse_a_body_before_it_is_sent(statuses, headers, status):
    refused = early_refusal(Request("PUT", "/v1/a/c/o", headers), responses(*statuses))
    assert (None if refused is None else refused.status) == status


@pytest.mark.parametrize(("value", "known"), [(None, False), ("0", False), ("soon", False), ("5", True)])
def test_who_knows_when_it_was_deleted_has_heard_of_it(value, known):
    assert has_timestamp({} if value is None else {STAMP: value}) is known


def test_a_404_says_when_the_entity_was_deleted():
    told = [BackendResponse(404, headers={STAMP: time}) for time in ("5", "soon", "7")] + [
        BackendResponse(404)
    ]
    assert with_deletion_time(Response(404), told).headers[STAMP] == Timestamp(7).internal
    assert STAMP not in with_deletion_time(Response(200), told).headers
    assert STAMP not in with_deletion_time(Response(404), responses(404)).headers
