"""Reports of operations on many objects, as text, JSON or XML (spec: middleware.md §5.1, §7).

A report is some named values and a list of (quoted name, what went wrong). Pure: who makes one and when it is
sent is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from xml.sax.saxutils import escape

from swift.http.negotiate import ListingFormat
from swift.http.response import default_body, reason_phrase

#: (percent-quoted name, what went wrong with it).
Problem = tuple[str, str]


def status_line(status: int) -> str:
    """Return a status line such as ``404 Not Found``."""
    return f"{status} {reason_phrase(status)}"


def plain_explanation(status: int) -> str:
    """Return the text of a status's default body without markup: reason and explanation on two lines."""
    text = default_body(status).decode()
    inner = text.removeprefix("<html><h1>").removesuffix("</p></html>")
    return inner.replace("</h1><p>", "\n")


def render_report(
    shape: ListingFormat, root: str, values: Mapping[str, str | int], problems: Sequence[Problem]
) -> bytes:
    """Render the report in ``shape``; ``root`` is the outer XML element.

    JSON has the values in their order, text and XML sort them.
    """
    if shape is ListingFormat.JSON:
        return dumps({**values, "Errors": [list(problem) for problem in problems]}).encode()
    if shape.is_xml:
        return _as_xml(root, values, problems)
    lines = [f"{name}: {values[name]}" for name in sorted(values)]
    lines += ["Errors:", *(f"{name}, {what}" for name, what in problems)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _as_xml(root: str, values: Mapping[str, str | int], problems: Sequence[Problem]) -> bytes:
    lines = [f"<{root}>"]
    for name in sorted(values):
        element = name.lower().replace(" ", "_")
        lines.append(f"<{element}>{escape(str(values[name]))}</{element}>")
    lines.append("<errors>")
    lines += [
        f"<object><name>{escape(name)}</name><status>{escape(what)}</status></object>"
        for name, what in problems
    ]
    lines += ["</errors>", f"</{root}>"]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
