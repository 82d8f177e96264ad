"""Query strings of listing requests to backends."""

from __future__ import annotations

from urllib.parse import quote

from swift.base.entity import NotUTF8
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTML, TEXT, HTTPError

_ACCOUNT_PARAMETERS = ("prefix", "marker", "end_marker", "delimiter", "limit", "reverse")
_CONTAINER_PARAMETERS = (*_ACCOUNT_PARAMETERS, "path")


def listing_query(request: Request, kind: str) -> str:
    """Return the client's parameters for a backend, as JSON unless a filter in front chose another format.

    Raises ``HTTPError`` 400 for parameters of a listing of this ``kind`` (``account`` or ``container``) that
    are not UTF-8 (public-api.md §7.3); a HEAD lists nothing.
    """
    if not request.query:
        return "format=json"
    lists = request.method == "GET"
    text = lists and environkeys.LISTING_TEXT in request.env
    is_account = kind == "account"
    try:
        for name in (_ACCOUNT_PARAMETERS if is_account else _CONTAINER_PARAMETERS) if lists else ():
            request.param_utf8(name)
    except NotUTF8 as error:
        raise HTTPError(400, str(error), content_type=HTML if is_account else TEXT)
    params = dict(request.params)
    if is_account:
        # Account listings ignore ``path``.
        params.pop("path", None)
    if text:
        # A third of the cost: no JSON is encoded by the server and decoded here.
        params["format"] = "plain"
    else:
        params.setdefault("format", "json")
    return "&".join(
        f"{quote(name.encode('latin-1'), safe='')}={quote(value.encode('latin-1'), safe='')}"
        for name, value in params.items()
    )
