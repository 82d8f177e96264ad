"""Where an audit of a device is, kept on the device as other auditors do (spec: object-disk.md §15)."""

from __future__ import annotations

import json

from swift.base.clock import Clock
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.platform.durable import replace_file
from swift.platform.faults import read_regular

#: The file is written at most so often, seconds.
SAVED_EVERY_S = 60.0


class AuditPosition:
    """The partitions of a policy that are still to do, those begun among them."""

    def __init__(self, disk: DiskHandle, objects_dir: str, kind: str, clock: Clock):
        self._disk = disk
        self._directory = objects_dir
        self.path = f"{objects_dir}/auditor_status_{kind}.json"
        self._clock = clock
        self._saved_s = -SAVED_EVERY_S

    def load(self) -> list[str] | None:
        """What a former pass left to do; None when there is none, or nothing that can be read."""
        try:
            names = json.loads(self._disk.place(read_regular, self.path))["partitions"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return names if known else None

    def save(self, left: list[str]) -> None:
        """Remember what is left, now and then, and always that nothing is. Raises OSError."""
        now_s = self._clock.monotonic()
        if left and now_s - self._saved_s < SAVED_EVERY_S:
            return
        self._disk.place(self._replace, json.dumps({"partitions": left}).encode(), now_s)

    def forget(self) -> None:
        """The pass is complete: the next one looks for what is there. Raises OSError."""
        try:
            self._disk.unlink(self.path)
        except FileNotFoundError:
            return

    def _replace(self, disk: Disk, data: bytes, now_s: float) -> None:
        """Write the file, unless the policy has nothing on this device."""
        try:
            disk.stat(self._directory)
        except FileNotFoundError:
            return
        self._saved_s = now_s
        replace_file(disk, self.path, data)

    def __repr__(self) -> str:
        return f"<AuditPosition {self.path}>"
