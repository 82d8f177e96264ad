"""Asking many servers for their recon facts at the same time.

A server is an address of the ring; what it does not answer in time, or not as JSON, is its error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from swift import green
from swift.cluster.exchange import HttpTransport
from swift.cluster.pool import ConnectionPool
from swift.cluster.transport import (
    BackendResponse,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    Transport,
    TransportError,
)
from swift.ring.device import Device, address
from swift.telemetry.metrics import Registry

AT_ONCE = 30
#: A reply has this size at most; that of a node with many devices has some 100 KB.
REPLY_BYTES_MAX = 16 << 20
#: A reply is there after so many times the time limit of its parts.
_PARTS_MAX = 3


class Host(NamedTuple):
    """The address of a server."""

    ip: str
    port: int

    def __str__(self) -> str:
        return address(self.ip, self.port)


@dataclass(frozen=True)
class ReconReply:
    """Reply of a server, or the reason for none."""

    host: Host
    url: str
    #: None when there is an error.
    content: Any = None
    error: str = ""
    headers: dict[str, str] | None = None


def unique_hosts(
    devices: Iterable[Device | None], *, region: int | None = None, zone: int | None = None
) -> list[Host]:
    """Return the servers of a ring's devices, each once, in order."""
    found = {
        Host(device.ip, device.port)
        for device in devices
        if device is not None
        and (region is None or device.region == region)
        and (zone is None or device.zone == zone)
    }
    return sorted(found)


class ReconClient:
    """Asks servers."""

    def __init__(self, timeout_s: float, *, transport: Transport | None = None, agent: str = "swift-recon"):
        self._timeout_s = timeout_s
        self._transport = transport or HttpTransport(
            ConnectionPool(Registry()), body_bytes_max=REPLY_BYTES_MAX
        )
        self._headers = {"user-agent": agent}
        self._places = green.Semaphore(AT_ONCE)

    def request_all(self, hosts: Sequence[Host], path: str, method: str = "GET") -> list[ReconReply]:
        """Return each host's reply for a path below ``/``, in the order of the hosts."""
        return green.gather([partial(self._request, host, path, method) for host in hosts])

    def recon(self, hosts: Sequence[Host], check: str) -> list[ReconReply]:
        """Return each host's reply for ``/recon/<check>``."""
        return self.request_all(hosts, f"recon/{check}")

    def _request(self, host: Host, path: str, method: str) -> ReconReply:
        url = f"http://{host}/{path}"
        with self._places:
            try:
                timeouts = NodeTimeouts(self._timeout_s, self._timeout_s)
                node = NodeAddress(host.ip, host.port)
                request = NodeRequest(node, method, f"/{path}", self._headers, b"", timeouts)
                # The limit of a part does not end a reply that comes byte by byte.
                with green.Timeout(_PARTS_MAX * self._timeout_s):
                    reply = self._transport.request(request)
            except TransportError as error:
                return ReconReply(host, url, error=str(error))
            except green.DeadlineExceeded:
                return ReconReply(host, url, error="the reply takes too long")
        return _make_reply(host, url, method, reply)


def _make_reply(host: Host, url: str, method: str, reply: BackendResponse) -> ReconReply:
    headers = dict(reply.headers)
    if method != "GET":
        return ReconReply(host, url, reply.status, headers=headers)
    if not reply.is_success:
        return ReconReply(host, url, error=f"HTTP Error {reply.status}: {reply.reason}", headers=headers)
    try:
        return ReconReply(host, url, json.loads(reply.body), headers=headers)
    except (ValueError, RecursionError):
        return ReconReply(host, url, error="the answer is not JSON", headers=headers)
