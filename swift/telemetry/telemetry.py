"""Log, statistics and metrics of a service in one value, passed down from the composition root."""

from __future__ import annotations

from dataclasses import dataclass, field

from swift.config.common import LogSettings
from swift.telemetry.devicefaults import DeviceFaults
from swift.telemetry.log import Log, silent_log
from swift.telemetry.metrics import Registry
from swift.telemetry.statsd import Statsd


@dataclass
class Telemetry:
    """Log, statsd and Prometheus of one process."""

    log: Log = field(default_factory=silent_log)
    statsd: Statsd = field(default_factory=lambda: Statsd(LogSettings()))
    metrics: Registry = field(default_factory=Registry)
    faults: DeviceFaults = field(init=False)

    def __post_init__(self) -> None:
        """Count device errors in the metrics; the composition root has them kept in a recon file as well."""
        self.faults = DeviceFaults(self.metrics)
