"""swift-s3-lifecycle: end what the lifecycles of S3 buckets say has ended, and take their inventories."""

from __future__ import annotations

from swift import green

green.patch()

from dataclasses import replace  # noqa: E402

from swift.cli.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402
from swift.cli.resting import Resting, own_client  # noqa: E402
from swift.cli.sharing import arguments_of, share_of  # noqa: E402
from swift.runtime.daemon import DaemonTask  # noqa: E402
from swift.s3.daemons.lifecycle import (  # noqa: E402
    NAME,
    Lifecycle,
    LifecycleSettings,  # noqa: E402
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
