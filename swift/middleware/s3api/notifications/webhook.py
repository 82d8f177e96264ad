"""Telling a webhook of an event: one POST on a connection of its own; redirects are not followed."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from urllib.parse import SplitResult

from swift.base.errors import SwiftError

#: What of an answer is read before the connection is closed.
_ANSWER_BYTES = 4096

#: Tells a URL an event; raises ``NotTaken``.
Tell = Callable[[SplitResult, bytes], None]


class NotTaken(SwiftError):
    """A webhook did not take an event."""


class Webhooks:
    """Asks webhooks."""

    def __init__(self, timeout_s: float):
        self._timeout_s = timeout_s

    def __call__(self, url: SplitResult, body: bytes) -> None:
        """Tell ``url`` an event; raises ``NotTaken``, which names neither user nor password of the URL."""
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        where = f"{url.scheme}://{url.hostname}{url.path}"
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection = kind(url.hostname or "", url.port, timeout=self._timeout_s)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read(_ANSWER_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotTaken(f"{where}: {error!r}")
        finally:
            connection.close()
        if answer.status // 100 != 2:
            raise NotTaken(f"{where} answered {answer.status}")
