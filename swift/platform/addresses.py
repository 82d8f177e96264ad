"""The addresses of this machine, by which daemons find their devices in rings (spec: replication.md §1)."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

_SIOCGIFCONF = 0x8912
_ENTRY_BYTES = 40
_ANY_ADDRESS = frozenset(("", "0.0.0.0", "::"))


def normalize_address(ip: str) -> str:
    """Return one spelling of an address, so that two can be compared; a host name stays as it is."""
    try:
        return str(ipaddress.ip_address(ip.strip("[]").partition("%")[0]))
    except ValueError:
        return ip


def own_addresses(bind_ip: str = "") -> frozenset[str]:
    """Return the addresses of this node in rings: ``bind_ip``, or those of every interface."""
    if bind_ip not in _ANY_ADDRESS:
        return frozenset(normalize_address(item) for item in (bind_ip, *_resolve_hosts((bind_ip,))))
    return frozenset((*_ipv4_addresses(), *_ipv6_addresses()))


def matches_any_address(host: str, addresses: frozenset[str]) -> bool:
    """Return True if an address or host name of a ring means one of ``addresses``."""
    plain = normalize_address(host)
    if plain in addresses:
        return True
    return not is_address(plain) and any(normalize_address(ip) in addresses for ip in _resolve_hosts((host,)))


def is_address(text: str) -> bool:
    """Return True if a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _resolve_hosts(hosts: Iterable[str]) -> list[str]:
    found = []
    for host in hosts:
        if is_address(normalize_address(host)):
            continue
        try:
            found += [str(entry[4][0]) for entry in socket.getaddrinfo(host, None)]
        except OSError:
            # A name that does not resolve is no address of this host.
            continue
    return found


def _ipv4_addresses() -> list[str]:
    """Return the addresses of all interfaces that are up, from the kernel."""
    buffer = array.array("B", bytes(_ENTRY_BYTES * 256))
    address, length = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = fcntl.ioctl(sock.fileno(), _SIOCGIFCONF, struct.pack("iL", length, address))
    used = struct.unpack("iL", answer)[0]
    data = buffer.tobytes()[:used]
    return [socket.inet_ntoa(data[start + 20 : start + 24]) for start in range(0, len(data), _ENTRY_BYTES)]


def _ipv6_addresses() -> list[str]:
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return []
    return [str(ipaddress.IPv6Address(int(line.split()[0], 16))) for line in lines if line.strip()]
