"""swift-container-reconciler: move objects that lie in a wrong policy to the one of their container."""

from __future__ import annotations

from swift import green

green.patch()

from dataclasses import replace  # noqa: E402

from swift.compose import internal_client  # noqa: E402
from swift.container.reconciler.queue import ReconcilerQueue  # noqa: E402
from swift.container.reconciler.settings import ContainerReconcilerSettings  # noqa: E402
from swift.container.reconciler.task import NAME, ContainerReconciler  # noqa: E402
from swift.runtime.service.daemonize import Daemon, DaemonParts, arguments_of, run_daemon, share_of  # noqa: E402  # noqa: E402


def _make(parts: DaemonParts) -> ContainerReconciler:
    settings: ContainerReconcilerSettings = parts.settings
    settings = replace(settings, **share_of(parts, settings))
    pipeline = settings.internal_client_conf_path or parts.conf_path
    client, mover = (
        internal_client(pipeline, NAME, tries=tries, use_replication_network=True)
        for tries in (settings.request_tries, 1)
    )
    queue = ReconcilerQueue(
        client,
        processes=settings.processes,
        process=settings.process,
        warn=parts.context.telemetry.log.warning,
    )
    return ContainerReconciler(parts.context, parts.rings, settings, client, mover, queue)


DAEMON = Daemon(
    NAME,
    "container",
    "Move objects that lie in a wrong policy to the one of their container.",
    ContainerReconcilerSettings,
    _make,
    add_arguments=arguments_of("reconcilers that share the queue"),
    conf_name="container-reconciler.conf",
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
