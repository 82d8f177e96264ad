"""A 202 to the PUT of an object is told as what it means."""

import time
from hashlib import md5

import pytest

from swift.base.timestamp import Timestamp
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http.body import BytesBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response

OWN = b"own bytes"
ETAG = md5(OWN).hexdigest()


class Pipeline:
    """Accepts every PUT with 202; its HEAD says what the newest state is."""

    def __init__(self, head=None, *, status=202, headers=None, reads=0):
        self.head = {} if head is None else head
        self.status, self.headers, self.reads = status, headers or {}, reads
        self.heads = []

    def __call__(self, request):
        if request.method == "HEAD":
            self.heads.append(request)
            return Response(200, dict(self.head))
        request.body.read(self.reads)
        return Response(self.status, dict(self.headers))


def at(off_s, name="x-backend-timestamp"):
    return {name: Timestamp(time.time() + off_s).internal}


def put(pipeline, path="/v1/a/c/o", headers=None, method="PUT"):
    return forward_write(pipeline, Request(method, path, headers or {}, BytesBody(OWN)))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/v1/a/c/o", 201),
        ("PUT", "/v1/a/c/o", 503),
        ("PUT", "/v1/a/c", 202),
        ("POST", "/v1/a/c/o", 202),
    ],
)
def test_other_responses_pass_without_a_question(method, path, status):
    pipeline = Pipeline(status=status)
    assert put(pipeline, path, method=method).status == status
    assert pipeline.heads == []


def test_an_overtaken_write_is_created_with_the_etag_that_the_proxy_knows():
    pipeline = Pipeline(at(-0.01), headers={"etag": "known", "last-modified": "then"})
    response = put(pipeline)
    assert response.status == 201
    assert (response.headers["etag"], response.headers["last-modified"]) == ("known", "then")
    [head] = pipeline.heads
    assert (head.raw_path, head.headers["x-newest"]) == ("/v1/a/c/o", "true")
    assert head.env["swift.authorize"](head) is None and head.env["swift.symlink_override"]


def test_an_unread_body_is_read_for_its_etag():
    assert put(Pipeline(at(-0.01))).headers["etag"] == ETAG
    assert put(Pipeline(at(-0.01)), headers={"etag": f'"{ETAG}"'}).status == 201
    assert put(Pipeline(at(-0.01)), headers={"etag": "0" * 32}).status == 422


def test_an_etag_that_is_not_known_is_never_made_up():
    with pytest.raises(HTTPError) as refused:
        put(Pipeline(at(-0.01), reads=3))
    assert refused.value.response.status == 503


@pytest.mark.parametrize(
    "head",
    [
        at(3600),
        {**at(-5), **at(3600, "x-backend-data-timestamp")},
        {},
        {"x-backend-timestamp": "garbage"},
    ],
    ids=["ahead", "data ahead", "unknown", "garbage"],
)
def test_a_write_behind_a_state_from_the_future_was_not_stored(head):
    with pytest.raises(WriteNotStored) as lost:
        put(Pipeline(head, headers={"etag": ETAG}))
    assert lost.value.response.status == 503
