"""The files that pages load: htmx, the console's script and its style sheet."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from pathlib import Path

from swift.console.core.visit import Access, Route, Visit
from swift.http.response import Response

_FOLDER = Path(__file__).parent / "static"
#: File → content type.
_TYPES = {
    "htmx.min.js": "text/javascript; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "operators.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def _serve(name: str, visit: Visit) -> Response:
    data = (_FOLDER / name).read_bytes()
    tag = f'"{sha256(data).hexdigest()[:32]}"'
    # A release may change them: browsers ask whether theirs is still the same.
    headers = {**visit.headers(), "content-type": _TYPES[name], "cache-control": "no-cache", "etag": tag}
    if visit.request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, data)


STATIC = tuple(Route("GET", f"/static/{name}", partial(_serve, name), Access.ANYONE) for name in _TYPES)
