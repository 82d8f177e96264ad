"""swift-container-sharder: split large containers into shards, put small shards together."""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
from dataclasses import replace  # noqa: E402

from swift.compose import internal_client  # noqa: E402
from swift.container.sharding.settings import ContainerSharderSettings  # noqa: E402
from swift.container.sharding.task import NAME, ContainerSharder  # noqa: E402
from swift.runtime.service.daemonize import Daemon, DaemonParts, run_daemon  # noqa: E402


def _make(parts: DaemonParts) -> ContainerSharder:
    settings: ContainerSharderSettings = parts.settings
    if getattr(parts.args, "no_auto_shard", False):
        settings = replace(settings, auto_shard=False)
    client = internal_client(
        settings.internal_client_conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
    )
    return ContainerSharder(parts.context, parts.rings.container, settings, client, selection=parts.selection)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-auto-shard", action="store_true", help="split only what it is told to")


DAEMON = Daemon(
    NAME,
    "container",
    "Split large containers into shards, put small shards together.",
    ContainerSharderSettings,
    _make,
    add_arguments=_add_arguments,
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
