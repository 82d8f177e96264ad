"""Web sites of buckets: the configuration as a value, and serving its pages.

What may be said is what AWS's document has: an index, an error page, redirections before an object is looked
for (by the beginning of its key) or after it was not found (by status), or one for everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, reason_phrase
from swift.s3.api.metadata import REDIRECT
from swift.s3.errors import S3Error
from swift.s3.xml import Group, Many, Text, Tree, text_of, tree_of, trees_of

_REDIRECT = (
    *(Text("HostName"), Text("HttpRedirectCode"), Text("Protocol")),
    *(Text("ReplaceKeyPrefixWith"), Text("ReplaceKeyWith")),
)
WEBSITE = Group(
    "WebsiteConfiguration",
    Group("ErrorDocument", Text("Key", required=True)),
    Group("IndexDocument", Text("Suffix", required=True)),
    Group("RedirectAllRequestsTo", Text("HostName", required=True), Text("Protocol")),
    Group(
        "RoutingRules",
        Many(
            "RoutingRule",
            Group("Condition", Text("HttpErrorCodeReturnedEquals"), Text("KeyPrefixEquals")),
            Group("Redirect", *_REDIRECT, required=True),
            required=True,
        ),
    ),
)
RULES_MAX, TEXT_MAX = 50, 1024
_CODES = frozenset(map(str, (301, 302, 303, 304, 305, 307, 308)))


@dataclass(frozen=True, slots=True)
class WebsiteRedirect:
    """Another place: what is empty stays as it was asked for."""

    host: str = ""
    protocol: str = ""
    status: int = 301
    prefix: str | None = None
    key: str | None = None

    def location(self, scheme: str, host: str, asked: str, matched: str = "") -> str:
        """Return the URL for a requested key, of which ``matched`` is the beginning that led here."""
        if self.key is not None:
            asked = self.key
        elif self.prefix is not None:
            asked = self.prefix + asked[len(matched) :]
        path = quote(asked, safe="/~", errors="surrogateescape")
        return f"{self.protocol or scheme}://{self.host or host}/{path}"


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A redirection and when it is taken."""

    redirect: WebsiteRedirect
    prefix: str = ""
    status: int = 0


@dataclass(frozen=True, slots=True)
class BucketWebsite:
    """The web site of a bucket."""

    index: str = ""
    error: str = ""
    everything: WebsiteRedirect | None = None
    rules: tuple[RoutingRule, ...] = ()

    def key_of(self, path: str) -> str:
        """Return the key of a path, a folder's index for a folder."""
        return path + self.index if not path or path.endswith("/") else path

    def rule_for(self, key: str, status: int = 0) -> RoutingRule | None:
        """Return the redirection of a key, before it is looked for or after an error."""
        return next((r for r in self.rules if r.status == status and key.startswith(r.prefix)), None)


def site_of_document(tree: Tree) -> BucketWebsite:
    """Return the site of a ``WebsiteConfiguration``; raise ``S3Error``."""
    everything = tree_of(tree.get("RedirectAllRequestsTo"))
    if everything:
        if len(tree) > 1:
            raise S3Error("MalformedXML")
        return BucketWebsite(everything=WebsiteRedirect(_host(everything), _protocol(everything)))
    index = text_of(tree_of(tree.get("IndexDocument")).get("Suffix"))
    if not index or "/" in index:
        raise _invalid("IndexDocument", index, "The IndexDocument Suffix is not well formed")
    items = trees_of(tree_of(tree.get("RoutingRules")).get("RoutingRule"))
    if len(items) > RULES_MAX:
        raise _bad(
            f"{len(items)} routing rules provided, the number of routing rules in a website configuration is "
            f"limited to {RULES_MAX}."
        )
    error = _short(text_of(tree_of(tree.get("ErrorDocument")).get("Key")))
    if "ErrorDocument" in tree and not error:
        raise _invalid("ErrorDocument", error, "The ErrorDocument Key is not well formed")
    return BucketWebsite(_short(index), error, None, tuple(map(_rule, items)))


def _rule(item: Tree) -> RoutingRule:
    condition, requested = tree_of(item.get("Condition")), tree_of(item.get("Redirect"))
    status = text_of(condition.get("HttpErrorCodeReturnedEquals"))
    if status and not (is_digits(status) and len(status) == 3 and status[0] in "45"):
        raise _bad(f"The provided HTTP error code ({status[:9]}) is not valid. Valid codes are 4XX or 5XX.")
    if "Condition" in item and not condition:
        raise S3Error("MalformedXML")
    code = text_of(requested.get("HttpRedirectCode"))
    if not requested:
        raise S3Error("MalformedXML")
    if code and code not in _CODES:
        raise _bad(
            f"The provided HTTP redirect code ({code[:9]}) is not valid. Valid codes are 3XX except 300."
        )
    if "ReplaceKeyWith" in requested and "ReplaceKeyPrefixWith" in requested:
        raise _bad("You can only define ReplaceKeyPrefix or ReplaceKey but not both.")
    redirect = WebsiteRedirect(
        _host(requested),
        _protocol(requested),
        int(code or 301),
        _short(text_of(requested["ReplaceKeyPrefixWith"])) if "ReplaceKeyPrefixWith" in requested else None,
        _short(text_of(requested["ReplaceKeyWith"])) if "ReplaceKeyWith" in requested else None,
    )
    return RoutingRule(redirect, _short(text_of(condition.get("KeyPrefixEquals"))), int(status or 0))


def _bad(text: str) -> S3Error:
    return S3Error("InvalidRequest", text)


def _invalid(name: str, value: str, text: str) -> S3Error:
    return S3Error("InvalidArgument", text, details={"ArgumentName": name, "ArgumentValue": value})


def _short(text: str) -> str:
    if len(text) > TEXT_MAX or "\x00" in text:
        raise _bad("A key is too long.")
    return text


def _host(tree: Tree) -> str:
    host = text_of(tree.get("HostName"))
    if len(host) > 255 or not all(c.isascii() and (c.isalnum() or c in "-._:[]") for c in host):
        raise _bad("The HostName is not valid.")
    if "HostName" in tree and not host:
        raise _bad("The HostName is not valid.")
    return host


def _protocol(tree: Tree) -> str:
    protocol = text_of(tree.get("Protocol"))
    if protocol not in ("", "http", "https"):
        raise _bad(
            "Invalid protocol, protocol can be http or https. If not defined the protocol will be selected "
            "automatically."
        )
    return protocol


def stored_tree(tree: Tree) -> bytes:
    """Return the form in which a bucket keeps a checked document."""
    return json.dumps(tree, separators=(",", ":")).encode()


def parsed_tree(document: bytes) -> Tree:
    """Return a document as a bucket keeps it; empty if it cannot be read."""
    try:
        tree = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


@lru_cache(maxsize=256)
def parsed_site(document: bytes) -> BucketWebsite | None:
    """Return the web site that a bucket keeps; None if it cannot be read."""
    try:
        return site_of_document(parsed_tree(document))
    except S3Error:
        return None


def error_page(status: int, reason: str, details: Sequence[tuple[str, str]]) -> bytes:
    """Return the page for an error without a page of its own."""
    items = "".join(f"<li>{escape(name)}: {escape(text)}</li>\n" for name, text in details)
    title = f"{status} {escape(reason)}"
    head = f"<html>\n<head><title>{title}</title></head>\n"
    page = f"{head}<body>\n<h1>{title}</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    return page.encode("utf-8", "replace")


# --- serving ------------------------------------------------------------------------------------------
# Objects are read as by an S3 client without a signature, so that policies and ACLs decide.

#: Reads an object; raises ``S3Error``.
Read = Callable[[str], Response]
_HTML = "text/html; charset=utf-8"


def serve_site(request: Request, site: BucketWebsite, path: str, read: Read) -> Response:
    """Return the page at a path (decoded, without its first slash)."""
    if request.method not in ("GET", "HEAD"):
        return error_page_response(request, S3Error("MethodNotAllowed"))
    if site.everything is not None:
        return _moved(request, site.everything, path)
    key = site.key_of(path)
    rule = site.rule_for(path)
    if rule is not None:
        return _moved(request, rule.redirect, path, rule.prefix)
    try:
        page = read(key)
    except S3Error as error:
        return _missing_page(request, site, path, read, error)
    place = page.headers.get(REDIRECT)
    if place is None:
        return page
    page.discard()
    page.report_end(0, False)
    return Response(301, {"location": place, "content-type": _HTML})


def _missing_page(request: Request, site: BucketWebsite, path: str, read: Read, error: S3Error) -> Response:
    """Return the response for a page that cannot be read."""
    if error.status == 404 and path and not path.endswith("/") and _exists(read, f"{path}/{site.index}"):
        return _moved(request, WebsiteRedirect(status=302), f"{path}/")
    rule = site.rule_for(path, error.status)
    if rule is not None:
        return _moved(request, rule.redirect, path, rule.prefix)
    if not site.error or error.status >= 500:
        return error_page_response(request, error)
    try:
        page = read(site.error)
    except S3Error:
        return error_page_response(request, error)
    if page.status != 200:
        # A range or a condition was for the page that is not there.
        page.discard()
        page.report_end(0, False)
        return error_page_response(request, error)
    page.status, page.reason = error.status, reason_phrase(error.status)
    return page


def _exists(read: Read, key: str) -> bool:
    try:
        found = read(key)
    except S3Error:
        return False
    found.discard()
    found.report_end(0, False)
    return True


def _moved(request: Request, redirect: WebsiteRedirect, path: str, matched: str = "") -> Response:
    host = request.headers.get("host", "localhost")
    location = redirect.location(request.scheme, host, path, matched)
    return Response(redirect.status, {"location": location, "content-type": _HTML})


def error_page_response(request: Request, error: S3Error) -> Response:
    """Return an error as a page."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    details = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    body = error_page(error.status, reason_phrase(error.status), details)
    return Response(error.status, {"content-type": _HTML}, b"" if request.method == "HEAD" else body)
