"""Options of the filter (spec: middleware.md §9)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.schema import Settings, option


@dataclass(frozen=True)
class VersionedWritesSettings(Settings):
    """``[filter:versioned_writes]``."""

    allow_versioned_writes: bool = option(
        False, "Keep former objects in another container: X-Versions-Location, X-History-Location."
    )
    allow_object_versioning: bool = option(
        False, "Keep every version of an object beside it: X-Versions-Enabled. Needs the filter symlink."
    )
