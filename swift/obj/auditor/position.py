"""Where an audit of a device is, kept on the device as other auditors do (spec: object-disk.md §15)."""

from __future__ import annotations

import json

from swift.base.clock import Clock
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.faults import read_regular

#: The file is written at most so often, seconds.
SAVED_EVERY_S = 60.0


class AuditPosition:
    """The partitions of a policy that are still to do, those begun among them. All calls block."""

    def __init__(self, disk: Disk, objects_dir: str, kind: str, clock: Clock):
        self._disk = disk
        self._directory = objects_dir
        self.path = f"{objects_dir}/auditor_status_{kind}.json"
        self._clock = clock
        self._saved_s = -SAVED_EVERY_S

    def load(self) -> list[str] | None:
        """What a former pass left to do; None when there is none, or nothing that can be read."""
        try:
            names = json.loads(read_regular(self._disk, self.path))["partitions"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return names if known else None

    def save(self, left: list[str]) -> None:
        """Remember what is left, now and then, and always that nothing is. Raises OSError."""
        now_s = self._clock.monotonic()
        if (left and now_s - self._saved_s < SAVED_EVERY_S) or not self._is_there():
            return
        self._saved_s = now_s
        replace_file(self._disk, self.path, json.dumps({"partitions": left}).encode())

    def forget(self) -> None:
        """The pass is complete: the next one looks for what is there. Raises OSError."""
        try:
            self._disk.unlink(self.path)
        except FileNotFoundError:
            return

    def _is_there(self) -> bool:
        """Whether the policy has anything on this device; nothing is made for one that has not."""
        try:
            self._disk.stat(self._directory)
        except FileNotFoundError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<AuditPosition {self.path}>"
