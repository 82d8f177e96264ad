"""The options of ``[app:container-server]`` (spec: cli-and-config.md §4)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class ContainerSettings(Settings):
    """What a container server can be told beside where its devices are."""

    allowed_sync_hosts: tuple[str, ...] = option(
        (),
        "Hosts, or host:port, that X-Container-Sync-To URLs may name beside realms; mostly set in [DEFAULT]. "
        "Only host:port may be on this machine.",
    )
    node_timeout: float = option(3.0, "Seconds to wait for an account server.", kind=SECONDS)
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to one.", kind=SECONDS)
    allow_versions: bool = option(False, "Keep X-Versions-Location of the legacy versioning.")
    db_preallocation: bool = option(False, "Allocate databases in large steps.")
    db_query_logging: bool = option(False, "Log every SQL statement.")
    threads_per_disk: int = option(
        4,
        "Threads per device for long calls, and for all while it is slow or not the only one of its process. "
        "0 runs everything on the event loop.",
        kind=COUNT,
    )
