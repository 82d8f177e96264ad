"""Containers that keep every version of their objects, and accounts that have some (middleware.md §9.2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.entity import Entity, EntityPath
from swift.base.truth import is_true
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.versioned_writes.listing import (
    BadParameter,
    Row,
    account_rows,
    hidden_account_query,
    hidden_parameters,
    shown_rows,
    version_rows,
)
from swift.middleware.versioned_writes.names import hidden_container, home_of, name_of_stored, stored_name
from swift.policy.policy import Policies
from swift.runtime.wsgi import Handle

SOURCE = "OV"
HEADER = "x-versions-enabled"
_LEGACY = (
    "Cannot enable object versioning on a container that is already using the legacy "
    "versioned writes feature."
)
_SYNCED = "Cannot enable object versioning on a container configured as source of container syncing."
_TO_BE_SYNCED = "Cannot configure container sync on a container with object versioning configured."
_DEPRECATED = "Cannot enable object versioning on a container that uses a deprecated storage policy."
_FAILED = "Error enabling object versioning"
_NOT_EMPTY = "Delete all versions before deleting container."


def keeps_versions(info: ContainerInfo) -> bool:
    """Return True if a container keeps new versions."""
    return is_true(info.sysmeta.get("versions-enabled"))


class Containers:
    """The container's and the account's side of object versioning."""

    def __init__(self, forward: Handle, policies: Policies, container_rows_max: int, account_rows_max: int):
        self._forward = forward
        self._policies = policies
        self._container_rows_max = container_rows_max
        self._account_rows_max = account_rows_max

    # settings

    def set(self, request: Request, path: EntityPath) -> None:
        """Turn the client's setting into system metadata; raises ``HTTPError``."""
        headers = request.headers
        value = headers.pop(HEADER, None)
        if value is None and not headers.get("x-container-sync-to"):
            return
        info = container_info(request, self._forward, path.account, str(path.container))
        if headers.get("x-container-sync-to") and home_of(info):
            raise HTTPError(400, _TO_BE_SYNCED)
        if value is None:
            return
        if info.sysmeta.get("versions-location") or info.versions:
            raise HTTPError(400, _LEGACY)
        if info.sync_to:
            raise HTTPError(400, _SYNCED)
        enables = is_true(value)
        if enables and (info.exists or request.method == "PUT"):
            hidden = hidden_container(str(path.container))
            self._make_hidden(request, path._replace(container=hidden), info)
            headers[fields.SYSMETA_VERSIONS_CONTAINER] = stored_name(hidden)
        headers[fields.SYSMETA_VERSIONS_ENABLED] = str(enables)

    def _make_hidden(self, request: Request, path: EntityPath, info: ContainerInfo) -> None:
        """Make the container of the versions, if the caller may set anything; raises ``HTTPError``."""
        authorise: Callable[[Request], Response | None] | None = request.env.get(environkeys.AUTHORIZE)
        request.acl = None
        denied = authorise(request) if authorise is not None else None
        if denied is not None:
            raise HTTPError.of(denied)
        headers: HeaderMap = {"content-length": "0"}
        if info.exists:
            policy = self._policies.get(info.policy_index)
            if policy is None or policy.is_deprecated:
                raise HTTPError(400, _DEPRECATED)
            headers["x-storage-policy"] = policy.name
        elif "x-storage-policy" in request.headers:
            headers["x-storage-policy"] = request.headers["x-storage-policy"]
        with open_response(self._forward, _of_hidden(request, "PUT", path, headers=headers)) as response:
            if not response.is_success:
                raise HTTPError(500, _FAILED)

    # reading

    def read(self, request: Request, entity: Entity) -> Response:
        """Return the answer to a GET or HEAD."""
        if request.method == "GET" and "versions" in request.params:
            return self._list_versions(request, entity)
        response = self._forward(request)
        if self._dress(request, entity, response) and request.method == "GET":
            rows = _rows_of(response)
            if rows is not None:
                shown_rows(rows)
                _set_rows(response, rows)
        return response

    def _dress(self, request: Request, entity: Entity, response: Response) -> str | None:
        """Tell of the setting, count what is hidden; the hidden container."""
        headers = response.headers
        enabled, stored = headers.get(fields.SYSMETA_VERSIONS_ENABLED), _home_in(headers)
        if not response.is_success:
            return None
        if enabled is not None:
            headers[HEADER] = str(is_true(enabled))
        if stored is None:
            return None
        sub = _of_hidden(request, "HEAD", entity.path._replace(container=stored))
        with open_response(self._forward, sub) as hidden:
            used = hidden.headers.get("x-container-bytes-used", "") if hidden.is_success else ""
        own = headers.get("x-container-bytes-used", "")
        if is_digits(used) and is_digits(own):
            headers["x-container-bytes-used"] = str(int(used) + int(own))
        return stored

    def _list_versions(self, request: Request, entity: Entity) -> Response:
        params = request.params
        reverse = is_true(params.get("reverse"))
        response = self._forward(request)
        if not response.is_success:
            return response
        try:
            parameters = hidden_parameters(
                prefix=_text(request, "prefix") or "",
                marker=_text(request, "marker"),
                version_marker=_text(request, "version_marker"),
                delimiter=_text(request, "delimiter") or "",
            )
        except BadParameter as error:
            response.discard()
            response.report_end(0, True)
            return error_response(400, str(error))
        # A container that was removed and made again does not know the versions of before.
        home = self._dress(request, entity, response) or hidden_container(str(entity.path.container))
        rows = _rows_of(response)
        if rows is None:
            return response
        limit = _limit(params.get("limit"), self._container_rows_max)
        shown_rows(rows)
        parameters |= {"limit": str(limit), "reverse": "on" if reverse else "off", "format": "json"}
        query = "&".join(f"{n}={quote(v, safe='', errors='surrogateescape')}" for n, v in parameters.items())
        hidden = self._ask_rows(request, entity.path._replace(container=home), query)
        _set_rows(response, version_rows(rows, hidden, reverse=reverse, limit=limit))
        return response

    def _ask_rows(self, request: Request, path: EntityPath, query: str) -> list[Row]:
        """Return the rows of a hidden listing, none when nothing is there; raises ``HTTPError`` 503."""
        with open_response(self._forward, _of_hidden(request, "GET", path, query=query)) as response:
            if response.status == 404:
                return []
            rows = _rows_of(response)
        if rows is None:
            raise HTTPError(503)
        return rows

    # deleting

    def delete(self, request: Request, entity: Entity) -> Response:
        """Delete a container whose versions are all gone, and then where they were."""
        info = container_info(request, self._forward, entity.path.account, str(entity.path.container))
        home = home_of(info)
        authorise: Callable[[Request], Response | None] | None = request.env.get(environkeys.AUTHORIZE)
        if home is None or (authorise is not None and authorise(request) is not None):
            return self._forward(request)
        hidden = entity.path._replace(container=home)
        with open_response(self._forward, _of_hidden(request, "HEAD", hidden)) as found:
            count = found.headers.get("x-container-object-count", "0") if found.is_success else "0"
            if not found.is_success and found.status != 404:
                raise HTTPError(503)
        if count != "0":
            raise HTTPError(409, _NOT_EMPTY)
        response = self._forward(request)
        if response.is_success:
            with open_response(self._forward, _of_hidden(request, "DELETE", hidden)):
                # One that got a version meanwhile stays, and is listed with the account's containers.
                pass
        return response

    # accounts

    def list_account(self, request: Request, entity: Entity) -> Response:
        """Return an account listing in which hidden containers are counted with their visible ones."""
        # Rows are needed, not text.
        request.env.pop(environkeys.LISTING_TEXT, None)
        response = self._forward(request)
        rows = _rows_of(response)
        if rows is None:
            return response
        hidden = self._ask_rows(request, entity.path, hidden_account_query(request.params))
        if hidden:
            limit = _limit(request.params.get("limit"), self._account_rows_max)
            reverse = is_true(request.params.get("reverse"))
            rows = account_rows(rows, hidden, reverse=reverse, limit=limit)
            _set_rows(response, rows)
        return response


def _of_hidden(
    request: Request, method: str, path: EntityPath, *, headers: HeaderMap | None = None, query: str = ""
) -> Request:
    """Return a sub-request to what is hidden, with rights of its own."""
    sub = make_subrequest(request, method, f"/v1{path.quoted}", headers=headers, query=query, source=SOURCE)
    sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
    return preauthorise(sub)


def _home_in(headers: HeaderMap) -> str | None:
    stored = headers.get(fields.SYSMETA_VERSIONS_CONTAINER)
    return name_of_stored(stored.encode("latin-1").decode("utf-8", "surrogateescape")) if stored else None


def _rows_of(response: Response) -> list[Row] | None:
    """Return the rows of a JSON listing; None for other answers."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.status != 200 or kind != "application/json":
        return None
    rows: list[Row] = json.loads(response.read_body() or b"[]")
    return rows


def _set_rows(response: Response, rows: list[Row]) -> None:
    response.body = json.dumps(rows).encode("ascii")
    response.headers["content-length"] = str(len(response.body))


def _text(request: Request, name: str) -> str | None:
    """Return a parameter as text; one that is not UTF-8 is refused where listings are."""
    value = request.params.get(name)
    return None if value is None else value.encode("latin-1").decode("utf-8", "surrogateescape")


def _limit(text: str | None, most: int) -> int:
    """Return the number of rows to list; larger numbers were refused before."""
    return min(int(text), most) if text is not None and is_digits(text) else most
