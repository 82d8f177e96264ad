"""Sends probes to nodes that may be unresponsive, so that no client waits for them (``cluster.health``).

It stands alone because it sends requests; the records that it changes do not.
"""

from __future__ import annotations

from swift import green
from swift.cluster.health import NodeHealth, Probe
from swift.cluster.transport import NodeRequest, TimedOut, Timeouts, Transport, TransportError
from swift.http import fields
from swift.telemetry.repeatederrors import RepeatedErrorLog


class Prober:
    """Sends HEAD requests in the background; any response makes the node responsive again."""

    def __init__(
        self, health: NodeHealth, transport: Transport, errors: RepeatedErrorLog, timeouts: Timeouts
    ):
        self._health = health
        self._transport = transport
        self._errors = errors
        self._timeouts = timeouts

    def send(self, probe: Probe) -> None:
        """Send a probe without waiting for the response, which is reported to the node's record."""
        green.spawn_detached(self._send, probe)

    def _send(self, probe: Probe) -> None:
        key = probe.node.key
        headers = {fields.BACKEND_STORAGE_POLICY_INDEX: probe.policy, "user-agent": "proxy-server"}
        try:
            self._transport.request(NodeRequest(probe.node, "HEAD", probe.path, headers, b"", self._timeouts))
        except TimedOut:
            # The next probe is due by now.
            self._errors.error(f"ERROR {key} is unresponsive; trying other nodes until it responds")
        except TransportError:
            self._health.failed(key, reached=False)
        else:
            self._health.responded(key)
