"""Events of servers, which statsd counts or times; each is a constant of the module where it happens.

``doc/reference/metrics.md`` is made from the declarations. The names are the peer's where it has the event
(cli-and-config.md §13, proxy.md §17); events of daemons are in ``runtime/events.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.telemetry.statsd import Statsd


@dataclass(frozen=True)
class Event:
    """An event: its name in statsd below the server's prefix, and its meaning.

    Words in braces are filled by the call: ``Event("{kind}.handoff_count", …).count(statsd, kind="object")``.
    """

    name: str
    about: str

    def count(self, statsd: Statsd, amount: int = 1, **values: object) -> None:
        """Count the event ``amount`` times."""
        if statsd.enabled:
            statsd.increment(self.name.format_map(values), amount)

    def time(self, statsd: Statsd, seconds: float, **values: object) -> None:
        """Record the duration of the event."""
        if statsd.enabled:
            statsd.timing(self.name.format_map(values), seconds)


@dataclass(frozen=True)
class LabelledEvent:
    """An event that statsd gets with labels (``statsd_label_mode``): its name, its meaning, its labels."""

    name: str
    about: str
    labels: tuple[str, ...]

    def count(self, statsd: Statsd, labels: dict[str, str], amount: int) -> None:
        """Count ``amount`` under labels."""
        statsd.increment_labelled(self.name, labels, amount)

    def time(self, statsd: Statsd, labels: dict[str, str], seconds: float) -> None:
        """Record a duration under labels."""
        statsd.timing_labelled(self.name, labels, seconds)
