"""Names of hidden containers and of the versions in them (spec: middleware.md §9.2).

The versions of ``c/o`` are the objects ``\\0o\\0<inverted time>`` of the container ``\\0versions\\0c``, so
that a plain listing returns the newest first. The id of a version is its time.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from swift.base.entity import RESERVED, Entity, EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.info import ContainerInfo

HIDDEN_PREFIX = f"{RESERVED}versions{RESERVED}"
#: The version id of an object that is stored in the container itself.
NULL_VERSION_ID = "null"
#: Parameter of the row, and key in listings for the S3 API, of such an object that was archived.
ARCHIVED_NULL = "version_null"


class Version(NamedTuple):
    """One version of an object."""

    obj: str
    time: Timestamp

    @property
    def id(self) -> str:
        """Version id in the API."""
        return self.time.internal

    @property
    def name(self) -> str:
        """Name of the version in the hidden container."""
        return f"{RESERVED}{self.obj}{RESERVED}{self.time.inverted().internal}"

    @classmethod
    def from_hidden_name(cls, name: str) -> Version | None:
        """Return the version that a hidden name stands for; None for any other name."""
        before_separator, _, rest = name.partition(RESERVED)
        obj, separator, inverted = rest.rpartition(RESERVED)
        if before_separator or not separator or not obj:
            return None
        try:
            return cls(obj, Timestamp(inverted).inverted())
        except InvalidTimestamp:
            return None


def version_name_bytes(obj: str) -> int:
    """Return the length of the names of an object's versions."""
    return len(Version(obj, Timestamp(0)).name.encode("utf-8", "surrogateescape"))


def hidden_container(container: str) -> str:
    """Return the name of the hidden container that holds the versions of a container's objects."""
    return HIDDEN_PREFIX + container


def visible_container(hidden: str) -> str | None:
    """Return the container whose versions a hidden container holds; None for other containers."""
    return hidden[len(HIDDEN_PREFIX) :] if hidden.startswith(HIDDEN_PREFIX) else None


def visible_path(path: EntityPath) -> tuple[EntityPath, str] | None:
    """Return the object and the version id by which clients know a hidden object; None for other objects."""
    container = visible_container(path.container or "")
    version = Version.from_hidden_name(path.obj or "")
    if container is None or version is None:
        return None
    return EntityPath(path.account, container, version.obj), version.id


def visible_url(raw_path: str) -> str | None:
    """Return the URL by which clients know the hidden object of a raw path; None for other paths."""
    if "%00" not in raw_path:
        return None
    entity = Entity.parse(raw_path)
    visible = visible_path(entity.path)
    if visible is None:
        return None
    return f"{Entity(entity.version, visible[0]).raw_path}?version-id={visible[1]}"


def get_versions_container(info: ContainerInfo) -> str | None:
    """Return the hidden container of a container's versions; None when it never had any."""
    stored = info.sysmeta.get("versions-container")
    return unquote_container_name(stored) if stored else None


def quote_container_name(container: str) -> str:
    """Return a container's name as metadata stores it."""
    return quote(container, safe="", errors="surrogateescape")


def unquote_container_name(text: str) -> str:
    """Return the container's name from stored metadata of any writer."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
