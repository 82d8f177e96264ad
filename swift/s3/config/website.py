"""Web sites of buckets: the parsed configuration, and serving of pages.

A site has an index, an error page and redirections, as in AWS's document. Redirections are by the prefix of
a key before the object is read, by status after an error, or for all requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.memo import SizedCache
from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, reason_phrase
from swift.s3.core.errors import S3Error, argument_error, invalid_request
from swift.s3.core.metadata import REDIRECT_HEADER
from swift.s3.core.xml import Group, RepeatedGroup, Text, Tree, text_of, texts, tree_of, trees_of

_REDIRECT_ELEMENTS = texts("HostName HttpRedirectCode Protocol ReplaceKeyPrefixWith ReplaceKeyWith")
WEBSITE = Group(
    "WebsiteConfiguration",
    Group("ErrorDocument", Text("Key", required=True)),
    Group("IndexDocument", Text("Suffix", required=True)),
    Group("RedirectAllRequestsTo", Text("HostName", required=True), Text("Protocol")),
    Group(
        "RoutingRules",
        RepeatedGroup(
            "RoutingRule",
            Group("Condition", Text("HttpErrorCodeReturnedEquals"), Text("KeyPrefixEquals")),
            Group("Redirect", *_REDIRECT_ELEMENTS, required=True),
            required=True,
        ),
    ),
)
RULES_MAX, TEXT_MAX = 50, 1024
_REDIRECT_CODES = frozenset(map(str, (301, 302, 303, 304, 305, 307, 308)))


@dataclass(frozen=True, slots=True)
class WebsiteRedirect:
    """A redirection; empty fields keep that part of the request's URL."""

    host: str = ""
    protocol: str = ""
    status: int = 301
    prefix: str | None = None
    key: str | None = None

    def location(self, scheme: str, host: str, requested_key: str, matched: str = "") -> str:
        """Return the redirection's URL for a key; ``matched`` is the prefix that the rule matched."""
        if self.key is not None:
            requested_key = self.key
        elif self.prefix is not None:
            requested_key = self.prefix + requested_key[len(matched) :]
        path = quote(requested_key, safe="/~", errors="surrogateescape")
        return f"{self.protocol or scheme}://{self.host or host}/{path}"


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A redirection and its condition."""

    redirect: WebsiteRedirect
    prefix: str = ""
    status: int = 0


@dataclass(frozen=True, slots=True)
class BucketWebsite:
    """The web site of a bucket."""

    index_suffix: str = ""
    error_key: str = ""
    redirect_all: WebsiteRedirect | None = None
    rules: tuple[RoutingRule, ...] = ()

    def key_of_path(self, path: str) -> str:
        """Return the key of a path: for a folder that of its index."""
        return path + self.index_suffix if not path or path.endswith("/") else path

    def find_rule(self, key: str, status: int = 0) -> RoutingRule | None:
        """Return the first rule for a key, before it is read (status 0) or after an error; None without."""
        return next((r for r in self.rules if r.status == status and key.startswith(r.prefix)), None)


def parse_site_document(tree: Tree) -> BucketWebsite:
    """Return the site in a ``WebsiteConfiguration`` document; raise ``S3Error``."""
    everything = tree_of(tree.get("RedirectAllRequestsTo"))
    if everything:
        if len(tree) > 1:
            raise S3Error("MalformedXML")
        return BucketWebsite(
            redirect_all=WebsiteRedirect(_parse_host(everything), _parse_protocol(everything))
        )
    index = text_of(tree_of(tree.get("IndexDocument")).get("Suffix"))
    if not index or "/" in index:
        raise argument_error("IndexDocument", index, "The IndexDocument Suffix is not well formed")
    items = trees_of(tree_of(tree.get("RoutingRules")).get("RoutingRule"))
    if len(items) > RULES_MAX:
        raise invalid_request(
            f"{len(items)} routing rules provided, the number of routing rules in a "
            f"website configuration is limited to {RULES_MAX}."
        )
    error = _validate_length(text_of(tree_of(tree.get("ErrorDocument")).get("Key")))
    if "ErrorDocument" in tree and not error:
        raise argument_error("ErrorDocument", error, "The ErrorDocument Key is not well formed")
    return BucketWebsite(_validate_length(index), error, None, tuple(map(_parse_rule, items)))


def _parse_rule(item: Tree) -> RoutingRule:
    condition, requested = tree_of(item.get("Condition")), tree_of(item.get("Redirect"))
    status = text_of(condition.get("HttpErrorCodeReturnedEquals"))
    if status and not (is_digits(status) and len(status) == 3 and status[0] in "45"):
        raise invalid_request(
            f"The provided HTTP error code ({status[:9]}) is not valid. Valid codes are 4XX or 5XX."
        )
    if "Condition" in item and not condition:
        raise S3Error("MalformedXML")
    code = text_of(requested.get("HttpRedirectCode"))
    if not requested:
        raise S3Error("MalformedXML")
    if code and code not in _REDIRECT_CODES:
        raise invalid_request(
            f"The provided HTTP redirect code ({code[:9]}) is not valid. Valid codes are 3XX except 300."
        )
    if "ReplaceKeyWith" in requested and "ReplaceKeyPrefixWith" in requested:
        raise invalid_request("You can only define ReplaceKeyPrefix or ReplaceKey but not both.")
    redirect = WebsiteRedirect(
        _parse_host(requested),
        _parse_protocol(requested),
        int(code or 301),
        _validate_length(text_of(requested["ReplaceKeyPrefixWith"]))
        if "ReplaceKeyPrefixWith" in requested
        else None,
        _validate_length(text_of(requested["ReplaceKeyWith"])) if "ReplaceKeyWith" in requested else None,
    )
    return RoutingRule(
        redirect, _validate_length(text_of(condition.get("KeyPrefixEquals"))), int(status or 0)
    )


def _validate_length(text: str) -> str:
    if len(text) > TEXT_MAX or "\x00" in text:
        raise invalid_request("A key is too long.")
    return text


def _parse_host(tree: Tree) -> str:
    host = text_of(tree.get("HostName"))
    if len(host) > 255 or not all(c.isascii() and (c.isalnum() or c in "-._:[]") for c in host):
        raise invalid_request("The HostName is not valid.")
    if "HostName" in tree and not host:
        raise invalid_request("The HostName is not valid.")
    return host


def _parse_protocol(tree: Tree) -> str:
    protocol = text_of(tree.get("Protocol"))
    if protocol not in ("", "http", "https"):
        raise invalid_request(
            "Invalid protocol, protocol can be http or https. If not defined the protocol "
            "will be selected automatically."
        )
    return protocol


def encode_document(tree: Tree) -> bytes:
    """Return a validated document as stored in the bucket's metadata."""
    return json.dumps(tree, separators=(",", ":")).encode()


def decode_document(document: bytes) -> Tree:
    """Return the document stored in a bucket's metadata; empty if it cannot be read."""
    try:
        tree = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


_SITES: SizedCache[bytes, BucketWebsite] = SizedCache(2 << 20)


def decode_site(document: bytes) -> BucketWebsite | None:
    """Return the web site stored in a bucket's metadata; None if it cannot be read."""
    try:
        return _SITES.get(document) or _SITES.keep(
            document, parse_site_document(decode_document(document)), len(document)
        )
    except S3Error:
        return None


def error_page(status: int, reason: str, details: Sequence[tuple[str, str]]) -> bytes:
    """Return the default HTML page for an error."""
    items = "".join(f"<li>{escape(name)}: {escape(text)}</li>\n" for name, text in details)
    title = f"{status} {escape(reason)}"
    head = f"<html>\n<head><title>{title}</title></head>\n"
    page = f"{head}<body>\n<h1>{title}</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    return page.encode("utf-8", "replace")


# --- serving ------------------------------------------------------------------------------------------
# Objects are read as by an S3 client without a signature, so that policies and ACLs decide.

#: Reads an object; raises ``S3Error``.
ReadObject = Callable[[str], Response]
_HTML = "text/html; charset=utf-8"


def serve_site(request: Request, site: BucketWebsite, path: str, read: ReadObject) -> Response:
    """Return the page at a path (decoded, without its first slash)."""
    if request.method not in ("GET", "HEAD"):
        return error_page_response(request, S3Error("MethodNotAllowed"))
    if site.redirect_all is not None:
        return _redirect_response(request, site.redirect_all, path)
    key = site.key_of_path(path)
    rule = site.find_rule(path)
    if rule is not None:
        return _redirect_response(request, rule.redirect, path, rule.prefix)
    try:
        page = read(key)
    except S3Error as error:
        return _respond_to_unreadable_page(request, site, path, read, error)
    place = page.headers.get(REDIRECT_HEADER)
    if place is None:
        return page
    drained(page, is_complete=False)
    return Response(301, {"location": place, "content-type": _HTML})


def _respond_to_unreadable_page(
    request: Request, site: BucketWebsite, path: str, read: ReadObject, error: S3Error
) -> Response:
    """Return the redirect or the error page for a page that cannot be read."""
    if (
        error.status == 404
        and path
        and not path.endswith("/")
        and _exists(read, f"{path}/{site.index_suffix}")
    ):
        return _redirect_response(request, WebsiteRedirect(status=302), f"{path}/")
    rule = site.find_rule(path, error.status)
    if rule is not None:
        return _redirect_response(request, rule.redirect, path, rule.prefix)
    if not site.error_key or error.status >= 500:
        return error_page_response(request, error)
    try:
        page = read(site.error_key)
    except S3Error:
        return error_page_response(request, error)
    if page.status != 200:
        # The range or condition of the request was for the missing page.
        drained(page, is_complete=False)
        return error_page_response(request, error)
    page.status, page.reason = error.status, reason_phrase(error.status)
    return page


def _exists(read: ReadObject, key: str) -> bool:
    try:
        found = read(key)
    except S3Error:
        return False
    drained(found, is_complete=False)
    return True


def _redirect_response(request: Request, redirect: WebsiteRedirect, path: str, matched: str = "") -> Response:
    host = request.headers.get("host", "localhost")
    location = redirect.location(request.scheme, host, path, matched)
    return Response(redirect.status, {"location": location, "content-type": _HTML})


def error_page_response(request: Request, error: S3Error) -> Response:
    """Return the default error page as a response."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    details = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    body = error_page(error.status, reason_phrase(error.status), details)
    return Response(error.status, {"content-type": _HTML}, b"" if request.method == "HEAD" else body)
