"""The share of processor and disks that a process gets beside others (spec: cli-and-config.md §1.2)."""

from __future__ import annotations

import ctypes
import os
import platform

from swift.base.errors import ConfigError
from swift.config.common import IO_CLASSES, PrioritySettings

#: The number of ioprio_set(2), which the C library does not offer, by machine.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282}
_WHO_PROCESS, _CLASS_SHIFT = 1, 13


def set_priority(settings: PrioritySettings) -> None:
    """Give this process, and those that it will fork, its priorities.

    To be called while still privileged. Raises ``ConfigError`` where that is not allowed or not known.
    """
    if settings.nice_priority:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, settings.nice_priority)
        except OSError as error:
            raise ConfigError(f"nice_priority = {settings.nice_priority}: {error.strerror}")
    if settings.ionice_class:
        _set_io_priority(settings.ionice_class, settings.ionice_priority)


def _set_io_priority(name: str, level: int) -> None:
    number = _IOPRIO_SET.get(platform.machine())
    if number is None:
        raise ConfigError(f"ionice_class is not known on {platform.machine()}; remove it")
    value = IO_CLASSES[name] << _CLASS_SHIFT | level
    if ctypes.CDLL(None, use_errno=True).syscall(number, _WHO_PROCESS, 0, value):
        raise ConfigError(f"ionice_class = {name}: {os.strerror(ctypes.get_errno())}")
