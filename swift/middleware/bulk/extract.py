"""An archive's files become objects, one PUT each, with the rights of who sent the archive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from swift.gateway.subrequest import Forward, make_subrequest, open_response
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http.body import CHUNK_BYTES, BodyError, RequestBody
from swift.http.headers import HeaderMap, lower_name
from swift.http.request import Request
from swift.middleware.bulk.report import BulkReport, status_line
from swift.middleware.bulk.unpack import Unpacked
from swift.wire.tar import BadTar, Member, MemberKind, TarReader

#: Headers of the archive's request that are for every file in it.
_FOR_ALL = ("x-delete-at", "x-delete-after")
TOKENS = ("x-auth-token", "x-storage-token", "x-service-token")
_XATTRS = ("SCHILY.xattr.user.", "LIBARCHIVE.xattr.user.")


class BrokenArchive(BodyError):
    """The archive ended or broke within a file (400)."""

    status = 400


class MemberBody(RequestBody):
    """A member of an archive as the body of a PUT."""

    def __init__(self, tar: TarReader, size: int):
        self.length: int | None = size
        self.received = 0
        self._tar = tar

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``; raises ``BrokenArchive``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        try:
            data = self._tar.read_data(size)
        except BadTar as error:
            raise BrokenArchive(str(error))
        self.received += len(data)
        return data


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """Limits of one archive extraction: number of files and of failures."""

    containers: int
    failures: int


class Extraction:
    """One archive."""

    def __init__(self, request: Request, forward: Forward, kind: str, limits: ExtractLimits):
        assert request.entity is not None, "archives go to entities"
        self.report = BulkReport("extract", {"Number Files Created": 0})
        self._request = request
        self._forward = forward
        self._limits = limits
        entity = request.entity
        self._root = f"/{entity.version}/{quote(entity.path.account, safe='~')}"
        below = [part.strip("/") for part in entity.path[1:] if part]
        self._folder = "/".join(below).encode("utf-8")
        self._container = self._folder.partition(b"/")[0]
        self._tar = TarReader(Unpacked(request.body.read, kind).read)
        self._containers: set[bytes] = set()
        self._made = 0

    def run(self) -> BulkReport:
        """Do it all; the report."""
        seen = False
        if self._is_unknown():
            self.report.fail(401)
            return self.report
        try:
            while not self.report.status and (member := self._tar.next()) is not None:
                seen = self._member(member) or seen
                self._skip()
        except BadTar as error:
            self.report.fail(400, f"Invalid Tar File: {error}")
        except BodyError as error:
            self.report.fail(error.status)
        if not seen and not self.report.status:
            self.report.fail(400, "Invalid Tar File: No Valid Files")
        self.report.verdict(good=201)
        return self.report

    def _is_unknown(self) -> bool:
        """Return True if the sender is not known, who may store nothing: an archive costs work to unpack."""
        path = self._root + (f"/{quote(self._container, safe='~')}" if self._container else "")
        return self._ask("HEAD", path) == 401

    def _skip(self) -> None:
        while self._tar.left and not self.report.status:
            self._tar.read_data(CHUNK_BYTES)

    def _member(self, member: Member) -> bool:
        """Store a member; whether it was a file with a place to go."""
        name = _plain_name(member.name)
        path = self._folder + b"/" + name if self._folder else name
        container, slash, obj = path.partition(b"/")
        if member.kind is MemberKind.OTHER or not name or not slash or not obj or not container:
            return False
        if member.kind is MemberKind.SPARSE:
            self._failed(path, 400)
            return True
        if container not in self._containers:
            self._make_container(container)
        if not self.report.status:
            self._put(path, member)
        return True

    def _make_container(self, container: bytes) -> None:
        self._containers.add(container)
        raw_path = f"{self._root}/{quote(container, safe='~')}"
        status = self._ask("HEAD", raw_path)
        if status == 404:
            if self._made >= self._limits.containers:
                text = f"More than {self._limits.containers} containers to create from tar."
                self.report.fail(400, text)
                return
            self._made += 1
            status = self._ask("PUT", raw_path)
        if status == 401:
            self.report.fail(401)
        elif status // 100 != 2:
            self._note(raw_path, status)

    def _put(self, path: bytes, member: Member) -> None:
        headers = {"content-length": str(member.size), **self._headers_for_all(), **_attributes(member)}
        raw_path = f"{self._root}/{quote(path, safe='/~')}"
        body = MemberBody(self._tar, member.size)
        try:
            status = self._ask("PUT", raw_path, headers, body)
        except WriteNotStored as error:
            status = error.response.status
        if status // 100 == 2:
            self.report.counts["Number Files Created"] += 1
        elif status == 401:
            self.report.fail(401)
        else:
            self._failed(path, status)

    def _failed(self, path: bytes, status: int) -> None:
        self._note(quote(path, safe="/~"), status)

    def _note(self, name: str, status: int) -> None:
        self.report.errors.append((name, status_line(status)))
        if len(self.report.errors) >= self._limits.failures:
            self.report.verdict(good=201)

    def _headers_for_all(self) -> HeaderMap:
        sent = self._request.headers
        return {n: v for n, v in sent.items() if n in _FOR_ALL or n.startswith("x-object-meta-")}

    def _ask(
        self, method: str, raw_path: str, headers: HeaderMap | None = None, body: RequestBody | bytes = b""
    ) -> int:
        sub = sub_request(self._request, method, raw_path, headers, body, source="EA")
        with open_response(partial(forward_write, self._forward), sub) as response:
            return response.status


def sub_request(
    request: Request,
    method: str,
    raw_path: str,
    headers: HeaderMap | None,
    body: RequestBody | bytes,
    *,
    source: str,
) -> Request:
    """Return a request of the same client: who it is is found out again further right."""
    sent = request.headers
    tokens = {name: sent[name] for name in TOKENS if name in sent}
    merged = {"content-length": "0", **tokens, **(headers or {})}
    agent = f"%(orig)s Bulk{'Extract' if source == 'EA' else 'Delete'}"
    return make_subrequest(request, method, raw_path, headers=merged, body=body, source=source, agent=agent)


def _plain_name(name: bytes) -> bytes:
    """Return a member's name without what only says that it begins here."""
    while name.startswith((b"/", b"./")):
        name = name[1:] if name.startswith(b"/") else name[2:]
    return name


def _attributes(member: Member) -> HeaderMap:
    """Type and metadata that the archive keeps as extended attributes of the file."""
    headers: HeaderMap = {}
    for prefix in _XATTRS:
        for name, value in member.attributes.items():
            if not name.startswith(prefix):
                continue
            key, text = name[len(prefix) :], _header_text(value)
            if key == "mime_type":
                headers["content-type"] = text
            elif key.startswith("meta."):
                word = _header_text(key[5:].encode("utf-8", "surrogateescape"))
                headers[f"x-object-meta-{lower_name(word)}"] = text
    return headers


def _header_text(data: bytes) -> str:
    """Bytes as a header may have them: on one line."""
    return data.translate(_ONE_LINE).decode("latin-1").strip()


_ONE_LINE = bytes(32 if byte in b"\r\n\0" else byte for byte in range(256))
