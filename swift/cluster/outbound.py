"""Requests to hosts that are no nodes of the cluster: container sync, webhooks, the identity service.

This is the one place that decides to which addresses such requests go, and the only client that sends them.
A host name is resolved first, every address is checked, and the connection is made to a checked address, so
that a later response of the name server changes nothing. Redirects are not followed. ``Trust`` is the origin
of the address:

* An operator may name any address but the address and port of a storage server.
* A client may not name an address of the storage network, of this machine, nor one that is special
  (loopback, link-local, unspecified, multicast, reserved), in any notation.

``cluster.syncrealms`` decides which host names clients may use.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TypeAlias
from urllib.parse import SplitResult

from swift import green
from swift.base.errors import SwiftError
from swift.cluster.exchange import HttpTransport
from swift.cluster.hosts import resolve_all
from swift.cluster.pool import ConnectionPool, start_tls
from swift.cluster.rings import Rings
from swift.cluster.transport import (
    BackendResponse,
    Exchange,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    TimedOut,
)
from swift.http.headers import HeaderMap
from swift.platform.addresses import normalize_address, own_addresses
from swift.ring.view import RingView
from swift.telemetry.metrics import Registry

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Address (or host name) and port of a storage server.
Endpoint: TypeAlias = tuple[str, int]

_PORTS = {"http": 80, "https": 443}
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
#: IPv4 addresses that are translated to IPv6 ones (RFC 6052, RFC 8215).
_TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class OutboundRefused(SwiftError):
    """A request may not be sent to an address."""


class Trust(Enum):
    """Origin of a request's address."""

    CLIENT = "a client"
    OPERATOR = "the operator"


class StorageEndpoints:
    """The addresses and ports of all devices of the rings, read again when a ring changes."""

    def __init__(self, rings: Rings, resolve: Callable[[str, int], list[str]] = resolve_all):
        self._rings = rings
        self._resolve = resolve
        self._views: list[RingView] = []
        self._found: frozenset[Endpoint] = frozenset()

    def __call__(self) -> frozenset[Endpoint]:
        """Return the endpoints; those of a ring that cannot be read are missing."""
        views = self._rings.readable_views()
        if [id(view) for view in views] != [id(view) for view in self._views]:
            self._found = frozenset(self._endpoints(views))
            self._views = views
        return self._found

    def _endpoints(self, views: Iterable[RingView]) -> Iterable[Endpoint]:
        named = {
            endpoint
            for view in views
            for device in view.devices
            if device is not None
            for endpoint in (
                (device.ip, device.port),
                (device.replication_ip, device.replication_port),
            )
        }
        for host, port in named:
            yield normalize_address(host), port
            if _parse_address(host) is None:
                try:
                    yield from ((normalize_address(ip), port) for ip in self._resolve(host, port))
                except OSError:
                    # A device whose name is unknown cannot be reached under another one either.
                    continue


class OutboundConnection:
    """A connection for one request to a server outside the cluster."""

    def __init__(self, transport: HttpTransport, sock: socket.socket, host: str, port: int, timeout_s: float):
        self._transport = transport
        self._sock = sock
        self._host = host
        self._port = port
        self._timeout_s = timeout_s

    def stream(self, method: str, target: str, headers: HeaderMap, body: bytes = b"") -> Exchange:
        """Send the head, and ``body`` with it; raises ``TransportError``.

        The caller sets ``content-length`` or ``transfer-encoding``; header names are in lower case.
        """
        return self._begin(method, target or "/", {"connection": "close", **headers}, body, self._host)

    def request(
        self, method: str, target: str, headers: HeaderMap, body: bytes = b"", *, bytes_max: int
    ) -> BackendResponse:
        """Send a request and read at most ``bytes_max`` of its response; raises ``TransportError``.

        The body must arrive within the timeout as a whole.
        """
        length = {"content-length": str(len(body))} if body or method in ("POST", "PUT") else {}
        response = self.stream(method, target, {**length, **headers}, body).response()
        deadline = time.monotonic() + self._timeout_s
        content = bytearray()
        while len(content) < bytes_max and (piece := response.stream.read(bytes_max - len(content))):
            content += piece
            if time.monotonic() > deadline:
                raise TimedOut(f"{method} to {self._host}: the body takes too long")
        return BackendResponse(response.status, response.headers, bytes(content), response.reason)

    def switch_protocol(self, method: str, target: str) -> socket.socket:
        """Send a request after whose success the connection carries something else; return its socket.

        Raises ``TransportError`` and OSError.
        """
        response = self._begin(method, target, {}, b"", target).duplex(self._timeout_s)
        if not response.is_success:
            raise OSError(f"{method} {target}: the proxy responded {response.status} {response.reason}")
        return self._sock

    def _begin(self, method: str, target: str, headers: HeaderMap, body: bytes, host: str) -> Exchange:
        timeouts = NodeTimeouts(self._timeout_s, self._timeout_s)
        node = NodeAddress(self._host.removesuffix(f":{self._port}"), self._port)
        request = NodeRequest(node, method, target, headers, body, timeouts)
        return self._transport.stream_on_socket(self._sock, request, host)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def __enter__(self) -> OutboundConnection:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Outbound:
    """Checks addresses and connects to them."""

    def __init__(
        self,
        storage: Callable[[], frozenset[Endpoint]] = frozenset,
        *,
        resolve: Callable[[str, int], list[str]] = resolve_all,
        own: Callable[[], frozenset[str]] = own_addresses,
        connect: Callable[[Endpoint, float], socket.socket] | None = None,
    ):
        self._storage = storage
        self._resolve = resolve
        self._own = own
        self._connect = connect or _connect
        # Connections are used once.
        self._transport = HttpTransport(ConnectionPool(Registry(), per_address_max=0))

    @classmethod
    def of_rings(cls, rings: Rings) -> Outbound:
        """Return one that knows the storage servers of ``rings``."""
        return cls(StorageEndpoints(rings))

    def check_literal(self, host: str, port: int, trust: Trust) -> None:
        """Check a host that is an address; a name is left for ``addresses``. Raises ``OutboundRefused``."""
        if _parse_address(host) is not None:
            self._check(host, host, port, trust)

    def addresses(self, host: str, port: int, trust: Trust) -> list[str]:
        """Return the addresses of a host, all of them checked; raises ``OutboundRefused`` and OSError."""
        found = self._resolve(host, port)
        for ip in found:
            self._check(host, ip, port, trust)
        if not found:
            raise OSError(f"{host} has no address")
        return found

    def connection(
        self,
        scheme: str,
        host: str,
        port: int | None,
        trust: Trust,
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        host_header: str = "",
    ) -> OutboundConnection:
        """Return a connection to a checked address of a host; raises ``OutboundRefused`` and OSError.

        ``tls`` replaces the default context of ``https``; certificates are verified for the host's name.
        ``timeout_s`` limits the connection and each wait for the server. ``host_header`` replaces the host in
        requests, for a proxy.
        """
        number = default_port(scheme) if port is None else port
        sock = self._connect_any(self.addresses(host, number, trust), number, timeout_s)
        if scheme == "https":
            sock = start_tls(sock, host, timeout_s, tls)
        shown = host_header or _host_header(scheme, host, port)
        return OutboundConnection(self._transport, sock, shown, number, timeout_s)

    def tunnel(
        self,
        proxy: SplitResult,
        host: str,
        port: int | None,
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> OutboundConnection:
        """Return a connection to an ``https`` host through an HTTP proxy of the operator (RFC 9110 §9.3.6).

        Raises ``OutboundRefused``, OSError and ``TransportError``.
        """
        number = default_port("https") if port is None else port
        target = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
        found = self.connection("http", proxy.hostname or "", proxy.port, Trust.OPERATOR, timeout_s=timeout_s)
        try:
            sock = found.switch_protocol("CONNECT", target)
        except BaseException:
            found.close()
            raise
        sock = start_tls(sock, host, timeout_s, tls)
        return OutboundConnection(self._transport, sock, _host_header("https", host, port), number, timeout_s)

    def _connect_any(self, addresses: list[str], port: int, timeout_s: float) -> socket.socket:
        failure: OSError | None = None
        for ip in addresses:
            try:
                sock = self._connect((ip, port), timeout_s)
            except OSError as error:
                failure = error
                continue
            sock.setblocking(False)
            return sock
        raise failure or OSError("no address")

    def _check(self, host: str, ip: str, port: int, trust: Trust) -> None:
        address = _parse_address(ip)
        if address is None:
            raise OutboundRefused(f"{host} resolves to {ip!r}, which is no address")
        reason = self._refusal_reason(_embedded_ipv4(address), port, trust)
        if reason:
            where = host if host == ip else f"{host} ({ip})"
            raise OutboundRefused(f"{where}, port {port}: {reason}; {trust.value} may not name it")

    def _refusal_reason(self, address: _Address, port: int, trust: Trust) -> str:
        """Return why a request may not go to an address, "" if it may."""
        storage = self._storage()
        ip = str(address)
        if (ip, port) in storage:
            return "a storage server"
        is_here = address.is_loopback or address.is_unspecified or ip in self._own()
        if is_here and any(port == number for _ip, number in storage):
            return "the port of a storage server on this machine"
        if trust is Trust.OPERATOR:
            return ""
        if any(ip == storage_ip for storage_ip, _port in storage):
            return "an address of the storage network"
        if is_here:
            return "an address of this machine"
        return _special_reason(address)


def _connect(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    try:
        return green.connect(*endpoint, time.monotonic() + timeout_s)
    except green.DeadlineExceeded:
        raise TimeoutError("timed out")


def _host_header(scheme: str, host: str, port: int | None) -> str:
    """Return the Host header, which leaves out the default port."""
    name = f"[{host}]" if ":" in host else host
    return name if port in (None, default_port(scheme)) else f"{name}:{port}"


def default_port(scheme: str) -> int:
    """Return the port of a URL without one."""
    return _PORTS[scheme]


def _parse_address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _embedded_ipv4(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    compatible = ipaddress.IPv4Address(int(address)) if 1 < int(address) < 1 << 32 else None
    return (
        address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or compatible or address
    )


def _special_reason(address: _Address) -> str:
    """Return why an address belongs to no other cluster, "" if it may."""
    if isinstance(address, ipaddress.IPv4Address) and address in _THIS_NETWORK:
        return "an unspecified address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_reserved or (isinstance(address, ipaddress.IPv6Address) and address.is_site_local):
        return "a reserved address"
    return ""
