"""Telling a webhook of an event: one POST on a connection of its own; redirects are not followed."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from urllib.parse import SplitResult

from swift.base.errors import SwiftError
from swift.cluster.outbound import Outbound, OutboundRefused, Trust

#: What of an answer is read before the connection is closed.
_ANSWER_BYTES = 4096

#: Tells a URL an event; raises ``NotTaken``.
Tell = Callable[[SplitResult, bytes], None]


class NotTaken(SwiftError):
    """A webhook did not take an event."""


class Webhooks:
    """Asks webhooks."""

    def __init__(self, timeout_s: float, outbound: Outbound | None = None):
        self._timeout_s = timeout_s
        self._outbound = outbound or Outbound()

    def __call__(self, url: SplitResult, body: bytes) -> None:
        """Tell ``url`` an event; raises ``NotTaken``, which names neither user nor password of the URL."""
        where = f"{url.scheme}://{url.hostname}{url.path}"
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            connection = self._outbound.connection(
                url.scheme, url.hostname or "", url.port, Trust.OPERATOR, timeout_s=self._timeout_s
            )
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read(_ANSWER_BYTES)
            finally:
                connection.close()
        except (OutboundRefused, OSError, http.client.HTTPException, ValueError) as error:
            raise NotTaken(f"{where}: {error!r}")
        if answer.status // 100 != 2:
            raise NotTaken(f"{where} answered {answer.status}")
