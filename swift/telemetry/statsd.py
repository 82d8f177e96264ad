"""statsd over UDP: one metric a packet, never waiting, never failing a request (spec: proxy.md §17)."""

from __future__ import annotations

import random
import socket

from swift.config.common import LogSettings


class Statsd:
    """Sends ``prefix.name:value|c`` and ``|ms`` lines; does nothing without a host."""

    def __init__(self, settings: LogSettings, tail: str = ""):
        parts = [p for p in (settings.log_statsd_metric_prefix, tail) if p]
        self._prefix = ".".join(parts) + "." if parts else ""
        self._rate = settings.log_statsd_default_sample_rate
        self._factor = settings.log_statsd_sample_rate_factor
        self._address = (settings.log_statsd_host, settings.log_statsd_port)
        self.enabled = bool(settings.log_statsd_host)
        self._socket: socket.socket | None = None

    def increment(self, name: str, amount: int = 1) -> None:
        """Count ``amount``."""
        if self.enabled:
            self._send(f"{name}:{amount}|c")

    def timing(self, name: str, seconds: float) -> None:
        """Record a duration given in seconds, sent in milliseconds."""
        if self.enabled:
            self._send(f"{name}:{seconds * 1000:.6g}|ms")

    def _send(self, line: str) -> None:
        rate = self._rate * self._factor
        if rate < 1:
            if random.random() >= rate:
                return
            line = f"{line}|@{rate:g}"
        try:
            if self._socket is None:
                family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
                self._socket = socket.socket(family, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto((self._prefix + line).encode("utf-8", "replace"), self._address)
        except OSError:
            # A metric that cannot be sent is lost; the request it describes must not notice.
            return
