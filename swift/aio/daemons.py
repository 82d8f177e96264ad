"""All daemons of a node in one process: ``python -m swift.aio.daemons <daemon>=<conf file> ...``.

Most of the memory of a daemon is Python itself, and a cluster on one machine has dozens of them; here they
are green threads of one process with one event loop. Each has its own section, log name, recon file and pace,
as if it were alone. On real nodes every daemon is a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.platform.heap import limit_heaps
from swift.platform.privileges import drop_privileges
from swift.runtime.daemon import run_all_forever
from swift.runtime.priority import set_priority
from swift.runtime.service.daemonize import PreparedDaemon, find_daemon, prepare_daemon
from swift.runtime.stop import StopRequest


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM; return the exit code."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        prepared = [_prepare_from_argument(word) for word in (sys.argv[1:] if argv is None else argv)]
        # One process has one priority: the one that serves requests least.
        set_priority(max((item.priority for item in prepared), key=lambda priority: priority.nice_priority))
        for user in {item.user for item in prepared}:
            drop_privileges(user)
    except (SwiftError, OSError) as error:
        print(f"swift-aio daemons: {error}", file=sys.stderr)
        return 1
    os.umask(0o022)
    limit_heaps()
    stop = StopRequest()
    stop.on_signals()
    green.gather([partial(_run_daemon, item, stop) for item in prepared])
    return 0


def _prepare_from_argument(word: str) -> PreparedDaemon:
    name, _, path = word.partition("=")
    prepared = prepare_daemon(find_daemon(name), path, verbose=True)
    if prepared.forks:
        raise ConfigError(f"{name} is to fork workers ({path}), which it cannot do beside other daemons")
    return prepared


def _run_daemon(prepared: PreparedDaemon, stop: StopRequest) -> None:
    log = prepared.context.telemetry.log
    log.notice(f"Starting {os.getpid()}")
    run_all_forever(prepared.runners(stop), stop)
    log.notice(f"Exited {os.getpid()}")


if __name__ == "__main__":
    raise SystemExit(main())
