"""Final report of a bulk request: counts, a status and the failures, in the requested format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape

from swift.http.negotiate import ListingFormat
from swift.http.response import reason_phrase


def status_line(status: int) -> str:
    """Return a status with its reason, such as ``404 Not Found``."""
    return f"{status} {reason_phrase(status)}"


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
        fields = {**self.counts, "Response Body": self.body, "Response Status": self.status}
        if report_format is ListingFormat.JSON:
            ordered = {"Response Status": self.status, "Response Body": self.body, **self.counts}
            return json.dumps({**ordered, "Errors": self.errors}).encode()
        if report_format.is_xml:
            lines = [f"<{self.root_element}>"]
            for name, value in sorted(fields.items()):
                tag = name.replace(" ", "_").lower()
                lines.append(f"<{tag}>{escape(str(value))}</{tag}>")
            lines.append("<errors>")
            lines += [
                f"<object><name>{escape(name)}</name><status>{escape(status)}</status></object>"
                for name, status in self.errors
            ]
            lines += ["</errors>", f"</{self.root_element}>", ""]
            return "\n".join(lines).encode()
        lines = [f"{name}: {value}" for name, value in sorted(fields.items())]
        lines += ["Errors:", *(f"{name}, {status}" for name, status in self.errors), ""]
        return "\n".join(lines).encode()
