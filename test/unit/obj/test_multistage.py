"""Documents of a multi-stage PUT are received whole, in any pieces (object-server.md §10)."""

import json
import time
from hashlib import md5

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from swift.http.body import ClientDisconnected, RequestBody
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.obj.put import PutPlan
from swift.obj.upload import MimeBody, PutStages, add_footers, parse_stages, receive
from swift.wire import etagtrailer, reservation

MARK = "b" * 16
FOOTERS = {"Etag": '"e"', "X-Object-Meta-A": "1"}
ASK_FOOTERS = {"x-backend-obj-metadata-footer": "yes"}
ASK_COMMIT = {"x-backend-obj-multiphase-commit": "yes"}
LIMIT = 10_000


class IterableBody(RequestBody):
    """A body that comes in pieces of one size."""

    length = None

    def __init__(self, data, piece):
        self._data, self._piece = data, piece

    def read(self, size=-1):
        size = self._piece if size < 0 else min(size, self._piece)
        piece, self._data = self._data[:size], self._data[size:]
        return piece


class Writer:
    """A draft that is written at once."""

    def __init__(self):
        self.data, self.size, self.draft = b"", 0, self

    def write(self, batch):
        self.data += bytes(batch)
        self.size += len(batch)

    def wait(self):
        pass

    def accept_etag(self, etag, sums):
        return (etag, sums) == (md5(self.data).hexdigest(), "sums")


def stream(data, footers=FOOTERS):
    text = json.dumps(footers).encode()
    parts = [b"X-Document: object body\r\n\r\n" + data]
    digest = md5(text).hexdigest().encode()
    parts.append(b"X-Document: object metadata\r\nContent-MD5: " + digest + b"\r\n\r\n" + text)
    return b"".join(b"--%s\r\n%s\r\n" % (MARK.encode(), part) for part in parts) + b"--%s--" % MARK.encode()


def plan_of(size):
    return PutPlan(None, size, "text/plain", {}, None, None, None, False, None, False)


def received(data, size, piece=1 << 16, sent=None, *, etag_follows=False):
    """What is written, and the plan, of a document announced to have ``size`` bytes."""
    stages = PutStages(MARK, footers=True, commit=False, etag_follows=etag_follows)
    body = IterableBody(sent if sent is not None else stream(data), piece)
    documents = MimeBody(body, stages, chunk_bytes=1 << 16, deadline=time.monotonic() + 10)
    writer, plan = Writer(), plan_of(size)
    receive(documents, stages, plan, writer, LIMIT)
    return writer.data, plan


#: Bytes among which beginnings of a delimiter are frequent.
DATA = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n--", MARK.encode(), b"\r\n--" + MARK[:-1].encode(), b"x"])
)


@given(DATA.map(b"".join), st.integers(1, 200))
@example(b"", 1)
@example(b"x" * 9000, 7)
def test_a_document_comes_whole_whether_its_length_is_known_or_not(data, piece):
    # Whoever chooses a boundary takes one that is not in the data.
    assume(b"\r\n--" + MARK.encode() not in data)
    for size in (len(data), None):
        written, plan = received(data, size, piece)
        assert written == data
        assert (plan.etag, plan.copied) == ("e", {"X-Object-Meta-A": "1"})


@given(st.integers(0, 300), st.integers(-300, 300).filter(bool), st.integers(1, 200))
def test_a_document_of_another_length_than_announced_is_refused(length, off, piece):
    if length + off < 0:
        return
    with pytest.raises((ClientDisconnected, HTTPError)):
        received(b"x" * length, length + off, piece)


@given(st.data())
def test_a_document_that_breaks_off_is_refused(data):
    whole = stream(b"x" * 100)
    cut = data.draw(st.integers(0, len(whole) - 3))
    with pytest.raises((ClientDisconnected, HTTPError)):
        received(b"", data.draw(st.sampled_from([100, None])), data.draw(st.integers(1, 50)), whole[:cut])


@pytest.mark.parametrize("size", [LIMIT + 1, None])
def test_more_than_allowed_is_413(size):
    with pytest.raises(HTTPError) as raised:
        received(b"x" * (LIMIT + 1), size)
    assert raised.value.response.status == 413


def test_an_md5_in_the_footers_is_believed_with_the_sums_of_what_arrived():
    vouched = etagtrailer.trailers(md5(b"data").hexdigest(), "sums")
    assert received(b"data", 4, sent=stream(b"data", vouched), etag_follows=True)[0] == b"data"
    with pytest.raises(HTTPError) as raised:
        received(b"dada", 4, sent=stream(b"dada", vouched), etag_follows=True)
    assert raised.value.response.status == 422
    with pytest.raises(ClientDisconnected):
        received(b"data", 4, etag_follows=True)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"7", b'"x"', b"{", b'{"a": 1}', b'{"a": null}', b'{"a": ["x"]}', b"[" * 100_000, b"\xff"],
)
def test_footers_that_are_none_are_400(text):
    digest = md5(text).hexdigest().encode()
    sent = b"--%s\r\nX-Document: object body\r\n\r\n\r\n--%s\r\n" % (MARK.encode(), MARK.encode())
    sent += b"X-Document: object metadata\r\nContent-MD5: %s\r\n\r\n%s\r\n--%s--" % (
        digest,
        text,
        MARK.encode(),
    )
    with pytest.raises(HTTPError) as raised:
        received(b"", 0, sent=sent)
    assert raised.value.response.status == 400


@pytest.mark.parametrize(
    ("headers", "expects", "expected"),
    [
        ({}, True, None),
        (ASK_FOOTERS, True, {"footers"}),
        (ASK_COMMIT, True, {"commit"}),
        ({**ASK_FOOTERS, etagtrailer.OFFER: "crc32"}, True, {"footers", "etag_follows"}),
        ({**ASK_FOOTERS, etagtrailer.OFFER: "crc32"}, False, {"footers"}),
        ({**ASK_FOOTERS, etagtrailer.OFFER: "md5"}, True, {"footers"}),
        ({**ASK_COMMIT, etagtrailer.OFFER: "crc32"}, True, {"commit"}),
        ({**ASK_COMMIT, reservation.OFFER: "yes"}, True, {"commit", "reserve"}),
        ({**ASK_COMMIT, reservation.OFFER: "yes"}, False, {"commit"}),
        ({**ASK_FOOTERS, reservation.OFFER: "yes"}, True, {"footers"}),
    ],
)
def test_the_stages_are_what_the_head_asks_for(headers, expects, expected):
    if headers:
        headers = {**headers, "x-backend-obj-multipart-mime-boundary": MARK}
    request = Request("PUT", "/sda/0/a/c/o", headers)
    request.expects_continue = expects
    stages = parse_stages(request)
    if stages is None:
        assert expected is None
        return
    has = {name for name in ("footers", "commit", "reserve", "etag_follows") if getattr(stages, name)}
    assert has == expected
    said = stages.continue_headers
    assert etagtrailer.is_offered(said) == stages.etag_follows
    assert reservation.is_offered(said) == stages.reserve


def test_stages_without_a_boundary_are_400():
    with pytest.raises(HTTPError) as raised:
        parse_stages(Request("PUT", "/sda/0/a/c/o", {"x-backend-obj-metadata-footer": "yes"}))
    assert raised.value.response.status == 400


def test_footers_win_over_headers_and_may_bring_the_etag():
    plan = plan_of(1)
    plan.copied, plan.etag = {"X-Object-Meta-A": "header"}, "header"
    add_footers(plan, {"x-object-meta-a": "footer", "etag": '"footer"', "strange": "ignored"})
    assert (plan.copied, plan.etag) == ({"X-Object-Meta-A": "footer"}, "footer")
