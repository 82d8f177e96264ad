"""PUT refuses what it must, stores what it says, and leaves nothing of what it refused."""

from __future__ import annotations

import os
from hashlib import md5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swift.base.checksum import ChunkSums, chunk_size_for
from swift.green import Task, spawn
from swift.http.body import BadFraming, BodyTimeout, BytesBody, ClientDisconnected, RequestBody
from swift.obj.upload import SMALL_BYTES, DraftWriter
from swift.platform.disk import Disk
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.store.handle import OpenDraft
from swift.wire import etagtrailer


class Broken(RequestBody):
    """A body that breaks off after some pieces."""

    def __init__(self, pieces, error, length=None):
        self.length = length
        self._pieces = list(pieces)
        self._error = error

    def read(self, _size=-1):
        if self._pieces:
            return self._pieces.pop(0)
        if isinstance(self._error, Exception):
            raise self._error
        return b""

    def send_continue(self, _headers):
        """Nobody waits."""

    def begin_next_body(self):
        """There is one stage."""


LARGE = SMALL_BYTES + 5
FORBIDDEN = [
    ({"content-length": "x"}, 400),
    ({"content-length": "-1"}, 400),
    ({"content-length": "1" * 30}, 400),
    ({"content-type": ""}, 400),
    ({"content-type": "\xff"}, 400),
    ({"x-delete-at": "x"}, 400),
    ({"x-delete-at": "\u00b2"}, 400),
    ({"x-delete-at": "1"}, 400),
    ({"x-delete-after": "1.5"}, 400),
    ({"x-delete-after": "0"}, 400),
    ({"x-object-meta-a": "v" * 257}, 400),
    ({"x-object-sysmeta-a": "v" * 9000}, 400),
    ({"transfer-encoding": "chunked", "x-backend-obj-content-length": "x"}, 400),
    ({"x-timestamp": "tomorrow"}, 400),
    ({"x-timestamp": "-1"}, 400),
    ({"etag": "0" * 32}, 422),
    ({"x-backend-storage-policy-index": "x"}, 503),
]


@pytest.mark.parametrize(("headers", "status"), FORBIDDEN)
def test_bad_requests_are_refused_and_leave_no_file(bench, headers, status):
    assert bench.ask("PUT", headers=headers, body=b"x").status == status
    assert bench.files() == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sda/1/AUTH_a/c", 400),
        ("/sda/x/AUTH_a/c/o", 400),
        ("/sda/../AUTH_a/c/o", 400),
        ("/../1/AUTH_a/c/o", 400),
        ("/sda/%2E%2E%2F2/AUTH_a/c/o", 400),
        ("/sda%2F..%2Fx/1/AUTH_a/c/o", 400),
        ("/%2E%2E%2Fsda/1/AUTH_a/c/o", 400),
        ("/sd%2F1/AUTH_a/c/o", 507),
        ("/sdb/1/AUTH_a/c/o", 507),
        ("/sda/1/AUTH_a/c/" + "o" * 1025, 400),
        ("/sda/1/AUTH_a/c/%00o", 400),
        ("/sda/1/AUTH_a/c/%ff", 412),
        ("/", 400),
    ],
)
def test_bad_paths_are_refused_and_leave_no_file(bench, path, status):
    assert bench.ask("PUT", path, body=b"x").status == status
    assert bench.files() == []
    assert os.listdir(bench.root) == ["sda"]


@pytest.mark.parametrize("size", [0, 1, SMALL_BYTES, LARGE, (2 << 20) + 3])
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_of_every_size_and_framing_come_back(bench, size, chunked):
    body = os.urandom(size)
    headers = {"transfer-encoding": "chunked"} if chunked else {}
    stream = BytesBody(body, chunked=chunked)
    assert bench.ask("PUT", headers=headers, body=body, stream=stream).status == 201
    response = bench.ask("GET")
    assert response.headers["content-length"] == str(size)
    assert response.read_body() == body


@pytest.mark.parametrize("length", [10, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ClientDisconnected("gone"), 499),
        (BodyTimeout("slow"), 408),
        (BadFraming("bad"), 400),
        (None, 499),
    ],
)
def test_a_body_that_breaks_off_leaves_no_file(bench, length, error, status):
    stream = Broken([b"12345"], error, length)
    response = bench.ask("PUT", headers={"content-length": str(length)}, stream=stream)
    assert response.status == status
    assert bench.files() == []
    assert list((bench.root / "sda").glob("objects/*/*/*")) == []


@pytest.mark.parametrize("announced", [3, LARGE])
def test_more_than_was_announced_is_refused(bench, announced):
    headers = {"transfer-encoding": "chunked", "x-backend-obj-content-length": str(announced)}
    stream = BytesBody(b"x" * (announced + 1), chunked=True)
    assert bench.ask("PUT", headers=headers, stream=stream).status == 499
    assert bench.files() == []


def test_an_endless_body_ends_at_the_largest_size(bench):
    bench.context.limits = type(bench.context.limits)(max_file_size=LARGE)
    stream = BytesBody(b"x" * (2 << 20), chunked=True)
    assert bench.ask("PUT", headers={"transfer-encoding": "chunked"}, stream=stream).status == 413
    assert bench.files() == []


def test_an_upload_that_takes_too_long_is_ended(make_bench):
    bench = make_bench(max_upload_time=0)
    stream = BytesBody(b"x" * LARGE)
    assert bench.ask("PUT", headers={"content-length": str(LARGE)}, stream=stream).status == 408
    assert bench.files() == []


def test_who_expects_a_continue_is_refused_before_the_body(bench):
    bench.ask("PUT", body=b"x")
    stream = Broken([], AssertionError("the body was read"))
    refused = bench.ask(
        "PUT",
        headers={"content-length": "5", "x-timestamp": "1"},
        stream=stream,
        expects_continue=True,
    )
    assert refused.status == 409


class Overtaken(Disk):
    """Lets somebody else write the object as soon as its directory was made."""

    def __init__(self, overtake):
        self.overtake = overtake

    def mkdir(self, path, *more):
        super().mkdir(path, *more)
        if len(os.path.basename(path)) == 32:
            overtake, self.overtake = self.overtake, lambda: None
            overtake()


@pytest.mark.parametrize(("headers", "status"), [({}, 201), ({"if-none-match": "*"}, 412)])
def test_a_new_object_that_another_writer_makes_at_the_same_moment(bench, headers, status):
    older, newer = bench.tick(), bench.tick()
    responses = []
    bench.app._stores.engine(bench.context.policies.default).core.disk = Overtaken(
        lambda: responses.append(bench.ask("PUT", headers={"x-timestamp": newer}, body=b"newer").status)
    )
    responses.append(bench.ask("PUT", headers={"x-timestamp": older, **headers}, body=b"older").status)
    assert responses == [201, status]
    assert bench.ask("HEAD").headers["x-timestamp"] == newer


def test_a_new_object_that_is_stored_twice_at_the_same_moment(bench):
    headers = {"x-timestamp": bench.tick()}
    responses = []
    bench.app._stores.engine(bench.context.policies.default).core.disk = Overtaken(
        lambda: responses.append(bench.ask("PUT", headers=headers, body=b"same").status)
    )
    responses.append(bench.ask("PUT", headers=headers, body=b"same").status)
    assert responses == [201, 409]
    assert bench.ask("GET").status == 200


def test_if_none_match_looks_at_what_is_there(bench):
    star = {"if-none-match": "*"}
    assert bench.ask("PUT", headers=star, body=b"x").status == 201
    etag = bench.ask("HEAD").headers["etag"]
    assert bench.ask("PUT", headers=star, body=b"x").status == 412
    assert bench.ask("PUT", headers={"if-none-match": f'"other", {etag}'}, body=b"x").status == 412
    assert bench.ask("PUT", headers={"if-none-match": '"other"'}, body=b"y").status == 201
    assert bench.ask("DELETE").status == 204
    assert bench.ask("PUT", headers=star, body=b"x").status == 201


def test_an_empty_x_delete_at_means_never(bench):
    assert bench.ask("PUT", headers={"x-delete-at": ""}, body=b"x").status == 201
    assert "x-delete-at" not in bench.ask("GET").headers


def test_replication_may_bring_any_header_but_not_the_body_s_own_facts(bench):
    headers = {"x-backend-replication-headers": "x-static etag content-length x-timestamp", "x-static": "1"}
    assert bench.ask("PUT", headers=headers, body=b"x").status == 201
    (path,) = bench.root.rglob("*.data")
    from swift.platform.disk import Disk
    from swift.store.metadata import read_metadata

    assert list(read_metadata(Disk(), str(path))) == [
        "X-Timestamp",
        "Content-Type",
        "Content-Length",
        "ETag",
        "X-Static",
        "name",
    ]


@pytest.mark.parametrize("index", ["", "6", "-1", "x"])
def test_an_archive_without_a_usable_index_is_refused(bench, index):
    headers = {"x-backend-storage-policy-index": "1", "x-object-sysmeta-ec-frag-index": index}
    assert bench.ask("PUT", headers=headers, body=b"x").status == 400
    assert bench.files() == []


def test_an_archive_is_committed_at_once_unless_told_not_to(bench):
    headers = {"x-backend-storage-policy-index": "1", "x-object-sysmeta-ec-frag-index": "2"}
    assert bench.ask("PUT", headers={**headers, "x-backend-no-commit": "true"}, body=b"x").status == 201
    assert bench.ask("GET", headers={"x-backend-storage-policy-index": "1"}).status == 404
    assert bench.ask("PUT", headers=headers, body=b"x").status == 201
    response = bench.ask("GET", headers={"x-backend-storage-policy-index": "1"})
    assert response.headers["x-backend-fragments"].endswith("[2]}")


_NAMES = st.sampled_from(
    [
        "content-type",
        "etag",
        "if-none-match",
        "x-delete-at",
        "x-delete-after",
        "x-object-meta-a",
        "x-object-manifest",
        "expires",
        "content-encoding",
        "x-backend-replication",
        "x-backend-replication-headers",
        "x-backend-next-part-power",
        "x-backend-ssync-frag-index",
        "x-container-host",
        "x-container-device",
        "x-container-partition",
        "x-delete-at-host",
        "x-delete-at-device",
        "x-delete-at-partition",
        "x-backend-container-path",
        "x-backend-quoted-container-path",
        "x-backend-container-update-override-size",
        "x-timestamp",
        "content-length",
        "range",
        "x-if-delete-at",
        "content-type-timestamp",
        "x-backend-fragment-preferences",
        "x-backend-etag-is-at",
        "if-match",
        "if-modified-since",
        "x-backend-storage-policy-index",
        "x-backend-obj-metadata-footer",
        "x-backend-obj-multipart-mime-boundary",
    ]
)
_VALUES = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=12),
    st.sampled_from(
        ["0", "1", "-1", "*", "true", "9999999999999999999999", "[]", "[1]", '[{"timestamp": 1}]', "a/b"]
    ),
)


@given(
    headers=st.dictionaries(_NAMES, _VALUES, max_size=4),
    verb=st.sampled_from(["PUT", "POST", "DELETE", "GET", "HEAD"]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_header_makes_a_server_error(bench, headers, verb):
    response = bench.ask(verb, headers=headers, body=b"x" if verb == "PUT" else b"")
    assert response.status < 500 or response.status == 503, (verb, headers)
    response.discard()
    assert bench.ask("PUT", headers={"x-timestamp": bench.tick()}, body=b"good").status in (201, 409)


def test_a_writer_abandoned_during_a_write_waits_before_it_lets_go():
    events = []

    class SlowDraft:
        size = 0

        def may_block(self, _size):
            return True

        def write(self, _data):
            from swift.green import sleep

            sleep(0.01)
            events.append("written")

        def discard(self):
            events.append("discarded")

    writer = DraftWriter(OpenDraft(SlowDraft(), lambda function, *args: function(*args)))
    writer.write(b"x")
    task: Task = writer._task
    spawn(lambda: None).wait()
    writer.abandon()
    assert events == []
    task.wait()
    spawn(lambda: None).wait()
    assert events == ["written", "discarded"]


# --- the sender's MD5 (wire.etagtrailer) -----------------------------------------------------------------


class Trailing(BytesBody):
    """A chunked body whose trailers bring the MD5; remembers what it was promised."""

    trailers = {}

    def __init__(self, data, trailers):
        super().__init__(data, chunked=True)
        self.trailers = trailers
        self.promised = None

    def send_continue(self, headers):
        self.promised = headers


OFFER = {"transfer-encoding": "chunked", etagtrailer.OFFER: "crc32"}


def told(body, size=None, etag=None):
    sums = ChunkSums(chunk_size_for(size))
    sums.update(body)
    return etagtrailer.trailers(etag or md5(body).hexdigest(), sums.digest())


@pytest.mark.parametrize("size", [0, 5, LARGE, (2 << 20) + 1])
@pytest.mark.parametrize("announced", [True, False])
def test_the_md5_of_a_sender_is_taken_when_the_same_bytes_arrived(bench, size, announced):
    data = os.urandom(size)
    headers = {**OFFER, "x-backend-obj-content-length": str(size)} if announced else OFFER
    body = Trailing(data, told(data, size if announced else None))
    response = bench.ask("PUT", headers=headers, stream=body, expects_continue=True)
    assert response.status == 201
    assert response.headers["etag"] == f'"{md5(data).hexdigest()}"'
    assert body.promised == {etagtrailer.OFFER: "crc32"}
    assert bench.ask("HEAD").headers["content-length"] == str(size)


@pytest.mark.parametrize(
    ("trailers", "status"),
    [
        (told(b"other bytes"), 422),
        (told(b"body", etag="not an md5"), 422),
        ({}, 499),
        ({etagtrailer.ETAG: md5(b"body").hexdigest()}, 499),
    ],
)
def test_nothing_is_stored_unless_the_trailers_vouch_for_what_arrived(bench, trailers, status):
    body = Trailing(b"body", trailers)
    assert bench.ask("PUT", headers=OFFER, stream=body, expects_continue=True).status == status
    assert bench.files() == []


def test_a_client_etag_that_differs_from_the_sender_md5_is_422(bench):
    body = Trailing(b"body", told(b"body"))
    headers = {**OFFER, "etag": "0" * 32}
    assert bench.ask("PUT", headers=headers, stream=body, expects_continue=True).status == 422
    assert bench.files() == []


def test_an_offer_without_waiting_for_the_answer_is_not_taken(bench):
    body = Trailing(b"body", {})
    assert bench.ask("PUT", headers=OFFER, stream=body).status == 201
    assert body.promised is None


def staged(data, footers, vouched):
    """Head and body of an upload with footers, as a proxy of ours sends it."""
    documents = MultipartFraming(offers_etag=True)
    return documents.headers(len(data)), BytesBody(
        documents.whole(data, {**footers, **vouched}), chunked=True
    )


@pytest.mark.parametrize("size", [0, 5, LARGE, (2 << 20) + 1])
def test_the_md5_of_a_sender_is_taken_from_the_footers(bench, size):
    data = os.urandom(size)
    headers, body = staged(data, {"x-object-sysmeta-a": "b"}, told(data, size))
    response = bench.ask("PUT", headers=headers, stream=body, expects_continue=True)
    assert response.status == 201 and response.headers["etag"] == f'"{md5(data).hexdigest()}"'
    found = bench.ask("HEAD").headers
    assert (found["content-length"], found["x-object-sysmeta-a"]) == (str(size), "b")


@pytest.mark.parametrize(
    ("vouched", "footers", "status"),
    [(told(b"other bytes"), {}, 422), ({}, {}, 499), (told(b"body", 4), {"etag": "0" * 32}, 422)],
)
def test_nothing_is_stored_that_the_footers_do_not_vouch_for(bench, vouched, footers, status):
    headers, body = staged(b"body", footers, vouched)
    assert bench.ask("PUT", headers=headers, stream=body, expects_continue=True).status == status
    assert bench.files() == []
