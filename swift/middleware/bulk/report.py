"""Final report of a bulk request: counts, a status and the failures, in the requested format."""

from __future__ import annotations

from dataclasses import dataclass, field

from swift.http.negotiate import ListingFormat
from swift.http.report import render_report, status_line


@dataclass
class BulkReport:
    """Counts, failures and the final status of a bulk request; ``root_element`` is that of XML."""

    root_element: str
    #: Counters by their names in the report.
    counts: dict[str, int]
    status: str = ""
    body: str = ""
    #: (Percent-quoted name, status line) of each failure.
    errors: list[tuple[str, str]] = field(default_factory=list)

    @property
    def status_code(self) -> int:
        """The status as a number; the status must be set."""
        return int(self.status[:3])

    def fail(self, status: int, body: str = "") -> None:
        """Record that the whole request failed."""
        self.status, self.body = status_line(status), body

    def set_final_status(self, *, success_status: int) -> None:
        """Set the final status from the failures unless a status is set already."""
        if self.status:
            return
        if not self.errors:
            self.status = status_line(success_status)
        elif all(status.startswith("5") for _, status in self.errors):
            self.status = status_line(502)
        else:
            self.status = status_line(400)

    def render(self, report_format: ListingFormat) -> bytes:
        """Return the report in one of the formats of listings."""
        values: dict[str, str | int] = {
            "Response Status": self.status,
            "Response Body": self.body,
            **self.counts,
        }
        return render_report(report_format, self.root_element, values, self.errors)
