"""Which addresses a client may name, which only the operator, and which neither."""

import ast
import shutil
import socket
import ssl
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from swift import green
from swift.cluster.outbound import Outbound, OutboundRefused, StorageEndpoints, Trust
from swift.cluster.rings import Rings
from swift.cluster.transport import TransportError
from swift.policy.policy import Policies
from test.support.checks import every
from test.support.peer import make_rings
from test.support.sources import MODULES, ROOT, nodes_of
from test.support.stub_servers import TlsServer, make_certificate

STORAGE = frozenset({("10.0.0.5", 6200), ("10.1.0.5", 6201), ("fd00::5", 6200)})
OWN = frozenset({"127.0.0.1", "10.0.0.9", "::1"})


def outbound(*addresses, connect=None):
    return Outbound(
        lambda: STORAGE,
        resolve=lambda host, port: list(addresses) or [host],
        own=lambda: OWN,
        **({} if connect is None else {"connect": connect}),
    )


def is_allowed(host, port, trust):
    try:
        return outbound().addresses(host, port, trust) == [host]
    except OutboundRefused:
        return False


@every(
    ("host", "port", "client", "operator"),
    [
        ("192.0.2.1", 443, True, True),
        ("10.9.9.9", 8080, True, True),
        ("2001:db8::1", 6200, True, True),
        # Storage servers, and other services of their machines.
        ("10.0.0.5", 6200, False, False),
        ("10.1.0.5", 6201, False, False),
        ("fd00::5", 6200, False, False),
        ("::ffff:10.0.0.5", 6200, False, False),
        ("64:ff9b::a00:5", 6200, False, False),
        ("10.0.0.5", 8080, False, True),
        # This machine.
        ("127.0.0.1", 6379, False, True),
        ("127.8.9.1", 80, False, True),
        ("::1", 80, False, True),
        ("::ffff:127.0.0.1", 80, False, True),
        ("::7f00:1", 80, False, True),
        ("2002:7f00:1::", 80, False, True),
        ("10.0.0.9", 80, False, True),
        ("0.0.0.0", 80, False, True),
        ("::", 80, False, True),
        ("127.0.0.1", 6200, False, False),
        ("0.0.0.0", 6201, False, False),
        ("10.0.0.9", 6200, False, False),
        # Addresses of no other cluster.
        ("0.1.2.3", 80, False, True),
        ("169.254.169.254", 80, False, True),
        ("fe80::1", 80, False, True),
        ("fe80::1%eth0", 80, False, True),
        ("224.0.0.1", 80, False, True),
        ("ff02::1", 80, False, True),
        ("255.255.255.255", 80, False, True),
        ("240.0.0.1", 80, False, True),
        ("fec0::1", 80, False, True),
    ],
)
def test_addresses(host, port, client, operator):
    assert is_allowed(host, port, Trust.CLIENT) is client
    assert is_allowed(host, port, Trust.OPERATOR) is operator


def test_one_bad_address_of_a_name_is_enough():
    with pytest.raises(OutboundRefused, match=r"far \(127.0.0.1\), port 80: an address of this machine"):
        outbound("192.0.2.1", "127.0.0.1").addresses("far", 80, Trust.CLIENT)


def test_the_connection_is_made_to_the_address_that_was_checked():
    responses = iter([["192.0.2.1", "192.0.2.2"], ["127.0.0.1"]])
    tried = []
    ours, theirs = socket.socketpair()

    def connect(address, timeout_s):
        tried.append((address, timeout_s))
        if len(tried) == 1:
            raise OSError("refused")
        return ours

    made = Outbound(resolve=lambda host, port: next(responses), own=frozenset, connect=connect)
    connection = made.connection("http", "far", None, Trust.CLIENT, timeout_s=3.0)
    with theirs:
        theirs.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert connection.request("HEAD", "/", {}, bytes_max=10).status == 204
        assert b"host: far\r\n" in theirs.recv(4096).lower()
        assert tried == [(("192.0.2.1", 80), 3.0), (("192.0.2.2", 80), 3.0)]
        connection.close()
        # It does not look the name up again.
        with pytest.raises(TransportError):
            connection.request("HEAD", "/", {}, bytes_max=10)
        assert len(tried) == 2


@pytest.mark.parametrize("framing", [b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
def test_a_body_that_does_not_end_is_given_up_after_the_timeout_and_names_the_server(framing):
    ours, theirs = socket.socketpair()

    def drip():
        with suppress(OSError):
            while True:
                theirs.sendall(b"1\r\nx\r\n")
                green.sleep(0.03)

    made = Outbound(resolve=lambda *_: ["192.0.2.1"], own=frozenset, connect=lambda *_: ours)
    connection = made.connection("http", "far", 8080, Trust.OPERATOR, timeout_s=0.2)
    with theirs, connection:
        theirs.sendall(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n")
        task = green.spawn(drip)
        started = time.monotonic()
        with pytest.raises(TransportError, match="GET to far:8080: the body takes too long"):
            connection.request("GET", "/", {}, bytes_max=1 << 20)
        assert time.monotonic() - started < 2.0
        task.kill()


def test_an_error_names_the_server_and_its_port_once():
    ours, theirs = socket.socketpair()
    made = Outbound(resolve=lambda *_: ["192.0.2.1"], own=frozenset, connect=lambda *_: ours)
    connection = made.connection("http", "far", 8080, Trust.OPERATOR, timeout_s=0.2)
    theirs.close()
    with connection, pytest.raises(TransportError, match="GET to far:8080: "):
        connection.request("GET", "/", {}, bytes_max=10)


def serve_once(listener):
    client, _ = listener.accept()
    with client:
        head = client.recv(65536)
        while b"\r\n\r\n" not in head or (b"PUT" in head and not head.endswith(b"end")):
            head += client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1) to make a certificate")
def test_certificates_are_those_of_the_name_and_not_of_the_address(tmp_path):
    certificate, key = make_certificate(tmp_path, "far.example")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        front = TlsServer(listener.getsockname(), certificate, key)
        thread = threading.Thread(target=serve_once, args=(listener,), daemon=True)
        thread.start()
        made = Outbound(resolve=lambda *_: ["127.0.0.1"], own=frozenset)
        tls = ssl.create_default_context(cafile=str(certificate))
        try:

            def connect(name, tls=tls):
                trust = Trust.OPERATOR
                return made.connection("https", name, front.port, trust, timeout_s=10.0, tls=tls)

            for refused in ("other.example", "far.example"):
                with pytest.raises(ssl.SSLCertVerificationError):
                    connect(refused, tls if refused == "other.example" else None)
            with connect("far.example") as connection:
                response = connection.request("GET", "/", {}, bytes_max=65536)
            assert f"host: far.example:{front.port}".encode() in response.body.lower()
        finally:
            front.stop()
        thread.join(10)


class Proxy:
    """An HTTP proxy that connects every tunnel to one address; keeps the heads of its requests."""

    def __init__(self, target):
        self._target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.heads = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        client, _ = self.listener.accept()
        self.heads.append(client.recv(65536))
        far = socket.create_connection(self._target)
        client.sendall(b"HTTP/1.1 200 Connection established\r\nContent-Length: 0\r\n\r\n")
        for source, sink in ((client, far), (far, client)):
            threading.Thread(target=copy_bytes, args=(source, sink), daemon=True).start()


def copy_bytes(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    with suppress(OSError):  # the other end may be gone by then
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1) to make a certificate")
def test_a_tunnel_is_encrypted_from_end_to_end(tmp_path):
    certificate, key = make_certificate(tmp_path, "far.example")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        front = TlsServer(listener.getsockname(), certificate, key)
        thread = threading.Thread(target=serve_once, args=(listener,), daemon=True)
        thread.start()
        proxy = Proxy(("127.0.0.1", front.port))
        made = Outbound(resolve=lambda *_: ["127.0.0.1"], own=frozenset)
        tls = ssl.create_default_context(cafile=str(certificate))
        url = urlsplit(f"http://proxy:{proxy.listener.getsockname()[1]}")
        try:
            with made.tunnel(url, "far.example", None, timeout_s=10.0, tls=tls) as connection:
                big = "x" * 20000
                response = connection.request(
                    "PUT", "/o", {"x-big": big}, b"body" * 50000 + b"end", bytes_max=300000
                )
        finally:
            front.stop()
            proxy.listener.close()
        thread.join(10)
    assert proxy.heads[0].startswith(b"CONNECT far.example:443 HTTP/1.1\r\n")
    assert response.status == 200 and big.encode() in response.body and response.body.endswith(b"bodyend")


def test_literal_addresses_are_checked_without_a_name_server():
    made = Outbound(resolve=lambda *_: pytest.fail("resolved"), own=frozenset)
    made.check_literal("far", 80, Trust.CLIENT)
    with pytest.raises(OutboundRefused):
        made.check_literal("127.0.0.1", 80, Trust.CLIENT)


def test_the_storage_network_is_that_of_all_rings(tmp_path):
    make_rings(tmp_path, [("10.0.0.1", 6200, "sda"), ("node2", 6201, "sda")], names=["container"], replicas=2)
    make_rings(tmp_path, [("10.0.0.3", 6300, "sda")], names=["object"], replicas=1)
    endpoints = StorageEndpoints(
        Rings(str(tmp_path), Policies.single()), lambda host, port: ["10.0.0.2", "fd00:0::2"]
    )
    assert {("10.0.0.1", 6200), ("node2", 6201), ("10.0.0.2", 6201), ("fd00::2", 6201)} <= endpoints()
    assert ("10.0.0.3", 6300) in endpoints()
    assert endpoints() is endpoints()


def test_no_other_module_of_the_servers_connects_by_itself():
    """Commands connect to the hosts that their user names."""
    names = {"HTTPConnection", "HTTPSConnection", "create_connection", "urlopen"}
    found = set()
    for path in MODULES:
        module = path.relative_to(ROOT / "swift")
        if module.parts[0] in ("aio", "cli", "load", "operations", "plan"):
            continue
        for node in nodes_of(path):
            named = node.attr if isinstance(node, ast.Attribute) else None
            if named in names and isinstance(node.ctx, ast.Load):
                found.add((str(module), named))
    assert not found, f"use swift.cluster.outbound: {sorted(found)}"
