"""Nodes that gave a daemon no answer are left alone for a while: each further question may cost a timeout.

For daemons that ask nodes one thing after another in passes; servers, whose requests come from clients, have
``cluster.silence``.
"""

from __future__ import annotations

from swift.base.clock import Clock
from swift.ring.device import Device

#: How long a node that gave no answer is not asked again, seconds.
LEFT_ALONE_S = 60.0


class Absent:
    """Remembers, by address on the replication network, who gave no answer."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._until: dict[tuple[str, int], float] = {}

    def note(self, node: Device) -> None:
        """It gave no answer."""
        self._until[node.replication_ip, node.replication_port] = self._clock.monotonic() + LEFT_ALONE_S

    def has(self, node: Device) -> bool:
        """Whether it gave none a moment ago."""
        until = self._until.get((node.replication_ip, node.replication_port))
        return until is not None and until > self._clock.monotonic()

    def clear(self) -> None:
        """Ask everybody again."""
        self._until.clear()

    def __repr__(self) -> str:
        return f"<Absent {', '.join(f'{ip}:{port}' for ip, port in self._until) or 'nobody'}>"
