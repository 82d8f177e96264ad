"""Objects of containers with object versioning (spec: middleware.md §9.2).

The object is a static link to its current version, which is stored in a hidden container. A user who may
write to the container may create versions, and one who may read the object may follow the link to its
version. A request for a version by id has the caller's own rights. In the hidden container only the account's
owner has any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from swift.base.entity import Entity, EntityPath, quote_path
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.gateway.info import ContainerInfo
from swift.gateway.subrequest import drained, make_subrequest
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.body import BytesBody, RequestBody
from swift.http.etagparameters import add_etag_parameters, parse_etag_parameters
from swift.http.headers import HeaderMap
from swift.http.mediatypes import TypeGuesser
from swift.http.objectlock import MAY_WITHDRAW, NO_LOCK, parse_default_retention, parse_lock
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.middleware.authorization import find_denial
from swift.middleware.versioned_writes.archive import DELETE_MARKER_TYPE, VersionArchive
from swift.middleware.versioned_writes.containers import SUBREQUEST_SOURCE, is_versioning_enabled
from swift.middleware.versioned_writes.links import (
    LinkState,
    StoredVersion,
    VersionLink,
    just_above,
    parse_visible_version,
)
from swift.middleware.versioned_writes.names import (
    ARCHIVED_NULL,
    NULL_VERSION_ID,
    Version,
    get_versions_container,
    version_name_bytes,
    visible_url,
)
from swift.runtime.wsgi import Handle

VERSION_ID_HEADER = "x-object-version-id"
CURRENT_VERSION_ID_HEADER = "x-object-current-version-id"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_TARGET_HEADER, _LOCATION_HEADER = "x-symlink-target", "content-location"
#: Headers of an upload that apply to the link, not to the version: expiry and conditions.
_LINK_ONLY_HEADERS = (
    *("x-delete-at", "x-delete-after", "if-none-match", "if-match"),
    fields.BACKEND_IF_PREDECESSOR,
)
_CLIENT_CONDITIONS = ("if-match", "if-none-match")
#: Responses to a change of the link that met a newer state.
_OVERTAKEN = (("PUT", 202), ("DELETE", 409))
#: Times that an overtaken change of the link is repeated.
_REPEATS_MAX = 4
#: Headers of a POST that apply to the link.
_LINK_ONLY_POST_HEADERS = (
    *("x-delete-at", "x-delete-after", "x-remove-delete-at", "x-remove-delete-after"),
    fields.BACKEND_IF_PREDECESSOR,
)
#: Headers that apply to the version alone.
_VERSION_ONLY_HEADERS = frozenset(
    (
        *(
            "etag",
            "content-length",
            "transfer-encoding",
            "expect",
            "x-static-large-object",
            "x-object-manifest",
        ),
        *("x-symlink-target", "x-symlink-target-account", "x-symlink-target-etag", "x-symlink-target-bytes"),
        *("x-detect-content-type", fields.TRANSIENT_S3_LOCK, fields.BACKEND_OBJECT_LOCK),
    )
)
#: System metadata of a container with the default lock of new versions.
_LOCK_RULE_SYSMETA = fields.SYSMETA_S3_LOCK_RULE.removeprefix(fields.CONTAINER_SYSMETA)
#: Headers of these that a POST may have too.
_LOCK_HEADERS = (fields.TRANSIENT_S3_LOCK, fields.BACKEND_OBJECT_LOCK)
#: Environment keys that concern the body.
_BODY_ENVIRON_KEYS = (environkeys.UPDATE_FOOTERS, environkeys.CONTENT_TYPE_OVERRIDDEN)
#: Parameter of a manifest's listing row → the manifest's header.
_MANIFEST_ROW_FIELDS = {
    "s3_etag": fields.SYSMETA_S3_ETAG,
    "s3_class": fields.SYSMETA_S3_CLASS,
    "slo_etag": fields.SYSMETA_SLO_ETAG,
}
_NOT_VERSIONED_ERROR = "version-aware operations require that the container is versioned"
_NO_VERSIONS_CONTAINER_ERROR = (
    "The versions container does not exist. You may want to re-enable object versioning."
)
_NO_VERSION_ERROR = "The specified version does not exist"


class _LinkTarget(NamedTuple):
    """The version that a link points to."""

    version: Version
    etag: str
    size: str
    content_type: str
    #: More listing row parameters, when the stored version is a symlink itself.
    row_parameters: Mapping[str, str] = {}


class VersionedObjects:
    """Object requests of object versioning."""

    def __init__(self, forward: Handle, guesser: TypeGuesser, name_bytes_max: int):
        self._forward = forward
        self._guesser = guesser
        self._name_bytes_max = name_bytes_max

    def handle(self, request: Request, entity: Entity, info: ContainerInfo) -> Response | None:
        """Return the response to a request for an object; None when no versioning applies."""
        version_id, is_unversioned = request.params.get("version-id"), get_versions_container(info) is None
        if is_unversioned and version_id == NULL_VERSION_ID and request.method == "DELETE":
            # The object itself; the legacy modes may restore its former version.
            return None
        if not version_id and is_unversioned:
            return None
        found = _ObjectRequest(
            self._forward, self._guesser, request, entity, info, name_bytes_max=self._name_bytes_max
        )
        return found.handle_version(version_id) if version_id else found.handle_current()

    def replace_hidden_location(self, response: Response) -> None:
        """Replace a hidden Content-Location of a response by the name that clients know."""
        location = response.headers.get(_LOCATION_HEADER)
        url = visible_url(location) if location is not None else None
        if url is not None:
            response.headers[_LOCATION_HEADER] = url


class _ObjectRequest:
    """One request for an object."""

    def __init__(
        self,
        forward: Handle,
        guesser: TypeGuesser,
        request: Request,
        entity: Entity,
        info: ContainerInfo,
        *,
        name_bytes_max: int,
    ):
        self._forward = forward
        self._guesser = guesser
        self._request = request
        self._entity = entity
        self._object_path = entity.path
        self._object_name = str(entity.path.obj)
        self._info = info
        self._name_bytes_max = name_bytes_max
        self._versions_container = EntityPath(entity.path.account, get_versions_container(info))
        self._link = VersionLink(forward, request, entity, self._versions_container)

    def handle_current(self) -> Response:
        """Return the response to a request that names no version."""
        method, enabled = self._request.method, is_versioning_enabled(self._info)
        if method in ("GET", "HEAD", "OPTIONS"):
            return self._read()
        if method == "POST":
            return self._post()
        if method == "PUT" and enabled:
            return self._put()
        if method == "DELETE" and enabled:
            return self._delete()
        return self._forward(self._request)

    def handle_version(self, version_id: str) -> Response:
        """Return the response to a request for one version; raises ``HTTPError``."""
        method = self._request.method
        if method == "POST":
            raise HTTPError(400, "POST to a specific version is not allowed")
        if version_id == NULL_VERSION_ID:
            return self._handle_null_version()
        if self._versions_container.container is None:
            raise HTTPError(400, _NOT_VERSIONED_ERROR)
        try:
            version = Version(self._object_name, Timestamp(version_id))
        except InvalidTimestamp:
            raise HTTPError(400, "Invalid version parameter")
        if method in ("GET", "HEAD"):
            return self._read_version(version, version_id)
        if method == "PUT":
            return self._restore_version(version, version_id)
        if method == "DELETE":
            return self._delete_version(version, version_id)
        return self._forward(self._request)

    # reading

    def _read(self) -> Response:
        response = self._forward(self._request)
        found = self._visible_version(response)
        is_here = found is not None and found[0][:2] == self._object_path[:2]
        response.headers[VERSION_ID_HEADER] = found[1] if found is not None and is_here else NULL_VERSION_ID
        return response

    def _visible_version(self, response: Response) -> tuple[EntityPath, str] | None:
        """Return the object and the version id of a response; None if it is not a version.

        It is another object's version if this object is a link, perhaps to another container.
        """
        headers = response.headers
        found = None
        if _LOCATION_HEADER in headers:
            found = parse_visible_version(headers[_LOCATION_HEADER])
        elif fields.SYSMETA_VERSIONS_SYMLINK in headers and _TARGET_HEADER in headers:
            url = f"/v1/{quote_path(self._object_path.account)}/{headers[_TARGET_HEADER]}"
            found = parse_visible_version(url)
            visible_target = visible_url(url)
            if visible_target is not None:
                headers[_TARGET_HEADER] = visible_target.split("/", 3)[3]
        return found

    def _handle_null_version(self) -> Response:
        """Return the response for the null version: the container's own object unless that is a link.

        For the S3 API also that object after it was archived.
        """
        request = self._request
        finds_archived = is_true(request.headers.pop(fields.BACKEND_FIND_ARCHIVED_NULL, None))
        if request.method == "PUT":
            raise HTTPError(400, "Invalid version parameter")
        if request.method == "DELETE" and finds_archived:
            return self._delete_null_version()
        response = self._forward(request)
        if request.method not in ("GET", "HEAD"):
            return response
        is_found = _was_found(response)
        if is_found and self._visible_version(response) is None:
            response.headers[VERSION_ID_HEADER] = NULL_VERSION_ID
        elif is_found or (response.status == 404 and finds_archived):
            drained(response)
            archived = self._link.find_archived_null() if finds_archived else None
            if archived is not None:
                return self._read_version(archived.version, archived.version.id)
            return error_response(404)
        return response

    def _delete_null_version(self) -> Response:
        """Delete the container's own object, or the version that it became; restore the newest version."""
        denied = find_denial(self._request, self._info.write_acl)
        if denied is not None:
            return denied
        request = self._request
        for _ in range(_REPEATS_MAX):
            state = self._link.read()
            if not state.exists or state.version is not None:
                archived = self._link.find_archived_null()
                if archived is None:
                    return error_response(404)
                return self._delete_version(archived.version, archived.version.id)
            request.headers[fields.BACKEND_IF_PREDECESSOR] = state.stored
            response = self._forward(request)
            if response.status == 501 and not _has_client_condition(request):
                # Nodes of OpenStack Swift support no conditions.
                drained(response)
                del request.headers[fields.BACKEND_IF_PREDECESSOR]
                response = self._forward(request)
            request.headers.pop(fields.BACKEND_IF_PREDECESSOR, None)
            if response.is_success:
                self._link.repair(
                    self._link.read(), None, self._put_restored_link, restores=True, outdates=False
                )
            if response.status not in (404, 409, 412) or "if-match" in request.headers:
                return response
            # It was archived meanwhile.
            drained(response)
        raise HTTPError(503)

    def _read_version(self, version: Version, version_id: str) -> Response:
        response = self._forward(self._make_client_request(version))
        if response.status != 412 and response.headers.get("content-type") == DELETE_MARKER_TYPE:
            drained(response)
            return error_response(
                404, headers={VERSION_ID_HEADER: version_id}, content_type=DELETE_MARKER_TYPE
            )
        if response.is_success:
            response.headers[VERSION_ID_HEADER] = version_id
        return response

    # writing

    def _put(self) -> Response:
        """Store a version and point the link to it."""
        request = self._request
        denied = find_denial(self._request, self._info.write_acl)
        if denied is not None:
            return denied
        archive = self._archive()
        if not archive.has_room():
            size = version_name_bytes(self._object_name)
            text = f"Object name length of {size} longer than {self._name_bytes_max}"
            raise HTTPError(400, text, content_type=TEXT)
        archive.archive_current()
        version = Version(self._object_name, self._request_timestamp())
        response, target = self._store_version(version, request.body)
        if response.status != 201 or target is None:
            return response
        try:
            linked = self._put_link(
                target,
                request.headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, ""),
                partial(self._forward_newest, version),
            )
        except WriteNotStored:
            self._delete_unlinked(version)
            raise
        if not linked.is_success:
            if linked.status < 500:
                self._delete_unlinked(version)
            return linked
        response.headers[VERSION_ID_HEADER] = version.id
        return response

    def _archive(self) -> _HiddenVersionArchive:
        hidden = str(self._versions_container.container)
        return _HiddenVersionArchive(self._forward, self._request, self._entity, hidden, self._name_bytes_max)

    def _delete_unlinked(self, version: Version) -> None:
        """Delete a version or delete marker whose link could not be changed.

        Another request may have restored the version meanwhile.
        """
        deletion = self._link.make_request("DELETE", self._link.version_path(version))
        deletion.headers[fields.BACKEND_OBJECT_LOCK] = MAY_WITHDRAW
        drained(self._forward(deletion))
        self._repair_link(version, restores=True)

    def _store_version(self, version: Version, body: RequestBody) -> tuple[Response, _LinkTarget | None]:
        """Store the body as a version; return the response and the target for a link to it."""
        request = self._request
        headers = {name: value for name, value in request.headers.items() if name not in _LINK_ONLY_HEADERS}
        # A copy does not come from before versioning.
        headers.pop(fields.SYSMETA_VERSIONS_NULL, None)
        headers["x-timestamp"] = version.time.internal
        default = parse_default_retention(self._info.sysmeta.get(_LOCK_RULE_SYSMETA))
        if default is not None:
            headers.setdefault(fields.TRANSIENT_S3_LOCK, str(default.make_lock(version.time.seconds)))
        guesses = is_true(headers.pop("x-detect-content-type", None)) or not headers.get("content-type")
        if guesses and _TARGET_HEADER not in headers:
            # The hidden name has no file extension to guess the type from.
            headers["content-type"] = self._guesser.guess(self._object_name)
        sub = make_subrequest(
            request,
            "PUT",
            self._hidden_raw_path(version),
            headers=headers,
            body=body,
            source=SUBREQUEST_SOURCE,
        )
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        passed_keys = (*_BODY_ENVIRON_KEYS, environkeys.SYMLINK_OVERRIDE)
        sub.env.update((key, request.env[key]) for key in passed_keys if key in request.env)
        self._authorize_hidden(sub)
        response = self._forward(sub)
        if response.status == 404:
            drained(response)
            raise HTTPError(500, _NO_VERSIONS_CONTAINER_ERROR, content_type=TEXT)
        if response.status == 202:
            # Another writer used the same timestamp.
            drained(response)
            return error_response(503), None
        size = request.headers.get(fields.SYSMETA_SLO_SIZE) or str(body.received)
        kind = sub.headers.get("content-type", "").partition(";swift_bytes=")[0]
        etag, row_parameters = unquote_etag(response.headers.get("etag", "")), {}
        if _TARGET_HEADER in request.headers:
            # A static link is listed with its target's size and ETag.
            etag = sub.headers.get(fields.SYSMETA_SYMLINK_TARGET_ETAG, etag)
            size = sub.headers.get(fields.SYSMETA_SYMLINK_TARGET_BYTES, "0")
            row = parse_etag_parameters(sub.headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, ""))
            row_parameters = {name: row[name] for name in ("slo_etag",) if name in row}
        return response, _LinkTarget(version, etag, size, kind, row_parameters)

    def _forward_newest(self, version: Version, request: Request) -> Response:
        """Forward the upload or deletion of the link; repeat it if it was overtaken, but is the newest.

        A change of the link that follows from the deletion of a newer version may overtake it.
        """
        response = self._forward(request)
        for _ in range(_REPEATS_MAX):
            if (request.method, response.status) not in _OVERTAKEN or _has_condition(request):
                break
            state = self._link.read()
            if state.time is None or not self._link.is_newest(version, state):
                break
            drained(response)
            request.timestamp, request.body = just_above(state.time), BytesBody()
            response = self._forward(request)
        return response

    def _put_link(
        self, target: _LinkTarget, override: str, forward: Handle | None = None, *, loose: bool = False
    ) -> Response:
        """Point the object's link to a version; a loose link does not require an ETag.

        Raises ``WriteNotStored``.
        """
        request, headers = self._request, self._request.headers
        s3_etag = headers.get(fields.SYSMETA_S3_ETAG)
        for name in [n for n in headers if n in _VERSION_ONLY_HEADERS or n.startswith(fields.OBJECT_SYSMETA)]:
            del headers[name]
        if s3_etag is not None:
            # Conditions are evaluated on the link.
            headers[fields.SYSMETA_S3_ETAG] = s3_etag
        quoted = quote_path(f"{self._versions_container.container}/{target.version.name}")
        row = {
            "symlink_target": quoted,
            "symlink_target_etag": target.etag,
            "symlink_target_bytes": target.size,
            **target.row_parameters,
        }
        headers.update(
            {
                fields.SYSMETA_SYMLINK_TARGET: quoted,
                fields.SYSMETA_SYMLINK_TARGET_ETAG: target.etag,
                fields.SYSMETA_SYMLINK_TARGET_BYTES: target.size,
                fields.SYSMETA_VERSIONS_SYMLINK: "true",
                fields.SYSMETA_SYMLOOP_EXTEND: "true",
                fields.SYSMETA_ALLOW_RESERVED_NAMES: "true",
                fields.SYSMETA_UPDATE_OVERRIDE_ETAG: add_etag_parameters(override, _EMPTY_MD5, row),
                "content-type": target.content_type,
                "content-length": "0",
            }
        )
        if loose:
            del headers[fields.SYSMETA_SYMLINK_TARGET_ETAG]
        stamp = self._request_timestamp()
        request.timestamp = Timestamp.from_raw(stamp.raw, stamp.offset + 1)
        for key in _BODY_ENVIRON_KEYS:
            request.env.pop(key, None)
        sent, request.body = request.body, BytesBody()
        try:
            return forward_write(forward or self._forward, request)
        finally:
            # The access log counts the body that the client sent.
            request.body = sent

    def _restore_version(self, version: Version, version_id: str) -> Response:
        """Make a version the current one."""
        request = self._request
        if request.body.length or (request.body.length is None and request.body.read(1)):
            raise HTTPError(400, "PUT version-id requests require a zero byte body", content_type=TEXT)
        denied = find_denial(self._request, self._info.write_acl)
        if denied is not None:
            return denied
        headers = self._link.find_version(version)
        if headers is None:
            raise HTTPError(404, _NO_VERSION_ERROR, content_type=TEXT)
        response = self._link_to(StoredVersion(version, headers))
        if response.is_success:
            if self._link.find_version(version) is None:
                # It was deleted meanwhile.
                drained(response)
                self._repair_link(version, restores=False)
                raise HTTPError(404, _NO_VERSION_ERROR, content_type=TEXT)
            response.headers[VERSION_ID_HEADER] = version_id
        return response

    def _link_to(self, found: StoredVersion) -> Response:
        """Point the object's link to a stored version; raises ``WriteNotStored``."""
        request, headers = self._request, found.headers
        etag = unquote_etag(headers.get("etag", ""))
        size = headers.get(fields.SYSMETA_SLO_SIZE) or headers.get("content-length", "0")
        override = ""
        loose = is_true(request.headers.pop(fields.BACKEND_LOOSE_LINK, None))
        if fields.SYSMETA_SYMLINK_TARGET_ETAG in headers:
            etag = headers[fields.SYSMETA_SYMLINK_TARGET_ETAG]
            size = headers.get(fields.SYSMETA_SYMLINK_TARGET_BYTES, "0")
        if fields.SYSMETA_SLO_ETAG in headers:
            row = {
                name: headers[stored] for name, stored in _MANIFEST_ROW_FIELDS.items() if stored in headers
            }
            override = add_etag_parameters("", etag, row)
        if fields.SYSMETA_S3_ETAG in headers:
            request.headers[fields.SYSMETA_S3_ETAG] = headers[fields.SYSMETA_S3_ETAG]
        response = self._put_link(
            _LinkTarget(found.version, etag, size, headers.get("content-type", "")), override, loose=loose
        )
        if response.is_success:
            response.headers["etag"] = etag
        return response

    # metadata

    def _post(self) -> Response:
        """Change the metadata of the link and of the version that it points to."""
        headers = self._request.headers
        # A lock applies to the version; the link must stay deletable.
        locks = {name: headers.pop(name) for name in _LOCK_HEADERS if name in headers}
        if not locks and self._info.sysmeta.get(_LOCK_RULE_SYSMETA):
            denied = find_denial(self._request, self._info.write_acl) or self._lock_denial()
            if denied is not None:
                return denied
        response = self._forward(self._request)
        found = (
            parse_visible_version(response.headers.get("location", "")) if response.status == 307 else None
        )
        if found is None or found[0] != self._object_path:
            return response
        drained(response)
        sub = self._make_client_request(Version(self._object_name, Timestamp(found[1])))
        sub.headers.update(locks)
        for name in _LINK_ONLY_POST_HEADERS:
            sub.headers.pop(name, None)
        self._authorize_hidden(sub)
        return self._forward(sub)

    def _lock_denial(self) -> Response | None:
        """Return the denial of a change that the current version's lock forbids; None without one.

        The version's server refuses it too, but only after the link has changed: the object would still
        expire. Raises ``HTTPError`` 503.
        """
        current = self._link.read().version
        found = None if current is None else self._link.find_version(current)
        if found is None:
            return None
        lock = parse_lock(found.get(fields.TRANSIENT_S3_LOCK))
        if lock.allows(NO_LOCK, frozenset(), time.time()):
            return None
        return error_response(403, "The object is locked", content_type=TEXT)

    # deleting

    def _delete(self) -> Response:
        """Store a delete marker and delete the link."""
        denied = find_denial(self._request, self._info.write_acl)
        if denied is not None:
            return denied
        request, archive = self._request, self._archive()
        if not archive.has_room():
            # The object is older than versioning, for it could not be stored since.
            return self._forward(request)
        archive.archive_current()
        version = Version(self._object_name, self._request_timestamp())
        sub = self._link.make_request("PUT", self._link.version_path(version))
        sub.headers.update(
            {"content-type": DELETE_MARKER_TYPE, "content-length": "0", "x-timestamp": version.time.internal}
        )
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        marked = self._forward(sub)
        if not marked.is_success:
            # Without the hidden container the response is that of OpenStack Swift.
            return error_response(412) if marked.status == 404 else marked
        drained(marked)
        response = self._forward_newest(version, request)
        if response.status == 409 and not _has_condition(request):
            newest = self._link.read().time
            drained(response)
            if newest is None or newest.seconds > time.time():
                self._delete_unlinked(version)
                raise WriteNotStored
            # A newer write overtook the deletion, which has happened before it.
            response = error_response(204)
        if response.is_success or (response.status == 404 and not _has_condition(request)):
            response.headers[VERSION_ID_HEADER] = version.id
        elif response.status < 500 or response.status == 501:
            self._delete_unlinked(version)
        return response

    def _delete_version(self, version: Version, version_id: str) -> Response:
        """Delete a version, and the link if it points to that version."""
        denied = find_denial(self._request, self._info.write_acl)
        if denied is not None:
            return denied
        restores = is_true(self._request.headers.pop(fields.BACKEND_RESTORE_VERSION, None))
        sub = self._make_client_request(version)
        if self._link.read().version == version:
            # A caller who may delete the object may delete its current version.
            self._authorize_hidden(sub)
        response = self._forward(sub)
        if response.is_success or response.status == 404:
            was_missing = response.status == 404
            # Nothing is uploaded with a time in the future.
            outdates = not was_missing or version.time.seconds <= time.time()
            current = self._repair_link(version, restores=restores, outdates=outdates, is_suspect=was_missing)
            response.headers[VERSION_ID_HEADER] = version_id
            response.headers[CURRENT_VERSION_ID_HEADER] = (
                NULL_VERSION_ID if current.version is None else current.version.id
            )
        return response

    def _repair_link(
        self, deleted: Version, *, restores: bool, outdates: bool = False, is_suspect: bool = False
    ) -> LinkState:
        """Let no link lead to a deleted version, now or by its upload (``outdates``); return the state.

        ``restores`` makes the newest version the current one. An interrupted request may have left a link
        that ``is_suspect``. Raises ``HTTPError`` 503.
        """
        state, link = self._link.read(), self._link
        outdates = outdates and link.is_outdated(state, deleted)
        if outdates or state.version == deleted or (restores and (is_suspect or not state.exists)):
            return link.repair(state, deleted, self._put_restored_link, restores=restores, outdates=outdates)
        return state

    def _put_restored_link(self, found: StoredVersion, stamp: Timestamp) -> None:
        sub = self._link.make_request("PUT", self._object_path)
        sub.headers["x-timestamp"] = stamp.internal
        restore = _ObjectRequest(
            self._forward, self._guesser, sub, self._entity, self._info, name_bytes_max=self._name_bytes_max
        )
        try:
            response = restore._link_to(found)
        except WriteNotStored:
            # A newer state; the caller reads it.
            return
        if not drained(response).is_success:
            raise HTTPError(503)

    # requests

    def _request_timestamp(self) -> Timestamp:
        """Return the time of the request; set it to now if it has none."""
        request = self._request
        stamp = request_timestamp(request.headers)
        if "x-timestamp" not in request.headers:
            request.timestamp = stamp
        return stamp

    def _hidden_raw_path(self, version: Version) -> str:
        return Entity(self._entity.version, self._link.version_path(version)).raw_path

    def _make_client_request(self, version: Version) -> Request:
        """Return the client's request for a version, with the client's rights."""
        request = self._request
        sub = make_subrequest(
            request,
            request.method,
            self._hidden_raw_path(version),
            query=request.query,
            headers=request.headers,
            source=SUBREQUEST_SOURCE,
        )
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        return sub

    def _authorize_hidden(self, sub: Request) -> None:
        """Extend the caller's rights in the container to the hidden container for a sub-request.

        Sub-requests of other filters for other containers, e.g. for the target of a link, keep the caller's
        rights.
        """
        authorise: Callable[[Request], Response | None] | None = sub.env.get(environkeys.AUTHORIZE)
        if authorise is None:
            return
        versions_container = self._versions_container

        def allowed(request: Request) -> Response | None:
            entity = request.entity
            if entity is not None and entity.path[:2] == versions_container[:2]:
                return None
            return authorise(request)

        sub.env[environkeys.AUTHORIZE] = allowed


class _HiddenVersionArchive(VersionArchive):
    """Archives a null version under its time as version id."""

    _source = SUBREQUEST_SOURCE

    def _version_path(self, timestamp: Timestamp) -> EntityPath:
        return self._versions_container._replace(obj=Version(str(self._object_path.obj), timestamp).name)

    def _archived_headers(self, headers: HeaderMap) -> HeaderMap:
        """Return the headers of the archived object, which the S3 API still knows as ``null``."""
        override = headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, "")
        row_etag = add_etag_parameters(override, headers.get("etag", ""), {ARCHIVED_NULL: "true"})
        return {
            **headers,
            fields.SYSMETA_VERSIONS_NULL: "true",
            fields.SYSMETA_UPDATE_OVERRIDE_ETAG: row_etag,
        }

    def _is_archived(self, source: Response) -> bool:
        return fields.SYSMETA_VERSIONS_SYMLINK in source.headers


def _has_condition(request: Request) -> bool:
    """Return True if a change depends on the present object."""
    return fields.BACKEND_IF_PREDECESSOR in request.headers or _has_client_condition(request)


def _has_client_condition(request: Request) -> bool:
    return not request.headers.keys().isdisjoint(_CLIENT_CONDITIONS)


def _was_found(response: Response) -> bool:
    return response.is_success or response.status in (304, 412, 416)
