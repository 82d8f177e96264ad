"""The HTTP server over real sockets: framing, connections, slow and vanishing clients."""

import contextlib
import os
import resource
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from swift import green
from swift.config.kinds import NETWORKS
from swift.http.body import BodyError, ClientDisconnected, FileBody, IterableBody, ResponseBody
from swift.http.response import HTTPError, Response, error_response
from swift.runtime.connection import LINGER_SHORT, LingerLimits
from swift.wire.http1 import HeadLimits
from test.support.stub_servers import HttpClient

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


def await_true(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        green.sleep(0.01)


class Relay(ResponseBody):
    """A relayed body that gives its pieces and then perhaps breaks off."""

    def __init__(self, pieces, length, error=None):
        self.pieces = list(pieces)
        self.length = length
        self.error = error
        self.closed = False

    def read_into(self, buffer):
        if not self.pieces:
            if self.error:
                raise self.error
            return 0
        piece = self.pieces.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self):
        self.closed = True


# --- connections --------------------------------------------------------------------------------------


def test_a_connection_serves_one_request_after_the_other(bench):
    wire = bench.wire()
    for n in range(3):
        answer = wire.ask("GET", f"/{n}")
        assert (answer.status, answer.body, answer.keep_alive) == (200, b"hello", True)
        assert "date" in answer.headers
    assert [r.raw_path for r in bench.requests] == ["/0", "/1", "/2"]
    assert bench.ended == [(5, True)] * 3


def test_pipelined_requests_are_answered_in_order(bench):
    bench.answer = lambda request: Response(200, {}, request.raw_path.encode() + request.body.read())
    wire = bench.wire()
    wire.send(
        b"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        b"PUT /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
        b"GET /c HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert [wire.reply().body for _ in range(3)] == [b"/aabc", b"/bde", b"/c"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", HEAD + b"\r\n"),
        (b"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_a_client_that_sends_without_pause_leaves_others_their_turn(bench, start, more):
    bench.answer = lambda request: Response(200, {}, request.body.read())
    greedy, ended = socket.create_connection(("127.0.0.1", bench.port)), threading.Event()

    def send(until):
        greedy.sendall(start)
        with contextlib.suppress(OSError):
            while time.monotonic() < until and not ended.is_set():
                greedy.sendall(more * 4000)

    def receive():
        with contextlib.suppress(OSError):
            while greedy.recv(1 << 20):
                continue

    # Threads: in a green thread they would wait for the server's.
    threads = [
        threading.Thread(target=send, args=(time.monotonic() + 3.0,)),
        threading.Thread(target=receive),
    ]
    with greedy:
        for thread in threads:
            thread.start()
        await_true(lambda: bench.requests)
        assert bench.wire().ask("GET", "/").status == 200
        is_in_time = threads[0].is_alive()
        ended.set()
        greedy.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(10)
    assert is_in_time


def test_tiny_chunks_are_read_together(bench):
    pieces = []

    def answer(request):
        while piece := request.body.read(65536):
            pieces.append(piece)
        return Response(200)

    bench.answer = answer
    wire = bench.wire()
    wire.send(
        b"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"1\r\nx\r\n" * 3000
        + b"0\r\n\r\n"
    )
    assert wire.reply().status == 200
    assert b"".join(pieces) == b"x" * 3000
    assert len(pieces) < 30


def test_a_pipelined_request_after_an_unread_body_is_not_taken_for_that_body(bench):
    wire = bench.wire()
    wire.send(b"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert [wire.reply().status for _ in range(2)] == [200, 200]
    assert [r.raw_path for r in bench.requests] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\n\r\n", True),
    ],
)
def test_the_client_says_whether_the_connection_goes_on(bench, head, keeps):
    wire = bench.wire()
    wire.send(head)
    answer = wire.reply()
    if keeps:
        assert answer.headers.get("connection") == ("keep-alive" if b"Connection:" in head else None)
        wire.send(head)
        assert wire.reply().status == 200
    else:
        assert answer.headers["connection"] == "close"
        assert wire.rest() == b""


def test_a_response_may_ask_to_end_the_connection(bench):
    def answer(_request):
        response = Response(200, {}, b"x")
        response.close_connection = True
        return response

    bench.answer = answer
    wire = bench.wire()
    assert wire.ask("GET").headers["connection"] == "close"
    assert wire.rest() == b""


def test_no_more_clients_are_served_at_once_than_allowed(make_bench):
    bench = make_bench(max_clients=2, client_timeout_s=5)
    finish = green.Event()

    def answer(_request):
        finish.wait(5)
        return Response(200)

    bench.answer = answer
    first, second = bench.wire(), bench.wire()
    first.send(HEAD + b"\r\n")
    second.send(HEAD + b"\r\n")
    await_true(lambda: len(bench.requests) == 2)
    third = bench.wire()
    third.send(HEAD + b"\r\n")
    assert not third.has_input(0.3)
    finish.set()
    assert [wire.reply().status for wire in (first, second, third)] == [200] * 3


def test_the_longest_idle_client_gives_way_when_all_places_are_taken(make_bench):
    bench = make_bench(max_clients=2, client_timeout_s=5, keepalive_timeout_s=60)
    first, second = bench.wire(), bench.wire()
    assert first.ask("GET").status == second.ask("GET").status == first.ask("GET").status == 200
    assert bench.wire().ask("GET").status == 200
    assert second.rest() == b""
    assert first.ask("GET").status == 200


def test_the_longest_idle_client_gives_way_when_all_descriptors_are_taken(bench):
    idle = bench.wire()
    assert idle.ask("GET", "/idle").status == 200
    newcomer = socket.socket()
    lowest_free = os.dup(newcomer.fileno())
    os.close(lowest_free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        newcomer.connect(("127.0.0.1", bench.port))
        newcomer.setblocking(False)
        assert bench.wire(sock=newcomer).ask("GET", "/new").status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert idle.rest() == b""
    assert "cannot accept a connection: Too many open files" in bench.log.lines


def test_half_sent_heads_of_one_address_shut_nobody_out(make_bench):
    bench = make_bench(max_clients=8, client_timeout_s=60)
    for _ in range(50):
        bench.wire().send(b"GET / HTTP/1.1\r\nHost:")
    started = time.monotonic()
    assert bench.wire().ask("GET").status == 200
    assert time.monotonic() - started < 5


def test_a_client_at_work_never_gives_way(make_bench):
    bench = make_bench(max_clients=4, client_timeout_s=60)
    bench.answer = lambda request: Response(200, {}, request.body.read())
    busy = bench.wire()
    busy.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc")
    await_true(lambda: bench.requests)
    for _ in range(20):
        bench.wire().send(b"G")
    assert bench.wire().ask("GET").status == 200
    busy.send(b"def")
    assert busy.reply().body == b"abcdef"


def test_an_idle_connection_ends_after_its_timeout(make_bench):
    bench = make_bench(client_timeout_s=5, keepalive_timeout_s=0.2)
    wire = bench.wire()
    wire.ask("GET")
    started = time.monotonic()
    assert wire.rest() == b""
    assert time.monotonic() - started < 2


# --- requests -----------------------------------------------------------------------------------------


def test_a_slow_head_is_answered_with_408(make_bench):
    bench = make_bench(client_timeout_s=0.2)
    wire = bench.wire()
    wire.send(b"GET / HTT")
    assert wire.reply().status == 408
    assert wire.rest() == b""


def test_a_head_that_trickles_does_not_hold_its_place_for_ever(make_bench):
    bench = make_bench(client_timeout_s=0.3)
    wire = bench.wire()
    started = time.monotonic()
    wire.send(b"GET / HTTP/1.1\r\n")
    while not wire.has_input(0.05):
        wire.send(b"X: y\r\n")
        assert time.monotonic() - started < 2
    assert wire.reply().status == 408


def test_empty_lines_before_a_head_do_not_prolong_its_deadline(make_bench):
    bench = make_bench(client_timeout_s=0.3)
    wire = bench.wire()
    started = time.monotonic()
    while not wire.has_input(0.05):
        wire.send(b"\r\n")
        assert time.monotonic() - started < 2
    assert wire.rest() == b""


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\nHost: x\n\n",
        HEAD + b"\n",
        HEAD[:-2] + b"\n\r\n",
        b"GET / HTTP/1.1\nHost:",
    ],
)
def test_a_head_with_bare_line_feeds_is_refused_at_once(make_bench, data):
    bench = make_bench(client_timeout_s=30)
    wire = bench.wire()
    wire.send(data)
    answer = wire.reply()
    assert (answer.status, answer.headers["connection"]) == (400, "close")


def test_every_refusal_of_a_head_says_why(bench):
    for data in (b"nonsense\r\n\r\n", HEAD + b"X: " + b"a" * 70000, HEAD + b"X: a\r\n" * 300 + b"\r\n"):
        wire = bench.wire()
        wire.send(data)
        answer = wire.reply()
        assert answer.status in (400, 431)
        assert answer.body.startswith(b"<html>")


INNER = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [b"%x\n" % (5 + len(INNER)), b"zz\r\n", b"5;a\nb\r\n", b"0" * 20 + b"5\r\n", b"3\r\nabcdef\r\n"],
)
@pytest.mark.parametrize("reads", [1, 3])
def test_what_follows_malformed_framing_is_never_taken_for_a_request(bench, first, reads):
    def answer(request):
        for _ in range(reads):
            # A handler that tries again does not get further either.
            with contextlib.suppress(BodyError):
                request.body.read()
        return Response(400)

    bench.answer = answer
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + first)
    answer = wire.reply()
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    wire.send(b"0\r\n\r\n" + INNER)
    assert wire.rest() == b""
    assert [request.raw_path for request in bench.requests] == ["/"]


def test_malformed_framing_that_nobody_read_ends_the_connection_after_the_answer(bench):
    bench.answer = lambda request: Response(401)
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n" + INNER)
    assert wire.reply().status == 401
    assert wire.rest() == b""
    assert len(bench.requests) == 1


def test_a_chunked_body_of_http_1_0_ends_the_connection(bench):
    bench.answer = lambda request: Response(201, {}, request.body.read())
    wire = bench.wire()
    wire.send(
        b"PUT / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n0\r\n\r\n" + INNER
    )
    answer = wire.reply()
    assert (answer.status, answer.body, answer.headers["connection"]) == (201, b"abc", "close")
    assert wire.rest() == b""
    assert len(bench.requests) == 1


def test_a_client_that_stops_inside_its_body_is_told_to_the_handler(make_bench):
    bench = make_bench(client_timeout_s=0.2)
    seen = []

    def answer(request):
        try:
            request.body.read()
        except BodyError as error:
            seen.append(type(error).__name__)
            raise HTTPError(408)
        return Response(201)

    bench.answer = answer
    bench._handle = None
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    assert wire.reply().status == 408
    assert seen == ["BodyTimeout"]


@pytest.mark.parametrize(
    ("framing", "error", "status"),
    [
        (b"Content-Length: 10\r\n\r\nabc", "ClientDisconnected", 499),
        (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "ClientDisconnected", 499),
        (b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "BadFraming", 400),
    ],
)
def test_a_broken_body_is_an_error_of_the_client(bench, framing, error, status):
    seen = []

    def answer(request):
        try:
            return Response(201, {}, request.body.read())
        except BodyError as problem:
            seen.append(type(problem).__name__)
            raise

    bench.answer = answer
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\n" + framing)
    wire.sock.shutdown(1)
    assert wire.reply().status == status
    assert seen == [error]
    assert bench.log.lines == []


def test_a_handler_reads_in_pieces_of_its_choice(bench):
    def answer(request):
        pieces = []
        while piece := request.body.read(4):
            pieces.append(piece)
        assert all(len(p) <= 4 for p in pieces)
        return Response(200, {}, b"".join(pieces) + b"|%d" % request.body.received)

    bench.answer = answer
    wire = bench.wire()
    assert wire.ask("PUT", body=b"0123456789").body == b"0123456789|10"
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n")
    assert wire.reply().body == b"0123456789|10"


def test_100_continue_is_sent_when_the_body_is_first_read_and_only_then(bench):
    proceed = green.Event()

    def answer(request):
        proceed.wait(5)
        return Response(201, {}, request.body.read())

    bench.answer = answer
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert not wire.has_input(0.1)
    proceed.set()
    assert wire.reply().status == 100
    wire.send(b"abc")
    answer = wire.reply()
    assert (answer.status, answer.body, answer.keep_alive) == (201, b"abc", True)


def test_a_refusal_before_reading_spares_the_client_its_upload(bench):
    bench.answer = lambda request: Response(404)
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    answer = wire.reply()
    assert (answer.status, answer.headers["connection"]) == (404, "close")
    assert wire.rest() == b""


def test_an_unknown_expectation_is_417(bench):
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: cake\r\n\r\n")
    assert wire.reply().status == 417
    assert bench.requests == []


def test_a_handler_may_send_headers_with_100_continue_and_read_a_second_stage(bench):
    def answer(request):
        request.body.send_continue({"x-obj-metadata-footer": "yes"})
        first = request.body.read()
        request.body.send_continue({"x-stage": "2"})
        request.body.begin_next_body()
        return Response(201, {}, first + request.body.read())

    bench.answer = answer
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
    assert wire.reply().headers["x-obj-metadata-footer"] == "yes"
    wire.send(b"3\r\nabc\r\n0\r\n\r\n")
    assert wire.reply().headers["x-stage"] == "2"
    wire.send(b"3\r\ndef\r\n0\r\n\r\n")
    assert wire.reply().body == b"abcdef"


def test_a_short_unread_body_is_dropped_and_the_connection_kept(bench):
    bench.answer = lambda request: Response(401)
    wire = bench.wire()
    for _ in range(2):
        answer = wire.ask("PUT", body=b"x" * 5000)
        assert (answer.status, answer.keep_alive) == (401, True)


@pytest.mark.parametrize("framing", [b"Content-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_refusal_does_not_wait_for_a_slow_upload(bench, framing):
    bench.answer = lambda request: Response(401)
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n")
    assert wire.reply().status == 401


def test_a_long_unread_body_ends_the_connection_after_the_answer(bench):
    bench.answer = lambda request: Response(413)
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 300000)
    answer = wire.reply()
    assert (answer.status, answer.headers["connection"]) == (413, "close")


# --- the rest of a refused upload ---------------------------------------------------------------------

UPLOAD = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"


def refusing(make_bench, **limits):
    """A server that refuses uploads unread, and drops what is sent on within limits."""
    usual = {"total_s": 30.0, "idle_s": 5.0, "bytes_max": 1 << 30}
    bench = make_bench(linger_upload=LingerLimits(**{**usual, **limits}))
    bench.answer = lambda request: Response(403 if request.method == "PUT" else 200)
    return bench


def test_a_client_that_sends_its_whole_body_first_reads_the_answer_afterwards(make_bench):
    wire = refusing(make_bench).wire()
    wire.send(UPLOAD)
    for number in range(100):
        wire.send(b"x" * 1_000_000)
        if number == 50:
            # Longer than the linger of other ends.
            green.sleep(LINGER_SHORT.total_s + 0.1)
    assert wire.reply().status == 403
    assert wire.rest() == b""


def closed_s(wire, pause_s, piece=b"x" * 1000):
    """Send pieces until the server has closed the connection; the seconds that this took."""
    began = time.monotonic()
    wire.send(UPLOAD)
    with contextlib.suppress(OSError):
        while time.monotonic() < began + 20:
            wire.send(piece)
            green.sleep(pause_s)
    return time.monotonic() - began


def test_no_more_bytes_are_dropped_than_allowed(make_bench):
    assert closed_s(refusing(make_bench, bytes_max=1 << 20).wire(), 0, b"x" * 100_000) < 5


def test_a_client_that_trickles_is_dropped_for_no_longer_than_allowed(make_bench):
    assert 0.2 <= closed_s(refusing(make_bench, total_s=0.3).wire(), 0.02) < 5


def test_a_client_that_sends_nothing_more_is_waited_for_as_long_as_allowed(make_bench):
    bench = refusing(make_bench, idle_s=0.1)
    wire = bench.wire()
    wire.send(UPLOAD)
    assert wire.reply().status == 403
    await_true(lambda: not bench.server._connections, 5)


def test_others_are_answered_while_a_body_is_dropped(make_bench):
    bench = refusing(make_bench)
    sender, other = bench.wire(), bench.wire()
    sender.send(UPLOAD)
    sending = green.spawn(closed_s, sender, 0, b"x" * 1_000_000)
    try:
        for _ in range(5):
            assert other.ask("GET").status == 200
    finally:
        sending.kill()


def test_a_dropped_body_gives_way_to_a_newcomer_and_to_the_end_of_the_server(make_bench):
    bench = make_bench(max_clients=1)
    bench.answer = lambda request: Response(403)
    wire = bench.wire()
    wire.send(UPLOAD)
    assert wire.reply().status == 403
    other = bench.wire()
    other.send(UPLOAD)
    assert other.reply().status == 403
    began = time.monotonic()
    bench.server.stop(grace_s=10.0)
    assert time.monotonic() - began < 5


def test_a_client_that_waits_for_100_continue_is_let_go_soon(make_bench):
    bench = refusing(make_bench, idle_s=60.0)
    wire = bench.wire()
    wire.send(UPLOAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    assert wire.reply().status == 403
    await_true(lambda: not bench.server._connections, 5)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 200 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /" + b"a" * 300, 414),
        (HEAD + b"X: " + b"a" * 200 + b"\r\n\r\n", 400),
        (HEAD + b"X: a\r\n" * 20 + b"\r\n", 431),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /  HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"REPLICATE  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ],
)
def test_a_bad_head_is_refused_and_its_connection_ended(make_bench, data, status):
    bench = make_bench(limits=HeadLimits(100, 100, 10), client_timeout_s=2)
    wire = bench.wire()
    wire.send(data)
    answer = wire.reply()
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert wire.rest() == b""
    assert bench.requests == []


# --- responses ----------------------------------------------------------------------------------------


def test_head_has_the_headers_of_get_and_no_body(bench):
    wire = bench.wire()
    answer = wire.ask("HEAD")
    assert (answer.status, answer.headers["content-length"]) == (200, "5")
    assert wire.ask("GET").body == b"hello"


def test_head_of_an_error_has_the_length_of_its_own_text_and_none_of_a_default_one(bench):
    wire = bench.wire()
    bench.answer = lambda request: error_response(412, "Bad URL")
    assert wire.ask("HEAD").headers["content-length"] == "7"
    bench.answer = lambda request: error_response(412)
    assert wire.ask("HEAD").headers["content-length"] == "0"


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_body_never_carry_one(bench, status):
    bench.answer = lambda request: Response(status, {}, b"never")
    wire = bench.wire()
    wire.ask("GET")
    assert wire.ask("GET").status == status


def test_a_body_of_unknown_length_is_chunked_and_empty_pieces_do_not_end_it(bench):
    bench.answer = lambda request: Response(200, {}, IterableBody([b"ab", b"", b"cd"]))
    wire = bench.wire()
    answer = wire.ask("GET")
    assert (answer.body, answer.headers["transfer-encoding"]) == (b"abcd", "chunked")
    assert wire.ask("HEAD").status == 200
    assert bench.ended[0] == (4, True)


def test_an_http_1_0_client_gets_unknown_lengths_until_the_end_of_the_connection(bench):
    bench.answer = lambda request: Response(200, {}, IterableBody([b"ab", b"cd"]))
    wire = bench.wire()
    wire.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    head, _, body = wire.rest().partition(b"\r\n\r\n")
    assert body == b"abcd"
    assert b"chunked" not in head
    assert b"Connection: close" in head


def file_body(path, offset, length, closed):
    fd = os.open(path, os.O_RDONLY)
    return FileBody(fd, offset, length, lambda: (os.close(fd), closed.append(True)))


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_file_range_arrives_and_its_file_is_closed_once(bench, tmp_path, size):
    data = os.urandom(size + 20)
    (tmp_path / "f").write_bytes(data)
    closed = []
    bench.answer = lambda request: Response(200, {}, file_body(tmp_path / "f", 7, size, closed))
    wire = bench.wire()
    assert wire.ask("GET").body == data[7 : size + 7]
    assert wire.ask("HEAD").headers["content-length"] == str(size)
    await_true(lambda: len(bench.ended) == 2)
    assert closed == [True, True]
    assert bench.ended == [(size, True), (0, True)]


def test_a_body_may_mix_bytes_and_file_ranges(bench, tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    closed = []

    def pieces():
        yield b"--b\r\n"
        body = file_body(tmp_path / "f", 2, 3, closed)
        yield body
        body.close()
        yield b"--end"

    wire = bench.wire()
    bench.answer = lambda request: Response(200, {"content-length": "13"}, IterableBody(pieces()))
    assert wire.ask("GET").body == b"--b\r\n234--end"
    bench.answer = lambda request: Response(200, {}, IterableBody(pieces()))
    assert wire.ask("GET").body == b"--b\r\n234--end"
    assert closed == [True, True]


def test_a_relayed_body_is_passed_on_and_closed(bench):
    body = Relay([b"a" * 1000, b"b" * 500], 1500)
    bench.answer = lambda request: Response(200, {"content-length": "1500"}, body)
    wire = bench.wire()
    assert wire.ask("GET").body == b"a" * 1000 + b"b" * 500
    await_true(lambda: body.closed)
    assert bench.ended == [(1500, True)]


@pytest.mark.parametrize(
    "body",
    [
        Relay([b"abc"], 10, BodyError("gone")),
        Relay([b"abc"], 10),
        IterableBody([b"abc"]),
        IterableBody([b"abc" * 10]),
    ],
    ids=["breaks off", "ends early", "too short", "too long"],
)
def test_a_body_that_is_not_as_announced_ends_the_connection(bench, body):
    bench.answer = lambda request: Response(200, {"content-length": "10"}, body)
    wire = bench.wire()
    wire.send(HEAD + b"\r\n" + HEAD + b"\r\n")
    received = wire.rest()
    assert received.count(b"HTTP/1.1") == 1
    assert b"abc" in received
    assert len(received.partition(b"\r\n\r\n")[2]) <= 10
    await_true(lambda: bench.ended)
    assert [complete for _, complete in bench.ended] == [False]


def test_a_client_that_vanishes_inside_the_response_is_reported_as_incomplete(bench):
    def endless():
        while True:
            yield b"x" * 65536
            green.sleep(0)

    bench.answer = lambda request: Response(200, {}, IterableBody(endless()))
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    wire.recv()
    wire.close()
    bench.wires.remove(wire)
    await_true(lambda: bench.ended)
    assert bench.ended[0][1] is False
    assert bench.log.lines == []


def test_a_client_that_takes_nothing_is_given_up(make_bench):
    bench = make_bench(client_timeout_s=0.3)
    bench.answer = lambda request: Response(200, {}, b"x" * 50_000_000)
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    await_true(lambda: bench.ended)
    assert bench.ended[0][1] is False


def test_an_error_of_the_handler_is_a_plain_500_and_logged(bench):
    def answer(_request):
        raise RuntimeError("secret")

    bench.answer = answer
    wire = bench.wire()
    answer = wire.ask("GET")
    assert (answer.status, answer.body) == (500, b"An error occurred")
    assert "secret" in bench.log.lines[0]
    assert answer.keep_alive


def test_an_error_inside_a_body_is_logged_and_ends_the_connection(bench):
    def broken():
        yield b"a"
        raise RuntimeError("inside")

    bench.answer = lambda request: Response(200, {}, IterableBody(broken()))
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    assert wire.rest().endswith(b"1\r\na\r\n")
    assert "inside" in bench.log.lines[0]


def test_a_response_header_whose_name_has_a_line_break_is_never_sent(bench):
    bench.answer = lambda request: Response(200, {"x-a\r\nX-Evil": "1"}, b"x")
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    assert wire.rest() == b""
    assert bench.log.lines


def test_line_breaks_in_a_response_header_s_value_make_no_further_header(bench):
    bench.answer = lambda request: Response(200, {"x-a": "b\r\nX-Evil: 1"}, b"x")
    headers = bench.wire().ask("GET", "/").headers
    assert headers["x-a"] == "b  X-Evil: 1"
    assert "x-evil" not in headers


# --- stopping -----------------------------------------------------------------------------------------


def test_stopping_ends_idle_connections_at_once_and_lets_busy_ones_finish(make_bench):
    bench = make_bench(client_timeout_s=5)
    release = green.Event()
    idle, busy = bench.wire(), bench.wire()
    idle.ask("GET")

    def answer(_request):
        release.wait(5)
        return Response(200, {}, b"done")

    bench.answer = answer
    busy.send(HEAD + b"\r\n")
    await_true(lambda: len(bench.requests) == 2)
    stopping = green.spawn(bench.server.stop, 5.0)
    assert idle.rest() == b""
    assert not stopping.done
    release.set()
    answer = busy.reply()
    assert (answer.body, answer.headers["connection"]) == (b"done", "close")
    stopping.wait()


@pytest.mark.long
def test_stopping_does_not_wait_longer_than_its_grace(make_bench):
    bench = make_bench(client_timeout_s=5)
    bench.answer = lambda request: green.sleep(3) or Response(200)
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    await_true(lambda: bench.requests)
    started = time.monotonic()
    bench.server.stop(0.2)
    assert time.monotonic() - started < 1.5


def test_descriptors_of_hung_up_idle_connections_can_be_used_again_while_stopping(make_bench):
    bench = make_bench(client_timeout_s=5)
    idle = [bench.wire() for _ in range(5)]
    for wire in idle:
        wire.ask("GET")
    green.spawn_detached(bench.server.stop, 2.0)
    for wire in idle:
        assert wire.rest() == b""
    other = make_bench(client_timeout_s=5)
    for _ in range(10):
        assert other.wire().ask("GET").status == 200


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    root = tmp_path_factory.mktemp("tls")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(root / "key"), "-out", str(root / "cert")]
    subprocess.run(["openssl", *command.split(), *files], check=True, capture_output=True)
    return root


def tls_wire(bench, header=b""):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = green.connect("127.0.0.1", bench.port, time.monotonic() + 30)
    plain.send(header)
    sock = context.wrap_socket(plain, do_handshake_on_connect=False)
    while True:
        try:
            sock.do_handshake()
            break
        except ssl.SSLWantReadError:
            green.wait_readable(sock.fileno(), time.monotonic() + 30)
    bench.wires.append(HttpClient(bench.port, sock=sock))
    return bench.wires[-1]


@pytest.mark.process
def test_tls_serves_bytes_files_and_uploads(make_bench, certificate, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    bench = make_bench(tls=context, client_timeout_s=5)
    wire = tls_wire(bench)
    assert wire.ask("GET").body == b"hello"
    assert bench.requests[0].scheme == "https"
    bench.answer = lambda request: Response(201, {}, request.body.read())
    assert wire.ask("PUT", body=b"u" * 40_000).body == b"u" * 40_000
    data = os.urandom(300_000)
    (tmp_path / "f").write_bytes(data)
    bench.answer = lambda request: Response(200, {}, file_body(tmp_path / "f", 0, len(data), []))
    assert wire.ask("GET").body == data


def test_a_load_balancer_reports_the_client_and_its_encryption(make_bench):
    bench = make_bench(require_proxy_protocol=True, client_timeout_s=5)
    wire = bench.wire()
    wire.send(b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n")
    for _ in range(2):
        assert wire.ask("GET").status == 200
    assert [(r.remote_addr, r.remote_port, r.scheme) for r in bench.requests] == [
        ("192.0.2.7", 4711, "https")
    ] * 2
    wire = bench.wire()
    wire.send(b"PROXY UNKNOWN\r\n")
    assert wire.ask("GET").status == 200
    assert (bench.requests[-1].remote_addr, bench.requests[-1].scheme) == ("127.0.0.1", "http")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("192.0.2.7", ("192.0.2.7", "192.0.2.7")),
        ("1.1.1.1, 192.0.2.7", ("192.0.2.7", "192.0.2.7")),
        ("1.1.1.1, 192.0.2.7, 127.0.0.2", ("192.0.2.7", "192.0.2.7")),
        ("[2001:db8::1]:99", ("2001:db8::1", "2001:db8::1")),
        ("192.0.2.7:4711", ("192.0.2.7", "192.0.2.7")),
        ("1.1.1.1, unknown", ("127.0.0.1", None)),
        ("", ("127.0.0.1", None)),
    ],
)
def test_headers_of_a_trusted_load_balancer_report_the_client(make_bench, sent, expected):
    """What stands left of the last address may be the client's invention, and is removed."""
    bench = make_bench(trusted_proxies=NETWORKS.parse("127.0.0.0/8"))
    headers = {"X-Cluster-Client-Ip": "9.9.9.9", "X-Forwarded-Proto": "https", "X-Forwarded-For": sent}
    assert bench.wire().ask("GET", headers=headers).status == 200
    (request,) = bench.requests
    assert (request.remote_addr, request.headers.get("x-forwarded-for")) == expected
    assert request.scheme == "https" and "x-cluster-client-ip" not in request.headers


def test_headers_of_others_report_nothing(make_bench):
    bench = make_bench(trusted_proxies=NETWORKS.parse("10.0.0.1"))
    headers = {
        "X-Forwarded-Proto": "https",
        "X-Forwarded-For": "192.0.2.7",
        "X-Cluster-Client-Ip": "192.0.2.8",
    }
    assert bench.wire().ask("GET", headers=headers).status == 200
    (request,) = bench.requests
    assert (request.remote_addr, request.scheme) == ("127.0.0.1", "http")
    # Logs would name the client by them.
    assert not {name.lower() for name in headers} & set(request.headers)


def test_a_client_that_reaches_a_server_past_its_load_balancer_is_refused(make_bench):
    bench = make_bench(require_proxy_protocol=True, client_timeout_s=5)
    assert bench.wire().ask("GET").status == 400
    assert bench.requests == []


def test_a_load_balancer_that_stops_inside_its_header_holds_no_place(make_bench):
    bench = make_bench(require_proxy_protocol=True, client_timeout_s=0.2, max_clients=1)
    wire = bench.wire()
    wire.send(b"PROXY TCP4 192.0.2.7")
    assert wire.recv() == b""
    wire = bench.wire()
    wire.send(b"PROXY UNKNOWN\r\n")
    assert wire.ask("GET").status == 200


def test_the_header_comes_before_the_encryption(make_bench, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    bench = make_bench(tls=context, require_proxy_protocol=True, client_timeout_s=5)
    assert tls_wire(bench, b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n").ask("GET").status == 200
    assert (bench.requests[-1].remote_addr, bench.requests[-1].scheme) == ("192.0.2.7", "https")


def test_a_client_that_talks_plain_http_to_tls_is_dropped(make_bench, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    bench = make_bench(tls=context, client_timeout_s=1)
    wire = bench.wire()
    wire.send(HEAD + b"\r\n")
    assert b"HTTP/1.1 200" not in wire.rest()
    assert tls_wire(bench).ask("GET").status == 200


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("room", [1, 1000, 1 << 20])
def test_a_handler_may_receive_a_body_into_its_own_buffer(bench, chunked, room):
    sent = bytes(range(256)) * (10 if room == 1 else 2000)

    def answer(request):
        buffer, got = memoryview(bytearray(room)), b""
        while size := request.body.read_into(buffer):
            got += buffer[:size]
        return Response(200, {}, b"same" if got == sent else b"other")

    def answer_and_tell(request):
        response = answer(request)
        response.headers["x-told"] = request.body.trailers.get("x-sum", "nothing")
        return response

    bench.answer = answer_and_tell
    wire = bench.wire()
    head = b"PUT / HTTP/1.1\r\nHost: x\r\n"
    if chunked:
        cut = len(sent) // 3
        wire.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in (sent[:cut], sent[cut:]):
            wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        wire.send(b"0\r\nX-Sum: 7\r\n\r\n")
    else:
        wire.send(head + b"Content-Length: %d\r\n\r\n" % len(sent) + sent)
    reply = wire.reply()
    assert (reply.body, reply.headers["x-told"]) == (b"same", "7" if chunked else "nothing")
    assert wire.ask("PUT", body=b"x").status == 200


def test_a_client_that_vanishes_while_its_body_is_received_into_a_buffer_is_noticed(bench):
    seen = green.Event()
    errors = []

    def answer(request):
        buffer = memoryview(bytearray(1 << 16))
        try:
            while request.body.read_into(buffer):
                continue
        except ClientDisconnected as error:
            errors.append(error)
        seen.set()
        return Response(499)

    bench.answer = answer
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50000)
    wire.close()
    assert seen.wait(time.monotonic() + 30)
    assert len(errors) == 1


# --- relayed bodies -----------------------------------------------------------------------------------


class Backend(ResponseBody):
    """A relayed body that comes from a socket, as a backend's does."""

    def __init__(self, data, *, splices=True, reads_first=0):
        self.length = len(data)
        self.spliced = 0
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        theirs.setblocking(False)
        self._reads_first = reads_first
        if not splices:
            self.splice_into = lambda pipe, size: 0
        self._left = len(data)
        green.spawn_detached(self._feed, theirs, memoryview(data))

    @staticmethod
    def _feed(sock, view):
        while view:
            try:
                view = view[sock.send(view) :]
            except BlockingIOError:
                green.wait_writable(sock.fileno(), time.monotonic() + 10)
        sock.close()

    def read_into(self, buffer):
        while self._left:
            try:
                size = self._ours.recv_into(buffer[: self._reads_first or None])
                self._reads_first = 0
                self._left -= size
                return size
            except BlockingIOError:
                green.wait_readable(self._ours.fileno(), time.monotonic() + 10)
        return 0

    def splice_into(self, pipe, size):
        if self._reads_first or not self._left:
            return 0
        while True:
            try:
                moved = os.splice(self._ours.fileno(), pipe, size, flags=os.SPLICE_F_NONBLOCK)
                break
            except BlockingIOError:
                green.wait_readable(self._ours.fileno(), time.monotonic() + 10)
        self._left -= moved
        self.spliced += moved
        return moved

    def __iter__(self):
        raise AssertionError("was copied piece by piece")

    def close(self):
        self._ours.close()


@pytest.mark.parametrize("size", [1, 200_000, 5_000_000])
@pytest.mark.parametrize("options", [{}, {"splices": False}, {"reads_first": 1}])
def test_a_relayed_body_arrives_whole_whether_it_is_spliced_or_copied(bench, size, options):
    data = os.urandom(size)
    bodies = []

    def answer(request):
        bodies.append(Backend(data, **options))
        return Response(200, {"content-length": str(size)}, bodies[0])

    bench.answer = answer
    wire = bench.wire()
    assert wire.ask("GET").body == data
    assert bench.ended == [(size, True)]
    assert (bodies[0].spliced > 0) == (size > 1_000_000 and not options)


@pytest.mark.parametrize("announced", [4_000_000, 6_000_000])
def test_a_relayed_body_of_another_length_than_announced_ends_the_connection(bench, announced):
    data = os.urandom(5_000_000)
    bench.answer = lambda request: Response(200, {"content-length": str(announced)}, Backend(data))
    wire = bench.wire()
    wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert wire.rest().partition(b"\r\n\r\n")[2] == data[:announced]
    wire.close()
    deadline = time.monotonic() + 30
    while not bench.ended:
        assert time.monotonic() < deadline
        green.sleep(0.01)
    assert bench.ended == [(min(announced, len(data)), False)]


def test_a_client_that_sends_nothing_of_its_body_counts_as_stalled_until_it_goes_on(bench):
    bench.answer = lambda request: Response(200, {}, request.body.read(4) + request.body.read(4))
    wire = bench.wire()
    wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf")
    await_true(lambda: bench.server._connections)
    (connection,) = bench.server._connections
    await_true(lambda: connection.stalled_since and not connection.head_started_at)
    wire.send(b"half")
    assert wire.reply().body == b"halfhalf"
    await_true(lambda: connection.head_started_at)


def test_a_listener_that_the_main_process_has_shut_down_is_no_error(bench):
    bench.wire().send(HEAD + b"\r\n")
    await_true(lambda: bench.requests)
    bench.listener.shutdown(socket.SHUT_RDWR)
    # The error, if there were one, would come with the next two turns of the loop.
    green.sleep(0.15)
    assert bench.log.lines == []
