"""Listings in the format the client wants (spec: public-api.md §7.1, §7.2).

Below this filter a listing is JSON, so that filters and the proxy can work on rows. A client that wants
JSON gets the container server's bytes as they are, and so does one that wants text when the proxy was able
to ask for text.
"""

from __future__ import annotations

import json

from swift.base.entity import API_VERSIONS, EntityPath
from swift.base.truth import is_true
from swift.config.schema import Settings
from swift.http import environkeys, fields
from swift.http.listing import render_account, render_container
from swift.http.negotiate import ListingFormat, add_vary, choose_format, choose_json
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.filter import Filter, FilterDeclaration

#: A listing larger than this is passed on as the JSON it is.
JSON_BYTES_MAX = 1024 * 10000 * 2


class ListingFormats(Filter):
    """Turns JSON listings into text or XML."""

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
        shape = choose_format(request)
        params = [p for p in request.query.split("&") if p and not p.startswith("format=")]
        asked = request.query
        request.set_query("&".join([*params, "format=json"]))
        if shape is ListingFormat.PLAIN and not lists_versions:
            request.env[environkeys.LISTING_TEXT] = True
        response = self.forward(request)
        request.env.pop(environkeys.LISTING_TEXT, None)
        request.set_query(asked)
        if lists_versions:
            return self._only_json(request, response)
        return self._convert(request, response, shape, entity.path)

    def _only_json(self, request: Request, response: Response) -> Response:
        """Return a listing of versions, or 406 when the client does not take JSON.

        Refusals by others come first: a client learns nothing about a container it may not list.
        """
        if response.is_success:
            try:
                choose_json(request)
            except HTTPError as error:
                response.discard()
                response.report_end(0, True)
                return error.response
        return response

    def _convert(
        self, request: Request, response: Response, shape: ListingFormat, path: EntityPath
    ) -> Response:
        headers = response.headers
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if response.status not in (200, 204):
            return response
        # Also where a filter made a page of it: another Accept may get another answer.
        add_vary(request, headers)
        if kind not in ("application/json", shape.value):
            return response
        if kind == shape.value == ListingFormat.PLAIN.value:
            headers["content-type"] = shape.content_type
            return response
        if request.method == "HEAD":
            headers["content-type"] = shape.content_type
            headers["content-length"] = "0"
            return response
        if int(headers.get("content-length") or 0) > JSON_BYTES_MAX:
            return response
        body = response.read_body(JSON_BYTES_MAX * 2)
        reserved_ok = is_true(request.headers.get(fields.BACKEND_ALLOW_RESERVED_NAMES))
        hides = not reserved_ok and b"\\u0000" in body
        if shape is not ListingFormat.JSON or hides:
            rows = json.loads(body) if body else []
            if hides:
                rows = [row for row in rows if "\0" not in (row.get("name") or row.get("subdir") or "")]
            body = _render(shape, rows, path)
        return self._replace(response, body, shape)

    def _replace(self, response: Response, body: bytes, shape: ListingFormat) -> Response:
        response.headers["content-type"] = shape.content_type
        if not body:
            response.status, response.reason = 204, "No Content"
        response.body = body
        response.headers["content-length"] = str(len(body))
        return response


def _render(shape: ListingFormat, rows: list[dict[str, object]], path: EntityPath) -> bytes:
    if path.container is None:
        return render_account(shape, rows, path.account)
    return render_container(shape, rows, path.container)


FILTER = FilterDeclaration(
    "listing_formats",
    Settings,
    lambda app, _settings, _services: ListingFormats(app),
    position=60,
    default=True,
    required_after=("catch_errors", "gatekeeper", "proxy_logging", "memcache"),
)
