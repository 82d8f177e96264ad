"""Reports the state of a service to systemd and to ``swift-reload`` (sd_notify(3); spec: cli-and-config.md
§8).

Besides ``NOTIFY_SOCKET`` every message goes to an abstract socket that is named by the pid: there
``swift-reload`` listens during a reload; otherwise there is no listener.
"""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"

#: Before the reason why a service does not reload. systemd leaves names with ``X_`` to others.
RELOAD_REFUSED = "X_RELOAD_REFUSED="


def refusal_message(reason: str) -> str:
    """Return the message of a service that refuses a reload for ``reason``, in one line."""
    return RELOAD_REFUSED + reason.replace("\n", " ")


def reload_address(pid: int) -> str:
    """Return the address at which the clients of a process's reload listen."""
    return f"\0swift-notifications\0{pid}"


def notify_systemd(message: str) -> None:
    """Send e.g. ``READY=1`` to systemd and other listeners, if there are any."""
    addresses = [reload_address(os.getpid())]
    if address := os.environ.get("NOTIFY_SOCKET", ""):
        addresses.append("\0" + address[1:] if address.startswith("@") else address)
    for each in addresses:
        # A missing supervisor is no reason not to serve.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(message.encode(), each)
