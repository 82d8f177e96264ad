"""Reports of load balancers about their clients: the PROXY protocol, and headers.

By the protocol a balancer reports the client's address before the first byte of HTTP: versions 1 (a line of
text) and 2 (binary) of HAProxy's ``proxy-protocol.txt``. Only bytes are looked at here;
``runtime.connection`` reads them. Headers are believed only if the connection comes from a balancer that the
configuration names.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import MutableMapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from swift.config.kinds import IPNetwork
from swift.wire.http1 import BadHead

#: The length of the shortest line; the fixed head of version 2 has one byte more.
FIRST_BYTES = 15
#: The longest line of version 1, its end included.
LINE_BYTES_MAX = 107
#: The longest header of version 2 that is taken: the protocol allows 65,535 bytes.
OPTIONS_BYTES_MAX = 4096

_LINE = b"PROXY "
_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_HEAD = struct.Struct("!BBH")
#: The low nibble of the command: a connection of the balancer's own, or one that it forwards.
_LOCAL, _PROXY = 0, 1
#: Family and transport → the struct of both addresses and ports.
_ADDRESSES = {0x11: struct.Struct("!4s4sHH"), 0x21: struct.Struct("!16s16sHH")}
#: The type of the option about encryption, and its bit for a client that connected over TLS.
_TLS_OPTION, _TLS_BIT = 0x20, 0x01
HTTPS_PORT = 443


class Forwarded(NamedTuple):
    """A client's connection, as the load balancer reports it."""

    address: str
    port: int
    #: True if the client used TLS: the header says so, or it connected to port 443.
    is_tls: bool


#: Headers in which balancers report a client; of trusted ones only the first two are believed.
_FOR, _PROTO, _OTHER = "x-forwarded-for", "x-forwarded-proto", "x-cluster-client-ip"


class TrustedProxies:
    """Networks of load balancers whose headers are believed."""

    def __init__(self, networks: Sequence[IPNetwork]):
        self._networks = tuple(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def includes(self, address: str) -> bool:
        """Return True if an address is one of a trusted balancer."""
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def drop_headers(self, headers: MutableMapping[str, str]) -> None:
        """Remove what a client that is no balancer says of its own address and scheme."""
        for name in (_FOR, _PROTO, _OTHER):
            headers.pop(name, None)

    def take_headers(self, headers: MutableMapping[str, str]) -> tuple[str, str]:
        """Return the client's address and its scheme, or empty texts, as a trusted balancer reports them.

        The client is the last address that is not a balancer's: others may be the client's invention. Only
        this address is left in the headers.
        """
        headers.pop(_OTHER, None)
        client = ""
        for word in reversed(headers.pop(_FOR, "").split(",")):
            found = _address(word.strip())
            if found is None:
                break
            client = str(found)
            if not self.includes(client):
                break
        if client:
            headers[_FOR] = client
        scheme = headers.get(_PROTO, "").rpartition(",")[2].strip().lower()
        return client, scheme if scheme in ("http", "https") else ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, perhaps with a port; None for other text."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def bytes_needed(data: bytes) -> int:
    """Return how many more bytes to read at least; 0 when the header is complete.

    No more than this may be read: what follows belongs to HTTP or TLS. Raises ``BadHead`` 400 as soon as the
    bytes cannot be a header.
    """
    if not data.startswith(_SIGNATURE[: len(data)]):
        if not data.startswith(_LINE[: len(data)]) or len(data) > LINE_BYTES_MAX:
            raise _bad_header(data)
        if len(data) < FIRST_BYTES:
            return FIRST_BYTES - len(data)
        return 0 if data.endswith(b"\n") else 1
    head = len(_SIGNATURE) + _HEAD.size
    if len(data) < head:
        return (FIRST_BYTES if len(data) < FIRST_BYTES else head) - len(data)
    _version, _family, size = _HEAD.unpack_from(data, len(_SIGNATURE))
    if size > OPTIONS_BYTES_MAX:
        raise BadHead(400, f"PROXY header of {size} bytes, more than {OPTIONS_BYTES_MAX}")
    return head + size - len(data)


def parse(data: bytes) -> Forwarded | None:
    """Return the client's connection from a complete header; None for the balancer's own checks.

    Raises ``BadHead`` 400.
    """
    return _parse_binary(data) if data.startswith(_SIGNATURE) else _parse_line(data)


def _parse_line(data: bytes) -> Forwarded | None:
    words = data.decode("ascii", "replace").rstrip("\r\n").split(" ")
    if words[1:2] == ["UNKNOWN"]:
        return None
    try:
        _proxy, family, source, destination, source_port, port = words
        version = {"TCP4": 4, "TCP6": 6}[family]
        addresses = [ipaddress.ip_address(text) for text in (source, destination)]
        if any(address.version != version for address in addresses):
            raise ValueError("an address of another family")
        return Forwarded(str(addresses[0]), _port(source_port), _port(port) == HTTPS_PORT)
    except (ValueError, KeyError):
        raise _bad_header(data)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 0xFFFF:
        raise ValueError(f"bad port {text}")
    return int(text)


def _parse_binary(data: bytes) -> Forwarded | None:
    start = len(_SIGNATURE)
    version_command, family, _size = _HEAD.unpack_from(data, start)
    body = data[start + _HEAD.size :]
    if version_command >> 4 != 2 or version_command & 0xF not in (_LOCAL, _PROXY):
        raise _bad_header(data[: start + _HEAD.size])
    addresses = _ADDRESSES.get(family)
    if version_command & 0xF == _LOCAL or addresses is None:
        return None
    if len(body) < addresses.size:
        raise _bad_header(data[: start + _HEAD.size])
    source, _destination, source_port, port = addresses.unpack_from(body)
    is_tls = port == HTTPS_PORT or _has_tls(body[addresses.size :])
    return Forwarded(str(ipaddress.ip_address(source)), source_port, is_tls)


def _has_tls(options: bytes) -> bool:
    """Return True if the options say that the client connected over TLS."""
    while len(options) >= 3:
        kind, size = struct.unpack_from("!BH", options)
        value, options = options[3 : 3 + size], options[3 + size :]
        if kind == _TLS_OPTION and value and value[0] & _TLS_BIT:
            return True
    return False


def _bad_header(data: bytes) -> BadHead:
    return BadHead(400, f"Invalid PROXY line {data[:LINE_BYTES_MAX]!r}")
