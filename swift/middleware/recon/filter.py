"""The recon filter: a table from path to what is told (spec: middleware.md §16).

Most of it is what daemons wrote into the recon files, key by key; the rest is asked of the kernel and of the
devices. Everything is done in a thread of its own: a hanging disk must not stop the server, and its recon
page least of all.
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
from swift.platform.regularfiles import read_regular, read_through_links
from swift.runtime.copystate import PROGRESS, STATE
from swift.telemetry.devicefaults import KEY as DEVICE_ERRORS
from swift.telemetry.recon import parse

PREFIX = "/recon/"
#: Checks that are about objects when no type is named.
_OF_OBJECTS = frozenset(("replication", "deviceerrors"))
_THREADS = 2

#: (check, type or None for any) → (recon file, keys that are told).
STORED: dict[tuple[str, str | None], tuple[str, tuple[str, ...]]] = {
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
    ("expirer", "object"): ("object", ("object_expiration_pass", "expired_last_pass")),
    ("sharding", None): ("container", ("sharding_stats", "sharding_time", "sharding_last")),
    **{("copies", kind): (kind, (STATE, PROGRESS)) for kind in ("account", "container", "object")},
    ("relinker", None): ("relinker", ("devices", "workers")),
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
    """Answers ``/recon/<check>[/<type>]``; ``ring_names`` are those of the cluster's rings."""

    def __init__(
        self,
        app: App,
        settings: ReconSettings,
        ring_names: tuple[str, ...] = ("account", "container", "object"),
        run: Callable[..., object] | None = None,
    ):
        super().__init__(app)
        self._settings = settings
        self._ring_names = ring_names
        self._run = run or ThreadPool(_THREADS, "recon").call
        self._digests: dict[str, tuple[tuple[int, int, int], str]] = {}
        root = settings.devices
        self._checks: dict[str, Callable[[], object]] = {
            "version": lambda: {"version": __version__},
            "time": time.time,
            "mem": lambda: machine.memory(_read(machine.MEMINFO)),
            "load": lambda: machine.load(_read(machine.LOADAVG)),
            "mounted": lambda: machine.mounted(_read(machine.MOUNTS)),
            "sockstat": lambda: machine.sockets(_read(machine.SOCKSTAT), _read_if_there(machine.SOCKSTAT6)),
            "devices": lambda: {root: devices.names(root)},
            "unmounted": lambda: devices.unmounted(root),
            "diskusage": lambda: devices.usage(root),
            "quarantined": lambda: devices.quarantined(root),
            "ringmd5": self._ring_digests,
            "swiftconfmd5": lambda: self._digests_of([f"{settings.swift_dir}/swift.conf"]),
        }

    def handle(self, request: Request) -> Response:
        """Answer what begins with ``/recon/``, whatever the method."""
        if not request.raw_path.startswith(PREFIX):
            return self.forward(request)
        check = self._find(request.raw_path)
        if check is None:
            return Response(
                404, {"content-type": TEXT}, f"Invalid path: {request.raw_path}".encode("latin-1")
            )
        try:
            value = self._run(check)
        except (OSError, ValueError, IndexError):
            value = None
        if value is None:
            return Response(500, {"content-type": TEXT}, b"Internal server error.")
        return Response(200, {"content-type": "application/json"}, json.dumps(value).encode())

    def _find(self, raw_path: str) -> Callable[[], object] | None:
        """Return the function that serves a path, or None for an unknown path."""
        name, _, kind = raw_path.removeprefix(PREFIX).partition("/")
        kind = kind.strip("/")
        if name in self._checks:
            return self._checks[name]
        stored = STORED.get((name, None))
        if stored is None:
            stored = STORED.get((name, "object" if name in _OF_OBJECTS and not kind else kind))
        if stored is None:
            return None
        file, keys = stored
        return lambda: self._stored(file, keys)

    def _stored(self, file: str, keys: tuple[str, ...]) -> dict[str, object]:
        """Keys of a recon file, None for missing ones."""
        try:
            path = f"{self._settings.recon_cache_path}/{file}.recon"
            facts = parse(read_regular(Disk(), path).decode())
        except (OSError, UnicodeDecodeError):
            facts = {}
        return {key: facts.get(key) for key in keys}

    # --- digests of files ----------------------------------------------------------------------------

    def _ring_digests(self) -> dict[str, str | None]:
        paths = [f"{self._settings.swift_dir}/{name}.ring.gz" for name in self._ring_names]
        return self._digests_of([path for path in paths if os.path.exists(path)])

    def _digests_of(self, paths: list[str]) -> dict[str, str | None]:
        """MD5 of files; None for one that cannot be read. Unchanged files are not read again."""
        return {path: self._digest(path) for path in paths}

    def _digest(self, path: str) -> str | None:
        try:
            stat = os.stat(path)
            mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            known = self._digests.get(path)
            if known is not None and known[0] == mark:
                return known[1]
            digest = md5(read_through_links(path), usedforsecurity=False).hexdigest()
        except OSError:
            return None
        self._digests[path] = mark, digest
        return digest


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _read_if_there(path: str) -> str:
    return _read(path) if os.path.exists(path) else ""


def _make(app: App, settings: ReconSettings, services: Services) -> Recon:
    try:
        policies = services.cluster.policies
        objects = tuple(policy.ring_name for policy in policies)
    except SwiftError:
        # The app behind this filter says it better; recon must work without it as well.
        objects = ("object",)
    return Recon(app, settings, ("account", "container", *objects))


FILTER = FilterDeclaration(
    "recon",
    ReconSettings,
    _make,
    position=40,
    servers=("storage",),
)
