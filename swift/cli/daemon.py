"""Every daemon: ``python -m swift.cli.daemon object-auditor /etc/swift/object-server.conf once``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from swift.base.errors import ConfigError
from swift.runtime.service.daemonize import find_daemon, run_daemon


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon that the first word names with the other words; return the exit code."""
    name, *words = (sys.argv[1:] if argv is None else argv) or ("",)
    try:
        daemon = find_daemon(name)
    except ConfigError as error:
        print(f"swift.cli.daemon: {error}", file=sys.stderr)
        return 1
    return run_daemon(daemon, words)


if __name__ == "__main__":
    raise SystemExit(main())
