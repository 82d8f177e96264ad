"""What daemons have in common whose work is cut by device: the shares, and what a pass over one is handed."""

from __future__ import annotations

import random

from swift.platform.disk import Disk
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Desk
from swift.runtime.diskcalls import Run


class DeviceDuty:
    """The half of a ``daemon.Duty`` that knows devices."""

    def __init__(
        self, context: BackendContext, *, disk: Disk | None = None, rng: random.Random | None = None
    ):
        self.context = context
        self.disk = disk or Disk()
        self.rng = rng or random.Random()

    def shares(self) -> list[str]:
        """The names of the devices, in random order."""
        names = self.context.devices.names()
        self.rng.shuffle(names)
        return names


class DeviceWork:
    """The half of a ``daemon.Pass`` that belongs to its device."""

    def __init__(self, context: BackendContext, device: str, desk: Desk):
        self._device = device
        self._desk = desk
        self._tally = desk.tally
        self._log = context.telemetry.log
        self._run: Run = context.pools.run(device)
