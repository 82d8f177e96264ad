"""swift-object-expirer: delete what has passed its X-Delete-At."""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
from dataclasses import replace  # noqa: E402

from swift.base.errors import ConfigError  # noqa: E402
from swift.cli.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.cli.resting import Resting  # noqa: E402
from swift.compose import internal_client  # noqa: E402
from swift.config.files import parser_of  # noqa: E402
from swift.obj.expirer.queue import Queue  # noqa: E402
from swift.obj.expirer.settings import Delays, ObjectExpirerSettings  # noqa: E402
from swift.obj.expirer.task import NAME, ObjectExpirer  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402


def _is_on(parts: DaemonParts) -> bool:
    """Whether this node works on the queue: one says so, and a file for the expirer alone means it."""
    return parts.settings.dequeue_from_legacy or not parser_of(parts.conf_path).has_section(
        "app:object-server"
    )


def _settings(parts: DaemonParts) -> ObjectExpirerSettings:
    settings: ObjectExpirerSettings = parts.settings
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
    settings, log = _settings(parts), parts.context.telemetry.log
    if not _is_on(parts):
        log.warning(f"{parts.conf_path} [{NAME}]: dequeue_from_legacy is not set, so nothing is expired here")
        return Resting(NAME)
    client = internal_client(
        settings.internal_client_conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
    )
    queue = Queue(
        client,
        settings.account,
        Delays.parse(parts.conf),
        processes=settings.processes,
        process=settings.process,
        warn=log.warning,
    )
    return ObjectExpirer(parts.context, parts.rings.container, settings, client, queue)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, help="expirers that share the queue")
    parser.add_argument("--process", type=int, help="which of them this one is, from 0")


DAEMON = Daemon(
    NAME,
    "object",
    "Delete what has passed its X-Delete-At.",
    ObjectExpirerSettings,
    _make,
    add_arguments=_add_arguments,
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
