"""The Swift and S3 clients of ``swift-load`` against a server that implements enough of both APIs."""

import re
import shutil
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from swift.load.api import OperationFailed, make_api
from swift.load.endpoint import LoadEndpoint, transport_for
from test.support.stub_servers import make_certificate

#: The content of an object that another client has just replaced.
NEWER = b"newer"


class Store(BaseHTTPRequestHandler):
    """Enough of both protocols: containers, objects, listings, manifests and uploads in parts."""

    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.connections += 1

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "X-Auth-Token" not in self.headers and "Authorization" not in self.headers:
            return self.answer(401)
        container, _, name = unquote(url.path).removeprefix("/v1/a").strip("/").partition("/")
        return self.about(self.server.containers, container, name, query, body)

    def about(self, containers, container, name, query, body):
        objects = containers.get(container)
        if not name:
            return self.about_container(containers, container, objects, query)
        if objects is None:
            return self.answer(404)
        if "uploads" in query:
            return self.answer(200, b"<R><UploadId>u1</UploadId></R>")
        if self.command == "PUT" and "X-Amz-Copy-Source" not in self.headers:
            objects[name] = objects.get(name, b"") + body if "uploadId" in query else body
            return self.answer(201, ETag='"e"')
        if name not in objects:
            return self.answer(404)
        if self.command in ("POST", "DELETE") and objects[name] == NEWER:
            return self.answer(409)
        if self.command == "DELETE":
            del objects[name]
            return self.answer(204)
        return self.answer(200, objects[name] if self.command in ("GET", "HEAD") else b"")

    def about_container(self, containers, container, objects, query):
        if self.command == "PUT":
            containers.setdefault(container, {})
            return self.answer(201)
        if objects is None:
            return self.answer(404)
        if self.command == "DELETE":
            if objects:
                return self.answer(409)
            del containers[container]
            return self.answer(204)
        after = (query.get("marker") or query.get("start-after") or [""])[0]
        names = sorted(name for name in objects if name > after)
        if "list-type" in query:
            return self.answer(200, "".join(f"<Key>{name}</Key>" for name in names).encode())
        return self.answer(200, "".join(f"{name}\n" for name in names).encode())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = serve

    def log_message(self, *_args):
        pass


TLS = "swift over TLS"


@pytest.fixture
def server(request, tmp_path):
    made = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    made.daemon_threads, made.containers, made.certificate, made.connections = True, {}, None, 0
    if request.node.callspec.params["use"] == TLS:
        made.certificate, key = make_certificate(tmp_path, "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, key)
        made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


NEEDS_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1)")


@pytest.fixture(params=["swift", "s3", pytest.param(TLS, marks=[pytest.mark.process, NEEDS_OPENSSL])])
def use(request, server):
    """Return a function that calls another one with the API, in a thread with its own event loop."""
    root = f"http://127.0.0.1:{server.server_port}"
    endpoint = LoadEndpoint(f"{root}/v1/a", "t")
    if request.param == "s3":
        endpoint = LoadEndpoint(root, "", "key", "secret")
    elif request.param == TLS:
        url = f"https://127.0.0.1:{server.server_port}/v1/a"
        endpoint = LoadEndpoint(url, "t", cacert=str(server.certificate))

    def call(do):
        found = []

        def work():
            try:
                found.append(do(make_api(endpoint, transport_for(endpoint))))
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
        assert found, "it came to an end"
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    return call


def body_of(data):
    return lambda: iter((memoryview(data),))


def test_an_object_is_created_read_updated_and_deleted(use, server):
    def live(api):
        api.make_container("c", "")
        api.put("c", "o ä", 3, body_of(b"abc"))
        api.put("c", "large", 3 << 20, body_of(bytes(3 << 20)))
        api.head("c", "o ä")
        api.post("c", "o ä")
        seen = bytearray()
        sizes = (
            api.get("c", "o ä", lambda data: seen.extend(data) is None),
            api.get("c", "large", lambda _d: True),
        )
        return bytes(seen), sizes, api.listing("c", ""), api.listing("c", "large")

    assert use(live) == (b"abc", (3, 3 << 20), ["large", "o ä"], ["o ä"])
    assert server.connections == 1, "requests share a connection"

    def end(api):
        for name in ("large", "o ä", "never there"):
            api.delete("c", name)
        api.remove_container("c")
        api.remove_container("c")
        return api.listing("c", "")

    assert use(end) == [] and server.containers == {}


def test_superseded_changes_count_as_successful(use, server):
    server.containers["c"] = {"o": NEWER}

    def change(api):
        api.post("c", "o")
        api.delete("c", "o")

    use(change)
    assert server.containers["c"] == {"o": NEWER}


def test_a_large_object_is_sent_in_parts(use, server):
    def send(api):
        api.make_container("c", "")
        api.multipart("c", "o", [4, 2], lambda number: body_of((b"abcd", b"ef")[number]))

    use(send)
    stored = server.containers["c"]
    assert b"abcdef" in (stored["o"], b"".join(stored[name] for name in sorted(stored) if "/part-" in name))


@pytest.mark.parametrize(
    ("do", "kind"),
    [
        (lambda api: api.get("c", "none", lambda _data: True), "404"),
        (lambda api: api.head("none", "o"), "404"),
        (lambda api: api.remove_container("full"), "409"),
        (lambda api: api.get("full", "o", lambda _data: False), "wrong bytes"),
    ],
)
def test_failures_report_their_kind(use, server, do, kind):
    server.containers["full"] = {"o": b"x"}
    with pytest.raises(OperationFailed, match=f"^{re.escape(kind)}$"):
        use(do)
