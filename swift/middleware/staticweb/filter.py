"""Static web sites from containers (spec: middleware.md §11).

A request with a token gets the API unless ``X-Web-Mode`` requests the site. Sub-requests for a page have the
rights of the request itself. Pages for a temporary URL include its query in their links.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from swift.base.documents import JsonObject
from swift.base.entity import normalize_path_quoting, quote_path
from swift.base.truth import is_true
from swift.config.schema import Settings, option
from swift.gateway.info import container_info
from swift.gateway.subrequest import drained, make_subrequest, open_response
from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.filter import AUTHORIZED_BEFORE, App, Filter, FilterDeclaration
from swift.middleware.staticweb.page import render_disabled_page, render_listing_page
from swift.middleware.tempurl.filter import TEMPURL_USER

#: Headers of a browser's request that the sub-request for the page carries.
_FORWARDED_HEADERS = (
    *("range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"),
    *("x-newest", "x-auth-token", "x-storage-token", "x-open-expired"),
)


@dataclass(frozen=True)
class StaticWebSettings(Settings):
    """``[filter:staticweb]``."""

    url_base: str = option("", "Scheme, or scheme and host, of redirects, e.g. https:// or http://host.")


@dataclass(frozen=True, slots=True)
class ContainerSite:
    """Web site settings in a container's metadata."""

    index: str
    error: str
    listings: str
    css: str
    label: str
    directory_type: str

    @classmethod
    def from_metadata(cls, meta: dict[str, str]) -> ContainerSite:
        """Return the settings in the metadata of a container, by names without prefix."""
        return cls(
            index=meta.get("web-index", "").strip(),
            error=meta.get("web-error", "").strip(),
            listings=meta.get("web-listings", "").strip(),
            css=meta.get("web-listings-css", "").strip(),
            label=meta.get("web-listings-label", "").strip(),
            directory_type=meta.get("web-directory-type", "").strip() or "application/directory",
        )

    @property
    def is_website(self) -> bool:
        """True if the container is a web site."""
        return bool(self.index or self.listings)


class StaticWeb(Filter):
    """Serves containers as web sites."""

    def __init__(self, app: App, settings: StaticWebSettings):
        super().__init__(app)
        base = urlsplit(settings.url_base)
        self._scheme, self._host = base.scheme, base.netloc

    def handle(self, request: Request) -> Response:
        """Serve a page to a browser; forward all other requests."""
        entity = request.entity
        if request.method not in ("GET", "HEAD") or entity is None or entity.path.container is None:
            return self.forward(request)
        web_mode = is_true(request.headers.get("x-web-mode"))
        if request.env.get(environkeys.REMOTE_USER) not in (None, "", TEMPURL_USER) and not web_mode:
            return self.forward(request)
        info = container_info(request, self.forward, entity.path.account, entity.path.container)
        site = ContainerSite.from_metadata(info.meta)
        if not info.exists or not site.is_website:
            if entity.path.obj is None and web_mode:
                return _make_error_response(request, 404)
            return self.forward(request)
        site_request = _SiteRequest(self, request, site)
        return site_request.get_root_page() if entity.path.obj is None else site_request.get_page()

    def redirect(self, request: Request) -> Response:
        """Return a 301 to the same path with a trailing slash."""
        scheme = self._scheme or request.scheme
        host = self._host or request.headers.get("host", "localhost")
        query = _tempurl_link(request)[0]
        location = (
            f"{scheme}://{host}{normalize_path_quoting(request.raw_path)}/{'?' if query else ''}{query}"
        )
        return _make_error_response(request, 301, {"location": location})


def _tempurl_link(request: Request) -> tuple[str, str]:
    """Return the query that every link of a page carries, and the prefix above which no link leads."""
    query, prefix = request.env.get(environkeys.TEMPURL_LINK, ("", ""))
    return query, prefix


def _make_error_response(request: Request, status: int, headers: HeaderMap | None = None) -> Response:
    """Return the default error page; a HEAD gets no body."""
    return error_response(status, b"" if request.method == "HEAD" else None, headers)


class _SiteRequest:
    """One request to a web site."""

    def __init__(self, web: StaticWeb, request: Request, site: ContainerSite):
        assert request.entity is not None, "only entities are visited"
        self._web = web
        self._forward = web.forward
        self._request = request
        self._site = site
        path = request.entity.path
        self._container_url = f"/{request.entity.version}{path._replace(obj=None).quoted}"
        self._object_name = path.obj or ""
        #: The path with its trailing slash, which ``request.entity`` lacks.
        self._path = request.lossy_path

    def get_root_page(self) -> Response:
        """Return the root page of the site."""
        with open_response(self._forward, self._make_subrequest("HEAD", self._container_url)) as head:
            may_read = head.is_success
        if not may_read:
            return self._with_error_page(self._forward(self._request))
        if not self._path.endswith("/"):
            return self._web.redirect(self._request)
        return self._get_index("") or self._get_listing("")

    def get_page(self) -> Response:
        """Return an object, or the page of a pseudo-directory."""
        response = self._forward(self._request)
        if response.status != 404 and not self._is_directory(response):
            return response
        drained(response)
        if self._object_name.endswith("/"):
            return self._get_index(self._object_name) or self._get_listing(self._object_name)
        if self._is_pseudo_directory():
            return self._web.redirect(self._request)
        return self._get_not_found()

    def _is_directory(self, response: Response) -> bool:
        """Return True for a directory marker: an object of the directory type with at most one byte."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        length = response.headers.get("content-length", "")
        return response.is_success and kind == self._site.directory_type and length in ("0", "1")

    def _is_pseudo_directory(self) -> bool:
        folder = f"{self._object_name}/"
        if self._site.index:
            with open_response(
                self._forward, self._make_subrequest("HEAD", self._object_url(folder + self._site.index))
            ) as head:
                if head.is_success:
                    return True
        with open_response(
            self._forward,
            self._make_subrequest("GET", self._container_url, query=_listing_query(folder, limit=1)),
        ) as listing:
            return listing.is_success and bool(_read_rows(listing))

    def _get_index(self, folder: str) -> Response | None:
        """Return the index of a pseudo-directory; None without one."""
        if not self._site.index:
            return None
        path = self._object_url(folder + self._site.index)
        response = self._forward(self._make_subrequest(self._request.method, path, forward_headers=True))
        if response.status != 404:
            return response
        drained(response)
        return None

    def _get_listing(self, folder: str) -> Response:
        site = self._site
        if not is_true(site.listings):
            page = render_disabled_page(
                title=self._title(folder), prefix=folder, css=site.css, index=site.index
            )
            return self._with_error_page(Response(404, {"content-type": HTML}, page))
        response = self._forward(
            self._make_subrequest("GET", self._container_url, query=_listing_query(folder))
        )
        if not response.is_success:
            return self._get_not_found() if response.status == 404 else self._with_error_page(response)
        rows = _read_rows(response)
        if folder and not rows:
            return self._get_not_found()
        query, top = _tempurl_link(self._request)
        page = render_listing_page(
            rows, title=self._title(folder), prefix=folder, css=site.css, query=query, top=top
        )
        return Response(200, {"content-type": HTML}, page)

    def _title(self, folder: str) -> str:
        label = self._site.label
        return f"{label}/{folder}" if label else self._path

    def _get_not_found(self) -> Response:
        return self._with_error_page(_make_error_response(self._request, 404))

    def _with_error_page(self, response: Response) -> Response:
        """Return an error with the site's own page for it, if any."""
        if response.is_success or not self._site.error:
            return response
        path = self._object_url(f"{response.status}{self._site.error}")
        page = self._forward(self._make_subrequest(self._request.method, path))
        discarded, result = (response, page) if page.is_success else (page, response)
        drained(discarded)
        if result is page:
            page.status, page.reason = response.status, response.reason
        return result

    def _object_url(self, name: str) -> str:
        return f"{self._container_url}/{quote_path(name)}"

    def _make_subrequest(
        self, method: str, raw_path: str, *, query: str = "", forward_headers: bool = False
    ) -> Request:
        client_headers = self._request.headers
        names = _FORWARDED_HEADERS if forward_headers else ("x-auth-token", "x-storage-token")
        headers: HeaderMap = {name: client_headers[name] for name in names if name in client_headers}
        return make_subrequest(
            self._request,
            method,
            raw_path,
            headers=headers,
            query=query,
            source="SW",
            agent="%(orig)s StaticWeb",
        )


def _listing_query(folder: str, limit: int | None = None) -> str:
    """Return the listing query of a pseudo-directory."""
    query = "format=json&delimiter=/"
    if folder:
        query += f"&prefix={quote(folder, safe='', errors='surrogateescape')}"
    return query if limit is None else f"{query}&limit={limit}"


def _row_name(row: JsonObject) -> str:
    name: str = row["name"] if "name" in row else row.get("subdir", "")
    return name


def _read_rows(response: Response) -> list[JsonObject]:
    """Return the rows of a listing without reserved names; ends the response."""
    body = response.read_body()
    response.report_end(len(body), True)
    rows: list[JsonObject] = json.loads(body) if body else []
    return [row for row in rows if "\0" not in _row_name(row)]


FILTER = FilterDeclaration(
    "staticweb",
    StaticWebSettings,
    lambda app, settings, _services: StaticWeb(app, settings),
    position=190,
    default=True,
    info=lambda _settings: {},
    right_of=AUTHORIZED_BEFORE,
    left_of={"encryption": "its own requests must pass through encryption"},
)
