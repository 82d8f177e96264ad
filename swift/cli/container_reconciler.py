"""swift-container-reconciler: move objects that lie in a wrong policy to the one of their container."""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
from dataclasses import replace  # noqa: E402

from swift.base.errors import ConfigError  # noqa: E402
from swift.cli.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.compose import internal_client  # noqa: E402
from swift.container.reconciler.queue import Queue  # noqa: E402
from swift.container.reconciler.settings import ContainerReconcilerSettings  # noqa: E402
from swift.container.reconciler.task import NAME, ContainerReconciler  # noqa: E402


def _settings(parts: DaemonParts) -> ContainerReconcilerSettings:
    settings: ContainerReconcilerSettings = parts.settings
    processes, process = (getattr(parts.args, name, None) for name in ("processes", "process"))
    settings = replace(
        settings,
        processes=settings.processes if processes is None else processes,
        process=settings.process if process is None else process,
    )
    if settings.processes and settings.process >= settings.processes:
        raise ConfigError(
            f"process {settings.process} must be below processes {settings.processes} ({parts.conf_path})"
        )
    return settings


def _make(parts: DaemonParts) -> ContainerReconciler:
    settings = _settings(parts)
    pipeline = settings.internal_client_conf_path or parts.conf_path
    client, mover = (
        internal_client(pipeline, NAME, tries=tries, use_replication_network=True)
        for tries in (settings.request_tries, 1)
    )
    queue = Queue(
        client,
        processes=settings.processes,
        process=settings.process,
        warn=parts.context.telemetry.log.warning,
    )
    return ContainerReconciler(parts.context, parts.rings, settings, client, mover, queue)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, help="reconcilers that share the queue")
    parser.add_argument("--process", type=int, help="which of them this one is, from 0")


DAEMON = Daemon(
    NAME,
    "container",
    "Move objects that lie in a wrong policy to the one of their container.",
    ContainerReconcilerSettings,
    _make,
    add_arguments=_add_arguments,
    conf_name="container-reconciler.conf",
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
