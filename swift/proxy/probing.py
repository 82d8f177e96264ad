"""Asking a node that may be silent by ourselves, so that no client waits for it (``cluster.silence``)."""

from __future__ import annotations

from swift import green
from swift.cluster.health import ErrorLimiter
from swift.cluster.silence import Question
from swift.cluster.transport import TimedOut, Transport, TransportError
from swift.http import fields
from swift.ring.device import Device
from swift.telemetry.repeated import RepeatedErrors


class Prober:
    """Sends HEAD requests; whatever comes back speaks for the node."""

    def __init__(
        self,
        limiter: ErrorLimiter,
        transport: Transport,
        errors: RepeatedErrors,
        *,
        connect_timeout_s: float,
        timeout_s: float,
    ):
        self._limiter = limiter
        self._transport = transport
        self._errors = errors
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s

    def begin(self, node: Device, question: Question) -> None:
        """Ask in the background; the limiter hears what came of it."""
        green.spawn_detached(self._ask, node, question)

    def _ask(self, node: Device, question: Question) -> None:
        headers = {fields.BACKEND_STORAGE_POLICY_INDEX: question.policy, "user-agent": "proxy-server"}
        try:
            self._transport.request(
                node.ip,
                node.port,
                "HEAD",
                question.target,
                headers,
                connect_timeout_s=self._connect_timeout_s,
                timeout_s=self._timeout_s,
            )
        except TimedOut:
            # The next probe is due by now.
            self._errors.error(
                f"ERROR {node.key} answers nobody; others are asked in its place until it does"
            )
        except TransportError:
            self._limiter.failed(node)
        else:
            self._limiter.heard(node)
