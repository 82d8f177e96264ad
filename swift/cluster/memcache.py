"""A client of a ring of memcached servers on green threads (spec: proxy.md §15).

Every failure is a miss: nothing depends on the cache. Callers that must know of failures (tokens) pass
``raise_on_error``.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.health import NodeHealth
from swift.cluster.hosts import resolve
from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry
from swift.wire.memcache import ServerRing, decode_value, expiry, get_command, set_command, wire_key

_TIMING = Event("memcached.{verb}.timing", "Duration of a request to memcached.")
_FAILED = Event("memcached.{verb}.errors.timing", "Duration of a request to memcached that failed.")

#: Seconds between probes of a server that is avoided.
PROBE_S = 1.0
#: A server counts as unresponsive for so long after the last request.
PATIENCE_S = 10.0


class MemcacheError(SwiftError):
    """No memcached server responded."""


@dataclass(frozen=True)
class MemcacheSettings(Settings):
    """``[filter:cache]`` and ``memcache.conf``."""

    memcache_servers: tuple[str, ...] = option(("127.0.0.1:11211",), "Servers as host:port.")
    memcache_max_connections: int = option(2, "Connections per server and process.", kind=COUNT)
    connect_timeout: float = option(0.3, "Seconds to wait for a connection.", kind=SECONDS)
    pool_timeout: float = option(1.0, "Seconds to wait for a free connection.", kind=SECONDS)
    io_timeout: float = option(2.0, "Seconds to wait for a response.", kind=SECONDS)
    tries: int = option(3, "Number of servers to try for a key.", kind=COUNT)
    error_suppression_interval: float = option(60.0, "Seconds to avoid a failing server.", kind=SECONDS)
    error_suppression_limit: int = option(10, "Errors that make a server failing.", kind=COUNT)
    item_size_warning_threshold: int = option(
        -1, "Warn of values longer than this, in bytes; -1: never.", kind=integer(-1)
    )
    tls_enabled: bool = option(False, "Connect to the servers with TLS.")
    tls_cafile: str = option("", "CA certificates of the servers, in PEM format; empty: the system's.")
    tls_certfile: str = option("", "Certificate of this client, in PEM format, with those of its CAs.")
    tls_keyfile: str = option("", "Key of tls_certfile; empty: it is in tls_certfile.")

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of connections, None for plain ones; raises ``ConfigError``."""
        if not self.tls_enabled:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_cafile or None)
            if self.tls_certfile:
                context.load_cert_chain(self.tls_certfile, self.tls_keyfile or None)
        except OSError as error:
            files = " ".join(filter(None, (self.tls_cafile, self.tls_certfile, self.tls_keyfile)))
            raise ConfigError(f"[filter:cache]: cannot read the certificates ({files}): {error}")
        return context


class _Connection:
    """One connection to one server."""

    __slots__ = ("sock", "buffer")

    def __init__(self, sock: Any):
        self.sock = sock
        self.buffer = b""

    def send(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.sock.send(rest) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                green.wait_writable(self.sock.fileno(), deadline)
            except ssl.SSLWantReadError:
                green.wait_readable(self.sock.fileno(), deadline)

    def _receive(self, deadline: float) -> None:
        while True:
            try:
                data = self.sock.recv(65536)
                break
            except (BlockingIOError, ssl.SSLWantReadError):
                green.wait_readable(self.sock.fileno(), deadline)
            except ssl.SSLWantWriteError:
                green.wait_writable(self.sock.fileno(), deadline)
        if not data:
            raise ConnectionResetError("memcached closed the connection")
        self.buffer += data

    def line(self, deadline: float) -> bytes:
        while (end := self.buffer.find(b"\r\n")) < 0:
            self._receive(deadline)
        line, self.buffer = self.buffer[:end], self.buffer[end + 2 :]
        return line

    def exactly(self, size: int, deadline: float) -> bytes:
        while len(self.buffer) < size:
            self._receive(deadline)
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data


class _Server:
    """The connections to one server and its recent errors.

    A server with too many errors is avoided, except for a probe each ``PROBE_S``; a success ends that.
    """

    def __init__(self, name: str, settings: MemcacheSettings, tls: ssl.SSLContext | None):
        host, _, port = name.rpartition(":")
        self.address = (host.strip("[]"), int(port)) if host else (name.strip("[]"), 11211)
        self.settings = settings
        self._tls = tls
        self.idle: list[_Connection] = []
        self.slots = green.Semaphore(max(1, settings.memcache_max_connections))
        self.errors: list[float] = []
        self._probe_at = 0.0

    def is_usable(self) -> bool:
        """Return True if the server may be used now; the caller does, and records the outcome."""
        if not self.errors:
            return True
        now = time.monotonic()
        self.errors = [t for t in self.errors if now - t < self.settings.error_suppression_interval]
        if len(self.errors) <= self.settings.error_suppression_limit:
            return True
        if now < self._probe_at:
            return False
        self._probe_at = now + PROBE_S
        return True

    def failed(self) -> None:
        """Record a failure."""
        now = time.monotonic()
        limit = self.settings.error_suppression_limit
        self.errors = [*(self.errors[-limit:] if limit else ()), now]
        self._probe_at = now + PROBE_S

    def record_success(self) -> None:
        """Record a success, which ends all avoidance."""
        self.errors = []

    def run(self, command: Callable[[_Connection, float], object]) -> object:
        """Run ``talk(wire, deadline)`` on a connection; raises OSError or ``DeadlineExceeded``."""
        settings = self.settings
        if not self.slots.acquire(settings.pool_timeout):
            raise TimeoutError("no free memcached connection")
        try:
            reused = bool(self.idle)
            while True:
                connection = self.idle.pop() if reused else self._connect()
                try:
                    result = command(connection, time.monotonic() + settings.io_timeout)
                except OSError:
                    connection.sock.close()
                    if not reused:
                        raise
                    reused = bool(self.idle)
                    continue
                except BaseException:
                    connection.sock.close()
                    raise
                self.idle.append(connection)
                return result
        finally:
            self.slots.release()

    def _connect(self) -> _Connection:
        host, port = self.address
        deadline = time.monotonic() + self.settings.connect_timeout
        sock = green.connect(resolve(host, port), port, deadline)
        if self._tls is None:
            return _Connection(sock)
        try:
            tls = self._tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        except BaseException:
            sock.close()
            raise
        try:
            green.handshake(tls, deadline)
        except BaseException:
            tls.close()
            raise
        return _Connection(tls)


class MemcacheRing:
    """get, set, incr, decr, delete and their multi forms; values are JSON."""

    def __init__(
        self, settings: MemcacheSettings, telemetry: Telemetry | None = None, clock: Clock | None = None
    ):
        self._clock = clock or SystemClock()
        self._ring = ServerRing(settings.memcache_servers, settings.tries)
        tls = settings.tls_context()
        self._servers = {name: _Server(name, settings, tls) for name in self._ring.servers}
        self._size_warning = settings.item_size_warning_threshold
        self._health = NodeHealth(self._clock, patience_s=PATIENCE_S)
        self._telemetry = telemetry or Telemetry()

    def get(self, key: str, default: object = None, *, raise_on_error: bool = False) -> object:
        """Return the value of a key, ``default`` when it is missing."""
        hashed = wire_key(key)
        found = self._run("get", hashed, lambda w, d: _read_values(w, d, [hashed]), raise_on_error)
        return default if not found else found.get(hashed, default)

    def set(self, key: str, value: object, *, ttl_s: float = 0, raise_on_error: bool = False) -> None:
        """Store a value for ``ttl_s`` seconds (0: until it is pushed out)."""
        command = set_command(wire_key(key), value, expiry(ttl_s, time.time()))
        self._warn_of_size(key, value)
        self._run("set", wire_key(key), lambda w, d: _run_simple(w, d, command, b"STORED"), raise_on_error)

    def delete(self, key: str, *, server_key: str | None = None) -> None:
        """Delete a key."""
        command = b"delete %s\r\n" % wire_key(key).encode()
        self._run("delete", wire_key(server_key or key), lambda w, d: _run_simple(w, d, command, b""), False)

    def incr(self, key: str, delta: int = 1, *, ttl_s: float = 0) -> int:
        """Add to a counter (made at first use, never below zero); raises ``MemcacheError``."""
        hashed = wire_key(key)
        exptime = expiry(ttl_s, time.time())
        result = self._run("incr", hashed, lambda w, d: _count(w, d, hashed, delta, exptime), True)
        return int(result)

    def decr(self, key: str, delta: int = 1, *, ttl_s: float = 0) -> int:
        """Subtract from a counter."""
        return self.incr(key, -delta, ttl_s=ttl_s)

    def set_multi(self, values: Mapping[str, object], server_key: str, *, ttl_s: float = 0) -> None:
        """Store several values on the server of ``server_key``."""
        exptime = expiry(ttl_s, time.time())
        for key, value in values.items():
            self._warn_of_size(key, value)
        commands = b"".join(set_command(wire_key(k), v, exptime) for k, v in values.items())

        def command(connection: _Connection, deadline: float) -> bool:
            connection.send(commands, deadline)
            for _ in values:
                connection.line(deadline)
            return True

        self._run("set_multi", wire_key(server_key), command, False)

    def get_multi(self, keys: Sequence[str], server_key: str) -> list[object]:
        """Return several values from the server of ``server_key``; None for missing ones."""
        hashed = [wire_key(key) for key in keys]
        found = self._run("get_multi", wire_key(server_key), lambda w, d: _read_values(w, d, hashed), False)
        return [(found or {}).get(h) for h in hashed]

    def _warn_of_size(self, key: str, value: object) -> None:
        """Warn of a value that comes near the limit of the servers."""
        if self._size_warning < 0:
            return
        size = len(json.dumps(value))
        if size > self._size_warning:
            self._telemetry.log.warning(
                f"memcached value of {size} bytes is over item_size_warning_threshold "
                f"({self._size_warning}): {key}"
            )

    def _run(self, verb: str, hashed: str, command: Callable[[_Connection, float], Any], must: bool) -> Any:
        statsd = self._telemetry.statsd
        started = time.monotonic()
        for name in self._ring.servers_for(hashed):
            server = self._servers[name]
            if self._is_unresponsive(name) or not server.is_usable():
                continue
            self._health.requested(name, self._clock.monotonic())
            try:
                result = server.run(command)
                server.record_success()
                self._health.responded(name)
                _TIMING.time(statsd, time.monotonic() - started, verb=verb)
                return result
            except (OSError, green.DeadlineExceeded, ValueError) as error:
                server.failed()
                reason = "it did not respond in time; check that it runs"
                if not isinstance(error, green.DeadlineExceeded):
                    self._health.responded(name)
                    reason = str(error) or type(error).__name__
                _FAILED.time(statsd, time.monotonic() - started, verb=verb)
                self._telemetry.log.error(f"error talking to memcached {name}: {reason}")
        if must:
            raise MemcacheError(f"no memcached server responded to {verb}")
        return None

    def _is_unresponsive(self, name: str) -> bool:
        """Return True if a server is unresponsive; probe it in the background."""
        if not self._health.is_unresponsive(name):
            return False
        if self._health.is_probe_due(name):
            green.spawn_detached(self._probe, name)
        return True

    def _probe(self, name: str) -> None:
        try:
            self._servers[name].run(lambda w, d: _run_simple(w, d, b"version\r\n", b""))
        except green.DeadlineExceeded:
            return
        except (OSError, ValueError):
            self._servers[name].failed()
        else:
            self._servers[name].record_success()
        self._health.responded(name)

    def __repr__(self) -> str:
        return f"<MemcacheRing {', '.join(self._ring.servers)}>"


def _run_simple(connection: _Connection, deadline: float, command: bytes, expected: bytes) -> bool:
    connection.send(command, deadline)
    answer = connection.line(deadline)
    if expected and answer != expected:
        raise ValueError(f"unexpected response of memcached: {answer[:64]!r}")
    return True


def _read_values(connection: _Connection, deadline: float, hashed: Sequence[str]) -> dict[str, object]:
    connection.send(get_command(hashed), deadline)
    values: dict[str, object] = {}
    while (line := connection.line(deadline)) != b"END":
        word, key, flags, size = line.split()[:4]
        if word != b"VALUE":
            raise ValueError(f"unexpected response of memcached: {line[:64]!r}")
        data = connection.exactly(int(size) + 2, deadline)[:-2]
        value = decode_value(int(flags), data)
        if value is not None:
            values[key.decode()] = value
    return values


def _count(connection: _Connection, deadline: float, hashed: str, delta: int, exptime: int) -> int:
    verb = b"decr" if delta < 0 else b"incr"
    key = hashed.encode()
    for _ in range(2):
        connection.send(b"%s %s %d\r\n" % (verb, key, abs(delta)), deadline)
        answer = connection.line(deadline)
        if answer != b"NOT_FOUND":
            return int(answer)
        initial = str(max(0, delta)).encode()
        connection.send(b"add %s 0 %d %d\r\n%s\r\n" % (key, exptime, len(initial), initial), deadline)
        if connection.line(deadline) == b"STORED":
            return max(0, delta)
    raise ValueError("the counter comes and goes")
