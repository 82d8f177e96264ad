"""Access logs of buckets: lines in AWS's format, their destination and their delivery.

Text from clients is quoted or has no spaces, and never contains quotes, so a client cannot forge a line.
Signatures and tokens are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

from swift import green
from swift.base.digits import is_digits
from swift.base.entity import EntityPath
from swift.gateway.info import cached_container
from swift.gateway.subrequest import drained, make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.packedconfig import sysmeta_key
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.s3.core.privileged import SWIFT_SOURCE
from swift.s3.core.session import Session
from swift.s3.core.xml import Group, RepeatedGroup, Text, TypeAttribute, texts
from swift.telemetry.events import Event
from swift.telemetry.log import Log
from swift.telemetry.statsd import Statsd

_DROPPED = Event("s3api.logs.dropped", "Lines of buckets' access logs that were dropped.")

_GRANT = RepeatedGroup(
    "Grant", Group("Grantee", TypeAttribute(), *texts("ID DisplayName EmailAddress URI")), Text("Permission")
)
LOGGING = Group(
    "BucketLoggingStatus",
    Group(
        "LoggingEnabled",
        Text("TargetBucket", required=True),
        Text("TargetPrefix", required=True),
        Group("TargetGrants", _GRANT),
        Group(
            "TargetObjectKeyFormat",
            Group("SimplePrefix"),
            Group("PartitionedPrefix", Text("PartitionDateSource")),
        ),
    ),
)
PREFIX_MAX, TEXT_MAX = 512, 2048
_find_secrets = re.compile(
    r"((?:^|[?&])(?:X-Amz-(?:Signature|Security-Token)|Signature)=)[^&]*", re.IGNORECASE
)
#: Names of sub-resources in logs, where they differ.
_RESOURCE_NAMES = {"versions": "BUCKETVERSIONS", "delete": "MULTI_OBJECT_DELETE", "uploads": "UPLOADS"}


class LogTarget(NamedTuple):
    """The destination of a bucket's log: a bucket of the same account, and a prefix of keys."""

    bucket: str
    prefix: str

    @property
    def encoded(self) -> str:
        """The form that the bucket's metadata stores."""
        return f"{self.bucket} {quote(self.prefix, safe='')}"


def parse_log_target(stored: str | None) -> LogTarget | None:
    """Return the log target that a bucket stores; None if it has no log."""
    bucket, space, prefix = (stored or "").partition(" ")
    return LogTarget(bucket, unquote(prefix)) if bucket and space else None


@dataclass(frozen=True, slots=True)
class AccessLogRecord:
    """One request and its response, as an access log line has them."""

    owner: str
    bucket: str
    key: str
    begun_s: float
    address: str
    requester: str
    txid: str
    operation: str
    #: The request's line: method, path with query, protocol.
    request_line: str
    status: int
    error_code: str
    sent_bytes: int
    object_bytes: int | None
    total_s: float
    turnaround_s: float
    headers: HeaderMap
    version: str
    signature: str
    authentication: str

    @property
    def text(self) -> str:
        """The line with its newline."""
        when = time.strftime("[%d/%b/%Y:%H:%M:%S +0000]", time.gmtime(self.begun_s))
        plain, quoted, headers = _unquoted_field, _quoted_field, self.headers
        words = (
            *(plain(self.owner), plain(self.bucket), when, plain(self.address), plain(self.requester)),
            *(plain(self.txid), self.operation, _quote_key(self.key)),
            quoted(_find_secrets.sub(r"\1-", self.request_line)),
            *(str(self.status), plain(self.error_code), str(self.sent_bytes or "-")),
            *("-" if self.object_bytes is None else str(self.object_bytes), _milliseconds(self.total_s)),
            *(_milliseconds(self.turnaround_s), quoted(headers.get("referer", ""))),
            *(quoted(headers.get("user-agent", "")), plain(self.version), plain(self.txid)),
            *(self.signature or "-", "-", self.authentication or "-", plain(headers.get("host", ""))),
            *("-", "-", "-"),
        )
        return " ".join(words) + "\n"


def operation_name(method: str, key: str, params: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return the operation as logs name it: ``REST.GET.OBJECT``."""
    kind = "OBJECT" if key else "BUCKET"
    if "uploadId" in params:
        kind = "PART" if "partNumber" in params else "UPLOAD"
    else:
        marks = [name for name in params if name.isalpha() and not params[name]]
        if marks:
            kind = _RESOURCE_NAMES.get(marks[0], marks[0].upper()[:40])
    verb = "COPY" if "x-amz-copy-source" in headers else method
    return f"REST.{_unquoted_field(verb)}.{kind}"


def _quote_key(text: str) -> str:
    return quote(text, safe="/", errors="surrogateescape")[: 3 * TEXT_MAX] or "-"


def _unquoted_field(text: str) -> str:
    """Return text as a field without quotes."""
    return "".join(c if 32 < ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX]) or "-"


def _quoted_field(text: str) -> str:
    """Return text as a field in quotes."""
    clean = "".join(c if 32 <= ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX])
    return f'"{clean or "-"}"'


def _milliseconds(seconds: float) -> str:
    return str(max(0, round(seconds * 1000)))


# --- delivery -----------------------------------------------------------------------------------------
# Best effort, as in AWS: lines that cannot be stored or buffered are dropped and counted, and lines that
# a worker has buffered when it ends are lost. No request waits for delivery.

#: Bytes that a worker buffers for all logs, and the size at which one log is delivered early.
BUFFERED_BYTES_MAX, EARLY_DELIVERY_BYTES = 16 << 20, 1 << 20


class LogDestination(NamedTuple):
    """A log: its account, and its target there."""

    account: str
    target: LogTarget


class AccessLogDelivery:
    """Buffers log lines and stores them as objects; green threads share it."""

    def __init__(self, forward: Handle, log: Log, statsd: Statsd, interval_s: float):
        self._forward = forward
        self._log = log
        self._statsd = statsd
        self._interval_s = interval_s
        self._lines: dict[LogDestination, list[str]] = {}
        self._sizes: dict[LogDestination, int] = {}
        #: Logs with a scheduled delivery.
        self._scheduled: set[LogDestination] = set()
        self._buffered_bytes = 0

    @property
    def buffered_bytes(self) -> int:
        """The number of buffered bytes."""
        return self._buffered_bytes

    def add(self, destination: LogDestination, line: str, cache: object) -> None:
        """Buffer a line for its log; ``cache`` is that of the request."""
        if self._buffered_bytes + len(line) > BUFFERED_BYTES_MAX:
            _DROPPED.count(self._statsd)
            return
        self._lines.setdefault(destination, []).append(line)
        self._sizes[destination] = self._sizes.get(destination, 0) + len(line)
        self._buffered_bytes += len(line)
        if self._sizes[destination] >= EARLY_DELIVERY_BYTES:
            self.start_delivery(destination, cache)
        elif destination not in self._scheduled:
            self._scheduled.add(destination)
            green.spawn_detached(self._deliver_later, destination, cache)

    def _deliver_later(self, destination: LogDestination, cache: object) -> None:
        green.sleep(self._interval_s)
        self._scheduled.discard(destination)
        self._deliver(destination, cache)

    def start_delivery(self, destination: LogDestination, cache: object) -> None:
        """Start to store the buffered lines of a log in a green thread."""
        green.spawn_detached(self._deliver, destination, cache)

    def _deliver(self, destination: LogDestination, cache: object) -> None:
        lines = self._lines.pop(destination, [])
        self._buffered_bytes -= self._sizes.pop(destination, 0)
        if not lines:
            return
        try:
            status = self._put(destination, "".join(lines).encode("ascii", "replace"), cache)
        except Exception as error:
            # No caller waits for this green thread.
            self._log.exception(
                f"unexpected error while storing an access log of {destination.account}", error
            )
            status = 500
        if not 200 <= status <= 299:
            _DROPPED.count(self._statsd, len(lines))
            self._log.warning(
                f"lost {len(lines)} access log lines for {destination.account}/{destination.target.bucket}: "
                f"the PUT had status {status}"
            )

    def _put(self, destination: LogDestination, content: bytes, cache: object) -> int:
        stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
        name = f"{destination.target.prefix}{stamp}-{uuid4().hex[:16].upper()}"
        path = EntityPath(destination.account, destination.target.bucket, name)
        parent = Request("PUT", "/", {}, env={} if cache is None else {environkeys.CACHE: cache})
        headers = {"content-length": str(len(content)), "content-type": "text/plain"}
        where = "/v1" + path.quoted
        sub = make_subrequest(parent, "PUT", where, headers=headers, body=content, source=SWIFT_SOURCE)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status


# --- records of requests ------------------------------------------------------------------------------

LOGGING_KEY = sysmeta_key(fields.SYSMETA_S3_BUCKET_LOGGING)
_SIGNATURES = {"AWS": "SigV2", "AWS4-HMAC-SHA256": "SigV4"}
_AUTHENTICATIONS = {"REST-HEADER": "AuthHeader", "REST-QUERY-STRING": "QueryString", "POST": "-"}


def log_destination(request: Request, session: Session, bucket: str) -> LogDestination | None:
    """Return the destination of a bucket's log; None without a log or if the account is unknown."""
    # The access check has cached the bucket's metadata; a log causes no request of its own.
    known = cached_container(request, session.account, bucket) if session.account else None
    sysmeta = known.get("sysmeta") if known is not None else None
    target = parse_log_target(sysmeta.get(LOGGING_KEY)) if isinstance(sysmeta, dict) else None
    return None if target is None else LogDestination(session.account, target)


def access_log_record(
    request: Request,
    response: Response,
    session: Session,
    names: tuple[str, str],
    code: str,
    sent_bytes: int,
    times: tuple[float, float, float],
) -> AccessLogRecord:
    """Return the log record of a request.

    ``times`` are the Unix seconds at which it began, had its response, and ended.
    """
    bucket, key = names
    begun_s, answered_s, ended_s = times
    values = session.claim.condition_values(begun_s)
    size = response.headers.get("content-length") if request.method == "GET" else None
    if request.method == "PUT" and key:
        size = str(request.body.received)
    return AccessLogRecord(
        owner=session.account,
        bucket=bucket,
        key=key,
        begun_s=begun_s,
        address=request.remote_addr or "",
        requester=session.claim.access_key if session.own_account else "",
        txid=str(request.env.get(environkeys.TRANS_ID, "")),
        operation=operation_name(request.method, key, request.params, request.headers),
        request_line=f"{request.method} {request.path_qs} HTTP/1.{request.http_minor}",
        status=response.status,
        error_code=code,
        sent_bytes=sent_bytes,
        object_bytes=int(size) if size is not None and is_digits(size) and key else None,
        total_s=ended_s - begun_s,
        turnaround_s=answered_s - begun_s,
        headers=request.headers,
        version=response.headers.get("x-amz-version-id", ""),
        signature=_SIGNATURES.get(values.get("s3:signatureversion", ""), ""),
        authentication=_AUTHENTICATIONS.get(values.get("s3:authtype", ""), ""),
    )
