"""Listings as text and XML (spec: public-api.md §7.2).

Rows are the parsed JSON rows of a listing: dictionaries with ``name`` or ``subdir`` and the other keys of
§7.2. Only rendering happens here; where rows come from and which of them a client may see is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json import dumps
from typing import Any

from swift.http.negotiate import ListingFormat

Row = Mapping[str, Any]


DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

#: Elements of account rows and of container rows in XML, in order.
ACCOUNT_FIELDS = ("name", "count", "bytes", "last_modified", "storage_policy")
CONTAINER_FIELDS = ("name", "hash", "bytes", "content_type", "last_modified")


def as_json(rows: Iterable[Row]) -> bytes:
    """Return a JSON array: ASCII, separators ``", "`` and ``": "``."""
    return dumps(list(rows)).encode("ascii")


def as_text(rows: Iterable[Row]) -> bytes:
    """Return one name a line, each line ended; sub-directories are their own text."""
    lines = [row["subdir"] if "subdir" in row else row["name"] for row in rows]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def account_xml(rows: Iterable[Row], account: str) -> bytes:
    """Return the containers of an account."""
    parts = [DECLARATION, f'<account name="{_escape_attribute(account)}">\n']
    for row in rows:
        if "subdir" in row:
            parts.append(f'<subdir name="{_escape_attribute(row["subdir"])}" />\n')
        else:
            parts.append(f"<container>{_render_fields(row, ACCOUNT_FIELDS)}</container>\n")
    parts.append("</account>")
    return "".join(parts).encode("utf-8", "surrogateescape")


def container_xml(rows: Iterable[Row], container: str) -> bytes:
    """Return the objects of a container."""
    children = []
    for row in rows:
        if "subdir" in row:
            subdir = row["subdir"]
            children.append(
                f'<subdir name="{_escape_attribute(subdir)}"><name>{_escape_text(subdir)}</name></subdir>'
            )
        else:
            children.append(f"<object>{_render_fields(row, CONTAINER_FIELDS)}</object>")
    name = _escape_attribute(container)
    if not children:
        return f'{DECLARATION}<container name="{name}" />'.encode("utf-8", "surrogateescape")
    body = f'{DECLARATION}<container name="{name}">{"".join(children)}</container>'
    return body.encode("utf-8", "surrogateescape")


def render_account(shape: ListingFormat, rows: Iterable[Row], account: str) -> bytes:
    """Return an account listing in ``shape``; ``account`` is decoded text."""
    if shape is ListingFormat.JSON:
        return as_json(rows)
    return account_xml(rows, account) if shape.is_xml else as_text(rows)


def render_container(shape: ListingFormat, rows: Iterable[Row], container: str) -> bytes:
    """Return a container listing in ``shape``; ``container`` is decoded text."""
    if shape is ListingFormat.JSON:
        return as_json(rows)
    return container_xml(rows, container) if shape.is_xml else as_text(rows)


def _render_fields(row: Row, names: tuple[str, ...]) -> str:
    return "".join(f"<{name}>{_escape_text(str(row[name]))}</{name}>" for name in names if name in row)


def _escape_text(value: str) -> str:
    """Escape element text; the quote stays unescaped."""
    if "&" not in value and "<" not in value and ">" not in value:
        return value
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escape_attribute(value: str) -> str:
    """Escape attribute text, including the quote and line breaks, which a parser would fold to spaces."""
    escaped = _escape_text(value).replace('"', "&quot;")
    return escaped.replace("\r", "&#13;").replace("\n", "&#10;").replace("\t", "&#09;")
