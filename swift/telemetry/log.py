"""Log lines: syslog or console, one line an event, with the transaction id (spec: cli-and-config.md §1.2).

Services get a ``Log`` and call it with finished sentences. The access log does not pass here
(``telemetry.accesslog``), so this is never on the hot path.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import traceback

from swift.config.common import LogSettings

NOTICE = 25
logging.addLevelName(NOTICE, "NOTICE")


class _OneLine(logging.Formatter):
    """``name: message`` with line breaks as ``#012`` and over-long lines cut in the middle."""

    def __init__(self, name: str, max_length: int):
        super().__init__()
        self._name = name
        self._max = max_length

    def format(self, record: logging.LogRecord) -> str:
        """The finished line."""
        text = record.getMessage().replace("\n", "#012")
        if self._max and len(text) > self._max:
            half = (self._max - 5) // 2
            text = text[: self._max] if self._max < 7 else f"{text[:half]} ... {text[-half:]}"
        return f"{self._name}: {text}"


class _SysLogHandler(logging.handlers.SysLogHandler):
    """Adds the NOTICE level to the priority names."""

    priority_map = {**logging.handlers.SysLogHandler.priority_map, "NOTICE": "notice"}  # noqa: RUF012


class Log:
    """Sentences about one service, with optional transaction and client."""

    def __init__(self, logger: logging.Logger):
        self._logger = logger

    @property
    def shows_debug(self) -> bool:
        """Whether lines for developers are written at all."""
        return self._logger.isEnabledFor(logging.DEBUG)

    def debug(self, message: str, *, txid: str | None = None) -> None:
        """For developers."""
        self._emit(logging.DEBUG, message, txid)

    def info(self, message: str, *, txid: str | None = None) -> None:
        """Normal events."""
        self._emit(logging.INFO, message, txid)

    def notice(self, message: str, *, txid: str | None = None) -> None:
        """Starts, stops and other rare normal events."""
        self._emit(NOTICE, message, txid)

    def warning(self, message: str, *, txid: str | None = None) -> None:
        """Something an operator should look at some day."""
        self._emit(logging.WARNING, message, txid)

    def error(self, message: str, *, txid: str | None = None) -> None:
        """Something an operator should look at now."""
        self._emit(logging.ERROR, message, txid)

    def exception(self, message: str, error: BaseException, *, txid: str | None = None) -> None:
        """An error that nobody foresaw, with its traceback on the same line."""
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self._emit(logging.ERROR, f"{message}: {trace.rstrip()}", txid)

    def is_enabled(self, level: int) -> bool:
        """Whether lines of this level are written; ask before building an expensive one."""
        return self._logger.isEnabledFor(level)

    def raw(self, line: str) -> None:
        """An access line at INFO, already complete."""
        self._logger.info("%s", line)

    def _emit(self, level: int, message: str, txid: str | None) -> None:
        if not self._logger.isEnabledFor(level):
            return
        if txid and txid not in message:
            message = f"{message} (txn: {txid})"
        self._logger.log(level, "%s", message)


def _syslog(settings: LogSettings) -> logging.Handler:
    facility = settings.log_facility.upper().removeprefix("LOG_").lower()
    number = logging.handlers.SysLogHandler.facility_names.get(facility, 16)
    address: str | tuple[str, int]
    if settings.log_udp_host:
        address = (settings.log_udp_host, settings.log_udp_port)
    elif os.path.exists(settings.log_address):
        address = settings.log_address
    else:
        address = ("localhost", 514)
    handler = _SysLogHandler(address=address, facility=number)
    handler.append_nul = False
    return handler


def make_log(settings: LogSettings, *, console: bool = False, name: str | None = None) -> Log:
    """A ``Log`` to syslog as the settings say; with ``console`` to standard error instead."""
    label = name or settings.log_name
    logger = logging.Logger(label)
    level = settings.log_level.upper()
    logger.setLevel(NOTICE if level == "NOTICE" else getattr(logging, level, logging.INFO))
    handler: logging.Handler = logging.StreamHandler(sys.stderr) if console else _syslog(settings)
    handler.setFormatter(_OneLine(label, settings.log_max_line_length))
    logger.addHandler(handler)
    return Log(logger)


def silent_log() -> Log:
    """A ``Log`` that drops everything, for tests and embedded use."""
    logger = logging.Logger("silent")
    logger.addHandler(logging.NullHandler())
    logger.setLevel(logging.CRITICAL + 1)
    return Log(logger)
