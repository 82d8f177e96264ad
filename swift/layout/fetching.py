"""Layouts that other nodes serve: requests, bounded in size and time. Nothing here trusts a response."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterable, Sequence

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.transport import NodeAddress, NodeRequest, Timeouts, Transport, TransportError
from swift.http.body import BodyError
from swift.http.environ import split_host
from swift.platform.disk import names_in
from swift.ring.builder import RingBuilder
from swift.ring.device import address
from swift.ring.errors import LayoutError, RingError
from swift.ring.layoutfiles import Installation, LayoutFolder, TableCheck, accept_table
from swift.ring.manifest import MANIFEST_BYTES_MAX, FileEntry, Manifest, is_layout_file, is_ring
from swift.ring.view import RingView
from swift.runtime.layoutpages import MANIFEST_PATH, PREFIX

#: A server must send at least so many bytes a second, after the first seconds.
_BYTES_PER_SECOND_MIN = 1 << 18
_FIRST_SECONDS = 15.0
_PIECE_BYTES = 1 << 16
#: Servers that are asked for one file before an attempt ends.
TRIES = 8


class FetchFailed(SwiftError):
    """A server did not send its manifest or a file."""


class FileAbsent(FetchFailed):
    """A server does not have a file."""


def known_servers(views: Iterable[RingView], folder: LayoutFolder) -> list[list[NodeAddress]]:
    """Return the storage servers of rings, grouped by host; those of builders where no ring can be read."""
    found = {(each.ip, each.port) for view in views for each in view.devices if each is not None}
    for name in () if found else names_in(folder.disk, folder.path):
        if is_layout_file(name) and not is_ring(name):
            with contextlib.suppress(OSError, RingError):
                builder = RingBuilder.load(folder.path_of(name))
                found |= {(device["ip"], device["port"]) for device in builder.live_devs}
    hosts: dict[str, list[NodeAddress]] = {}
    for ip, port in sorted(found):
        hosts.setdefault(ip, []).append(NodeAddress(ip, port, address(ip, port)))
    return list(hosts.values())


def parse_servers(words: Iterable[str]) -> list[NodeAddress]:
    """Return the servers of words ``IP:PORT``. Raises ``ConfigError``."""
    servers = []
    for word in words:
        host, port = split_host(word)
        if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigError(f"{word!r} is not IP:PORT of a storage server")
        servers.append(NodeAddress(host.strip("[]"), int(port), word))
    return servers


class LayoutClient:
    """Reads the layout of storage servers; ``name`` is that of its ``User-Agent``."""

    def __init__(self, transport: Transport, name: str, timeouts: Timeouts):
        self._transport = transport
        self._timeouts = timeouts
        self._headers = {"content-length": "0", "user-agent": f"{name} {os.getpid()}"}

    def __repr__(self) -> str:
        return f"<LayoutClient {self._headers['user-agent']}>"

    def manifest(self, server: NodeAddress) -> bytes | None:
        """Return the manifest of a server, None if it has none. Raises ``FetchFailed``."""
        return self._get(server, MANIFEST_PATH, MANIFEST_BYTES_MAX)

    def file(self, server: NodeAddress, entry: FileEntry) -> bytes:
        """Return a file with the checksum of ``entry``. Raises ``FetchFailed``."""
        data = self._get(server, PREFIX + entry.sha256, entry.size_bytes)
        if data is None:
            raise FileAbsent(f"{server.key} does not have the file")
        if FileEntry.of(data) != entry:
            raise FetchFailed(f"{server.key} sent another file")
        return data

    def _get(self, server: NodeAddress, path: str, size_bytes_max: int) -> bytes | None:
        request = NodeRequest(server, "GET", path, dict(self._headers), b"", self._timeouts)
        try:
            with green.Timeout(_FIRST_SECONDS + size_bytes_max / _BYTES_PER_SECOND_MIN):
                return self._read(request, size_bytes_max)
        except green.DeadlineExceeded:
            raise FetchFailed(f"{server.key} is too slow")
        except (TransportError, BodyError, OSError) as error:
            raise FetchFailed(f"{server.key} does not respond: {error}")

    def _read(self, request: NodeRequest, size_bytes_max: int) -> bytes | None:
        response = self._transport.stream(request).response()
        try:
            if response.status in (400, 404):
                # 400 is that of OpenStack Swift, where this is no path.
                return None
            if response.status != 200:
                raise FetchFailed(f"{request.node.key} responded {response.status}")
            data = bytearray()
            while piece := response.stream.read(_PIECE_BYTES):
                data += piece
                if len(data) > size_bytes_max:
                    raise FetchFailed(f"{request.node.key} sent more than {size_bytes_max} bytes")
            return bytes(data)
        finally:
            response.stream.close()


def fetch_missing(
    client: LayoutClient, installation: Installation, servers: Sequence[NodeAddress], rng: random.Random
) -> None:
    """Stage the files that a node lacks, each from one of the servers, the first one first.

    The server that sent a file is asked first for the next one, and one that was slow or sent something else
    is not asked again. Raises ``FetchFailed`` with the reason of the last server, ``LayoutError``, OSError.
    """
    left = list(servers)
    for name in installation.missing():
        installation.stage(name, _fetch(client, name, installation.manifest.files[name], left, rng))


def _fetch(
    client: LayoutClient, name: str, entry: FileEntry, servers: list[NodeAddress], rng: random.Random
) -> bytes:
    """Return a file; put its server first in ``servers``, and take out those that failed otherwise."""
    reason = "there is no server to ask"
    others = servers[1:]
    rng.shuffle(others)
    for server in [*servers[:1], *others][:TRIES]:
        try:
            data = client.file(server, entry)
        except FileAbsent as error:
            reason = str(error)
        except FetchFailed as error:
            reason = str(error)
            servers[:] = [each for each in servers if each != server]
        else:
            servers[:] = [server, *(each for each in servers if each != server)]
            return data
    raise FetchFailed(f"{name}: {reason}")


def fetch_layout(
    swift_dir: str,
    client: LayoutClient,
    servers: Sequence[NodeAddress],
    *,
    check: TableCheck = accept_table,
) -> Manifest:
    """Install the newest layout of some servers on a node that has ``layout.pub``; return its manifest.

    Raises ``FetchFailed`` if no server has a layout that can be trusted, ``LayoutError`` if it must not
    replace the present one, and OSError.
    """
    folder = LayoutFolder(swift_dir)
    found: list[tuple[Installation, NodeAddress]] = []
    reason = "no server has a layout"
    for server in servers:
        try:
            data = client.manifest(server)
            if data is not None:
                found.append((folder.open(data, check=check), server))
        except FetchFailed as error:
            reason = str(error)
        except LayoutError as error:
            reason = f"the layout of {server.key} is refused: {error}"
    if not found:
        raise FetchFailed(reason)
    installation, source = max(found, key=lambda each: each[0].manifest.rank)
    others = [server for server in servers if server != source]
    fetch_missing(client, installation, [source, *others], random.Random())
    installation.commit()
    return installation.manifest
