"""The filter ``audit_log``: a JSON line for each request that changes something or is refused.

It stands left of all filters that identify users, so that it logs what they refuse. It reads the user from
the environment when the response has ended. Filters that change several objects for one request report each
change (``gateway.subrequest.report_change``), which has a line of its own; other sub-requests have none.
Tokens, secret keys, signatures and values of other headers are never logged.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from swift.base.errors import ConfigError
from swift.compose import Services
from swift.config.kinds import COUNT, integer
from swift.config.schema import FILE, Settings, Writes, option
from swift.gateway.subrequest import ReportedChange
from swift.http import environkeys
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.audit_log.logfile import AuditFile, AuditQueue
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.proxy_logging import client_address, swift_path

READ_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
REFUSALS = frozenset((401, 403))
#: Query parameters that are an operation, or name its target.
OPERATIONS = (
    *("multipart-manifest", "bulk-delete", "extract-archive", "symlink", "version-id"),
    *("versionId", "uploadId", "partNumber"),
)
#: Beginnings of notes for the access line that say why a request was refused.
_REASONS = ("s3:err:", "cs:")
_TEXT_MAX = 1024
#: Characters of a parameter.
_VALUE_MAX = 128
#: Characters that would look like another parameter.
_ESCAPES = str.maketrans({"&": "%26", "=": "%3D", "%": "%25"})


@dataclass(frozen=True)
class AuditLogSettings(Settings):
    """``[filter:audit_log]``."""

    log_reads: bool = option(False, "Also log requests that only read and are not refused.")
    path: str = option(
        "/var/log/swift/audit.log",
        "File of the log; its directory must be writable for the server's user.",
        writes=Writes(FILE, unless="syslog"),
    )
    max_bytes: int = option(100_000_000, "Size at which the file is rotated; 0: never.", kind=COUNT)
    backups: int = option(10, "Rotated files that are kept.", kind=COUNT)
    changes_max: int = option(
        10_000,
        "Objects of one bulk request, archive or form that have lines of their own; its line counts all.",
        kind=COUNT,
    )
    syslog: bool = option(False, "Send the lines to syslog, as log_address says, instead of the file.")
    queue_size: int = option(
        10_000, "Lines of a worker that wait in memory for the disk; others are dropped.", kind=integer(1)
    )


class AuditLog(Filter):
    """Passes the lines of finished requests to ``write``, which must not wait."""

    def __init__(
        self,
        app: App,
        write: Callable[[str], object],
        *,
        log_reads: bool = False,
        changes_max: int = 10_000,
        now: Callable[[], float] = time.time,
    ):
        super().__init__(app)
        self._write = write
        self._log_reads = log_reads
        self._changes_max = changes_max
        self._now = now

    def handle(self, request: Request) -> Response:
        """Log the request once its response has ended."""
        env = request.env
        if env.get(environkeys.AUDITED):
            return self.forward(request)
        env[environkeys.AUDITED] = True
        # As the client sent it; filters may change it.
        record = _Record(request, self._now())
        env[environkeys.AUDIT_CHANGE] = partial(self._log_change, record)
        try:
            response = self.forward(request)
        except Exception:
            env.pop(environkeys.AUDIT_CHANGE, None)
            self._log(record, 500, 0)
            raise

        def ended(sent_bytes: int, complete: bool) -> None:
            if complete:
                # It refers to the request. Work may go on after a client that is gone, and report more.
                env.pop(environkeys.AUDIT_CHANGE, None)
            self._log(record, response.status if complete else 499, sent_bytes, response.status)

        response.on_response_end(ended)
        return response

    def _log(self, record: _Record, status: int, sent_bytes: int, response_status: int = 500) -> None:
        is_change = record.method not in READ_METHODS
        if is_change or self._log_reads or response_status in REFUSALS:
            self._write(_line(record.values(status, sent_bytes)))

    def _log_change(self, record: _Record, change: ReportedChange) -> None:
        record.change_count += 1
        if record.change_count <= self._changes_max:
            self._write(_line(record.values_of_change(change, self._now())))


def _line(values: Mapping[str, object]) -> str:
    """Return values as JSON; texts are cut, and those that are unknown are left out."""
    known = {
        name: value[:_TEXT_MAX] if isinstance(value, str) else value
        for name, value in values.items()
        if value not in (None, "")
    }
    return json.dumps(known, separators=(",", ":"))


class _Record:
    """A request as the client sent it; the values of its line."""

    __slots__ = (
        *("change_count", "copy_target", "entity", "method", "operation"),
        *("raw_path", "request", "started_s", "user"),
    )

    def __init__(self, request: Request, started_s: float):
        self.request = request
        self.started_s = started_s
        self.method = request.method
        self.raw_path = request.raw_path
        self.entity = swift_path(request)
        self.operation = _operation(request.params)
        self.copy_target = _copy_target(request)
        #: Changes that were reported, also those without a line.
        self.change_count = 0
        #: The user of the changes: filters may identify it in sub-requests only.
        self.user: object = None

    def values(self, status: int, sent_bytes: int) -> dict[str, object]:
        """Return the values in the order of the line."""
        request, env = self.request, self.request.env
        call = env.get(environkeys.S3_CALL) or {}
        # Filters that translate host names know the entity later.
        entity = self.entity or (None if call else swift_path(request))
        account, container, obj = entity or (None, None, None)
        if call:
            account, container, obj = call.get("account"), call.get("bucket"), call.get("key")
        return {
            **self._origin(self.started_s, env),
            "method": self.method,
            "account": account,
            "container": container,
            "object": obj,
            "path": None if entity or call else self.raw_path,
            "copy": self.copy_target,
            "query": self.operation,
            "s3_operation": call.get("operation"),
            "status": status,
            "bytes_in": request.body.received,
            "bytes_out": sent_bytes,
            "changes": self.change_count or None,
            "reason": _reason(env, status),
        }

    def values_of_change(self, change: ReportedChange, now_s: float) -> dict[str, object]:
        """Return the values of the line of a change."""
        origin = self._origin(now_s, change.env)
        self.user = self.user or origin["user"]
        entity = swift_path(Request(change.method, change.raw_path))
        account, container, obj = entity or (None, None, None)
        return {
            **origin,
            "method": change.method,
            "account": account,
            "container": container,
            "object": obj,
            "path": None if entity else change.raw_path,
            "part_of": change.part_of,
            "status": change.status,
            "bytes_in": change.bytes_in,
            "reason": change.reason or _phrase(change.status),
        }

    def _origin(self, moment_s: float, env: Mapping[str, object]) -> dict[str, object]:
        """Return when, by whom and from where a change is made, in an environment that may know more."""
        request = self.request
        call = request.env.get(environkeys.S3_CALL) or {}
        return {
            "time": _time_text(moment_s),
            "txid": request.env.get(environkeys.TRANS_ID),
            "client": client_address(request.headers) or request.remote_addr,
            "peer": request.remote_addr,
            "user": call.get("user") if call else _user(request.env) or _user(env) or self.user,
            "access_key": call.get("access_key"),
        }


def _time_text(moment_s: float) -> str:
    whole = int(moment_s)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{stamp}.{int((moment_s - whole) * 1e6):06d}Z"


def _operation(params: Mapping[str, str]) -> str:
    """Return the parameters that are an operation, as a query; none of them is a secret."""
    found = [(name, utf8_value(params[name])[:_VALUE_MAX]) for name in OPERATIONS if name in params]
    return "&".join(f"{name}={value.translate(_ESCAPES)}" if value else name for name, value in found)


def _copy_target(request: Request) -> str | None:
    """Return the other object of a copy: its source, or its destination for COPY."""
    headers = request.headers
    if request.method not in ("COPY", "PUT"):
        return None
    if request.method == "COPY":
        account, path = headers.get("destination-account"), headers.get("destination")
    else:
        account = headers.get("x-copy-from-account")
        path = headers.get("x-copy-from") or headers.get("x-amz-copy-source")
    if not path:
        return None
    # A query may have a signature.
    path = path.partition("?")[0]
    return unquote(utf8_value(f"{account}/{path.lstrip('/')}" if account else path))


def _user(env: Mapping[str, object]) -> str | None:
    """Return the user that an authentication filter found."""
    access = env.get(environkeys.ACCESS_LOGGING)
    if isinstance(access, dict) and access.get("user_id"):
        return str(access["user_id"])
    user = env.get(environkeys.REMOTE_USER)
    return user.partition(",")[0] if isinstance(user, str) else None


def _reason(env: Mapping[str, object], status: int) -> str | None:
    """Return the reason of a refusal: the error code of S3, or the words of the status."""
    if status < 400:
        return None
    notes = env.get(environkeys.LOG_INFO)
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, str) and note.startswith(_REASONS):
            return note.removeprefix("s3:err:")
    return _phrase(status)


def _phrase(status: int) -> str | None:
    """Return the words of an error's status."""
    if status < 400:
        return None
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return None


def _make_filter(app: App, settings: AuditLogSettings, services: Services) -> AuditLog:
    """Return the filter of a configuration section."""
    telemetry = services.telemetry()
    log = telemetry.log
    if settings.syslog:
        if not log.is_enabled(logging.INFO):
            raise ConfigError("[filter:audit_log]: syslog needs a log_level of INFO or DEBUG")
        return AuditLog(app, log.raw, log_reads=settings.log_reads, changes_max=settings.changes_max)
    file = AuditFile(settings.path, settings.max_bytes, settings.backups)
    queue = AuditQueue(file.append, settings.queue_size, log, telemetry.metrics)
    services.at_exit(queue.flush)
    return AuditLog(
        app,
        lambda line: queue.put(f"{line}\n".encode()),
        log_reads=settings.log_reads,
        changes_max=settings.changes_max,
    )


_UNSEEN = "the log must have refused requests as well"

FILTER = FilterDeclaration(
    "audit_log",
    AuditLogSettings,
    _make_filter,
    position=42,
    left_of=dict.fromkeys(
        ("tempauth", "swiftauth", "keystoneauth", "s3api", "s3token", "tempurl", "formpost"), _UNSEEN
    ),
    right_of={"catch_errors": "catch_errors makes the transaction id"},
)
