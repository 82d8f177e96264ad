"""swift-object-updater: deliver the container updates that object servers could not deliver at once."""

from __future__ import annotations

from swift import green

green.patch()

from swift.obj.settings import ObjectSettings  # noqa: E402
from swift.obj.stores import make_stores  # noqa: E402
from swift.obj.updater.settings import ObjectUpdaterSettings  # noqa: E402
from swift.obj.updater.task import NAME, ObjectUpdater  # noqa: E402
from swift.runtime.service.daemonize import Daemon, run_daemon  # noqa: E402

DAEMON = Daemon(
    NAME,
    "object",
    "Deliver the container updates that object servers could not deliver at once.",
    ObjectUpdaterSettings,
    lambda parts: ObjectUpdater(
        parts.context,
        parts.rings.container,
        parts.settings,
        make_stores(parts.context, ObjectSettings.parse(parts.conf), parts.storage),
        selection=parts.selection,
    ),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
