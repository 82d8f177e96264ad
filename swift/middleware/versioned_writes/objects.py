"""Objects of containers that keep every version of them (spec: middleware.md §9.2).

The object is a static link to its current version, which is in a hidden container. A user who may write to
the container may have versions made, and one who may read the object is led to its version by the link. One
that is asked for by its id is read and removed with the caller's own rights, which in the hidden container
only the account's owner has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from swift.base.entity import BadPath, Entity, EntityPath, NotUTF8, decode_path, quote_path
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.gateway.info import ContainerInfo
from swift.gateway.subrequest import drained, make_subrequest, open_response, preauthorise
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http import environkeys, fields
from swift.http.body import BytesBody, RequestBody
from swift.http.etagparameters import add_etag_parameters, parse_etag_parameters
from swift.http.mediatypes import TypeGuesser
from swift.http.objectlock import MAY_WITHDRAW, NO_LOCK, parse_default_retention, parse_lock
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import request_timestamp
from swift.middleware.versioned_writes.archive import MARKER_TYPE, Archive
from swift.middleware.versioned_writes.containers import SOURCE, keeps_versions
from swift.middleware.versioned_writes.names import NULL, Version, home_of, shown_path, shown_url
from swift.runtime.wsgi import Handle

ID = "x-object-version-id"
CURRENT_ID = "x-object-current-version-id"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
_TARGET, _LOCATION = "x-symlink-target", "content-location"
#: Headers of an upload that are for the link, not for the version: what ends, or is only made on a condition.
_OF_LINK = ("x-delete-at", "x-delete-after", "if-none-match", "if-match", fields.BACKEND_IF_PREDECESSOR)
#: Headers of a change of metadata that are for the link.
_OF_LINK_CHANGE = (
    *("x-delete-at", "x-delete-after", "x-remove-delete-at", "x-remove-delete-after"),
    fields.BACKEND_IF_PREDECESSOR,
)
#: And those that are for the version alone.
_OF_VERSION = frozenset(
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
#: What locks new versions get, in the system metadata of a container.
_LOCK_RULE = fields.SYSMETA_S3_LOCK_RULE.removeprefix(fields.CONTAINER_SYSMETA)
#: Of these, what a change of metadata has too.
_OF_LOCKS = (fields.TRANSIENT_S3_LOCK, fields.BACKEND_OBJECT_LOCK)
#: Of a request's environment: what becomes of its body.
_OF_BODY = (environkeys.UPDATE_FOOTERS, environkeys.CONTENT_TYPE_OVERRIDDEN)
#: What the row of a manifest keeps, and where the manifest says it.
_OF_MANIFEST_ROWS = {
    "s3_etag": fields.SYSMETA_S3_ETAG,
    "s3_class": fields.SYSMETA_S3_CLASS,
    "slo_etag": fields.SYSMETA_SLO_ETAG,
}
_NOT_VERSIONED = "version-aware operations require that the container is versioned"
_NO_HOME = "The versions container does not exist. You may want to re-enable object versioning."
_GONE = "The specified version does not exist"


class _Target(NamedTuple):
    """Version that a link names."""

    version: Version
    etag: str
    size: str
    content_type: str
    #: Parameters that a link which was stored as the version has in its row besides.
    more: Mapping[str, str] = {}


class VersionedObjects:
    """The object's side of object versioning."""

    def __init__(self, forward: Handle, guesser: TypeGuesser):
        self._forward = forward
        self._guesser = guesser

    def answer(self, request: Request, entity: Entity, info: ContainerInfo) -> Response | None:
        """Return the answer to a request for an object; None when it has nothing to do with versions."""
        wanted, is_plain = request.params.get("version-id"), home_of(info) is None
        if is_plain and wanted == NULL and request.method == "DELETE":
            # The object itself, whose former one the other modes may have to restore.
            return None
        if wanted:
            return _Asked(self._forward, self._guesser, request, entity, info).one(wanted)
        if is_plain:
            return None
        return _Asked(self._forward, self._guesser, request, entity, info).current()

    def show(self, response: Response) -> None:
        """Tell of a hidden object that an answer is of by the name that clients know."""
        location = response.headers.get(_LOCATION)
        url = shown_url(location) if location is not None else None
        if url is not None:
            response.headers[_LOCATION] = url


class _Asked:
    """One request for an object."""

    def __init__(
        self, forward: Handle, guesser: TypeGuesser, request: Request, entity: Entity, info: ContainerInfo
    ):
        self._forward = forward
        self._guesser = guesser
        self._request = request
        self._entity = entity
        self._path = entity.path
        self._name = str(entity.path.obj)
        self._info = info
        self._home = EntityPath(entity.path.account, home_of(info))

    def current(self) -> Response:
        """Return the answer to a request that names no version."""
        method, enabled = self._request.method, keeps_versions(self._info)
        if method in ("GET", "HEAD", "OPTIONS"):
            return self._read()
        if method == "POST":
            return self._post()
        if method == "PUT" and enabled:
            return self._put()
        if method == "DELETE" and enabled:
            return self._delete()
        return self._forward(self._request)

    def one(self, wanted: str) -> Response:
        """Return the answer to a request for one version; raises ``HTTPError``."""
        method = self._request.method
        if method == "POST":
            raise HTTPError(400, "POST to a specific version is not allowed")
        if wanted == NULL:
            return self._null()
        if self._home.container is None:
            raise HTTPError(400, _NOT_VERSIONED)
        try:
            version = Version(self._name, Timestamp(wanted))
        except InvalidTimestamp:
            raise HTTPError(400, "Invalid version parameter")
        if method in ("GET", "HEAD"):
            return self._read_version(version, wanted)
        if method == "PUT":
            return self._restore(version, wanted)
        if method == "DELETE":
            return self._remove(version, wanted)
        return self._forward(self._request)

    # reading

    def _read(self) -> Response:
        response = self._forward(self._request)
        found = self._shown_version(response)
        is_here = found is not None and found[0][:2] == self._path[:2]
        response.headers[ID] = found[1] if found is not None and is_here else NULL
        return response

    def _shown_version(self, response: Response) -> tuple[EntityPath, str] | None:
        """Return the object and the id of the version that an answer is of; None if it is of none.

        It is another object's version if this object is a link, perhaps to another container.
        """
        headers = response.headers
        found = None
        if _LOCATION in headers:
            found = _shown(headers[_LOCATION])
        elif fields.SYSMETA_VERSIONS_SYMLINK in headers and _TARGET in headers:
            url = f"/v1/{quote_path(self._path.account)}/{headers[_TARGET]}"
            found = _shown(url)
            shown = shown_url(url)
            if shown is not None:
                headers[_TARGET] = shown.split("/", 3)[3]
        return found

    def _null(self) -> Response:
        """Return the response for the null version: the object in the container itself, unless it is a
        link to a version.
        """
        request = self._request
        if request.method == "PUT":
            raise HTTPError(400, "Invalid version parameter")
        response = self._forward(request)
        if request.method in ("GET", "HEAD") and _was_found(response):
            if self._shown_version(response) is not None:
                drained(response)
                return error_response(404)
            response.headers[ID] = NULL
        return response

    def _read_version(self, version: Version, wanted: str) -> Response:
        response = self._forward(self._of_client(version))
        if response.status != 412 and response.headers.get("content-type") == MARKER_TYPE:
            drained(response)
            return error_response(404, headers={ID: wanted}, content_type=MARKER_TYPE)
        if response.is_success:
            response.headers[ID] = wanted
        return response

    # writing

    def _put(self) -> Response:
        """Store a version, and have the link lead to it."""
        request = self._request
        denied = self._denied(self._info.write_acl)
        if denied is not None:
            return denied
        archive = _HiddenArchive(self._forward, request, self._entity, str(self._home.container))
        archive.keep()
        version = Version(self._name, self._stamp())
        response, target = self._store(version, request.body)
        if response.status != 201 or target is None:
            return response
        try:
            linked = self._link(target, request.headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, ""))
        except WriteNotStored:
            self._withdraw(version)
            raise
        if not linked.is_success:
            if linked.status < 500:
                self._withdraw(version)
            return linked
        response.headers[ID] = version.id
        return response

    def _withdraw(self, version: Version) -> None:
        """Delete a version to which no link leads."""
        undoing = self._of_ours("DELETE", self._hidden(version))
        undoing.headers[fields.BACKEND_OBJECT_LOCK] = MAY_WITHDRAW
        drained(self._forward(undoing))

    def _store(self, version: Version, body: RequestBody) -> tuple[Response, _Target | None]:
        """Store the body as a version; the answer, and what a link to it has to say."""
        request = self._request
        headers = {name: value for name, value in request.headers.items() if name not in _OF_LINK}
        headers["x-timestamp"] = version.time.internal
        default = parse_default_retention(self._info.sysmeta.get(_LOCK_RULE))
        if default is not None:
            headers.setdefault(fields.TRANSIENT_S3_LOCK, str(default.make_lock(version.time.seconds)))
        guesses = is_true(headers.pop("x-detect-content-type", None)) or not headers.get("content-type")
        if guesses and _TARGET not in headers:
            # The hidden name has no ending.
            headers["content-type"] = self._guesser.guess(self._name)
        sub = make_subrequest(request, "PUT", self._raw(version), headers=headers, body=body, source=SOURCE)
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        kept = (*_OF_BODY, environkeys.SYMLINK_OVERRIDE)
        sub.env.update((key, request.env[key]) for key in kept if key in request.env)
        self._allow_hidden(sub)
        response = self._forward(sub)
        if response.status == 404:
            drained(response)
            raise HTTPError(500, _NO_HOME, content_type=TEXT)
        if response.status == 202:
            # Another writer had the same moment.
            drained(response)
            return error_response(503), None
        size = request.headers.get(fields.SYSMETA_SLO_SIZE) or str(body.received)
        kind = sub.headers.get("content-type", "").partition(";swift_bytes=")[0]
        etag, more = unquote_etag(response.headers.get("etag", "")), {}
        if _TARGET in request.headers:
            # Clients see of a static link what it leads to.
            etag = sub.headers.get(fields.SYSMETA_SYMLINK_TARGET_ETAG, etag)
            size = sub.headers.get(fields.SYSMETA_SYMLINK_TARGET_BYTES, "0")
            row = parse_etag_parameters(sub.headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG, ""))
            more = {name: row[name] for name in ("slo_etag",) if name in row}
        return response, _Target(version, etag, size, kind, more)

    def _link(self, target: _Target, override: str, *, loose: bool = False) -> Response:
        """Have the object lead to a version; a loose link does not say what its ETag must be.

        Raises ``WriteNotStored``.
        """
        request, headers = self._request, self._request.headers
        known = headers.get(fields.SYSMETA_S3_ETAG)
        for name in [n for n in headers if n in _OF_VERSION or n.startswith(fields.OBJECT_SYSMETA)]:
            del headers[name]
        if known is not None:
            # Conditions are judged by the link.
            headers[fields.SYSMETA_S3_ETAG] = known
        quoted = quote_path(f"{self._home.container}/{target.version.name}")
        row = {
            "symlink_target": quoted,
            "symlink_target_etag": target.etag,
            "symlink_target_bytes": target.size,
            **target.more,
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
        stamp = self._stamp()
        request.timestamp = Timestamp.from_raw(stamp.raw, stamp.offset + 1)
        for key in _OF_BODY:
            request.env.pop(key, None)
        sent, request.body = request.body, BytesBody()
        try:
            return forward_write(self._forward, request)
        finally:
            # The access log tells what the client sent.
            request.body = sent

    def _restore(self, version: Version, wanted: str) -> Response:
        """Make a version the object."""
        request = self._request
        if request.body.length or (request.body.length is None and request.body.read(1)):
            raise HTTPError(400, "PUT version-id requests require a zero byte body", content_type=TEXT)
        denied = self._denied(self._info.write_acl)
        if denied is not None:
            return denied
        with open_response(self._forward, self._of_ours("HEAD", self._hidden(version))) as found:
            status, headers = found.status, found.headers
        if status == 404:
            raise HTTPError(404, _GONE, content_type=TEXT)
        if not 200 <= status <= 299:
            raise HTTPError(503)
        etag = unquote_etag(headers.get("etag", ""))
        size = headers.get(fields.SYSMETA_SLO_SIZE) or headers.get("content-length", "0")
        override = ""
        loose = is_true(request.headers.pop(fields.BACKEND_LOOSE_LINK, None))
        if fields.SYSMETA_SYMLINK_TARGET_ETAG in headers:
            etag = headers[fields.SYSMETA_SYMLINK_TARGET_ETAG]
            size = headers.get(fields.SYSMETA_SYMLINK_TARGET_BYTES, "0")
        if fields.SYSMETA_SLO_ETAG in headers:
            row = {name: headers[stored] for name, stored in _OF_MANIFEST_ROWS.items() if stored in headers}
            override = add_etag_parameters("", etag, row)
        if fields.SYSMETA_S3_ETAG in headers:
            request.headers[fields.SYSMETA_S3_ETAG] = headers[fields.SYSMETA_S3_ETAG]
        response = self._link(
            _Target(version, etag, size, headers.get("content-type", "")), override, loose=loose
        )
        if response.is_success:
            response.headers["etag"] = etag
            response.headers[ID] = wanted
        return response

    # metadata

    def _post(self) -> Response:
        """Change the metadata of the object and of the version that it leads to."""
        headers = self._request.headers
        # A lock is the version's: the link must be free to go.
        locks = {name: headers.pop(name) for name in _OF_LOCKS if name in headers}
        if not locks and self._info.sysmeta.get(_LOCK_RULE):
            refused = self._denied(self._info.write_acl) or self._refusal_of_lock()
            if refused is not None:
                return refused
        response = self._forward(self._request)
        found = _shown(response.headers.get("location", "")) if response.status == 307 else None
        if found is None or found[0] != self._path:
            return response
        drained(response)
        sub = self._of_client(Version(self._name, Timestamp(found[1])))
        sub.headers.update(locks)
        for name in _OF_LINK_CHANGE:
            sub.headers.pop(name, None)
        self._allow_hidden(sub)
        return self._forward(sub)

    def _refusal_of_lock(self) -> Response | None:
        """Return the answer to a change that the lock of the current version forbids.

        The version's server refuses it too, but only after the link changed: the object would expire all the
        same. Raises ``HTTPError`` 503.
        """
        current = self._current()
        if current is None:
            return None
        version = Version(self._name, Timestamp(current[0]))
        with open_response(self._forward, self._of_ours("HEAD", self._hidden(version))) as found:
            if found.status >= 500:
                raise HTTPError(503)
            lock = parse_lock(found.headers.get(fields.TRANSIENT_S3_LOCK))
        if lock.allows(NO_LOCK, frozenset(), time.time()):
            return None
        return error_response(403, "The object is locked", content_type=TEXT)

    # deleting

    def _delete(self) -> Response:
        """Keep the mark of a deletion, and delete the link."""
        denied = self._denied(self._info.write_acl)
        if denied is not None:
            return denied
        request = self._request
        archive = _HiddenArchive(self._forward, request, self._entity, str(self._home.container))
        archive.keep()
        version = Version(self._name, self._stamp())
        sub = self._of_ours("PUT", self._hidden(version))
        sub.headers.update(
            {"content-type": MARKER_TYPE, "content-length": "0", "x-timestamp": version.time.internal}
        )
        sub.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
        marked = self._forward(sub)
        if not marked.is_success:
            return error_response(412) if marked.status == 404 else marked
        drained(marked)
        response = self._forward(request)
        response.headers[ID] = version.id
        return response

    def _remove(self, version: Version, wanted: str) -> Response:
        """Forget a version, and the object if it is that."""
        denied = self._denied(self._info.write_acl)
        if denied is not None:
            return denied
        sub, current = self._of_client(version), self._current()
        if current is not None and current[0] == version.id:
            # Who may delete the object may delete the version that it is.
            self._allow_hidden(sub)
        response = self._forward(sub)
        if response.is_success or response.status == 404:
            response.headers[ID] = wanted
            response.headers[CURRENT_ID] = NULL
            if current is not None and current[0] != version.id:
                response.headers[CURRENT_ID] = current[0]
            elif current is not None and not self._unlink(current[1]):
                drained(response)
                return error_response(503)
        return response

    def _current(self) -> tuple[str, Timestamp] | None:
        """Return the id of the version that the object is, and when the link changed.

        Raises ``HTTPError`` 503.
        """
        with open_response(self._forward, self._of_ours("HEAD", self._path)) as response:
            if response.status >= 500:
                raise HTTPError(503)
            headers = response.headers
        stored = headers.get(fields.SYSMETA_SYMLINK_TARGET)
        if stored is None or fields.SYSMETA_VERSIONS_SYMLINK not in headers:
            return None
        found = _shown(f"/v1/{quote_path(self._path.account)}/{stored}")
        if found is None:
            return None
        try:
            return found[1], Timestamp(headers.get(fields.BACKEND_TIMESTAMP) or headers.get("x-timestamp"))
        except InvalidTimestamp:
            raise HTTPError(503)

    def _unlink(self, stamp: Timestamp) -> bool:
        """Delete the link that was seen, not one that came after it; whether that worked."""
        sub = self._of_ours("DELETE", self._path)
        sub.headers["x-timestamp"] = stamp.above(1).internal
        with open_response(self._forward, sub) as response:
            return response.is_success or response.status in (404, 409)

    # requests

    def _stamp(self) -> Timestamp:
        """Return the time of the request, given to it now unless it has one."""
        request = self._request
        stamp = request_timestamp(request.headers)
        if "x-timestamp" not in request.headers:
            request.timestamp = stamp
        return stamp

    def _hidden(self, version: Version) -> EntityPath:
        return self._home._replace(obj=version.name)

    def _raw(self, version: Version) -> str:
        return Entity(self._entity.version, self._hidden(version)).raw_path

    def _of_client(self, version: Version) -> Request:
        """Return the client's request for a version, with the client's rights."""
        request = self._request
        sub = make_subrequest(
            request,
            request.method,
            self._raw(version),
            query=request.query,
            headers=request.headers,
            source=SOURCE,
        )
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        return sub

    def _of_ours(self, method: str, path: EntityPath) -> Request:
        """Return a request with rights of its own, for an object as it is stored."""
        sub = make_subrequest(
            self._request, method, Entity(self._entity.version, path).raw_path, source=SOURCE
        )
        sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
        sub.headers["x-newest"] = "true"
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        return preauthorise(sub)

    def _denied(self, acl: str | None) -> Response | None:
        """Return the answer to a caller who may not do this."""
        authorise: Callable[[Request], Response | None] | None = self._request.env.get(environkeys.AUTHORIZE)
        if authorise is None:
            return None
        self._request.acl = acl
        return authorise(self._request)

    def _allow_hidden(self, sub: Request) -> None:
        """Let a sub-request do in the hidden container what its caller may do in the container.

        Whatever filters ask on its behalf elsewhere, e.g. for the target of a link, is asked with the
        caller's rights.
        """
        authorise: Callable[[Request], Response | None] | None = sub.env.get(environkeys.AUTHORIZE)
        if authorise is None:
            return
        home = self._home

        def allowed(request: Request) -> Response | None:
            entity = request.entity
            if entity is not None and entity.path[:2] == home[:2]:
                return None
            return authorise(request)

        sub.env[environkeys.AUTHORIZE] = allowed


class _HiddenArchive(Archive):
    """Keeps an object that is not yet a version as one, its time being its id."""

    _source = SOURCE

    def _named(self, timestamp: Timestamp) -> EntityPath:
        return self._home._replace(obj=Version(str(self._object.obj), timestamp).name)

    def _is_kept(self, source: Response) -> bool:
        return fields.SYSMETA_VERSIONS_SYMLINK in source.headers


def _shown(raw_path: str) -> tuple[EntityPath, str] | None:
    """Return the object and the id by which clients know what a URL leads to; None for what is no version."""
    try:
        decode_path(raw_path)
        return shown_path(Entity.parse(raw_path).path)
    except (BadPath, NotUTF8):
        return None


def _was_found(response: Response) -> bool:
    return response.is_success or response.status in (304, 412, 416)
