"""The replication lock: one at a time writes to a partition as a replicator (spec: object-disk.md §13).

SSYNC receivers, handoff reverts and the relinker take the partition's lock. Those who write take one of the
few places of the device after it, so that a device is not swamped by replication. The locks are files that
the peer's daemons take as well.

A revert takes no place: devices that bring handoffs home to each other would each hold the only place that
the other one's receiver waits for, until both give up, pass after pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from swift.base.errors import LockTimeout
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.locks import file_lock
from swift.policy.policy import Policy
from swift.store.hashes import make_partition
from swift.store.layout import partition_dir

REPLICATION_LOCK_FILE = ".lock-replication"
DEVICE_LOCK_FILE = ".lock"


class ReplicationLocks:
    """Takes replication locks; ``per_device`` places, 0 for any number."""

    def __init__(self, disk: Disk, devices: Devices, *, per_device: int = 1):
        self._disk = disk
        self._devices = devices
        self._per_device = per_device

    @contextmanager
    def hold(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> Iterator[None]:
        """Hold a partition, making it if need be. Raises ``LockTimeout``, ``DeviceUnavailable``, OSError.

        Blocking: call it in a thread that may wait, or poll with ``timeout_s`` 0.
        """
        device_path = self._devices.path(device)
        path = partition_dir(device_path, policy, partition)
        make_partition(self._disk, path, below=device_path)
        with (
            file_lock(self._disk, f"{path}/{REPLICATION_LOCK_FILE}", timeout_s),
            self.device_place(device_path, timeout_s) if incoming else nullcontext(),
        ):
            yield

    @contextmanager
    def device_place(self, device_path: str, timeout_s: float) -> Iterator[None]:
        """Hold one of the places of a device: the first that is free; the last one is waited for.

        Raises ``LockTimeout``, OSError.
        """
        first = f"{device_path}/{DEVICE_LOCK_FILE}"
        if self._per_device <= 0:
            yield
            return
        for number in range(self._per_device):
            is_last = number == self._per_device - 1
            path = f"{first}-{number}" if number else first
            lock = file_lock(self._disk, path, timeout_s if is_last else 0.0)
            try:
                lock.__enter__()
            except LockTimeout:
                if is_last:
                    raise
                continue
            try:
                yield
            finally:
                lock.__exit__(None, None, None)
            return

    def __repr__(self) -> str:
        return f"ReplicationLocks({self._devices!r}, per_device={self._per_device})"
