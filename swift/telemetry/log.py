"""Log lines: syslog or console, one line an event, with the transaction id (spec: cli-and-config.md §1.2).

Services get a ``Log`` and call it with finished sentences. How they get to syslog is ``telemetry.syslog``;
batches of access lines for a console do not pass here (``telemetry.accesslog``).
"""

from __future__ import annotations

import importlib
import logging
import sys
import traceback
from collections.abc import Callable, Mapping

from swift.base.errors import ConfigError
from swift.config.common import LogSettings
from swift.telemetry.console import STDERR, has_timestamps, line_time
from swift.telemetry.syslog import NOTICE, LineFormatter, Syslog, SysLogHandler, syslog_handler


class Log:
    """Sentences about one service, with optional transaction and client.

    ``logger`` decides which levels are written, and writes what ``syslog`` cannot send at once.
    """

    def __init__(self, logger: logging.Logger, syslog: Syslog | None = None):
        self._logger = logger
        self._syslog = syslog

    @property
    def is_debug_enabled(self) -> bool:
        """True if lines for developers are written at all."""
        return self._logger.isEnabledFor(logging.DEBUG)

    def debug(self, message: str, *, txid: str | None = None) -> None:
        """Log a line for developers."""
        self._emit(logging.DEBUG, message, txid)

    def info(self, message: str, *, txid: str | None = None) -> None:
        """Log a normal event."""
        self._emit(logging.INFO, message, txid)

    def notice(self, message: str, *, txid: str | None = None) -> None:
        """Log a start, a stop or another rare normal event."""
        self._emit(NOTICE, message, txid)

    def warning(self, message: str, *, txid: str | None = None) -> None:
        """Log something that needs an operator's attention some day."""
        self._emit(logging.WARNING, message, txid)

    def error(self, message: str, *, txid: str | None = None) -> None:
        """Log something that needs an operator's attention now."""
        self._emit(logging.ERROR, message, txid)

    def exception(self, message: str, error: BaseException, *, txid: str | None = None) -> None:
        """Log an unexpected error, with its traceback on the same line."""
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self._emit(logging.ERROR, f"{message}: {trace.rstrip()}", txid)

    def is_enabled(self, level: int) -> bool:
        """Return True if lines of this level are written; check it before building an expensive one."""
        return self._logger.isEnabledFor(level)

    def raw(self, line: str) -> None:
        """Write a complete access line at INFO; check ``is_enabled`` before."""
        self._write(logging.INFO, line)

    def _emit(self, level: int, message: str, txid: str | None) -> None:
        if not self._logger.isEnabledFor(level):
            return
        if txid and txid not in message:
            message = f"{message} (txn: {txid})"
        self._write(level, message)

    def _write(self, level: int, message: str) -> None:
        if self._syslog is None or not self._syslog.send(level, message):
            self._logger.log(level, "%s", message)


class TimedLineFormatter(LineFormatter):
    """``time name: message``, for a log file."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        return f"{line_time(record.created)} {super().format(record)}"


def make_log(
    settings: LogSettings,
    *,
    console: bool = False,
    name: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Log:
    """Return a ``Log`` to syslog as the settings say; with ``console`` to standard error instead.

    ``conf`` is handed to the functions of ``log_custom_handlers``. Raises ``ConfigError`` when one of them
    cannot be imported.
    """
    label = name or settings.log_name
    logger = logging.Logger(label)
    level = settings.log_level.upper()
    logger.setLevel(NOTICE if level == "NOTICE" else getattr(logging, level, logging.INFO))
    formatter = LineFormatter(label, settings.log_max_line_length)
    handler: logging.Handler = logging.StreamHandler(sys.stderr) if console else syslog_handler(settings)
    if console and has_timestamps(STDERR):
        formatter = TimedLineFormatter(label, settings.log_max_line_length)
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    if settings.log_custom_handlers:
        # Their handlers stand at the logger, so every line must pass it.
        adapted = logging.LoggerAdapter(logger, {})
        for function in map(_import_function, settings.log_custom_handlers):
            function(dict(conf or {}), label, console, label, "%(server)s: %(message)s", logger, adapted)
        return Log(logger)
    return Log(logger, Syslog(handler, formatter) if isinstance(handler, SysLogHandler) else None)


def _import_function(path: str) -> Callable[..., object]:
    """Return the function ``module.function``; raises ``ConfigError``."""
    module, _dot, name = path.rpartition(".")
    try:
        function: Callable[..., object] = getattr(importlib.import_module(module), name)
    except (ImportError, ValueError, AttributeError) as error:
        raise ConfigError(f"log_custom_handlers: cannot import {path}: {error}")
    return function


def silent_log() -> Log:
    """Return a ``Log`` that drops everything, for tests and embedded use."""
    logger = logging.Logger("silent")
    logger.addHandler(logging.NullHandler())
    logger.setLevel(logging.CRITICAL + 1)
    return Log(logger)
