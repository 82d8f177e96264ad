"""Container sync realms: named groups of clusters that share keys (spec: account-container.md §17).

Reads ``container-sync-realms.conf``, again after changes, and validates X-Container-Sync-To values.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import ParseResult, unquote, urlparse

from swift.base.errors import ConfigError, InvalidValue
from swift.cluster.outbound import Trust, default_port
from swift.config.files import parser_of
from swift.platform.regularfiles import FileIdentity, file_identity

CHECK_INTERVAL_S = 300
#: Versions of the API in the path of a URL.
_VERSIONS = ("v1", "v1.0")
_NO_PARAMETERS = "Params, queries, and fragments not allowed in X-Container-Sync-To"


class SyncToError(InvalidValue):
    """An X-Container-Sync-To value cannot be used; the text is for the client."""


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
        self._identity: FileIdentity | None = None
        self._check_at = 0.0
        self._interval_s = float(CHECK_INTERVAL_S)

    @classmethod
    def of_file(cls, path: str) -> Realms:
        """Return the realms of a file, which is read at first use and again after changes."""
        return cls(path=path)

    def get(self, name: str) -> Realm | None:
        """Return a realm by its name in any case."""
        self._reload_if_changed()
        return self._realms.get(name.upper())

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._reload_if_changed()
        return sorted(self._realms)

    def _reload_if_changed(self) -> None:
        if self._path is None or time.monotonic() < self._check_at:
            return
        try:
            identity = file_identity(self._path)
        except OSError:
            identity = None
        if identity != self._identity:
            self._identity = identity
            self._load()
        self._check_at = time.monotonic() + self._interval_s

    def _load(self) -> None:
        assert self._path is not None
        if self._identity is None:
            self._realms = {}
            return
        try:
            parser = parser_of(self._path)
        except ConfigError:
            # The file may be under edit: the known realms stay valid until it can be read again.
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
    """Target of a container's copies: the URL, the origin of its host, and the key of signatures."""

    url: str
    realm: str | None = None
    realm_key: str | None = None
    trust: Trust = Trust.CLIENT


def validate_sync_to(value: str, allowed_hosts: Sequence[str], realms: Realms) -> SyncTo | None:
    """Return the target of an X-Container-Sync-To value, None for an empty one; raises ``SyncToError``.

    ``allowed_hosts`` are hosts that a URL may name, or ``host:port`` for one endpoint of the operator's.
    """
    value = value.strip().rstrip("/")
    if not value:
        return None
    if value.startswith("//"):
        return _parse_realm_url(value, realms)
    parts = _parse_url(value)
    host = parts.hostname or ""
    port = parts.port or default_port(parts.scheme)
    is_endpoint = any(_is_endpoint(word, host, port) for word in allowed_hosts)
    if not is_endpoint and host not in {word.lower() for word in allowed_hosts}:
        raise SyncToError(f"Invalid host {parts.hostname!r} in X-Container-Sync-To")
    check_full_url(value)
    return SyncTo(value, trust=Trust.OPERATOR if is_endpoint else Trust.CLIENT)


def check_full_url(value: str) -> None:
    """Check the path of a URL that is no realm's: ``/v1/account/container``. Raises ``SyncToError``."""
    words = _parse_url(value.strip().rstrip("/")).path.split("/")
    if len(words) != 4 or words[0] or words[1] not in _VERSIONS:
        raise SyncToError("Invalid path in X-Container-Sync-To, must be /v1/account/container")
    _check_names(words[2:])


def endpoint_of(url: str) -> tuple[str, int]:
    """Return the host and port of a URL that has been validated."""
    parts = urlparse(url)
    return parts.hostname or "", parts.port or default_port(parts.scheme)


def _parse_url(value: str) -> ParseResult:
    try:
        if any(map(_is_space_or_control, value)):
            raise ValueError("it contains spaces or control characters")
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
        raise SyncToError(_NO_PARAMETERS)
    try:
        is_good = parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_good = False
    if not is_good:
        raise SyncToError(f"Invalid host and port {parts.netloc[:100]!r} in X-Container-Sync-To")
    return parts


def _is_endpoint(word: str, host: str, port: int) -> bool:
    """Return True if an allowed host is written with a port and names this endpoint."""
    name, colon, number = word.lower().rpartition(":")
    return bool(colon) and number == str(port) and name.strip("[]") == host


def _check_names(names: Sequence[str]) -> None:
    """Refuse names with which a URL would not address a container."""
    for name in names:
        plain = unquote(name, errors="surrogateescape")
        if not plain or plain in (".", "..") or "/" in plain:
            raise SyncToError(f"Invalid account or container {name[:100]!r} in X-Container-Sync-To")
        if any(character in "?#" or _is_space_or_control(character) for character in name):
            raise SyncToError(_NO_PARAMETERS)


def _is_space_or_control(character: str) -> bool:
    return ord(character) <= 0x20 or ord(character) == 0x7F


def _parse_realm_url(value: str, realms: Realms) -> SyncTo:
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
    _check_names((account, container))
    url = f"{endpoint.rstrip('/')}/{account}/{container}"
    return SyncTo(url, name.upper(), realm.key, Trust.OPERATOR)
