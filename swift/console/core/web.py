"""Cookies, forms, paths and headers of the console's pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

from swift.http.body import BodyError, read_up_to
from swift.http.headers import HeaderMap
from swift.http.request import Request

ROOT = "/console"
FORM_TYPE = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 2 << 20
_FIELDS_MAX = 4000
#: Pages may load and send nothing but what is the console's own, and no other site may frame them.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"
#: Values of Sec-Fetch-Dest of what becomes a page.
_PAGE_KINDS = frozenset(("document", "iframe", "frame", "embed", "object", "fencedframe"))
SAFE_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "Cookie, HX-Request",
}


def read_cookie(request: Request, name: str) -> str | None:
    """Return the value of a cookie; None if it is not there exactly once."""
    pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
    values = [value for each, _, value in pairs if each == name]
    return values[0] if len(values) == 1 else None


class BadForm(Exception):
    """A form or query is refused; ``key`` names the sentence in ``texts.toml``."""

    status = 400

    def __init__(self, key: str, /, **values: object):
        super().__init__(key, values)
        self.key = key
        self.values = values


class StaleForm(BadForm):
    """A form whose values were changed by others since its page was made."""

    status = 412

    def __init__(self) -> None:
        super().__init__("errors.412")


class Fields:
    """The fields of a query or a form: text by name, often given once."""

    def __init__(self, pairs: list[tuple[str, str]]):
        self._pairs = pairs

    @classmethod
    def of_query(cls, text: str) -> Fields:
        """Parse a query or a form; raises ``BadForm``."""
        try:
            return cls(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict"))
        except ValueError:
            raise BadForm("form.fields")

    def __contains__(self, name: str) -> bool:
        return any(each == name for each, _ in self._pairs)

    def text(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return next((value for each, value in self._pairs if each == name), default)

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number within bounds; raises ``BadForm``."""
        text = self.text(name).strip() or str(default)
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
            raise BadForm("form.whole", field=name, low=low, high=high)
        return int(text)

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for each, value in self._pairs if each == name]


def read_form(request: Request) -> Fields:
    """Return the fields of a posted form; raises ``BadForm``."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise BadForm("form.type", type=FORM_TYPE)
    try:
        data = read_up_to(request.body, FORM_BYTES_MAX + 1)
    except BodyError:
        raise BadForm("form.broken")
    if len(data) > FORM_BYTES_MAX:
        raise BadForm("form.large", size=FORM_BYTES_MAX)
    try:
        return Fields.of_query(data.decode("ascii"))
    except UnicodeDecodeError:
        raise BadForm("form.quoting")


def is_own_origin(request: Request) -> bool:
    """Return False for a request that a page of another site sent."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def link(path: str, /, **query: object) -> str:
    """Return the address of a page of the console; fields that are None or empty are left out."""
    asked = "&".join(
        f"{name}={quote(str(value), safe='')}" for name, value in query.items() if value not in (None, "")
    )
    return f"{ROOT}{path}?{asked}" if asked else f"{ROOT}{path}"


def checked_return(path: str) -> str:
    """Return a path of the console to which a log-in may lead; the first page for any other text."""
    steps = path.partition("?")[0].replace("%2e", ".").replace("%2E", ".").split("/")
    # Browsers resolve dots: such a path would lead to an object.
    is_own = "/".join(steps[:2]) == ROOT and not {".", ".."}.intersection(steps)
    if not is_own or not path.isascii() or not path.isprintable() or "\\" in path or len(path) > 8000:
        return ROOT
    return path


def is_page_load(request: Request) -> bool:
    """Return True if a browser would show the response as a page of this origin."""
    headers = request.headers
    return headers.get("sec-fetch-dest") in _PAGE_KINDS or "text/html" in headers.get("accept", "")


def sandboxed(headers: HeaderMap) -> HeaderMap:
    """Return the headers of a page that is not the console's: its scripts run, but not with this origin."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() == "application/pdf":
        # The browser's own viewer does not work in a sandbox; it runs no script of the document's.
        return {**headers, "x-content-type-options": "nosniff"}
    policies = (headers.get("content-security-policy", ""), _SANDBOX)
    return {**headers, "content-security-policy": ", ".join(filter(None, policies))}


def is_presigned(request: Request) -> bool:
    """Return True for a request of S3 with its signature in the query."""
    return any(field.startswith("X-Amz-Signature=") for field in request.query.split("&"))


def is_fragment_request(request: Request) -> bool:
    """Return True if htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers


def safe_headers() -> HeaderMap:
    """Return a copy of the headers that all pages have."""
    return dict(SAFE_HEADERS)
