"""swift-s3-lifecycle: end what the lifecycles of S3 buckets say has ended, and take their inventories."""

from __future__ import annotations

from swift import green

green.patch()

from dataclasses import replace  # noqa: E402

from swift.middleware.s3api.lifecycle.settings import LifecycleSettings  # noqa: E402
from swift.middleware.s3api.lifecycle.task import NAME, Lifecycle  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402
from swift.runtime.service.daemonize import (  # noqa: E402  # noqa: E402  # noqa: E402
    Daemon,
    DaemonParts,
    Resting,
    arguments_of,
    own_client,
    run_daemon,
    share_of,
)


def _make(parts: DaemonParts) -> DaemonTask:
    settings: LifecycleSettings = parts.settings
    settings = replace(settings, **share_of(parts, settings))
    client = own_client(parts, NAME, settings.internal_client_conf_path, settings.request_tries)
    if client is None:
        return Resting(NAME)
    return Lifecycle(settings, client, parts.context.telemetry.log)


DAEMON = Daemon(
    NAME,
    "container",
    "End what the lifecycles of S3 buckets say has ended, and take their inventories.",
    LifecycleSettings,
    _make,
    add_arguments=arguments_of("daemons that share the buckets"),
    conf_name="s3-lifecycle.conf",
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
