"""Filters add metadata to a replicated object after they saw its body (proxy.md §11)."""

import json
from hashlib import md5

import pytest

from swift import green
from swift.http.body import RequestBody
from swift.wire.mime import DocumentBegins, DocumentData, MimeParser

KEY = "swift.callback.update_footers"


def put(sim, body, add, headers=None):
    return sim("PUT", "/a/c/o", headers, body, env={KEY: add})


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_footers_are_stored_on_all_primaries(sim, size):
    body = b"s" * size
    answer = put(sim, body, lambda footers: footers.update({"X-Object-Sysmeta-A": "after"}))
    assert (answer.status, answer.headers["etag"]) == (201, md5(body).hexdigest())
    assert sim.holders() == sorted(sim.primaries("object", "a", "c", "o"))
    found = sim("GET", "/a/c/o")
    assert (found.body, found.headers["x-object-sysmeta-a"]) == (body, "after")


def test_the_callback_is_called_once_and_after_the_body_was_read(sim):
    seen = []

    class Body(RequestBody):
        length = None
        left = [b"one", b"two", b""]

        def read(self, _size=-1):
            seen.append("read")
            return self.left.pop(0)

    put(sim, Body(), lambda _footers: seen.append("footers"), {"transfer-encoding": "chunked"})
    assert seen == ["read", "read", "read", "footers"]


def test_a_footer_wins_over_the_header_of_its_name(sim):
    put(sim, b"x", lambda f: f.update({"x-object-meta-a": "footer"}), {"x-object-meta-a": "header"})
    assert sim("HEAD", "/a/c/o").headers["x-object-meta-a"] == "footer"


def test_footers_that_are_not_ascii_come_back_as_they_were_sent(sim):
    value = "gr\u00fc\u00df".encode().decode("latin-1")
    put(sim, b"x", lambda f: f.update({"x-object-meta-a": value}), {"x-object-meta-b": value})
    headers = sim("HEAD", "/a/c/o").headers
    assert headers["x-object-meta-a"] == headers["x-object-meta-b"] == value


def test_an_etag_in_the_footers_must_be_that_of_the_body(sim):
    assert put(sim, b"x", lambda f: f.update({"Etag": "0" * 32})).status == 422
    assert sim.holders() == []


def test_containers_hear_what_the_footers_say(sim):
    def add(footers):
        footers["X-Object-Sysmeta-Container-Update-Override-Etag"] = "secret"

    put(sim, b"x", add)
    assert json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"] == "secret"


def test_the_share_of_a_missing_node_hears_of_it_too(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", nodes[0], *sim.handoffs("a", "c", "o")):
        answer = put(sim, b"x", lambda f: f.update({"x-object-sysmeta-container-update-override-etag": "e"}))
    assert answer.status == 201
    for _ in range(20):
        green.sleep(0)
    for n in sim.primaries("container", "a", "c"):
        others = set(range(1, 7)) - {n}
        with sim.refusing("container", *others):
            assert json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"] == "e"
        sim.forgive()


def test_a_node_that_takes_no_footers_is_passed_over(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.without_footers(nodes[0]):
        assert put(sim, b"x", lambda f: f.update({"x-object-meta-a": "1"})).status == 201
    assert nodes[0] not in sim.holders()
    assert len(sim.holders()) == 3


def test_the_documents_are_those_of_the_spec():
    from swift.proxy.obj.documents import Documents

    documents = Documents(boundary="B")
    stream = documents.opening + b"data" + documents.closing({"x-object-meta-a": "1"})
    text = b'{"X-Object-Meta-A": "1"}'
    assert stream == (
        b"--B\r\nX-Document: object body\r\n\r\ndata\r\n--B\r\nX-Document: object metadata\r\n"
        b"Content-MD5: " + md5(text).hexdigest().encode() + b"\r\n\r\n" + text + b"\r\n--B--\r\n"
    )
    twice = Documents(boundary="B", commit=True)
    first = twice.opening + twice.closing({})
    assert first.endswith(b"\r\n{}\r\n--B\r\n")
    assert twice.confirmation == b"X-Document: put commit\r\n\r\nput_commit_confirmation\r\n--B--"
    events = MimeParser("B").feed(first + twice.confirmation)
    assert [e.headers["x-document"] for e in events if isinstance(e, DocumentBegins)] == [
        "object body",
        "object metadata",
        "put commit",
    ]
    assert [e.data for e in events if isinstance(e, DocumentData)] == [b"{}", b"put_commit_confirmation"]
