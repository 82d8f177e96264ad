"""Asking a node that may be silent by ourselves, so that no client waits for it (``cluster.silence``)."""

from __future__ import annotations

from swift import green
from swift.cluster.health import ErrorLimiter
from swift.cluster.silence import Question
from swift.cluster.transport import (
    Destination,
    NodeRequest,
    TimedOut,
    Timeouts,
    Transport,
    TransportError,
)
from swift.http import fields
from swift.telemetry.repeated import RepeatedErrors


class Prober:
    """Sends HEAD requests; whatever comes back speaks for the node."""

    def __init__(
        self,
        limiter: ErrorLimiter,
        transport: Transport,
        errors: RepeatedErrors,
        timeouts: Timeouts,
    ):
        self._limiter = limiter
        self._transport = transport
        self._errors = errors
        self._timeouts = timeouts

    def begin(self, node: Destination, question: Question) -> None:
        """Ask in the background; the limiter hears what came of it."""
        green.spawn_detached(self._ask, node, question)

    def _ask(self, node: Destination, question: Question) -> None:
        headers = {fields.BACKEND_STORAGE_POLICY_INDEX: question.policy, "user-agent": "proxy-server"}
        try:
            request = NodeRequest(node, "HEAD", question.target, headers, b"", self._timeouts)
            self._transport.request(request)
        except TimedOut:
            # The next probe is due by now.
            self._errors.error(
                f"ERROR {node.key} answers nobody; others are asked in its place until it does"
            )
        except TransportError:
            self._limiter.failed(node)
        else:
            self._limiter.heard(node)
