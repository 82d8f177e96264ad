"""Segments of large objects: sub-requests that read them for a response.

Shared by ``dlo`` and ``slo``. A ``Segment`` is a value. ``SegmentSource`` opens it with a sub-request that
has the client's rights. It applies the rate limit and the time limit of a download, and checks each response
against its segment.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import quote

from swift import green
from swift.base.entity import RESERVED, BadPath, Entity, EntityPath, NotUTF8
from swift.base.etag import unquote_etag
from swift.base.ranges import Span
from swift.config.kinds import COUNT, SECONDS
from swift.config.schema import Settings, option
from swift.gateway.subrequest import drained, make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of bytes of one object that is a part of a large object."""

    path: EntityPath
    #: The range of the object's bytes.
    span: Span
    #: Bytes of the whole object.
    size: int
    #: The required ETag of the object, unquoted; None accepts any.
    etag: str | None = None

    @property
    def range_header(self) -> str | None:
        """The Range header for the segment; None when the segment is the whole object."""
        if self.span == (0, self.size):
            return None
        return f"bytes={self.span.start}-{self.span.stop - 1}"


@dataclass(frozen=True, slots=True)
class SegmentRateLimit:
    """Limits on the rate at which a download opens segments.

    The first ``free_segments`` are unlimited, then ``segments_per_s`` apply (0 is no limit). Segments of
    ``counted_below_bytes`` and more do not count; None: all do. A download ends after ``max_time_s`` seconds.
    """

    free_segments: int
    segments_per_s: float
    max_time_s: float
    counted_below_bytes: int | None = None
    #: Bytes of following segments that may be read ahead; 0 reads none.
    read_ahead_bytes: int = 0


@dataclass(frozen=True)
class SegmentSettings(Settings):
    """The options of downloads that read segments."""

    rate_limit_after_segment: int = option(10, "Segments sent before the rate limit begins.", kind=COUNT)
    rate_limit_segments_per_sec: float = option(1.0, "Segments a second then; 0 is no limit.", kind=SECONDS)
    max_get_time: float = option(86400.0, "Seconds a download may take.", kind=SECONDS)
    read_ahead_bytes: int = option(
        0,
        "Bytes of following segments that a download may hold, so that several are read at once; 0 reads one"
        " after the other.",
        kind=COUNT,
    )

    def rate_limit(self, counted_below_bytes: int | None = None) -> SegmentRateLimit:
        """Return the limits of a download."""
        return SegmentRateLimit(
            self.rate_limit_after_segment,
            self.rate_limit_segments_per_sec,
            self.max_get_time,
            counted_below_bytes,
            self.read_ahead_bytes,
        )


class SegmentError(BodyError):
    """A segment of a large object cannot be read, or has changed; the error is already logged."""


class SegmentSource:
    """Opens segments for one download, and logs why it fails."""

    def __init__(
        self,
        forward: Handle,
        request: Request,
        version: str,
        source: str,
        rate_limit: SegmentRateLimit,
        log: Log,
    ):
        self._forward = forward
        self._request = request
        self._version = version
        self._source = source
        self._rate_limit = rate_limit
        self._log = log
        self._deadline = time.monotonic() + rate_limit.max_time_s
        self._opened_count = 0
        #: Objects whose hidden parts this download may read.
        self.hidden_part_owners: set[EntityPath] = set()
        self._next_open_at = 0.0

    @property
    def read_ahead_bytes(self) -> int:
        """Bytes of following segments that may be buffered in memory."""
        return self._rate_limit.read_ahead_bytes

    def subrequest(self, method: str, path: EntityPath, query: str = "") -> Request:
        """Return a sub-request with the client's rights."""
        sub = make_segment_request(self._request, self._version, method, path, query, self._source)
        if any(is_hidden_part(path, owner) for owner in self.hidden_part_owners):
            allow_hidden_parts(sub)
        return sub

    def open(self, segment: Segment) -> Response:
        """Return the response of one segment; raises ``SegmentError``."""
        if (
            self._rate_limit.counted_below_bytes is None
            or segment.span.length < self._rate_limit.counted_below_bytes
        ):
            self._wait_for_rate_limit()
        if time.monotonic() > self._deadline:
            raise self.logged_error(f"the download took longer than {self._rate_limit.max_time_s:g} s")
        sub = self.subrequest("GET", segment.path, "multipart-manifest=get")
        requested_range = segment.range_header
        if requested_range is not None:
            sub.headers["range"] = requested_range
        response = self._forward(sub)
        problem = _find_mismatch(segment, response)
        if problem is not None:
            drained(response, is_complete=False)
            raise self.logged_error(f"segment {segment.path} {problem}")
        return response

    def logged_error(self, text: str) -> SegmentError:
        """Log why the download cannot continue, and return the error to raise.

        The status line has been sent already, so the log is the only place for the reason.
        """
        request = self._request
        self._log.error(
            f"ERROR {request.method} {request.path_qs}: {text}", txid=request.env.get(environkeys.TRANS_ID)
        )
        return SegmentError(text)

    def _wait_for_rate_limit(self) -> None:
        self._opened_count += 1
        rate = self._rate_limit.segments_per_s
        if not rate or self._opened_count <= self._rate_limit.free_segments:
            return
        now = time.monotonic()
        if self._next_open_at > now:
            green.sleep(self._next_open_at - now)
        self._next_open_at = max(now, self._next_open_at) + 1 / rate


def _find_mismatch(segment: Segment, response: Response) -> str | None:
    """Return the difference between a response and the segment; None when they match."""
    if response.status != (200 if segment.range_header is None else 206):
        return f"answered {response.status}"
    etag = unquote_etag(response.headers.get("etag", ""))
    if segment.etag is not None and etag != segment.etag:
        return f"has the ETag {etag}, not {segment.etag}"
    length = response.headers.get("content-length")
    if length is not None and length != str(segment.span.length):
        return f"gives {length} bytes, not {segment.span.length}"
    return None


def hidden_parts_container(container: str) -> str:
    """Return the name of the container that holds the hidden parts of a container's objects."""
    return f"{RESERVED}segments{RESERVED}{container}"


def is_hidden_part(path: EntityPath, owner: EntityPath) -> bool:
    """Return True if ``path`` is a hidden part of the object ``owner``."""
    return (
        path.account == owner.account
        and path.container == hidden_parts_container(owner.container or "")
        and (path.obj or "").rpartition(RESERVED)[0].rpartition(RESERVED)[0] == f"{RESERVED}{owner.obj}"
    )


def allow_hidden_parts(sub: Request) -> None:
    """Authorize a sub-request for hidden parts; only for parts of the object that the caller may access."""
    sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
    preauthorise(sub)


def version_query(request: Request, query: str = "") -> str:
    """Return a query for the object version that the request names."""
    version_id = request.params.get("version-id")
    if not version_id:
        return query
    part = f"version-id={quote(version_id.encode('latin-1'), safe='')}"
    return f"{query}&{part}" if query else part


def content_location_path(headers: HeaderMap, path: EntityPath) -> EntityPath:
    """Return the path of the object that a response is of, from its Content-Location.

    A symlink may lead to another account, whose segments the manifest then names.
    """
    location = headers.get("content-location")
    if location is None:
        return path
    try:
        return Entity.parse(location.partition("?")[0]).path
    except (BadPath, NotUTF8):
        return path


def make_segment_request(
    request: Request, version: str, method: str, path: EntityPath, query: str, source: str
) -> Request:
    """Return a sub-request for a part of a large object; ``source`` (DLO, SLO) is for logs."""
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
