"""Answers browsers as a web server would (spec: middleware.md §11).

Who sends a token gets the API, unless ``X-Web-Mode`` asks for the site. Everything that is looked up for an
answer is a sub-request with the rights of the request itself. Pages for a temporary URL hand it on in their
links.
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
from swift.gateway.subrequest import make_subrequest, open_response
from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.staticweb.page import disabled_page, listing_page
from swift.middleware.tempurl.filter import USER as TEMPURL_USER

#: Headers of a browser's request that are for whatever answers it.
_PASSED_ON = (
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
    def of(cls, meta: dict[str, str]) -> ContainerSite:
        """From the metadata of a container, by names without prefix."""
        return cls(
            index=meta.get("web-index", "").strip(),
            error=meta.get("web-error", "").strip(),
            listings=meta.get("web-listings", "").strip(),
            css=meta.get("web-listings-css", "").strip(),
            label=meta.get("web-listings-label", "").strip(),
            directory_type=meta.get("web-directory-type", "").strip() or "application/directory",
        )

    @property
    def is_one(self) -> bool:
        """True if the container is a web site at all."""
        return bool(self.index or self.listings)


class StaticWeb(Filter):
    """Serves containers as web sites."""

    def __init__(self, app: App, settings: StaticWebSettings):
        super().__init__(app)
        base = urlsplit(settings.url_base)
        self._scheme, self._host = base.scheme, base.netloc

    def handle(self, request: Request) -> Response:
        """Answer a browser; everything else is not this filter's business."""
        entity = request.entity
        if request.method not in ("GET", "HEAD") or entity is None or entity.path.container is None:
            return self.forward(request)
        web_mode = is_true(request.headers.get("x-web-mode"))
        if request.env.get(environkeys.REMOTE_USER) not in (None, "", TEMPURL_USER) and not web_mode:
            return self.forward(request)
        info = container_info(request, self.forward, entity.path.account, entity.path.container)
        site = ContainerSite.of(info.meta)
        if not info.exists or not site.is_one:
            if entity.path.obj is None and web_mode:
                return _error(request, 404)
            return self.forward(request)
        visit = _Visit(self, request, site)
        return visit.container() if entity.path.obj is None else visit.object()

    def redirect(self, request: Request) -> Response:
        """301 to the same path with a slash."""
        scheme = self._scheme or request.scheme
        host = self._host or request.headers.get("host", "localhost")
        query = _link_of(request)[0]
        location = (
            f"{scheme}://{host}{normalize_path_quoting(request.raw_path)}/{'?' if query else ''}{query}"
        )
        return _error(request, 301, {"location": location})


def _link_of(request: Request) -> tuple[str, str]:
    """Return the query that every link of a page has to carry, and the prefix above which none may lead."""
    query, prefix = request.env.get(environkeys.TEMPURL_LINK, ("", ""))
    return query, prefix


def _error(request: Request, status: int, headers: HeaderMap | None = None) -> Response:
    """Return the default page of a status; a HEAD is told of none."""
    return error_response(status, b"" if request.method == "HEAD" else None, headers)


class _Visit:
    """One request to a web site."""

    def __init__(self, web: StaticWeb, request: Request, site: ContainerSite):
        assert request.entity is not None, "only entities are visited"
        self._web = web
        self._forward = web.forward
        self._request = request
        self._site = site
        path = request.entity.path
        self._base = f"/{request.entity.version}{path._replace(obj=None).quoted}"
        self._obj = path.obj or ""
        #: The path with its last slash, which names lose when they are parsed.
        self._text = request.lossy_path

    def container(self) -> Response:
        """Return the root of the site."""
        with open_response(self._forward, self._sub("HEAD", self._base)) as head:
            may_read = head.is_success
        if not may_read:
            return self._with_error_page(self._forward(self._request))
        if not self._text.endswith("/"):
            return self._web.redirect(self._request)
        return self._index("") or self._listing("")

    def object(self) -> Response:
        """Return an object, or what stands for a pseudo-directory."""
        response = self._forward(self._request)
        if response.status != 404 and not self._is_directory(response):
            return response
        response.discard()
        response.report_end(0, True)
        if self._obj.endswith("/"):
            return self._index(self._obj) or self._listing(self._obj)
        if self._has_directory():
            return self._web.redirect(self._request)
        return self._missing()

    def _is_directory(self, response: Response) -> bool:
        """Return True if it is a marker: an object of the directory type with next to nothing in it."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        length = response.headers.get("content-length", "")
        return response.is_success and kind == self._site.directory_type and length in ("0", "1")

    def _has_directory(self) -> bool:
        folder = f"{self._obj}/"
        if self._site.index:
            with open_response(
                self._forward, self._sub("HEAD", self._path_of(folder + self._site.index))
            ) as head:
                if head.is_success:
                    return True
        with open_response(
            self._forward, self._sub("GET", self._base, query=_query(folder, limit=1))
        ) as listing:
            return listing.is_success and bool(_rows_of(listing))

    def _index(self, folder: str) -> Response | None:
        """Return the index of a pseudo-directory, None when there is none."""
        if not self._site.index:
            return None
        path = self._path_of(folder + self._site.index)
        response = self._forward(self._sub(self._request.method, path, passing=True))
        if response.status != 404:
            return response
        response.discard()
        response.report_end(0, True)
        return None

    def _listing(self, folder: str) -> Response:
        site = self._site
        if not is_true(site.listings):
            page = disabled_page(title=self._title(folder), prefix=folder, css=site.css, index=site.index)
            return self._with_error_page(Response(404, {"content-type": HTML}, page))
        response = self._forward(self._sub("GET", self._base, query=_query(folder)))
        if not response.is_success:
            return self._missing() if response.status == 404 else self._with_error_page(response)
        rows = _rows_of(response)
        if folder and not rows:
            return self._missing()
        query, top = _link_of(self._request)
        page = listing_page(
            rows, title=self._title(folder), prefix=folder, css=site.css, query=query, top=top
        )
        return Response(200, {"content-type": HTML}, page)

    def _title(self, folder: str) -> str:
        label = self._site.label
        return f"{label}/{folder}" if label else self._text

    def _missing(self) -> Response:
        return self._with_error_page(_error(self._request, 404))

    def _with_error_page(self, response: Response) -> Response:
        """Return an error with the site's own page for it, if there is one."""
        if response.is_success or not self._site.error:
            return response
        path = self._path_of(f"{response.status}{self._site.error}")
        page = self._forward(self._sub(self._request.method, path))
        unwanted, wanted = (response, page) if page.is_success else (page, response)
        unwanted.discard()
        unwanted.report_end(0, True)
        if wanted is page:
            page.status, page.reason = response.status, response.reason
        return wanted

    def _path_of(self, name: str) -> str:
        return f"{self._base}/{quote_path(name)}"

    def _sub(self, method: str, raw_path: str, *, query: str = "", passing: bool = False) -> Request:
        sent = self._request.headers
        names = _PASSED_ON if passing else ("x-auth-token", "x-storage-token")
        headers: HeaderMap = {name: sent[name] for name in names if name in sent}
        return make_subrequest(
            self._request,
            method,
            raw_path,
            headers=headers,
            query=query,
            source="SW",
            agent="%(orig)s StaticWeb",
        )


def _query(folder: str, limit: int | None = None) -> str:
    """Return the query for the listing of a pseudo-directory."""
    query = "format=json&delimiter=/"
    if folder:
        query += f"&prefix={quote(folder, safe='', errors='surrogateescape')}"
    return query if limit is None else f"{query}&limit={limit}"


def _name_of(row: JsonObject) -> str:
    name: str = row["name"] if "name" in row else row.get("subdir", "")
    return name


def _rows_of(response: Response) -> list[JsonObject]:
    """Return the rows of a listing that clients may see; the response is at its end then."""
    body = response.read_body()
    response.report_end(len(body), True)
    rows: list[JsonObject] = json.loads(body) if body else []
    return [row for row in rows if "\0" not in _name_of(row)]


FILTER = FilterDeclaration(
    "staticweb",
    StaticWebSettings,
    lambda app, settings, _services: StaticWeb(app, settings),
    position=190,
    default=True,
    info=lambda _settings: {},
    right_of={
        "tempauth": "the user would not be authorized yet",
        "keystoneauth": "the user would not be authorized yet",
    },
    left_of={"encryption": "it would read and write what is encrypted"},
)
