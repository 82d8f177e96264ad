"""Enables versioning of containers and routes their PUT and DELETE requests (spec: middleware.md §9).

There are three modes. Two legacy modes store former objects in another container that clients can see; this
module handles them. The third (X-Versions-Enabled) stores every version in a hidden container: ``containers``
and ``objects``.

In *stack* mode (X-Versions-Location) a DELETE restores the former object. In *history* mode
(X-History-Location) it stores a delete marker among the versions.
"""

from __future__ import annotations

from urllib.parse import unquote

from swift.base.entity import RESERVED, Entity, NotUTF8, decode_path
from swift.base.errors import ConfigError
from swift.base.limits import Limits
from swift.base.truth import is_true
from swift.compose import Cluster, Services
from swift.gateway.info import container_info
from swift.gateway.subrequest import drained, make_subrequest, preauthorise, require_success
from swift.http import environkeys, fields
from swift.http.etagparameters import move_etag_parameters_to_rows
from swift.http.headers import HeaderMap
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.middleware.authorization import find_denial, require_access
from swift.middleware.filter import OUTER_FILTERS, App, Filter, FilterDeclaration
from swift.middleware.versioned_writes.archive import VersionArchive
from swift.middleware.versioned_writes.containers import (
    SUBREQUEST_SOURCE,
    VERSIONS_ENABLED_HEADER,
    VersionedContainers,
)
from swift.middleware.versioned_writes.names import ARCHIVED_NULL
from swift.middleware.versioned_writes.objects import VersionedObjects
from swift.middleware.versioned_writes.settings import VersionedWritesSettings

#: Client's header → mode.
MODE_BY_HEADER = {"x-versions-location": "stack", "x-history-location": "history"}
_HEADER_BY_MODE = {mode: header for header, mode in MODE_BY_HEADER.items()}
_LOCKED_ERROR = "Object lock is enabled on this container, so its versioning cannot be changed."


class VersionedWrites(Filter):
    """Stores former versions of objects."""

    def __init__(
        self,
        app: App,
        settings: VersionedWritesSettings,
        cluster_and_guesser: tuple[Cluster, TypeGuesser] | None = None,
    ):
        super().__init__(app)
        self._legacy_enabled = settings.allow_versioned_writes
        self._objects, self._containers = None, None
        limits = Limits() if cluster_and_guesser is None else cluster_and_guesser[0].config.limits
        self._name_bytes_max = limits.max_object_name_length
        if settings.allow_object_versioning and cluster_and_guesser is not None:
            cluster, guesser = cluster_and_guesser
            self._objects = VersionedObjects(self.forward, guesser, self._name_bytes_max)
            self._containers = VersionedContainers(
                self.forward, cluster.policies, limits.container_listing_limit, limits.account_listing_limit
            )

    def handle(self, request: Request) -> Response:
        """Archive the current object before it is replaced or deleted; translate the container's settings."""
        entity = request.entity
        if entity is None or is_reserved(entity):
            response = self.forward(request)
            if entity is not None and entity.path.obj is None and request.method == "GET":
                move_etag_parameters_to_rows(response, (ARCHIVED_NULL,), lambda _parameters: {})
            return response
        if entity.path.container is None:
            if self._containers is not None and request.method == "GET":
                return self._containers.list_account(request, entity)
            return self.forward(request)
        if entity.path.obj is None:
            return self._handle_container(request, entity)
        if self._objects is not None:
            return self._handle_versioned_object(request, entity, self._objects)
        if self._legacy_enabled and request.method in ("PUT", "DELETE"):
            return self._handle_legacy_object(request, entity)
        return self.forward(request)

    # containers

    def _handle_container(self, request: Request, entity: Entity) -> Response:
        method, containers = request.method, self._containers
        if method in ("PUT", "POST"):
            if _disables_versioning(request.headers):
                self._check_lock(request, entity)
            if containers is not None:
                containers.apply_settings(request, entity.path)
            self._apply_legacy_settings(request.headers)
        if containers is None or method not in ("GET", "HEAD", "DELETE"):
            response = self.forward(request)
        elif method == "DELETE":
            response = containers.delete(request, entity)
        else:
            response = containers.handle_read(request, entity)
        if request.method in ("GET", "HEAD"):
            versions_location = response.headers.get(fields.SYSMETA_VERSIONS_LOCATION)
            mode = response.headers.get(fields.SYSMETA_VERSIONS_MODE, "stack")
            if versions_location:
                response.headers[_HEADER_BY_MODE.get(mode, _HEADER_BY_MODE["stack"])] = versions_location
        return response

    def _check_lock(self, request: Request, entity: Entity) -> None:
        """Refuse a setting that would stop versions that object lock requires; raises ``HTTPError`` 409.

        A new HEAD reads the container's state: cached info may be older than its lock.
        """
        sub = make_subrequest(request, "HEAD", entity.raw_path, source=SUBREQUEST_SOURCE)
        headers = require_success(self.forward, preauthorise(sub), 404).headers
        is_locked = bool(headers.get(fields.SYSMETA_S3_LOCK_RULE))
        has_legacy = bool(headers.get(fields.SYSMETA_VERSIONS_LOCATION))
        if not is_locked or (has_legacy and not _disables_versioning(request.headers, ignore_removals=True)):
            return
        require_access(request, None)
        raise HTTPError(409, _LOCKED_ERROR, content_type=TEXT)

    def _apply_legacy_settings(self, headers: HeaderMap) -> None:
        """Convert a client's legacy setting to system metadata; raises ``HTTPError``."""
        client_settings = {name: headers.pop(name) for name in MODE_BY_HEADER if name in headers}
        removed = [headers.pop(_removal_header(name), None) for name in MODE_BY_HEADER]
        requested = {name: value for name, value in client_settings.items() if value}
        if len(requested) > 1:
            text = f"Only one of {' or '.join(MODE_BY_HEADER)} may be specified"
            raise HTTPError(400, text, content_type=TEXT)
        if requested and not self._legacy_enabled:
            raise HTTPError(412, "Versioned Writes is disabled")
        for name, value in requested.items():
            if "/" in value:
                raise HTTPError(412, "Container name cannot contain slashes")
            if not _names_container(value):
                raise HTTPError(400, f"{name.title()} does not name a container", content_type=TEXT)
            headers[fields.SYSMETA_VERSIONS_LOCATION] = value
            headers[fields.SYSMETA_VERSIONS_MODE] = MODE_BY_HEADER[name]
        if not requested and (client_settings or any(removed)):
            headers[fields.SYSMETA_VERSIONS_LOCATION] = headers[fields.SYSMETA_VERSIONS_MODE] = ""
        if client_settings or any(removed):
            # Old containers store the location in this header.
            headers["x-versions-location"] = ""

    # objects

    def _handle_versioned_object(
        self, request: Request, entity: Entity, objects: VersionedObjects
    ) -> Response:
        """Return the response for an object of a container that may have object versioning."""
        path, response = entity.path, None
        if not is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            info = container_info(request, self.forward, path.account, str(path.container))
            response = objects.handle(request, entity, info)
        if response is None:
            archives = self._legacy_enabled and request.method in ("PUT", "DELETE")
            response = self._handle_legacy_object(request, entity) if archives else self.forward(request)
        objects.replace_hidden_location(response)
        return response

    def _handle_legacy_object(self, request: Request, entity: Entity) -> Response:
        path = entity.path
        info = container_info(request, self.forward, path.account, str(path.container))
        versions_container = info.sysmeta.get("versions-location") or info.versions
        if (
            not versions_container
            or not info.exists
            or is_true(request.headers.get(fields.BACKEND_REPLICATION))
        ):
            return self.forward(request)
        if info.sync_key:
            request.env[environkeys.SYNC_KEY] = info.sync_key
        denied = find_denial(request, info.write_acl)
        if denied is not None:
            return denied
        # An invalid timestamp must be refused before anything is archived.
        request_timestamp(request.headers)
        versions_container = unquote(versions_container).partition("/")[0]
        archive = VersionArchive(self.forward, request, entity, versions_container, self._name_bytes_max)
        if request.method == "PUT":
            archive.archive_current()
            return self.forward(request)
        if info.sysmeta.get("versions-mode") == "history":
            if not archive.has_room():
                # The object is older than the setting, for it could not be stored since.
                return self.forward(request)
            archive.archive_current()
            archive.put_delete_marker()
            return self.forward(request)
        return self._restore_newest(request, archive)

    def _restore_newest(self, request: Request, archive: VersionArchive) -> Response:
        """Replace the object by its newest version; delete it when there is none."""
        versions = archive.list_newest()
        if not versions:
            return self.forward(request)
        newest, *older = versions
        if newest.is_marker:
            if archive.current_exists():
                # The delete marker is older than the object, so the object is deleted again.
                return self.forward(request)
            if older and not older[0].is_marker:
                archive.restore_version(older[0])
            archive.delete_version(newest)
            return error_response(204)
        if not archive.restore_version(newest):
            return drained(self.forward(request))
        return error_response(204)


def _names_container(quoted: str) -> bool:
    """Return True if a location names a container that clients can have: no reserved or hidden name."""
    try:
        name = decode_path(quoted)
    except NotUTF8:
        return False
    return not name.startswith(".") and RESERVED not in name


def _disables_versioning(headers: HeaderMap, *, ignore_removals: bool = False) -> bool:
    """Return True if headers disable object versioning, or enable a legacy mode in its place.

    ``ignore_removals`` ignores headers that only disable a legacy mode.
    """
    if VERSIONS_ENABLED_HEADER in headers and not is_true(headers[VERSIONS_ENABLED_HEADER]):
        return True
    if headers.get(_removal_header(VERSIONS_ENABLED_HEADER)) or any(
        headers.get(name) for name in MODE_BY_HEADER
    ):
        return True
    return not ignore_removals and any(
        name in headers or _removal_header(name) in headers for name in MODE_BY_HEADER
    )


def _removal_header(name: str) -> str:
    return f"x-remove-{name[2:]}"


def is_reserved(entity: Entity) -> bool:
    """Return True if the path names a reserved container or object, or an impossible one."""
    return (entity.path.container or "").startswith(RESERVED) or RESERVED in (entity.path.obj or "")


def _make_filter(app: App, settings: VersionedWritesSettings, services: Services) -> VersionedWrites:
    """Return the filter of a configuration section."""
    info = services.info
    if settings.allow_versioned_writes:
        info.register("versioned_writes", {"allowed_flags": list(MODE_BY_HEADER)})
    if settings.allow_object_versioning:
        if "symlink" not in info.public():
            raise ConfigError("[filter:versioned_writes] allow_object_versioning needs symlink right of it")
        info.register("object_versioning")
    guesser = TypeGuesser(services.swift_dir)
    return VersionedWrites(app, settings, (services.cluster, guesser))


FILTER = FilterDeclaration(
    "versioned_writes",
    VersionedWritesSettings,
    _make_filter,
    position=250,
    default=True,
    required_after=("slo", "dlo", "copy", *OUTER_FILTERS),
    small_cluster={"allow_versioned_writes": "true", "allow_object_versioning": "true"},
    left_of={"encryption": "its own requests must pass through encryption"},
)
