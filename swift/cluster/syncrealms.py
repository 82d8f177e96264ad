"""Container sync realms: named groups of clusters that share keys (spec: account-container.md §17).

Reads ``container-sync-realms.conf`` (again when it changed) and checks X-Container-Sync-To values. Signing
and sending are done elsewhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlparse

from swift.base.errors import ConfigError, InvalidValue
from swift.config.files import parser_of

CHECK_INTERVAL_S = 300


class SyncToError(InvalidValue):
    """An X-Container-Sync-To value cannot be used; the text is what the client is told."""


@dataclass(frozen=True, slots=True)
class Realm:
    """One realm: its keys and the endpoints of its clusters, names in upper case."""

    key: str
    key2: str = ""
    clusters: Mapping[str, str] = field(default_factory=dict)


class Realms:
    """The realms of a file, by upper-case name; none when the file is missing."""

    def __init__(self, realms: Mapping[str, Realm] | None = None, path: str | None = None):
        self._realms = dict(realms or {})
        self._path = path
        self._mtime: float | None = None
        self._check_at = 0.0
        self._interval_s = float(CHECK_INTERVAL_S)

    @classmethod
    def of_file(cls, path: str) -> Realms:
        """Realms that follow a file; it is read at first use."""
        return cls(path=path)

    def get(self, name: str) -> Realm | None:
        """A realm by its name in any case."""
        self._follow()
        return self._realms.get(name.upper())

    def names(self) -> list[str]:
        """All names, sorted."""
        self._follow()
        return sorted(self._realms)

    def _follow(self) -> None:
        if self._path is None or time.monotonic() < self._check_at:
            return
        try:
            mtime = os.stat(self._path).st_mtime
        except OSError:
            mtime = None
        if mtime != self._mtime:
            self._mtime = mtime
            self._load()
        self._check_at = time.monotonic() + self._interval_s

    def _load(self) -> None:
        assert self._path is not None
        if self._mtime is None:
            self._realms = {}
            return
        try:
            parser = parser_of(self._path)
        except ConfigError:
            # A file that is being edited: what was known stays valid until it reads again.
            return
        try:
            self._interval_s = float(parser.defaults().get("mtime_check_interval", CHECK_INTERVAL_S))
        except ValueError:
            self._interval_s = float(CHECK_INTERVAL_S)
        self._realms = {name.upper(): _realm(dict(parser.items(name))) for name in parser.sections()}


def _realm(values: Mapping[str, str]) -> Realm:
    clusters = {
        name[len("cluster_") :].upper(): endpoint
        for name, endpoint in values.items()
        if name.lower().startswith("cluster_")
    }
    return Realm(values.get("key", ""), values.get("key2", ""), clusters)


@dataclass(frozen=True, slots=True)
class SyncTo:
    """Where a container is to be copied: the URL, and how its requests are signed."""

    url: str
    realm: str | None = None
    realm_key: str | None = None


def validate_sync_to(value: str, allowed_hosts: Sequence[str], realms: Realms) -> SyncTo | None:
    """What an X-Container-Sync-To value means, None when it unsets; raises ``SyncToError``."""
    value = value.strip().rstrip("/")
    if not value:
        return None
    if value.startswith("//"):
        return _in_realm(value, realms)
    try:
        parts = urlparse(value)
    except ValueError as error:
        raise SyncToError(f"Invalid URL in X-Container-Sync-To: {error}")
    if parts.scheme not in ("http", "https"):
        raise SyncToError(
            f'Invalid scheme {parts.scheme!r} in X-Container-Sync-To, must be "//", "http", or "https".'
        )
    if not parts.path:
        raise SyncToError("Path required in X-Container-Sync-To")
    if parts.params or parts.query or parts.fragment:
        raise SyncToError("Params, queries, and fragments not allowed in X-Container-Sync-To")
    if parts.hostname not in allowed_hosts:
        raise SyncToError(f"Invalid host {parts.hostname!r} in X-Container-Sync-To")
    return SyncTo(value)


def _in_realm(value: str, realms: Realms) -> SyncTo:
    parts = value[2:].split("/")
    if len(parts) != 4 or not all(parts):
        raise SyncToError(f"Invalid X-Container-Sync-To format {value!r}")
    name, cluster, account, container = parts
    realm = realms.get(name)
    if realm is None or not realm.key:
        raise SyncToError(f"No realm key for {name!r}")
    endpoint = realm.clusters.get(cluster.upper())
    if not endpoint:
        raise SyncToError(f"No cluster endpoint for {name!r} {cluster!r}")
    return SyncTo(f"{endpoint.rstrip('/')}/{account}/{container}", name.upper(), realm.key)
