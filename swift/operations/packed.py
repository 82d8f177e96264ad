"""The packed engine of a storage node, for commands: its devices, policies and options."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from swift.base.clock import SystemClock
from swift.base.errors import ConfigError
from swift.compose import SWIFT_DIR, cluster_of
from swift.config.common import ServerSettings, StorageSettings
from swift.config.files import read_section
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.platform.privileges import drop_privileges
from swift.policy.policy import Policy
from swift.runtime.service.processes import RunningProcess, processes, program_name, shares_mounts
from swift.store.packed.conf import packed_settings_of
from swift.store.packed.device import DIRECTORY, PackedDevice
from swift.store.packed.devices import PackedDevices
from swift.store.registry import EngineParts, packed_store

CONFIG = "/etc/swift/object-server.conf"
_SERVER = "swift-object-server"
_RUN_AS = "run this as root or as the user of the object server"
#: Longest pause without a look at whether to stop, seconds.
_PAUSE_S = 0.2


class PackedNode:
    """The devices of a node as a command uses them, beside running servers.

    Started as root, it becomes the user of the object server. Raises ``ConfigError`` and OSError.
    """

    def __init__(self, conf_path: str, notice: Callable[[str], None]):
        conf = read_section(conf_path, "app:object-server")
        storage = StorageSettings.parse(conf)
        settings = ObjectSettings.parse(conf)
        # Other mounts are another host's, e.g. a container's; later this process may not read them.
        self._running = [each for each in _object_servers() if shares_mounts(each.pid)]
        drop_privileges(ServerSettings.parse(conf).user)
        self.cluster = cluster_of(conf)
        self._conf_path = conf_path
        self._swift_conf = os.path.join(conf.get("swift_dir", SWIFT_DIR), "swift.conf")
        self.settings = packed_settings_of(conf_path)
        self.disks = Devices(storage.devices, mount_check=storage.mount_check)
        self.store = packed_store(
            EngineParts(
                devices=self.disks,
                hasher=self.cluster.config.hasher,
                clock=SystemClock(),
                reserve=storage.fallocate_reserve,
                preallocate=not storage.disable_fallocate,
                reclaim_age_s=settings.reclaim_age,
                commit_window_s=settings.commit_window,
                notice=notice,
                packed=self.settings,
            )
        )

    @property
    def devices(self) -> PackedDevices:
        """The devices that are open."""
        return self.store.devices

    def policies(self, names: Sequence[str] = ()) -> list[Policy]:
        """Return policies by name or index, all if none is named. Raises ``ConfigError``."""
        if not names:
            return list(self.cluster.policies)
        found = []
        for name in names:
            is_number = name.isascii() and name.isdigit()
            policy = self.cluster.policies.named(name) or (
                self.cluster.policies.get(int(name)) if is_number else None
            )
            if policy is None:
                raise ConfigError(f"swift.conf has no storage policy {name!r}")
            found.append(policy)
        return found

    def device_names(self, names: Sequence[str] = ()) -> list[str]:
        """Return devices that are usable; see ``usable_devices``."""
        return usable_devices(self.disks, names)

    def has_volumes(self, device: str) -> bool:
        """Return True if the packed engine was used on a device.

        Raises ``DeviceUnavailable``, ``ConfigError`` for a user who may not use it, OSError.
        """
        return is_engine_directory(f"{self.disks.path(device)}/{DIRECTORY}")

    def open(self, device: str) -> PackedDevice:
        """Return a device, opened. Raises ``ConfigError`` when it has no volumes, OSError."""
        if not self.has_volumes(device):
            raise ConfigError(f"{device} has no volumes: the packed engine was not used on it")
        return self.devices.device(device)

    def outdated_servers(self, running: Iterable[RunningProcess] | None = None) -> list[RunningProcess]:
        """Return object servers of this configuration that are older than the last change of swift.conf.

        They may use another engine for a policy. Raises OSError.
        """
        conf, changed_s = os.path.realpath(self._conf_path), os.stat(self._swift_conf).st_mtime
        before_s = time.time() - changed_s
        return [
            each
            for each in (self._running if running is None else running)
            if each.age_s > before_s and conf in map(os.path.realpath, each.arguments)
        ]

    def close(self) -> None:
        """Close all devices."""
        self.store.close()

    def __repr__(self) -> str:
        return f"PackedNode({self.disks!r})"


def usable_devices(devices: Devices, names: Sequence[str] = ()) -> list[str]:
    """Return the names of devices that are usable, all if none is named, each once.

    Raises ``ConfigError`` for a named one that is not, and when there is none; OSError.
    """
    # Unlike the servers' list: a directory that cannot be read is not one without devices.
    try:
        found = sorted(os.listdir(devices.root))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"{devices.root} is no directory; see devices in [DEFAULT] of the object server's configuration"
        )
    usable = [name for name in found if devices.is_usable(name)]
    if not usable:
        raise ConfigError(
            f"no device is mounted below {devices.root}; see devices and mount_check in [DEFAULT]"
        )
    for name in names:
        if name not in usable:
            raise ConfigError(
                f"{devices.root}/{name} is no mounted device; mounted there: {', '.join(usable)}"
            )
    return list(dict.fromkeys(names)) or usable


def is_engine_directory(
    path: str, *, stat_of: Callable[[str], os.stat_result] = os.stat, user_id: int | None = None
) -> bool:
    """Return True if the packed engine has a directory there.

    Raises ``ConfigError`` unless this process (or ``user_id``) owns it or is root: the files that it makes
    there would be closed to the servers. Raises OSError.
    """
    user_id = os.geteuid() if user_id is None else user_id
    try:
        found = stat_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        raise ConfigError(f"cannot read {path}: {_RUN_AS}")
    if user_id not in (0, found.st_uid):
        raise ConfigError(f"{path} belongs to another user: {_RUN_AS}")
    return stat.S_ISDIR(found.st_mode)


def _object_servers() -> Iterator[RunningProcess]:
    return (each for each in processes() if program_name(each) == _SERVER)


def engine_option(policy: Policy, engine: str) -> str:
    """Return the line of swift.conf that gives a policy an engine, ``packed`` or ``fs``."""
    kind = "erasure_coding" if policy.is_ec else "replication"
    return f"diskfile_module = egg:swift#{kind}.{engine} in [storage-policy:{policy.index}]"


def describe_error(error: Exception) -> str:
    """Return the text of an error for operators: without its number, with its path."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error) or type(error).__name__


class SteadyPace:
    """Not more than so much a second, of all threads together; 0: any amount."""

    def __init__(self, per_second: float, stopped: Callable[[], bool] = lambda: False):
        self._gap_s = 1 / per_second if per_second > 0 else 0.0
        self._stopped = stopped
        self._next_s = time.monotonic()
        self._mutex = threading.Lock()

    def __call__(self, amount: int) -> None:
        """Wait until so much more may be done, or it is to stop."""
        if not self._gap_s:
            return
        with self._mutex:
            self._next_s = max(self._next_s, time.monotonic() - 1) + self._gap_s * amount
            until_s = self._next_s
        while (left_s := until_s - time.monotonic()) > 0 and not self._stopped():
            time.sleep(min(left_s, _PAUSE_S))
