"""Filters add metadata to a replicated object after they saw its body (proxy.md §11)."""

import json
from hashlib import md5

import pytest

from swift import green
from swift.http.body import RequestBody
from swift.wire.mime import DocumentBegins, DocumentData, MimeParser
from test.support.sim import node_port

LARGE = b"l" * 200_000
KEY = "swift.callback.update_footers"


def put(sim, body, add, headers=None):
    return sim("PUT", "/a/c/o", headers, body, env={KEY: add})


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_footers_are_stored_on_all_primaries(sim, size):
    body = b"s" * size
    response = put(sim, body, lambda footers: footers.update({"X-Object-Sysmeta-A": "after"}))
    assert (response.status, response.headers["etag"]) == (201, md5(body).hexdigest())
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


def test_container_rows_contain_the_footers(sim):
    def add(footers):
        footers["X-Object-Sysmeta-Container-Update-Override-Etag"] = "secret"

    put(sim, b"x", add)
    assert json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"] == "secret"


def test_the_container_update_of_a_missing_node_contains_the_footers(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", nodes[0], *sim.handoffs("a", "c", "o")):
        response = put(
            sim, b"x", lambda f: f.update({"x-object-sysmeta-container-update-override-etag": "e"})
        )
    assert response.status == 201
    for _ in range(20):
        green.sleep(0)
    for n in sim.primaries("container", "a", "c"):
        others = set(range(1, 7)) - {n}
        with sim.refusing("container", *others):
            assert json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"] == "e"
        sim.clear_node_errors()


def test_a_node_without_footer_support_is_skipped(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.without_footers(nodes[0]):
        assert put(sim, LARGE, lambda f: f.update({"x-object-meta-a": "1"})).status == 201
    assert nodes[0] not in sim.holders()
    assert len(sim.holders()) == 3


def test_the_md5_of_a_large_body_is_computed_once(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.without_md5_trust(nodes[0]):
        assert put(sim, LARGE, lambda f: f.update({"x-object-meta-a": "1"})).status == 201
    assert sim.holders() == sorted(nodes)
    assert sim.nodes_that_trusted_md5() == set(nodes[1:])
    for n in nodes:
        with sim.refusing("object", *(set(nodes) - {n})):
            found = sim("GET", "/a/c/o")
        assert (found.body, found.headers["etag"]) == (LARGE, md5(LARGE).hexdigest())


def test_a_node_that_received_another_body_than_the_footers_vouch_for_stores_nothing(sim):
    nodes = sim.primaries("object", "a", "c", "o")
    sim.faults.garbles.add(node_port("object", nodes[2]))
    assert put(sim, LARGE, lambda f: f.update({"x-object-meta-a": "1"})).status == 201
    assert sim.holders() == sorted(nodes[:2])


# --- a small body: its footers are known before anything is sent -----------------------------------------


def sent_to(sim, number):
    """Return the headers of the PUT that an object server received."""
    return next(h for k, n, m, _path, h in sim.transport.requests if (k, n, m) == ("object", number, "PUT"))


def test_footers_of_a_small_body_are_headers_and_cost_no_round_trip(sim):
    nodes = sim.primaries("object", "a", "c", "o")

    def add(footers):
        footers.update({"X-Object-Sysmeta-A": "after", "Etag": md5(b"x").hexdigest(), "Strange": "no"})

    with sim.without_footers(*nodes):
        assert put(sim, b"x", add, {"etag": "0" * 32}).status == 201
    assert sim.holders() == sorted(nodes)
    for number in nodes:
        headers = sent_to(sim, number)
        assert (headers["x-object-sysmeta-a"], headers["etag"]) == ("after", md5(b"x").hexdigest())
        assert not {"expect", "strange", "transfer-encoding"} & set(headers)


@pytest.mark.parametrize(
    "footers",
    [
        {"x-object-sysmeta-a": "line\nbreak"},
        {"x-object-sysmeta-a": " blank "},
        {"x-object-sysmeta-a_b": "1"},
        {f"x-backend-container-update-override-{n}": "v" * 100 for n in range(50)},
        {f"x-object-meta-{n}": "1" for n in range(91)},
    ],
)
def test_footers_that_headers_cannot_express_are_sent_as_a_document(sim, footers):
    calls = []

    def add(found):
        calls.append(found)
        found.update(footers)

    assert put(sim, b"small", add).status == 201
    assert len(calls) == 1
    assert all("x-backend-obj-metadata-footer" in sent_to(sim, n) for n in sim.holders())
    assert sim("GET", "/a/c/o").body == b"small"


def test_the_callback_sees_the_end_of_a_small_body(sim):
    seen = []

    class Body(RequestBody):
        length = 6
        left = [b"one", b"two"]

        def read(self, _size=-1):
            seen.append("read")
            return self.left.pop(0)

    assert put(sim, Body(), lambda _footers: seen.append("footers")).status == 201
    assert seen == ["read", "read", "footers"]


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_archives_get_footers(make_sim, size):
    sim = make_sim()
    assert sim("PUT", "/a/c", {"x-storage-policy": "ec32"}).status == 201
    body = b"e" * size
    for headers in ({}, {"if-none-match": "*"}):
        sim("DELETE", "/a/c/o")
        response = put(sim, body, lambda f: f.update({"X-Object-Sysmeta-A": "after"}), headers)
        assert (response.status, response.headers["etag"]) == (201, md5(body).hexdigest())
        found = sim("GET", "/a/c/o")
        assert (found.body, found.headers["x-object-sysmeta-a"]) == (body, "after")


def test_conditional_creations_have_footers(sim):
    for size in (5, 200_000):
        sim("DELETE", "/a/c/o")
        body = b"c" * size
        add = {"X-Object-Sysmeta-A": "after"}
        assert put(sim, body, lambda f, add=add: f.update(add), {"if-none-match": "*"}).status == 201
        found = sim("GET", "/a/c/o")
        assert (found.body, found.headers["x-object-sysmeta-a"]) == (body, "after")


def test_the_multipart_documents_follow_the_specification():
    from swift.proxy.obj.commit.framing import MultipartFraming

    documents = MultipartFraming(boundary="B")
    stream = documents.opening + b"data" + documents.closing({"x-object-meta-a": "1"})
    text = b'{"X-Object-Meta-A": "1"}'
    assert stream == (
        b"--B\r\nX-Document: object body\r\n\r\ndata\r\n--B\r\nX-Document: object metadata\r\n"
        b"Content-MD5: " + md5(text).hexdigest().encode() + b"\r\n\r\n" + text + b"\r\n--B--\r\n"
    )
    twice = MultipartFraming(boundary="B", commit=True)
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
