"""swift-account-reaper: remove what deleted accounts still hold."""

from __future__ import annotations

from swift import green

green.patch()

from swift.account.reaper import NAME, AccountReaper, AccountReaperSettings  # noqa: E402
from swift.runtime.service.daemonize import Daemon, run_daemon  # noqa: E402

DAEMON = Daemon(
    NAME,
    "account",
    "Remove what deleted accounts still hold.",
    AccountReaperSettings,
    lambda parts: AccountReaper(parts.context, parts.rings, parts.settings, selection=parts.selection),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
