"""statsd over UDP: one metric a packet, never waiting, never failing a request (spec: proxy.md §17)."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Mapping

from swift.config.common import LogSettings

Labels = Mapping[str, str]
#: The text of ``name`` with labels, and what follows the value.
_Dialect = Callable[[str, str], tuple[str, str]]

#: ``statsd_label_mode`` → the separators of key and value, and of labels.
_SEPARATORS = {"librato": ("=", ","), "influxdb": ("=", ","), "graphite": ("=", ";"), "dogstatsd": (":", ",")}
_DIALECTS: dict[str, _Dialect] = {
    "librato": lambda name, labels: (f"{name}#{labels}", ""),
    "influxdb": lambda name, labels: (f"{name},{labels}", ""),
    "graphite": lambda name, labels: (f"{name};{labels}", ""),
    "dogstatsd": lambda name, labels: (name, f"|#{labels}"),
}


class Statsd:
    """Sends ``prefix.name:value|c`` and ``|ms`` lines; does nothing without a host.

    With a ``statsd_label_mode``, ``increment_labelled`` and ``timing_labelled`` send metrics with labels,
    among them ``user_labels`` (``statsd_user_label_NAME`` of the configuration, as ``user_NAME``).
    """

    def __init__(self, settings: LogSettings, tail: str = "", user_labels: Labels | None = None):
        parts = [p for p in (settings.log_statsd_metric_prefix, tail) if p]
        self._prefix = ".".join(parts) + "." if parts else ""
        self._rate = settings.log_statsd_default_sample_rate
        self._factor = settings.log_statsd_sample_rate_factor
        self._address = (settings.log_statsd_host, settings.log_statsd_port)
        #: True if metrics without labels are sent.
        self.enabled = bool(settings.log_statsd_host) and settings.statsd_emit_legacy
        self._mode = settings.statsd_label_mode
        #: True if metrics with labels are sent.
        self.labels_enabled = bool(settings.log_statsd_host) and self._mode != "disabled"
        self.user_labels = dict(user_labels or {})
        self._socket: socket.socket | None = None

    def increment(self, name: str, amount: int = 1) -> None:
        """Count ``amount``."""
        if self.enabled:
            self._send(f"{self._prefix}{name}:{amount}|c")

    def timing(self, name: str, seconds: float) -> None:
        """Record a duration given in seconds, sent in milliseconds."""
        if self.enabled:
            self._send(f"{self._prefix}{name}:{seconds * 1000:.6g}|ms")

    def increment_labelled(self, name: str, labels: Labels, amount: int = 1) -> None:
        """Count ``amount`` under labels. The name has no prefix."""
        if self.labels_enabled:
            self._send_labelled(name, f":{amount}|c", labels)

    def timing_labelled(self, name: str, labels: Labels, seconds: float) -> None:
        """Record a duration under labels. The name has no prefix."""
        if self.labels_enabled:
            self._send_labelled(name, f":{seconds * 1000:.6g}|ms", labels)

    def _send_labelled(self, name: str, value: str, labels: Labels) -> None:
        pair, between = _SEPARATORS[self._mode]
        every = {**labels, **self.user_labels}
        text = between.join(f"{key}{pair}{_label(every[key])}" for key in sorted(every))
        head, tail = _DIALECTS[self._mode](name, text)
        self._send(f"{head}{value}", tail)

    def _send(self, line: str, tail: str = "") -> None:
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
            self._socket.sendto((line + tail).encode("utf-8", "replace"), self._address)
        except OSError:
            # A metric that cannot be sent is lost; the request it describes must not notice.
            return


#: Separators of metrics, labels and values in any dialect; a client's name must not bring them in.
_UNSAFE = str.maketrans(dict.fromkeys("\r\n|#;,:=@", "_"))


def _label(value: str) -> str:
    return value.translate(_UNSAFE)
