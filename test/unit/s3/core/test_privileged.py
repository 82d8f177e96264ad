"""What the S3 API keeps beside what callers may name: asked with all rights, and never in the access log."""

import json

import pytest

from swift.base.entity import EntityPath
from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.s3.core.errors import S3Error
from swift.s3.core.privileged import PrivilegedRequests

PLACE = EntityPath(".s3", "\x00c", "ü")


class Below:
    """Answers with these statuses in turn, 204 when there are no more."""

    def __init__(self, *statuses, body=b""):
        self.statuses, self.body = list(statuses), body
        self.asked = []

    def handle(self, request):
        data = request.body.read()
        self.asked.append((request, data))
        status = self.statuses.pop(0) if self.statuses else 204
        return Response(200, {}, self.body) if status == 200 else error_response(status)

    @property
    def methods(self):
        return [f"{request.method} {request.raw_path}" for request, _ in self.asked]


def privileged(below):
    sent = {"authorization": "AWS4 secret", "if-match": '"e"', "x-amz-acl": "private"}
    return PrivilegedRequests(below.handle, Request("PUT", "/bucket/key", sent, b"the client's"))


def code_of(call, *args, **more):
    with pytest.raises(S3Error) as refused:
        call(*args, **more)
    return refused.value.code


def test_nothing_of_the_client_is_in_what_is_asked():
    below = Below(201, 201, 200, body=b"[]")
    asking = privileged(below)
    asking.send_change("PUT", PLACE, {"x-a": "1"})
    asking.store(PLACE, b"{}")
    asking.list_names(PLACE._replace(obj=None), prefix="", limit=1)
    for request, data in below.asked:
        assert data in (b"", b"{}")
        assert request.headers.keys().isdisjoint({"authorization", "if-match", "x-amz-acl"})
        assert request.env[environkeys.AUTHORIZE_OVERRIDE] and request.env[environkeys.ACCESS_LOG_MADE]


def test_a_note_may_be_of_what_has_a_reserved_name():
    below = Below(201)
    privileged(below).send_change("PUT", PLACE, {"x-a": "1"})
    [(request, _)] = below.asked
    assert below.methods == ["PUT /v1/.s3/%00c/%C3%BC"]
    assert request.headers["x-a"] == "1" and request.headers["content-length"] == "0"
    assert request.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] == "true"


@pytest.mark.parametrize(
    ("status", "code"), [(403, "AccessDenied"), (404, "ServiceUnavailable"), (503, "ServiceUnavailable")]
)
def test_a_note_that_is_not_taken_is_an_error_unless_it_may_be(status, code):
    assert code_of(privileged(Below(status)).send_change, "POST", PLACE) == code
    privileged(Below(status)).send_change("POST", PLACE, accept=(status,))


def test_what_is_kept_has_its_container_made_once():
    below = Below(404, 201, 201)
    privileged(below).store(PLACE, b"{}")
    assert below.methods == ["PUT /v1/.s3/%00c/%C3%BC", "PUT /v1/.s3/%00c", "PUT /v1/.s3/%00c/%C3%BC"]
    assert [data for _, data in below.asked] == [b"{}", b"", b"{}"]


@pytest.mark.parametrize("statuses", [(503,), (404, 503), (404, 201, 404), (404, 201, 503)])
def test_what_cannot_be_kept_is_not_acknowledged(statuses):
    assert code_of(privileged(Below(*statuses)).store, PLACE, b"{}") == "ServiceUnavailable"


def test_names_are_asked_for_by_a_quoted_prefix():
    below = Below(200, body=json.dumps([{"name": "a&b"}, {"name": "ü"}]).encode())
    assert privileged(below).list_names(PLACE._replace(obj=None), prefix="a&limit=9", limit=2) == ["a&b", "ü"]
    assert below.asked[0][0].params == {"format": "json", "limit": "2", "prefix": "a&limit=9"}


@pytest.mark.parametrize("status", [204, 404, 403, 503])
def test_where_nothing_can_be_listed_there_are_no_names(status):
    assert privileged(Below(status)).list_names(PLACE._replace(obj=None), prefix="", limit=2) == []
