"""Conversations that go wrong: nothing partial stays, nothing is held on to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from swift.base.timestamp import Timestamp
from swift.green import Event, spawn_after
from swift.http.body import BodyError, BodyTimeout, ClientDisconnected, RequestBody
from swift.http.request import Request
from swift.http.response import Response
from swift.obj.ssync.receiver import SsyncHead, SsyncReceiver
from swift.wire.ssync import Offer, Subrequest, encode_line, put_subrequest
from test.support.object_servers import BadSector

OPENING = [
    encode_line(":MISSING_CHECK: START"),
    encode_line(":MISSING_CHECK: END"),
    encode_line(":UPDATES: START"),
]


class Script(RequestBody):
    """A request body that gives pieces; an error among them is raised, the end hangs up."""

    length = None

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def read(self, _size=-1):
        if not self.pieces:
            raise ClientDisconnected("gone")
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def send_continue(self, headers):
        pass

    def begin_next_body(self):
        pass


def put(name, second, body, **headers):
    metadata = {"Content-Length": str(len(body)), "Content-Type": "t/p", **headers}
    return put_subrequest(f"/a/c/{name}", {**metadata, "X-Timestamp": f"{second:010d}.00000"}).encode() + body


def serve(bench, *pieces, headers=None):
    """Everything the receiver said, and the error that ended it."""
    response = bench.ask("SSYNC", "/sda/1", headers, stream=Script(*pieces))
    assert response.status == 200
    messages = []
    try:
        for piece in response.body:
            messages.append(piece)
    except BodyError as error:
        return b"".join(messages), error
    return b"".join(messages), None


def test_objects_arrive_with_all_their_metadata(bench):
    headers = {"X-Object-Meta-A": "1", "X-Object-Sysmeta-B": "2", "X-Delete-At": "0000000001"}
    said, error = serve(bench, *OPENING, put("o", 5, b"body", **headers), encode_line(":UPDATES: END"), b"")
    assert error is None
    assert said.endswith(encode_line(":UPDATES: START") + encode_line(":UPDATES: END"))
    response = bench.ask("GET", "/sda/1/a/c/o", {"x-backend-open-expired": "true"})
    assert response.read_body() == b"body"
    assert response.headers["x-object-sysmeta-b"] == "2"
    assert response.headers["x-delete-at"] == "0000000001"
    assert response.headers["x-backend-timestamp"] == "0000000005.00000"
    assert bench.pendings() == []


@pytest.mark.parametrize("size", [100, 600_000])
def test_a_sender_that_hangs_up_inside_a_body_leaves_nothing_of_it(bench, size):
    whole, torn = put("whole", 5, b"w"), put("torn", 6, b"x" * size)
    said, error = serve(bench, *OPENING, whole, torn[: -size // 2])
    assert isinstance(error, ClientDisconnected)
    assert b"ERROR" not in said
    assert bench.files() == [".lock-replication", "0000000005.00000.data"]
    assert bench.ask("GET", "/sda/1/a/c/torn").status == 404


def test_silence_inside_a_body_is_told_and_ends_the_conversation(bench):
    said, error = serve(bench, *OPENING, put("o", 5, b"xyz")[:-1], BodyTimeout("nothing came"))
    assert said.endswith(b":ERROR: 408 'nothing came'\n")
    assert error is not None
    assert bench.ask("GET", "/sda/1/a/c/o").status == 404


def test_the_place_and_the_locks_are_free_after_any_end(make_bench):
    bench = make_bench(replication_concurrency=1, replication_lock_timeout=0)
    for pieces in ([], [b"nonsense\r\n"], [*OPENING, b"GET /a/c/o\r\n\r\n"]):
        said, _error = serve(bench, *pieces)
        assert b"503" not in said
        assert b"seconds" not in said
    said, error = serve(bench, *OPENING, encode_line(":UPDATES: END"), b"")
    assert error is None


def test_a_conversation_that_nobody_reads_gives_back_what_it_holds(make_bench):
    bench = make_bench(replication_concurrency=1, replication_lock_timeout=0)
    response = bench.ask("SSYNC", "/sda/1", stream=Script(*OPENING))
    pieces = iter(response.body)
    next(pieces), next(pieces)
    assert b":ERROR: 503 'busy: as many are under way as replication_concurrency allows'" in serve(bench)[0]
    response.discard()
    assert b"503" not in serve(bench)[0]


def test_a_second_conversation_waits_for_the_partition_and_then_for_the_device(make_bench):
    bench = make_bench(replication_lock_timeout=0)
    response = bench.ask("SSYNC", "/sda/1", stream=Script(*OPENING))
    pieces = iter(response.body)
    next(pieces), next(pieces)
    assert b".lock-replication'" in serve(bench)[0]
    other = bench.ask("SSYNC", "/sda/2", stream=Script(*OPENING))
    assert b"/sda/.lock'" in b"".join(piece for piece in _until_error(other))
    response.discard()


def _until_error(response):
    try:
        yield from response.body
    except BodyError:
        return


def test_failed_updates_are_counted_and_their_bodies_skipped(bench):
    bench.ask("PUT", "/sda/1/a/c/o", {"x-timestamp": "0000000009.00000"}, b"newer")
    said, error = serve(
        bench,
        *OPENING,
        put("o", 5, b"older, refused with 409"),
        put("p", 5, b"fine"),
        encode_line(":UPDATES: END"),
    )
    assert said.endswith(b":ERROR: 500 b'ERROR: With :UPDATES: 1 failures to 1 successes'\n")
    assert error is not None
    assert bench.ask("GET", "/sda/1/a/c/p").read_body() == b"fine"
    assert bench.ask("GET", "/sda/1/a/c/o").read_body() == b"newer"


def test_too_many_failures_end_the_conversation_at_once(make_bench):
    bench = make_bench(replication_failure_threshold=2)
    bench.ask("PUT", "/sda/1/a/c/o", {"x-timestamp": "0000000009.00000"}, b"newer")
    stale = [put("o", second, b"old") for second in (1, 2, 3)]
    said, _error = serve(bench, *OPENING, *stale, encode_line(":UPDATES: END"))
    assert said.endswith(b":ERROR: 0 'Too many 2 failures to 0 successes'\n")


def test_offers_are_compared_with_what_is_here_in_any_number(bench):
    hasher = bench.context.hasher
    offers = []
    for number in range(250):
        name = f"o{number}"
        if number % 2:
            bench.ask("PUT", f"/sda/1/a/c/{name}", {"x-timestamp": "0000000005.00000"}, b"x")
        digest = hasher.hexdigest("a", "c", name)
        offers.append(encode_line(Offer.of(digest, Timestamp("5")).encode()))
    said, _error = serve(
        bench, OPENING[0], *offers, OPENING[1], OPENING[2], encode_line(":UPDATES: END"), b""
    )
    assert said.count(b" dm\r\n") == 125


@pytest.mark.parametrize(("count", "expected"), [(10, 20), (11, 0)])
def test_objects_that_cannot_be_looked_at_are_wanted_unless_they_are_many(bench, count, expected):
    session = SsyncHead("sda", "1", bench.context.policies.default, None)
    context = bench.app._ssync_context(session)
    hashes = [f"{number:032x}" for number in range(20)]
    store = context.store
    for object_hash in hashes[:count]:
        store = BadSector(store, object_hash, looks=True)
    offers = [encode_line(f"{object_hash} 5000000000.00000") for object_hash in hashes]
    request = Request("SSYNC", "/sda/1", {}, Script(OPENING[0], *offers, OPENING[1]))
    messages = []
    with pytest.raises(BodyError):
        messages.extend(SsyncReceiver(request, session, replace(context, store=store)).serve())
    assert b"".join(messages).count(b" dm\r\n") == expected
    assert (b":ERROR: 0 " in b"".join(messages)) is (expected == 0)


def test_what_is_no_hash_never_becomes_a_path(bench):
    for text in ("../../../../etc 5000000000.00000", "F" * 32 + " 5000000000.00000"):
        said, error = serve(bench, OPENING[0], encode_line(text), OPENING[1])
        assert b":ERROR: 0 " in said
        assert error is not None


def test_a_delete_leaves_a_tombstone_and_a_post_metadata(bench):
    bench.ask("PUT", "/sda/1/a/c/o", {"x-timestamp": "0000000005.00000"}, b"x")
    bench.clock.now_s = 100.0
    delete = Subrequest("DELETE", "/a/c/gone", {"x-timestamp": "0000000007.00000"}).encode()
    post = Subrequest("POST", "/a/c/o", {"x-timestamp": "0000000006.00000", "x-object-meta-b": "2"}).encode()
    said, error = serve(bench, *OPENING, delete, post, encode_line(":UPDATES: END"), b"")
    assert error is None, said
    assert bench.ask("HEAD", "/sda/1/a/c/o").headers["x-object-meta-b"] == "2"
    gone = bench.ask("HEAD", "/sda/1/a/c/gone")
    assert gone.headers["x-backend-timestamp"] == "0000000007.00000"


def test_metadata_that_was_left_when_its_data_was_lost_is_no_failure(bench):
    bench.ask("PUT", "/sda/1/a/c/o", {"x-timestamp": "0000000005.00000"}, b"x")
    posted = {"x-timestamp": "0000000006.00000", "x-object-meta-b": "2"}
    bench.ask("POST", "/sda/1/a/c/o", posted)
    next(bench.root.rglob("*.data")).unlink()
    post = Subrequest("POST", "/a/c/o", posted).encode()
    said, error = serve(bench, *OPENING, put("o", 5, b"x"), post, encode_line(":UPDATES: END"), b"")
    assert error is None, said
    assert bench.ask("HEAD", "/sda/1/a/c/o").headers["x-object-meta-b"] == "2"


def test_metadata_that_is_older_than_that_which_is_here_is_a_failure(bench):
    bench.ask("PUT", "/sda/1/a/c/o", {"x-timestamp": "0000000005.00000"}, b"x")
    bench.ask("POST", "/sda/1/a/c/o", {"x-timestamp": "0000000007.00000"})
    post = Subrequest("POST", "/a/c/o", {"x-timestamp": "0000000006.00000", "x-object-meta-b": "2"}).encode()
    said, _error = serve(bench, *OPENING, post, encode_line(":UPDATES: END"), b"")
    assert b"1 failures to 0 successes" in said


def test_ssync_is_a_replication_verb_and_checks_its_path(bench):
    assert bench.ask("SSYNC", "/gone/1").status == 507
    assert bench.ask("SSYNC", "/sda/..").status == 400
    assert bench.ask("SSYNC", "/sda").status == 400
    assert bench.ask("SSYNC", "/sda/1", {"x-backend-ssync-frag-index": "x"}).status == 400
    assert "SSYNC" in bench.app._allow


HOSTILE = [
    put_subrequest(
        "2/a/c/o", {"Content-Length": "1", "Content-Type": "t/p", "X-Timestamp": "0000000005.00000"}
    ),
    put_subrequest("", {"Content-Length": "1", "Content-Type": "t/p", "X-Timestamp": "0000000005.00000"}),
    put_subrequest("/a/c", {"Content-Length": "1", "Content-Type": "t/p", "X-Timestamp": "0000000005.00000"}),
]


@pytest.mark.parametrize("subrequest", HOSTILE, ids=lambda subrequest: subrequest.path or "none")
def test_a_subrequest_cannot_leave_the_locked_partition(bench, subrequest):
    before = set(bench.root.rglob("*"))
    said, _error = serve(
        bench, *OPENING, subrequest.encode() + b"x", put("o", 6, b"y"), encode_line(":UPDATES: END")
    )
    assert b"1 failures to 1 successes" in said
    made = {path.relative_to(bench.root).parts for path in set(bench.root.rglob("*")) - before}
    assert {parts[:3] for parts in made if len(parts) > 2} == {("sda", "objects", "1")}
    assert bench.ask("GET", "/sda/1/a/c/o").read_body() == b"y"


@pytest.mark.parametrize("mark", ["\0", "\r"])
@pytest.mark.parametrize("where", ["name", "value"])
def test_metadata_with_a_nul_or_a_line_break_is_not_stored(bench, mark, where):
    metadata = {f"X-Object-Meta-A{mark}B": "1"} if where == "name" else {"X-Object-Meta-A": f"1{mark}2"}
    times = {"Content-Length": "1", "Content-Type": "t/p", "X-Timestamp": "0000000005.00000"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**times, **metadata}.items())
    bad = f"PUT /a/c/bad\r\n{lines}\r\nx".encode()
    said, _error = serve(bench, *OPENING, bad, put("o", 6, b"y"), encode_line(":UPDATES: END"))
    assert b"1 failures to 1 successes" in said
    assert bench.ask("GET", "/sda/1/a/c/bad").status == 404
    assert bench.ask("GET", "/sda/1/a/c/o").status == 200


def test_an_object_that_arrives_tells_nobody_and_waits_for_nothing(bench):
    headers = {
        "X-Container-Host": "10.0.0.9:6201",
        "X-Container-Device": "sda",
        "X-Container-Partition": "1",
        "X-Delete-At": "9999999999",
        "X-Delete-At-Host": "10.0.0.9:6201",
        "X-Backend-Obj-Metadata-Footer": "yes",
        "X-Backend-Obj-Multipart-Mime-Boundary": "b",
        "If-None-Match": "*",
        "Transfer-Encoding": "chunked",
    }
    _said, error = serve(bench, *OPENING, put("o", 5, b"body", **headers), encode_line(":UPDATES: END"), b"")
    assert error is None
    assert bench.containers.requests == []
    assert bench.pendings() == []
    response = bench.ask("GET", "/sda/1/a/c/o")
    assert (response.status, response.read_body()) == (200, b"body")
    assert "transfer-encoding" not in response.headers


def test_a_length_of_thousands_of_digits_ends_the_conversation_with_a_word(bench):
    head = b"DELETE /a/c/o\r\nContent-Length: " + b"0" * 5000 + b"\r\n\r\n"
    said, error = serve(bench, *OPENING, head)
    assert b":ERROR: 0 " in said
    assert b"malformed content-length" in said
    assert error is not None


# --- an engine that makes changes together ---------------------------------------------------------


class Together:
    """A store that makes three changes together; each waits until ``opened``, or until three are there."""

    capabilities = SimpleNamespace(changes_together=3)

    def __init__(self):
        self.events = []
        self.waiting = 0
        self.opened = Event()

    @contextmanager
    def replication_lock(self, *_args):
        try:
            yield
        finally:
            self.events.append("unlocked")

    def execute(self, request):
        self.events.append(f"began {request.path}")
        self.waiting += 1
        if self.waiting == 3:
            self.opened.set()
        self.opened.wait()
        self.events.append(f"stored {request.path} {request.body.read().decode()}")
        return Response(201)


@pytest.fixture
def together(bench):
    store = Together()

    def serve(*pieces):
        session = SsyncHead("sda", "1", bench.context.policies.default, None)
        request = Request("SSYNC", "/sda/1", {}, Script(*OPENING, *pieces))
        context = replace(bench.app._ssync_context(session), store=store, execute=store.execute)
        try:
            return b"".join(SsyncReceiver(request, session, context).serve())
        except BodyError as error:
            return error

    return SimpleNamespace(serve=serve, store=store)


def test_small_objects_are_stored_together_as_far_as_the_engine_can(together):
    said = together.serve(*(put(name, 5, name.encode()) for name in "abcd"), encode_line(":UPDATES: END"))
    assert said.endswith(b":UPDATES: START\r\n:UPDATES: END\r\n")
    assert together.store.events[:3] == [f"began /sda/1/a/c/{name}" for name in "abc"]
    assert together.store.events[-2:] == ["stored /sda/1/a/c/d d", "unlocked"]


def test_changes_of_one_object_keep_their_order(together):
    together.store.opened.set()
    together.serve(put("a", 5, b"1"), put("b", 5, b"2"), put("a", 6, b"3"), encode_line(":UPDATES: END"))
    events = together.store.events
    again = len(events) - events[::-1].index("began /sda/1/a/c/a") - 1
    assert events.index("stored /sda/1/a/c/a 1") < again < events.index("stored /sda/1/a/c/a 3")


def test_the_lock_is_held_until_all_that_arrived_is_stored(together):
    spawn_after(0.01, together.store.opened.set)
    error = together.serve(put("a", 5, b"1"), put("b", 5, b"2"))
    assert isinstance(error, ClientDisconnected)
    assert together.store.events[-3:] == ["stored /sda/1/a/c/a 1", "stored /sda/1/a/c/b 2", "unlocked"]
