"""Telling the account servers about a container (spec: account-container.md §12 "Account update").

All named servers are told at the same time. A failure is logged and otherwise left to the container updater;
only when every one of them answers 404 does the caller learn that the account does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from swift import green
from swift.base.digits import is_digits
from swift.cluster.direct import DirectClient
from swift.cluster.transport import NodeAddress, TransportError, node_path
from swift.config.kinds import COUNT, SECONDS
from swift.config.schema import Settings, option
from swift.container.broker import ContainerFacts
from swift.dbserver.app import StorageTarget
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.runtime.backendapp import BackendContext
from swift.telemetry.repeatederrors import RepeatedErrorLog


@dataclass(frozen=True)
class ContainerSettings(Settings):
    """Options of the container server."""

    allowed_sync_hosts: tuple[str, ...] = option(
        (),
        "Hosts, or host:port, that X-Container-Sync-To URLs may name beside realms; mostly set in [DEFAULT]. "
        "Only host:port may be on this machine.",
    )
    node_timeout: float = option(3.0, "Seconds to wait for an account server.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    allow_versions: bool = option(False, "Keep X-Versions-Location of the legacy versioning.")
    db_preallocation: bool = option(False, "Allocate databases in large steps.")
    db_query_logging: bool = option(False, "Log every SQL statement.")
    threads_per_disk: int = option(
        4,
        "Threads per device for long calls, and for all while it is slow or not the only one of its process. "
        "0 runs everything on the event loop.",
        kind=COUNT,
    )


class AccountResponse(Enum):
    """Combined response of the account servers."""

    TOLD = auto()
    ALL_MISSING = auto()


class AccountUpdater:
    """Sends the rows of one container server."""

    def __init__(self, context: BackendContext, settings: ContainerSettings):
        self._context = context
        self._direct = DirectClient(context.transport, "container-server", settings)
        self._failures = RepeatedErrorLog(context.telemetry.log, context.clock)

    def check(self, request: Request) -> None:
        """Refuse header lists that do not fit together: ``HTTPError`` 400."""
        self._nodes(request)

    def report(self, request: Request, target: StorageTarget, info: ContainerFacts) -> AccountResponse:
        """Tell the account servers that the request names."""
        nodes = self._nodes(request)
        if not nodes:
            return AccountResponse.TOLD
        headers = self._headers(request, info)
        statuses = green.gather(
            [partial(self._send_report, request, target, host, device, headers) for host, device in nodes]
        )
        return (
            AccountResponse.ALL_MISSING if all(status == 404 for status in statuses) else AccountResponse.TOLD
        )

    def _nodes(self, request: Request) -> list[tuple[str, str]]:
        hosts = _split_comma_list(request.headers.get("x-account-host"))
        devices = _split_comma_list(request.headers.get("x-account-device"))
        if len(hosts) != len(devices):
            self._context.telemetry.log.error(
                f"ERROR Account update failed: different numbers of hosts and devices in request: "
                f'"{",".join(hosts)}" vs "{",".join(devices)}"',
                txid=request.headers.get("x-trans-id"),
            )
            raise HTTPError(400)
        return list(zip(hosts, devices, strict=True)) if "x-account-partition" in request.headers else []

    def _headers(self, request: Request, info: ContainerFacts) -> HeaderMap:
        headers = {
            "x-put-timestamp": info.put_timestamp,
            "x-delete-timestamp": info.delete_timestamp,
            "x-object-count": str(info.object_count),
            "x-bytes-used": str(info.bytes_used),
            "x-trans-id": request.headers.get("x-trans-id", "-"),
            fields.BACKEND_STORAGE_POLICY_INDEX: str(info.storage_policy_index),
            "referer": f"{request.method} {request.url}",
        }
        if "x-account-override-deleted" in request.headers:
            headers["x-account-override-deleted"] = request.headers["x-account-override-deleted"]
        return headers

    def _send_report(
        self, request: Request, target: StorageTarget, host: str, device: str, headers: HeaderMap
    ) -> int | None:
        """Return the status of one account server, None when it could not be asked."""
        partition = request.headers["x-account-partition"]
        node = f"{host}/{device}"
        try:
            address = split_host(host)
        except ValueError as error:
            self._log_failure(node, error)
            return None
        sent = {"content-length": "0", "user-agent": self._direct.agent, **headers}
        path = node_path(device, partition, target.path.quoted)
        try:
            reply = self._direct.request(NodeAddress(*address), "PUT", path, sent)
        except TransportError as error:
            self._log_failure(node, error)
            return None
        if reply.status == 404:
            return 404
        if not reply.is_success:
            self._failures.error(
                f"ERROR Account update failed with {node} (will retry later): Response {reply.status} "
                f"{reply.reason}",
                txid=request.headers.get("x-trans-id"),
            )
        return reply.status

    def _log_failure(self, node: str, error: Exception) -> None:
        self._failures.error(f"ERROR account update failed with {node} (will retry later): {error}")


def _split_comma_list(header: str | None) -> list[str]:
    return [item.strip() for item in header.split(",")] if header else []


def split_host(host: str) -> tuple[str, int]:
    """``ip:port`` (brackets around IPv6 allowed) in its parts; raises ValueError."""
    ip, separator, port = host.rpartition(":")
    if not separator or not is_digits(port):
        raise ValueError(f"{host!r} is not an address with a port")
    return ip.strip("[]"), int(port)
