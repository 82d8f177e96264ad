"""RESERVE: a POST or DELETE of an object that is promised to its writer (decision 0011)."""

import pytest

from swift.http.body import ClientDisconnected, RequestBody

BOUNDARY = "b" * 16
HEAD = {
    "x-backend-reserve": "yes",
    "x-backend-obj-multiphase-commit": "yes",
    "x-backend-obj-multipart-mime-boundary": BOUNDARY,
    "transfer-encoding": "chunked",
    "x-backend-reserved-method": "DELETE",
    "if-match": "*",
}
ORDERS = {
    "commit": f"X-Document: put commit\r\n\r\nplease\r\n--{BOUNDARY}--",
    "reserve": f"X-Document: put reserve\r\n\r\nplease\r\n--{BOUNDARY}\r\n",
    "release": f"X-Document: put release\r\n\r\nplease\r\n--{BOUNDARY}\r\n",
}


class Conversation(RequestBody):
    """What a writer says, an order after each 100 Continue but the first; it vanishes when none is left."""

    length = None

    def __init__(self, *orders):
        self._orders = list(orders)
        self._left = [f"--{BOUNDARY}\r\n".encode()]
        self.heard = []

    def read(self, _size=-1):
        return self._left.pop() if self._left else b""

    def send_continue(self, headers):
        self.heard.append(dict(headers))

    def begin_next_body(self):
        if not self._orders:
            raise ClientDisconnected("the writer is gone")
        self._left = [ORDERS[self._orders.pop(0)].encode()]


def reserve(bench, *orders, **headers):
    """The answer, and what was said before it."""
    talk = Conversation(*orders)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    stamp = named.pop("x-timestamp", bench.tick())
    head = {**HEAD, "x-timestamp": stamp, **named}
    return bench.ask("RESERVE", headers=head, body=talk, expects_continue=True), talk.heard


def status(bench):
    return bench.ask("GET").status


@pytest.fixture
def stored(bench):
    """The bench with an object, and when it was written."""
    stamp = bench.tick()
    assert bench.ask("PUT", headers={"x-timestamp": stamp, "etag": ""}, body=b"body").status == 201
    return stamp


def test_a_deletion_is_promised_and_then_done(bench, stored):
    response, received = reserve(bench, "commit")
    assert response.status == 204
    assert [said.get("x-backend-reserved") for said in received] == [None, "yes"]
    assert (received[0]["x-backend-reserve"], received[1]["x-backend-predecessor"]) == ("yes", stored)
    assert status(bench) == 404
    assert list(bench.root.glob("sda/tmp/*")) == []


def test_new_metadata_is_promised_and_then_stored(bench, stored):
    headers = {"x_backend_reserved_method": "POST", "x_object_meta_a": "b"}
    response, _heard = reserve(bench, "commit", **headers)
    assert response.status == 202
    assert bench.ask("HEAD").headers["x-object-meta-a"] == "b"


def test_until_it_is_told_nothing_happens_and_promises_go_back_and_forth(bench, stored):
    response, received = reserve(bench, "release", "reserve", "release", "reserve", "commit")
    assert response.status == 204
    assert [said.get("x-backend-reserved") for said in received] == [None, "yes", None, "yes", None, "yes"]


@pytest.mark.parametrize("orders", [(), ("release",), ("release", "reserve")])
def test_a_writer_that_vanishes_changes_nothing(bench, stored, orders):
    response, _heard = reserve(bench, *orders)
    assert response.status == 499
    assert status(bench) == 200


@pytest.mark.parametrize(
    ("condition", "refused"),
    [
        ({"if_match": "0"}, 412),
        ({"if_none_match": "*"}, 412),
        ({"if_match": "*"}, None),
        ({"x_backend_if_predecessor": "1"}, 412),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_refusal_says_by_which_version(bench, stored, method, condition, refused):
    response, _heard = reserve(bench, "commit", x_backend_reserved_method=method, **condition)
    if refused is None:
        assert response.status in (202, 204)
    else:
        assert (response.status, response.headers["x-backend-predecessor"]) == (refused, stored)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_what_is_not_there_is_refused_by_the_version_that_removed_it(bench, stored, method):
    gone = bench.tick()
    assert bench.ask("DELETE", headers={"x-timestamp": gone}).status == 204
    response, _heard = reserve(bench, "commit", x_backend_reserved_method=method)
    assert (response.status, response.headers["x-backend-predecessor"]) == (404, gone)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_writer_whose_clock_lags_hears_of_what_is_newer(bench, method):
    early, late = bench.tick(), bench.tick()
    assert bench.ask("PUT", headers={"x-timestamp": late}, body=b"body").status == 201
    response, _heard = reserve(bench, "commit", x_timestamp=early, x_backend_reserved_method=method)
    assert (response.status, response.headers["x-backend-timestamp"]) == (409, late)
    assert status(bench) == 200


def test_metadata_is_newer_too(bench, stored):
    early, late = bench.tick(), bench.tick()
    assert bench.ask("POST", headers={"x-timestamp": late, "x-object-meta-a": "late"}).status == 202
    headers = {"x_backend_reserved_method": "POST", "x_object_meta_a": "early", "content_type": "text/new"}
    response, _heard = reserve(bench, "commit", x_timestamp=early, **headers)
    assert (response.status, response.headers["x-backend-timestamp"]) == (409, late)
    assert bench.ask("HEAD").headers["x-object-meta-a"] == "late"


def test_the_object_expirer_means_one_version_only(bench, stored):
    response, _heard = reserve(bench, "commit", x_if_delete_at="5000000001")
    assert response.status == 412
    assert status(bench) == 200


@pytest.mark.parametrize(
    "change",
    [
        {"x-backend-reserved-method": "PUT"},
        {"x-backend-reserved-method": ""},
        {"if-match": None},
        {"x-backend-reserve": None},
        {"x-backend-obj-multiphase-commit": None},
        {"x-backend-obj-multipart-mime-boundary": None},
        {"x-backend-obj-metadata-footer": "yes"},
        {"x-timestamp": None},
        {"x-timestamp": "soon"},
        {"x-backend-if-predecessor": "soon"},
    ],
)
def test_what_is_no_reservation_is_a_client_error_and_changes_nothing(bench, stored, change):
    head = {**HEAD, "x-timestamp": bench.tick()}
    head.update({name: value for name, value in change.items() if value is not None})
    for name in [name for name, value in change.items() if value is None]:
        del head[name]
    talk = Conversation("commit")
    assert bench.ask("RESERVE", headers=head, body=talk, expects_continue=True).status == 400
    assert status(bench) == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE"])
def test_a_writer_that_would_not_hear_of_the_promise_is_refused_at_once(bench, stored, method):
    head = {**HEAD, "x-timestamp": bench.tick(), "x-backend-reserved-method": method}
    talk = Conversation("commit")
    assert bench.ask("RESERVE", headers=head, body=talk).status == 400
    assert talk.heard == []
    assert reserve(bench, "commit")[0].status == 204  # nobody has it
