"""A visitor of a bucket's web site: pages for GET and HEAD, with nobody's rights but everybody's.

Objects are read as by an S3 client without a signature, so that policies and ACLs decide.
"""

from __future__ import annotations

from collections.abc import Callable

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.http.status import reason_of
from swift.s3.errors import S3Error
from swift.s3.metadata import REDIRECT
from swift.s3.website import BucketWebsite, WebsiteRedirect, error_page

#: Reads an object; raises ``S3Error``.
Read = Callable[[str], Response]
_HTML = "text/html; charset=utf-8"


def visit(request: Request, site: BucketWebsite, path: str, read: Read) -> Response:
    """The page at a path (decoded, without its first slash)."""
    if request.method not in ("GET", "HEAD"):
        return page_of(request, S3Error("MethodNotAllowed"))
    if site.everything is not None:
        return _moved(request, site.everything, path)
    key = site.key_of(path)
    rule = site.rule_for(path)
    if rule is not None:
        return _moved(request, rule.redirect, path, rule.prefix)
    try:
        page = read(key)
    except S3Error as error:
        return _unread(request, site, path, read, error)
    place = page.headers.get(REDIRECT)
    if place is None:
        return page
    page.discard()
    page.ended(0, False)
    return Response(301, {"location": place, "content-type": _HTML})


def _unread(request: Request, site: BucketWebsite, path: str, read: Read, error: S3Error) -> Response:
    """What a visitor gets for a page that cannot be read."""
    if error.status == 404 and path and not path.endswith("/") and _is_there(read, f"{path}/{site.index}"):
        return _moved(request, WebsiteRedirect(status=302), f"{path}/")
    rule = site.rule_for(path, error.status)
    if rule is not None:
        return _moved(request, rule.redirect, path, rule.prefix)
    if not site.error or error.status >= 500:
        return page_of(request, error)
    try:
        page = read(site.error)
    except S3Error:
        return page_of(request, error)
    if page.status != 200:
        # A range or a condition was for the page that is not there.
        page.discard()
        page.ended(0, False)
        return page_of(request, error)
    page.status, page.reason = error.status, reason_of(error.status)
    return page


def _is_there(read: Read, key: str) -> bool:
    try:
        found = read(key)
    except S3Error:
        return False
    found.discard()
    found.ended(0, False)
    return True


def _moved(request: Request, redirect: WebsiteRedirect, path: str, matched: str = "") -> Response:
    host = request.headers.get("host", "localhost")
    location = redirect.location(request.scheme, host, path, matched)
    return Response(redirect.status, {"location": location, "content-type": _HTML})


def page_of(request: Request, error: S3Error) -> Response:
    """An error as a page."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    details = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    body = error_page(error.status, reason_of(error.status), details)
    return Response(error.status, {"content-type": _HTML}, b"" if request.method == "HEAD" else body)
