"""swift-container-sync: copy containers to other clusters, as their X-Container-Sync-To says."""

from __future__ import annotations

from swift import green

green.patch()

from swift.cluster.outbound import Outbound  # noqa: E402
from swift.cluster.syncrealms import Realms  # noqa: E402
from swift.compose import internal_client  # noqa: E402
from swift.config.common import ServerSettings  # noqa: E402
from swift.container.sync.remote import RemoteCluster  # noqa: E402
from swift.container.sync.settings import ContainerSyncSettings  # noqa: E402
from swift.container.sync.task import NAME, ContainerSync  # noqa: E402
from swift.runtime.service.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402


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
