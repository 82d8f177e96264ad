"""Final report of a bulk request: counts, a status and the failures, in the requested format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape

from swift.http.negotiate import ListingFormat
from swift.http.response import reason_phrase


def status_line(status: int) -> str:
    """``404 Not Found``."""
    return f"{status} {reason_phrase(status)}"


@dataclass
class BulkReport:
    """Filled in as the work goes on; ``root`` names it in XML."""

    root: str
    #: What was counted, by the words that clients see.
    counts: dict[str, int]
    status: str = ""
    body: str = ""
    #: Percent-quoted names and why they failed.
    errors: list[tuple[str, str]] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The status as a number; there must be one."""
        return int(self.status[:3])

    def fail(self, status: int, body: str = "") -> None:
        """Note that the whole request failed."""
        self.status, self.body = status_line(status), body

    def verdict(self, *, good: int) -> None:
        """Set the status that follows from the failures, unless one is set."""
        if self.status:
            return
        if not self.errors:
            self.status = status_line(good)
        elif all(status.startswith("5") for _, status in self.errors):
            self.status = status_line(502)
        else:
            self.status = status_line(400)

    def render(self, shape: ListingFormat) -> bytes:
        """Return the report in one of the formats of listings."""
        facts = {**self.counts, "Response Body": self.body, "Response Status": self.status}
        if shape is ListingFormat.JSON:
            ordered = {"Response Status": self.status, "Response Body": self.body, **self.counts}
            return json.dumps({**ordered, "Errors": self.errors}).encode()
        if shape.is_xml:
            lines = [f"<{self.root}>"]
            for name, value in sorted(facts.items()):
                tag = name.replace(" ", "_").lower()
                lines.append(f"<{tag}>{escape(str(value))}</{tag}>")
            lines.append("<errors>")
            lines += [
                f"<object><name>{escape(name)}</name><status>{escape(status)}</status></object>"
                for name, status in self.errors
            ]
            lines += ["</errors>", f"</{self.root}>", ""]
            return "\n".join(lines).encode()
        lines = [f"{name}: {value}" for name, value in sorted(facts.items())]
        lines += ["Errors:", *(f"{name}, {status}" for name, status in self.errors), ""]
        return "\n".join(lines).encode()
