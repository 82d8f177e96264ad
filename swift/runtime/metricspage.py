"""One metrics page for all workers of a server.

Each worker writes its own numbers into its slot of a shared memory map once a second; whichever worker
is asked for the page joins the slots. A ``pid`` label tells the workers apart. The page has an address of its
own: what a server counts is not for its clients.
"""

from __future__ import annotations

import mmap
import os
import struct
from functools import partial

from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.runtime.httpd import HttpServer
from swift.telemetry.log import Log
from swift.telemetry.metrics import Registry
from swift.telemetry.telemetry import Telemetry

SLOT_BYTES = 1 << 18
_LENGTH = struct.Struct("<I")
#: Readers of the page are few and quick.
READERS_MAX = 16
READER_TIMEOUT_S = 10.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SharedMetricsPage:
    """Shared slots; make it before forking."""

    def __init__(self, slots: int):
        self._slots = max(1, slots)
        self._map = mmap.mmap(-1, self._slots * SLOT_BYTES)
        self._index = 0
        self._registry: Registry | None = None

    def register_worker(self, index: int, registry: Registry) -> None:
        """Register this process as worker ``index`` that counts in ``registry``."""
        self._index = index % self._slots
        self._registry = registry
        registry.constant_labels = {"pid": str(os.getpid())}

    def publish(self) -> None:
        """Write this worker's numbers into its slot."""
        if self._registry is None:
            return
        data = self._registry.render().encode()
        if len(data) > SLOT_BYTES - _LENGTH.size:
            data = data[: data.rfind(b"\n", 0, SLOT_BYTES - _LENGTH.size) + 1]
        base = self._index * SLOT_BYTES
        # Length zero first: a reader never joins half of an old and half of a new page.
        self._map[base : base + 4] = _LENGTH.pack(0)
        self._map[base + 4 : base + 4 + len(data)] = data
        self._map[base : base + 4] = _LENGTH.pack(len(data))

    def render(self) -> bytes:
        """Return the metrics of all workers, joined by family."""
        self.publish()
        families: dict[str, tuple[list[str], list[str]]] = {}
        for index in range(self._slots):
            base = index * SLOT_BYTES
            (size,) = _LENGTH.unpack(self._map[base : base + 4])
            _parse_families(self._map[base + 4 : base + 4 + size].decode("utf-8", "replace"), families)
        lines = []
        for heads, samples in families.values():
            lines += heads + samples
        return ("\n".join(lines) + "\n").encode()

    def handle(self, path: str, request: Request) -> Response:
        """Return the page, at ``path`` and nowhere else."""
        if request.lossy_path != path:
            return error_response(404)
        if request.method not in ("GET", "HEAD"):
            return error_response(405, headers={"allow": "GET, HEAD"})
        return Response(200, {"content-type": CONTENT_TYPE}, self.render())

    def server(self, path: str, log: Log) -> HttpServer:
        """Return the server that answers GET and HEAD of ``path`` with the page; its own connections are
        not counted in it.
        """
        return HttpServer(
            partial(self.handle, path),
            Telemetry(log),
            max_clients=READERS_MAX,
            client_timeout_s=READER_TIMEOUT_S,
            keepalive_timeout_s=READER_TIMEOUT_S,
        )


def _parse_families(text: str, families: dict[str, tuple[list[str], list[str]]]) -> None:
    name = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            if name not in families:
                families[name] = ([line], [])
        elif line.startswith("# TYPE "):
            if len(families[name][0]) < 2:
                families[name][0].append(line)
        elif line and name:
            families[name][1].append(line)
