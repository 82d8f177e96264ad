"""State of a storage node's devices: mounted, full, quarantined.

Everything here may block on a sick disk and is called in a thread. A device that cannot be looked at is
reported with its error instead of failing the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from swift.base.digits import is_digits
from swift.platform.devices import is_mount

_KINDS = ("objects", "containers", "accounts")


def entries(root: str) -> list[str]:
    """Return the names below ``root`` that are directories, or may be. Raises OSError."""
    return [name for name in os.listdir(root) if not os.path.isfile(os.path.join(root, name))]


def names(root: str) -> list[str] | None:
    """All names below ``root``; None when it cannot be listed."""
    try:
        return os.listdir(root)
    except OSError:
        return None


def unmounted(root: str) -> list[dict[str, object]]:
    """Return the devices that are no mount points. Raises OSError."""
    found: Iterator[dict[str, object]] = (
        {"device": name, "mounted": _mounted(f"{root}/{name}")} for name in entries(root)
    )
    return [device for device in found if device["mounted"] is not True]


def _mounted(path: str) -> bool | str:
    """Return True if a filesystem is mounted at ``path``, or the reason why this is unknown."""
    try:
        os.lstat(path)
    except OSError as error:
        return str(error)
    return is_mount(path)


def usage(root: str) -> list[dict[str, object]]:
    """Sizes of the mounted devices in bytes; empty texts for the others. Raises OSError."""
    return [_usage(root, name) for name in entries(root)]


def _usage(root: str, name: str) -> dict[str, object]:
    mounted = _mounted(f"{root}/{name}")
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


def quarantined(root: str) -> dict[str, object]:
    """Return the number of quarantined entries by kind, for objects also by policy. Raises OSError."""
    totals: dict[str, int] = dict.fromkeys(_KINDS, 0)
    policies: dict[str, dict[str, int]] = {}
    for device in os.listdir(root):
        where = f"{root}/{device}/quarantined"
        for kind in ("accounts", "containers"):
            totals[kind] += _count(f"{where}/{kind}")
        for name in names(where) or ():
            kind, _, index = name.partition("-")
            if kind != "objects" or (index and not is_digits(index)):
                continue
            count = _count(f"{where}/{name}")
            totals["objects"] += count
            policy = policies.setdefault(index or "0", {"objects": 0})
            policy["objects"] += count
    return {**totals, "policies": policies}


def _count(path: str) -> int:
    """Return the number of subdirectories of a directory without listing it."""
    try:
        links = os.lstat(path).st_nlink
    except OSError:
        return 0
    # Filesystems that do not count directories as links (btrfs) always say 1.
    return links - 2 if links > 1 else sum(entry.is_dir() for entry in os.scandir(path))
