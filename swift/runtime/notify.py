"""Telling systemd how a service is doing (sd_notify(3); spec: cli-and-config.md §8)."""

from __future__ import annotations

import os
import socket


def notify_systemd(message: str) -> None:
    """Send e.g. ``READY=1`` to ``NOTIFY_SOCKET``; without one, nothing happens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(message.encode(), address)
    except OSError:
        # A missing supervisor is no reason not to serve.
        return
