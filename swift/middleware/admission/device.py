"""Limits the concurrent requests of a device at the object server, which knows its queue (see
doc/explanation/admission.md).

Clients may not take the places that are kept for replication, and replication takes no more than its ceiling:
so neither starves the other. With ``queue_seconds`` a client is refused at once whose request would wait for
longer; how long that is follows from how many wait and how fast the device has answered of late. Each worker
counts for itself. The proxy takes the answer, 529, as that of a node that is busy, and asks another one.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from swift.base.clock import Clock, SystemClock
from swift.base.digits import is_digits
from swift.base.truth import is_true
from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.admission.settings import DeviceAdmissionSettings
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_REJECTED = Event("admission.device", "Requests rejected because their device's queue is full.")

#: More devices than a node has.
_DEVICES_MAX = 1000
#: Weight of the last response in the estimate of a device's speed.
_GAP_SMOOTHING = 0.1
_REPLICATION_METHODS = frozenset(("REPLICATE", "SSYNC"))


class DeviceQueue:
    """The running requests of one device; pure."""

    __slots__ = ("clients", "replication", "_settings", "_gap_s", "_ended_at")

    def __init__(self, settings: DeviceAdmissionSettings):
        self._settings = settings
        self.clients = 0
        self.replication = 0
        #: Seconds between answers while several were awaited.
        self._gap_s = 0.0
        self._ended_at: float | None = None

    def retry_after_s(self, *, replicates: bool) -> float | None:
        """Return the seconds after which a rejected request may try again; None if it is admitted."""
        settings = self._settings
        streams, floor, ceiling = (
            settings.streams_per_device,
            settings.replication_floor,
            settings.replication_ceiling,
        )
        total = self.clients + self.replication
        if replicates:
            beyond = bool(ceiling) and self.replication >= ceiling
            # A client that has a place which is kept for replication came when there was no such rule.
            return 1.0 if beyond or (streams and total >= streams and self.replication >= floor) else None
        if streams and self.clients >= max(1, streams - max(floor, self.replication)):
            return 1.0
        wait_s = total * self._gap_s
        return wait_s if settings.queue_seconds and wait_s > settings.queue_seconds else None

    def begin(self, now: float, *, replicates: bool) -> None:
        """Count a request that begins."""
        if not self.clients + self.replication:
            # Idle time does not count.
            self._ended_at = now
        if replicates:
            self.replication += 1
        else:
            self.clients += 1

    def end(self, now: float, *, replicates: bool) -> None:
        """Count a request that ended."""
        if replicates:
            self.replication -= 1
        else:
            self.clients -= 1
        if self._ended_at is not None:
            gap_s = max(0.0, now - self._ended_at)
            self._gap_s = gap_s if not self._gap_s else self._gap_s + _GAP_SMOOTHING * (gap_s - self._gap_s)
        self._ended_at = now

    @property
    def is_idle(self) -> bool:
        """True if the device has no requests."""
        return not self.clients and not self.replication

    def __repr__(self) -> str:
        return f"<DeviceQueue {self.clients} clients, {self.replication} of replication, {self._gap_s:.3f} s>"


class DeviceAdmission(Filter):
    """Rejects requests beyond the queue of a device with 529."""

    def __init__(
        self,
        app: App,
        settings: DeviceAdmissionSettings,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
    ):
        super().__init__(app)
        self._settings = settings
        self._statsd = (telemetry or Telemetry()).statsd
        self._clock = clock or SystemClock()
        self._queues: OrderedDict[str, DeviceQueue] = OrderedDict()

    def handle(self, request: Request) -> Response:
        """Admit a request to its device for as long as it lasts."""
        words = request.lossy_path.split("/", 3)
        if len(words) < 3 or not is_digits(words[2]):
            return self.forward(request)
        replicates = request.method in _REPLICATION_METHODS or is_true(
            request.headers.get(fields.BACKEND_REPLICATION)
        )
        queue = self._device_queue(words[1])
        wait_s = queue.retry_after_s(replicates=replicates)
        if wait_s is not None:
            _REJECTED.count(self._statsd)
            return error_response(529, headers={"retry-after": str(max(1, math.ceil(wait_s)))})
        queue.begin(self._clock.monotonic(), replicates=replicates)

        def end(_sent: int = 0, _complete: bool = False) -> None:
            queue.end(self._clock.monotonic(), replicates=replicates)

        try:
            response = self.forward(request)
        except BaseException:
            end()
            raise
        response.on_response_end(end)
        return response

    def _device_queue(self, device: str) -> DeviceQueue:
        queue = self._queues.get(device)
        if queue is None:
            queue = self._queues[device] = DeviceQueue(self._settings)
            if len(self._queues) > _DEVICES_MAX:
                # Names of devices that are not there must not fill the memory.
                for name in [name for name, other in self._queues.items() if other.is_idle][:-1]:
                    del self._queues[name]
        return queue


FILTER = FilterDeclaration(
    "device_admission",
    DeviceAdmissionSettings,
    lambda app, settings, services: DeviceAdmission(app, settings, services.telemetry()),
    position=60,
    servers=("storage",),
)
