"""Servers with scripted responses, a TLS terminator, and a plain HTTP client."""

import contextlib
import hmac
import json
import socket
import ssl
import subprocess
import threading
import time
from base64 import b64encode, urlsafe_b64decode
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from swift import green
from swift.cluster.transport import BackendResponse, TransportError
from swift.wire.chunked import ChunkDecoder
from swift.wire.http1 import parse_response_head
from test.support.peer import SWIFT_CONF, make_rings, run


def make_certificate(folder, name):
    """Make a certificate for a host name or an IPv4 address; return its file and that of the key."""
    made = folder / "certificate.pem", folder / "key.pem"
    kind = "IP" if name[-1].isdigit() else "DNS"
    options = f"-newkey rsa:2048 -nodes -days 1 -subj /CN={name} -addext subjectAltName={kind}:{name}"
    words = ["openssl", "req", "-x509", *options.split(), "-out", made[0], "-keyout", made[1]]
    subprocess.run(words, check=True, capture_output=True)
    return made


# --- talkers ----------------------------------------------------------------------------------------

# Servers that answer tools by path, whatever a test likes.


class StubServers:
    """A transport: (port, path) → JSON value, ``Reply`` or error; other paths are 404."""

    def __init__(self, said):
        self.said = said
        self.asked = []

    def request(self, request):
        port, method, path = request.node.port, request.method, request.path
        self.asked.append((port, method, path))
        response = self.said.get((port, path), self.said.get(path, BackendResponse(404, reason="Not Found")))
        if isinstance(response, TransportError):
            raise response
        return (
            response
            if isinstance(response, BackendResponse)
            else BackendResponse(200, body=json.dumps(response).encode())
        )


#: JSON that no server should say.
NONSENSE = (
    None,
    True,
    5,
    -1.5,
    "text",
    [],
    {},
    [None, 1, "x", [], {}, {"device": {"a": 1}, "mounted": True}],
    {"x": [1]},
    float("nan"),
    float("inf"),
    10**400,
    1e17,
)


# --- dispersing -------------------------------------------------------------------------------------

# A cluster for the tools of dispersion that answers whatever a test likes, proxy and nodes in one server.


class _DispersionHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/auth":
            self.answer(200, b"", {"X-Auth-Token": "t", "X-Storage-Url": f"{self.server.url}/v1/AUTH_a"})
            return
        if self.command == "HEAD":
            self.server.sought.append(self.path)
            self.answer(self.server.has(self.path), b"")
            return
        self.server.asked.append((self.command, self.path, body))
        for start, responses in self.server.answers.items():
            if f"{self.command} {self.path}".startswith(start) and responses:
                self.answer(*responses.pop(0))
                return
        self.answer(200 if self.command == "GET" else 201, b"[]" if self.command == "GET" else b"")

    do_PUT = do_HEAD = do_GET

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class DispersionFixture:
    """Runs a dispersion tool against a stub cluster."""

    def __init__(self, root, server, tool):
        self.root, self.server, self.tool = root, server, tool

    def run(self, *words, answers=None, **options):
        self.server.answers = answers or {}
        self.server.asked, self.server.sought = [], []
        options = {"swift_dir": self.root, "auth_url": f"{self.server.url}/auth", "retries": 0, **options}
        lines = [f"{name} = {value}\n" for name, value in options.items()]
        (self.root / "d.conf").write_text("[dispersion]\ndispersion_coverage = 50\n" + "".join(lines))
        return run(f"swift-dispersion-{self.tool}", self.root / "d.conf", *words)

    def put(self, start=""):
        return [path for method, path, _ in self.server.asked if method == "PUT" and path.startswith(start)]


@contextlib.contextmanager
def running(root, tool, devices=("sda",), replicas=None):
    """Return a ``Bench`` of a tool; one server has all ``devices`` and the copies that ``has`` accepts."""
    (root / "swift.conf").write_text(SWIFT_CONF)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _DispersionHandler)
    port = server.server_address[1]
    server.url, server.has = f"http://127.0.0.1:{port}", lambda path: 200
    make_rings(root, [("127.0.0.1", port, device) for device in devices], replicas=replicas or len(devices))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield DispersionFixture(root, server, tool)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- identity ---------------------------------------------------------------------------------------

# A small identity service over HTTP, as far as s3token asks one: access keys and signatures.


def signature_of(text, secret):
    """Return the signature of a text with the secret, in either version."""
    if text.startswith(b"AWS4-HMAC-SHA256"):
        key = ("AWS4" + secret).encode()
        for word in text.decode().split("\n")[2].split("/"):
            key = hmac.digest(key, word.encode(), sha256)
        return hmac.digest(key, text, sha256).hex()
    return b64encode(hmac.digest(secret.encode(), text, sha1)).decode()


def token_of(user, project, *roles):
    """Return a token document of version 3."""
    domain = {"id": "default", "name": "Default"}
    return {
        "token": {
            "user": {"id": user, "name": f"{user}-name", "domain": domain},
            "project": {"id": project, "name": f"{project}-name", "domain": domain},
            "roles": [{"name": role} for role in roles],
        }
    }


class _IdentityHandler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def answer(self, status, document, headers=()):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        service = self.server.service
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(self.path)
        if self.path == "/v3/s3tokens":
            self.answer(*service.judge(asked["credentials"]))
        elif asked["auth"]["identity"]["password"]["user"]["password"] == "own":
            service.tokens += 1
            self.answer(201, {}, [("X-Subject-Token", f"t{service.tokens}")])
        else:
            self.answer(401, {})

    def do_GET(self):
        service = self.server.service
        service.asked.append(self.path)
        access = self.path.rpartition("/")[2]
        if self.headers["X-Auth-Token"] != f"t{service.tokens}":
            self.answer(401, {})
        elif access in service.keys:
            self.answer(200, {"credential": {"secret": service.keys[access][0]}})
        else:
            self.answer(404, {})


class IdentityService:
    """Keystone stub. ``keys``: access key → (secret, token document). ``odd``: key → (status, body)."""

    def __init__(self, keys, odd=None):
        self.keys, self.odd, self.asked, self.tokens = keys, odd or {}, [], 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _IdentityHandler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v3"

    def judge(self, credentials):
        access = credentials["access"]
        if access in self.odd:
            return self.odd[access]
        secret, document = self.keys.get(access, ("", None))
        good = signature_of(urlsafe_b64decode(credentials["token"]), secret)
        if document is None or credentials["signature"] != good:
            return 401, {}
        return 200, document

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _CatalogHandler(_IdentityHandler):
    def do_POST(self):
        service = self.server.service
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(asked)
        if self.path != "/v3/auth/tokens":
            self.answer(404, {})
        elif asked["auth"]["identity"]["password"]["user"]["password"] != "own":
            self.answer(401, {})
        else:
            self.answer(201, {"token": {"catalog": service.catalog}}, [("X-Subject-Token", service.token)])


class Catalog:
    """An identity service of version 3: ``token`` for the password ``own``, with a catalog of services."""

    def __init__(self, storage_url, token):
        points = [
            {"interface": "internal", "region": "one", "url": "http://127.0.0.1:1/"},
            {"interface": "public", "region": "one", "url": storage_url},
        ]
        self.catalog = [{"type": "image", "endpoints": []}, {"type": "object-store", "endpoints": points}]
        self.token = token
        #: The document of every request.
        self.asked = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _CatalogHandler)
        self._server.service = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


# --- tlsfront ---------------------------------------------------------------------------------------

# TLS before a server that speaks plain HTTP, as operators put it there.


class TlsServer:
    """Relays connections to ``target``, host and port, until it is stopped."""

    def __init__(self, target, certificate, key):
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self):
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        with contextlib.suppress(OSError), client:
            secured = self._context.wrap_socket(client, server_side=True)
            with secured, socket.create_connection(self._target) as server:
                back = threading.Thread(target=_copy, args=(server, secured), daemon=True)
                back.start()
                _copy(secured, server)
                back.join()


def _copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


# --- wire -------------------------------------------------------------------------------------------

# A plain HTTP client on green threads, for servers that run in the test's own process.


class HttpReply:
    """One parsed response."""

    def __init__(self, head, body):
        self.status = head.status
        self.reason = head.reason
        self.headers = head.headers
        self.body = body
        self.keep_alive = head.keep_alive


class HttpClient:
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
        """Return some bytes; empty at the end of the stream."""
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
        """Return True if any bytes arrive within ``seconds``."""
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
        """Return the next response, 100 Continue included."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        text, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        head = parse_response_head(text + b"\r\n\r\n", method)
        if head.chunked:
            return HttpReply(head, self._chunked())
        if head.length is None:
            return HttpReply(head, self.rest())
        while len(self.buffer) < head.length:
            self._more()
        body, self.buffer = self.buffer[: head.length], self.buffer[head.length :]
        return HttpReply(head, body)

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
        """Return all bytes until the server closes the connection."""
        data, self.buffer = self.buffer, b""
        while piece := self.recv():
            data += piece
        return data

    def ask(self, method, path="/", headers=None, body=b""):
        """Send a request with a Content-Length and return its response."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return self.reply(method)

    def close(self):
        self.sock.close()
