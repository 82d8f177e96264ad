"""swift.conf: what all nodes of a cluster share (spec: ring.md §2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.config.files import read_sections

#: In place of the secrets in etc/swift.conf-sample. Devices would keep the fingerprint of it.
SAMPLE_SECRET = "<random text>"


@dataclass(frozen=True)
class ClusterConfig:
    """Hash secrets, limits and the raw sections (policies are parsed by ``swift.policy``)."""

    path: str
    hasher: PathHasher
    limits: Limits
    sections: dict[str, dict[str, str]]


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
    return ClusterConfig(path, hasher, parse_limits(sections.get("swift-constraints", {}), path), sections)


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
