"""State of a storage node's devices: mounted, full, quarantined.

Every function may block on a failing disk and runs in a thread. A device that cannot be read is reported with
its error; the others are unaffected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from swift.base.digits import is_digits
from swift.platform.devices import is_mount

_QUARANTINE_KINDS = ("objects", "containers", "accounts")


def list_device_names(root: str) -> list[str]:
    """Return the names below ``root`` that are not regular files. Raises OSError."""
    return [name for name in os.listdir(root) if not os.path.isfile(os.path.join(root, name))]


def list_names(root: str) -> list[str] | None:
    """Return all names below ``root``; None when it cannot be listed."""
    try:
        return os.listdir(root)
    except OSError:
        return None


def list_unmounted(root: str) -> list[dict[str, object]]:
    """Return the devices that are not mount points. Raises OSError."""
    devices: Iterator[dict[str, object]] = (
        {"device": name, "mounted": _mount_state(f"{root}/{name}")} for name in list_device_names(root)
    )
    return [device for device in devices if device["mounted"] is not True]


def _mount_state(path: str) -> bool | str:
    """Return True if a filesystem is mounted at ``path``, or the reason for an unknown state."""
    try:
        os.lstat(path)
    except OSError as error:
        return str(error)
    return is_mount(path)


def list_disk_usage(root: str) -> list[dict[str, object]]:
    """Return the sizes of the mounted devices in bytes; empty texts for the others. Raises OSError."""
    return [_disk_usage(root, name) for name in list_device_names(root)]


def _disk_usage(root: str, name: str) -> dict[str, object]:
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


def count_quarantined(root: str) -> dict[str, object]:
    """Return the number of quarantined entries by kind, for objects also by policy. Raises OSError."""
    totals: dict[str, int] = dict.fromkeys(_QUARANTINE_KINDS, 0)
    policies: dict[str, dict[str, int]] = {}
    for device in os.listdir(root):
        quarantine_path = f"{root}/{device}/quarantined"
        for kind in ("accounts", "containers"):
            totals[kind] += _count_subdirectories(f"{quarantine_path}/{kind}")
        for name in list_names(quarantine_path) or ():
            kind, _, index = name.partition("-")
            if kind != "objects" or (index and not is_digits(index)):
                continue
            count = _count_subdirectories(f"{quarantine_path}/{name}")
            totals["objects"] += count
            policy = policies.setdefault(index or "0", {"objects": 0})
            policy["objects"] += count
    return {**totals, "policies": policies}


def _count_subdirectories(path: str) -> int:
    """Return the number of subdirectories of a directory without listing it."""
    try:
        links = os.lstat(path).st_nlink
    except OSError:
        return 0
    # Filesystems that do not count directories as links (btrfs) always say 1.
    return links - 2 if links > 1 else sum(entry.is_dir() for entry in os.scandir(path))
