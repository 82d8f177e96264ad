"""Reading the segments of large objects: from which bytes of which object to a response.

Shared by ``dlo`` and ``slo``. A ``Segment`` is a value; ``SegmentSource`` opens it with a sub-request that
has the rights of the client's, keeps to the pace and the time of a download, and takes only what it was
promised.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import quote

from swift import green
from swift.base.entity import RESERVED, BadPath, Entity, EntityPath, NotUTF8
from swift.base.etag import unquote_etag
from swift.base.ranges import Span
from swift.gateway.subrequest import make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log


@dataclass(frozen=True, slots=True)
class Segment:
    """The wanted bytes of one object that is a part of a larger one."""

    path: EntityPath
    #: Which of the object's bytes.
    span: Span
    #: Bytes of the whole object.
    size: int
    #: What the object's ETag must be, unquoted; None when any will do.
    etag: str | None = None

    @property
    def range_header(self) -> str | None:
        """The Range that asks for the wanted bytes; None when those are all."""
        if self.span == (0, self.size):
            return None
        return f"bytes={self.span.start}-{self.span.stop - 1}"


@dataclass(frozen=True, slots=True)
class SegmentPace:
    """Limits on the rate at which a download opens segments.

    The first ``after`` are free, then ``per_s`` a second (0 is no limit). Segments of ``under_bytes`` and
    more do not count; None: all do. A download ends after ``time_s`` seconds.
    """

    after: int
    per_s: float
    time_s: float
    under_bytes: int | None = None
    #: Bytes of following segments that may be read ahead; 0 reads none.
    ahead_bytes: int = 0


class SegmentBroken(BodyError):
    """A part of a large object cannot be had, or is not what it was; the log knows of it."""


class SegmentSource:
    """Opens segments for one download, and logs why it cannot go on."""

    def __init__(
        self, forward: Handle, request: Request, version: str, source: str, pace: SegmentPace, log: Log
    ):
        self._forward = forward
        self._request = request
        self._version = version
        self._source = source
        self._pace = pace
        self._log = log
        self._ends = time.monotonic() + pace.time_s
        self._opened = 0
        #: Objects whose own hidden parts may be read for this download.
        self.homes: set[EntityPath] = set()
        self._next_at = 0.0

    @property
    def ahead_bytes(self) -> int:
        """Bytes of following segments that may wait in memory."""
        return self._pace.ahead_bytes

    def subrequest(self, method: str, path: EntityPath, query: str = "") -> Request:
        """Return a sub-request with the client's rights."""
        sub = segment_request(self._request, self._version, method, path, query, self._source)
        if any(is_part_of(path, home) for home in self.homes):
            allow_hidden(sub)
        return sub

    def open(self, segment: Segment) -> Response:
        """Return the response of one segment; raises ``SegmentBroken``."""
        if self._pace.under_bytes is None or segment.span.length < self._pace.under_bytes:
            self._keep_pace()
        if time.monotonic() > self._ends:
            raise self.broken(f"the download took longer than {self._pace.time_s:g} s")
        sub = self.subrequest("GET", segment.path, "multipart-manifest=get")
        wanted = segment.range_header
        if wanted is not None:
            sub.headers["range"] = wanted
        response = self._forward(sub)
        problem = _mismatch(segment, response)
        if problem is not None:
            response.discard()
            response.report_end(0, False)
            raise self.broken(f"segment {segment.path} {problem}")
        return response

    def broken(self, text: str) -> SegmentBroken:
        """Return the error to raise when the download cannot go on.

        Logged here, because its status is out.
        """
        request = self._request
        self._log.error(
            f"ERROR {request.method} {request.path_qs}: {text}", txid=request.env.get(environkeys.TRANS_ID)
        )
        return SegmentBroken(text)

    def _keep_pace(self) -> None:
        self._opened += 1
        rate = self._pace.per_s
        if not rate or self._opened <= self._pace.after:
            return
        now = time.monotonic()
        if self._next_at > now:
            green.sleep(self._next_at - now)
        self._next_at = max(now, self._next_at) + 1 / rate


def _mismatch(segment: Segment, response: Response) -> str | None:
    """Why a response is not that of the segment."""
    if response.status != (200 if segment.range_header is None else 206):
        return f"answered {response.status}"
    etag = unquote_etag(response.headers.get("etag", ""))
    if segment.etag is not None and etag != segment.etag:
        return f"has the ETag {etag}, not {segment.etag}"
    length = response.headers.get("content-length")
    if length is not None and length != str(segment.span.length):
        return f"gives {length} bytes, not {segment.span.length}"
    return None


def parts_container(container: str) -> str:
    """Return the name of the container that holds the hidden parts of a container's objects."""
    return f"{RESERVED}segments{RESERVED}{container}"


def is_part_of(path: EntityPath, owner: EntityPath) -> bool:
    """Return True if an object is a hidden part of another one."""
    return (
        path.account == owner.account
        and path.container == parts_container(owner.container or "")
        and (path.obj or "").rpartition(RESERVED)[0].rpartition(RESERVED)[0] == f"{RESERVED}{owner.obj}"
    )


def allow_hidden(sub: Request) -> None:
    """Let a sub-request do what its caller may not: only for parts of what the caller was asked about."""
    sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
    preauthorise(sub)


def version_query(request: Request, query: str = "") -> str:
    """Return a query for the same version of the object that a request is for."""
    wanted = request.params.get("version-id")
    if not wanted:
        return query
    part = f"version-id={quote(wanted.encode('latin-1'), safe='')}"
    return f"{query}&{part}" if query else part


def home_of(headers: HeaderMap, path: EntityPath) -> EntityPath:
    """Return the path of the object that sent the response: a link to another account leads to that
    account's segments.
    """
    location = headers.get("content-location")
    if location is None:
        return path
    try:
        return Entity.parse(location.partition("?")[0]).path
    except (BadPath, NotUTF8):
        return path


def segment_request(
    request: Request, version: str, method: str, path: EntityPath, query: str, source: str
) -> Request:
    """Return a sub-request to a part of a large object; ``source`` (DLO, SLO) is for logs."""
    sub = make_subrequest(
        request,
        method,
        f"/{version}{path.quoted}",
        query=query,
        source=source,
        agent=f"%(orig)s {source} MultipartGET",
    )
    for name in ("x-auth-token", "x-storage-token"):
        if name in request.headers:
            sub.headers[name] = request.headers[name]
    return sub
