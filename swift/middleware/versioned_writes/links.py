"""The link from an object to its current version (spec: middleware.md §9.2).

A link must not lead to a version that was deleted. Two requests may change a link and a version at once, so
each looks again at what it did not change itself:

- a deletion deletes the version, and then reads the link;
- a restore puts the link, and then reads the version.

Whatever their order, one of them sees what the other did, and repairs the link.

A change that follows from a state of the link has a timestamp just above this state, so that later uploads
and deletions win. An earlier one that meets such a change, and whose version is still the newest, is repeated
above it (``is_newest``). If a version is deleted before its upload has put the link, the link gets a
timestamp above that of the upload, which is then too late.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED, BadPath, Entity, EntityPath, NotUTF8, decode_path, quote_path
from swift.base.pages import follow_pages
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.subrequest import make_privileged_request, read_listing, require_success
from swift.http import environkeys, fields
from swift.http.etagparameters import parse_etag_parameters
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.middleware.versioned_writes.archive import DELETE_MARKER_TYPE
from swift.middleware.versioned_writes.containers import SUBREQUEST_SOURCE
from swift.middleware.versioned_writes.names import ARCHIVED_NULL, Version, visible_path
from swift.runtime.wsgi import Handle

#: Versions in the first listing, where the newest ones are, and in later ones.
_PAGE_SIZE, _LATER_PAGE_SIZE = 20, 1000
#: Changes of a link that other requests may undo before a repair gives up.
_REPAIRS_MAX = 16
#: Offsets between a state of a link and a change that follows from it. They are random: of two deletions with
#: one timestamp an object server reports only the first to its container server. Links win over removals.
_REMOVAL_OFFSETS, _LINK_OFFSETS = (1, 1 << 28), (1 << 28, 1 << 32)


class LinkState(NamedTuple):
    """The state of the object's name in the container."""

    #: False for a deleted object.
    exists: bool
    #: The version that the link leads to; None for other objects.
    version: Version | None
    #: The last change, deletions included; None if the nodes do not know any.
    time: Timestamp | None
    #: The time at which an object was stored, which later changes of its metadata keep.
    stored: str = ""


class StoredVersion(NamedTuple):
    """A version or delete marker that exists, and its headers."""

    version: Version
    headers: HeaderMap

    @property
    def is_marker(self) -> bool:
        """True for a delete marker."""
        return self.headers.get("content-type") == DELETE_MARKER_TYPE


class VersionLink:
    """The link of the requested object; its requests are preauthorized."""

    def __init__(self, forward: Handle, request: Request, entity: Entity, versions_container: EntityPath):
        self._forward = forward
        self._request = request
        self._entity = entity
        self._object_name = str(entity.path.obj)
        self._versions_container = versions_container

    def make_request(self, method: str, path: EntityPath, query: str = "") -> Request:
        """Return a preauthorized request for an object as it is stored."""
        entity, headers = Entity(self._entity.version, path), {"x-newest": "true"}
        sub = make_privileged_request(
            self._request, method, entity, SUBREQUEST_SOURCE, query=query, headers=headers
        )
        sub.env[environkeys.SYMLINK_OVERRIDE] = True
        return sub

    def version_path(self, version: Version) -> EntityPath:
        """Return the path of a version in the hidden container."""
        return self._versions_container._replace(obj=version.name)

    def read(self) -> LinkState:
        """Return the state of the link; raise ``HTTPError`` 503."""
        response = require_success(self._forward, self.make_request("HEAD", self._entity.path), 404)
        headers, exists = response.headers, response.is_success
        stamp = headers.get(fields.BACKEND_TIMESTAMP) or headers.get("x-timestamp")
        try:
            time = None if stamp is None else Timestamp(stamp)
        except InvalidTimestamp:
            raise HTTPError(503)
        stored = headers.get(fields.SYSMETA_SYMLINK_TARGET)
        if not exists or stored is None or fields.SYSMETA_VERSIONS_SYMLINK not in headers:
            return LinkState(exists, None, time, headers.get(fields.BACKEND_DATA_TIMESTAMP, ""))
        found = parse_visible_version(f"/v1/{quote_path(self._entity.path.account)}/{stored}")
        version = None if found is None else Version(str(found[0].obj), Timestamp(found[1]))
        return LinkState(exists, version, time)

    def find_version(self, version: Version) -> HeaderMap | None:
        """Return the headers of a version, None if it does not exist; raise ``HTTPError`` 503."""
        found = require_success(self._forward, self.make_request("HEAD", self.version_path(version)), 404)
        return found.headers if found.is_success else None

    def remove(self, state: LinkState) -> None:
        """Delete the link unless it has changed since ``state``; raise ``HTTPError`` 503."""
        sub = self.make_request("DELETE", self._entity.path)
        if state.time is not None:
            sub.headers["x-timestamp"] = state.time.above(random.randrange(*_REMOVAL_OFFSETS)).internal
        require_success(self._forward, sub, 404, 409)

    def repair(
        self,
        state: LinkState,
        deleted: Version | None,
        put_link: Callable[[StoredVersion, Timestamp], None],
        *,
        restores: bool,
        outdates: bool,
    ) -> LinkState:
        """Let the link lead to a version that exists, or remove it; return its last state.

        ``restores`` makes the newest version the current one. ``outdates`` gives the link a timestamp above
        that with which the upload of the deleted version would put it. ``put_link`` puts it with a timestamp;
        another request may have overtaken that. Raise ``HTTPError`` 503.
        """
        for _ in range(_REPAIRS_MAX):
            if state.exists and state.version is None:
                return state
            is_outdated = outdates and deleted is not None and self.is_outdated(state, deleted)
            time = link_timestamp(deleted) if deleted is not None and is_outdated else state.time
            found = None if state.version in (None, deleted) else self.find_version(state.version)
            if found is not None and not is_outdated:
                return state
            target = None
            if state.version is not None and found is not None:
                target = StoredVersion(state.version, found)
            elif restores:
                target = self.find_newest()
            if target is None or target.is_marker:
                if state.exists or is_outdated:
                    self.remove(state._replace(time=time))
                return state._replace(exists=False, version=None)
            put_link(target, just_above(time or target.version.time))
            state = self.read()
        raise HTTPError(503)

    def is_outdated(self, state: LinkState, deleted: Version) -> bool:
        """Return True if the upload of a deleted version could still put the link."""
        return state.time is None or state.time <= link_timestamp(deleted)

    def is_newest(self, version: Version, state: LinkState) -> bool:
        """Return True if a version is the newest one, but neither linked nor overwritten.

        Raise ``HTTPError`` 503.
        """
        if state.exists and state.version is None or state.version == version:
            return False
        newest = self.find_newest()
        return newest is not None and newest.version == version

    def find_newest(self) -> StoredVersion | None:
        """Return the newest version or delete marker; raise ``HTTPError`` 503."""
        return self._first_stored(lambda _row: True)

    def find_archived_null(self) -> StoredVersion | None:
        """Return the newest version that was the container's own object; raise ``HTTPError`` 503."""
        return self._first_stored(lambda row: ARCHIVED_NULL in parse_etag_parameters(row["hash"]))

    def _first_stored(self, is_requested: Callable[[JsonObject], bool]) -> StoredVersion | None:
        """Return the first of the requested versions that exists; raise ``HTTPError`` 503.

        The rows of deleted versions may be listed for some time.
        """
        for version, row in self._list_versions():
            headers = self.find_version(version) if is_requested(row) else None
            if headers is not None:
                return StoredVersion(version, headers)
        return None

    def _list_versions(self) -> Iterator[tuple[Version, JsonObject]]:
        """Yield the listed versions and their rows, the newest first; raise ``HTTPError`` 503."""
        pages = follow_pages(self._list_page, "", lambda row: str(row["name"]), limit=_PAGE_SIZE)
        for row in chain.from_iterable(pages):
            version = Version.from_hidden_name(row["name"])
            if version is not None and version.obj == self._object_name:
                yield version, row

    def _list_page(self, marker: str) -> list[JsonObject]:
        """Return the rows of hidden names after a name; raise ``HTTPError`` 503."""
        count, prefix = _LATER_PAGE_SIZE if marker else _PAGE_SIZE, f"{RESERVED}{self._object_name}{RESERVED}"
        query = f"format=json&limit={count}&prefix={_quoted(prefix)}&marker={_quoted(marker)}"
        return read_listing(self._forward, self.make_request("GET", self._versions_container, query))


def just_above(time: Timestamp) -> Timestamp:
    """Return a timestamp above the time of a link's state, other than those of concurrent requests."""
    return time.above(random.randrange(*_LINK_OFFSETS))


def link_timestamp(version: Version) -> Timestamp:
    """Return the timestamp with which the upload of a version puts the link."""
    return version.time.above(1)


def parse_visible_version(raw_path: str) -> tuple[EntityPath, str] | None:
    """Return the object and the version id that a URL names; None for a URL of no version."""
    try:
        decode_path(raw_path)
        return visible_path(Entity.parse(raw_path).path)
    except (BadPath, NotUTF8):
        return None


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")
