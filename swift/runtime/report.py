"""Reports of a daemon at work: counts, progress, the metrics page.

``Counters`` feed the log, statsd and Prometheus, so that the three never disagree. A daemon
has no port; its Prometheus page is the file ``<recon_cache_path>/<daemon>.prom``, in the format that
node_exporter collects from text files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from swift.base.clock import Clock
from swift.telemetry.metrics import CounterMetric, GaugeMetric
from swift.telemetry.recon import replace_text
from swift.telemetry.telemetry import Telemetry

_EVENTS = CounterMetric("swift_daemon_events_total", "Events of daemons, by kind.", ("daemon", "event"))
_PASS_SECONDS = GaugeMetric("swift_daemon_pass_seconds", "Duration of the last pass.", ("daemon",))
_PASS_END = GaugeMetric("swift_daemon_pass_end_seconds", "Unix time of the last pass's end.", ("daemon",))
_PASSES = CounterMetric("swift_daemon_passes_total", "Passes completed.", ("daemon",))
_UNITS = CounterMetric("swift_daemon_units_total", "Units of work done.", ("daemon",))

#: Seconds between changes of the line on a terminal.
TERMINAL_S = 0.2


class Counters:
    """Event counters of one share of a pass, under the peer's metric names (cli-and-config.md §13)."""

    def __init__(self, telemetry: Telemetry, daemon: str, counts: Mapping[str, int] | None = None):
        """Start with ``counts`` from before a restart, which only this process reports."""
        self._telemetry = telemetry
        self._daemon = daemon
        self.counts: dict[str, int] = dict(counts or {})
        #: Grows with every event and duration; a share without activity has stalled.
        self.activity = 0

    def add(self, event: str, amount: int = 1) -> None:
        """Count an event here, in statsd and for Prometheus."""
        self.activity += 1
        self.counts[event] = self.counts.get(event, 0) + amount
        self._telemetry.statsd.increment(event, amount)
        count_event(self._telemetry, self._daemon, event, amount)

    def timing(self, name: str, seconds: float) -> None:
        """Record a duration with statsd."""
        self.activity += 1
        self._telemetry.statsd.timing(name, seconds)

    def __str__(self) -> str:
        return ", ".join(f"{count} {event}" for event, count in sorted(self.counts.items()))


def count_event(telemetry: Telemetry, daemon: str, event: str, amount: int) -> None:
    """Count for Prometheus only."""
    _EVENTS.of(telemetry.metrics, daemon=daemon, event=event).inc(amount)


class Progress:
    """Says how far a share is: a log line now and then, and one line on a terminal when there is one."""

    def __init__(
        self,
        telemetry: Telemetry,
        clock: Clock,
        *,
        title: str,
        interval_s: float,
        terminal: TextIO | None = None,
        units: int = 0,
        bytes_read: int = 0,
        seconds: float = 0.0,
    ):
        """``units``, ``bytes_read`` and ``seconds`` were done before a restart."""
        self._log = telemetry.log
        self._clock = clock
        self._title = title
        self._interval_s = interval_s
        self._terminal = terminal
        self._next_line_s = clock.monotonic()
        self._next_log_s = self._next_line_s + interval_s
        self._started_s = self._next_line_s - seconds
        self.units = units
        self.bytes = bytes_read
        #: Units that were found, done or not.
        self.planned = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds of work on the share."""
        return self._clock.monotonic() - self._started_s

    def unit_done(self, counters: Counters) -> None:
        """Count a unit, and report when a report is due."""
        self.units += 1
        now = self._clock.monotonic()
        if now >= self._next_log_s:
            self._next_log_s = now + self._interval_s
            self._log.info(self.summary_line(counters))
        if self._terminal is not None and now >= self._next_line_s:
            self._next_line_s = now + TERMINAL_S
            self._show(self.summary_line(counters))

    def end(self, counters: Counters) -> None:
        """Log the final line of this share; idle shares get none."""
        if self._terminal is not None:
            self._show("")
        if self.units or counters.counts:
            self._log.info(f"{self.summary_line(counters)}; completed")

    def summary_line(self, counters: Counters) -> str:
        """Return e.g. ``sda: 120 done in 2.4s, 50.0/s; 118 successes, 2 failures``."""
        elapsed_s = self.elapsed_s
        rate = self.units / elapsed_s if elapsed_s > 0 else 0.0
        head = f"{self._title}: {self.units} done in {elapsed_s:.1f}s, {rate:.1f}/s"
        if self.bytes and elapsed_s > 0:
            head += f", {self.bytes / elapsed_s / 1e6:.1f} MB/s"
        return f"{head}; {counters}" if counters.counts else head

    def _show(self, text: str) -> None:
        assert self._terminal is not None
        # The cursor goes back to the margin, so that a log line replaces this one.
        self._terminal.write(f"\r\x1b[K{text[:110]}\r")
        self._terminal.flush()


def stream_if_terminal(stream: TextIO | None = None) -> TextIO | None:
    """Return the stream (standard error) when it is a terminal, else None."""
    stream = stream or sys.stderr
    return stream if stream.isatty() else None


class PrometheusFile:
    """The page of a process without a port."""

    def __init__(self, telemetry: Telemetry, directory: str, daemon: str):
        self._telemetry = telemetry
        self._daemon = daemon
        self.path = os.path.join(directory, f"{daemon}.prom")

    def record_pass(self, seconds: float, ended_s: float, units: int) -> None:
        """Record a completed pass; ``ended_s`` is Unix time."""
        metrics, daemon = self._telemetry.metrics, self._daemon
        _PASS_SECONDS.of(metrics, daemon=daemon).set(seconds)
        _PASS_END.of(metrics, daemon=daemon).set(ended_s)
        _PASSES.of(metrics, daemon=daemon).inc()
        _UNITS.of(metrics, daemon=daemon).inc(units)

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Take over what another process counted."""
        for event, amount in counts.items():
            count_event(self._telemetry, self._daemon, event, amount)

    def write(self) -> None:
        """Write the page; a failure is logged and otherwise ignored."""
        try:
            # The collector reads all files of a node at once: no two may have the same sample.
            replace_text(self.path, self._telemetry.metrics.render({"daemon": self._daemon}))
        except OSError as error:
            self._telemetry.log.warning(f"cannot write metrics to {self.path}: {error.strerror}")
