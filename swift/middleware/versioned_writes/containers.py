"""Containers with object versioning, and listings of accounts that have some (middleware.md §9.2)."""

from __future__ import annotations

import json
from typing import Unpack
from urllib.parse import quote

from swift.base.digits import is_digits
from swift.base.entity import Entity, EntityPath
from swift.base.truth import is_true
from swift.gateway.info import ContainerInfo, reachable_container_info
from swift.gateway.subrequest import (
    RequestContent,
    drained,
    make_privileged_request,
    open_response,
    read_listing,
    require_success,
)
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.authorization import find_denial, require_access
from swift.middleware.versioned_writes.listing import (
    BadParameter,
    Row,
    hidden_account_query,
    hidden_listing_parameters,
    merge_account_rows,
    merge_version_rows,
    resolve_version_links,
)
from swift.middleware.versioned_writes.names import (
    ARCHIVED_NULL,
    get_versions_container,
    hidden_container,
    quote_container_name,
    unquote_container_name,
)
from swift.policy.policy import Policies
from swift.runtime.wsgi import Handle

SUBREQUEST_SOURCE = "OV"
VERSIONS_ENABLED_HEADER = "x-versions-enabled"
_LEGACY_ERROR = (
    "Cannot enable object versioning on a container that is already using the legacy "
    "versioned writes feature."
)
_SYNC_SOURCE_ERROR = (
    "Cannot enable object versioning on a container configured as source of container syncing."
)
_SYNC_TO_ERROR = "Cannot configure container sync on a container with object versioning configured."
_DEPRECATED_POLICY_ERROR = (
    "Cannot enable object versioning on a container that uses a deprecated storage policy."
)
_ENABLE_ERROR = "Error enabling object versioning"
_NOT_EMPTY_ERROR = "Delete all versions before deleting container."


def is_versioning_enabled(info: ContainerInfo) -> bool:
    """Return True if object versioning is enabled for a container."""
    return is_true(info.sysmeta.get("versions-enabled"))


class VersionedContainers:
    """Container and account requests of object versioning."""

    def __init__(self, forward: Handle, policies: Policies, container_rows_max: int, account_rows_max: int):
        self._forward = forward
        self._policies = policies
        self._container_rows_max = container_rows_max
        self._account_rows_max = account_rows_max

    # settings

    def apply_settings(self, request: Request, path: EntityPath) -> None:
        """Convert the client's versioning header to system metadata; raises ``HTTPError``."""
        headers = request.headers
        value = headers.pop(VERSIONS_ENABLED_HEADER, None)
        if value is None and not headers.get("x-container-sync-to"):
            return
        info = reachable_container_info(request, self._forward, path.account, str(path.container))
        if headers.get("x-container-sync-to") and get_versions_container(info):
            raise HTTPError(400, _SYNC_TO_ERROR)
        if value is None:
            return
        if info.sysmeta.get("versions-location") or info.versions:
            raise HTTPError(400, _LEGACY_ERROR)
        if info.sync_to:
            raise HTTPError(400, _SYNC_SOURCE_ERROR)
        enables = is_true(value)
        headers[fields.SYSMETA_VERSIONS_ENABLED] = str(enables)
        if enables and (info.exists or request.method == "PUT"):
            hidden = hidden_container(str(path.container))
            self._create_hidden_container(request, path._replace(container=hidden), info)
            headers[fields.SYSMETA_VERSIONS_CONTAINER] = quote_container_name(hidden)

    def _create_hidden_container(self, request: Request, path: EntityPath, info: ContainerInfo) -> None:
        """Create the hidden container if the caller may set owner's headers; raises ``HTTPError``."""
        require_access(request, None)
        headers: HeaderMap = {"content-length": "0"}
        if info.exists:
            policy = self._policies.get(info.policy_index)
            if policy is None or policy.is_deprecated:
                raise HTTPError(400, _DEPRECATED_POLICY_ERROR)
            headers["x-storage-policy"] = policy.name
        elif "x-storage-policy" in request.headers:
            headers["x-storage-policy"] = request.headers["x-storage-policy"]
        with open_response(
            self._forward, _make_hidden_request(request, "PUT", path, headers=headers)
        ) as response:
            if not response.is_success:
                raise HTTPError(500, _ENABLE_ERROR)

    # reading

    def handle_read(self, request: Request, entity: Entity) -> Response:
        """Return the response to a GET or HEAD."""
        if request.method == "GET" and "versions" in request.params:
            return self._list_versions(request, entity)
        response = self._forward(request)
        if self._add_versioning_headers(request, entity, response) and request.method == "GET":
            rows = _read_rows(response)
            if rows is not None:
                resolve_version_links(rows)
                _set_rows(response, rows)
        return response

    def _add_versioning_headers(self, request: Request, entity: Entity, response: Response) -> str | None:
        """Add the versioning header and the versions' bytes; return the hidden container."""
        headers = response.headers
        enabled, hidden_name = headers.get(fields.SYSMETA_VERSIONS_ENABLED), _versions_container_in(headers)
        if not response.is_success:
            return None
        if enabled is not None:
            headers[VERSIONS_ENABLED_HEADER] = str(is_true(enabled))
        if hidden_name is None:
            return None
        sub = _make_hidden_request(request, "HEAD", entity.path._replace(container=hidden_name))
        with open_response(self._forward, sub) as hidden:
            used = hidden.headers.get("x-container-bytes-used", "") if hidden.is_success else ""
        visible_used = headers.get("x-container-bytes-used", "")
        if is_digits(used) and is_digits(visible_used):
            headers["x-container-bytes-used"] = str(int(used) + int(visible_used))
        return hidden_name

    def _list_versions(self, request: Request, entity: Entity) -> Response:
        params = request.params
        reverse = is_true(params.get("reverse"))
        response = self._forward(request)
        if not response.is_success:
            return response
        try:
            parameters = hidden_listing_parameters(
                prefix=_param_text(request, "prefix") or "",
                marker=_param_text(request, "marker"),
                version_marker=_param_text(request, "version_marker"),
                delimiter=_param_text(request, "delimiter") or "",
            )
        except BadParameter as error:
            drained(response)
            return error_response(400, str(error))
        # A container that was deleted and created again has no metadata of its former versions.
        hidden_name = self._add_versioning_headers(request, entity, response) or hidden_container(
            str(entity.path.container)
        )
        rows = _read_rows(response)
        if rows is None:
            return response
        limit = _limit(params.get("limit"), self._container_rows_max)
        resolve_version_links(rows)
        parameters |= {"limit": str(limit), "reverse": "on" if reverse else "off", "format": "json"}
        query = "&".join(f"{n}={quote(v, safe='', errors='surrogateescape')}" for n, v in parameters.items())
        hidden = self._list_hidden_rows(request, entity.path._replace(container=hidden_name), query)
        merged = merge_version_rows(rows, hidden, reverse=reverse, limit=limit)
        if not is_true(request.headers.get(fields.BACKEND_FIND_ARCHIVED_NULL)):
            for row in merged:
                row.pop(ARCHIVED_NULL, None)
        _set_rows(response, merged)
        return response

    def _list_hidden_rows(self, request: Request, path: EntityPath, query: str) -> list[Row]:
        """Return the rows of a hidden listing, none for a missing container; raises ``HTTPError`` 503."""
        return read_listing(self._forward, _make_hidden_request(request, "GET", path, query=query))

    # deleting

    def delete(self, request: Request, entity: Entity) -> Response:
        """Delete a container that has no versions left, then its hidden container."""
        path = entity.path
        info = reachable_container_info(request, self._forward, path.account, str(path.container))
        hidden_name = get_versions_container(info)
        if hidden_name is None or find_denial(request, request.acl) is not None:
            return self._forward(request)
        hidden = path._replace(container=hidden_name)
        found = require_success(self._forward, _make_hidden_request(request, "HEAD", hidden), 404)
        if found.is_success and found.headers.get("x-container-object-count", "0") != "0":
            raise HTTPError(409, _NOT_EMPTY_ERROR)
        response = self._forward(request)
        if response.is_success:
            with open_response(self._forward, _make_hidden_request(request, "DELETE", hidden)):
                # A hidden container that received a version meanwhile stays; the account listing counts it.
                pass
        return response

    # accounts

    def list_account(self, request: Request, entity: Entity) -> Response:
        """Return an account listing that counts hidden containers with their visible ones."""
        # Rows are needed, not text.
        request.env.pop(environkeys.LISTING_TEXT, None)
        response = self._forward(request)
        rows = _read_rows(response)
        if rows is None:
            return response
        hidden = self._list_hidden_rows(request, entity.path, hidden_account_query(request.params))
        if hidden:
            limit = _limit(request.params.get("limit"), self._account_rows_max)
            reverse = is_true(request.params.get("reverse"))
            rows = merge_account_rows(rows, hidden, reverse=reverse, limit=limit)
            _set_rows(response, rows)
        return response


def _make_hidden_request(
    request: Request, method: str, path: EntityPath, **content: Unpack[RequestContent]
) -> Request:
    """Return a preauthorized sub-request for a hidden container."""
    return make_privileged_request(request, method, Entity("v1", path), SUBREQUEST_SOURCE, **content)


def _versions_container_in(headers: HeaderMap) -> str | None:
    stored = headers.get(fields.SYSMETA_VERSIONS_CONTAINER)
    return (
        unquote_container_name(stored.encode("latin-1").decode("utf-8", "surrogateescape"))
        if stored
        else None
    )


def _read_rows(response: Response) -> list[Row] | None:
    """Return the rows of a JSON listing; None for other responses."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.status != 200 or kind != "application/json":
        return None
    rows: list[Row] = json.loads(response.read_body() or b"[]")
    return rows


def _set_rows(response: Response, rows: list[Row]) -> None:
    response.body = json.dumps(rows).encode("ascii")
    response.headers["content-length"] = str(len(response.body))


def _param_text(request: Request, name: str) -> str | None:
    """Return a query parameter as text; the container listing refuses one that is not UTF-8."""
    value = request.params.get(name)
    return None if value is None else value.encode("latin-1").decode("utf-8", "surrogateescape")


def _limit(text: str | None, limit_max: int) -> int:
    """Return the number of rows to list, at most ``most``."""
    return min(int(text), limit_max) if text is not None and is_digits(text) else limit_max
