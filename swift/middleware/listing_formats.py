"""Converts listings to the format that the client accepts (spec: public-api.md §7.1, §7.2).

Below this filter a listing is JSON, so that filters and the proxy can process rows. JSON listings of the
container server pass unchanged, and so do text listings when the proxy was able to request text.
"""

from __future__ import annotations

import json

from swift.base.entity import API_VERSIONS, EntityPath
from swift.base.truth import is_true
from swift.config.schema import Settings
from swift.gateway.subrequest import drained
from swift.http import environkeys, fields
from swift.http.listing import render_account, render_container
from swift.http.negotiate import ListingFormat, add_vary, choose_format, choose_json
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.filter import Filter, FilterDeclaration

#: Larger listings are not converted from JSON.
JSON_BYTES_MAX = 1024 * 10000 * 2


class ListingFormats(Filter):
    """Converts JSON listings to text or XML."""

    def handle(self, request: Request) -> Response:
        """Convert the listing of an account or container."""
        if request.method not in ("GET", "HEAD") or request.env.get(environkeys.FORMAT_LISTING) is False:
            return self.forward(request)
        entity = request.entity
        if entity is None or entity.path.obj is not None or entity.version not in API_VERSIONS:
            return self.forward(request)
        lists_versions = (
            request.method == "GET" and entity.path.container is not None and "versions" in request.params
        )
        listing_format = choose_format(request)
        params = [p for p in request.query.split("&") if p and not p.startswith("format=")]
        original_query = request.query
        request.set_query("&".join([*params, "format=json"]))
        if listing_format is ListingFormat.PLAIN and not lists_versions:
            request.env[environkeys.LISTING_TEXT] = True
        response = self.forward(request)
        request.env.pop(environkeys.LISTING_TEXT, None)
        request.set_query(original_query)
        if lists_versions:
            return self._require_json(request, response)
        return self._convert_listing(request, response, listing_format, entity.path)

    def _require_json(self, request: Request, response: Response) -> Response:
        """Return a listing of versions, or 406 when the client does not accept JSON.

        Denials have precedence: a client learns nothing about a container that it may not list.
        """
        if response.is_success:
            try:
                choose_json(request)
            except HTTPError as error:
                drained(response)
                return error.response
        return response

    def _convert_listing(
        self, request: Request, response: Response, listing_format: ListingFormat, path: EntityPath
    ) -> Response:
        headers = response.headers
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if response.status not in (200, 204):
            return response
        # Also for the pages of other filters: another Accept may get another response.
        add_vary(request, headers)
        if kind not in ("application/json", listing_format.value):
            return response
        if kind == listing_format.value == ListingFormat.PLAIN.value:
            headers["content-type"] = listing_format.content_type
            return response
        if request.method == "HEAD":
            headers["content-type"] = listing_format.content_type
            headers["content-length"] = "0"
            return response
        if int(headers.get("content-length") or 0) > JSON_BYTES_MAX:
            return response
        body = response.read_body(JSON_BYTES_MAX * 2)
        allows_reserved_names = is_true(request.headers.get(fields.BACKEND_ALLOW_RESERVED_NAMES))
        hides_reserved_names = not allows_reserved_names and b"\\u0000" in body
        if listing_format is not ListingFormat.JSON or hides_reserved_names:
            rows = json.loads(body) if body else []
            if hides_reserved_names:
                rows = [row for row in rows if "\0" not in (row.get("name") or row.get("subdir") or "")]
            body = _render(listing_format, rows, path)
        return self._replace_body(response, body, listing_format)

    def _replace_body(self, response: Response, body: bytes, listing_format: ListingFormat) -> Response:
        response.headers["content-type"] = listing_format.content_type
        if not body:
            response.status, response.reason = 204, "No Content"
        response.body = body
        response.headers["content-length"] = str(len(body))
        return response


def _render(listing_format: ListingFormat, rows: list[dict[str, object]], path: EntityPath) -> bytes:
    if path.container is None:
        return render_account(listing_format, rows, path.account)
    return render_container(listing_format, rows, path.container)


FILTER = FilterDeclaration(
    "listing_formats",
    Settings,
    lambda app, _settings, _services: ListingFormats(app),
    position=60,
    default=True,
    required_after=("catch_errors", "gatekeeper", "proxy_logging", "memcache"),
)
