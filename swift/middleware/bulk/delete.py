"""A list of objects and containers is deleted, with the rights of who sent it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, unquote_to_bytes

from swift import green
from swift.gateway.subrequest import Forward, open_response
from swift.http.body import CHUNK_BYTES, BodyError
from swift.http.request import Request
from swift.middleware.bulk.extract import sub_request
from swift.middleware.bulk.report import BulkReport, status_line

#: No line of a list is longer, bytes.
LINE_BYTES_MAX = 1 << 14
#: Wait before a container that is not empty yet is tried again: this to the power of the attempt, seconds.
_RETRY_BASE = 1.5


class BadList(BodyError):
    """The list cannot be used; the text is what the client is told."""

    status = 400


class TooMany(BadList):
    """The list is too long."""

    status = 413


@dataclass(frozen=True, slots=True)
class DeleteLimits:
    """Limits of one bulk delete: number of objects, of failures, and the rate."""

    names: int
    failures: int
    concurrency: int
    retries: int
    name_bytes: int


class Deletion:
    """One list of names."""

    def __init__(self, request: Request, forward: Forward, limits: DeleteLimits):
        assert request.entity is not None, "lists are of an account"
        self.report = BulkReport("delete", {"Number Deleted": 0, "Number Not Found": 0})
        self._request = request
        self._forward = forward
        self._limits = limits
        entity = request.entity
        self._root = f"/{entity.version}/{quote(entity.path.account, safe='~')}"

    def run(self) -> BulkReport:
        """Do it all, objects before containers; the report."""
        report = self.report
        try:
            names = list(self._names())
            if not names:
                raise BadList("Invalid bulk delete.")
        except BodyError as error:
            report.fail(error.status, str(error) if isinstance(error, BadList) else "")
            return report
        objects = [name for name in names if b"/" in name.strip(b"/")]
        containers = [name for name in names if b"/" not in name.strip(b"/")]
        self._delete(objects, self._ask)
        self._delete(containers, self._ask_container)
        report.verdict(good=200)
        return report

    def _names(self) -> Iterator[bytes]:
        """Yield the unquoted names of the list; raises ``BadList``."""
        count, rest = 0, b""
        while data := self._request.body.read(CHUNK_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.strip():
                    count += 1
                    yield self._name(line, count)
            if len(rest) > LINE_BYTES_MAX:
                # Its end may never come, though there is nothing but spaces in it.
                raise BadList("Invalid File Name")
        if rest.strip():
            yield self._name(rest, count + 1)

    def _name(self, line: bytes, count: int) -> bytes:
        if count > self._limits.names:
            raise TooMany(f"Maximum Bulk Deletes: {self._limits.names} per request")
        name = unquote_to_bytes(line.strip())
        if len(line) > LINE_BYTES_MAX or len(name) > self._limits.name_bytes:
            raise BadList("Invalid File Name")
        return name

    def _delete(self, names: list[bytes], ask: Callable[[bytes], int]) -> None:
        step = self._limits.concurrency
        for start in range(0, len(names), step):
            if self.report.status:
                return
            batch = names[start : start + step]
            statuses = green.gather([partial(ask, name) for name in batch])
            for name, status in zip(batch, statuses, strict=True):
                self._count(name, status)

    def _count(self, name: bytes, status: int) -> None:
        report = self.report
        if status // 100 == 2:
            report.counts["Number Deleted"] += 1
        elif status == 404:
            report.counts["Number Not Found"] += 1
        elif not report.status:
            report.errors.append((quote(name, safe="/~"), status_line(status)))
            if len(report.errors) >= self._limits.failures:
                report.fail(400, "Max delete failures exceeded")

    def _ask(self, name: bytes) -> int:
        path = f"{self._root}/{quote(name.lstrip(b'/'), safe='/~')}"
        sub = sub_request(self._request, "DELETE", path, None, b"", source="BD")
        with open_response(self._forward, sub) as response:
            return response.status

    def _ask_container(self, name: bytes) -> int:
        if not name.strip(b"/"):
            # That would be the account.
            return 403
        status = self._ask(name)
        for attempt in range(self._limits.retries):
            if status != 409:
                break
            green.sleep(_RETRY_BASE ** (attempt + 1))
            status = self._ask(name)
        return status
