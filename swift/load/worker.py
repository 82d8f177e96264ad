"""A process that makes load: jobs come as lines of JSON on standard input, results go out on standard output.

Every job has the number of its run, and so has all that is said of it: ``{"run": 3, "done": ...}``.
SIGTERM ends the phase that runs, with what was measured until then; the end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from swift.base.errors import SwiftError
from swift.load.measure import PhaseResult
from swift.load.share import LoadJob, LoadShare


def summary(result: PhaseResult) -> dict[str, object]:
    """Return the progress of a share: per operation count, bytes, failures, and the latencies of 50 and 99
    %, in ms.
    """
    return {
        name: [one.count, one.bytes, one.failed, one.latency_ms(50), one.latency_ms(99)]
        for name, one in result.operations.items()
    }


def _write_message(**said: object) -> None:
    try:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The load was cancelled.
        os._exit(1)


def _progress_writer(run: int) -> Callable[[PhaseResult], None]:
    return lambda so_far: _write_message(run=run, progress=summary(so_far))


def main() -> int:
    """Run jobs until there are no more."""
    # A terminal's Ctrl-C is for the process that gives the jobs, which says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: list[LoadShare] = []

    def end_phase(_number: int, _frame: FrameType | None) -> None:
        for share in running:
            share.stop()

    signal.signal(signal.SIGTERM, end_phase)
    _write_message(ready=os.getpid())
    for line in sys.stdin:
        given = json.loads(line)
        run = given["run"]
        try:
            running[:] = [LoadShare(LoadJob.from_json(given["job"]))]
            result = running[0].run(_progress_writer(run))
        except SwiftError as error:
            _write_message(run=run, failed=str(error))
            continue
        _write_message(run=run, done=result.to_json())
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads of TLS connections may still wait for servers; nothing is left to be done.
    os._exit(code)
