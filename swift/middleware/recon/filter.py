"""The recon filter: a table from paths to statistics of a storage node (spec: middleware.md §16).

Most values are what daemons wrote to the recon files, by key. The rest comes from the kernel and the devices.
All of it runs in separate threads: a hanging disk must not block the server.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import md5

from swift import __version__
from swift.base.errors import SwiftError
from swift.compose import Services
from swift.config.schema import Settings, option
from swift.green import ThreadPool
from swift.http.request import Request
from swift.http.response import TEXT, Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.recon import devices, machine
from swift.platform.disk import Disk
from swift.platform.nativedisk import native_module
from swift.platform.regularfiles import FileIdentity, file_identity, read_regular, read_through_links
from swift.runtime.copystate import PROGRESS, STATE
from swift.runtime.serverguard import RECON_KEY as AUTH_COUNTS
from swift.telemetry.devicefaults import KEY as DEVICE_ERRORS
from swift.telemetry.recon import parse

RECON_PATH_PREFIX = "/recon/"
_SERVER_TYPES = ("account", "container", "object")
#: Checks that default to the type ``object``.
_DEFAULT_OBJECT_CHECKS = frozenset(("replication", "deviceerrors"))
_THREADS = 2

#: (check, type or None for any) → (recon file, keys to return).
RECON_FILE_CHECKS: dict[tuple[str, str | None], tuple[str, tuple[str, ...]]] = {
    ("async", None): ("object", ("async_pending", "async_pending_last")),
    ("cachetier", None): ("object", ("cache_tier", "cache_tier_last")),
    ("replication", "account"): ("account", ("replication_time", "replication_stats", "replication_last")),
    ("replication", "container"): (
        "container",
        ("replication_time", "replication_stats", "replication_last"),
    ),
    ("replication", "object"): (
        "object",
        (
            "replication_time",
            "replication_stats",
            "replication_last",
            "object_replication_time",
            "object_replication_last",
        ),
    ),
    ("reconstruction", "object"): ("object", ("object_reconstruction_last", "object_reconstruction_time")),
    ("updater", "container"): ("container", ("container_updater_sweep",)),
    ("updater", "object"): (
        "object",
        ("object_updater_sweep", "object_updater_stats", "object_updater_last"),
    ),
    **{
        ("auditor", kind): (
            kind,
            (
                f"{kind}_audits_passed",
                f"{kind}_auditor_pass_completed",
                f"{kind}_audits_since",
                f"{kind}_audits_failed",
            ),
        )
        for kind in ("account", "container")
    },
    ("auditor", "object"): ("object", ("object_auditor_stats_ALL", "object_auditor_stats_ZBF")),
    ("scrub", "object"): ("object", ("object_auditor_scrub",)),
    ("compactor", "object"): (
        "object",
        (
            "object_compactor_sweep",
            "object_compactor_stats",
            "object_compactor_last",
            "object_packed_devices",
        ),
    ),
    ("expirer", "object"): ("object", ("object_expiration_pass", "expired_last_pass")),
    ("sharding", None): ("container", ("sharding_stats", "sharding_time", "sharding_last")),
    **{("copies", kind): (kind, (STATE, PROGRESS)) for kind in ("account", "container", "object")},
    ("relinker", None): ("relinker", ("devices", "workers")),
    ("layout", None): ("layout", ("layout",)),
    ("layoutcontroller", None): ("object", ("layout_controller",)),
    ("driveaudit", None): ("drive", ("drive_audit_errors",)),
    **{("deviceerrors", kind): (kind, (DEVICE_ERRORS,)) for kind in ("account", "container", "object")},
}


@dataclass(frozen=True)
class ReconSettings(Settings):
    """``[filter:recon]``."""

    devices: str = option("/srv/node", "Directory whose subdirectories are the devices.")
    swift_dir: str = option("/etc/swift", "Directory of swift.conf and the ring files.")
    recon_cache_path: str = option("/var/cache/swift", "Directory of the recon files.")
    recon_lock_path: str = option("/var/lock", "Directory of the lock of swift-recon-cron.")


class Recon(Filter):
    """Serves ``/recon/<check>[/<type>]``; ``ring_names`` are those of the cluster's rings.

    ``server_auth`` returns the facts about the authentication of servers.
    """

    def __init__(
        self,
        app: App,
        settings: ReconSettings,
        ring_names: tuple[str, ...] = ("account", "container", "object"),
        server_auth: Callable[[], dict[str, object]] = dict,
        run: Callable[..., object] | None = None,
    ):
        super().__init__(app)
        self._settings = settings
        self._ring_names = ring_names
        self._server_auth = server_auth
        self._run_in_thread = run or ThreadPool(_THREADS, "recon").call
        self._cached_digests: dict[str, tuple[FileIdentity, str]] = {}
        root, threads = settings.devices, devices.DeviceThreads()
        self._checks: dict[str, Callable[[], object]] = {
            "version": lambda: {"version": __version__},
            "native": lambda: {"native_disk": native_module() is not None},
            "time": time.time,
            "mem": lambda: machine.parse_meminfo(_read_text(machine.MEMINFO)),
            "load": lambda: machine.parse_loadavg(_read_text(machine.LOADAVG)),
            "mounted": lambda: machine.parse_mounts(_read_text(machine.MOUNTS)),
            "sockstat": lambda: machine.parse_sockstat(
                _read_text(machine.SOCKSTAT), _read_text_if_exists(machine.SOCKSTAT6)
            ),
            "devices": lambda: {root: devices.list_names(root)},
            "unmounted": lambda: devices.list_unmounted(root, threads),
            "diskusage": lambda: devices.list_disk_usage(root, threads),
            "quarantined": lambda: devices.count_quarantined(root, threads),
            "ringmd5": self._hash_rings,
            "swiftconfmd5": lambda: self._hash_files([f"{settings.swift_dir}/swift.conf"]),
        }

    def handle(self, request: Request) -> Response:
        """Return the response to any method for a path below ``/recon/``; forward all other requests."""
        if not request.raw_path.startswith(RECON_PATH_PREFIX):
            return self.forward(request)
        check = self._find_check(request.raw_path)
        if check is None:
            return Response(
                404, {"content-type": TEXT}, f"Invalid path: {request.raw_path}".encode("latin-1")
            )
        try:
            value = self._run_in_thread(check)
        except (OSError, ValueError, IndexError):
            value = None
        if value is None:
            return Response(500, {"content-type": TEXT}, b"Internal server error.")
        return Response(200, {"content-type": "application/json"}, json.dumps(value).encode())

    def _find_check(self, raw_path: str) -> Callable[[], object] | None:
        """Return the function that serves a path; None for an unknown path."""
        name, _, kind = raw_path.removeprefix(RECON_PATH_PREFIX).partition("/")
        kind = kind.strip("/")
        if name in self._checks:
            return self._checks[name]
        if name == "serverauth" and kind in _SERVER_TYPES:
            return lambda: self._read_server_auth(kind)
        stored = RECON_FILE_CHECKS.get((name, None))
        if stored is None:
            stored = RECON_FILE_CHECKS.get(
                (name, "object" if name in _DEFAULT_OBJECT_CHECKS and not kind else kind)
            )
        if stored is None:
            return None
        file, keys = stored
        return lambda: self._read_recon_file(file, keys)

    def _read_server_auth(self, kind: str) -> dict[str, object]:
        """Return how servers are authenticated, and the counts of the processes of a server type."""
        counts = self._read_recon_file(kind, (AUTH_COUNTS,))[AUTH_COUNTS]
        return {**self._server_auth(), **(counts if isinstance(counts, dict) else {})}

    def _read_recon_file(self, file: str, keys: tuple[str, ...]) -> dict[str, object]:
        """Return the keys of a recon file, None for missing ones."""
        try:
            path = f"{self._settings.recon_cache_path}/{file}.recon"
            content = parse(read_regular(Disk(), path).decode())
        except (OSError, UnicodeDecodeError):
            content = {}
        return {key: content.get(key) for key in keys}

    # --- digests of files ----------------------------------------------------------------------------

    def _hash_rings(self) -> dict[str, str | None]:
        paths = [f"{self._settings.swift_dir}/{name}.ring.gz" for name in self._ring_names]
        return self._hash_files([path for path in paths if os.path.exists(path)])

    def _hash_files(self, paths: list[str]) -> dict[str, str | None]:
        """Return the MD5 of files, None for an unreadable one; unchanged files are not read again."""
        return {path: self._hash_file(path) for path in paths}

    def _hash_file(self, path: str) -> str | None:
        try:
            file_state = file_identity(path)
            cached = self._cached_digests.get(path)
            if cached is not None and cached[0] == file_state:
                return cached[1]
            digest = md5(read_through_links(path), usedforsecurity=False).hexdigest()
        except OSError:
            return None
        self._cached_digests[path] = file_state, digest
        return digest


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _read_text_if_exists(path: str) -> str:
    return _read_text(path) if os.path.exists(path) else ""


def _make_filter(app: App, settings: ReconSettings, services: Services) -> Recon:
    try:
        policies = services.cluster.policies
        objects = tuple(policy.ring_name for policy in policies)
    except SwiftError:
        # The app behind this filter reports the error; recon must work without a configuration.
        objects = ("object",)
    return Recon(app, settings, ("account", "container", *objects), services.server_auth)


FILTER = FilterDeclaration("recon", ReconSettings, _make_filter, position=40, servers=("storage",))
