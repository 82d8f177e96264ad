"""The memcached client when servers vanish, come back and say strange things (proxy.md §15)."""

import shutil
import ssl
import subprocess
import time

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.cluster.health import UNRESPONSIVE_S
from swift.cluster.memcache import PATIENCE_S, MemcacheError, MemcacheRing, MemcacheSettings
from swift.platform import sockets
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from swift.wire.memcache import wire_key


class Server:
    """Answers every ``get`` with the bytes that the test sets, and everything else with STORED."""

    def __init__(self, port=0, tls=None):
        self.tls = tls
        self.answer = b"END\r\n"
        self.asked = 0
        #: It takes requests and answers none.
        self.is_stopped = False
        self.listener = sockets.listen("127.0.0.1", port, 16)
        self.port = self.listener.getsockname()[1]
        self.socks = []
        self.tasks = [green.spawn(self._accept)]

    def _accept(self):
        while True:
            green.wait_readable(self.listener.fileno(), time.monotonic() + 60)
            sock, _ = self.listener.accept()
            sock.setblocking(False)
            self.socks.append(sock)
            self.tasks.append(green.spawn(self._serve, sock))

    def _serve(self, sock):
        if self.tls is not None:
            sock = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            self.socks.append(sock)
            try:
                green.handshake(sock, time.monotonic() + 60)
            except OSError:
                return
        while True:
            try:
                data = sock.recv(65536)
            except (BlockingIOError, ssl.SSLWantReadError):
                green.wait_readable(sock.fileno(), time.monotonic() + 60)
                continue
            if not data:
                return
            self.asked += 1
            if self.is_stopped:
                continue
            sock.send(self.answer if data.startswith(b"get") else b"STORED\r\n")

    def close(self):
        for task in self.tasks:
            task.kill()
        green.sleep(0)
        for sock in (self.listener, *self.socks):
            sock.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def ring_of(*ports, clock=None, **options):
    servers = tuple(f"127.0.0.1:{port}" for port in ports)
    return MemcacheRing(MemcacheSettings(memcache_servers=servers, **options), clock=clock)


def value_answer(key, data, flags=2):
    return b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (wire_key(key).encode(), flags, len(data), data)


def test_a_value_is_read(server):
    server.answer = value_answer("k", b'{"a": [1]}')
    assert ring_of(server.port).get("k") == {"a": [1]}


@pytest.mark.parametrize("data", [b"[" * 100_000, b"{", b"\xff", b'{"a":' * 50_000, b"9" * 5000 + b"x"])
def test_a_value_that_is_no_json_or_has_no_bottom_is_a_miss(server, data):
    server.answer = value_answer("k", data)
    assert ring_of(server.port).get("k", raise_on_error=True) is None


@pytest.mark.parametrize("response", [b"VALUE\r\n", b"ERROR\r\n", b"VALUE a b c\r\n", b"\xff\xfe\r\n"])
def test_an_answer_of_a_strange_shape_is_no_answer(server, response):
    server.answer = response
    ring = ring_of(server.port)
    assert ring.get("k", "missing") == "missing"
    with pytest.raises(MemcacheError):
        ring.get("k", raise_on_error=True)


def test_a_server_that_came_back_is_believed_after_a_second_not_after_a_minute():
    server = Server()
    port = server.port
    ring = ring_of(port, error_suppression_limit=2)
    server.close()
    for _ in range(20):
        with pytest.raises(MemcacheError):
            ring.get("k", raise_on_error=True)
    server = Server(port)
    try:
        server.answer = value_answer("k", b"5")
        deadline = time.monotonic() + 3.0
        while ring.get("k") != 5:
            assert time.monotonic() < deadline
            green.sleep(0.05)
        # One success ends it: nobody has to wait for the next probe.
        assert [ring.get("k", raise_on_error=True) for _ in range(5)] == [5] * 5
    finally:
        server.close()


def test_a_server_that_is_left_alone_is_asked_once_a_second(server):
    server.answer = b"ERROR\r\n"
    ring = ring_of(server.port, error_suppression_limit=0)
    started = time.monotonic()
    while time.monotonic() - started < 1.2:
        ring.get("k")
        green.sleep(0.005)
    assert server.asked == 2


def test_nobody_waits_for_a_server_that_answers_nobody_until_it_does(server):
    clock = ManualClock(5.0)
    ring = ring_of(server.port, io_timeout=0.1, clock=clock)
    server.answer, server.is_stopped = value_answer("k", b"1"), True
    assert ring.get("k") is None
    clock.advance(UNRESPONSIVE_S)
    started = time.monotonic()
    for _ in range(100):
        assert ring.get("k") is None
    assert time.monotonic() - started < 0.1, "none of them waited"
    while server.asked < 2:
        green.sleep(0.01)
    green.sleep(0.3)
    server.is_stopped = False
    assert ring.get("k") is None and server.asked == 2, "the probe has timed out, and the next is not due"
    clock.advance(PATIENCE_S / 2)
    assert ring.get("k") is None
    while server.asked < 3:
        green.sleep(0.01)
    green.sleep(0.1)
    assert ring.get("k") == 1


class ConnectTimings:
    enabled = True

    """A statsd that keeps what it is told."""

    def __init__(self):
        self.told = {}

    def timing(self, name, seconds):
        self.told[name] = seconds


def test_how_long_answers_and_errors_take_is_told(server):
    telemetry = Telemetry(silent_log())
    telemetry.statsd = ConnectTimings()
    settings = MemcacheSettings(memcache_servers=(f"127.0.0.1:{server.port}",))
    ring = MemcacheRing(settings, telemetry)
    for response, name in ((value_answer("k", b"5"), "get.timing"), (b"ERROR\r\n", "get.errors.timing")):
        server.answer = response
        started = time.monotonic()
        ring.get("k")
        assert 0 < telemetry.statsd.told[f"memcached.{name}"] <= time.monotonic() - started


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with the certificates of 127.0.0.1 and of another host."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    root = tmp_path_factory.mktemp("tls")
    for name, host in (("right", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")):
        words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name}"
        more = ["-addext", f"subjectAltName={host}", "-keyout", root / f"{name}.key", "-out", root / name]
        subprocess.run(["openssl", *words.split(), *more], check=True, capture_output=True)
    return root


@pytest.fixture
def tls_server(certificates):
    def make(name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / name, certificates / f"{name}.key")
        made.append(Server(tls=context))
        return made[-1]

    made = []
    yield make
    for server in made:
        server.close()


@pytest.mark.process
def test_values_go_over_tls(tls_server, certificates):
    server = tls_server("right")
    server.answer = value_answer("k", b'"' + b"x" * 300_000 + b'"')
    ring = ring_of(server.port, tls_enabled=True, tls_cafile=str(certificates / "right"))
    ring.set("k", "y", raise_on_error=True)
    assert ring.get("k", raise_on_error=True) == "x" * 300_000


@pytest.mark.parametrize(("certificate", "ca"), [("wrong", "wrong"), ("right", "wrong"), ("right", "")])
def test_a_server_that_cannot_prove_its_name_gets_nothing(tls_server, certificates, certificate, ca):
    server = tls_server(certificate)
    ring = ring_of(server.port, tls_enabled=True, tls_cafile=ca and str(certificates / ca))
    with pytest.raises(MemcacheError):
        ring.set("k", "secret", raise_on_error=True)
    assert server.asked == 0


def test_a_plain_server_gets_nothing_from_a_client_that_wants_tls(server, certificates):
    ring = ring_of(server.port, tls_enabled=True, tls_cafile=str(certificates / "right"), connect_timeout=0.5)
    assert ring.get("k", "missing") == "missing"


def test_certificates_that_cannot_be_read_stop_the_start(tmp_path):
    with pytest.raises(ConfigError, match="certificates"):
        ring_of(1, tls_enabled=True, tls_cafile=str(tmp_path / "none"))


def test_a_server_that_does_not_respond_is_reported_with_what_to_check(server):
    class Errors:
        texts = []

        def error(self, text):
            self.texts.append(text)

    telemetry = Telemetry()
    telemetry.log = Errors()
    server.is_stopped = True
    name = f"127.0.0.1:{server.port}"
    ring = MemcacheRing(MemcacheSettings(memcache_servers=(name,), io_timeout=0.05), telemetry)
    assert ring.get("k") is None
    (text,) = Errors.texts
    assert text == f"error talking to memcached {name}: it did not respond in time; check that it runs"


def test_long_values_are_warned_of(server):
    class Warnings:
        texts = []

        def warning(self, text):
            self.texts.append(text)

    telemetry = Telemetry()
    telemetry.log = Warnings()
    settings = MemcacheSettings(
        memcache_servers=(f"127.0.0.1:{server.port}",), item_size_warning_threshold=10
    )
    ring = MemcacheRing(settings, telemetry)
    ring.set("short", "x" * 8)
    ring.set("long", "x" * 9)
    ring.set_multi({"several": "x" * 9}, "key")
    assert [text.rpartition(" ")[2] for text in Warnings.texts] == ["long", "several"]
