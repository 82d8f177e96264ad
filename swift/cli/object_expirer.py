"""swift-object-expirer: delete what has passed its X-Delete-At."""

from __future__ import annotations

from swift import green

green.patch()

from dataclasses import replace  # noqa: E402

from swift.compose import internal_client  # noqa: E402
from swift.config.files import parser_of  # noqa: E402
from swift.obj.expirer.queue import ExpirerQueue  # noqa: E402
from swift.obj.expirer.settings import Delays, ObjectExpirerSettings  # noqa: E402
from swift.obj.expirer.task import NAME, ObjectExpirer  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402
from swift.runtime.service.daemonize import (  # noqa: E402  # noqa: E402
    Daemon,
    DaemonParts,
    Resting,  # noqa: E402
    arguments_of,
    run_daemon,
    share_of,
)


def _is_on(parts: DaemonParts) -> bool:
    """Whether this node works on the queue: one says so, and a file for the expirer alone means it."""
    return parts.settings.dequeue_from_legacy or not parser_of(parts.conf_path).has_section(
        "app:object-server"
    )


def _make(parts: DaemonParts) -> DaemonTask:
    settings: ObjectExpirerSettings = parts.settings
    settings, log = replace(settings, **share_of(parts, settings)), parts.context.telemetry.log
    if not _is_on(parts):
        log.warning(f"{parts.conf_path} [{NAME}]: dequeue_from_legacy is not set, so nothing is expired here")
        return Resting(NAME)
    client = internal_client(
        settings.internal_client_conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
    )
    queue = ExpirerQueue(
        client,
        settings.account,
        Delays.parse(parts.conf),
        processes=settings.processes,
        process=settings.process,
        warn=log.warning,
    )
    return ObjectExpirer(parts.context, parts.rings.container, settings, client, queue)


DAEMON = Daemon(
    NAME,
    "object",
    "Delete what has passed its X-Delete-At.",
    ObjectExpirerSettings,
    _make,
    add_arguments=arguments_of("expirers that share the queue"),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
