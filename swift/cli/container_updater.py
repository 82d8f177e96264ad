"""swift-container-updater: tell accounts how many objects and bytes their containers hold."""

from __future__ import annotations

from swift import green

green.patch()

from swift.container.updater import NAME, ContainerUpdater, ContainerUpdaterSettings  # noqa: E402
from swift.runtime.service.daemonize import Daemon, run_daemon  # noqa: E402

DAEMON = Daemon(
    NAME,
    "container",
    "Tell accounts how many objects and bytes their containers hold.",
    ContainerUpdaterSettings,
    lambda parts: ContainerUpdater(
        parts.context, parts.rings.account, parts.settings, selection=parts.selection
    ),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
