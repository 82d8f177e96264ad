"""Enables versioning of containers and routes their PUT and DELETE requests (spec: middleware.md §9).

Three modes: two keep former objects in another container that clients see, and are decided here. The third
(X-Versions-Enabled) keeps every version in a hidden one: ``containers`` and ``objects``.

In *stack* mode (X-Versions-Location) a deletion brings the former object back; in *history* mode
(X-History-Location) it is kept as a mark among the versions.
"""

from __future__ import annotations

from urllib.parse import unquote

from swift.base.entity import RESERVED, Entity
from swift.base.errors import ConfigError
from swift.base.truth import is_true
from swift.compose import Cluster, Services
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import drained, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.versioned_writes.archive import Archive
from swift.middleware.versioned_writes.containers import HEADER, SOURCE, Containers
from swift.middleware.versioned_writes.objects import VersionedObjects
from swift.middleware.versioned_writes.settings import VersionedWritesSettings

#: Client's header → mode.
MODES = {"x-versions-location": "stack", "x-history-location": "history"}
_HEADER_OF = {mode: header for header, mode in MODES.items()}
_LOCKED = "Object lock is enabled on this container, so its versioning cannot be changed."


class VersionedWrites(Filter):
    """Keeps former objects."""

    def __init__(
        self,
        app: App,
        settings: VersionedWritesSettings,
        versioning: tuple[Cluster, TypeGuesser] | None = None,
    ):
        super().__init__(app)
        self._enabled = settings.allow_versioned_writes
        self._objects, self._containers = None, None
        if settings.allow_object_versioning and versioning is not None:
            cluster, guesser = versioning
            limits = cluster.config.limits
            self._objects = VersionedObjects(self.forward, guesser)
            self._containers = Containers(
                self.forward, cluster.policies, limits.container_listing_limit, limits.account_listing_limit
            )

    def handle(self, request: Request) -> Response:
        """Keep a version before an object is replaced or deleted; translate the container's setting."""
        entity = request.entity
        if entity is None or is_reserved(entity):
            return self.forward(request)
        if entity.path.container is None:
            if self._containers is not None and request.method == "GET":
                return self._containers.list_account(request, entity)
            return self.forward(request)
        if entity.path.obj is None:
            return self._container(request, entity)
        if self._objects is not None:
            return self._versioned(request, entity, self._objects)
        if self._enabled and request.method in ("PUT", "DELETE"):
            return self._object(request, entity)
        return self.forward(request)

    # containers

    def _container(self, request: Request, entity: Entity) -> Response:
        method, containers = request.method, self._containers
        if method in ("PUT", "POST"):
            if _ends_versions(request.headers):
                self._check_lock(request, entity)
            if containers is not None:
                containers.set(request, entity.path)
            self._set(request.headers)
        if containers is None or method not in ("GET", "HEAD", "DELETE"):
            response = self.forward(request)
        elif method == "DELETE":
            response = containers.delete(request, entity)
        else:
            response = containers.read(request, entity)
        if request.method in ("GET", "HEAD"):
            place = response.headers.get(fields.SYSMETA_VERSIONS_LOCATION)
            mode = response.headers.get(fields.SYSMETA_VERSIONS_MODE, "stack")
            if place:
                response.headers[_HEADER_OF.get(mode, _HEADER_OF["stack"])] = place
        return response

    def _check_lock(self, request: Request, entity: Entity) -> None:
        """Refuse a setting that would stop versions where object lock needs them; raises ``HTTPError`` 409.

        The container is asked afresh: what is remembered may be older than its lock.
        """
        sub = make_subrequest(request, "HEAD", entity.raw_path, source=SOURCE)
        with open_response(self.forward, preauthorise(sub)) as head:
            is_locked = bool(head.headers.get(fields.SYSMETA_S3_LOCK_RULE))
            has_legacy = bool(head.headers.get(fields.SYSMETA_VERSIONS_LOCATION))
            if not head.is_success and head.status != 404:
                raise HTTPError(503)
        if not is_locked or (has_legacy and not _ends_versions(request.headers, but_removals=True)):
            return
        authorise = request.env.get(environkeys.AUTHORIZE)
        request.acl = None
        denied = authorise(request) if authorise is not None else None
        raise HTTPError.of(denied) if denied is not None else HTTPError(409, _LOCKED, content_type=TEXT)

    def _set(self, headers: HeaderMap) -> None:
        """Turn a client's setting into system metadata; raises ``HTTPError``."""
        given = {name: headers.pop(name) for name in MODES if name in headers}
        removed = [headers.pop(_removal_of(name), None) for name in MODES]
        wanted = {name: value for name, value in given.items() if value}
        if len(wanted) > 1:
            text = f"Only one of {' or '.join(MODES)} may be specified"
            raise HTTPError(400, text, content_type=TEXT)
        if wanted and not self._enabled:
            raise HTTPError(412, "Versioned Writes is disabled")
        for name, value in wanted.items():
            if "/" in value:
                raise HTTPError(412, "Container name cannot contain slashes")
            headers[fields.SYSMETA_VERSIONS_LOCATION] = value
            headers[fields.SYSMETA_VERSIONS_MODE] = MODES[name]
        if not wanted and (given or any(removed)):
            headers[fields.SYSMETA_VERSIONS_LOCATION] = headers[fields.SYSMETA_VERSIONS_MODE] = ""
        if given or any(removed):
            # What containers of old have instead.
            headers["x-versions-location"] = ""

    # objects

    def _versioned(self, request: Request, entity: Entity, objects: VersionedObjects) -> Response:
        """Return the answer where objects may have versions."""
        path, response = entity.path, None
        if not is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            info = container_info(request, self.forward, path.account, str(path.container))
            response = objects.answer(request, entity, info)
        if response is None:
            keeps = self._enabled and request.method in ("PUT", "DELETE")
            response = self._object(request, entity) if keeps else self.forward(request)
        objects.show(response)
        return response

    def _object(self, request: Request, entity: Entity) -> Response:
        path = entity.path
        info = container_info(request, self.forward, path.account, str(path.container))
        home = info.sysmeta.get("versions-location") or info.versions
        if not home or not info.exists or is_true(request.headers.get(fields.BACKEND_REPLICATION)):
            return self.forward(request)
        if info.sync_key:
            request.env[environkeys.SYNC_KEY] = info.sync_key
        denied = _denied(request, info)
        if denied is not None:
            return denied
        # Else something would be kept for a request that is refused.
        request_timestamp(request.headers)
        home = unquote(home).partition("/")[0]
        archive = Archive(self.forward, request, entity, home)
        if request.method == "PUT":
            archive.keep()
            return self.forward(request)
        if info.sysmeta.get("versions-mode") == "history":
            archive.keep()
            archive.mark_deleted()
            return self.forward(request)
        return self._unstack(request, archive)

    def _unstack(self, request: Request, archive: Archive) -> Response:
        """Return the newest version takes the place of the object; without one it is deleted."""
        versions = archive.newest()
        if not versions:
            return self.forward(request)
        newest, *below = versions
        if newest.is_marker:
            if archive.exists():
                # The mark of a deletion: that is what the object becomes again.
                return self.forward(request)
            if below and not below[0].is_marker:
                archive.restore(below[0])
            archive.remove(newest)
            return error_response(204)
        if not archive.restore(newest):
            return drained(self.forward(request))
        return error_response(204)


def _ends_versions(headers: HeaderMap, *, but_removals: bool = False) -> bool:
    """Return True if headers stop object versioning, or let the legacy one take its place.

    ``but_removals`` leaves out those that only take the legacy one away.
    """
    if HEADER in headers and not is_true(headers[HEADER]):
        return True
    if headers.get(_removal_of(HEADER)) or any(headers.get(name) for name in MODES):
        return True
    return not but_removals and any(name in headers or _removal_of(name) in headers for name in MODES)


def _removal_of(name: str) -> str:
    return f"x-remove-{name[2:]}"


def is_reserved(entity: Entity) -> bool:
    """Return True if the path names a reserved container or object, or an impossible one."""
    return (entity.path.container or "").startswith(RESERVED) or RESERVED in (entity.path.obj or "")


def _denied(request: Request, info: ContainerInfo) -> Response | None:
    """Return the answer to a caller who may not write to the container."""
    authorise = request.env.get(environkeys.AUTHORIZE)
    if authorise is None:
        return None
    request.acl = info.write_acl
    return authorise(request)


def _make(app: App, settings: VersionedWritesSettings, services: Services) -> VersionedWrites:
    """Return the filter of a configuration section."""
    info = services.info
    if settings.allow_versioned_writes:
        info.register("versioned_writes", {"allowed_flags": list(MODES)})
    if settings.allow_object_versioning:
        if "symlink" not in info.public():
            raise ConfigError("[filter:versioned_writes] allow_object_versioning needs symlink right of it")
        info.register("object_versioning")
    guesser = TypeGuesser(services.swift_dir)
    return VersionedWrites(app, settings, (services.cluster, guesser))


FILTER = FilterDeclaration(
    "versioned_writes",
    VersionedWritesSettings,
    _make,
    position=250,
    default=True,
    required_after=(
        *("slo", "dlo", "copy", "staticweb", "tempauth", "keystoneauth"),
        *("catch_errors", "gatekeeper", "proxy_logging"),
    ),
    small_cluster={"allow_versioned_writes": "true", "allow_object_versioning": "true"},
    left_of={"encryption": "it would read and write what is encrypted"},
)
