"""Hints about errors, added to the bodies that OpenStack Swift sends.

The body begins as the peer's, for clients that match its text; a paragraph of class ``hint`` follows. Only
the default pages of a status get one: other bodies say already what is wrong. The texts stand alone because
they are a table for editing.
"""

from __future__ import annotations

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTML, Response, default_body

_HTML_END = b"</html>"
_NEWER = (
    "A newer change of it is stored: compare the clocks of the proxies, or the X-Timestamp that was sent."
)
#: (kind of what the path names, status) → method → hint; ``""`` is every other method.
_HINTS: dict[tuple[str, int], dict[str, str]] = {
    ("account", 404): {
        "": "There is no such account. Accounts are made by PUT, or by their first container where "
        "account_autocreate is on.",
    },
    ("account", 409): {"": _NEWER},
    ("container", 404): {
        "PUT": "The account does not exist, and this server does not make accounts (account_autocreate).",
        "": "There is no such container. Names are case-sensitive.",
    },
    ("container", 409): {
        "DELETE": "The container is not empty: delete its objects, and its versions, first.",
        "PUT": "The container exists with another storage policy, which cannot be changed.",
        "": _NEWER,
    },
    ("object", 404): {
        "PUT": "The container does not exist: make it first with PUT.",
        "": "There is no such object, or no such container. Names are case-sensitive.",
    },
    ("object", 409): {"": _NEWER},
    ("object", 422): {
        "PUT": "The ETag that was sent is not the MD5 of the body that arrived: send the object again.",
    },
}
#: The statuses that have hints.
HINTED = frozenset(status for _kind, status in _HINTS)


def add_hint(request: Request, response: Response) -> None:
    """Add the hint for an error to a default page; leave every other response alone."""
    entity = request.entity
    hints = None if entity is None else _HINTS.get((entity.path.kind, response.status))
    if hints is None or environkeys.SOURCE in request.env or request.method == "HEAD":
        return
    hint = hints.get(request.method) or hints.get("")
    if not hint or response.body != default_body(response.status):
        return
    if not response.headers.get("content-type", HTML).startswith("text/html"):
        return
    page = response.body.removesuffix(_HTML_END) + f'<p class="hint">{hint}</p></html>'.encode()
    response.body = page
    if "content-length" in response.headers:
        response.headers["content-length"] = str(len(page))


def front_page(request: Request) -> Response:
    """Respond to ``/`` with a page for browsers."""
    text = (
        "<!DOCTYPE html>\n<html><head><title>Object storage</title></head><body>\n"
        "<h1>Object storage</h1>\n"
        "<p>This is the API of OpenStack Swift and of S3, for programs such as <code>swift</code>, "
        "<code>rclone</code> and <code>aws</code>. Ask your operator where to get a token.</p>\n"
        '<p><a href="/info">What this service can do</a></p>\n'
        "</body></html>\n"
    )
    body = b"" if request.method == "HEAD" else text.encode()
    return Response(200, {"content-type": HTML, "content-length": str(len(text.encode()))}, body)
