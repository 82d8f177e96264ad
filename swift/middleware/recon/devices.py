"""State of a storage node's devices: mounted, full, quarantined.

Every function may block on a failing disk and runs in a thread. Each device is checked in a thread of its own
(``DeviceThreads``). A device that cannot be read is reported with its error, one that stalls as such; the
others are unaffected.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from swift.base.digits import is_digits
from swift.platform.devices import is_mount

_QUARANTINE_KINDS = ("objects", "containers", "accounts")
#: Why a stalled device has no figures.
STALLED = "the device does not respond"
#: Seconds in which all devices of a node must respond to one check.
STALL_S = 5.0


class DeviceThreads:
    """Runs a check of each device in a thread of its own, and waits ``stall_s`` seconds for all of them.

    A thread that a stalled device holds is not waited for again, and no second one is started beside it.
    """

    def __init__(self, stall_s: float = STALL_S):
        self._stall_s = stall_s
        self._lock = threading.Lock()
        #: Threads that work; at most two for each device, and none beside one that was given up.
        self._held: list[_DeviceThread] = []

    def check(self, names: list[str], check: Callable[[str], object]) -> dict[str, object]:
        """Return the results of ``check(name)`` by device; a stalled device has none. Raises its OSError."""
        begun_s = time.monotonic()
        threads = {name: self._start(name, check) for name in names}
        results = {}
        for name, thread in threads.items():
            if thread is None:
                continue
            thread.join(max(0.0, begun_s + self._stall_s - time.monotonic()))
            if thread.is_alive():
                thread.is_late = True
            else:
                results[name] = thread.result()
        return results

    def _start(self, name: str, check: Callable[[str], object]) -> _DeviceThread | None:
        """Return the started thread of a device; None while another one waits for it."""
        with self._lock:
            self._held = [thread for thread in self._held if thread.is_alive()]
            if any(
                thread.device == name and (thread.is_late or self._held_count(name) > 1)
                for thread in self._held
            ):
                return None
            thread = _DeviceThread(name, check)
            self._held.append(thread)
            thread.start()
            return thread

    def _held_count(self, name: str) -> int:
        """Return the number of threads that work on a device."""
        return sum(thread.device == name for thread in self._held)

    def __repr__(self) -> str:
        return f"<DeviceThreads of {len(self._held)} threads>"


class _DeviceThread(threading.Thread):
    """One check of one device; a process that ends does not wait for it."""

    def __init__(self, device: str, check: Callable[[str], object]):
        super().__init__(name=f"recon-{device}", daemon=True)
        self.device = device
        self._check = check
        #: True once a request stopped waiting for it.
        self.is_late = False
        self._value: object = None
        self._error: OSError | None = None

    def run(self) -> None:
        """Check the device."""
        try:
            self._value = self._check(self.device)
        except OSError as error:
            self._error = error

    def result(self) -> object:
        """Return the result of the ended check; raises its OSError."""
        if self._error is not None:
            raise self._error
        return self._value


def _is_device(path: str) -> bool:
    return not os.path.isfile(path)


def list_names(root: str) -> list[str] | None:
    """Return all names below ``root``; None when it cannot be listed."""
    try:
        return os.listdir(root)
    except OSError:
        return None


def list_unmounted(root: str, threads: DeviceThreads) -> list[dict[str, object]]:
    """Return the devices that are not mount points. Raises OSError."""
    return [
        {"device": usage["device"], "mounted": usage["mounted"]}
        for usage in list_disk_usage(root, threads)
        if usage["mounted"] is not True
    ]


def _mount_state(path: str) -> bool | str:
    """Return True if a filesystem is mounted at ``path``, or the reason for an unknown state."""
    try:
        os.lstat(path)
    except OSError as error:
        return str(error)
    return is_mount(path)


def list_disk_usage(root: str, threads: DeviceThreads) -> list[dict[str, object]]:
    """Return the sizes of the mounted devices in bytes; empty texts for the others. Raises OSError."""
    names = os.listdir(root)
    usages = threads.check(names, lambda name: _disk_usage(root, name))
    stalled = {"mounted": STALLED, "size": "", "used": "", "avail": ""}
    found = (usages.get(name, {"device": name, **stalled}) for name in names)
    return [usage for usage in found if isinstance(usage, dict)]


def _disk_usage(root: str, name: str) -> dict[str, object] | None:
    """Return the sizes of a device; None for a regular file."""
    if not _is_device(f"{root}/{name}"):
        return None
    mounted = _mount_state(f"{root}/{name}")
    if mounted is True:
        try:
            stat = os.statvfs(f"{root}/{name}")
        except OSError as error:
            mounted = str(error)
        else:
            size, avail = stat.f_blocks * stat.f_bsize, stat.f_bavail * stat.f_bsize
            used = (stat.f_blocks - stat.f_bavail) * stat.f_bsize
            return {"device": name, "mounted": True, "size": size, "used": used, "avail": avail}
    return {"device": name, "mounted": mounted, "size": "", "used": "", "avail": ""}


def count_quarantined(root: str, threads: DeviceThreads) -> dict[str, object]:
    """Return the number of quarantined entries by kind, for objects also by policy. Raises OSError.

    Devices that stall are not counted.
    """
    totals: dict[str, int] = dict.fromkeys(_QUARANTINE_KINDS, 0)
    policies: dict[str, dict[str, int]] = {}
    by_device = threads.check(os.listdir(root), lambda name: _count_by_folder(f"{root}/{name}/quarantined"))
    for counts in by_device.values():
        assert isinstance(counts, dict)
        for folder, count in counts.items():
            kind, _, index = folder.partition("-")
            totals[kind] += count
            if kind == "objects":
                policies.setdefault(index or "0", {"objects": 0})["objects"] += count
    return {**totals, "policies": policies}


def _count_by_folder(quarantine_path: str) -> dict[str, int]:
    """Return the number of quarantined entries of a device by folder, e.g. ``objects-1``."""
    folders = []
    for folder in list_names(quarantine_path) or ():
        kind, dash, index = folder.partition("-")
        if folder in _QUARANTINE_KINDS or (kind == "objects" and dash and is_digits(index)):
            folders.append(folder)
    return {folder: _count_subdirectories(f"{quarantine_path}/{folder}") for folder in folders}


def _count_subdirectories(path: str) -> int:
    """Return the number of subdirectories of a directory without listing it."""
    try:
        links = os.lstat(path).st_nlink
    except OSError:
        return 0
    # Filesystems that do not count directories as links (btrfs) always say 1.
    return links - 2 if links > 1 else sum(entry.is_dir() for entry in os.scandir(path))
