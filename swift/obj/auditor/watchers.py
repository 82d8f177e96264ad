"""Audit watchers: programs of others that see every object that the auditor has found sound.

They come by entry points (``swift.object_audit_watcher``) and may ask that an object be quarantined. What
goes wrong in one is logged and harms neither the audit nor the other watchers. spec: replication.md §7
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from swift.base.errors import ConfigError
from swift.telemetry.log import Log

GROUP = "swift.object_audit_watcher"


class QuarantineRequest(Exception):
    """A watcher wants the object to be quarantined."""


class DeleteRequest(Exception):
    """A watcher wants the object to be removed from this device."""


class Watcher:
    """Base of watchers; all its methods are called with keywords, of which there may be more one day."""

    def __init__(self, conf: Mapping[str, Any], logger: Any):
        self.conf = conf
        self.logger = logger

    def start(self, audit_type: str, **_more: object) -> None:
        """Start a pass over a device; ``audit_type`` is ALL or ZBF."""

    def see_object(self, object_metadata: dict[str, str], data_file_path: str, **_more: object) -> None:
        """One sound object; may raise ``QuarantineRequest`` or ``DeleteRequest``."""

    def end(self, **_more: object) -> None:
        """End a pass."""


class Watchers:
    """The watchers of one auditor, by name."""

    def __init__(self, watchers: Mapping[str, object], log: Log):
        self._watchers = dict(watchers)
        self._log = log

    def start(self, audit_type: str) -> None:
        """Tell all that a pass begins."""
        self._tell(lambda watcher: watcher.start(audit_type=audit_type))

    def see(self, metadata: dict[str, str], path: str) -> Exception | None:
        """Show an object to all; the first request that one of them makes."""
        requests: list[Exception] = []

        def show(watcher: Any) -> None:
            try:
                watcher.see_object(object_metadata=dict(metadata), data_file_path=path)
            except Exception as error:
                if not is_request(error):
                    raise
                requests.append(error)

        self._tell(show)
        return requests[0] if requests else None

    def end(self) -> None:
        """Tell all that the pass is over."""
        self._tell(lambda watcher: watcher.end())

    def _tell(self, call: Callable[[Any], None]) -> None:
        for name, watcher in self._watchers.items():
            try:
                call(watcher)
            except Exception as error:
                self._log.exception(f"ERROR audit watcher {name} failed", error)

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def __repr__(self) -> str:
        return f"Watchers({sorted(self._watchers)})"


def is_request(error: Exception) -> bool:
    """Return True if a watcher requests an action; other implementations have an exception of the same
    name.
    """
    return isinstance(error, DeleteRequest) or type(error).__name__ == QuarantineRequest.__name__


def load_watchers(names: Sequence[str], conf_of: Callable[[str], Mapping[str, Any]], log: Log) -> Watchers:
    """Make the watchers that are named; raises ``ConfigError`` for one that is not installed."""
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    made = {}
    for name in names:
        # An entry may come as distribution#name, as in other sections.
        entry = known.get(name.rpartition("#")[2])
        if entry is None:
            raise ConfigError(
                f"[object-auditor] watchers: there is no watcher {name!r}; installed are {sorted(known)}"
            )
        made[name] = entry.load()(conf_of(name), log)
    return Watchers(made, log)
