"""Counts the errors of devices, so that an operator sees a sick one before it is lost.

An I/O error is answered 503 or 507 and never moves an object away. It is counted here: in the metric
``swift_device_errors_total`` and, for ``/recon/deviceerrors`` and ``swift-health``, in the recon file, where
the counts of all processes of a server type add up. A burst of errors is written every few seconds.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from swift.base.documents import JsonObject
from swift.platform.regularfiles import is_device_error
from swift.telemetry.metrics import CounterMetric, Registry
from swift.telemetry.recon import Facts, ReconFile

_ERRORS = CounterMetric("swift_device_errors_total", "I/O errors of devices.", ("device", "error"))

#: The recon file is written at most once in so many seconds by one process.
WRITE_EVERY_S = 5.0
#: Counts of a device begin anew when its last error is so long ago.
FORGOTTEN_AFTER_S = 7 * 86400.0
KEY = "device_errors"

CallLater = Callable[[float, Callable[[], None]], object]


def never_flush(_seconds: float, _function: Callable[[], None]) -> None:
    """Leave what is pending to the next error or to ``flush``."""


class DeviceFaults:
    """The errors that one process met, by device."""

    def __init__(
        self,
        metrics: Registry | None = None,
        recon: ReconFile | None = None,
        *,
        now_s: Callable[[], float] = time.time,
        later: CallLater = never_flush,
    ):
        self._metrics = metrics or Registry()
        self._recon = recon
        self._now_s = now_s
        self._later = later
        self._pending: dict[str, JsonObject] = {}
        self._written_s = 0.0
        self._is_due = False

    def note(self, device: str, error: BaseException) -> None:
        """Count an error of a device; do nothing for an error of another kind."""
        code = _code_of(error)
        if not code:
            return
        _ERRORS.of(self._metrics, device=device, error=code).inc()
        now_s = self._now_s()
        found = self._pending.setdefault(device, {"errors": 0})
        found.update(errors=found["errors"] + 1, last=now_s, error=code, text=str(error)[:200])
        is_first, self._is_due = not self._is_due, True
        if now_s - self._written_s >= WRITE_EVERY_S:
            self.flush()
        elif is_first:
            self._later(WRITE_EVERY_S, self.flush)

    def mend(self, device: str, since_s: float) -> None:
        """Forget the errors of a device that was replaced or repaired at a time, Unix seconds."""
        if self._recon is None:
            return

        def without(have: JsonObject) -> Facts:
            return {KEY: {device: {}}} if _is_before(have, device, since_s) else {}

        pending = self._pending.get(device)
        if pending is not None and pending["last"] <= since_s:
            del self._pending[device]
        if without(self._recon.read()):
            self._recon.update(without)

    def flush(self) -> None:
        """Add what was counted to the recon file; a failure to write it is logged there."""
        pending, self._pending = self._pending, {}
        self._is_due = False
        self._written_s = self._now_s()
        if pending and self._recon is not None:
            self._recon.update(lambda have: _merge_faults(have, pending))

    def __repr__(self) -> str:
        return f"<DeviceFaults {sorted(self._pending)}>"


def _code_of(error: BaseException) -> str:
    """Return the name of a device's error; empty for an error of another kind.

    SQLite hides the number: its errors say by ``is_device_error`` that they are the device's.
    """
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "") if is_device_error(error) else ""
    return "EIO" if getattr(error, "is_device_error", False) else ""


def _is_before(have: JsonObject, device: str, since_s: float) -> bool:
    """Return True if the recon file has errors of a device, the last of them before a time."""
    known = have.get(KEY)
    entry = known.get(device) if isinstance(known, dict) else None
    last_s = entry.get("last") if isinstance(entry, dict) else None
    return isinstance(last_s, (int, float)) and last_s <= since_s


def _merge_faults(have: JsonObject, pending: dict[str, JsonObject]) -> Facts:
    """Return the facts of the recon file with ``pending`` added. Pure."""
    known = have.get(KEY)
    facts: dict[str, object] = {}
    for device, new in pending.items():
        old = known.get(device) if isinstance(known, dict) else None
        count, since_s = 0, new["last"]
        if isinstance(old, dict) and isinstance(old.get("errors"), int):
            last_s = old.get("last")
            if isinstance(last_s, (int, float)) and new["last"] - last_s < FORGOTTEN_AFTER_S:
                count, since_s = old["errors"], old.get("since", new["last"])
        facts[device] = {**new, "errors": count + new["errors"], "since": since_s}
    return {KEY: facts}
