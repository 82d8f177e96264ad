"""Runs a program to its end without holding up the event loop, with its output bounded and a time limit.

The program writes into an anonymous file instead of a pipe, so it never waits for this process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from swift import green
from swift.base.errors import SwiftError

#: Bytes that are kept of the output of one run.
OUTPUT_BYTES_MAX = 1 << 20
_POLL_FIRST_S, _POLL_MAX_S = 0.005, 0.1


class ProcessTimeout(SwiftError):
    """The program exceeded its time limit and was killed."""


@dataclass(frozen=True)
class Completed:
    """The exit status of a program and the beginning of its standard output and error."""

    status: int
    output: str


def run(args: Sequence[str], *, timeout_s: float) -> Completed:
    """Run a program and return its status and output.

    Raises ``OSError`` when it cannot be started, ``ProcessTimeout`` when it was killed.
    """
    output = os.memfd_create("output", os.MFD_CLOEXEC)
    try:
        process = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        status = _wait_for_exit(process, timeout_s, args[0])
        return Completed(status, os.pread(output, OUTPUT_BYTES_MAX, 0).decode("utf-8", "replace"))
    finally:
        os.close(output)


def _wait_for_exit(process: subprocess.Popen[bytes], timeout_s: float, program: str) -> int:
    deadline = time.monotonic() + timeout_s
    rest_s = _POLL_FIRST_S
    try:
        while (status := process.poll()) is None:
            if time.monotonic() >= deadline:
                raise ProcessTimeout(f"{program} was killed after {timeout_s:g} s")
            green.pause(rest_s)
            rest_s = min(2 * rest_s, _POLL_MAX_S)
        return status
    finally:
        if process.poll() is None:
            # Its own children as well.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
