"""Extraction of an archive: a PUT for each file, with the sender's rights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from swift.gateway.subrequest import Forward, ReportedChange, make_subrequest, open_response, report_change
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http.body import CHUNK_BYTES, BodyError, RequestBody
from swift.http.headers import HeaderMap, lower_name
from swift.http.report import status_line
from swift.http.request import Request
from swift.middleware.bulk.report import BulkReport
from swift.middleware.bulk.unpack import DecompressedReader
from swift.wire.tar import BadTar, Member, MemberKind, TarReader

#: Headers of the archive's request that apply to every file in it.
_SHARED_HEADERS = ("x-delete-at", "x-delete-after")
TOKEN_HEADERS = ("x-auth-token", "x-storage-token", "x-service-token")
_XATTR_PREFIXES = ("SCHILY.xattr.user.", "LIBARCHIVE.xattr.user.")


class InvalidArchive(BodyError):
    """The archive ended or is invalid within a file (400)."""

    status = 400


class TarMemberBody(RequestBody):
    """A member of an archive as the body of a PUT."""

    def __init__(self, tar: TarReader, size: int):
        self.length: int | None = size
        self.received = 0
        self._tar = tar

    def read(self, size: int = -1) -> bytes:
        """Return bytes of the member; raise ``InvalidArchive``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        try:
            data = self._tar.read_data(size)
        except BadTar as error:
            raise InvalidArchive(str(error))
        self.received += len(data)
        return data


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """Limits of one archive extraction: containers created and failures."""

    containers_max: int
    failures_max: int


class ArchiveExtraction:
    """Extracts one archive."""

    def __init__(self, request: Request, forward: Forward, archive_format: str, limits: ExtractLimits):
        assert request.entity is not None, "archives go to entities"
        self.report = BulkReport("extract", {"Number Files Created": 0})
        self._request = request
        self._forward = forward
        self._limits = limits
        entity = request.entity
        self._account_url = f"/{entity.version}/{quote(entity.path.account, safe='~')}"
        below = [part.strip("/") for part in entity.path[1:] if part]
        self._base_path = "/".join(below).encode("utf-8")
        self._container = self._base_path.partition(b"/")[0]
        self._tar = TarReader(DecompressedReader(request.body.read, archive_format).read)
        self._known_containers: set[bytes] = set()
        self._created_containers = 0

    def run(self) -> BulkReport:
        """Extract the archive and return the report."""
        has_files = False
        if self._is_unauthenticated():
            self.report.fail(401)
            return self.report
        try:
            while not self.report.status and (member := self._tar.next()) is not None:
                has_files = self._store_member(member) or has_files
                self._skip_rest()
        except BadTar as error:
            self.report.fail(400, f"Invalid Tar File: {error}")
        except BodyError as error:
            self.report.fail(error.status)
        if not has_files and not self.report.status:
            self.report.fail(400, "Invalid Tar File: No Valid Files")
        self.report.set_final_status(success_status=201)
        return self.report

    def _is_unauthenticated(self) -> bool:
        """Return True if the sender is not authenticated; unpacking an archive for it would waste work."""
        path = self._account_url + (f"/{quote(self._container, safe='~')}" if self._container else "")
        return self._send_request("HEAD", path) == 401

    def _skip_rest(self) -> None:
        while self._tar.left and not self.report.status:
            self._tar.read_data(CHUNK_BYTES)

    def _store_member(self, member: Member) -> bool:
        """Store a member; return True if it was a file inside a container."""
        name = _normalize_name(member.name)
        path = self._base_path + b"/" + name if self._base_path else name
        container, slash, obj = path.partition(b"/")
        if member.kind is MemberKind.OTHER or not name or not slash or not obj or not container:
            return False
        if member.kind is MemberKind.SPARSE:
            self._add_failure(path, 400)
            return True
        if container not in self._known_containers:
            self._create_container(container)
        if not self.report.status:
            self._put_file(path, member)
        return True

    def _create_container(self, container: bytes) -> None:
        self._known_containers.add(container)
        raw_path = f"{self._account_url}/{quote(container, safe='~')}"
        status = self._send_request("HEAD", raw_path)
        if status == 404:
            if self._created_containers >= self._limits.containers_max:
                text = f"More than {self._limits.containers_max} containers to create from tar."
                self.report.fail(400, text)
                return
            self._created_containers += 1
            status = self._send_request("PUT", raw_path)
        if status == 401:
            self.report.fail(401)
        elif status // 100 != 2:
            self._add_error(raw_path, status)

    def _put_file(self, path: bytes, member: Member) -> None:
        headers = {"content-length": str(member.size), **self._shared_headers(), **_xattr_headers(member)}
        raw_path = f"{self._account_url}/{quote(path, safe='/~')}"
        body = TarMemberBody(self._tar, member.size)
        status = self._send_request("PUT", raw_path, headers, body)
        if status // 100 == 2:
            self.report.counts["Number Files Created"] += 1
        elif status == 401:
            self.report.fail(401)
        else:
            self._add_failure(path, status)

    def _add_failure(self, path: bytes, status: int) -> None:
        self._add_error(quote(path, safe="/~"), status)

    def _add_error(self, name: str, status: int) -> None:
        self.report.errors.append((name, status_line(status)))
        if len(self.report.errors) >= self._limits.failures_max:
            self.report.set_final_status(success_status=201)

    def _shared_headers(self) -> HeaderMap:
        sent = self._request.headers
        return {n: v for n, v in sent.items() if n in _SHARED_HEADERS or n.startswith("x-object-meta-")}

    def _send_request(
        self, method: str, raw_path: str, headers: HeaderMap | None = None, body: RequestBody | bytes = b""
    ) -> int:
        """Return the status; raises ``InvalidArchive``."""
        sub = make_bulk_subrequest(self._request, method, raw_path, headers, body, source="EA")
        try:
            with open_response(partial(forward_write, self._forward), sub) as response:
                status = response.status
        except WriteNotStored as error:
            status = error.response.status
        if method == "PUT":
            change = ReportedChange(method, raw_path, status, "extract-archive", sub.env, sub.body.received)
            report_change(self._request, change)
        return status


def make_bulk_subrequest(
    request: Request,
    method: str,
    raw_path: str,
    headers: HeaderMap | None,
    body: RequestBody | bytes,
    *,
    source: str,
) -> Request:
    """Return a sub-request with the sender's tokens; filters to the right authenticate it again."""
    sent = request.headers
    tokens = {name: sent[name] for name in TOKEN_HEADERS if name in sent}
    merged = {"content-length": "0", **tokens, **(headers or {})}
    agent = f"%(orig)s Bulk{'Extract' if source == 'EA' else 'Delete'}"
    return make_subrequest(request, method, raw_path, headers=merged, body=body, source=source, agent=agent)


def _normalize_name(name: bytes) -> bytes:
    """Return a member's name without leading slashes and ``./``."""
    while name.startswith((b"/", b"./")):
        name = name[1:] if name.startswith(b"/") else name[2:]
    return name


def _xattr_headers(member: Member) -> HeaderMap:
    """Return content type and metadata from the extended attributes of a file."""
    headers: HeaderMap = {}
    for prefix in _XATTR_PREFIXES:
        for name, value in member.attributes.items():
            if not name.startswith(prefix):
                continue
            key, text = name[len(prefix) :], _header_text(value)
            if key == "mime_type":
                headers["content-type"] = text
            elif key.startswith("meta."):
                meta_name = _header_text(key[5:].encode("utf-8", "surrogateescape"))
                headers[f"x-object-meta-{lower_name(meta_name)}"] = text
    return headers


def _header_text(data: bytes) -> str:
    """Return bytes as a header value on one line."""
    return data.translate(_LINE_BREAKS_TO_SPACES).decode("latin-1").strip()


_LINE_BREAKS_TO_SPACES = bytes(32 if byte in b"\r\n\0" else byte for byte in range(256))
