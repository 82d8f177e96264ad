"""swift-s3-notifier: tell webhooks what happened in S3 buckets."""

from __future__ import annotations

from swift import green

green.patch()

from swift.cli.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.cli.resting import Resting, own_client  # noqa: E402
from swift.cluster.outbound import Outbound  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402
from swift.s3.daemons.notifier import (  # noqa: E402
    NAME,
    Notifier,
    NotifierSettings,  # noqa: E402
    Webhooks,  # noqa: E402
)


def _make(parts: DaemonParts) -> DaemonTask:
    settings: NotifierSettings = parts.settings
    urls = settings.urls()
    client = own_client(parts, NAME, settings.internal_client_conf_path, settings.request_tries)
    if client is None:
        return Resting(NAME)
    webhooks = Webhooks(settings.webhook_timeout, Outbound.of_rings(parts.rings))
    return Notifier(settings, urls, client, webhooks, parts.context.telemetry.log)


DAEMON = Daemon(
    NAME,
    "container",
    "Tell webhooks what happened in S3 buckets.",
    NotifierSettings,
    _make,
    conf_name="s3-notifier.conf",
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
