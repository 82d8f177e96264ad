"""Access logs of buckets: lines in AWS's format, their destination and their delivery.

What a client sends stands in quotes or without spaces, and never with either of its own: a client cannot
forge a line that is not theirs. Signatures and tokens are left out.
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
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.s3.auth.session import SOURCE, Session
from swift.s3.xml import Group, Kind, Many, Text
from swift.telemetry.log import Log
from swift.telemetry.statsd import Statsd

_GRANT = Many(
    "Grant",
    Group("Grantee", Kind(), *map(Text, ("ID", "DisplayName", "EmailAddress", "URI"))),
    Text("Permission"),
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
_secrets = re.compile(r"((?:^|[?&])(?:X-Amz-(?:Signature|Security-Token)|Signature)=)[^&]*", re.IGNORECASE)
#: Marks of sub-resources whose name in logs is not their own.
_RESOURCES = {"versions": "BUCKETVERSIONS", "delete": "MULTI_OBJECT_DELETE", "uploads": "UPLOADS"}


class LogTarget(NamedTuple):
    """The destination of a bucket's log: a bucket of the same account, and a prefix of keys."""

    bucket: str
    prefix: str

    @property
    def stored(self) -> str:
        """The form in which a bucket keeps it."""
        return f"{self.bucket} {quote(self.prefix, safe='')}"


def log_target_of(stored: str | None) -> LogTarget | None:
    """Return the target that a bucket stores; None if it has no log."""
    bucket, space, prefix = (stored or "").partition(" ")
    return LogTarget(bucket, unquote(prefix)) if bucket and space else None


@dataclass(frozen=True, slots=True)
class AccessLogRecord:
    """One request and its answer."""

    owner: str
    bucket: str
    key: str
    when_s: float
    address: str
    requester: str
    txid: str
    operation: str
    #: The request's line: method, path with query, protocol.
    line: str
    status: int
    error: str
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
        """The line, with its end."""
        when = time.strftime("[%d/%b/%Y:%H:%M:%S +0000]", time.gmtime(self.when_s))
        words = (
            *(_word(self.owner), _word(self.bucket), when, _word(self.address), _word(self.requester)),
            *(_word(self.txid), self.operation, _key(self.key), _quoted(_secrets.sub(r"\1-", self.line))),
            *(str(self.status), _word(self.error), str(self.sent_bytes or "-")),
            *("-" if self.object_bytes is None else str(self.object_bytes), _ms(self.total_s)),
            *(_ms(self.turnaround_s), _quoted(self.headers.get("referer", ""))),
            *(_quoted(self.headers.get("user-agent", "")), _word(self.version), _word(self.txid)),
            *(self.signature or "-", "-", self.authentication or "-", _word(self.headers.get("host", ""))),
            *("-", "-", "-"),
        )
        return " ".join(words) + "\n"


def operation_of(method: str, key: str, params: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return the operation as logs name it: ``REST.GET.OBJECT``."""
    kind = "OBJECT" if key else "BUCKET"
    if "uploadId" in params:
        kind = "PART" if "partNumber" in params else "UPLOAD"
    else:
        marks = [name for name in params if name.isalpha() and not params[name]]
        if marks:
            kind = _RESOURCES.get(marks[0], marks[0].upper()[:40])
    verb = "COPY" if "x-amz-copy-source" in headers else method
    return f"REST.{_word(verb)}.{kind}"


def _key(text: str) -> str:
    return quote(text, safe="/", errors="surrogateescape")[: 3 * TEXT_MAX] or "-"


def _word(text: str) -> str:
    """Return a field without quotes."""
    return "".join(c if 32 < ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX]) or "-"


def _quoted(text: str) -> str:
    """Return a field in quotes."""
    clean = "".join(c if 32 <= ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX])
    return f'"{clean or "-"}"'


def _ms(seconds: float) -> str:
    return str(max(0, round(seconds * 1000)))


# --- delivery -----------------------------------------------------------------------------------------
# Best effort, as AWS has it: what cannot be stored, or is too much, is dropped and counted, and what
# a worker has gathered when it ends is lost. Nothing waits for it.

#: Bytes that all logs of a worker may hold, and after which one is stored early.
HELD_MAX, EARLY_BYTES = 16 << 20, 1 << 20


class LogDestination(NamedTuple):
    """A log: whose account it is in, and where there."""

    account: str
    target: LogTarget


class AccessLogDelivery:
    """Gathers lines and stores them; safe to be shared by green threads."""

    def __init__(self, forward: Handle, log: Log, statsd: Statsd, interval_s: float):
        self._forward = forward
        self._log = log
        self._statsd = statsd
        self._interval_s = interval_s
        self._lines: dict[LogDestination, list[str]] = {}
        self._sizes: dict[LogDestination, int] = {}
        #: Logs with a scheduled delivery.
        self._awaited: set[LogDestination] = set()
        self._held = 0

    @property
    def held_bytes(self) -> int:
        """The bytes that are gathered and not stored yet."""
        return self._held

    def add(self, place: LogDestination, line: str, cache: object) -> None:
        """Keep a line until its log is stored; ``cache`` is that of the request."""
        if self._held + len(line) > HELD_MAX:
            self._statsd.increment("s3api.logs.dropped")
            return
        self._lines.setdefault(place, []).append(line)
        self._sizes[place] = self._sizes.get(place, 0) + len(line)
        self._held += len(line)
        if self._sizes[place] >= EARLY_BYTES:
            self.store(place, cache)
        elif place not in self._awaited:
            self._awaited.add(place)
            green.spawn_detached(self._later, place, cache)

    def _later(self, place: LogDestination, cache: object) -> None:
        green.sleep(self._interval_s)
        self._awaited.discard(place)
        self._stored(place, cache)

    def store(self, place: LogDestination, cache: object) -> None:
        """Store what there is of a log, beside the request that asks for it."""
        green.spawn_detached(self._stored, place, cache)

    def _stored(self, place: LogDestination, cache: object) -> None:
        lines = self._lines.pop(place, [])
        self._held -= self._sizes.pop(place, 0)
        if not lines:
            return
        try:
            status = self._put(place, "".join(lines).encode("ascii", "replace"), cache)
        except Exception as error:
            # No caller waits for this green thread.
            self._log.exception(f"the log of {place.account} was not delivered", error)
            status = 500
        if not 200 <= status <= 299:
            self._statsd.increment("s3api.logs.dropped", len(lines))
            self._log.warning(
                f"{len(lines)} access log lines for {place.account}/{place.target.bucket} were lost: {status}"
            )

    def _put(self, place: LogDestination, content: bytes, cache: object) -> int:
        stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
        name = f"{place.target.prefix}{stamp}-{uuid4().hex[:16].upper()}"
        path = EntityPath(place.account, place.target.bucket, name)
        parent = Request("PUT", "/", {}, env={} if cache is None else {environkeys.CACHE: cache})
        headers = {"content-length": str(len(content)), "content-type": "text/plain"}
        where = "/v1" + path.quoted
        sub = make_subrequest(parent, "PUT", where, headers=headers, body=content, source=SOURCE)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status


# --- records of requests ------------------------------------------------------------------------------

_KEY = fields.SYSMETA_S3_BUCKET_LOGGING.removeprefix(fields.CONTAINER_SYSMETA)
_SIGNATURES = {"AWS": "SigV2", "AWS4-HMAC-SHA256": "SigV4"}
_AUTHENTICATIONS = {"REST-HEADER": "AuthHeader", "REST-QUERY-STRING": "QueryString", "POST": "-"}


def log_destination(request: Request, session: Session, bucket: str) -> LogDestination | None:
    """Return the destination of a bucket's log; None if it has none or the account is not known."""
    # The rules of the bucket were asked for before; there is no request for the log alone.
    known = cached_container(request, session.account, bucket) if session.account else None
    sysmeta = known.get("sysmeta") if known is not None else None
    target = log_target_of(sysmeta.get(_KEY)) if isinstance(sysmeta, dict) else None
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
    """Return the entry of a request that was answered; ``times`` (Unix seconds) are when it began, was
    answered and ended.
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
        when_s=begun_s,
        address=request.remote_addr or "",
        requester=session.claim.access_key if session.own_account else "",
        txid=str(request.env.get(environkeys.TRANS_ID, "")),
        operation=operation_of(request.method, key, request.params, request.headers),
        line=f"{request.method} {request.path_qs} HTTP/1.{request.http_minor}",
        status=response.status,
        error=code,
        sent_bytes=sent_bytes,
        object_bytes=int(size) if size is not None and is_digits(size) and key else None,
        total_s=ended_s - begun_s,
        turnaround_s=answered_s - begun_s,
        headers=request.headers,
        version=response.headers.get("x-amz-version-id", ""),
        signature=_SIGNATURES.get(values.get("s3:signatureversion", ""), ""),
        authentication=_AUTHENTICATIONS.get(values.get("s3:authtype", ""), ""),
    )
