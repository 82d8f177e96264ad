"""Deletion of a list of objects and containers, with the sender's rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, unquote_to_bytes

from swift import green
from swift.gateway.subrequest import Forward, ReportedChange, open_response, report_change
from swift.http.body import CHUNK_BYTES, BodyError
from swift.http.report import status_line
from swift.http.request import Request
from swift.middleware.bulk.extract import make_bulk_subrequest
from swift.middleware.bulk.report import BulkReport

#: Longest line of a list, bytes.
LINE_BYTES_MAX = 1 << 14
#: Seconds before the next attempt to delete a container that is not empty: this to the power of the attempt.
_RETRY_BASE = 1.5


class InvalidList(BodyError):
    """An invalid list; the text is for the client."""

    status = 400


class TooManyNames(InvalidList):
    """The list has too many names."""

    status = 413


@dataclass(frozen=True, slots=True)
class DeleteLimits:
    """Limits of one bulk deletion: names, failures, concurrency, retries and bytes of a name."""

    names_max: int
    failures_max: int
    concurrency: int
    retries: int
    name_bytes_max: int


class BulkDeletion:
    """Deletes the names of one list."""

    def __init__(self, request: Request, forward: Forward, limits: DeleteLimits):
        assert request.entity is not None, "lists are of an account"
        self.report = BulkReport("delete", {"Number Deleted": 0, "Number Not Found": 0})
        self._request = request
        self._forward = forward
        self._limits = limits
        entity = request.entity
        self._account_url = f"/{entity.version}/{quote(entity.path.account, safe='~')}"

    def run(self) -> BulkReport:
        """Delete objects, then containers; return the report."""
        report = self.report
        try:
            names = list(self._read_names())
            if not names:
                raise InvalidList("Invalid bulk delete.")
        except BodyError as error:
            report.fail(error.status, str(error) if isinstance(error, InvalidList) else "")
            return report
        objects = [name for name in names if b"/" in name.strip(b"/")]
        containers = [name for name in names if b"/" not in name.strip(b"/")]
        self._delete_all(objects, self._delete_object)
        self._delete_all(containers, self._delete_container)
        report.set_final_status(success_status=200)
        return report

    def _read_names(self) -> Iterator[bytes]:
        """Yield the unquoted names of the list; raises ``InvalidList``."""
        count, rest = 0, b""
        while data := self._request.body.read(CHUNK_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.strip():
                    count += 1
                    yield self._parse_name(line, count)
            if len(rest) > LINE_BYTES_MAX:
                # A line of spaces could go on forever.
                raise InvalidList("Invalid File Name")
        if rest.strip():
            yield self._parse_name(rest, count + 1)

    def _parse_name(self, line: bytes, count: int) -> bytes:
        if count > self._limits.names_max:
            raise TooManyNames(f"Maximum Bulk Deletes: {self._limits.names_max} per request")
        name = unquote_to_bytes(line.strip())
        if len(line) > LINE_BYTES_MAX or len(name) > self._limits.name_bytes_max:
            raise InvalidList("Invalid File Name")
        return name

    def _delete_all(self, names: list[bytes], delete: Callable[[bytes], int]) -> None:
        step = self._limits.concurrency
        for start in range(0, len(names), step):
            if self.report.status:
                return
            batch = names[start : start + step]
            statuses = green.gather([partial(delete, name) for name in batch])
            for name, status in zip(batch, statuses, strict=True):
                self._count_result(name, status)

    def _count_result(self, name: bytes, status: int) -> None:
        report = self.report
        if status // 100 == 2:
            report.counts["Number Deleted"] += 1
        elif status == 404:
            report.counts["Number Not Found"] += 1
        elif not report.status:
            report.errors.append((quote(name, safe="/~"), status_line(status)))
            if len(report.errors) >= self._limits.failures_max:
                report.fail(400, "Max delete failures exceeded")

    def _delete_object(self, name: bytes) -> int:
        return self._report(self._send_delete(name))

    def _delete_container(self, name: bytes) -> int:
        if not name.strip(b"/"):
            # An empty name would be the account.
            return 403
        change = self._send_delete(name)
        for attempt in range(self._limits.retries):
            if change.status != 409:
                break
            green.sleep(_RETRY_BASE ** (attempt + 1))
            change = self._send_delete(name)
        return self._report(change)

    def _send_delete(self, name: bytes) -> ReportedChange:
        path = f"{self._account_url}/{quote(name.lstrip(b'/'), safe='/~')}"
        sub = make_bulk_subrequest(self._request, "DELETE", path, None, b"", source="BD")
        with open_response(self._forward, sub) as response:
            return ReportedChange("DELETE", path, response.status, "bulk-delete", sub.env)

    def _report(self, change: ReportedChange) -> int:
        report_change(self._request, change)
        return change.status
