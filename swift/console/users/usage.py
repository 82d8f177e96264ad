"""The usage of the account: objects and bytes by storage policy, quotas, and the largest buckets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from swift.base.documents import JsonObject
from swift.console.core.rendering import inert_cell
from swift.console.core.visit import Route, Visit
from swift.http.body import IterableBody
from swift.http.response import Response

PAGE = 1000
#: Buckets that the page counts; the file has all.
_SHOWN_PAGES = 20


def show_usage(visit: Visit) -> Response:
    """Show the usage of the account, and its largest buckets."""
    headers = visit.api.read("HEAD").headers
    rows = [row for _, page in zip(range(_SHOWN_PAGES), _pages(visit), strict=False) for row in page]
    largest = sorted(rows, key=lambda row: int(row["bytes"]), reverse=True)[:20]
    return visit.page(
        "usage.html",
        containers=int(headers.get("x-account-container-count", "0")),
        objects=int(headers.get("x-account-object-count", "0")),
        size=int(headers.get("x-account-bytes-used", "0")),
        quota=_quota(headers.get("x-account-meta-quota-bytes", "")),
        policies=_policies(headers),
        largest=largest,
        counted=len(rows),
    )


def download_usage(visit: Visit) -> Response:
    """Return the usage of each bucket as CSV."""
    pages = _pages(visit)
    headers = {
        **visit.headers(),
        "content-type": "text/csv; charset=utf-8",
        "content-disposition": 'attachment; filename="usage.csv"',
    }
    first = next(pages, [])
    return Response(200, headers, IterableBody(_csv(first, pages)))


def _csv(first: list[JsonObject], pages: Iterator[list[JsonObject]]) -> Iterator[bytes]:
    yield b"bucket,objects,bytes,changed\r\n"
    page: list[JsonObject] | None = first
    while page:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        for row in page:
            writer.writerow((inert_cell(str(row["name"])), row["count"], row["bytes"], row["last_modified"]))
        yield text.getvalue().encode()
        page = next(pages, None)


def _pages(visit: Visit) -> Iterator[list[JsonObject]]:
    marker = ""
    while rows := visit.api.listing(limit=str(PAGE), marker=marker):
        yield rows
        marker = str(rows[-1]["name"])


def _quota(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _policies(headers: dict[str, str]) -> list[tuple[str, int, int]]:
    """Return name, objects and bytes of each storage policy."""
    start, end = "x-account-storage-policy-", "-object-count"
    found = (name for name in headers if name.startswith(start) and name.endswith(end))
    names = [name[len(start) : -len(end)] for name in found]
    return [
        (
            name,
            int(headers[f"{start}{name}{end}"]),
            int(headers.get(f"{start}{name}-bytes-used", "0")),
        )
        for name in sorted(names)
    ]


ROUTES = (
    Route("GET", "/usage", show_usage),
    Route("GET", "/usage.csv", download_usage),
)
