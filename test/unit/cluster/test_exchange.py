"""The pooled client against a scripted server: reuse, stale connections, broken answers."""

import itertools
import os
import socket
import threading
import time

import pytest

from swift import green
from swift.cluster.exchange import HttpTransport
from swift.cluster.pool import ConnectionPool
from swift.cluster.serverauth import RefusedByServer, ServerSecrets, Signer
from swift.cluster.transport import (
    BrokenOff,
    MalformedResponse,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    TimedOut,
    TransportError,
)
from swift.http.body import BodyError
from swift.platform import sockets
from swift.telemetry.metrics import Registry
from swift.wire.chunked import ChunkDecoder
from test.support.stub_servers import HttpClient

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request by a script: ``answer(wire, head, number of the connection)``."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = 0
        self.heads = []
        #: A connection was closed by this side.
        self.closed = green.Event()
        self.port = 0
        self.listen()

    def listen(self):
        self.listener = sockets.listen("127.0.0.1", self.port, 16)
        self.port = self.listener.getsockname()[1]
        self.task = green.spawn(self._accept)

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                green.wait_readable(self.listener.fileno())
                continue
            sock.setblocking(False)
            self.connections += 1
            green.spawn_detached(self._converse, HttpClient(self.port, sock=sock), self.connections)

    def _converse(self, wire, number):
        try:
            while True:
                while b"\r\n\r\n" not in wire.buffer:
                    wire._more()
                head, _, wire.buffer = wire.buffer.partition(b"\r\n\r\n")
                self.heads.append(head)
                if self.answer(wire, head, number) is False:
                    return
        except (EOFError, OSError, green.DeadlineExceeded):
            return
        finally:
            wire.close()
            self.closed.set()

    def close(self):
        self.task.kill()
        self.listener.close()


@pytest.fixture
def make_server():
    servers = []

    def make(answer=lambda wire, head, number: wire.send(OK)):
        servers.append(Server(answer))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(params=["unsigned", "signed"])
def transport(request, signer):
    return HttpTransport(ConnectionPool(Registry()), signer if request.param == "signed" else None)


@pytest.fixture
def signer(tmp_path):
    path = tmp_path / "server.secret"
    path.touch(0o600)
    path.write_text(f"1 {'11' * 32}\n")
    return Signer(ServerSecrets(str(path)))


def ask(transport, server, method="GET", body=b"", timeout_s=2.0):
    node, timeouts = NodeAddress("127.0.0.1", server.port), NodeTimeouts(1, timeout_s)
    return transport.request(NodeRequest(node, method, "/sda/1/a", {"x-a": "b"}, body, timeouts))


def begin(transport, server, headers, body=b"", timeout_s=2.0, method="PUT"):
    node, timeouts = NodeAddress("127.0.0.1", server.port), NodeTimeouts(1, timeout_s)
    return transport.stream(NodeRequest(node, method, "/sda/1/a", headers, body, timeouts))


def test_requests_share_a_connection(transport, make_server):
    server = make_server()
    for _ in range(3):
        response = ask(transport, server)
        assert (response.status, response.body) == (200, b"ok")
    assert server.connections == 1
    assert server.heads[0].startswith(b"GET /sda/1/a HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"X-A: b" in server.heads[0]


def test_a_refused_signature_is_no_response(transport, make_server):
    """A 403 that callers took for one about the object would be one to the client."""
    refusal = b"HTTP/1.1 403 Forbidden\r\nX-Backend-Server-Auth: no signature\r\nContent-Length: 2\r\n\r\nno"
    server = make_server(lambda wire, head, number: wire.send(refusal))
    with pytest.raises(RefusedByServer, match=r"response to GET to 127.0.0.1:\d+: refused: no signature"):
        ask(transport, server)
    with pytest.raises(RefusedByServer):
        begin(transport, server, {"transfer-encoding": "chunked", "expect": "100-continue"}).wait_continue()
    with pytest.raises(RefusedByServer):
        begin(transport, server, {"transfer-encoding": "chunked"}).duplex(1.0)
    server = make_server(lambda wire, head, number: wire.send(refusal.replace(b"X-Backend", b"X-Other")))
    assert ask(transport, server).status == 403


def test_a_request_that_is_sent_again_is_signed_anew(make_server, signer):
    """A server that had read the first one would take the second one for a replay."""

    def answer(wire, head, number):
        if number == 1 and len(server.heads) == 2:
            return False
        wire.send(OK)
        return True

    server = make_server(answer)
    transport = HttpTransport(ConnectionPool(Registry()), signer)
    for _ in range(2):
        assert ask(transport, server).status == 200
    assert (server.connections, len(server.heads)) == (2, 3)
    heads = [head.decode().split("\r\n") for head in server.heads]
    signatures = {line for head in heads for line in head if line.startswith("X-Backend-Server-Auth: 1 1 ")}
    assert len(signatures) == 3
    assert heads[1][:-1] == heads[2][:-1]


def test_a_connection_that_the_server_closed_is_replaced_silently(transport, make_server):
    def answer(wire, head, number):
        wire.send(OK)
        return number > 1

    server = make_server(answer)
    ask(transport, server)
    assert server.closed.wait(5)
    assert ask(transport, server, "PUT", b"body").body == b"ok"
    assert server.connections == 2


def test_an_upload_that_expects_100_continue_survives_a_stale_connection_too(transport, make_server):
    def answer(wire, head, number):
        if b"Expect" not in head:
            wire.send(OK)
            return False
        wire.send(b"HTTP/1.1 100 Continue\r\nX-B: c\r\n\r\n")
        while len(wire.buffer) < 3:
            wire._more()
        wire.buffer = b""
        wire.send(OK)
        return True

    server = make_server(answer)
    ask(transport, server)
    assert server.closed.wait(5)
    exchange = begin(transport, server, {"expect": "100-continue", "content-length": "3"})
    assert exchange.wait_continue() is None
    assert exchange.continue_headers["x-b"] == "c"
    exchange.send(b"abc")
    exchange.finish()
    assert exchange.response().status == 200


class ThreadedServer:
    """Says on which of its connections a request came; has nothing to do with this process's event loop."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        for number in itertools.count(1):
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(sock, number), daemon=True).start()

    @staticmethod
    def _converse(sock, number):
        with sock:
            while sock.recv(65536):
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.mark.process
def test_a_connection_is_never_shared_with_a_forked_process(transport):
    server = ThreadedServer()
    assert ask(transport, server).body == b"1"
    pid = os.fork()
    if pid == 0:
        number = 0
        try:
            number = int(ask(transport, server).body)
        finally:
            os._exit(number)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert ask(transport, server).body == b"1"
    server.close()


def test_a_fresh_connection_that_dies_is_an_error_not_a_second_try(transport, make_server):
    server = make_server(lambda wire, head, number: False)
    with pytest.raises(TransportError, match="closed before a response"):
        ask(transport, server)
    assert server.connections == 1


def test_a_body_that_was_already_sent_in_pieces_is_never_sent_again(transport, make_server):
    server = make_server(
        lambda wire, head, number: wire.send(OK) if number == 1 and len(server.heads) == 1 else False
    )
    ask(transport, server)
    exchange = begin(transport, server, {"transfer-encoding": "chunked"})
    with pytest.raises(TransportError):
        exchange.send(b"abc")
        exchange.finish()
        exchange.response()
    assert server.connections == 1


def test_a_framed_body_that_goes_with_its_head_ends_there_and_survives_a_stale_connection(
    transport, make_server
):
    framed = b"4\r\nbody\r\n0\r\n\r\n"
    taken = []

    def answer(wire, head, number):
        if b"chunked" not in head:
            wire.send(OK)
            return False
        while len(wire.buffer) < len(framed):
            wire._more()
        taken.append(wire.buffer)
        wire.buffer = b""
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nX-B: c\r\n\r\n")
        return True

    server = make_server(answer)
    ask(transport, server)
    headers = {"expect": "100-continue", "transfer-encoding": "chunked"}
    exchange = begin(transport, server, headers, body=b"body")
    assert exchange.wait_continue() is None
    assert exchange.wait_continue() is None
    assert (exchange.continue_headers["x-b"], taken, server.connections) == ("c", [framed], 2)
    exchange.abort()


def test_an_early_final_answer_comes_instead_of_100(transport, make_server):
    server = make_server(
        lambda wire, head, number: wire.send(b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")
    )
    exchange = begin(transport, server, {"expect": "100-continue", "content-length": "3"})
    assert exchange.wait_continue().status == 409
    assert exchange.response().status == 409


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_framings_of_answers(transport, make_server, response, body):
    server = make_server(lambda wire, head, number: wire.send(response))
    for _ in range(2):
        assert ask(transport, server).body == body
    assert server.connections == 1


@pytest.mark.parametrize("cut", [0, 1, 4])
def test_a_small_body_is_whole_however_it_came(transport, make_server, cut):
    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + b"body"[:cut])
        green.sleep(0)
        wire.send(b"body"[cut:])

    server = make_server(answer)
    first = begin(transport, server, {}, method="GET").response().stream
    assert (first.length, first.remaining_bytes) == (4, b"body")
    second = begin(transport, server, {}, method="GET").response().stream
    buffer = memoryview(bytearray(3))
    assert (first.read(3), first.read(3), first.read(3)) == (b"bod", b"y", b"")
    assert (second.read_into(buffer), bytes(buffer), b"".join(second), b"".join(second)) == (
        3,
        b"bod",
        b"y",
        b"",
    )
    assert server.connections == 1


def test_a_server_that_says_close_is_not_asked_on_that_connection_again(transport, make_server):
    for text in (b"Content-Length: 0\r\n\r\n", b"Content-Length: 2\r\n\r\nok"):
        response = b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + text
        server = make_server(lambda wire, head, number, answer=response: wire.send(answer))
        for _ in range(2):
            assert ask(transport, server).status == 200
        assert server.connections == 2


def test_a_body_until_the_end_of_the_connection_is_not_pooled(transport, make_server):
    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        return False

    server = make_server(answer)
    assert ask(transport, server).body == b"all of it"
    assert ask(transport, server).body == b"all of it"
    assert server.connections == 2


def test_a_connection_with_left_over_bytes_is_not_reused(transport, make_server):
    server = make_server(lambda wire, head, number: wire.send(OK + b"surplus"))
    ask(transport, server)
    assert ask(transport, server).body == b"ok"
    assert server.connections == 2


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_body_that_breaks_off_says_so_to_clients_and_to_relays(transport, make_server, size):
    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * (size - 1))
        return False

    server = make_server(answer)
    with pytest.raises(BrokenOff) as caught:
        b"".join(begin(transport, server, {}, method="GET").response().stream)
    assert isinstance(caught.value, BodyError)


def test_a_large_body_streams_and_its_connection_is_reused_only_when_it_was_read(transport, make_server):
    data = b"0123456789" * 20_000
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data
    server = make_server(lambda wire, head, number: wire.send(large))
    body = begin(transport, server, {}, method="GET").response().stream
    buffer, received = memoryview(bytearray(7000)), b""
    while size := body.read_into(buffer):
        received += bytes(buffer[:size])
    assert received == data
    half = begin(transport, server, {}, method="GET").response().stream
    half.read(100)
    half.close()
    assert server.connections == 1
    assert b"".join(begin(transport, server, {}, method="GET").response().stream) == data
    assert server.connections == 2


def test_a_silent_server_is_an_error_after_the_timeout(transport, make_server):
    server = make_server(lambda wire, head, number: green.sleep(2))
    started = time.monotonic()
    with pytest.raises(TimedOut, match="timeout"):
        ask(transport, server, timeout_s=0.2)
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", b"x"),
    ],
)
def test_an_answer_whose_bytes_come_for_ever_is_an_error_after_the_timeout(
    transport, make_server, start, more
):
    def answer(wire, head, number):
        wire.send(start)
        while True:
            wire.send(more)
            green.sleep(0.05)

    started = time.monotonic()
    with pytest.raises(TransportError):
        ask(transport, make_server(answer), timeout_s=0.2)
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize("size", [10, 100, 101, 5_000_000])
@pytest.mark.parametrize("framing", ["counted", "chunked", "until the end"])
def test_a_body_may_have_a_limit(make_server, size, framing):
    body = b"x" * size
    heads = {
        "counted": b"Content-Length: %d\r\n\r\n%b" % (size, body),
        "chunked": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, body),
        "until the end": b"Connection: close\r\n\r\n%b" % body,
    }

    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\n" + heads[framing])
        return False

    transport = HttpTransport(ConnectionPool(Registry()), body_bytes_max=100)
    if size <= 100:
        assert ask(transport, make_server(answer)).body == body
    else:
        with pytest.raises(TransportError, match="is larger than 100 bytes"):
            ask(transport, make_server(answer))


def test_interim_responses_are_skipped_but_not_without_end(transport, make_server):
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert ask(transport, make_server(lambda wire, head, number: wire.send(interim * 5 + OK))).body == b"ok"
    with pytest.raises(MalformedResponse, match="too many 1xx responses"):
        ask(transport, make_server(lambda wire, head, number: wire.send(interim * 5000 + OK)))


def test_whether_an_answer_begins_can_be_asked_before_it_is_waited_for(transport, make_server):
    def answer(wire, head, number):
        green.sleep(0.3)
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        green.sleep(0.1)
        wire.send(OK)

    exchange = begin(transport, make_server(answer), {"content-length": "2", "expect": "100-continue"})
    assert not exchange.wait_response_start(0.05)
    assert exchange.wait_response_start(1.0) and exchange.wait_response_start(0.0)
    assert exchange.wait_continue() is None
    assert not exchange.wait_response_start(0.0), "what was read is no beginning of the next answer"
    assert exchange.response().read().body == b"ok"


def test_waits_for_the_beginning_count_for_the_timeout(transport, make_server):
    exchange = begin(transport, make_server(lambda wire, head, number: green.sleep(3)), {}, timeout_s=0.4)
    started = time.monotonic()
    assert not exchange.wait_response_start(0.3)
    assert exchange.wait_response_start(5.0), "the wait for the answer says that it is late"
    with pytest.raises(TimedOut):
        exchange.response()
    assert 0.4 <= time.monotonic() - started < 0.65


def test_a_connection_that_ends_is_left_to_the_wait_for_the_answer(transport, make_server):
    exchange = begin(transport, make_server(lambda wire, head, number: False), {})
    assert exchange.wait_response_start(2.0)
    with pytest.raises(TransportError):
        exchange.response()
    exchange.abort()
    assert exchange.wait_response_start(2.0)


def test_an_exchange_on_a_stale_connection_begins_again(transport, make_server):
    server = make_server(
        lambda wire, head, number: wire.send(OK) if number > 1 or len(server.heads) < 2 else False
    )
    ask(transport, server)
    exchange = begin(transport, server, {}, method="GET")
    assert exchange.wait_response_start(2.0)
    assert exchange.response().read().body == b"ok"
    assert server.connections == 2


def test_garbage_instead_of_an_answer_is_an_error(transport, make_server):
    server = make_server(lambda wire, head, number: wire.send(b"nonsense\r\n\r\n"))
    with pytest.raises(MalformedResponse, match="malformed answer"):
        ask(transport, server)


def test_nobody_listening_is_an_error(transport, make_server):
    server = make_server()
    server.close()
    with pytest.raises(TransportError, match="cannot connect"):
        ask(transport, server)


def test_the_only_server_of_a_ring_is_waited_for_while_it_restarts(make_server):
    server = make_server()
    server.close()
    requests, begun = [], time.monotonic()

    def is_only_server(ip, port):
        """Have the server listen again at the second look."""
        requests.append((ip, port))
        if len(requests) == 2:
            server.listen()
        return True

    response = ask(HttpTransport(ConnectionPool(Registry(), is_only_server=is_only_server)), server)
    assert response.status == 200 and set(requests) == {("127.0.0.1", server.port)}
    # No longer than for each part of a response.
    server.close()
    with pytest.raises(TransportError, match="refused"):
        ask(
            HttpTransport(ConnectionPool(Registry(), is_only_server=lambda _ip, _port: True)),
            server,
            timeout_s=0.2,
        )
    assert time.monotonic() - begun < 5


def test_the_only_server_of_a_ring_that_is_down_is_waited_for_once(make_server):
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    server = make_server(lambda wire, head, number: wire.send(last))
    transport = HttpTransport(ConnectionPool(Registry(), is_only_server=lambda _ip, _port: True))

    def wait_s():
        begun = time.monotonic()
        with pytest.raises(TransportError, match="refused"):
            ask(transport, server, timeout_s=0.5)
        return time.monotonic() - begun

    server.close()
    first_s, *others_s = [wait_s() for _device in range(3)]
    assert first_s > 0.4 and sum(others_s) < 0.3
    # It is waited for anew once it was there.
    server.listen()
    assert ask(transport, server).status == 200
    server.close()
    assert wait_s() > 0.4


def test_an_exchange_that_was_aborted_while_another_waits_for_it_ends_quietly(transport, make_server, capsys):
    server = make_server(lambda wire, head, number: green.sleep(1))
    exchange = begin(transport, server, {"content-length": "0"}, timeout_s=0.3)
    errors = []
    waiting = green.Event()

    def wait():
        waiting.set()
        try:
            exchange.response()
        except TransportError as error:
            errors.append(str(error))

    task = green.spawn(wait)
    assert waiting.wait(5)
    exchange.abort()
    task.wait()
    assert len(errors) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_chunks_larger_than_any_socket_buffer_arrive_whole_and_trailers_follow(transport, make_server):
    body = bytes(range(256)) * 40_000
    received = []

    def answer(wire, head, number):
        while not wire.buffer.endswith(b"X-Sum: 7\r\n\r\n"):
            wire._more()
        received.append(wire.buffer)
        wire.buffer = b""
        wire.send(OK)
        return True

    server = make_server(answer)
    exchange = begin(transport, server, {"transfer-encoding": "chunked"}, timeout_s=20)
    exchange.send(body)
    exchange.send(b"")
    exchange.send(memoryview(b"tail"))
    exchange.finish({"x-sum": "7"})
    assert exchange.response().status == 200
    decoder = ChunkDecoder()
    pieces, used = decoder.feed(received[0])
    assert (b"".join(pieces), used, decoder.finished) == (body + b"tail", len(received[0]), True)


def test_a_body_larger_than_any_socket_buffer_arrives_whole_behind_its_head(transport, make_server):
    body = os.urandom(3 << 20)
    came = []

    def answer(wire, head, number):
        while len(wire.buffer) < len(body):
            wire._more()
        came.append(wire.buffer)
        wire.buffer = b""
        wire.send(OK)
        return number > 1

    server = make_server(answer)
    for _ in range(3):
        # The second one finds its connection closed and is sent again.
        assert ask(transport, server, "PUT", body).status == 200
    assert came == [body] * 3
    assert server.connections == 2


def test_a_large_answer_can_be_spliced_but_for_what_came_with_its_head(transport, make_server):
    body = bytes(range(256)) * 8000

    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True

    server = make_server(answer)
    for _ in range(2):
        response = begin(transport, server, {}, method="GET").response()
        source, sink = os.pipe2(os.O_NONBLOCK)
        got, buffer = b"", memoryview(bytearray(65536))
        while len(got) < len(body):
            size = response.stream.splice_into(sink, 1 << 20)
            if size:
                got += os.read(source, size)
            else:
                got += bytes(buffer[: response.stream.read_into(buffer)])
        assert got == body
        assert (response.stream.splice_into(sink, 1), response.stream.read_into(buffer)) == (0, 0)
        os.close(source)
        os.close(sink)
    assert server.connections == 1


def test_an_answer_that_breaks_off_while_it_is_spliced_is_an_error(transport, make_server):
    def answer(wire, head, number):
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + bytes(200_000))
        return False

    response = begin(transport, make_server(answer), {}, method="GET").response()
    source, sink = os.pipe2(os.O_NONBLOCK)
    with pytest.raises(TransportError, match="broke off"):
        while True:
            if size := response.stream.splice_into(sink, 1 << 20):
                os.read(source, size)
            else:
                response.stream.read_into(memoryview(bytearray(65536)))
    os.close(source)
    os.close(sink)
