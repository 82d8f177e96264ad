"""The options of ``[container-sync]`` (spec: cli-and-config.md §4)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import SECONDS, integer
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class ContainerSyncSettings(Settings):
    """How often containers are copied, and through what."""

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    container_time: float = option(60.0, "Seconds spent on a container in one pass.", kind=SECONDS)
    sync_proxy: tuple[str, ...] = option(
        (), "Proxies to the other clusters, one of which is taken: http://host:port."
    )
    conn_timeout: float = option(
        5.0, "Seconds to wait for each step of a request to another cluster.", kind=SECONDS
    )
    request_tries: int = option(3, "How often a request to this cluster is tried.", kind=integer(1))
    sync_row_concurrency: int = option(8, "Objects of a container copied at the same time.", kind=integer(1))
    allowed_sync_hosts: tuple[str, ...] = option(
        (),
        "Hosts, or host:port, that X-Container-Sync-To URLs may name beside realms; mostly set in [DEFAULT]. "
        "Only host:port may be on this machine.",
    )
    internal_client_conf_path: str = option(
        "/etc/swift/internal-client.conf", "The pipeline by which objects are read."
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, report_interval_s=self.report_interval)
