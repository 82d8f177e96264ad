"""A pass of the expirer over a queue that is made up as it is listed: ``tools.bench.memory`` runs it.

python -m tools.bench.madequeue TASKS FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from swift.base.hashing import PathHasher
from swift.cluster.transport import BackendResponse, TransportError
from swift.gateway.internal_client import InternalClient
from swift.http.request import Request
from swift.http.response import Response
from swift.obj.expirer.queue import ExpirerQueue
from swift.obj.expirer.settings import Delays, ObjectExpirerSettings
from swift.obj.expirer.task import ObjectExpirer
from swift.platform.devices import Devices
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry

#: Tasks of one container of the queue, and rows of a page.
EACH, PAGE = 100_000, 10_000
#: When the objects expired.
EXPIRED_S = 1_700_000_000


class MadeQueue:
    """Answers what an expirer asks, as if there were ``count`` tasks; remembers nothing but numbers."""

    def __init__(self, count: int):
        self._count = count
        self.deleted = 0

    def handle(self, request: Request) -> Response:
        """A listing of the queue or its containers, or a deletion."""
        if request.method == "DELETE":
            self.deleted += 1
            return Response(204, {})
        assert request.entity is not None
        container, marker = request.entity.path.container, request.param_utf8("marker") or ""
        if not container:
            rows = [{"name": str(self._hour(n))} for n in range(-(-self._count // EACH))]
            return _listing([row for row in rows if row["name"] > marker])
        first = int(marker.rpartition("/o")[2] or -1) + 1 if marker else self._first(container)
        end = min(first + PAGE, self._first(container) + EACH, self._count)
        stamp = f"{self._hour(first // EACH):010d}"
        return _listing([{"name": f"{stamp}-a/c{n % 10}/o{n:09d}"} for n in range(first, end)])

    def _hour(self, number: int) -> int:
        return EXPIRED_S + 86_400 * number

    def _first(self, container: str) -> int:
        return (int(container) - EXPIRED_S) // 86_400 * EACH


def _listing(rows: list[dict[str, str]]) -> Response:
    body = json.dumps(rows).encode()
    return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, body)


class EveryNode:
    """A transport to nodes that have done what they are told."""

    def request(self, *_words: object, **_named: object) -> BackendResponse:
        """See ``Transport``."""
        return BackendResponse(204)

    def stream(self, *_words: object, **_named: object) -> None:
        """Nobody is asked for bodies here."""
        raise TransportError("these nodes take no bodies")


def main(argv: Sequence[str]) -> int:
    """One pass; 0 when every object was deleted."""
    count, folder = int(argv[0]), argv[1]
    queue = MadeQueue(count)
    settings = ObjectExpirerSettings(tasks_per_second=0.0, reclaim_age=10**9)
    telemetry = Telemetry(silent_log())
    context = BackendContext(
        devices=Devices(folder, mount_check=False),
        hasher=PathHasher(b"", b"memory"),
        telemetry=telemetry,
        transport=EveryNode(),  # type: ignore[arg-type]
    )
    client = InternalClient(queue.handle, "memory")
    ring = Ring(f"{folder}/container.ring.gz").load()
    task = ObjectExpirer(context, ring, settings, client, ExpirerQueue(client, settings.account, Delays({})))
    recon = ReconFile(f"{folder}/recon0", "object", telemetry.log)
    started_s = time.monotonic()
    Runner(task, settings.schedule, telemetry=telemetry, recon=recon).run_once()
    print(f"{queue.deleted} deletions in {time.monotonic() - started_s:.1f} s", file=sys.stderr)
    return 0 if queue.deleted >= count else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
