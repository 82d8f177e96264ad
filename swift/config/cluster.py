"""swift.conf: what all nodes of a cluster share (spec: ring.md §2)."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.config.files import read_sections
from swift.config.kinds import NETWORKS, IPNetwork, choice, number
from swift.config.schema import Settings, option

#: In place of the secrets in etc/swift.conf-sample. Devices would keep the fingerprint of it.
SAMPLE_SECRET = "<random text>"


SERVERS_SECTION = "swift-servers"


@dataclass(frozen=True)
class ServerAuthSettings(Settings):
    """``[swift-servers]``: how storage servers know the servers that send them requests."""

    secret_file: str = option(
        "server.secret",
        "File of the secrets that sign requests between servers; a relative path is one below swift_dir.",
    )
    mode: str = option(
        "off",
        "Requests without a valid signature: off serves them, accept serves those without any, require "
        "refuses both kinds.",
        kind=choice("off", "accept", "require"),
    )
    exempt: tuple[IPNetwork, ...] = option(
        "",
        "Addresses and networks of nodes whose requests need no signature, e.g. nodes of OpenStack Swift.",
        kind=NETWORKS,
    )
    window: float = option(
        60.0,
        "Seconds by which the time of a signature and the clock of a storage server may differ.",
        kind=number(1, 3600),
    )


@dataclass(frozen=True)
class ClusterConfig:
    """Hash secrets, limits, authentication of servers, and the raw sections.

    Policies are parsed by ``swift.policy``.
    """

    path: str
    hasher: PathHasher
    limits: Limits
    sections: dict[str, dict[str, str]]
    server_auth: ServerAuthSettings

    @property
    def secret_path(self) -> str:
        """The file of the secrets that sign requests between servers."""
        return os.path.join(os.path.dirname(self.path), self.server_auth.secret_file)


def read_cluster_config(path: str) -> ClusterConfig:
    """Parse swift.conf; raises ``ConfigError`` when it is missing, unreadable or has no hash secret."""
    sections = read_sections(path)
    secrets = sections.get("swift-hash", {})
    prefix = secrets.get("swift_hash_path_prefix", "")
    suffix = secrets.get("swift_hash_path_suffix", "")
    if not prefix and not suffix:
        raise ConfigError(
            "Error: [swift-hash]: both swift_hash_path_suffix and swift_hash_path_prefix are missing "
            f"from {path}"
        )
    if SAMPLE_SECRET in (prefix, suffix):
        raise ConfigError(
            f"{path}: [swift-hash] has the text of the sample, {SAMPLE_SECRET}: choose random values"
        )
    try:
        hasher = PathHasher(prefix.encode("latin-1"), suffix.encode("latin-1"))
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: the hash path prefix and suffix must be Latin-1")
    limits = parse_limits(sections.get("swift-constraints", {}), path)
    return ClusterConfig(path, hasher, limits, sections, _parse_server_auth(sections, path))


def _parse_server_auth(sections: dict[str, dict[str, str]], path: str) -> ServerAuthSettings:
    """Return the values of ``[swift-servers]``; raises ``ConfigError``, also for an unknown option."""
    values = sections.get(SERVERS_SECTION, {})
    source = f"{path}: [{SERVERS_SECTION}]"
    unknown = sorted(values.keys() - ServerAuthSettings.known_names())
    if unknown:
        raise ConfigError(f"{source}: unknown option {unknown[0]}")
    return ServerAuthSettings.parse(values, source=source)


def parse_limits(values: dict[str, str], source: str) -> Limits:
    """``[swift-constraints]``; raises ``ConfigError`` for a value that is not of the default's type."""
    parsed: dict[str, object] = {}
    for field in dataclasses.fields(Limits):
        if field.name not in values:
            continue
        text = values[field.name].strip()
        if isinstance(field.default, int):
            if not (text.isascii() and text.isdigit()):
                raise ConfigError(f"{source}: {field.name} must be a whole number, not {text!r}")
            parsed[field.name] = int(text)
        elif isinstance(field.default, tuple):
            parsed[field.name] = tuple(item.strip() for item in text.split(",") if item.strip())
        else:
            parsed[field.name] = text
    return Limits(**parsed)  # type: ignore[arg-type]
