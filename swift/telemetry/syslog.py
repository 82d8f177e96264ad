"""Syslog lines without ``logging``'s toll: each is one datagram, sent at once.

``logging`` asks for every line where it was written, in which thread and under which lock, and has the name
of a UDP address looked up: some sixty calls. ``Syslog`` sends the same bytes to the same address by itself.
What cannot be sent that way (the queue is full, the address is no datagram socket) is left to the ordinary
handler, which waits as long as it takes and lets other green threads run.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import socket
import sys
import time
from typing import Any

from swift.config.common import LogSettings

NOTICE = 25
logging.addLevelName(NOTICE, "NOTICE")

#: Lifetime of a resolved address of a UDP host, seconds.
LOOKUP_S = 60.0


class LineFormatter(logging.Formatter):
    """``name: message`` with line breaks as ``#012`` and over-long lines cut in the middle."""

    def __init__(self, name: str, max_length: int):
        super().__init__()
        self._name = name
        self._max = max_length

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        return self.line(record.getMessage())

    def line(self, message: str) -> str:
        """Return the finished line of a message."""
        text = message.replace("\n", "#012")
        if self._max and len(text) > self._max:
            half = (self._max - 5) // 2
            text = text[: self._max] if self._max < 7 else f"{text[:half]} ... {text[-half:]}"
        return f"{self._name}: {text}"


class SysLogHandler(logging.handlers.SysLogHandler):
    """The ordinary handler: it waits, reconnects and knows stream sockets too."""

    priority_map = {**logging.handlers.SysLogHandler.priority_map, "NOTICE": "notice"}  # noqa: RUF012
    append_nul = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Drop lines that syslog does not accept without a message; raise other errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class Syslog:
    """Sends lines to where ``handler`` would send them, formatted by ``formatter``."""

    def __init__(self, handler: SysLogHandler, formatter: LineFormatter):
        self._line = formatter.line
        self._handler = handler.address
        self._priority_prefixes = {
            level: f"<{handler.encodePriority(handler.facility, handler.mapPriority(name))}>"
            for level, name in ((n, logging.getLevelName(n)) for n in (10, 20, NOTICE, 30, 40))
        }
        self._socket: socket.socket | None = None
        #: The resolved address, and the time at which it expires.
        self._address: Any = None
        self._address_expires_s = 0.0

    def send(self, level: int, message: str) -> bool:
        """Send a line; False when it must go the ordinary way."""
        data = (self._priority_prefixes[level] + self._line(message)).encode("utf-8", "backslashreplace")
        try:
            if self._socket is None or time.monotonic() >= self._address_expires_s:
                self._look_up()
            self._socket.sendto(data, self._address)  # type: ignore[union-attr]
        except (ConnectionRefusedError, FileNotFoundError):
            # No process listens on the socket; a retry would fail too.
            return True
        except OSError:
            return False
        return True

    def _look_up(self) -> None:
        """Make a socket for the address; raises OSError when its name is unknown."""
        if isinstance(self._handler, str):
            family, self._address, self._address_expires_s = socket.AF_UNIX, self._handler, float("inf")
        else:
            host, port = self._handler
            family, _type, _protocol, _name, self._address = socket.getaddrinfo(
                host, port, type=socket.SOCK_DGRAM
            )[0]
            self._address_expires_s = time.monotonic() + LOOKUP_S
        if self._socket is not None:
            self._socket.close()
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)


def syslog_handler(settings: LogSettings) -> SysLogHandler:
    """Return the configured handler; local UDP when their socket is missing."""
    facility = settings.log_facility.upper().removeprefix("LOG_").lower()
    number = logging.handlers.SysLogHandler.facility_names.get(facility, 16)
    address: str | tuple[str, int]
    if settings.log_udp_host:
        address = (settings.log_udp_host, settings.log_udp_port)
    elif os.path.exists(settings.log_address):
        address = settings.log_address
    else:
        # A number: containers may have no name service, not even for localhost.
        address = ("127.0.0.1", 514)
    return SysLogHandler(address=address, facility=number)
