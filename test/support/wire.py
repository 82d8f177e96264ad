"""A plain HTTP client on green threads, for servers that run in the test's own process."""

import time

from swift import green
from swift.wire.chunked import ChunkDecoder
from swift.wire.http1 import parse_response_head


class Reply:
    """One parsed answer."""

    def __init__(self, head, body):
        self.status = head.status
        self.reason = head.reason
        self.headers = head.headers
        self.body = body
        self.keep_alive = head.keep_alive


class Wire:
    """One connection; every wait ends after ``timeout_s``."""

    def __init__(self, port, timeout_s=5.0, sock=None):
        self.timeout_s = timeout_s
        self.sock = sock or green.connect("127.0.0.1", port, self._deadline())
        self.buffer = b""

    def _deadline(self):
        return time.monotonic() + self.timeout_s

    def send(self, data):
        while data:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                green.wait_writable(self.sock.fileno(), self._deadline())

    def recv(self, size=65536):
        """Some bytes; empty at the end of the stream."""
        deadline = self._deadline()
        while True:
            try:
                return self.sock.recv(size)
            except ConnectionResetError:
                return b""
            except OSError as error:
                if not isinstance(error, BlockingIOError) and "want" not in type(error).__name__.lower():
                    raise
                green.wait_readable(self.sock.fileno(), deadline)

    def has_input(self, seconds):
        """Whether anything arrives within so long."""
        if self.buffer:
            return True
        try:
            green.wait_readable(self.sock.fileno(), time.monotonic() + seconds)
        except green.DeadlineExceeded:
            return False
        return True

    def _more(self):
        data = self.recv()
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data

    def reply(self, method="GET"):
        """The next answer, 100 Continue included."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        text, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        head = parse_response_head(text + b"\r\n\r\n", method)
        if head.chunked:
            return Reply(head, self._chunked())
        if head.length is None:
            return Reply(head, self.rest())
        while len(self.buffer) < head.length:
            self._more()
        body, self.buffer = self.buffer[: head.length], self.buffer[head.length :]
        return Reply(head, body)

    def _chunked(self):
        decoder, body = ChunkDecoder(), b""
        while True:
            pieces, used = decoder.feed(self.buffer)
            self.buffer = self.buffer[used:]
            body += b"".join(pieces)
            if decoder.finished:
                return body
            self._more()

    def rest(self):
        """Everything until the server closes."""
        data, self.buffer = self.buffer, b""
        while piece := self.recv():
            data += piece
        return data

    def ask(self, method, path="/", headers=None, body=b""):
        """One request with a counted body, and its answer."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return self.reply(method)

    def close(self):
        self.sock.close()
