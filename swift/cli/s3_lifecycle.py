"""swift-s3-lifecycle: end what the lifecycles of S3 buckets say has ended."""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
from dataclasses import replace  # noqa: E402

from swift.base.errors import ConfigError  # noqa: E402
from swift.cli.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.cli.resting import Resting, is_of_server  # noqa: E402
from swift.compose import internal_client  # noqa: E402
from swift.middleware.s3api.lifecycle.settings import LifecycleSettings  # noqa: E402
from swift.middleware.s3api.lifecycle.task import NAME, Lifecycle  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402


def _settings(parts: DaemonParts) -> LifecycleSettings:
    settings: LifecycleSettings = parts.settings
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


def _make(parts: DaemonParts) -> DaemonTask:
    settings = _settings(parts)
    log, pipeline = parts.context.telemetry.log, settings.internal_client_conf_path
    if not pipeline and is_of_server(parts.conf_path):
        log.warning(f"{parts.conf_path} [{NAME}]: internal_client_conf_path is not set; nothing is done here")
        return Resting(NAME)
    client = internal_client(
        pipeline or parts.conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
    )
    return Lifecycle(settings, client, log)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, help="daemons that share the buckets")
    parser.add_argument("--process", type=int, help="which of them this one is, from 0")


DAEMON = Daemon(
    NAME,
    "container",
    "End what the lifecycles of S3 buckets say has ended.",
    LifecycleSettings,
    _make,
    add_arguments=_add_arguments,
    conf_name="s3-lifecycle.conf",
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
