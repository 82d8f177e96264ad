"""HTML pages for the listings of web site containers; pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from swift.base.documents import JsonObject

_SIZE_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DEFAULT_STYLE = """  <style type="text/css">
   h1 {font-size: 1em; font-weight: bold;}
   th {text-align: left; padding: 0px 1em 0px 1em;}
   td {padding: 0px 1em 0px 1em;}
   a {text-decoration: none;}
  </style>
"""
_TABLE_HEADING = """   <tr id="heading">
    <th class="colname">Name</th>
    <th class="colsize">Size</th>
    <th class="coldate">Date</th>
   </tr>
"""
_DISABLED_STYLE = (
    '  <style type="text/css">\n   h1 {font-size: 1em; font-weight: bold;}\n   p {font-size: 2}\n  </style>\n'
)
_DISABLED_BODY = (
    "<body>  <h1>Web Listing Disabled</h1>   <p>The owner of this web site has disabled web listing."
    "   <p>If you are the owner of this web site, you can enable   web listing by setting "
    "X-Container-Meta-Web-Listings.</p>"
)


def format_size(size: int) -> str:
    """Return bytes in whole binary units, each rounded from the unit before."""
    unit = 0
    while size > 1023 and unit < len(_SIZE_UNITS) - 1:
        size = round(size / 1024)
        unit += 1
    return f"{size}{_SIZE_UNITS[unit]}"


def render_style_link(css: str, depth: int) -> str:
    """Return the style sheet link of a page ``depth`` pseudo-directories deep.

    ``css`` is a URL, an absolute or a relative path.
    """
    if not css.startswith(("/", "http://", "https://")):
        css = "../" * depth + css
    return f'  <link rel="stylesheet" type="text/css" href="{quote(css, safe=":/")}" />\n'


def render_listing_page(
    rows: Iterable[JsonObject], *, title: str, prefix: str, css: str, query: str = "", top: str = ""
) -> bytes:
    """Return the listing page of a pseudo-directory from the JSON rows of a container listing.

    All its links carry ``query``; none leads above ``top``.
    """
    query = escape(f"?{query}" if query else "")
    rows = list(rows)
    title_html = escape(title)
    style = render_style_link(css, prefix.count("/")) if css else _DEFAULT_STYLE
    parts = [
        f"<!DOCTYPE html>\n<html>\n <head>\n  <title>Listing of {title_html}</title>\n"
        f"{style} </head>\n <body>\n",
        f'  <h1 id="title">Listing of {title_html}</h1>\n  <table id="listing">\n{_TABLE_HEADING}',
    ]
    if prefix and _parent(prefix).startswith(top):
        parts.append(_render_row("item", f"../{query}", "../", ident="parent"))
    for row in rows:
        if "subdir" in row:
            name = row["subdir"][len(prefix) :]
            parts.append(_render_row("item subdir", f"./{_quote_href(name)}{query}", name))
    for row in rows:
        if "name" in row:
            name = row["name"][len(prefix) :]
            kinds = " ".join(f"type-{part}" for part in row["content_type"].lower().split("/"))
            modified = row["last_modified"].partition(".")[0].replace("T", " ")
            size = format_size(row["bytes"])
            parts.append(_render_row(f"item {kinds}", f"./{_quote_href(name)}{query}", name, size, modified))
    parts.append("  </table>\n </body>\n</html>\n")
    return "".join(parts).encode("utf-8", "surrogateescape")


def _parent(folder: str) -> str:
    """Return the parent of a pseudo-directory; both end with a slash, except for the root."""
    return folder[: folder.rstrip("/").rfind("/") + 1]


def _quote_href(name: str) -> str:
    """Return a name as a relative link; dots are quoted, so that it never leads upwards."""
    return quote(name, errors="surrogateescape").replace(".", "%2E")


def _render_row(
    kind: str, href: str, name: str, size: str = "&nbsp;", date: str = "&nbsp;", *, ident: str = ""
) -> str:
    id_attribute = f'id="{ident}" ' if ident else ""
    return (
        f'   <tr {id_attribute}class="{escape(kind)}">\n'
        f'    <td class="colname"><a href="{href}">{escape(name)}</a></td>\n'
        f'    <td class="colsize">{size}</td>\n'
        f'    <td class="coldate">{date}</td>\n'
        "   </tr>\n"
    )


def render_disabled_page(*, title: str, prefix: str, css: str, index: str) -> bytes:
    """Return the page for a container without an index and with disabled listings."""
    style = render_style_link(css, prefix.count("/")) if css else _DISABLED_STYLE
    lines = [
        f"<!DOCTYPE html>\n<html>\n<head>\n<title>Listing of {escape(title)}</title>\n{style}</head>\n",
        _DISABLED_BODY,
    ]
    if index:
        lines.append(
            "<h1>Index File Not Found</h1> <p>The owner of this web site has set  "
            f"<b>X-Container-Meta-Web-Index: {escape(index)}</b>.  However, this file is not found.</p>"
        )
    lines.append(" </body>\n</html>\n")
    return "".join(lines).encode("utf-8", "surrogateescape")
