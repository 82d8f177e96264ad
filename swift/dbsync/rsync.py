"""Bringing a database file to a node with rsync, as the peer expects it (spec: account-container.md §13)."""

from __future__ import annotations

import math
import string

from swift.base.errors import SwiftError
from swift.ring.device import RECORD_FIELDS, Node
from swift.runtime import childprocess

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
    """Return the rsync module of a node: keys are those of its ring record, IPv6 addresses in brackets."""
    values = {name: str(value) for name, value in node.record().items()}
    for name in ("ip", "replication_ip"):
        if ":" in values[name]:
            values[name] = f"[{values[name]}]"
    return template.format(**values)


def command(
    source: str, target: str, *, conn_timeout_s: float, io_timeout_s: float, compress: bool
) -> list[str]:
    """Return the arguments of rsync, in the peer's order."""
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
    """Run rsync without holding up other green threads and return the beginning of its output.

    Raises ``RsyncFailed``.
    """
    try:
        done = childprocess.run(args, timeout_s=timeout_s + _GRACE_S)
    except OSError as error:
        raise RsyncFailed(
            f"rsync cannot be run ({error.strerror}); install it, or let {args[-1]} take uploads"
        )
    except childprocess.ProcessTimeout as error:
        raise RsyncFailed(str(error))
    if done.status:
        words = done.output[:4096].split()
        raise RsyncFailed(f"rsync to {args[-1]} failed with exit status {done.status}: {' '.join(words)}")
    return done.output
