"""Bringing a database file to a node with rsync, as the peer expects it (spec: account-container.md §13)."""

from __future__ import annotations

import math
import os
import string
import subprocess
import time

from swift import green
from swift.base.errors import SwiftError
from swift.ring.device import RECORD_FIELDS, Node

#: What is kept of the words of one run.
OUTPUT_BYTES_MAX = 1 << 20
_POLL_FIRST_S, _POLL_MAX_S = 0.005, 0.1
#: An rsync that says nothing is ended by its own timeout; this is for one that hangs.
_GRACE_S = 30.0


class RsyncFailed(SwiftError):
    """rsync did not bring the file; the sentence says why."""


def check_module(template: str) -> None:
    """Raise ValueError unless every key of a module template is one of a ring device."""
    try:
        keys = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ValueError(f"is no template: {error}")
    unknown = [key for key in keys if key not in RECORD_FIELDS]
    if unknown:
        raise ValueError(f"names {unknown[0]!r}, which ring devices do not have")


def module_of(template: str, node: Node) -> str:
    """The rsync module of a node: keys are those of its ring record, IPv6 addresses in brackets."""
    values = {name: str(value) for name, value in node.record().items()}
    for name in ("ip", "replication_ip"):
        if ":" in values[name]:
            values[name] = f"[{values[name]}]"
    return template.format(**values)


def command(
    source: str, target: str, *, conn_timeout_s: float, io_timeout_s: float, compress: bool
) -> list[str]:
    """The arguments of rsync, in the peer's order."""
    return [
        "rsync",
        "--quiet",
        "--no-motd",
        f"--timeout={math.ceil(io_timeout_s)}",
        f"--contimeout={math.ceil(conn_timeout_s)}",
        "--whole-file",
        *(("--compress",) if compress else ()),
        source,
        target,
    ]


def run(args: list[str], timeout_s: float) -> str:
    """Run rsync without holding up other green threads; the beginning of what it said.

    Raises ``RsyncFailed``.
    """
    output = os.memfd_create("rsync", os.MFD_CLOEXEC)
    try:
        try:
            process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except OSError as error:
            raise RsyncFailed(
                f"rsync cannot be run ({error.strerror}); install it, or let {args[-1]} take uploads"
            )
        code = _await(process, timeout_s + _GRACE_S)
        if code:
            words = os.pread(output, 4096, 0).decode("utf-8", "replace").split()
            raise RsyncFailed(f"rsync to {args[-1]} ended with {code}: {' '.join(words)}")
        return os.pread(output, OUTPUT_BYTES_MAX, 0).decode("utf-8", "replace")
    finally:
        os.close(output)


def _await(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    rest_s = _POLL_FIRST_S
    try:
        while (code := process.poll()) is None:
            if time.monotonic() >= deadline:
                raise RsyncFailed(f"rsync was ended after {timeout_s:g} s")
            green.sleep(rest_s)
            rest_s = min(2 * rest_s, _POLL_MAX_S)
        return code
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
