"""swift-container-sync: copy containers to other clusters, as their X-Container-Sync-To says."""

from __future__ import annotations

from swift.cli.daemonize import Daemon, DaemonParts, run_daemon
from swift.cluster.outbound import Outbound
from swift.cluster.syncrealms import Realms
from swift.compose import internal_client
from swift.config.common import ServerSettings
from swift.container.sync.remote import RemoteCluster
from swift.container.sync.settings import ContainerSyncSettings
from swift.container.sync.task import NAME, ContainerSync


def _make(parts: DaemonParts) -> ContainerSync:
    settings: ContainerSyncSettings = parts.settings
    client = internal_client(
        settings.internal_client_conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
        must_decrypt=True,
    )
    swift_dir = ServerSettings.parse(parts.conf).swift_dir
    return ContainerSync(
        parts.context,
        parts.rings.container,
        settings,
        client,
        RemoteCluster(settings.conn_timeout, settings.sync_proxy, outbound=Outbound.of_rings(parts.rings)),
        Realms.of_file(f"{swift_dir}/container-sync-realms.conf"),
        selection=parts.selection,
    )


DAEMON = Daemon(NAME, "container", "Copy containers to other clusters.", ContainerSyncSettings, _make)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
